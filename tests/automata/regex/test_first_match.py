"""Where the preferred match of a plain pattern ends, as the core's automaton says, against ``re.match``."""

from __future__ import annotations

import random
import re

import pytest

from tests.automata.regex.test_plain_python import PLAIN
from tokenfst.automata.regex.plain import read_plain

LETTERS = "abcdxyé😀A1 .{}[]\n"


def compare(pattern: str, rng: random.Random) -> bool:
    """Whether a pattern has an automaton; then it is compared on random texts, from random places."""
    plain = read_plain(pattern, None)
    if plain is None or plain.match_end("", 0) is None:
        return False
    compiled = re.compile(pattern)
    for _ in range(40):
        text = "".join(rng.choice(LETTERS) for _ in range(rng.randint(0, 12)))
        at = rng.randint(0, len(text))
        match = compiled.match(text, at)
        assert plain.match_end(text, at) == (-1 if match is None else match.end()), (pattern, text, at)
    return True


def random_pattern(rng: random.Random, depth: int) -> str:
    if depth == 0:
        return rng.choice(("a", "b", "ab", "[ab]", "[^a]", "é", ".", "\\w", "(?i:a)", "[😀c]"))
    left, right = random_pattern(rng, depth - 1), random_pattern(rng, depth - 1)
    forms = (
        "{0}{1}",
        "(?:{0}|{1})",
        "({0}|{1})",
        "(?:{0})*{1}",
        "(?:{0})+?{1}",
        "(?:{0})?{1}",
        "(?:{0}){{1,2}}",
    )
    return rng.choice(forms).format(left, right)


def test_known_patterns() -> None:
    rng = random.Random(0)
    assert sum(compare(pattern, rng) for pattern in PLAIN) > 60


def test_random_patterns() -> None:
    rng = random.Random(1)
    assert sum(compare(random_pattern(rng, rng.randint(1, 3)), rng) for _ in range(400)) > 200


@pytest.mark.parametrize("pattern", ["a*", "(?:a*)+b", "(?:|a)b+?|", "(?:[ab]{0,40}c){9}"])
def test_others_have_no_automaton(pattern: str) -> None:
    plain = read_plain(pattern, None)
    assert plain is not None
    assert plain.match_end("aab", 0) is None
