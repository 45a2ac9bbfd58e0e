"""All substrings of a long text: the suffix automaton, and the first mask over it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import tokenfst
from benchmarks.measuring.libraries import World
from benchmarks.measuring.measure import Figure, figure, sample
from tokenfst import Language

LENGTH = 100_000
ROUNDS = 7


def substrings(world: World) -> Iterator[Figure]:
    """From a text of this repository's pages to the language of its substrings, and to the first mask."""
    pages = sorted((Path(__file__).resolve().parents[2] / "docs").rglob("*.md"))
    text = "".join(page.read_text(encoding="utf-8") for page in pages)[:LENGTH]
    source = f"(?P<SUBSTRING_OF>{re.escape(text)})"
    makers: dict[str, Callable[[], Language]] = {
        "substring_of": lambda: tokenfst.substring_of(text),
        "substring_of, words": lambda: tokenfst.substring_of(text, words=True),
        "a named group in a pattern": lambda: tokenfst.regex(source),
    }
    for name, make in makers.items():

        def first_mask(make: Callable[[], Language] = make) -> None:
            world.ours.walk(tokenfst.compile(make(), world.vocabulary)).fill()

        target = 0.2 if name == "substring_of" else None
        yield figure(name, "to the language", sample(make, runs=ROUNDS), target=target)
        yield figure(name, "to the first mask", sample(first_mask, runs=ROUNDS))
