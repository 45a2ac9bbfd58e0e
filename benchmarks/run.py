"""All speed figures in one table: ``python benchmarks/run.py [--only NAME]... [--json]`` (``measuring/table.py``)."""

from __future__ import annotations

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
    from benchmarks.measuring.table import main

    sys.exit(main())
