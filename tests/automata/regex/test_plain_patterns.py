"""Plain patterns that the native core reads, against the general way: the same nodes."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.worlds.same_grammars import assert_same
from tokenfst._native import plain_pattern
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.regex.ecma import _leaf, _named, _translated, ecma_pattern
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, PatternError

MASKBENCH = Path(__file__).resolve().parents[4] / "shared" / "maskbench" / "all.jsonl.gz"
MOST = 1_000_000


def plain(pattern: str, most: int = MOST) -> Expr | None:
    return plain_pattern(pattern, _leaf, _named, most)


def check(pattern: str) -> bool:
    """Whether a pattern is plain. Then its nodes must be those of the general way."""
    found = plain(pattern)
    if found is not None:
        assert_same(found, _translated(pattern, None))
    return found is not None


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "",
            "^",
            "$",
            "^$",
            "a",
            "^a",
            "a$",
            "^a$",
            "^abc$",
            "|",
            "a|",
            "^$|a",
            "^a$|^b$",
            "a|b",
            "^ab$|^ac$",
        ),
        *("^(a|b)$", "^(?:a|bc)+$", "^(ab|ac|ad)$", "^(a|[b-d]|\\d)$", "^(ab|ab)$", "^((a)(b))c$", "^(|a)$"),
        *(
            "a*",
            "^a{3}$",
            "^[a-c]{9}$",
            "^[^a]{2,12}?$",
            "^\\.{10,}$",
            "^a{1}$",
            "^a{0}b$",
            "^(ab){2,3}$",
            "^()*$",
        ),
        *(
            ".",
            "^\\D\\W\\S$",
            "[\\w-.]",
            "[a-]",
            "[-a]",
            "[\\]\\-]",
            "[^\\n]",
            "^[\\d-x]$",
            "]",
            "}",
            "\\/",
            "^[a-zé]$"[:4],
        ),
        *(
            "^a*?b+?c??$",
            "^x-",
            "-x$",
            "(a)*",
            "^(a)",
            "(a)$",
            "^[A-Fa-f\\d]{24}$",
            "^(a|b|)$",
            "^ab|c$",
            "^(a{2}|b)$",
        ),
    ],
)
def test_plain_patterns(pattern: str) -> None:
    assert plain(pattern) is None or check(pattern)


@pytest.mark.parametrize(
    "pattern",
    [
        *(
            "é",
            "(?=a)",
            "(?<n>a)",
            "\\b",
            "\\1",
            "\\x41",
            "\\u0041",
            "\\p{L}",
            "\\cA",
            "\\0",
            "[\\b]",
            "^^",
            "a^",
            "$a",
        ),
        *(
            "(^a)",
            "(a$)",
            "(a)b",
            "a(b)",
            "*",
            "a**",
            "a{2}{3}",
            "a{,3}",
            "a{",
            "{",
            "a{3,2}",
            "(",
            ")",
            "[",
            "[a",
            "[]",
        ),
        *("\\", "[\\", "[b-a]", "(ab){9}", "a{12345678}", "^*", "\ud800", "(" * 50 + ")" * 50),
    ],
)
def test_what_is_not_plain(pattern: str) -> None:
    assert plain(pattern) is None


PIECES = st.sampled_from(
    [
        *(
            "a",
            "b",
            "0",
            "-",
            ".",
            "\\.",
            "\\d",
            "\\W",
            "\\s",
            "[ab]",
            "[^a]",
            "[a-c-]",
            "[\\w-x]",
            "\\n",
            "/",
            "é",
            "]",
        ),
        *(
            "^",
            "$",
            "|",
            "|",
            "(",
            "(",
            ")",
            ")",
            "(?:",
            "*",
            "+",
            "?",
            "{2}",
            "{0,}",
            "{1,9}",
            "{10}",
            "{",
            "\\b",
            "\\1",
        ),
    ]
)


@settings(max_examples=1500, deadline=None)
@given(st.lists(PIECES, max_size=9).map("".join), st.sampled_from(["", "^"]), st.sampled_from(["", "$"]))
def test_random_patterns(inner: str, begin: str, end: str) -> None:
    check(begin + inner + end)


@pytest.mark.skipif(not MASKBENCH.exists(), reason="the schemas of MaskBench are not here")
def test_patterns_of_published_schemas() -> None:
    """Nine in ten of them are plain."""
    found: dict[str, None] = {}
    with gzip.open(MASKBENCH, "rt") as file:
        waiting: list[Any] = [json.loads(line)["schema"] for _, line in zip(range(3000), file, strict=False)]
    while waiting:
        value = waiting.pop()
        if isinstance(value, dict):
            names = [value.get("pattern"), *(value.get("patternProperties") or ())]
            found |= dict.fromkeys(each for each in names if isinstance(each, str))
        waiting += value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    plain_ones = [check(pattern) for pattern in found if len(pattern) < 200]
    assert len(plain_ones) > 300
    assert sum(plain_ones) > 0.9 * len(plain_ones)


def test_budget_of_positions() -> None:
    """A pattern that is larger than the budget is left to the general way, which refuses it."""
    pattern = "^(a[bc]d{3}){4}$"
    assert plain(pattern, 22) is not None
    assert plain(pattern, 21) is None
    with pytest.raises(BudgetExceeded):
        ecma_pattern("^[ab]{100}$", Budget(positions=50))
    with pytest.raises(PatternError):
        ecma_pattern("^(a$")
