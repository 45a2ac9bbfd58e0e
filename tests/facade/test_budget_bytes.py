"""Budgets of bytes are what the process takes, too, not only what the core counts."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tokenfst import _native

CODE = r"""
import re
import sys
from pathlib import Path

from tokenfst import Budget, Vocabulary, compile, regex
from tokenfst.errors import BudgetExceeded

vocabulary = Vocabulary([bytes([byte]) for byte in range(256)] + [b""], 256)


def expand(size):
    try:
        compile(regex("(a|b)*a(a|b){40}"), vocabulary, Budget(states=10**9, bytes=size, seconds=300)).expand()
    except BudgetExceeded as error:
        return error.resource


def now_and_most():
    # Not getrusage: its maximum begins with that of the process that started this one.
    status = Path("/proc/self/status").read_text()
    return [int(re.search(name + r":\s*(\d+) kB", status)[1]) << 10 for name in ("VmRSS", "VmHWM")]


expand(1 << 20)  # whatever is made once
before, _ = now_and_most()
print(expand(int(sys.argv[1])), now_and_most()[1] - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the system's count is read from /proc")
@pytest.mark.skipif(hasattr(_native, "stress"), reason="sanitizers take memory of their own")
@pytest.mark.parametrize("mebibytes", [52, 100, 136, 200])
def test_the_process_takes_what_the_budget_allows(mebibytes: int) -> None:
    """A twentieth more at most. It may take less: a table grows by doubling, and not if the larger one does not fit."""
    size = mebibytes << 20
    done = subprocess.run([sys.executable, "-c", CODE, str(size)], capture_output=True, text=True, check=True)
    resource, taken = done.stdout.split()
    assert resource == "bytes"
    assert size * 0.75 < int(taken) < size * 1.05
