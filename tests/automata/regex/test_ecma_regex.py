r"""ECMA-262 patterns: against ``re`` where the two agree, against a table where they do not, and as JSON text.

The table was checked with V8 (``new RegExp(pattern, "u").test(text)``); it is not needed to run the tests.
"""

from __future__ import annotations

import contextlib
import gzip
import itertools
import json
import random
import re
import time
import unicodedata
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from reference.expressions.near_texts import near
from reference.json.json_strings import escape
from tokenfst import Budget
from tokenfst.automata.characters.case import simple_fold
from tokenfst.automata.characters.properties import binary_property, general_category
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges
from tokenfst.automata.expressions.expression import Op
from tokenfst.automata.json_values.strings import json_string
from tokenfst.automata.regex.ecma import ecma_pattern
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    PatternError,
    PatternSyntaxError,
    PatternWarning,
    UnsupportedPatternError,
)

SHARED = Path(__file__).parents[4] / "shared"


def python_twin(pattern: str) -> str:
    """The same for ``re.search`` under ``re.ASCII``, for patterns and texts on which only ``$`` differs."""
    return re.sub(
        r"\\.|\[(?:\\.|[^\]\\])*\]|\$", lambda found: found[0].replace("$", r"\Z", found[0] == "$"), pattern
    )


# --- every short pattern ------------------------------------------------------------------------------

TOKENS = ["a", ".", "^", "$", r"\b", "(", ")", "|", "*", "?", "(?=", "(?<!", "{2}"]
TEXTS = ["".join(letters) for length in range(4) for letters in itertools.product("a- ", repeat=length)]


def test_all_short_patterns() -> None:
    compiled = refused = 0
    for length in range(4):
        for tokens in itertools.product(TOKENS, repeat=length):
            pattern = "".join(tokens)
            if re.search(r"\?\?|\}\?|\*\?", pattern):
                continue
            try:
                twin = re.compile(python_twin(pattern), re.ASCII)
            except re.error:
                with pytest.raises(PatternError):
                    ecma_pattern(pattern)
                refused += 1
                continue
            if re.search(r"\((\?=|\?<!)[^()]*\)[*?{]", pattern):
                continue
            language = ecma_pattern(pattern)
            compiled += 1
            for text in TEXTS:
                assert language.accepts(text) == (twin.search(text) is not None), (pattern, text)
    assert compiled > 300 and refused > 500


# --- random patterns ----------------------------------------------------------------------------------

ATOMS = [
    "a",
    "b",
    "-",
    "0",
    "é",
    "😀",
    r"\.",
    "[a-z]",
    "[^a]",
    r"[\w-]",
    r"\d",
    r"\D",
    r"\w",
    r"\W",
    "[^é😀]",
    r"\t",
]
ZERO_WIDTH = ["^", "$", r"\b", "(?=a)", "(?!b)", "(?<=a)", "(?<!é)", r"(?<!^a)", "(?=.*0$)"]


def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("({}|{})".format, inner, inner),
        st.builds(
            "(?:{}){}".format, inner, st.sampled_from(["*", "+", "?", "{2}", "{1,2}", "{2,}", "*?", "+?"])
        ),
        st.builds("(?{}{})".format, st.sampled_from(["=", "!"]), inner),
        st.builds("({})".format, inner),
    )


PATTERNS = st.recursive(st.sampled_from(ATOMS) | st.sampled_from(ZERO_WIDTH), extend, max_leaves=6)


@given(PATTERNS, st.lists(st.text("ab-0é😀 \t.", max_size=6), max_size=12), st.integers(0, 2**32))
@settings(max_examples=200, deadline=None)
def test_random_patterns(pattern: str, texts: list[str], seed: int) -> None:
    rng = random.Random(seed)
    try:
        twin = re.compile(python_twin(pattern), re.ASCII)
    except re.error:
        assume(False)
    try:
        content = ecma_pattern(pattern)
    except UnsupportedPatternError:
        assume(False)
    written = json_string(content, spelling="any")
    for text in [*texts, *(t for t in near(pattern, 0, rng, 6) if not re.search(r"[\n\u2028]", t))]:
        expected = twin.search(text) is not None
        assert content.accepts(text) == expected, (pattern, text)
        assert written.accepts(escape(text, rng)) == expected, (pattern, text)


