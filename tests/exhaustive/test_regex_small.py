r"""All small patterns against all short texts: ``regex`` accepts exactly what ``re.fullmatch`` does.

The letters are one word character and one that is none, so that ``\b`` has something to tell apart; a
second world has the newline instead. Sizes count the nodes of the pattern.
"""

from __future__ import annotations

import itertools
import re
import warnings
from collections.abc import Iterator
from functools import cache

import pytest

from reference.expressions.expressions import matches
from tokenfst.automata.regex.translate import expression, regex
from tokenfst.errors import PatternSyntaxError, UnsupportedPatternError

QUANTIFIERS = ("*", "?", "{2}", "{1,}")
LOOKS = ("(?=", "(?!", "(?<=", "(?<!")
WORDS = ("a", "-", ".", "^", "$", r"\b", r"\B")
LINES = ("a", "\n", ".", "^", "$", r"\Z")


@cache
def patterns(atoms: tuple[str, ...], size: int) -> tuple[str, ...]:
    """Every pattern of ``size`` nodes over the atoms; each is one term and can be put into another."""
    if size == 1:
        return atoms
    found = []
    for inner in patterns(atoms, size - 1):
        found += (f"(?:{inner}){quantifier}" for quantifier in QUANTIFIERS)
        found += (f"{look}{inner})" for look in LOOKS)
    for left in range(1, size - 1):
        for x, y in itertools.product(patterns(atoms, left), patterns(atoms, size - 1 - left)):
            found += (f"(?:{x}{y})", f"(?:{x}|{y})")
    return tuple(found)


def texts(letters: str, length: int) -> list[str]:
    return ["".join(word) for n in range(length + 1) for word in itertools.product(letters, repeat=n)]


def expressible(candidates: Iterator[str], flags: int = 0) -> Iterator[tuple[str, re.Pattern[str]]]:
    """The candidates that ``re`` compiles. Whatever it compiles, ``regex`` takes or refuses by name."""
    for pattern in candidates:
        try:
            compiled = re.compile(pattern, flags)
        except re.error:
            with pytest.raises(PatternSyntaxError):
                expression(pattern, flags)
            continue
        try:
            expression(pattern, flags)
        except UnsupportedPatternError as error:
            assert "look-behind" in error.message, pattern
            continue
        yield pattern, compiled


def check(candidates: Iterator[str], letters: str, length: int, flags: int = 0) -> int:
    words = [(text, text.encode()) for text in texts(letters, length)]
    number = 0
    for pattern, compiled in expressible(candidates, flags):
        number += 1
        language = regex(pattern, flags)
        got = [text for text, word in words if language.accepts(word)]
        assert got == [text for text, _ in words if compiled.fullmatch(text)], pattern
    return number


@pytest.mark.parametrize("size", [1, 2, 3, 4])
def test_all_small_patterns(size: int) -> None:
    assert check(iter(patterns(WORDS, size)), "a-", 6) >= len(WORDS) ** min(size, 3)


@pytest.mark.parametrize("flags", [0, re.MULTILINE, re.DOTALL])
def test_all_small_patterns_about_lines(flags: int) -> None:
    for size in (1, 2, 3, 4):
        assert check(iter(patterns(LINES, size)), "a\n", 5, flags) >= len(LINES) ** min(size, 3)


@pytest.mark.soak
@pytest.mark.parametrize(("letters", "atoms", "flags"), [("a-", WORDS, 0), ("a\n", LINES, re.MULTILINE)])
@pytest.mark.parametrize("part", range(8))
def test_all_larger_patterns(letters: str, atoms: tuple[str, ...], flags: int, part: int) -> None:
    # Python's matcher takes exponential time on loops in loops in loops.
    deep = re.compile(r"[*}]\)[*{].*\)[*{]")
    simple = (pattern for pattern in patterns(atoms, 5)[part::8] if not deep.search(pattern))
    assert check(simple, letters, 5, flags) > 5000


@pytest.mark.parametrize(("letters", "atoms", "flags"), [("a-", WORDS, 0), ("a\n", LINES, re.MULTILINE)])
def test_the_meaning_of_the_expression(letters: str, atoms: tuple[str, ...], flags: int) -> None:
    """Without the native core: the twin reads the expression itself."""
    words = [(text, text.encode()) for text in texts(letters, 4)]
    candidates = itertools.chain(*(patterns(atoms, n) for n in (1, 2)), patterns(atoms, 3)[::9])
    for pattern, compiled in expressible(candidates, flags):
        expr = expression(pattern, flags)
        for text, word in words:
            assert matches(expr, word) == bool(compiled.fullmatch(text)), (pattern, text)


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield
