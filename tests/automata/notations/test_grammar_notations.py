"""GBNF, EBNF and Lark's notation: what each form means, and errors with their exact places."""

from __future__ import annotations

import builtins
import contextlib
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tokenfst import regex
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.ebnf import ebnf
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.automata.notations.parsing import reading as notation
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    MissingDependencyError,
    PatternError,
    PatternSyntaxError,
    TokenfstError,
    UnsupportedPatternError,
)

BNF = {
    'root ::= "a" "b" | "c"': "ab|c",
    'root ::= ("a" | "b")* "c"+ "d"?': "[ab]*c+d?",
    'root ::= "a"{3} "b"{2,} "c"{1,2} "d"{ 0 , 1 }': "a{3}b{2,}c{1,2}d?",
    'root ::= [a-c_] [^a-z"] [-x] [x-] [a-]': r'(?s)[a-c_][^a-z"][-x][x-][a-]',
    r'root ::= "\x41\u00e9\U0001F600\t\n\r\"\\"': 'Aé😀\t\n\r"\\\\',
    r"root ::= [\x41-\x43\u00e9-\u00ff\]\\]": r"[A-Cé-ÿ\]\\]",
    'root ::= "é" [à-ü😀-😂]': "é[à-ü😀-😂]",
    'root ::= a-b # comment "\n a-b ::= (\n "x" # more\n | "y"\n )\n': "x|y",
    'root ::= | "a"': "a?",
    'root ::= "" "a"': "a",
    'root ::=\n  "a"\n  | "b"\n': "a|b",
    'a_1 ::= "x"\nroot ::= a_1 a_1*': "x+",
    'root ::= "a"*?': "a*",
    'root ::= ((("a")))': "a",
    'root ::= "a" root | "b"': "a*b",
    'root::="a"|b b::="c"': "a|c",
}


@pytest.mark.parametrize("front_end", [gbnf, ebnf])
@pytest.mark.parametrize("text", BNF)
def test_what_bnf_means(text: str, front_end: Callable[[str], Grammar]) -> None:
    assert front_end(text).to_language().equivalent(regex(BNF[text]))


def test_what_only_one_notation_has() -> None:
    assert gbnf("root ::= . [^x]").to_language().equivalent(regex("(?s).[^x]"))
    assert gbnf('root ::= "a\nb"').to_language().accepts("a\nb")
    assert gbnf('root ::= 1-a\n1-a ::= "x"').to_language().accepts("x")
    assert ebnf(r"""root ::= 'a"' "'" '\'' [\-\]\^]""").to_language().accepts("a\"''-")
    assert ebnf('a.b ::= "x"', "a.b").to_language().accepts("x")


def test_bodies_stay_as_written() -> None:
    found = gbnf('root ::= item{2,1000}\nitem ::= [a-z]+ ","')
    assert list(found.rules) == ["root", "item"] and dict(found.positions) == {"root": 0, "item": 22}
    assert sum(1 for body in found.rules.values() for _ in body.walk()) < 10
    assert "gbnf('root" in repr(found)


def both(text: str, position: int, message: str) -> list[tuple[Callable[[str], Grammar], str, int, str]]:
    return [(gbnf, text, position, message), (ebnf, text, position, message)]


