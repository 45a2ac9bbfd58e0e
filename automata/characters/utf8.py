r"""Sets of code points as minimal deterministic automata over UTF-8 bytes (convention 1), and the reverse conversion.

UTF-8 is a code of four forms (``codes``). "Any character" takes 10 states, ``\w`` a few hundred. Surrogates, overlong
forms and code points above U+10FFFF have no path. Rejected: splitting each range into sequences of byte ranges and
determinizing their union, which creates states that ``spell`` shares from the beginning.

The reverse, ``characters``, converts an automaton over bytes to one over characters: for each state at which a
character may start, the targets of each lead byte and its continuations, as ranges.

Cost: linear in the number of blocks that a range cuts, plus one table of (states, 256); in reverse, linear in states ×
64.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

import tokenfst._native as _native
from tokenfst.automata.characters.codes import Form, Steps, spell
from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.expressions.tables import EMPTY_DFA
from tokenfst.errors import BudgetExceeded

Ranges = tuple[tuple[int, int], ...]
"""A set of code points (or bytes): disjoint, ascending ranges, both ends included, with gaps between them."""

MAX_CODE_POINT = 0x10FFFF
SURROGATES: Ranges = ((0xD800, 0xDFFF),)


def _bytes(first: int, last: int) -> tuple[bytes, ...]:
    return tuple(bytes([byte]) for byte in range(first, last + 1))


_CONTINUATION = _bytes(0x80, 0xBF)
ASCII = Form(0x0, 0x7F, 0x0, (_bytes(0x00, 0x7F),))
MULTIBYTE = (
    Form(0x80, 0x7FF, 0x0, (_bytes(0xC0, 0xDF), _CONTINUATION)),
    Form(0x800, 0xFFFF, 0x0, (_bytes(0xE0, 0xEF), _CONTINUATION, _CONTINUATION)),
    Form(0x10000, MAX_CODE_POINT, 0x0, (_bytes(0xF0, 0xF4), _CONTINUATION, _CONTINUATION, _CONTINUATION)),
)


def normalize(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """The union of ranges, which may be in any order and overlap."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def negate(ranges: Ranges, limit: int = MAX_CODE_POINT) -> Ranges:
    """All numbers from 0 to ``limit`` that are not in ``ranges``."""
    gaps: list[tuple[int, int]] = []
    begin = 0
    for low, high in ranges:
        if low > begin:
            gaps.append((begin, low - 1))
        begin = high + 1
    if begin <= limit:
        gaps.append((begin, limit))
    return tuple(gaps)


def overlap(left: Ranges, right: Ranges) -> Ranges:
    """The intersection of both sets. Linear in the number of ranges."""
    common: list[tuple[int, int]] = []
    i = j = 0
    while i < len(left) and j < len(right):
        low, high = max(left[i][0], right[j][0]), min(left[i][1], right[j][1])
        if low <= high:
            common.append((low, high))
        if left[i][1] < right[j][1]:
            i += 1
        else:
            j += 1
    return tuple(common)


def without_surrogates(ranges: Ranges) -> Ranges:
    """``ranges`` without U+D800 to U+DFFF, which UTF-8 text cannot contain."""
    return overlap(ranges, negate(SURROGATES))


def utf8_dfa(ranges: Ranges) -> Dfa:
    """The minimal automaton of the UTF-8 encodings of the code points in ``ranges``, without surrogates.

    State 0 is DEAD, 1 the start, 2 the only accepting state. For an empty set the start is DEAD.
    """
    ranges = without_surrogates(ranges)
    if not ranges:
        return EMPTY_DFA
    steps = tuple((low, high, 2) for low, high in ranges)
    return spell((steps, ()), (False, True), (ASCII, *MULTIBYTE))


# --- and back -----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Characters:
    """A byte automaton converted to one over characters: its words are those that are valid UTF-8.

    State 1 is the start, 0 is DEAD.
    """

    steps: tuple[Steps, ...]
    """The transitions of each state k >= 1, at index k - 1."""
    accepting: tuple[bool, ...]
    whole: bool
    """Whether every word is valid UTF-8. If not, acceptance may be unreachable from some states."""


def single_characters(dfa: Dfa) -> Ranges | None:
    """The set of characters, if every word of ``dfa``, a trim automaton over bytes, is a single character; otherwise
    None.
    """
    [ends] = np.nonzero(dfa.accepting)
    return None if len(ends) != 1 or dfa.table[ends].any() else _single_characters(dfa)


@lru_cache(maxsize=1024)
def _single_characters(dfa: Dfa) -> Ranges | None:
    read = characters(dfa)
    if not read.whole or len(read.steps) != 2 or any(target != 2 for _, _, target in read.steps[0]):
        return None
    return normalize((low, high) for low, high, _ in read.steps[0])


def characters(dfa: Dfa, limit: int | None = None, seconds: float = math.inf) -> Characters:
    """The automaton over characters of ``dfa``, a trim automaton over bytes.

    Raises ``BudgetExceeded("states")`` for more than ``limit`` ranges of characters, because that many states would
    spell them, and ``BudgetExceeded("seconds")`` if it takes more than ``seconds``.
    """
    made = _native.characters(
        dfa.classes, dfa.table, dfa.accepting, dfa.start, (1 << 64) - 1 if limit is None else limit, seconds
    )
    if made is None:
        assert limit is not None
        raise BudgetExceeded("states", limit, "the characters of a byte automaton")
    return Characters(*made)
