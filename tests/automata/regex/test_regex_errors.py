"""What ``regex`` refuses: the error, its position and its caret; and patterns made to explode."""

from __future__ import annotations

import random
import re
import sys
import time
import warnings
from typing import Any

import pytest

from tokenfst.automata.regex import parse
from tokenfst.automata.regex.parse import Pattern
from tokenfst.automata.regex.translate import expression, regex
from tokenfst.budget import Budget
from tokenfst.decoding.compiling.compile import compile as compile_tokens
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    PatternError,
    PatternSyntaxError,
    TokenfstError,
    UnsupportedPatternError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


def position(marked: str) -> tuple[str, int]:
    """A pattern with ‸ before the place of the error."""
    return marked.replace("‸", ""), marked.index("‸")


@pytest.mark.parametrize(
    ("marked", "hint"),
    [
        (r"‸\p{L}+", r"[^\W\d_] is a letter"),
        (r"[a‸\P{Lu}]", r"[^\W\d_] is a letter"),
        (r"a(‸?<n>b)", "(?P<name>...)"),
        (r"‸\u{1F600}", r"\U0001f600"),
        (r"a(‸?R)", "lark_grammar(...) reads rules that call themselves"),
        (r"a‸\h+", r"[ \t] is a space or a tab"),
        (r"‸\Q.\E", "re.escape(text)"),
        (r"a‸\Kb", "look-behind"),
        (r"‸\x{1F600}", r"\U0001f600"),
        (r"\\(a‸\q", None),
    ],
)
def test_other_dialects_are_told_what_re_writes(marked: str, hint: str | None) -> None:
    pattern, where = position(marked)
    for given in (pattern, pattern.encode()):
        if isinstance(given, bytes) and r"\u" in pattern:
            continue  # no escape in bytes
        with pytest.raises(re.error) as standard:
            re.compile(given)
        with pytest.raises(PatternSyntaxError) as caught:
            regex(given)
        assert caught.value.position == where
        said = str(caught.value).partition(" (position")[0]
        assert said == standard.value.msg if hint is None else hint in said


@pytest.mark.parametrize(
    ("marked", "flags", "message"),
    [
        (r"(a)‸\1", 0, "back-reference"),
        (r"(a)\\‸\1", 0, "back-reference"),
        (r"(a)[\1]\101\0‸\1", 0, "back-reference"),
        (r"(?P<n>a)b‸(?P=n)", 0, "back-reference"),
        (r"(a)# \1" + "\n" + r" [ #] ‸\1", re.VERBOSE, "back-reference"),
        (r"(?x)(a)(?-x:# )‸\1", 0, "back-reference"),
        (r"(?x:(a)# \1" + "\n)" + r"#‸\1", 0, "back-reference"),
        (r"(a)(?# (\1 )‸\1", 0, "back-reference"),
        (r"(a)[]\]()]*‸\1", 0, "back-reference"),
        (r"(a)(?=b‸\1)", 0, "back-reference"),
        (r"(?:(a)‸\1b|(a)\2)", 0, "back-reference"),
        (r"(a)?‸(?(1)b|c)", 0, "conditional"),
        (r"(?P<n>a)?‸(?(n)b)", 0, "conditional"),
        (r"x‸(?>a*)", 0, "atomic"),
        (r"xa‸*+", 0, "possessive"),
        (r"a{2}‸{3}+", 0, "multiple repeat"),
        (r"[*+]\*+(?:a{1,2}|b)‸{3,}+", 0, "possessive"),
        (r"a‸?+a*+", 0, "possessive"),
        (r"..(?<=‸(?=aaa)..)", 0, "look-ahead beyond the end"),
        (r"(?=a).‸(?<=$.)", 0, "$ before the last character"),
    ],
)
def test_refusals_point_at_the_construct(marked: str, flags: int, message: str) -> None:
    pattern, where = position(marked)
    with pytest.raises(PatternError, match=re.escape(message)) as caught:
        regex(pattern, flags)
    assert caught.value.position == where
    assert caught.value.pattern == pattern
    line = pattern[: pattern.find("\n", where) if "\n" in pattern[where:] else None].split("\n")[-1]
    column = where - (pattern.rfind("\n", 0, where) + 1)
    assert str(caught.value).endswith(f"\n  {line}\n  {' ' * column}^")


