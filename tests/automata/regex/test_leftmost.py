"""What ``re.match`` takes of a text: the automaton against ``re`` on random patterns, and what needs none."""

from __future__ import annotations

import itertools
import random
import re

import pytest

from tokenfst.automata.languages.language import Language
from tokenfst.automata.notations.lark_terminals import has_outer_bar
from tokenfst.automata.regex import leftmost
from tokenfst.automata.regex.parse import Pattern
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

WORDS = ["".join(word) for n in range(6) for word in itertools.product("ab", repeat=n)]
REPEATED = ("*", "+", "?", "*?", "+?", "??", "{1,2}", "{2}", "{0,2}?", "{2,}")


def random_pattern(rng: random.Random, depth: int = 3) -> str:
    if depth == 0:
        return rng.choice(["a", "b", "[ab]", "a", "b", "ab", "(?i:A)", "."])
    left, right = random_pattern(rng, depth - 1), random_pattern(rng, depth - 1)
    kind = rng.randrange(7)
    if kind < 2:
        return left + right
    return f"(?:{left}|{right})" if kind < 4 else f"(?:{left}){rng.choice(REPEATED)}"


def parsed(pattern: str) -> Pattern:
    return Pattern(pattern, 0, Budget())


def check(pattern: str) -> None:
    tried = re.compile(pattern)
    own = [word for word in WORDS if (match := tried.match(word)) and match.end() == len(word)]
    made = leftmost.read(parsed(pattern), Budget())
    if made is not None:
        language = Language(made.expr(Budget()), "test")
        assert [word for word in WORDS if language.accepts(word)] == own, pattern
    if leftmost.is_orderly(parsed(pattern)) or leftmost.is_certain(parsed(pattern), Budget()):
        assert [word for word in WORDS if tried.fullmatch(word)] == own, pattern


@pytest.mark.parametrize("seed", range(30))
def test_random_patterns(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(5):
        check(random_pattern(rng))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_random_patterns_at_length(seed: int) -> None:
    rng = random.Random(1_000 + seed)
    for _ in range(100):
        pattern = random_pattern(rng)
        check(pattern)
        check(f"(?!ba){pattern}")


@pytest.mark.parametrize(
    "pattern",
    [
        r"-?(0|[1-9][0-9]*)(\.[0-9]+)?([eE][+-]?[0-9]+)?",
        r'"([^"\\]|\\.)*"',
        r"(?!(if|else)\b)[a-z_]\w{0,400}",
        "[ab]{3,1000}c",
        "(a+)+",
    ],
)
def test_most_patterns_prefer_their_longest_words(pattern: str) -> None:
    assert leftmost.is_orderly(parsed(pattern))


@pytest.mark.parametrize("pattern", ["a|ab", "a??", "a*?", "(?:a{1,2}|b+?){2}", "(|a)+", "(?<!c)(a|ab)"])
def test_patterns_that_hide_words_are_not_orderly(pattern: str) -> None:
    assert not leftmost.is_orderly(parsed(pattern))


def test_what_is_written_out_is_bounded() -> None:
    with pytest.raises(BudgetExceeded, match="regular expression"):
        leftmost.read(parsed("(?:(?:a|ab){300}){300}"), Budget())


@pytest.mark.parametrize(
    ("pattern", "has"),
    [
        ("a|b", True),
        ("(a|b)", False),
        ("[|]", False),
        (r"\|", False),
        ("((a)|b)c", False),
        ("[^]|]", False),
        ("(a)|b", True),
    ],
)
def test_a_bar_outside_of_groups(pattern: str, has: bool) -> None:
    assert has_outer_bar(pattern) is has