ERRORS: list[tuple[Callable[[str], Grammar], str, int, str]] = [
    *both('root ::= "a', 9, "this string does not end"),
    *both("root ::= [a", 9, "this character class does not end"),
    *both('root ::= ("a"', 13, "unexpected the end of the grammar; expected "),
    *both('root ::= "a" )', 13, "unexpected ')'"),
    *both("root ::= b", 9, "the rule 'b' is not defined"),
    *both('root ::= "a"\nroot ::= "b"', 13, "the rule 'root' is defined twice, first in line 1"),
    *both('x ::= "a"', 0, "the start rule 'root' is not defined"),
    *both("", 0, "the start rule 'root' is not defined"),
    *both('root ::= "a" "\\q"', 14, "the escape \\q is unknown or incomplete"),
    *both('root ::= "a" "\\xg"', 14, "the escape \\x is unknown or incomplete"),
    (gbnf, 'root ::= "a" "\\x4"', 14, "the escape \\x is unknown or incomplete"),
    *both('root ::= "a"{3,2}', 12, "the repetition {3,2} is not valid"),
    *both('root ::= "a"{99999999999}', 12, "too large"),
    *both('root ::= "a"{,2}', 12, "a repetition is written {m}, {m,} or {m,n}"),
    *both("root = b", 0, "unexpected 'root'; expected a rule (name ::=)"),
    *both("root ::= [z-a]", 10, "the range is in the wrong order"),
    *both("root ::=\n []", 10, "the character class is empty"),
    (gbnf, "root ::=\n [^]", 10, "the character class is empty"),
    *both('root ::= "\\ud800"', 10, "U+D800 is a surrogate"),
    *both('root ::= "\\U00110000"', 10, "0x110000 is not a code point"),
    *both('root ::= (= "a") "b"', 9, "look-ahead"),
    *both("root ::= @", 9, "unexpected '@'"),
    *both("::= x", 0, "unexpected '::='"),
    (gbnf, "root ::= 'a'", 9, "strings are written with double quotes"),
    (ebnf, "root ::= .", 9, "'.' has no meaning here"),
    (ebnf, "root ::= [a#x20]", 11, "#x20 is five characters here"),
    (ebnf, 'root ::= "a\nb"', 9, "this string does not end"),
    (lark_grammar, 'start: "a', 7, "this string does not end in its line"),
    (lark_grammar, "start: /a", 7, "this regular expression does not end"),
    (lark_grammar, "start: (A", 9, "unexpected a line break; expected ')'"),
    (lark_grammar, "start: b", 7, "the rule 'b' is not defined"),
    (lark_grammar, 'start: "a" B', 11, "the terminal 'B' is not defined"),
    (lark_grammar, 'start: "a"\nb{c}: c d -> e', 19, "the rule 'd' is not defined"),
    (lark_grammar, 'start: "a"\nb{c}: b{c}+ b{D}', 25, "the terminal 'D' is not defined"),
    (lark_grammar, 'start: "a"\nb::_ : "c" d %if bit_set(0)', 22, "the rule 'd' is not defined"),
    (lark_grammar, 'start: "a"\nstart: "b"', 11, "'start' is defined twice, first in line 1"),
    (lark_grammar, 'start: A\nA: "a"\nA: "b"', 16, "'A' is defined twice, first in line 2"),
    (lark_grammar, 'x: "a"', 0, "the start rule 'start' is not defined"),
    (lark_grammar, 'start: "\\xq"', 8, "this escape is incomplete"),
    (lark_grammar, 'start: "a"~3..2', 11, "the repetition 3..2 is not valid"),
    (lark_grammar, 'start: "a" )', 11, "unexpected ')'"),
    (lark_grammar, 'start: "a"\n%declare B', 11, "%declare needs a lexer of your own"),
    (lark_grammar, "%import foo.B\nstart: B", 0, "only the grammars that lark ships"),
    (lark_grammar, "%import .foo.B\nstart: B", 0, "only the grammars that lark ships"),
    (lark_grammar, "%import common.B\nstart: B", 0, "the grammar 'common' does not define 'B'"),
    (lark_grammar, "%import common\nstart: B", 0, "%import names a library only"),
    (lark_grammar, "start: /[z-a]/", 9, "bad character range z-a"),
    (lark_grammar, "start: /[z-a]/i", 9, "bad character range z-a"),
    (lark_grammar, "start: A\nA: /(b/", 13, "missing ), unterminated subpattern"),
    (lark_grammar, r"start: /(a)\1/", 11, "a back-reference makes the language irregular"),
    (lark_grammar, "start: /a\nb/", 7, "only with the flag x"),
    (lark_grammar, "start: A\nA: B\nB: A", 17, "the terminal 'A' is defined by itself"),
    (lark_grammar, 'start: A\nA: b\nb: "a"', 12, "'b' is a rule; a terminal can use only terminals"),
    (lark_grammar, 'start: A\nA: "a" -> x', 19, "an alias (->) is allowed in rules only"),
    (lark_grammar, 'start: s{"a"}\ns{x,y}: x', 7, "'s' takes 2 arguments, not 1"),
    (lark_grammar, 'start: "a"\ns{x,x}: x', 15, "the parameter 'x' is listed twice"),
    (lark_grammar, 'start: ""i', 7, "an empty string cannot be a terminal"),
    (lark_grammar, 'start: "b".."a"', 7, "a range needs two single characters"),
    (lark_grammar, "start: /(?<!x)a*?b*/", 7, "a shorter match may hide a longer one"),
    (lark_grammar, "start: /(?<!x)(a|ab)*/", 7, "a shorter match may hide a longer one"),
    (lark_grammar, 'start: "a"i.."z"', 7, "a range cannot have flags"),
    (lark_grammar, 'start: A\nA: "b" | "a".."z"i', 23, "a range cannot have flags"),
    (lark_grammar, 'start: "^".."z"', 7, "lark reads the range"),
    (lark_grammar, 'start: "a"\n%ignore /b(?=c)/', 19, "%ignore must not have look-around"),
    (lark_grammar, 'start: "a" "bd"\n%ignore /c(bc)?/', 24, "a terminal begins with 'b'"),
    (
        lark_grammar,
        "%import common.INT -> A\n%import common.INT -> B\nstart: A",
        24,
        "'INT' is imported twice",
    ),
    (lark_grammar, '%override x: "a"\nstart: "a"', 10, "the rule 'x' is not defined"),
    (lark_grammar, 'start: "a"\n%ignore B', 19, "the terminal 'B' is not defined"),
    (lark_grammar, 'start: "a" @', 11, "unexpected '@'"),
    (lark_grammar, "start: 'a'", 7, "strings are written with double quotes"),
    (lark_grammar, 'start: Expr\nExpr: "a"', 13, "'Expr' mixes cases: rules are in lower case"),
    (lark_grammar, "start: [a-z]+", 8, "a class of characters is a regular expression, /[a-z]/"),
    (lark_grammar, 'start: s{"a","b"}\ns{x}: x', 7, "'s' takes 1 argument, not 2"),
    (lark_grammar, 'start: T\nT: (/a|b/) "c"', 13, "lark joins this regular expression to others"),
    (lark_grammar, "start: a\na[max_chars=-5]: /x/", 11, "'max_chars' takes a number from 0"),
    (lark_grammar, '\ufeffstart: "a"', 0, "a byte order mark: read the file with encoding='utf-8-sig'"),
    (
        lark_grammar,
        'start: a\na: "x"\n%extend a[capture="b"]: "y"',
        24,
        "%extend adds alternatives, and attributes are those of the whole rule",
    ),
    (lark_grammar, 'start: %lark { a: "b" }', 7, "the grammar after %lark defines no rule 'start'"),
    (ebnf, "root ::= #x41", 9, "#x41 is a comment here and one character in W3C notation"),
    (gbnf, 'root ::= "B" (#x41 | #x42)', 14, "#x41 is a comment here and one character"),
]


