"""What llama.cpp, xgrammar and llguidance write: read as they read it, or refused by name with what to write instead.

The answers about xgrammar are those of version 0.2.8 (``Grammar.from_ebnf``), but where a comment says otherwise.
"""

from __future__ import annotations

import itertools

import pytest

from tokenfst import Vocabulary, compile, ebnf, gbnf, lark_grammar, regex
from tokenfst.errors import (
    ConstraintError,
    PatternError,
    PatternSyntaxError,
    TokenIdError,
    UnsupportedPatternError,
    VocabularyMismatchError,
)

WORLD = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), b"ab", b"", b"", b""],
    259,
    {"<think>": 257, "</think>": 258},
)
THINK, STOP, EOS = 257, 258, 259


@pytest.mark.parametrize(
    ("text", "words", "others"),
    [
        (r'root ::= "\x41BC"', ["\u41bc"], ["ABC"]),  # as many hexadecimal digits as there are
        (r'root ::= "\x1F600"', ["😀"], ["\x1f600"]),
        (r"root ::= [\x41-\x43]", ["B"], ["D"]),
        ("root ::= [^]", ["a", "\n", "é"], ["", "ab"]),
        ('root ::= "a"{2,-1}', ["aa", "aaaa"], ["a"]),
        ('root ::= "a"{2,}', ["aa", "aaaa"], ["a"]),
        ('root ::= "a"{0}', [""], ["a"]),
        (r"root ::= [a\-z]", ["-", "z"], ["b"]),
        (r"root ::= [\$\.\*\+\(\)\{\}\|]", ["$", "|", "("], ["\\"]),
        (r"root ::= [^\n]+", ["abc"], ["a\nb"]),
        ('root ::= "a" # comment "\n | "b"', ["a", "b"], []),
        ("root ::= ()", [""], ["a"]),
        ('root ::= Regex("[0-9]+") "z"', ["12z"], ["z"]),
        (r'root ::= Regex("\\S+", json_string=true)', ["abc", "é"], ['a"b', "a\\b", "a b", "a\x1fb"]),
        (r'root ::= Regex("\\S+", json_string=false)', ["abc", 'a"b'], ["a b"]),
        ('root ::= Regex("[a-d].", flags="i")', ["Cx", "ab"], ["ex", "a\n"]),
        ('root ::= Regex("a|b.", flags="sui")', ["A", "b\n"], ["a\n"]),
        ('root ::= Regex("a.", flags="")', ["ab"], ["a\n", "Ab"]),
        (r'root ::= Regex(".+", flags="i", json_string=true)', ["ab"], ['a"b', "a\nb"]),
        ('root ::= Substring("abc", "de", "fg")', ["", "abc", "defg", "abcdefg"], ["ab", "cde", "abcfg"]),
        ('root ::= "x" Substring("a", "", "b", "a") "y"', ["xy", "xaby", "xbay"], ["xaay", "xabbay"]),
        ("root ::= Substring()", [""], ["a"]),
        ('root ::= r "z"\nr[lazy] ::= [a-y]* ">"', ["ab>z", ">z"], ["a>b>z"]),
        ("root[max_chars=2] ::= [aé]*", ["", "éé", "a"], ["aaa"]),
        ('root ::= TagDispatch(("t", a), ("t", b))\na ::= "x"\nb ::= "y"', ["tx", "ty", "txqty"], ["tz"]),
        ("root ::= TagDispatch()", ["abc", ""], []),
        (
            'root ::= TagDispatch(("t1", a), ("t2", b))\na ::= "x"\nb ::= "y"',
            ["t1x", "qt2yz", "t", "t1xt2y", ""],
            ["t1y", "t1", "xt1z"],
        ),
        ('root ::= TagDispatch(("t", a), loop_after_dispatch=false)\na ::= "x"', ["tx", "z", "ztx"], ["txz"]),
        ('root ::= TagDispatch(("t", a), excludes=("bad"))\na ::= "x"', ["tx", "ba", "txba"], ["bad", "txbad"]),
        ('root ::= TagDispatch(("t", a), excludes=("bad", "c",))\na ::= "x"', ["ba"], ["c"]),
        (
            'root ::= "a" TagDispatch(("t", b), loop_after_dispatch=false) "z"\nb ::= "b"',
            ["atbz", "aqz", "az"],
            ["atz"],
        ),
        ('root ::= TagDispatch(("t", body))\nbody ::= "(" body ")" | "."', ["t((.))", "at.b"], ["t((.)"]),
    ],
)  # fmt: skip
def test_ebnf_as_xgrammar_reads_it(text: str, words: list[str], others: list[str]) -> None:
    grammar = ebnf(text)
    assert [word for word in words if not grammar.accepts(word)] == []
    assert [word for word in others if grammar.accepts(word)] == []


