"""No measured figure is typed into a page by hand.

A measured figure comes from a file in docs/data that a command wrote: docs/figures.py puts it into the page, between
marks. Figures with a unit that people typed are listed in tests/typed_figures.toml, each under a kind that is not a
measurement.
"""

from __future__ import annotations

import re
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
LISTED = ROOT / "tests" / "typed_figures.toml"
KINDS = ("limit", "size", "target", "setting", "estimate", "cited")
FIGURE = re.compile(
    r"(?<![\w.])\d[\d,.]*\s?"
    r"(?:µs|us|ms|ns|seconds?|minutes?|hours?|s|[KMG]i?B|bytes|kB|%|×|x|times|per ?cent|(?:micro|milli)seconds?)(?!\w)"
)
MADE = (
    re.compile(r"<!-- figures: .*?<!-- end of figures -->", re.DOTALL),
    re.compile(r"<!-- figure: [\w-]+ -->[^<]*<!-- / -->"),
    re.compile(r"^(```|~~~).*?^\1", re.DOTALL | re.MULTILINE),
    re.compile(r"^    .*", re.MULTILINE),
    re.compile(r"`[^`\n]*`"),
)
"""What docs/figures.py fills, and code."""
BY_PROGRAMS = re.compile(r"<!-- written by |^Written by `python ", re.MULTILINE)
"""A page that a program writes as a whole says so."""


def typed(text: str) -> set[str]:
    """The figures with a unit that stand in a page's own words."""
    for made in MADE:
        text = made.sub("", text)
    return {re.sub(r"\s", " ", found[0]) for found in FIGURE.finditer(text)}


def pages() -> Iterator[tuple[str, str]]:
    """The pages that people write, without the changelog and decisions, which say what was measured at their time."""
    names = subprocess.run(["git", "ls-files", "*.md"], cwd=ROOT, capture_output=True, text=True, check=True)
    for name in names.stdout.splitlines():
        text = (ROOT / name).read_text()
        if not name.startswith(("CHANGELOG", "docs/decisions/")) and not BY_PROGRAMS.search(text):
            yield name, text


@pytest.fixture(scope="module")
def listed() -> dict[str, dict[str, list[str]]]:
    return tomllib.loads(LISTED.read_text())


def test_each_typed_figure_has_a_reason(listed: dict[str, dict[str, list[str]]]) -> None:
    found = {name: figures for name, text in pages() if (figures := typed(text))}
    known = {name: {each for kind in kinds.values() for each in kind} for name, kinds in listed.items()}
    new = {name: sorted(figures - known.get(name, set())) for name, figures in found.items()}
    gone = {name: sorted(figures - found.get(name, set())) for name, figures in known.items()}
    assert not {name: figures for name, figures in new.items() if figures}, (
        "a measured figure comes from docs/data: give it a name in docs/figures.py; others: tests/typed_figures.toml"
    )
    assert not {name: figures for name, figures in gone.items() if figures}, "take these off the list"


def test_the_list_says_of_which_kind_a_figure_is(listed: dict[str, dict[str, list[str]]]) -> None:
    assert all(set(kinds) <= set(KINDS) for kinds in listed.values())
    assert all(sorted(set(each)) == each for kinds in listed.values() for each in kinds.values()), "in order"


def test_the_first_screen_has_no_typed_figure() -> None:
    assert not typed((ROOT / "README.md").read_text())


def test_figures_are_found_outside_of_what_is_made() -> None:
    text = "takes 3.5 ms,\n12\nMB or 1.2 x: `9 ms` <!-- figure: a -->8 ms<!-- / -->\n\n    7 ms\n"
    assert typed(text) == {"3.5 ms", "12 MB", "1.2 x"}
    table = "<!-- figures: a -->\n| 4 ms |\n<!-- end of figures -->\n"
    assert not typed(table) and typed(table.replace("figures: a", "tables: a")) == {"4 ms"}