@pytest.mark.parametrize(("front_end", "text", "position", "message"), ERRORS)
def test_errors_and_their_places(
    front_end: Callable[[str], Grammar], text: str, position: int, message: str
) -> None:
    with pytest.raises(PatternError) as caught:
        front_end(text)
    assert message in str(caught.value)
    assert caught.value.position == position
    line = text.count("\n", 0, position) + 1
    assert f"line {line}, column {position - text.rfind(chr(10), 0, position)}: " in str(caught.value)
    refused = (
        "look-ahead",
        "%declare",
        "only the grammars",
        "five characters",
        "back-reference",
        "lazy",
        "hide",
        "lark reads",
        "have look-around",
        "begins with",
        "lark joins",
        "is a comment here",
    )
    kind = UnsupportedPatternError if any(word in message for word in refused) else PatternSyntaxError
    assert isinstance(caught.value, kind)


@pytest.mark.parametrize(
    ("front_end", "text"),
    [(gbnf, 'root ::= root "a"'), (ebnf, 'root ::= b\nb ::= "x" root'), (lark_grammar, "start: start")],
)
def test_grammars_without_words(front_end: Callable[[str], Grammar], text: str) -> None:
    with pytest.raises(EmptyLanguageError, match=r"line 1, column 1: .* has no word(.|\n)*\n  \^"):
        front_end(text)


