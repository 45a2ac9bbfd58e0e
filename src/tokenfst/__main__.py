"""``python -m tokenfst``: the command line."""

from tokenfst.cli import main

if __name__ == "__main__":
    main()