# --- what is not as in Python -------------------------------------------------------------------------

TABLE = [
    # pattern, texts that match, texts that do not
    (r"^.$", ["a", "é", "😀", "\x85", "\x0b"], ["\n", "\r", "\u2028", "\u2029", "", "ab"]),
    (r"a$", ["a", "ba"], ["a\n", "ab"]),
    (r"^a", ["a", "ab"], ["\na", "ba"]),
    (r"^\d+$", ["0", "19"], ["١", "𝟗", "٣", "a"]),
    (r"^\w$", ["a", "_", "9"], ["é", "ſ", "\u212a", "-"]),
    (r"^\W$", ["é", "-", "😀"], ["a", "_"]),
    (r"^\s$", [" ", "\t", "\x0b", "\x0c", "\xa0", "\ufeff", "\u1680", "\u2003", "\u3000"], ["\x1c", "\x85", "\u200b"]),
    (r"^\S$", ["\x85", "\x1c", "a"], ["\ufeff", " "]),
    (r"\bé", ["aé"], ["é", " é"]),
    (r"^\B$", [""], ["a"]),
    (r"^\cJ\cj$", ["\n\n"], ["J", "cJ"]),
    (r"^\x41\u0042\u{43}\u{1F600}$", ["ABC😀"], ["ABC"]),
    (r"^\uD83D\uDE00$", ["😀"], ["\ufffd"]),
    (r"^[\uD83D\uDE00-\uD83D\uDE02]$", ["😀", "😁", "😂"], ["😃", "\ufffd"]),
    (r"\uD83D", [], ["😀", ""]),
    (r"^[^\uD83D]$", ["😀", "a"], [""]),
    (r"^[\uD800-\uDFFF]?$", [""], ["a"]),
    (r"^[^]$", ["\n", "a", "😀"], ["", "ab"]),
    (r"^[]?$", [""], ["a"]),
    (r"^[\b]$", ["\b"], ["b"]),
    (r"^\0$", ["\0"], ["0"]),
    (r"^\/\-\.\@$", ["/-.@"], ["\\/"]),
    (r"^(?<year>\d{4})-(?<$m_1>\d\d)$", ["2024-01"], ["2024-1"]),
    (r"^a{,2$", ["a{,2"], ["aa"]),
    (r"^}]{$", ["}]{"], [""]),
    (r"^[\w-.]$", ["a", "-", "."], [",", "/"]),
    (r"^[a-\d]$", ["a", "-", "5"], ["b", "."]),
    (r"^[.-\]]$", [".", "A", "]"], ["-", "^"]),
    (r"^[[a]$", ["[", "a"], ["]"]),
    (r"^[+--]$|^[a&&b]$", ["a", "b", "&", ","], [".", "c"]),
    (r"^a*?b+?c??$", ["b", "abbc"], ["a"]),
    (r"(?<=a+)b", ["ab", "caab"], ["b", "cb"]),
    (r"(?<!^|,)x", ["ax"], ["x", ",x"]),
    (r"(?<=^|,)x", ["x", "a,x"], ["ax"]),
    (r"(?<=\$\d+\.)\d\d", ["$10.53"], ["10.53", "$.53"]),
    (r"^(?!.*secret).*$", ["open"], ["a secret b"]),
    (r"^\p{L}+$", ["aéß", "日"], ["1", "a1", "_"]),
    (r"^\p{Lu}\P{Lu}$", ["Aa", "É1"], ["AA", "aa"]),
    (r"^\p{General_Category=Decimal_Number}\p{gc=Nd}\p{Nd}$", ["1٣𝟗"], ["12a"]),
    (r"^[\p{Sc}\d]+$", ["$5€"], ["a"]),
    (r"^[^\p{Lowercase}]\p{Upper}$", ["BB", "1A"], ["aA", "Aa"]),
    (r"^\p{ASCII}\p{Any}\p{Assigned}$", ["aé😀"], ["é😀a", "ab\u0378"]),
    (r"^\p{White_Space}$", ["\x85", " "], ["\x1c", "\ufeff"]),
    (r"^\p{XIDS}\p{XID_Continue}*$", ["ab1_", "é9"], ["_a", "1"]),
    (r"^\p{LC}\p{punct}\p{Cased}$", ["a.A"], ["日.a"]),
    ("^é\\é$", ["éé"], ["e"]),
    (r"", ["", "abc"], []),
    (r"|x^", ["", "abc"], []),
    (r"b|^a$|(^c|d$)", ["abc", "a", "cx", "xd"], ["aa", "xc", "dx"]),
]  # fmt: skip


