"""Sets of code points as minimal deterministic automata over UTF-8 bytes (convention 1).

The idea: code points below one lead byte form a block of 64, 64² or 64³, and a set cuts every block into 64
smaller ones. Blocks of equal content become one state, bottom up, so the automaton is minimal and acyclic
by construction: "any character" takes 10 states, ``\\w`` a few hundred. Surrogates, overlong forms and code
points above U+10FFFF have no path. Rejected: splitting each range into sequences of byte ranges and
determinizing their union, which makes the states that this construction shares and then has to find out
that they are equal.

Cost: linear in the number of blocks that a range cuts, plus one table of (states, 256).
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tokenfst.automata.expression import Dfa

Ranges = tuple[tuple[int, int], ...]
"""A set of code points (or bytes): disjoint, ascending ranges, both ends included, with gaps between them."""

MAX_CODE_POINT = 0x10FFFF
SURROGATES: Ranges = ((0xD800, 0xDFFF),)

_DEAD, _START, _ACCEPT = 0, 1, 2
# (first lead byte, last lead byte, continuation bytes, least code point, greatest code point)
_LEADS = (
    (0x00, 0x7F, 0, 0x0, 0x7F),
    (0xC2, 0xDF, 1, 0x80, 0x7FF),
    (0xE0, 0xEF, 2, 0x800, 0xFFFF),
    (0xF0, 0xF4, 3, 0x10000, MAX_CODE_POINT),
)


def normalize(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """The set that the pairs, in any order and overlapping or not, make together."""
    merged: list[tuple[int, int]] = []
    for low, high in sorted(pairs):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(high, merged[-1][1]))
        else:
            merged.append((low, high))
    return tuple(merged)


def negate(ranges: Ranges, limit: int = MAX_CODE_POINT) -> Ranges:
    """Everything from 0 to ``limit`` that is not in ``ranges``."""
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
    """What is in both sets. Linear in the number of ranges."""
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
    """``ranges`` less U+D800 to U+DFFF, which no UTF-8 text holds."""
    return overlap(ranges, negate(SURROGATES))


def utf8_dfa(ranges: Ranges) -> Dfa:
    """The minimal automaton of the UTF-8 encodings of the code points in ``ranges``; surrogates are left out.

    State 0 is DEAD, 1 the start, 2 the only accepting state. Of an empty set the start is DEAD.
    """
    rows: list[tuple[int, ...]] = [(), (), ()]
    interned: dict[tuple[int, ...], int] = {}
    blocks: dict[tuple[int, Ranges], int] = {}

    def block(depth: int, inside: Ranges) -> int:
        """The state before ``depth`` continuation bytes that spell one of ``inside`` (in its block)."""
        if not inside:
            return _DEAD
        if depth == 0:
            return _ACCEPT
        known = blocks.get((depth, inside))
        if known is None:
            row = tuple(block(depth - 1, part) for part in _cut(inside, 64 ** (depth - 1), 64))
            known = blocks[depth, inside] = interned.setdefault(row, len(rows))
            if known == len(rows):
                rows.append(row)
        return known

    start = np.zeros(256, np.uint32)
    ranges = without_surrogates(ranges)
    for first, last, depth, least, greatest in _LEADS:
        inside = overlap(ranges, ((least, greatest),))
        size = 64**depth
        base = least - least % size
        relative = tuple((low - base, high - base) for low, high in inside)
        for number, part in enumerate(_cut(relative, size, last - first + 1)):
            start[first + number] = block(depth, part)

    if not start.any():
        return Dfa(np.zeros(256, np.uint8), np.zeros((1, 1), np.uint32), np.zeros(1, np.bool_), _DEAD)
    dense = np.zeros((len(rows), 256), np.uint32)
    dense[_START] = start
    if len(rows) > 3:
        dense[3:, 0x80:0xC0] = rows[3:]
    numbers: dict[bytes, int] = {}
    columns = np.ascontiguousarray(dense.T)
    classes = np.array([numbers.setdefault(column.tobytes(), len(numbers)) for column in columns], np.uint8)
    table = np.ascontiguousarray(columns[[int(np.argmax(classes == c)) for c in range(len(numbers))]].T)
    accepting = np.zeros(len(rows), np.bool_)
    accepting[_ACCEPT] = True
    for array in (classes, table, accepting):
        array.flags.writeable = False
    return Dfa(classes, table, accepting, _START)


def _cut(ranges: Ranges, size: int, count: int) -> list[Ranges]:
    """``ranges`` in ``count`` blocks of ``size`` code points, each relative to the beginning of its block."""
    parts: list[Ranges] = [()] * count
    whole: Ranges = ((0, size - 1),)
    for low, high in ranges:
        (first, begin), (last, end) = divmod(low, size), divmod(high, size)
        if first == last:
            parts[first] += ((begin, end),)
        else:
            parts[first] += ((begin, size - 1),)
            parts[first + 1 : last] = [whole] * (last - first - 1)
            parts[last] += ((0, end),)
    return parts
