r"""Character classes of Python's ``re``: the code points, and the shared expression for one of them.

The idea: a class is a set of code points as ranges, exactly as ``re`` understands it, and one leaf of the expression
graph: a byte set if it is ASCII (or the pattern is bytes), a word if it is one character, otherwise a minimal UTF-8
automaton. Equal classes share one ``Expr`` object, while the cache has it.

The sets are exact because the running Python is asked, and no tables of our own are used. ``\d \w \s`` are what ``re``
finds in a string of all code points. Ignoring case follows ``re``'s compiler: a character c is looked up as lower(c)
among the lowered members of the class and their extra cases (``re._casefix``), with the interpreter's own mappings.
Classes with members above U+FFFF that ignore case are matched by ``re`` itself, against all code points: its compiler
has rules of its own there.

Cost: about 40 ms once for the string of all code points and 10-20 ms a category, when first needed; below half a
millisecond for a new class; a dictionary look-up for a known one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst.automata.characters.utf8 import (
    MAX_CODE_POINT,
    Ranges,
    negate,
    normalize,
    utf8_dfa,
    without_surrogates,
)
from tokenfst.automata.expressions.expression import EMPTY, Expr, byte_set, literal, machine

_sre: Any = import_module("_sre")
_constants: Any = import_module("re._constants")
_EXTRA_CASES: dict[int, tuple[int, ...]] = import_module("re._casefix")._EXTRA_CASES  # noqa: SLF001  # re keeps them nowhere else

LITERAL = _constants.LITERAL
NOT_LITERAL = _constants.NOT_LITERAL
RANGE = _constants.RANGE
NEGATE = _constants.NEGATE
CATEGORY = _constants.CATEGORY
ANY = _constants.ANY
IN = _constants.IN
_CATEGORIES: dict[Any, tuple[str, bool]] = {
    _constants.CATEGORY_DIGIT: ("d", False),
    _constants.CATEGORY_NOT_DIGIT: ("d", True),
    _constants.CATEGORY_SPACE: ("s", False),
    _constants.CATEGORY_NOT_SPACE: ("s", True),
    _constants.CATEGORY_WORD: ("w", False),
    _constants.CATEGORY_NOT_WORD: ("w", True),
}

TEXT = 1 << 16
"""A flag besides those of ``re``: the pattern is a str, so characters are code points and not bytes."""

# As plain ints: the operators of re.RegexFlag take microseconds.
_IGNORECASE, _UNICODE, _DOTALL = int(re.IGNORECASE), int(re.UNICODE), int(re.DOTALL)
_CLASS_FLAGS = TEXT | _IGNORECASE | _UNICODE | _DOTALL
"""The flags on which the meaning of a class depends."""


_BLOCK = 256

ClassItem = tuple[Any, Any]
"""A member of a class as ``re._parser`` writes it: (operator, argument)."""


def leaf(op: Any, argument: Any, flags: int) -> Expr:
    """The shared expression for one character of the class (``op``, ``argument``) under ``flags``."""
    return _leaf(op, tuple(argument) if op is IN else argument, flags & _CLASS_FLAGS)


def members(op: Any, argument: Any, flags: int) -> Ranges:
    """The code points (or bytes) of a class; surrogates are included, as in ``re``."""
    return _members(op, tuple(argument) if op is IN else argument, flags & _CLASS_FLAGS)


@lru_cache(maxsize=4096)
def _leaf(op: Any, argument: Any, flags: int) -> Expr:
    return character_set(_members(op, argument, flags), bool(flags & TEXT))


@lru_cache(maxsize=4096)
def character_set(ranges: Ranges, text: bool) -> Expr:
    """The shared expression for one character of ``ranges``: code points if ``text`` is set, otherwise bytes."""
    if text:
        ranges = without_surrogates(ranges)
    if not ranges:
        return EMPTY
    if text and ranges[-1][1] > 0x7F:
        low, high = ranges[0]
        if len(ranges) == 1 and low == high:
            return literal(chr(low).encode())
        return machine(utf8_dfa(ranges))
    bits = 0
    for low, high in ranges:
        bits |= (1 << (high + 1)) - (1 << low)
    return byte_set(bits)


@lru_cache(maxsize=4096)
def _members(op: Any, argument: Any, flags: int) -> Ranges:
    limit = MAX_CODE_POINT if flags & TEXT else 0xFF
    if op is ANY:
        return ((0, limit),) if flags & _DOTALL else negate(((10, 10),), limit)
    if op is LITERAL or op is NOT_LITERAL:
        ranges: Ranges = ((argument, argument),)
        if flags & _IGNORECASE and is_cased(argument, flags):
            ranges = _recased(ranges, (), flags)
        return negate(ranges, limit) if op is NOT_LITERAL else ranges
    negated = argument[0][0] is NEGATE
    items = argument[1:] if negated else argument
    if flags & _IGNORECASE:
        ranges = _ignoring_case(items, flags)
    else:
        ranges = normalize(pair for op, value in items for pair in _plain_member(op, value, flags))
    return negate(ranges, limit) if negated else ranges


def _plain_member(op: Any, argument: Any, flags: int) -> Ranges:
    if op is LITERAL:
        return ((argument, argument),)
    if op is RANGE:
        return (argument,)
    letter, negated = _CATEGORIES[argument]
    ranges = category(letter, bool(flags & _UNICODE))
    return negate(ranges, MAX_CODE_POINT if flags & TEXT else 0xFF) if negated else ranges


# --- categories ---------------------------------------------------------------------------------------


@lru_cache(maxsize=1)
def every_character() -> str:
    """The string of all code points in ascending order, surrogates included."""
    codes = np.arange(MAX_CODE_POINT + 1, dtype="<u4")
    return codes.tobytes().decode("utf-32-le", "surrogatepass")


def changed_characters(edit: Callable[[str], str]) -> dict[int, tuple[int, ...]]:
    """The characters that ``edit`` changes, with their results. Blocks that it does not change contain none."""
    changed: dict[int, tuple[int, ...]] = {}
    for begin in range(0, MAX_CODE_POINT + 1, _BLOCK):
        block = every_character()[begin : begin + _BLOCK]
        if edit(block) != block:
            changed |= {ord(each): tuple(map(ord, to)) for each in block if (to := edit(each)) != each}
    return changed


def _scan(pattern: str, flags: int) -> Ranges:
    """The code points that the character class ``pattern`` matches, by trying them all."""
    found = re.compile(f"{pattern}+", flags).finditer(every_character())
    return tuple((match.start(), match.end() - 1) for match in found)


@lru_cache(maxsize=8)
def category(letter: str, unicode: bool) -> Ranges:
    r"""The code points of ``\d``, ``\s`` or ``\w``, with Unicode's meaning or ASCII's."""
    if unicode:
        return _scan(f"\\{letter}", 0)
    matcher = re.compile(f"\\{letter}", re.ASCII)
    return normalize((code, code) for code in range(128) if matcher.match(chr(code)))


# --- ignoring case ------------------------------------------------------------------------------------


def is_cased(code: int, flags: int) -> bool:
    """Whether ignoring case can make a difference to the character ``code``."""
    return bool((_sre.unicode_iscased if flags & _UNICODE else _sre.ascii_iscased)(code))


_Codes = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class _Cases:
    """``cased``: the characters that ignoring case makes a difference to, ascending. ``codes``: those and what they
    become. By their places among ``codes``: those that lowering changes, and into which; those that have extra cases,
    and which.
    """

    cased: _Codes
    codes: _Codes
    upper: _Codes
    lower: _Codes
    base: _Codes
    extra: _Codes
    cuts: _Codes
    """The positions at which a range of other characters may begin or end."""


@lru_cache(maxsize=2)
def _case_table(unicode: bool) -> _Cases:
    if unicode:
        everything, step = every_character(), 1024
        blocks = range(0, len(everything), step)
        parts = ((at, everything[at : at + step]) for at in blocks)
        candidates = [
            at + k for at, part in parts if part.lower() != part or part.upper() != part for k in range(step)
        ]
        lowered = {code: _sre.unicode_tolower(code) for code in candidates if _sre.unicode_iscased(code)}
    else:
        lowered = {code: _sre.ascii_tolower(code) for code in range(128) if _sre.ascii_iscased(code)}
    changed = {code: to for code, to in lowered.items() if code != to}
    extra = [(code, other) for code, others in _EXTRA_CASES.items() for other in others] if unicode else []
    codes = np.unique([*lowered, *changed.values(), *(code for pair in extra for code in pair)])

    def places(found: Iterable[int]) -> _Codes:
        return np.searchsorted(codes, np.fromiter(found, np.int64))

    return _Cases(
        np.array(list(lowered), np.int64),
        codes,
        places(changed),
        places(changed.values()),
        places(code for code, _ in extra),
        places(other for _, other in extra),
        np.union1d(codes, codes + 1),
    )


def _inside(codes: _Codes, ranges: Ranges) -> npt.NDArray[np.bool_]:
    """Which of ``codes`` are in ``ranges``."""
    bounds = np.array(ranges, np.int64).reshape(-1, 2) + np.array((0, 1))
    inside: npt.NDArray[np.bool_] = np.searchsorted(bounds.ravel(), codes, side="right") % 2 == 1
    return inside


def _recased(literals: Ranges, categories: Ranges, flags: int) -> Ranges:
    """Every character whose lower case is a lower case of ``literals``, an extra case of one, or in ``categories``."""
    cases = _case_table(bool(flags & _UNICODE))
    given = _inside(cases.codes, literals)
    found = given.copy()
    found[cases.upper] = False
    found[cases.lower[given[cases.upper]]] = True
    found[cases.extra[found[cases.base]]] = True
    found |= _inside(cases.codes, categories)
    found[cases.upper] = found[cases.lower]
    plain = normalize((*literals, *categories))
    bounds = (np.array(plain, np.int64).reshape(-1, 2) + np.array((0, 1))).ravel()
    at = np.searchsorted(cases.cuts, bounds)
    others = cases.cuts[np.minimum(at, len(cases.cuts) - 1)] != bounds
    cuts = np.insert(cases.cuts, at[others], bounds[others])
    member = _inside(cuts, plain)
    member[np.searchsorted(cuts, cases.codes)] = found
    edges = cuts[np.flatnonzero(np.diff(member, prepend=False))]
    pairs = zip(edges[::2].tolist(), (edges[1::2] - 1).tolist(), strict=True)
    return tuple(pairs)


def _ignoring_case(items: tuple[ClassItem, ...], flags: int) -> Ranges:
    categories: list[tuple[int, int]] = []
    literals: list[tuple[int, int]] = []
    for op, value in items:
        (categories if op is CATEGORY else literals).extend(_plain_member(op, value, flags))
    literal_ranges = normalize(literals)
    if literal_ranges and literal_ranges[-1][1] > 0xFFFF:
        mode = re.UNICODE if flags & _UNICODE else re.ASCII
        return _scan(f"[{''.join(map(_spelled, items))}]", re.IGNORECASE | mode)
    if not _inside(_case_table(bool(flags & _UNICODE)).cased, literal_ranges).any():
        return normalize((*literal_ranges, *categories))
    return _recased(literal_ranges, normalize(categories), flags)


def _spelled(item: ClassItem) -> str:
    """A member of a class as a pattern."""
    op, argument = item
    if op is CATEGORY:
        letter, negated = _CATEGORIES[argument]
        return "\\" + (letter.upper() if negated else letter)
    return "-".join(f"\\U{code:08x}" for code in (argument if op is RANGE else (argument,)))