@pytest.mark.parametrize("marked", ["‸(?L)a", "a‸(?L:b)", r"[(?L)]\(?(?:L)‸(?iL:b)"])
def test_locale_is_refused_where_it_is_switched_on(marked: str) -> None:
    text, where = position(marked)
    pattern = text.encode()
    with pytest.raises(UnsupportedPatternError, match="LOCALE") as caught:
        regex(pattern)
    assert caught.value.position == where


def test_locale_as_an_argument() -> None:
    with pytest.raises(UnsupportedPatternError, match="LOCALE"):
        regex(b"a", re.LOCALE)
    with pytest.raises(PatternSyntaxError, match="LOCALE"):
        regex("a", re.LOCALE)


@pytest.mark.parametrize(
    "pattern",
    [
        "(",
        ")",
        "a**",
        "*",
        "[a",
        "a{2,1}",
        "(?P<1>a)",
        "(?<a)",
        r"\8",
        r"\q",
        r"[\q]",
        "(?z)",
        "a(?i)",
        r"\N{NO}",
        "[z-a]",
        "(?P<n>a)(?P<n>b)",
        "(?P=x)",
        r"\u12",
        "x\n(",
        "(?#",
        "(?",
        "(?<=a*)b",
        "(?<!a|bc)",
        "a(?:b(?<=c+)){0}",
        b"(",
        rb"\u0041",
        rb"(?<=a*)",
    ],
)
def test_what_re_cannot_compile(pattern: Any) -> None:
    with pytest.raises(re.error) as theirs:
        re.compile(pattern)
    with pytest.raises(PatternSyntaxError) as ours:
        regex(pattern)
    said, _, _remedy = ours.value.message.partition("; re writes ")
    assert said == theirs.value.msg
    if theirs.value.pos is None:
        opening = b"(?<" if isinstance(pattern, bytes) else "(?<"
        assert ours.value.position == pattern.index(opening)
    else:
        assert ours.value.position == theirs.value.pos


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        ("a\ud800", 1),
        (r"ab\ud800", 2),
        (r"\\ud800\ud9Ff", 7),
        (r"[a\udfff]", 2),
        (r"[^\U0000d800]", 2),
        (r"[\ud7ff-\udc00]", 8),
        (r"[a-\ud800]", 3),
        (r"(?:x|(?=[^\udabc]))", 10),
        ("[^\udc80]", 2),
    ],
)
def test_surrogates(pattern: str, where: int) -> None:
    with pytest.raises(PatternSyntaxError, match="surrogate") as caught:
        regex(pattern)
    assert caught.value.position == where


def test_a_comment_may_contain_lone_surrogates() -> None:
    language = regex("(?:a(?#\udcf1)|bb){8,2000}")
    vocabulary = Vocabulary([b"a", b"bb", b""], 2)
    matcher = compile_tokens(language, vocabulary).matcher()
    assert all(matcher.accept_token(token) for token in [0, 1] * 4 + [2])
    ((_, label),) = language.program().labels
    assert label == r"(?:a(?#\udcf1)|bb){8,2000}"


def test_text_that_only_looks_like_surrogates() -> None:
    assert regex(r"\\ud800").accepts(r"\ud800")
    assert regex(r"[\\ud800]+").accepts(r"\ud800")
    assert regex(r"[\ud7ff-\ue000]").accepts("\ud7ff")
    assert not regex(r"[\ud7ff-\ue000]").accepts(b"\xed\xa0\x80")
    assert regex(rb"\\ud800").accepts(rb"\ud800")


@pytest.mark.parametrize(
    ("pattern", "where"),
    [("a{99999999999}", 1), ("ab{1,4294967295}c", 2), ("(a)[{]{5}{" + "9" * 5000 + "}", 9)],
)
def test_repetition_numbers_beyond_the_parser(pattern: str, where: int) -> None:
    with pytest.raises(PatternSyntaxError) as caught:
        regex(pattern)
    assert caught.value.position == where