def test_rules_with_captures() -> None:
    grammar = ebnf('root ::= "<" word ">" other\nword[capture] ::= [a-z]+\nother[capture="o"] ::= "!"')
    found = grammar.captures("<ab>!")
    assert [(name, each.text) for name, many in found.items() for each in many] == [
        ("word", "ab"),
        ("o", "!"),
    ]
    with pytest.raises(UnsupportedPatternError, match="this notation has no options"):
        gbnf('root[capture] ::= "a"')


def test_dispatch_by_its_definition() -> None:
    grammar = ebnf('root ::= TagDispatch(("ab", x), excludes=("bb",))\nx ::= "a" | ""')
    for text in map("".join, itertools.chain(*(itertools.product("ab", repeat=n) for n in range(7)))):

        def follows(rest: str) -> bool:
            place = rest.find("ab")
            if place < 0:
                return "bb" not in rest
            if "bb" in rest[: place + 2]:
                return False
            onward = rest[place + 2 :]
            return follows(onward) or (onward.startswith("a") and follows(onward[1:]))

        assert grammar.accepts(text) == follows(text), text


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ('root ::= a\na[temperature=-1] ::= "x"', PatternSyntaxError, "not negative"),
        ('root ::= a\na[lazy, lazy] ::= "x"', PatternSyntaxError, "given twice"),
        ('root ::= a\na[lazy=1] ::= "x"', PatternSyntaxError, "takes no value"),
        ('root ::= a\na[max_chars=x] ::= "x"', PatternSyntaxError, "a number of characters"),
        ('root ::= a\na[capture=x] ::= "x"', PatternSyntaxError, "in quotation marks"),
        ('root ::= a\na[;] ::= "x"', PatternSyntaxError, "NAME=VALUE"),
        ('root ::= a\na[lazy] ::= "x" b\nb ::= "y"', UnsupportedPatternError, "call no other"),
        ("root ::= Substring(5)", PatternSyntaxError, "needs strings"),
        ('root ::= Regex("a", flags="m")', PatternSyntaxError, "unknown flag 'm'; expected i, s or u"),
        ('root ::= Regex("a", flags=true)', PatternSyntaxError, "flags must be a string"),
        ('root ::= Regex("a)|(b")', PatternSyntaxError, "closes nothing"),
        ('root ::= Regex("a", json_string=5)', PatternSyntaxError, "true or false"),
        ('root ::= TagDispatch(("t", a), stop_eos=true)\na ::= "x"', PatternSyntaxError, "older notation"),
        ('root ::= TagDispatch(("t", a), stop_str=("x"))\na ::= "x"', PatternSyntaxError, "write what ends"),
        ('root ::= TagDispatch(("t", a), other=true)\na ::= "x"', PatternSyntaxError, "loop_after_dispatch, excl"),
        ('root ::= TagDispatch(("t", a), ("tu", a))\na ::= "x"', PatternSyntaxError, "contains the tag 't'"),
        ('root ::= TagDispatch(("tx", a), excludes=("t",))\na ::= "x"', PatternSyntaxError, "the excluded text 't'"),
        ('root ::= TagDispatch(("", a))\na ::= "x"', PatternSyntaxError, "a tag must not be empty"),
        ('root ::= TagDispatch(("t", b))\na ::= "x"', PatternSyntaxError, "the rule 'b' is not defined"),
        ('root ::= TagDispatch("t")', PatternSyntaxError, "needs pairs"),
        ("root ::= Token()", PatternSyntaxError, "at least one token id"),
        ('root ::= Token("a")', PatternSyntaxError, "needs token ids"),
        ("root ::= Regex(5)", PatternSyntaxError, "one pattern"),
        ('root ::= Regex("(a")', PatternSyntaxError, "line 1"),
        ('root ::= TokenTagDispatch((5, a), excludes=(5,))\na ::= "x"', PatternSyntaxError, "is a trigger twice"),
        (r"root ::= [\d]", PatternSyntaxError, "escape"),
        ('root ::= "a"{,3}', PatternSyntaxError, "{m,n}"),
    ],
)  # fmt: skip
def test_refused_by_name(text: str, error: type[PatternError], match: str) -> None:
    with pytest.raises(error, match=match):
        ebnf(text)


