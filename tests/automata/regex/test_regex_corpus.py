"""Patterns of real life (corpus/regex.toml): ``regex`` and ``re`` agree with what the corpus says."""

from __future__ import annotations

import random
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

from reference.expressions.expressions import matches
from reference.expressions.near_texts import near
from tokenfst.automata.regex.translate import expression, regex

CORPUS: list[dict[str, Any]] = tomllib.loads(
    (Path(__file__).parents[2] / "corpus" / "regex.toml").read_text()
)["pattern"]


def flags_of(entry: dict[str, Any]) -> int:
    return int(re.RegexFlag[entry["flags"]]) if "flags" in entry else 0


@pytest.mark.parametrize("entry", CORPUS, ids=[entry["name"] for entry in CORPUS])
def test_corpus(entry: dict[str, Any]) -> None:
    pattern, flags = entry["regex"], flags_of(entry)
    oracle = re.compile(pattern, flags)
    language = regex(pattern, flags)
    for text in entry["yes"]:
        assert oracle.fullmatch(text), text
        assert language.accepts(text), text
    for text in entry["no"]:
        assert not oracle.fullmatch(text), text
        assert not language.accepts(text), text
    for text in near(pattern, flags, random.Random(entry["name"]), 60, longest=60):
        assert language.accepts(text) == bool(oracle.fullmatch(text)), text


@pytest.mark.parametrize("entry", CORPUS[::6], ids=[entry["name"] for entry in CORPUS[::6]])
def test_corpus_by_the_meaning_of_expressions(entry: dict[str, Any]) -> None:
    expr = expression(entry["regex"], flags_of(entry))
    for text in entry["yes"][:2]:
        assert matches(expr, text.encode()), text
    for text in entry["no"][:2]:
        assert not matches(expr, text.encode()), text


def test_the_corpus_is_large_and_without_twins() -> None:
    assert (
        len({entry["regex"] for entry in CORPUS}) == len({entry["name"] for entry in CORPUS}) == len(CORPUS)
    )
    assert len(CORPUS) >= 45