def test_wrong_arguments() -> None:
    for pattern in (None, 3, ["a"], bytearray(b"a")):
        with pytest.raises(ConstraintError, match="str or bytes"):
            regex(pattern)  # type: ignore[arg-type]
    with pytest.raises(ConstraintError, match="flag"):
        regex("a", 1 << 20)


# --- bombs --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("pattern", "where"),
    [
        ("(a{1,5000}){1,5000}", "(a{1,5000}){1,5000}"),
        ("x(?:(?:a{1000}b){100}c){1000}y", "(?:(?:a{1000}b){100}c){1000}"),
        ("(?:a|[b-d]{4000000000})", "[b-d]{4000000000}"),
        ("((((a{60}){60}){60}){60}){60}", "(((a{60}){60}){60}){60}"),
        ("q*(?:(?!x).){1,1000000}", "(?:(?!x).){1,1000000}"),
        ("(?:(?:(?!x)a|bc){2000}){2000}", "(?:(?:(?!x)a|bc){2000}){2000}"),
        ("(?<=a{20000000})", "a{20000000}"),
        ("(?x) a {3}  [#] {99999999} # {5}", "[#] {99999999}"),
        ("é(?:ab{12345678})*", "b{12345678}"),
    ],
)
def test_counted_repetitions_that_multiply(pattern: str, where: str) -> None:
    begin = time.process_time()
    with pytest.raises(BudgetExceeded) as caught:
        regex(pattern)
    assert time.process_time() - begin < 2
    assert (caught.value.resource, caught.value.limit) == ("positions", Budget().positions)
    assert caught.value.where == where


def test_the_budget_is_the_callers() -> None:
    with pytest.raises(BudgetExceeded) as caught:
        regex("a{1,50}b{3}", budget=Budget(positions=49))
    assert (caught.value.limit, caught.value.where) == (49, "a{1,50}")
    with pytest.raises(BudgetExceeded) as caught:
        regex("a{30}b{30}", budget=Budget(positions=59))
    assert caught.value.where == "a{30}b{30}"
    assert regex("a{30}b{30}", budget=Budget(positions=60)).accepts("a" * 30 + "b" * 30)
    long = "(?:" + "abc" * 50 + "){1000000}"
    with pytest.raises(BudgetExceeded) as caught:
        regex(long)
    assert len(caught.value.where) <= 80
    assert caught.value.where.startswith("(?:abc")
    assert caught.value.where.endswith("){1000000}")


@pytest.mark.parametrize(
    "pattern",
    [
        "(" * 10_000 + "a" + ")" * 10_000,
        "(?:" * 5000 + ")" * 5000,
        "(?=" * 3000 + "a" + ")" * 3000,
        "(?:a|" * 5000 + ")" * 5000,
        "(?:" * 2000 + "a" + ")*" * 2000,
    ],
)
def test_nesting_beyond_the_stack(pattern: str) -> None:
    begin = time.process_time()
    with pytest.raises(UnsupportedPatternError, match="nested too deeply") as caught:
        regex(pattern)
    assert time.process_time() - begin < 5
    assert pattern[caught.value.position] == "("
    assert pattern.rfind("(") == caught.value.position


def test_nesting_within_reason() -> None:
    depth = 100
    for opening, closing in [
        ("(", ")"),
        ("(?:", ")?"),
        ("(?=", ")"),
        ("(?:b|", ")"),
        ("(?i:", ")"),
        ("(?<=", ")"),
    ]:
        pattern = f"{opening * depth}{closing * depth}a"
        assert regex(pattern).accepts("a"), pattern


