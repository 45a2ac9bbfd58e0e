"""Each operation of ``tokenfst.fst`` has its page, and what pages have from the code is up to date."""

from __future__ import annotations

import inspect
import re
import runpy
from pathlib import Path
from typing import Any

import pytest

import tokenfst.fst as fst

ROOT = Path(__file__).resolve().parents[2]
PROGRAM: dict[str, Any] = runpy.run_path(str(ROOT / "docs" / "operations.py"))
PAGES: dict[str, list[tuple[str, Any]]] = PROGRAM["operations"]()
NAMED = [
    "arcmap",
    "arcsort",
    "closure",
    "compose",
    "concat",
    "connect",
    "determinize",
    "difference",
    "disambiguate",
    "encode",
    "decode",
    "epsnormalize",
    "equal",
    "equivalent",
    "intersect",
    "invert",
    "isomorphic",
    "minimize",
    "project",
    "prune",
    "push",
    "randequivalent",
    "randgen",
    "relabel_pairs",
    "relabel_tables",
    "replace",
    "reverse",
    "reweight",
    "rmepsilon",
    "shortestdistance",
    "shortestpath",
    "synchronize",
    "topsort",
    "union",
    "verify",
    "cross",
    "cdrewrite",
    "string_map",
    "accep",
    "optimize",
]
"""What OpenFst and pynini have, by their names."""
LAZY = [
    "compose",
    "determinize",
    "rmepsilon",
    "replace",
    "union",
    "concat",
    "closure",
    "intersect",
    "difference",
    "arcmap",
]


def test_every_operation_is_shown() -> None:
    shown = {function for page in PAGES.values() for _, function in page}
    for name in fst.__all__:
        function = getattr(fst, name)
        if inspect.isfunction(function):
            assert function in shown or name in PROGRAM["NO_OPERATIONS"], name
    calls = {call for page in PAGES.values() for call, _ in page}
    assert all({f"fst.{name}", f"machine.{name}"} & calls for name in NAMED)
    assert all(f"fst.lazy.{name}" in calls for name in LAZY)


def test_what_is_from_docstrings_is_up_to_date() -> None:
    for path, text in PROGRAM["written"]().items():
        assert path.read_text() == text, f"python docs/operations.py, for {path}"


@pytest.mark.parametrize("name", PAGES)
def test_a_page_is_whole(name: str) -> None:
    text = (ROOT / "docs" / "fst" / f"{name}.md").read_text()
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == ["Description", "Usage", "Complexity", "Caveats"]
    assert text.startswith(f"# {name}\n") and "```python\nimport tokenfst.fst as fst\n" in text
    assert f"- fst/{name}.md\n" in (ROOT / "mkdocs.yml").read_text()
    for picture in re.findall(r"\.\./images/([\w-]+\.svg)", text):
        assert (ROOT / "docs" / "images" / picture).exists(), f"python docs/pictures.py fst: {picture}"
