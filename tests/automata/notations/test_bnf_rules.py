"""Bodies of rules in GBNF and EBNF as the core writes them, against the fold in Python: the same nodes and messages."""

from __future__ import annotations

import random
import warnings

import pytest

from reference.grammars.lark_rules import slow_rule_body
from tests.support.worlds.same_grammars import assert_same_grammars
from tokenfst import Budget, BudgetExceeded, ebnf, gbnf
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.parsing import bnf
from tokenfst.errors import EmptyLanguageError, PatternError, PatternWarning

NAMES = ("root", "item", "a-b", "x1")
COMMON = ('"a"', '"ab"', '""', r'"\n\x41"', "[a-z]", "[^a-c]", r"[\x41-]")
ONLY = {
    gbnf: (".", "<think>", "!<[5]>"),
    ebnf: ("'b'", "Token(5)", 'TagDispatch(("t", item), excludes=("u"))'),
}
WRONG = (r'"\q"', "[b-a]", '"a"{3,2}', "missing", "(", ".")
SIGNS = ("", "", "", "*", "+", "?", "{2}", "{0,3}", "{9,}", "*?")


def random_text(rng: random.Random, front_end: object) -> str:
    """Rules, of which about a quarter have a fault."""
    pieces = [*COMMON, *ONLY[front_end], *NAMES]

    def body(depth: int) -> str:
        if rng.random() < 0.01:
            return rng.choice(WRONG)
        kind = rng.random()
        if depth == 0 or kind < 0.3:
            return rng.choice(pieces) + rng.choice(SIGNS)
        parts = [body(depth - 1) for _ in range(rng.randint(0 if kind > 0.9 else 1, 3))]
        return f"({rng.choice((' ', ' | ', ' #c' + chr(10))).join(parts)}){rng.choice(SIGNS)}"

    return "\n".join(f"{name} ::= {body(3)} | {body(2)}" for name in NAMES)


def read(front_end: object, text: str) -> Grammar | str:
    """The grammar, or the message of why there is none."""
    try:
        return front_end(text)  # type: ignore[operator]
    except (PatternError, EmptyLanguageError) as error:
        return str(error)


@pytest.mark.parametrize("front_end", [gbnf, ebnf])
def test_rules_are_those_of_the_fold(front_end: object, monkeypatch: pytest.MonkeyPatch) -> None:
    texts = [random_text(random.Random(seed), front_end) for seed in range(300)]
    made = [read(front_end, text) for text in texts]
    monkeypatch.setattr(bnf, "rule_body", slow_rule_body)
    assert 100 < assert_same_grammars(made, [read(front_end, text) for text in texts]) < 290


@pytest.mark.parametrize(
    ("text", "position"),
    [
        ('root ::= "a" (b c)* b', 14),
        ('root ::= "a" b (b c)\nc ::= d', 13),
        ('root ::= TagDispatch(("t", b), excludes=("excludes")) b', 27),
        ('root ::= TagDispatch(excludes=("t")) excludes', 37),
        ('root ::= TagDispatch(("t", a), excludes # =\n =("u"))\na ::= excludes', 59),
    ],
)
def test_the_first_undefined_name_is_told(text: str, position: int) -> None:
    with pytest.raises(PatternError, match="is not defined") as caught:
        ebnf(text)
    assert caught.value.position == position


def test_a_long_body_is_read_within_the_time_of_the_budget() -> None:
    text = "root ::= " + " | ".join(f'("a{k}" "b")*' for k in range(20_000))
    with pytest.raises(BudgetExceeded, match="seconds"):
        gbnf(text, Budget(seconds=0.01))


@pytest.mark.parametrize("front_end", [gbnf, ebnf])
def test_a_rule_in_brackets_is_a_class_and_a_warning(front_end: object) -> None:
    text = 'root ::= "x"\n  [sign] [0-9]+\nsign ::= "+" | "-"'
    with pytest.warns(
        PatternWarning, match=r"^\[sign\] in line 2 is .* s, i, g, n; for .* write sign\?"
    ) as caught:
        made = front_end(text)  # type: ignore[operator]
    assert [each.filename for each in caught] == [__file__]
    assert made.accepts("xn1") and not made.accepts("x+1") and not made.accepts("x1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in (
            'root ::= [a] a\na ::= "b"',
            'root ::= sign? [sing^]\nsign ::= "[sign]"',
            "root ::= [^root]",
        ):
            front_end(other)  # type: ignore[operator]


@pytest.mark.parametrize("front_end", [gbnf, ebnf])
def test_a_string_in_brackets_is_a_class_and_a_warning(front_end: object) -> None:
    with pytest.warns(PatternWarning, match=r"for a string that may be left out, write \(\"a\" \| \"b\"\)\?"):
        made = front_end('root ::= [ "a" | "b" ]')  # type: ignore[operator]
    assert made.accepts("|") and not made.accepts("")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for other in (
            'root ::= ["]',
            "root ::= [^\"']",
            'root ::= [""]',
            'root ::= ["a]',
            'root ::= "[\\"a\\"]"',
        ):
            front_end(other)  # type: ignore[operator]


@pytest.mark.parametrize("front_end", [gbnf, ebnf])
def test_comments_that_are_no_characters_of_the_w3c(front_end: object) -> None:
    for comment in ("# x41", "#x", "#xyz", "#x4g", "#", "# [#x20-#x7E]"):
        made = front_end(f'root ::= "a" {comment}\n  "b" {comment}')  # type: ignore[operator]
        assert made.accepts("ab"), comment
