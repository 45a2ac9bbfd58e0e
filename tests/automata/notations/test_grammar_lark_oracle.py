"""Lark's notation against lark: its Earley parser with the dynamic_complete lexer, on all short texts."""

from __future__ import annotations

import itertools
import random

import lark
import pytest

from reference.grammars import grammars as slow
from reference.grammars.random_lark import random_lark
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.errors import EmptyLanguageError, PatternError

GRAMMARS = {
    "left recursion": 'start: start "+" a | a\na: "a" | "(" start ")"',
    "ignored": 'start: a+\na: "a" | "(" start ")"\n%ignore " "',
    "ignored twice, named": 'start: [A] "b"\nA: "a"+\nB: " " | "_"\n%ignore B\n%ignore "+"',
    "start called again, ignored": 'start: "a" | "(" start ")"\n%ignore " "',
    "empty start, ignored": 'start: "a"*\n%ignore " "',
    "operators": 'start: "a"? "b"~2 ["(" | ")"] "a"~0..2',
    "template": 'start: sep{a, "+"}\nsep{x, s}: x (s x)*\na: "a" | "(" sep{"b", "_"} ")"',
    "priorities and shapes": '?start: a -> x | B\n!a.3: "a" B\nB.2: "b"',
    "flags": 'start: "a"i /b/i A\nA: "B"i',
    "range": 'start: ("a".."b")+ "("',
    "terminal operators": 'start: A "b"\nA: ("a" | "b")~1..2 ["+"] B?\nB: /_/',
    "lazy": 'start: S "a"*\nS: /\\(.*?\\)/',
    "lazy, by parts": 'start: S+\nS: "(" /.*?/ /(?<!_)(__)*?/ ")"',
    "lazy beside greedy": 'start: (S | "b")+\nS: "(" /.*?/ ")" | /a+/',
    "look-ahead inside": 'start: N ["+"]\nN: /(?!ab\\b)[ab]+/',
    "override and extend": 'start: a B\na: "a"\n%override a: "b"\n%extend a: "(" a ")"\nB: "_"\n%extend B: "+"',
    "comment, continuation": 'start: "a" // no\n  | "b" # neither\n  // nor\n  | "+" \\\n "a"',
    "cycle": 'start: a\na: b | "a"\nb: a | "b" a',
    "empty alternative": 'start: a a a\na: "a" | ',
}
IMPORTS = "%import common.CNAME -> NAME\n%import common (INT, WS_INLINE)\n"
GRAMMARS["imports"] = f'start: NAME "+" INT\n{IMPORTS}%ignore WS_INLINE'
GRAMMARS |= {
    "override of an import": "%import common (INT, SIGNED_INT)\n%override INT: /b/\nstart: SIGNED_INT | INT",
    "extension of an import": '%import common (LETTER, WORD)\n%extend LETTER: "1"\nstart: WORD "+" LETTER',
    "comment up to the end of its line": 'start: "a" "b"\n%ignore /#[^\\n]*/',
    "comment before what may follow it": 'start: ("a" [/\\n/])*\n%ignore / /\n%ignore /#[^\\n]*/',
    "comment of common": '%import common.SH_COMMENT\nstart: "a"\n%ignore SH_COMMENT',
    "blanks that are not only ignored": 'start: a (/ +/ a)*\na: "a" | "b"\n%ignore / +/',
    "blank of one kind where all are ignored": 'start: "a" "_" "b"\n%ignore /[_ ]+/',
    "ignored, preferred and not the longest": 'start: "a" "b"\n%ignore /#|#b/',
    "ignored pieces that go on": 'start: "a" "#"? "b"\n%ignore /(_? )+/\n%ignore "_"',
    "alternatives that hide others": "start: /a|ab/ /b|ba/",
    "longer strings first": 'start: A\nA: "a" | "ab" | /ba?/ | /b|bab/',
    "repetitions that hide words": "start: A /b?ab?/\nA: /a(a?)(ab)?/ | /b/",
}
ALPHABETS = {"imports": "a1+ _", "empty start, ignored": "a b", "flags": "aAbB"}
ALPHABETS |= {"override of an import": "1+-b", "extension of an import": "a1+"}
ALPHABETS |= dict.fromkeys(("comment up to the end of its line", "comment of common"), "ab#\n")
ALPHABETS |= {"comment before what may follow it": "a# \n", "ignored, preferred and not the longest": "ab#"}
ALPHABETS |= {"blank of one kind where all are ignored": "ab_ ", "ignored pieces that go on": "ab#_ "}