@pytest.mark.parametrize(("pattern", "matching", "others"), TABLE, ids=[row[0] for row in TABLE])
def test_what_differs_from_python(pattern: str, matching: list[str], others: list[str]) -> None:
    language = ecma_pattern(pattern)
    assert [text for text in matching if not language.accepts(text)] == []
    assert [text for text in others if language.accepts(text)] == []


@pytest.mark.parametrize(
    ("pattern", "kind", "message", "position"),
    [
        ("a**", PatternSyntaxError, "nothing to repeat", 2),
        ("a*+", PatternSyntaxError, "nothing to repeat", 2),
        ("^*", PatternSyntaxError, "nothing to repeat", 1),
        ("a|*", PatternSyntaxError, "nothing to repeat", 2),
        ("(?=a)*", PatternSyntaxError, "look-around cannot be repeated", 5),
        ("a{2,1}", PatternSyntaxError, "out of order", 1),
        ("ab{,3}", PatternSyntaxError, "lower bound", 2),
        ("a{1,%s}" % ("9" * 5000), PatternSyntaxError, "too large", 1),
        ("aa{99999999999}", PatternSyntaxError, "too large|repetition", 2),
        ("(a", PatternSyntaxError, "never closed", 0),
        ("a)", PatternSyntaxError, "closes nothing", 1),
        ("a[b", PatternSyntaxError, "never closed", 1),
        ("[b-a]", PatternSyntaxError, "out of order", 1),
        ("a\\", PatternSyntaxError, "nothing to escape", 1),
        (r"a\A", PatternSyntaxError, r"\\A is no escape of ECMA-262; write \^", 1),
        (r"\h", PatternSyntaxError, "is no escape", 0),
        (r"[\B]", PatternSyntaxError, "is no escape", 1),
        (r"\01", PatternSyntaxError, "is no escape", 0),
        (r"\c1", PatternSyntaxError, "letter", 0),
        (r"\x4", PatternSyntaxError, "hexadecimal", 0),
        (r"\u{110000}", PatternSyntaxError, "no such code point", 0),
        (r"\pL", PatternSyntaxError, "is written", 0),
        (r"a\p{Foo}", UnsupportedPatternError, "'Foo'", 1),
        (r"[a\p{Script=Geek}]", UnsupportedPatternError, "'Script=Geek'", 2),
        (r"\p{sc=greek}", UnsupportedPatternError, "'sc=greek'", 0),
        (r"\p{gc=Foo}", UnsupportedPatternError, "'gc=Foo'", 0),
        ("(?P<a>b)", PatternSyntaxError, "Python's", 0),
        ("(?<a-b>c)", PatternSyntaxError, "no name", 0),
        ("(?>a)", PatternSyntaxError, "no group of ECMA-262", 0),
        ("a(?#b)", PatternSyntaxError, "no group of ECMA-262", 1),
        ("(?x)a", UnsupportedPatternError, "modifier 'x'", 0),
        ("b(?iu-x:a)", UnsupportedPatternError, "modifier 'u'", 1),
        ("(?i-i:a)", PatternSyntaxError, "each once", 0),
        ("(?ii:a)", PatternSyntaxError, "each once", 0),
        ("(?-:a)", PatternSyntaxError, "each once", 0),
        (r"(a*)\1", UnsupportedPatternError, "back-reference", 4),
        (r"(?<n>\S)\k<n>", UnsupportedPatternError, "back-reference", 8),
        (r"((a)|b)\2", UnsupportedPatternError, "back-reference", 7),
        (r"(a)*\1", UnsupportedPatternError, "back-reference", 4),
        (r"\1(a)", UnsupportedPatternError, "back-reference", 0),
        (r"(a\1)", UnsupportedPatternError, "back-reference", 2),
        (r"(?=(a|b))\1", UnsupportedPatternError, "back-reference", 9),
        (r"(?<=(a|b)\1)", UnsupportedPatternError, "back-reference", 9),
        (r"(\ba)\1", UnsupportedPatternError, "back-reference", 5),
        (r"(a)\2", PatternSyntaxError, "names a group that is not there", 3),
        (r"(a)\k<n>", PatternSyntaxError, "names a group that is not there", 3),
        (r"(a)[\1]", PatternSyntaxError, "names no group here", 4),
        (r"\w\w(?<=^a*)", UnsupportedPatternError, "fixed width", 4),
        (r"\w\w(?<=(?:^a)*)", UnsupportedPatternError, "any number of times", 4),
    ],
)
def test_errors_point_at_the_given_pattern(
    pattern: str, kind: type[PatternError], message: str, position: int
) -> None:
    with pytest.raises(kind, match=message) as caught:
        ecma_pattern(pattern)
    assert type(caught.value) is kind
    assert caught.value.pattern == pattern
    assert caught.value.position == position


