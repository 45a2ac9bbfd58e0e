"""Templates against cutting every short text in every way."""

from __future__ import annotations

import itertools

import pytest

from tokenfst import (
    Budget,
    Grammar,
    Language,
    delimited_subsequence_of,
    lark_grammar,
    python_object,
    regex,
    template,
)
from tokenfst.automata.grammars.templates import TemplateGrammar, TemplateLanguage
from tokenfst.errors import BudgetExceeded, ConstraintError, PatternSyntaxError, TemplateError

TEMPLATES = [
    ("{x}", {"x": "a*"}),
    ("a{x}b{y}", {"x": "[ab]*", "y": "a?"}),
    ("{x}{y}", {"x": "a*", "y": "a?b*"}),
    ("b{x}a{y}a", {"x": "b*", "y": "a{2}|b"}),
    ("{x}ab{y}{z}", {"x": ".?", "y": "(ba)*", "z": ""}),
    ("ab", {}),
    ("", {}),
]


def cuts(text: str, pieces: list[str | Language]) -> int:
    """In how many ways ``text`` can be cut into the pieces."""
    if not pieces:
        return not text
    piece, *rest = pieces
    return sum(
        cuts(text[end:], rest)
        for end in range(len(text) + 1)
        if (text[:end] == piece if isinstance(piece, str) else piece.accepts(text[:end]))
    )


@pytest.mark.parametrize(("text", "holes"), TEMPLATES)
def test_every_short_text(text: str, holes: dict[str, str]) -> None:
    made = template(text, **holes)
    parts = [part for part in text.replace("}", "{").split("{") if part]
    pieces: list[str | Language] = [regex(holes[part]) if part in holes else part for part in parts]
    for length in range(7):
        for word in map("".join, itertools.product("ab", repeat=length)):
            ways = cuts(word, pieces)
            assert made.accepts(word) == bool(ways), word
            if ways == 1:
                found = made.parse(word)
                assert text.format(**found) == word and list(found) == list(holes)
                assert all(regex(holes[name]).accepts(part) for name, part in found.items())
            else:
                with pytest.raises(ConstraintError, match="two ways" if ways else "not a word"):
                    made.parse(word)


def test_holes_of_all_kinds() -> None:
    nested = lark_grammar('start: "(" start ")" | "x"')
    made = template("{{{a}}}: {b} {c}", a="[0-9]+", b=Language.literal("é"), c=nested)
    assert isinstance(made, TemplateGrammar)
    assert made.parse("{12}: é ((x))") == {"a": "12", "b": "é", "c": "((x))"}
    assert not made.accepts("12: é x") and not made.accepts("{12}: é ((x)")
    twice = template("{a} {b}", a=nested, b=nested)
    assert isinstance(twice, Grammar) and twice.accepts("(x) ((x))")
    plain = template("f = {value}", value=python_object(list[int]))
    assert isinstance(plain, TemplateLanguage) and plain.parse("f = [1, 2]") == {"value": "[1, 2]"}
    assert plain.parse(b"f = []") == {"value": b"[]"}


def test_a_hole_that_also_stands_elsewhere() -> None:
    """Patterns with look-around are recursions: a hole must not copy the node that their bodies refer to."""
    guarded = regex("(?:(?!bb)[ab])*")
    listed = delimited_subsequence_of(["y", template("{x}", x=guarded)], guarded)
    words = ["".join(word) for n in range(5) for word in itertools.product("aby", repeat=n)]
    inside = [word for word in words if guarded.accepts(word)]
    wanted = {"y", *inside, *("y" + first + second for first, second in itertools.product(inside, inside))}
    assert {word for word in words if listed.accepts(word)} == wanted.intersection(words)


def test_the_budget_is_the_widest_of_the_holes() -> None:
    made = template(
        "{a}{b}", a=regex("a").with_budget(Budget(states=7)), b=regex("b").with_budget(Budget(states=9))
    )
    assert made.budget.states == 9
    slow = template("{a}{b}", a=regex("a*").with_budget(Budget(seconds=1e-9)), b="b")
    with pytest.raises(BudgetExceeded):
        slow.parse("aab")


@pytest.mark.parametrize(
    ("text", "position", "message"),
    [
        ("ab{x", 2, "no partner"),
        ("ab}x", 2, "no partner"),
        ("a{}", 1, "needs a name"),
        ("a{x!r}", 1, "name only"),
        ("a{x:>3}", 1, "name only"),
        ("a{x.y}", 1, "name only"),
        ("{x} {0}", 4, "name only"),
        ("{x} {x}", 4, "occurs twice"),
        ("{x} and {y}", 8, "nothing is given for the hole {y}"),
        ("a{b{x}}", 1, "no partner"),
        ("{x}}", 3, "no partner"),
    ],
)
def test_errors_name_the_place(text: str, position: int, message: str) -> None:
    with pytest.raises(TemplateError, match=message.replace("{", r"\{")) as caught:
        template(text, x="a")
    assert caught.value.position == position and str(caught.value).endswith("^")


def test_other_errors() -> None:
    with pytest.raises(ConstraintError, match=r"no hole \{y\}; its holes: \{x\}"):
        template("{x}", x="a", y="b")
    with pytest.raises(ConstraintError, match=r"hole \{x\} must be a Language.*not 3 .an int"):
        template("{x}", x=3)  # type: ignore[arg-type]
    with pytest.raises(PatternSyntaxError) as caught:
        template("{x}", x="(")
    assert caught.value.__notes__ == ["in the hole {x} of a template"]
    with pytest.raises(ConstraintError, match="surrogate"):
        template("\ud800{x}", x="a")
    with pytest.raises(ConstraintError, match="part of a character"):
        template("{x}{y}", x=regex(rb"\xc3"), y=regex(rb"\xa9")).parse("é")
    with pytest.raises(ConstraintError, match="is a str"):
        template(b"{x}", x="a")  # type: ignore[arg-type]