def test_errors_do_not_depend_on_the_callers_stack() -> None:
    def deeper(levels: int) -> None:
        if levels:
            deeper(levels - 1)
        else:
            with pytest.raises(TokenfstError):
                regex("(" * 400 + ")" * 400 + "(")

    deeper(sys.getrecursionlimit() // 2)


@pytest.mark.parametrize(
    "pattern",
    [
        "(?:a*)*b",
        "(?:(?:a+)+)+$",
        "(a|a)*c",
        "(a|aa)+$",
        "(?:a?){50}a{50}",
        "(?:.*a){20}",
        "(x+x+)+y",
        "(?:a|b|ab)*(?=c)c",
        "(?:(?:a{1,30}){1,30}){1,30}",
        "(?=(?:a{1,20}){1,20}b)(?!(?:aa){3,}b).*",
    ],
)
def test_nested_quantifiers_are_harmless(pattern: str) -> None:
    language = regex(pattern)
    begin = time.process_time()
    assert not language.accepts("a" * 60 + "!")
    assert time.process_time() - begin < 5


def test_too_many_alternatives_in_a_look_behind() -> None:
    pattern = "x" * 12 + "(?<=" + r"(?:x\b|\bx)" * 12 + ")"
    with pytest.raises(UnsupportedPatternError, match="too many conditions") as caught:
        expression(pattern)
    assert caught.value.position == 12


def test_warnings_of_the_parser_are_passed_on() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        regex("[[a]")
    assert [w.category for w in caught] == [FutureWarning]


# --- long patterns ------------------------------------------------------------------------------------

LONG = "|".join(f"w{i}x{i * 7919 % 100_003}" for i in range(60_000))


@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("pattern", [LONG, LONG.encode()], ids=["str", "bytes"])
def test_a_long_pattern_is_read_within_the_seconds(pattern: str | bytes) -> None:
    """The parser of the standard library needs half a second and more for it, and nothing interrupts it."""
    began = time.process_time()
    with pytest.raises(BudgetExceeded, match=r"needs more than 0\.1 seconds") as caught:
        regex(pattern, budget=Budget(seconds=0.1))
    assert time.process_time() - began < 0.25 and caught.value.resource == "seconds"


@pytest.mark.parametrize(
    "body", [r"(?P<n>a|[b-d]{2,3})\d", r"(?i:ä)\Z", r"(?<=a)b\x41é", "a  # no comment\n"]
)
def test_a_long_pattern_is_read_as_a_short_one(body: str) -> None:
    longer = body + "x" * 30_000
    assert repr(Pattern(longer, 0, Budget()).tree) == repr(re._parser.parse(longer))  # type: ignore[attr-defined]
    with pytest.raises(PatternSyntaxError) as caught:
        regex(longer + "(")
    with pytest.raises(re.error) as theirs:
        re.compile(longer + "(")
    assert caught.value.position == theirs.value.pos


PIECES = rb"a|\xe9|\d|[a-z\xff]|[^\s]|(?i:k)|(?P<n>x)|(?:a|ab)|a{2,3}?|.|^|$|(?=a)|(?<!b)|\101|(?#c)|(?-i:A)"
PIECES += rb"|\q|\8|(|)|*|\u0041|\N{DIGIT ONE}|(?a:b)|(?u:b)|(?L:b)|(?x: a b )|(?m)|(?>a)|a++|||\x85|#"


def test_long_bytes_are_read_as_the_parser_reads_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are read as a str of the same letters, which the parser can be stopped in."""
    monkeypatch.setattr(parse, "_LONG", 0)
    parser = re._parser  # type: ignore[attr-defined]
    chance = random.Random(1)
    errors = 0
    for _ in range(4_000):
        pattern = b"".join(chance.choices([*PIECES.split(b"|"), b"|", b"\xe9"], k=chance.randint(1, 7)))
        flags = chance.choice([0, 0, re.I, re.X, re.S | re.M, re.A])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                theirs = parser.parse(pattern, int(flags))
            except re.error as error:
                errors += 1
                with pytest.raises(PatternSyntaxError) as refused:
                    Pattern(pattern, flags, Budget())
                assert (refused.value.message, refused.value.position) == (error.msg, error.pos or 0), pattern
                continue
            try:
                ours = Pattern(pattern, flags, Budget())
            except PatternError:
                continue
        assert repr(ours.tree) == repr(theirs), pattern
        assert ours.flags == theirs.state.flags and ours.tree.state.groupdict == theirs.state.groupdict
    assert 1_000 < errors < 3_000