# --- back-references and modifiers --------------------------------------------------------------------

PIECES = ["(a|b)", "(ab?)", "(?:(a|b)b)", r"\1", r"\2", "a", "|", "(?:", ")*", ")"]


def test_back_references_to_few_texts_are_those_of_re() -> None:
    """Of all short patterns, those that are taken: ``re`` has the same references where the group has matched."""
    texts = ["".join(letters) for length in range(7) for letters in itertools.product("ab", repeat=length)]
    taken = 0
    for length in range(2, 6):
        for pieces in itertools.product(PIECES, repeat=length):
            inner = "".join(pieces)
            if not re.search(r"\\\d", inner) or not inner.startswith(("(a", "(?")):
                continue
            pattern = f"^(?:{inner})$"
            try:
                language, twin = ecma_pattern(pattern), re.compile(pattern)
            except (PatternError, re.error):
                continue
            taken += 1
            for text in texts:
                assert language.accepts(text) is (twin.search(text) is not None), (pattern, text)
    assert taken > 100


@pytest.mark.parametrize(
    ("pattern", "valid", "invalid"),
    [
        (r"""^(?<q>['"])\w*\k<q>$""", ["'a'", '""'], ["'a\"", "'"]),
        (r"^(\d{2})-\1$", ["12-12"], ["12-21", "12-1"]),
        (r"^([.*])x\1{2}$", [".x..", "*x**"], ["xxxx", ".x*."]),
        (r"^((a|b)\2)+$", ["aabb", "aa"], ["ab", "aab"]),
        (r"^(?i:(a|b)\1)$", ["aA", "BB"], ["ab"]),
        (r"^([ab])(?=.*\1$).*$", ["axa", "aa"], ["axb", "a"]),
        (r"^(|a)b\1$", ["b", "aba"], ["ab", "ba"]),
    ],
)
def test_back_references(pattern: str, valid: list[str], invalid: list[str]) -> None:
    language = ecma_pattern(pattern)
    assert [text for text in (*valid, *invalid) if language.accepts(text)] == valid


def test_back_references_that_would_take_too_much() -> None:
    for pattern in (r"^(\w{3})\1$", r"^(\w)(\w)(\w)(\w)\4\3\2\1$", "(a)" + r"\1" * 100_000):
        begin = time.process_time()
        with contextlib.suppress(UnsupportedPatternError, BudgetExceeded):
            ecma_pattern(pattern)
        assert time.process_time() - begin < 20


FOLDED = "aAbBkK\u212asS\u017f_1ßẞéÉ "


