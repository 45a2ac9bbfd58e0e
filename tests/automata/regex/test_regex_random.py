"""Random patterns with real Unicode against ``re.fullmatch``, on texts near them."""

from __future__ import annotations

import random
import re
import warnings

from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from support.running.parts import in_parts

from reference.expressions.expressions import matches
from reference.expressions.near_texts import near
from tokenfst.automata.regex.translate import expression, regex
from tokenfst.errors import UnsupportedPatternError

ATOMS = [
    *(
        "a",
        "b",
        "-",
        "_",
        "0",
        r"\.",
        " ",
        r"\n",
        "k",
        "K",
        "s",
        "ſ",
        "é",
        "ß",
        "ς",
        "中",
        "😀",
        "𐐀",
        "ab",
        "é😀",
    ),
    *(".", r"\d", r"\D", r"\w", r"\W", r"\s", r"\S", "[a-z]", "[^a-z]", "[^a]", "[é-ю]", "[^é😀]", r"[\w-]"),
    *(r"[^\W\d]", "[k-t]", "[A-Z𐐀]", r"[^\n]", "[\u0080-\U0010ffff]"),
]
ZERO_WIDTH = ["^", "$", r"\b", r"\B", r"\A", r"\Z"]
QUANTIFIERS = ["*", "+", "?", "{2}", "{1,2}", "{,2}", "{2,}", "*?", "+?", "??", "{1,3}?"]
GROUPS = ["(?:", "(", "(?i:", "(?-i:", "(?s:", "(?m:", "(?a:"]
LOOKS = ["(?=", "(?!", "(?<=", "(?<!"]
FLAGS = [0, 0, re.IGNORECASE, re.MULTILINE, re.DOTALL, re.ASCII, re.IGNORECASE | re.ASCII | re.MULTILINE]


def extend(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    group = st.builds("{}{})".format, st.sampled_from(GROUPS), inner)
    return st.one_of(
        st.builds("{}{}".format, inner, inner),
        st.builds("{}|{}".format, inner, inner).map("(?:{})".format),
        st.builds("(?:{}){}".format, inner, st.sampled_from(QUANTIFIERS)),
        st.builds("{}{})".format, st.sampled_from(LOOKS), inner),
        group,
    )


PATTERNS = st.recursive(st.sampled_from(ATOMS) | st.sampled_from(ZERO_WIDTH), extend, max_leaves=7)
# Python's matcher takes exponential time on loops in loops in loops.
TOO_DEEP = re.compile(r"[*+}][^|]*\)[*+{][^|]*\)[*+{]")


def compiled(pattern: str, flags: int) -> re.Pattern[str]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            return re.compile(pattern, flags)
        except re.error:
            assume(False)
            raise


def compare(pattern: str, flags: int, seed: int) -> None:
    assume(not TOO_DEEP.search(pattern))
    oracle = compiled(pattern, flags)
    try:
        language = regex(pattern, flags)
    except UnsupportedPatternError as error:
        assert "look-behind" in error.message
        return
    for text in near(pattern, flags, random.Random(seed), 40):
        assert language.accepts(text) == bool(oracle.fullmatch(text)), (pattern, flags, text)


@given(PATTERNS, st.sampled_from(FLAGS), st.integers(0, 1 << 32))
@settings(max_examples=400, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_random_patterns(pattern: str, flags: int, seed: int) -> None:
    compare(pattern, flags, seed)


@in_parts(20, 1_000, PATTERNS, st.sampled_from(FLAGS), st.integers(0, 1 << 32))
def test_many_random_patterns(pattern: str, flags: int, seed: int) -> None:
    compare(pattern, flags, seed)


@given(PATTERNS, st.sampled_from(FLAGS), st.integers(0, 1 << 32))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_the_meaning_of_random_expressions(pattern: str, flags: int, seed: int) -> None:
    """Without the native core: the twin reads the expression itself."""
    assume(not TOO_DEEP.search(pattern))
    oracle = compiled(pattern, flags)
    try:
        expr = expression(pattern, flags)
    except UnsupportedPatternError:
        return
    for text in near(pattern, flags, random.Random(seed), 5, longest=6):
        assert matches(expr, text.encode()) == bool(oracle.fullmatch(text)), (pattern, flags, text)


BYTE_ATOMS = ["a", "b", "-", r"\x00", r"\xff", r"[\x80-\xff]", ".", r"\w", r"\W", r"\d", r"[^a]", r"\n", "k"]
BYTE_PATTERNS = st.recursive(st.sampled_from(BYTE_ATOMS) | st.sampled_from(ZERO_WIDTH), extend, max_leaves=6)


@given(BYTE_PATTERNS, st.sampled_from(FLAGS), st.integers(0, 1 << 32))
@settings(max_examples=200, deadline=None, suppress_health_check=[HealthCheck.filter_too_much])
def test_random_bytes_patterns(pattern: str, flags: int, seed: int) -> None:
    assume(not TOO_DEEP.search(pattern))
    source = pattern.encode()
    try:
        oracle = re.compile(source, flags)
    except re.error:
        assume(False)
    try:
        language = regex(source, flags)
    except UnsupportedPatternError:
        return
    rng = random.Random(seed)
    for _ in range(40):
        data = bytes(rng.choice(b"aabbkK-_0\n\x00\x80\xc3\xa9\xff") for _ in range(rng.randint(0, 6)))
        assert language.accepts(data) == bool(oracle.fullmatch(data)), (source, flags, data)
