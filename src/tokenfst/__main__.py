"""``python -m tokenfst``: the command line."""

import os

try:
    from tokenfst.cli import main
except KeyboardInterrupt:
    os.write(2, b"error: interrupted\n")
    os._exit(130)

if __name__ == "__main__":
    main()