@pytest.mark.parametrize(
    "inner",
    ["k", "[a-c]", "[^k]", r"\w", r"\W", "ß", "É", r"[\wé]", r"[^\W]", "[\\x41-\\x5a]", r"\x4b", "a|B"],
)
def test_case_does_not_matter(inner: str) -> None:
    """By definition: a set has a character if both are folded to the same as one of its own."""
    folded, exact = ecma_pattern(f"^(?i:{inner})$"), ecma_pattern(f"^(?:{inner.replace('[^', '[')})$")
    if inner in (r"\W", r"[^\W]"):
        exact = ecma_pattern(r"^\w$")
    negated = (inner.startswith("[^") and inner != r"[^\W]") or inner == r"\W"
    for text in FOLDED:
        same = [each for each in map(chr, range(0x2200)) if simple_fold(each) == simple_fold(text)]
        assert folded.accepts(text) is (any(map(exact.accepts, same)) is not negated), text
        assert ecma_pattern(f"^(?i:(?-i:{inner}))$").accepts(text) is ecma_pattern(f"^(?:{inner})$").accepts(
            text
        )


def test_modifiers() -> None:
    lines = ecma_pattern(r"(?m:^a$)")
    for end in "\n\r\u2028\u2029":
        assert lines.accepts(f"b{end}a{end}c") and not ecma_pattern("^a$").accepts(f"b{end}a")
        assert ecma_pattern("^(?s:.)$").accepts(end) and not ecma_pattern("^(?-s:.)$").accepts(end)
    assert not lines.accepts("ba") and ecma_pattern("^(?ms:a.^b)$").accepts("a\nb")
    border = ecma_pattern(r"^(?i:\bk\b)$")
    assert border.accepts("K") and border.accepts("\u212a")
    assert ecma_pattern(r"(?i:a\b)").accepts("A") and not ecma_pattern(r"(?i:a\b)").accepts("a\u017f")
    assert ecma_pattern(r"a\b").accepts("a\u017f")


@pytest.mark.parametrize(
    ("pattern", "valid", "invalid"),
    [
        ("(?i)^ab$", ["AB", "aB"], ["abc"]),
        ("^a(?i)b$", ["aB", "ab"], ["AB"]),
        ("^(?:(?i)a|b)c$", ["Ac", "Bc"], ["aC"]),
        ("^(?s)a.$", ["a\n"], ["b\n"]),
    ],
)
def test_modifiers_of_others_are_read_with_a_warning(
    pattern: str, valid: list[str], invalid: list[str]
) -> None:
    with pytest.warns(PatternWarning, match="no group of ECMA-262; it is read as in .NET and Java"):
        language = ecma_pattern(pattern)
    assert [text for text in (*valid, *invalid) if language.accepts(text)] == valid


def test_hostile_patterns() -> None:
    for pattern in (
        "(" * 100_000 + ")" * 100_000,
        "(?=" * 20_000 + ")" * 20_000,
        "(?:" * 3000 + "a" + ")*" * 3000,
    ):
        with pytest.raises(UnsupportedPatternError, match="nested too deeply"):
            ecma_pattern(pattern)
    with pytest.raises(BudgetExceeded, match="the pattern"):
        ecma_pattern("(?:a{1000}){1000}" + "b" * 200, Budget(positions=10_000))
    with pytest.raises(ConstraintError, match="is a str"):
        ecma_pattern(b"a")  # type: ignore[arg-type]
    assert ecma_pattern(f"^{'a' * 50_000}").accepts("a" * 50_001)


def test_look_behind_of_any_width_by_its_definition() -> None:
    texts = ["".join(letters) for length in range(6) for letters in itertools.product("abc", repeat=length)]
    for inner in ("ab*", "a|bb", "a?b?", "(?:ab)+|c", "c|^", "^c|ab"):
        before = re.compile(rf"(?:{inner})\Z")
        for sign in "=!":
            language = ecma_pattern(rf"(?<{sign}{inner})c")
            for text in texts:
                places = (before.search(text[:at]) is not None for at, c in enumerate(text) if c == "c")
                assert language.accepts(text) == any(found == (sign == "=") for found in places), (
                    inner,
                    text,
                )


