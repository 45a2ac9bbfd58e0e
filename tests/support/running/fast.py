"""``pytest --fast``: the first case of each test, without those of ``tests/slow.txt``; what one runs before a commit.

The list keeps itself: a fast run adds the tests whose first case took more than ``SLOW`` seconds of CPU, and says so.
``--measure`` forgets the list first, so that every test runs and is judged anew.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

LIST = Path(__file__).resolve().parents[2] / "slow.txt"
SLOW = 0.4
"""So many seconds of CPU, of the test and of the processes that it starts, are too many."""
HEAD = f"# Tests whose first case takes more than {SLOW} s of CPU; `pytest --fast` leaves them out and writes this.\n"


def known_slow() -> set[str]:
    """The tests of the list."""
    lines = LIST.read_text().splitlines() if LIST.exists() else []
    return {line for line in lines if line and not line.startswith("#")}


def test_of(nodeid: str) -> str:
    """A test's name without its case."""
    return nodeid.partition("[")[0]


def add_options(parser: pytest.Parser) -> None:
    """The options of this file."""
    group = parser.getgroup("fast", "run what is fast")
    group.addoption("--fast", action="store_true", help="the first case of each test that is not slow")
    group.addoption("--measure", action="store_true", help="with --fast: find anew which tests are slow")


class Fast:
    """The plugin of ``--fast``."""

    def __init__(self, config: pytest.Config) -> None:
        self.measuring = config.getoption("--measure")
        self.found: set[str] = set()

    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Choose the first case of each test."""
        seen = set() if self.measuring else known_slow()
        kept, left = [], []
        for item in items:
            name = test_of(item.nodeid)
            (left if name in seen else kept).append(item)
            seen.add(name)
        config.hook.pytest_deselected(items=left)
        items[:] = kept

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Iterator[None]:
        """Measure a test. Its set-up is shared with others, and not counted."""
        begin = sum(os.times()[:4])
        try:
            return (yield)
        finally:
            item.user_properties.append(("cpu", sum(os.times()[:4]) - begin))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take a report, under pytest-xdist a worker's."""
        if report.when == "call" and dict(report.user_properties).get("cpu", 0) > SLOW:
            self.found.add(test_of(report.nodeid))

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Write the list, and say what is new in it."""
        known = set() if self.measuring else known_slow()
        new = sorted(self.found - known)
        if new or self.measuring:
            LIST.write_text(HEAD + "".join(f"{name}\n" for name in sorted(self.found | known)))
            terminalreporter.section("slow tests")
            terminalreporter.line(f"tests/slow.txt has {len(new)} more; commit it:")
            for name in new:
                terminalreporter.line(f"  {name}")