def accepts(constraint: object, tokens: list[int]) -> bool:
    matcher = compile(constraint, WORLD).matcher()  # type: ignore[call-overload]
    return bool(matcher.accept_tokens([*tokens, EOS]))


A, B = ord("a"), ord("b")


@pytest.mark.parametrize(
    ("constraint", "sequences", "others"),
    [
        (ebnf("root ::= Token(97, 98) [a-z]"), [[A, A], [B, A]], [[ord("c"), A], [256]]),
        (ebnf("root ::= ExcludeToken(97)"), [[B], [THINK], [256]], [[A], []]),
        (
            ebnf('root ::= TokenTagDispatch((257, x), excludes=(98,))\nx ::= "x"'),
            [[], [A, A], [A, THINK, ord("x"), STOP]],
            [[B], [THINK, A], [THINK]],
        ),
        (
            ebnf('root ::= TokenTagDispatch((257, x), loop_after_dispatch=false)\nx ::= "x"'),
            [[A], [A, THINK, ord("x")]],
            [[THINK, ord("x"), A]],
        ),
        (gbnf("root ::= <think> [a-z]* </think>"), [[THINK, A, STOP], [THINK, 256, STOP]], [[A], [THINK, STOP, A]]),
        (gbnf("root ::= <[257]> !</think>* <[258]> .*"), [[THINK, A, THINK, STOP, A]], [[THINK, STOP, STOP]]),
        (gbnf("root ::= !<[97]>"), [[B], [THINK]], [[A]]),
        (lark_grammar("start: <[257]> /[a-z]+/ <[257-258]>"), [[THINK, A, STOP], [THINK, A, THINK]], [[STOP, A, STOP]]),
        (lark_grammar("start: <[^97,257-258]>"), [[B], [256]], [[A], [THINK]]),
        (lark_grammar("start: <[*]> <[98]>"), [[A, B], [THINK, B]], [[B, A]]),
    ],
)  # fmt: skip
def test_tokens_by_their_ids(constraint: object, sequences: list[list[int]], others: list[list[int]]) -> None:
    assert [each for each in sequences if not accepts(constraint, each)] == []
    assert [each for each in others if accepts(constraint, each)] == []


def test_ids_that_are_not_there() -> None:
    with pytest.raises(TokenIdError, match="999"):
        compile(ebnf("root ::= Token(999)"), WORLD)
    with pytest.raises(ConstraintError, match="end token"):
        compile(ebnf(f"root ::= Token({EOS})"), WORLD)
    with pytest.raises(VocabularyMismatchError, match="no special token '<other>'"):
        compile(gbnf("root ::= <other>"), WORLD)


def test_gbnf() -> None:
    chess = gbnf(r"""
        # a game of chess
        root ::= (
            "1. " move " " move "\n"
            ([1-9] [0-9]? ". " move " " move "\n")+  # more moves
        )
        move ::= (pawn | nonpawn | castle) [+#]?
        nonpawn ::= [NBKQR] [a-h]? [1-8]? "x"? [a-h] [1-8]
        pawn ::= ([a-h] "x")? [a-h] [1-8] ("=" [NBKQR])?
        castle ::= "O-O" "-O"?
    """)
    assert chess.accepts("1. e4 e5\n2. Nf3 Nc6\n") and not chess.accepts("1. e4 e5\n")
    names = gbnf('check-mate ::= dataType rule_123 UPPER-CASE\ndataType ::= "a"{2,}\nrule_123 ::= [^\\n]\n'
                 'UPPER-CASE ::= [a\\-z]{0,2}', start="check-mate")  # fmt: skip
    assert names.accepts("aa!-z") and not names.accepts("a!-") and not names.accepts("aa\n")
    with pytest.raises(PatternSyntaxError, match="the start rule 'root' is not defined"):
        gbnf('start ::= "a"')


