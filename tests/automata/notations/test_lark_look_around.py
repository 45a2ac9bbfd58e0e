"""Terminals of Lark's notation with look-around: the texts that ``re.match`` takes as a whole, or a refusal."""

from __future__ import annotations

import itertools
import random
import re
import warnings

import pytest

from tokenfst import lark_grammar
from tokenfst.errors import EmptyLanguageError, PatternError, PatternWarning

WORDS = ["".join(word) for n in range(6) for word in itertools.product("ab1", repeat=n)]
CHARACTERS = ("a", "b", "1", "[ab]", "[^a]", ".", r"\d", r"\w")
REPEATED = ("*", "+", "?", "*?", "+?", "??", "{1,2}", "{0,2}?")
CONDITIONS = ("(?={0})", "(?!{0})", "(?<={1})", "(?<!{1})", r"\b", r"\B", "$", "^")


def random_pattern(rng: random.Random, depth: int) -> str:
    def inner() -> str:
        return random_pattern(rng, depth - 1)

    kind = rng.random()
    if depth == 0 or kind < 0.3:
        return rng.choice(CHARACTERS)
    if kind < 0.5:
        return inner() + inner()
    if kind < 0.62:
        return f"(?:{inner()}|{rng.choice([inner(), ''])})"
    if kind < 0.82:
        return f"(?:{inner()}){rng.choice(REPEATED)}"
    condition = rng.choice(CONDITIONS).format(inner(), rng.choice(CHARACTERS))
    return condition + inner() if rng.random() < 0.5 else inner() + condition + inner()


def check(bodies: list[str]) -> bool:
    """Whether a terminal that consists of these patterns, one after another, is read; then its words are right."""
    names = [f"P{number}" for number in range(len(bodies))]
    parts = "\n".join(f"{name}: /(?:{body})/" for name, body in zip(names, bodies, strict=True))
    text = f"start: T\nT: {' '.join(names)}\n{parts}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", PatternWarning)
        try:
            found = lark_grammar(text).to_language()
        except EmptyLanguageError:
            found = None
        except PatternError:
            return False
    tried = re.compile("".join(f"(?:{body})" for body in bodies))
    for word in WORDS:
        match = tried.match(word)
        wanted = match is not None and match.end() == len(word)
        assert (found is not None and found.accepts(word)) == wanted, (bodies, word)
    return True


@pytest.mark.parametrize(
    "bodies",
    [
        [r"(?=(?:a|(?:[^a]){1,2})\B(?:b)?b)(?:[ab])+?"],  # a shorter match that is no word by itself
        [r"\b(?:[^a]){0,2}?"],
        ["(?:b)+?", r"\b(?:b)??"],  # a word that is no match of a longer text
        ["b", r"\d(?=(?:\d){1,2})(?:\d){0,2}?"],
    ],
)
def test_a_shorter_match_sees_the_rest_of_the_text(bodies: list[str]) -> None:
    assert check(bodies)


def test_alternatives_see_the_rest_of_the_text() -> None:
    alternatives = [r"b\b", r"(?=b+1)[b1]{2}", "[b1]{3}"]
    with pytest.warns(PatternWarning):
        found = lark_grammar(f"start: T\nT: {' | '.join(f'/{each}/' for each in alternatives)}").to_language()
    ordered = sorted(alternatives, key=lambda each: -re._parser.parse(each).getwidth()[1])  # type: ignore[attr-defined]
    tried = re.compile("|".join(ordered))
    for word in WORDS:
        match = tried.match(word)
        assert found.accepts(word) == (match is not None and match.end() == len(word)), word


@pytest.mark.parametrize(
    "bodies",
    [
        [r"(?:(?:(?:b){1,2}){0,2}?\Bb)+?"],  # look-around excludes the shortest matches
        [r"(?:$(?:b)??|(?:(?:a)+?)+)"],
        [r"b\B(?:(?:b)*?|$b)"],
        [r"(?:(?:(?:(?:1|)\w)??){0,2}?)", "a"],  # an empty round, which re ends by its own rules
    ],
)
def test_what_cannot_be_decided_is_refused(bodies: list[str]) -> None:
    assert not check(bodies)


def random_terminals(seed: int, count: int) -> int:
    rng = random.Random(seed)
    read = 0
    for _ in range(count):
        bodies = [random_pattern(rng, rng.randint(1, 3)) for _ in range(rng.randint(1, 2))]
        try:
            re.compile("".join(bodies))
        except re.error:
            continue
        read += check(bodies)
    return read


def test_random_terminals() -> None:
    assert random_terminals(0, 400) > 250


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1, 41))
def test_many_random_terminals(seed: int) -> None:
    random_terminals(seed, 2000)