# --- anchors cost nothing -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "pattern", ["^[a-z0-9_-]{1,64}$", "^(a|b)$", "(^a$)|(^b|c$)", "((?:^(?:ab*$)))", "a", "^$", "^"]
)
def test_anchors_are_resolved(pattern: str) -> None:
    kinds = {node.op for node in ecma_pattern(pattern).expr.walk()}
    assert kinds.isdisjoint({Op.SCOPE, Op.BEHIND, Op.COMPLEMENT, Op.INTERSECT})


# --- properties ---------------------------------------------------------------------------------------


def _holds(ranges: Ranges | None, code: int) -> bool:
    assert ranges is not None
    return any(low <= code <= high for low, high in ranges)


def test_properties_are_those_of_unicodedata() -> None:
    codes = [code for code in range(0, MAX_CODE_POINT + 1, 173) if not 0xD800 <= code <= 0xDFFF]
    for code in [*range(0x250), *codes]:
        character = chr(code)
        category = unicodedata.category(character)
        assert _holds(general_category(category), code)
        assert _holds(general_category("Letter"), code) == (category[0] == "L")
        assert _holds(general_category("P"), code) == (category[0] == "P")
        assert _holds(general_category("LC"), code) == (category in ("Lu", "Ll", "Lt"))
        assert _holds(binary_property("Assigned"), code) == (category != "Cn")
        assert _holds(binary_property("Uppercase"), code) == character.isupper()
        assert _holds(binary_property("XIDC"), code) == ("_" + character).isidentifier()
    assert general_category("letter") is None
    assert binary_property("Changes_When_NFKC_Casefolded") is None
    assert general_category("Cs") == ()


# --- patterns out of real schemas ---------------------------------------------------------------------


def real_patterns() -> list[str]:
    found: set[str] = set()
    with gzip.open(SHARED / "maskbench" / "dev.jsonl.gz", "rt") as lines:
        for line in lines:
            stack = [json.loads(line)["schema"]]
            while stack:
                part = stack.pop()
                if isinstance(part, list):
                    stack += part
                elif isinstance(part, dict):
                    stack += part.values()
                    names = part.get("patternProperties")
                    found |= set(names) if isinstance(names, dict) else set()
                    found |= {part["pattern"]} if isinstance(part.get("pattern"), str) else set()
    return sorted(found)


@pytest.mark.skipif(not SHARED.exists(), reason="the schemas are not here")
def test_all_patterns_of_real_schemas() -> None:
    patterns = real_patterns()
    assert len(patterns) > 500
    rng = random.Random(7)
    seconds, compared, matching = [], 0, 0
    for pattern in patterns:
        began = time.process_time()
        content = ecma_pattern(pattern)
        written = json_string(content, spelling="any")
        seconds.append(time.process_time() - began)
        for text, expected in _python_says(pattern, rng):
            assert content.accepts(text) == expected, (pattern, text)
            assert written.accepts(escape(text, rng)) == expected, (pattern, text)
            compared, matching = compared + 1, matching + expected
    assert compared > 2000 and matching > 1000
    assert sorted(seconds)[len(seconds) // 2] < 0.01


def _python_says(pattern: str, rng: random.Random) -> Iterator[tuple[str, bool]]:
    """Texts near a pattern on which ``re`` does the same as ECMA-262."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            twin = re.compile(python_twin(pattern), re.ASCII)
        except re.error:
            return
        texts = near(pattern, 0, rng, 8)
    for text in texts:
        if text.isascii() and not re.search(r"[\n\r\x1c-\x1f]", text):
            yield text, twin.search(text) is not None


@pytest.mark.skipif(not SHARED.exists(), reason="the suite is not here")
def test_the_official_suite() -> None:
    [path] = SHARED.glob("json-schema-test-suite/**/optional/ecmascript-regex.json")
    checked = 0
    for group in json.loads(path.read_text("utf-8")):
        pattern = group["schema"].get("pattern")
        for test in group["tests"] if pattern is not None else []:
            if isinstance(test["data"], str):
                assert ecma_pattern(pattern).accepts(test["data"]) == test["valid"], (pattern, test)
                checked += 1
    assert checked > 50