def test_lark_as_llguidance_writes_it() -> None:
    calls = lark_grammar(r"""
        %llguidance { "no_forcing": true }
        start: ( f_foo | f_bar )* f_end
        f_end: TEXT
        TEXT: /(.|\n)*/
        f_foo_hd[lazy]: TEXT "<function"
        f_foo: f_foo_hd "=foo>" %json { "type": "object" } "</function>"
        f_bar_hd[lazy]: TEXT "<function"
        f_bar[capture="call"]: f_bar_hd "=bar>" /[0-9]+/ "</function>"
    """)
    text = 'see <function=foo>{"a": 1}</function> and\n<function=bar>12</function> done'
    assert calls.accepts(text) and calls.accepts("<function=bar>x</function>")  # TEXT may hold that, too
    assert calls.captures(text)["call"][0].text == " and\n<function=bar>12</function>"
    dashes = lark_grammar('start: my-rule{2} my-rule\nmy-rule: "a"{,2} A-B?\nA-B: "b"{1,}')
    assert dashes.accepts("abbaab") and not dashes.accepts("bbc")
    templates = lark_grammar('start: two{"x"}{2}\ntwo{a}: a~2')
    assert templates.accepts("xxxx") and not templates.accepts("xx")
    nested = lark_grammar(
        "start: @a | @b", grammars={"a": regex("a+"), "b": gbnf('root ::= "(" root ")" | "b"')}
    )
    assert nested.accepts("aa") and nested.accepts("((b))") and not nested.accepts("(a)")


@pytest.mark.parametrize(
    ("text", "error", "match"),
    [
        ("start[color=5]: /a/", PatternSyntaxError, "expected one of capture, lazy, suffix, stop, stop_capture"),
        ("start[capture, capture]: /a/", PatternSyntaxError, "twice"),
        ("start[capture=5]: /a/", PatternSyntaxError, "quotation marks"),
        ("start[lazy=5]: /a/", PatternSyntaxError, "no value"),
        ('start[stop_capture="x"]: /a/', PatternSyntaxError, "needs a 'suffix'"),
        ('start[suffix=""]: /a/', PatternSyntaxError, "the suffix is empty"),
        ("start[lazy]: a\na: /x/", UnsupportedPatternError, "capital"),
        ("start: @other", PatternSyntaxError, "nothing is given"),
        ('%llguidance {"lazy": true}\nstart: "a"', UnsupportedPatternError, "the option 'lazy'"),
        ('start: "a"{3,2}', PatternSyntaxError, "in the wrong order or too large"),
    ],
)  # fmt: skip
def test_what_llguidance_has_beyond(text: str, error: type[PatternError], match: str) -> None:
    with pytest.raises(error, match=match) as caught:
        lark_grammar(text)
    assert "line 1" in str(caught.value) or "line 2" in str(caught.value)
    with pytest.raises(TypeError, match="grammars"):
        lark_grammar("start: @a", grammars={"a": "x"})  # type: ignore[dict-item]


def test_regex_objects() -> None:
    grammar = lark_grammar('start: a " " B\na: %regex {"substring_words": "foo bar. baz"}\n'
                           'B: %regex {"substring_chars": "a|c"}')  # fmt: skip
    assert grammar.accepts("bar. |c") and not grammar.accepts("ba |c") and not grammar.accepts("bar. b")
    chunks = lark_grammar('start: %regex {"substring_chunks": ["abc", "de", "fg"]}')
    inside = lark_grammar(
        'start: A\nA: "<" %regex {"substring_words": "foo bar"} %regex {"substring_chunks": ["a", "", "b"]}'
    )
    assert inside.accepts("<foo b") and not inside.accepts("<fo b")
    words = ["", "abc", "de", "fg", "abcde", "defg", "abcdefg"]
    assert all(map(chunks.accepts, words)) and not any(map(chunks.accepts, ["ab", "cde", "abcfg", "deabc"]))
