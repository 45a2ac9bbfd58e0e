"""Rules with a parameter, and what else llguidance's documentation writes in Lark's notation, beside the predicates
that its pages give in words, on all texts of a small alphabet.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable

import pytest

from tokenfst import lark_grammar, regex
from tokenfst.errors import BudgetExceeded, PatternError, PatternSyntaxError, UnsupportedPatternError

PERMUTATION = """
start    :  perm::0x0
perm::_  :  ""                       %if is_ones([0:3])
         |  "a" perm::set_bit(0)     %if bit_clear(0)
         |  "b" perm::set_bit(1)     %if bit_clear(1)
         |  "c" perm::set_bit(2)     %if bit_clear(2)
"""
AT_LEAST_ONCE = PERMUTATION.replace("%if bit_clear", "// %if bit_clear")
BOUNDED = """
start  : aa::0
aa::_  : "b" aa::incr(_)    %if lt(_, 4)
       | bb::_
bb::_  : "a" bb::incr(_)    %if lt(_, 4)
       | ""
"""
COUNTED = """
start  : lst::0x0
lst::_ : "a" lst::incr([0:3])  %if lt([0:3], 3)
       | "b" lst::incr([3:6])  %if lt([3:6], 2)
       | "c" lst::incr([6:9])  %if le([6:9], 0)
       | ""
"""
SOME = """
start    :  perm::0x0
perm::_  :  ""                       %if bit_count_ge(_, 1)
         |  "a" perm::set_bit(0)     %if and(bit_clear(0), bit_count_lt(_, 2))
         |  "b" perm::set_bit(1)     %if and(bit_clear(1), bit_count_lt(_, 2))
         |  "c" perm::set_bit(2)     %if not(or(bit_set(2), bit_count_ge(_, 2)))
"""
DOWN = """
start: n::0xf3
n::_ : "a" (n::decr([0:2]) %if gt([0:2], 0) | m::bit_and(0xf0) %if is_zeros([0:2])) "b"? %if true
m::_ : "c" %if eq([4:8], 15)
     | x{"z"} %if ne(_, 240)
