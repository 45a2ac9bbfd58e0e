"""Programs whose kernels Triton interprets: no GPU takes part. Triton decides this when it is imported, so each is a
process of its own.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parents[2]


def interpreted(code: str) -> None:
    """Run a program that may import from ``tests`` and its folders. Fails with the end of its errors."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys\nsys.path[:0] = [{str(TESTS.parent)!r}, {str(TESTS)!r}]\n{code}"],
        env=os.environ | {"TRITON_INTERPRET": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
