"""What is found in the text of a pattern does not depend on whether plain characters are taken one by one."""

from __future__ import annotations

import random
import re

import pytest

from tokenfst.automata.regex import parse
from tokenfst.budget import Budget
from tokenfst.errors import TokenfstError

PIECES = [
    *(
        "a",
        "b",
        "ab",
        "abc",
        " ",
        "#",
        "\n",
        "(",
        "(?:",
        "(?P<n>",
        "(?#x)",
        "(?i)",
        "(?x:",
        "(?-x:",
        "(?=",
        "(?<!",
    ),
    *(
        ")",
        "|",
        "*",
        "+",
        "?",
        "{2}",
        "{2,}",
        "{,3}",
        "{",
        "}",
        "[a-z]",
        "[^]]",
        r"\d",
        r"\1",
        r"\x41",
        r"\101",
    ),
    *(".", "^", "$", "(?>", "(?P=n)", "(?(1)", "*?", "++", "é"),
]


@pytest.mark.parametrize("part", range(4))
def test_runs_of_plain_characters(part: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = random.Random(part)
    cases = [("".join(rng.choices(PIECES, k=rng.randint(1, 14))), rng.random() < 0.3) for _ in range(3_000)]
    found = [vars(parse._Scan(text, verbose)) for text, verbose in cases]
    monkeypatch.setattr(parse, "_RUN", parse._TOKEN)
    for (text, verbose), seen in zip(cases, found, strict=True):
        assert seen == vars(parse._Scan(text, verbose)), (text, verbose)


def test_repeated_parts_are_those_of_the_walk() -> None:
    rng = random.Random(7)
    read = 0
    for _ in range(6_000):
        text = "".join(rng.choices(PIECES, k=rng.randint(1, 14)))
        try:
            pattern = parse.Pattern(text, 0, Budget())
        except TokenfstError:
            continue
        found: list[int] = []
        parse._repeated(pattern.tree, found)
        walked = [id(argument[2]) for op, argument in parse._walk(pattern.tree) if op in parse._QUANTIFIERS]
        assert found == walked, text
        read += bool(found)
    assert read > 100


@pytest.mark.parametrize(
    "text", ["xyab{9}", "xy(?:ab){9}", "ab(?#c){9}", "(?x:a b {9})", r"ab\d{9}z", "abc[de]{9}f"]
)
def test_the_source_of_a_repetition(text: str) -> None:
    pattern = parse.Pattern(text, 0, Budget())
    [(body, _)] = pattern._spans.items()
    tree = next(
        arg[2] for op, arg in parse._walk(pattern.tree) if op in parse._QUANTIFIERS and id(arg[2]) == body
    )
    shown = pattern.quantified(tree)
    assert shown.endswith("{9}")
    assert text.count(shown) == 1
    assert re.fullmatch(r"b(\(\?#c\))?\{9\}|\(\?:ab\)\{9\}|b \{9\}|\\d\{9\}|\[de\]\{9\}", shown), shown