def test_a_grammar_without_words_and_without_recursion() -> None:
    with pytest.raises(EmptyLanguageError, match="has a part that matches no text, such as a look-ahead"):
        lark_grammar('start: A "b"\nA: /a(?=b)/')


def test_cycles_are_fine_where_there_is_a_way_out() -> None:
    assert gbnf('root ::= root | "a"').to_language().equivalent(regex("a"))
    assert lark_grammar('start: a\na: b | \nb: a "x"?').to_language().equivalent(regex("x*"))


@pytest.mark.parametrize("front_end", [gbnf, ebnf, lark_grammar])
def test_other_types_are_refused(front_end: Callable[[object], Grammar]) -> None:
    with pytest.raises(ConstraintError, match="a grammar must be a str, not bytes"):
        front_end(b'root ::= "a"')


DEEP = 10_000


@pytest.mark.parametrize(
    ("front_end", "text"),
    [
        (gbnf, "root ::= " + "(" * DEEP + '"a"' + ")" * DEEP),
        (gbnf, "root ::= " + '("a" ' * DEEP + '"a"' + ' "b")?' * DEEP),
        (ebnf, "root ::= " + "(" * DEEP),
        (lark_grammar, "start: " + "[" * DEEP + '"a"' + "]" * DEEP),
        (lark_grammar, "start: A\nA: " + "(" * DEEP + '"a"' + ")" * DEEP),
        (lark_grammar, "start: A\nA: " + '("x" ' * DEEP + '"a"' + ")*" * DEEP),
        (lark_grammar, "start: /" + "(" * DEEP + "a" + ")" * DEEP + "/"),
        (lark_grammar, 'start: A0\nA600: "x"\n' + "".join(f"A{k}: A{k + 1} A{k + 1}\n" for k in range(600))),
        (lark_grammar, 'start: a{"x"}\na{x}: "a" a{a{x}} | x'),
        (lark_grammar, "start: " + '"a"\n | ' * DEEP + '"b"'),
    ],
)
def test_deep_texts_end_inside_of_the_budget(front_end: Callable[[str], Grammar], text: str) -> None:
    begin = time.process_time()
    with contextlib.suppress(TokenfstError):
        front_end(text).truncate(2).accepts("a")
    assert time.process_time() - begin < 20


@pytest.mark.parametrize(
    ("front_end", "line", "last"),
    [
        (gbnf, 'r{} ::= "x{}" r{} | [a-z]+ "y"\n', 'root ::= r0\nr{} ::= "z"\n'),
        (lark_grammar, 'r{}: "x{}" r{} | /[a-z]+/ "y"\n', 'start: r0\nr{}: "z"\n'),
    ],
)
def test_large_texts(front_end: Callable[[str], Grammar], line: str, last: str) -> None:
    size = 8_000  # about 250 KB; four times that takes four times as long
    text = "".join(line.format(k, k, k + 1) for k in range(size)) + last.format(size)
    grammar = front_end(text)
    assert len(grammar.rules) == size + 2 and grammar.is_regular()
    with pytest.raises(BudgetExceeded):  # a chain of 8,000 rules is more than the core nests
        grammar.truncate(0).accepts("x0y")