def oracle(text: str) -> lark.Lark:
    return lark.Lark(text, parser="earley", lexer="dynamic_complete", ambiguity="resolve")


def parses(parser: lark.Lark, word: str) -> bool:
    try:
        parser.parse(word)
    except lark.exceptions.LarkError:
        return False
    except RuntimeError as error:  # a fault of lark's, after the place where it has accepted
        assert "multiple start symbol items" in str(error)
    return True


@pytest.mark.parametrize("name", GRAMMARS)
def test_against_lark(name: str) -> None:
    text = GRAMMARS[name]
    grammar = lark_grammar(text)
    language = grammar.truncate(5)
    parser = oracle(text)
    letters = ALPHABETS.get(name, "".join(sorted({c for c in "ab()+_ " if c in text or c in "ab"})))
    length = 4 if len(letters) > 4 else 5
    seen = set()
    for n in range(length + 1):
        for word in map("".join, itertools.product(letters, repeat=n)):
            expected = parses(parser, word)
            seen.add(expected)
            assert language.accepts(word) == expected, word
            if n < 3:
                assert slow.accepts(grammar.rules, grammar.start, word.encode()) == expected, word
    assert seen == {True, False}


def random_text(rng: random.Random) -> str:
    def part(depth: int) -> str:
        if depth == 0:
            return rng.choice(['"a"', '"b"', '"ab"', "s", "t", "A", "B"])
        inner = [part(depth - 1) for _ in range(2)]
        return rng.choice(
            ["{0} {1}", "{0} {1}", "({0} | {1})", "({0})*", "({0})?", "[{0}]", "({0})~1..2"]
        ).format(*inner)

    lines = [
        f"s: {part(2)} | {part(1)}",
        f"t: {part(2)} | {rng.choice(['A', 'B'])}",
        'A: "a"+',
        'B: "b" | "ba"',
    ]
    return "start: s\n" + "\n".join(lines) + rng.choice(["", '\n%ignore " "'])


@pytest.mark.parametrize("seed", range(40))
def test_random_grammars_against_lark(seed: int) -> None:
    rng = random.Random(seed)
    text = random_text(rng)
    try:
        parser = oracle(text)
    except lark.exceptions.GrammarError:  # lark refuses some, such as alternatives that are equal
        return
    try:
        grammar = lark_grammar(text)
    except ValueError as error:
        assert "has no word" in str(error)
        assert not any(parses(parser, word) for word in ("", "a", "b", "ab", "ba"))
        return
    languages = [grammar.truncate(depth) for depth in (1, 6)]
    for n in range(5):
        for word in map("".join, itertools.product("ab " if "ignore" in text else "ab", repeat=n)):
            expected = parses(parser, word)
            assert languages[1].accepts(word) == expected, (text, word)
            assert not languages[0].accepts(word) or expected, (text, word)


def compare_with_lark(seed: int) -> bool:
    """Whether a random grammar was compared; lark or we may refuse it."""
    text, letters = random_lark(random.Random(seed))
    try:
        parser = oracle(text)
    except (lark.exceptions.GrammarError, lark.exceptions.ConfigurationError):
        return False
    words = ["".join(word) for n in range(5) for word in itertools.product(letters, repeat=n)]
    try:
        grammar = lark_grammar(text)
    except EmptyLanguageError:
        assert not any(parses(parser, word) for word in words), text
        return True
    except PatternError:
        return False
    language = grammar.truncate(5)
    for word in words:
        assert language.accepts(word) == parses(parser, word), (text, word)
    return True


def test_random_notation_against_lark() -> None:
    assert sum(map(compare_with_lark, range(60))) > 40


@pytest.mark.soak
@pytest.mark.parametrize("part", range(40))
def test_random_notation_against_lark_at_length(part: int) -> None:
    assert sum(map(compare_with_lark, range(1_000 + 50 * part, 1_050 + 50 * part))) > 25
