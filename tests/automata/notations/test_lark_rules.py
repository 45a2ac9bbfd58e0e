"""Bodies of rules in Lark's notation as the core writes them, against the fold in Python: the same nodes."""

from __future__ import annotations

import random
import warnings

import pytest

from reference.grammars.lark_rules import slow_rule_body
from reference.grammars.random_lark import random_lark
from tests.support.worlds.same_grammars import assert_same, assert_same_grammars
from tokenfst import Budget, BudgetExceeded, bundled_grammar, bundled_grammars
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations import lark_bodies, lark_syntax
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.errors import EmptyLanguageError, PatternError, PatternWarning

PARAMETERS = """start: list::0 @inner %json {"type": "null"} <[5]> ("a".."c")~2..3
list::_: "x" list::incr([0:2]) %if lt([0:2], 3) | "y" ["z"] -> end
pair{x, y}: x (y | [x])* "!"?
both: pair{"a", B} | pair{pair{B, "c"i}, both}
B: "b"+"""


def read(text: str) -> Grammar | str:
    """The grammar, or the message of why there is none."""
    try:
        return lark_grammar(text, grammars={"inner": bundled_grammar("arithmetic")})
    except (PatternError, EmptyLanguageError) as error:
        return str(error)


@pytest.mark.parametrize(
    "texts",
    [
        pytest.param([bundled_grammar(name).text for name in bundled_grammars()], id="bundled"),
        pytest.param([PARAMETERS, "start: a b", 'start: "a" & "b"', "start: t{r}\nt{x}: x\nr: x"], id="rare"),
        *(
            pytest.param(
                [random_lark(random.Random(seed))[0] for seed in range(at, at + 60)], id=f"random {at}"
            )
            for at in (0, 60, 120)
        ),
    ],
)
def test_rules_are_those_of_the_fold(texts: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    made = [read(text) for text in texts]
    monkeypatch.setattr(lark_syntax, "rule_body", slow_rule_body)
    assert assert_same_grammars(made, map(read, texts)) >= len(texts) / 4


def test_a_long_body_is_read_within_the_time_of_the_budget() -> None:
    text = "start: " + " | ".join(f'("a{k}" "b")*' for k in range(20_000))
    with pytest.raises(BudgetExceeded, match="seconds"):
        lark_grammar(text, budget=Budget(seconds=0.01))


WORDS = """start: A B C D E F
A: "if" | "in" | "(" | "[a-z]" | "\\n" | "=="
B: "b"
C: "x"i | "yy"
D: "é" | "e"
E: "a" "b" | "c"
F: "aa" | "b" |
%extend B: "longer" | "c"
"""


def test_terminals_of_strings_are_those_of_the_fold(monkeypatch: pytest.MonkeyPatch) -> None:
    """Strings alone, without reading them one by one: the same alternatives in the same order."""
    rng = random.Random(4)
    texts = [WORDS.replace("%extend B", "%extend B" if k else "G") for k in range(2)]
    for _ in range(200):
        words = ["".join(rng.choice("ab.|*~ -]^#") for _ in range(rng.randint(1, 4))) for _ in range(5)]
        texts.append(
            f"start: A B\nA: {' | '.join(f'{chr(34)}{word}{chr(34)}' for word in words)}\nB: A | /q+/"
        )
    made = [read(text) for text in texts]
    asked = []
    monkeypatch.setattr(lark_bodies, "words_of", lambda tree: asked.append(tree))
    for one, other in zip(made, map(read, texts), strict=True):
        assert not isinstance(one, str) and not isinstance(other, str)
        assert one.rules.keys() == other.rules.keys()
        for name, body in one.rules.items():
            assert_same(body, other.rules[name])
    assert len(asked) > 400


@pytest.mark.parametrize(
    ("text", "column"),
    [
        ('start: /a(?!b)/ "b"', 8),
        (r'start: "x" /if\b/', 12),
        ('start: T\nT: "c" | /a(?=b)/', 1),
        ("start: /(?<!x)a/", 8),
        ("start: /a(?!b)c*/", 8),
        ("start: a\na[lazy]: /x+(?!y)/", 1),
        ('start: %lark { start: /a(?!b)/ "b" }', 23),
    ],
)
def test_a_terminal_that_asks_about_the_text_around_it_is_a_warning(text: str, column: int) -> None:
    with pytest.warns(
        PatternWarning, match=rf"column {column}: this terminal .* sees only its own text"
    ) as caught:
        lark_grammar(text)
    assert [each.filename for each in caught] == [__file__]


@pytest.mark.parametrize(
    "text",
    [
        'start: T\nT: /a(?!b)/ "c"',
        r"start: /(?!(if|in)\b)[a-z]+/",
        'start: /"(?:(?!").)*"/',
        "start: /a(?<!x)/",
        "start: /(a(?=b)|b)*/",
        "start: /^a$/",
        "%import python.DEC_NUMBER\nstart: DEC_NUMBER",
        '%import common.ESCAPED_STRING\n%import common.ESCAPED_STRING\nstart: ESCAPED_STRING "(?!"',
    ],
)
def test_a_terminal_that_asks_about_its_own_text_is_none(text: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lark_grammar(text)
