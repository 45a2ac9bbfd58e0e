"""Broken grammar texts: mutations of right ones end in a grammar or in one of our errors, and nothing else."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.bundled import bundled_grammar, bundled_grammars
from tokenfst.automata.notations.ebnf import ebnf
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.budget import Budget
from tokenfst.errors import PatternError, TokenfstError

BNF = r"""
# JSON, more or less
root ::= ws (object | "[" (root ("," root)*)? "]" | string | [0-9]{1,20}) ws
object ::= "{" (string ":" root ("," string ":" root)*)? "}"
string ::= "\"" ([^"\\\x00-\x1f] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\""
ws ::= [ \t\n]*
"""
LARK = r"""
%import common.ESCAPED_STRING -> STRING
%import common (INT, WS)
?start: list{value, ","} -> all
!list{x, s}: "[" [x (s x)*] "]" | "none"i
value.2: STRING | INT~1..3 | "a".."f" | start | NAME  // comment
NAME.1: /(?!no\b)[a-z]+/i _END?
_END: "!" | /\?+/
%ignore WS
%extend value: "{" "}"
"""
SIGNS = [
    *"\"'()[]{}<>|*+?.~:=%/\\\n\t ,-_#!aA0é",
    "\ud800",
    "\0",
    "\\x",
    "\\u12",
    "(?",
    "::=",
    "%ignore",
    "..",
    "->",
    "~2..",
    "{2,",
]


def mutated(rng: random.Random, text: str) -> str:
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(text) + 1)
        kind = rng.randrange(4)
        if kind == 0:
            text = text[:at] + rng.choice(SIGNS) + text[at:]
        elif kind == 1:
            text = text[:at] + text[at + rng.randint(1, 3) :]
        elif kind == 2:
            text = text[:at] + rng.choice(SIGNS) + text[at + 1 :]
        else:
            begin = rng.randrange(len(text) + 1)
            text = text[:at] + text[begin : begin + rng.randint(1, 30)] + text[at:]
    return text


def check(front_end: Callable[..., Grammar], seed_text: str, seed: int) -> bool:
    text = mutated(random.Random(seed), seed_text)
    try:
        grammar = front_end(text, budget=Budget(seconds=5, states=10_000))
        grammar.lint()
        grammar.truncate(1).accepts("[1]")
    except PatternError as error:
        assert 0 <= error.position <= len(text), text
        assert f"line {text.count(chr(10), 0, error.position) + 1}, column " in str(error), text
        return False
    except TokenfstError:
        return False
    return True


@pytest.mark.parametrize(("front_end", "text"), [(gbnf, BNF), (ebnf, BNF), (lark_grammar, LARK)])
def test_mutations(front_end: Callable[..., Grammar], text: str) -> None:
    front_end(text)
    found = [check(front_end, text, seed) for seed in range(1500)]
    assert any(found) and not all(found)


@pytest.mark.soak
@pytest.mark.parametrize("name", bundled_grammars())
def test_mutations_of_bundled_grammars(name: str) -> None:
    for seed in range(300):
        check(lark_grammar, bundled_grammar(name).text, seed)