x{y}: y
"""
WORDS = ["".join(word) for n in range(6) for word in itertools.product("abc", repeat=n)]


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        (PERMUTATION, lambda word: sorted(word) == ["a", "b", "c"]),
        (AT_LEAST_ONCE, lambda word: set(word) == set("abc")),
        (BOUNDED, lambda word: regex("b*a*").accepts(word) and len(word) <= 4),
        (COUNTED, lambda word: (n := Counter(word))["a"] <= 3 and n["b"] <= 2 and n["c"] <= 1),
        (SOME, lambda word: 1 <= len(word) <= 2 and len(set(word)) == len(word)),
        (DOWN, lambda word: regex("aaaacb{0,4}").accepts(word)),
    ],
)
def test_parameters(text: str, holds: Callable[[str], bool]) -> None:
    grammar = lark_grammar(text)
    for word in WORDS:
        assert grammar.accepts(word) == bool(holds(word)), word


@pytest.mark.parametrize(
    ("text", "place", "match"),
    [
        ('start: a::_\na::_: "x"', (1, 9), "but the rule has none"),
        ('start: a\na::_: "x"', (1, 8), "takes a parameter"),
        ('start: a::1\na: "x"', (1, 8), "takes no parameter"),
        ('start: a::1\na::3: "x"', (2, 2), "has ::_ after its name"),
        ('start: a::1\na::_: "x"\n%extend a: "y"', (3, 9), "with different parameters"),
        ('start: a::\na::_: "x"', (1, 11), "expected a function"),
        ('start: a::f(1)\na::_: "x"', (1, 11), "unknown function 'f'"),
        ('start: a::set_bit(1, 2)\na::_: "x"', (1, 11), "takes 1 operands, not 2"),
        ('start: a::1\na::_: "x" %if bit_set(64)', (2, 23), "a bit from 0 to 63"),
        ('start: a::1\na::_: "x" %if set_bit(1)', (2, 15), "expected a condition"),
        ('start: a::1\na::_: "x" %if eq([3:1], 2)', (2, 18), "is not a range of bits"),
        ('start: a::1\na::_: "x" %if eq(1)', (2, 15), "takes 2 operands"),
        ('start: a::0x1ffffffffffffffff\na::_: "x"', (1, 11), "64 bits"),
        ('start: "x" %if bit_set(1)', (1, 12), "but the rule has none"),
        ('start::_: "x"', (1, 1), "must not have parameters"),
        ("start: A\nA: a::1", (2, 5), "cannot have parameters"),
        ('start: A\nA: "x" %if true', (2, 8), "in rules with a parameter"),
        ('start: a::1{"x"}\na::_: "x"', (1, 12), "unexpected"),
    ],
)
def test_refused_parameters(text: str, place: tuple[int, int], match: str) -> None:
    with pytest.raises(PatternSyntaxError, match=match) as caught:
        lark_grammar(text)
    assert str(caught.value).startswith(f"line {place[0]}, column {place[1]}: "), caught.value


def test_parameters_without_end_are_counted() -> None:
    with pytest.raises(BudgetExceeded, match="the rule 'a'"):
        lark_grammar('start: a::0\na::_: "x" a::incr(_)')


def test_and_and_not_of_terminals() -> None:
    lines = lark_grammar("start: LINES\nLINES: /[a-c\\n]*/ & ~/(?s:.*)\\n\\n(?s:.*)/")
    both = lark_grammar('start: A B?\nA: ~/[ab]*/ & /[a-c]{1,3}/ | "bb"\nB: "!" ~"x"+')
    for word in ["".join(word) for n in range(5) for word in itertools.product("ac\n", repeat=n)]:
        assert lines.accepts(word) == ("\n\n" not in word)
    for word in WORDS:
        wanted = word == "bb" or (1 <= len(word) <= 3 and "c" in word)
        assert both.accepts(word) == wanted
        assert not wanted or (
            both.accepts(word + "!y") and both.accepts(word + "!") and both.accepts(word + "!xx")
        )
    assert lark_grammar("start: A\nA: ~/a/").accepts("é") and not lark_grammar("start: A\nA: ~/a/").accepts(
        b"\xff"
    )
    assert lark_grammar('start: A~2..3\nA: "x" ~ 2').accepts("xxxx")
    for text in ('start: "a" & "b"', 'start: ~"a"', "start: A & B\nA: /a/\nB: /b/"):
        with pytest.raises(UnsupportedPatternError, match="stands in terminals, not in rules"):
            lark_grammar(text)


def test_groups_of_patterns_and_texts() -> None:
    assert [word for word in WORDS if regex("(?P<ALL_OF>a*b|[ab]{2}|.b)").accepts(word)] == ["ab"]
    none = regex("(?P<NONE_OF>a+|[bc]*)")
    assert [word for word in WORDS if not none.accepts(word)] == [
        word for word in WORDS if regex("a+|[bc]*").accepts(word)
    ]
    chunks = regex("<(?P<CHUNKS_OF>ab|c|\\.)>")
    assert [
        word for word in ("", "ab", "abc", "c.", "abc.", "a", "b", "ab.") if not chunks.accepts(f"<{word}>")
    ] == [
        "a",
        "b",
        "ab.",
    ]
    words = regex("(?P<WORDS_OF>foo\\ bar)")
    assert words.accepts("foo ") and words.accepts("bar") and not words.accepts("ba")
    for pattern in (
        "(?P<ALL_OF>)",
        "(?P<NONE_OF>)",
        "(?P<CHUNKS_OF>)",
        "(?P<CHUNKS_OF>a+)",
        "(?P<WORDS_OF>a.)",
    ):
        with pytest.raises(PatternError, match="takes"):
            regex(pattern)


def test_ignored_once_and_empty_strings() -> None:
    once = lark_grammar('%llguidance { "skip_repetition": "once" }\n%ignore /[ \\t]{1,3}/\nstart: "A" "!"')
    assert once.accepts("A!") and once.accepts(" A \t!") and not once.accepts("A    !")
    with pytest.raises(PatternSyntaxError, match="'once' or 'repeat'"):
        lark_grammar('%llguidance {"skip_repetition": 1}\nstart: "a"')
    empty = lark_grammar('start: "<" ("" | A) ">"\nA: "a" | ""\n%ignore " "')
    assert empty.accepts("<>") and empty.accepts("< >") and empty.accepts("<a>") and not empty.accepts("<aa>")


@pytest.mark.parametrize("ignored", ["%ignore", "%ignore ()", "%ignore |"])
def test_ignoring_nothing_is_refused(ignored: str) -> None:
    with pytest.raises(PatternSyntaxError, match="line 2, column 1: %ignore names nothing"):
        lark_grammar(f'start: "a"\n{ignored}')