def test_lark_is_asked_for_by_name(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without_lark(name: str, *args: object, **kwargs: object) -> object:
        if name.split(".")[0] == "lark":
            raise ImportError(name)
        return real(name, *args, **kwargs)  # type: ignore[arg-type]

    notation._parser.cache_clear()
    monkeypatch.setattr(builtins, "__import__", without_lark)
    with pytest.raises(MissingDependencyError, match=r'pip install "tokenfst\[grammars\]"'):
        gbnf('root ::= "a"')


_ARROWS = "; gbnf and ebnf read rules that are written name ::= ..."
_COLONS = "; lark_grammar reads rules that are written name: ..."
_JSON = "; this looks like JSON: json_schema reads a JSON Schema"


@pytest.mark.parametrize(
    ("front_ends", "text", "hint"),
    [
        ((lark_grammar,), 'root ::= "a"', _ARROWS),
        ((lark_grammar,), '# c\nroot ::= b\nb ::= "a"', _ARROWS),
        ((gbnf, ebnf), 'start: "a"', _COLONS),
        ((gbnf, ebnf), "// c\n?start: A\nA.2: /a/", _COLONS),
        ((gbnf, ebnf, lark_grammar), '\n{"type": "object"}', _JSON),
        ((gbnf, ebnf), 'root ::= "a: b" )', None),
        ((gbnf, ebnf), "root = b", None),
        ((lark_grammar,), 'start: "::=" )', None),
    ],
)
def test_a_text_of_another_notation_is_told_what_reads_it(
    front_ends: tuple[Callable[[str], Grammar], ...], text: str, hint: str | None
) -> None:
    for front_end in front_ends:
        with pytest.raises(PatternSyntaxError) as caught:
            front_end(text)
        said = str(caught.value).partition("\n")[0].partition(" (position")[0]
        assert said.endswith(hint) if hint else not any(each in said for each in (_ARROWS, _COLONS, _JSON))


@pytest.mark.parametrize(
    ("front_end", "text", "said"),
    [
        (lark_grammar, 'start: $\na: "x"\n', None),
        (
            lark_grammar,
            'start: a\na: $\nb: "x"\nc: "y" )\n',
            "; 1 later rule cannot be read either, that of line 4",
        ),
        (
            lark_grammar,
            'start: "a\nb: "x"\n  | "y"\n%ignore $\n?c{x}: x )\n// d: )\nD.2: /a/ ]\n',
            "; 3 later rules cannot be read either, the first at line 4",
        ),
        (
            gbnf,
            'root ::= )\na ::= "x"\n  "y"\nb ::= ]\n',
            "; 1 later rule cannot be read either, that of line 4",
        ),
        (ebnf, 'root ::= )\na ::= "x\nb ::= ]', "; 2 later rules cannot be read either, the first at line 2"),
        (lark_grammar, 'root ::= "a"\nb ::= "c"', None),
    ],
)
def test_an_error_says_how_many_later_rules_cannot_be_read(
    front_end: Callable[[str], Grammar], text: str, said: str | None
) -> None:
    with pytest.raises(PatternSyntaxError) as caught:
        front_end(text)
    first = str(caught.value).partition("\n")[0]
    assert first.startswith(f"line {text[: caught.value.position].count(chr(10)) + 1}, column ")
    assert first.endswith(said) if said else "later rule" not in first


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: lark_grammar('root: "a"'), "the start rule 'start' is not defined: give start='root'"),
        (lambda: lark_grammar('a: "a"\nstar: a'), "give start=, such as start='star'"),
        (lambda: lark_grammar(""), "the text has no rules"),
        (lambda: gbnf('start ::= "a"'), "the start rule 'root' is not defined: give start='start'"),
        (
            lambda: lark_grammar("start: numbr\nnumber: /a/"),
            "the rule 'numbr' is not defined; did you mean 'number'?",
        ),
        (lambda: lark_grammar("start: NUMBR\n%import common.NUMBER"), "did you mean 'NUMBER'?"),
        (
            lambda: lark_grammar("start: NUMBR\n%import common.NUMBR"),
            "does not define 'NUMBR'; did you mean 'NUMBER'?",
        ),
        (lambda: ebnf('root ::= itme\nitem ::= "a"'), "the rule 'itme' is not defined; did you mean 'item'?"),
        (lambda: ebnf('root ::= zzz\nitem ::= "a"'), "the rule 'zzz' is not defined\n"),
        (lambda: lark_grammar("grammar.lark"), "this looks like the name of a file"),
        (lambda: gbnf("rules/a.gbnf"), "this looks like the name of a file"),
        (
            lambda: lark_grammar(Path("grammar.lark")),
            "a grammar must be a str, not PosixPath; the text of",
        ),
        (
            lambda: gbnf(b"root"),
            "gbnf: a grammar must be a str, not bytes; data.decode() makes text from bytes",
        ),
    ],
)
def test_likely_mistakes_are_told_what_to_write(call: Callable[[], Grammar], said: str) -> None:
    with pytest.raises(ConstraintError) as caught:
        call()
    assert said in str(caught.value)
