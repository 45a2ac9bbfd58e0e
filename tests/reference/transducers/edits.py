"""Slow twins of edits, equivalences and rational images: one pair of texts, one text, one word at a time."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Sequence

Arc = tuple[int, bytes, bytes, int]
"""State, what is read, what is written (one byte or none each), next state."""


def distance(left: Sequence[object], right: Sequence[object], transpositions: bool = False) -> int:
    """Levenshtein distance by dynamic programming; with transpositions, optimal string alignment."""
    rows = [[i + j if i * j == 0 else 0 for j in range(len(right) + 1)] for i in range(len(left) + 1)]
    for i in range(1, len(left) + 1):
        for j in range(1, len(right) + 1):
            rows[i][j] = min(
                rows[i - 1][j] + 1, rows[i][j - 1] + 1, rows[i - 1][j - 1] + (left[i - 1] != right[j - 1])
            )
            if (
                transpositions
                and min(i, j) > 1
                and left[i - 1] == right[j - 2]
                and left[i - 2] == right[j - 1]
            ):
                rows[i][j] = min(rows[i][j], rows[i - 2][j - 2] + 1)
    return rows[-1][-1]


# Status S of CaseFolding.txt (Unicode 14 and 15), the characters that have a full folding too.
_SIMPLE = {0x1E9E: 0xDF, 0x1FBC: 0x1FB3, 0x1FCC: 0x1FC3, 0x1FFC: 0x1FF3} | {
    code: code - 8 for begin in (0x1F88, 0x1F98, 0x1FA8) for code in range(begin, begin + 8)
}


def simple_fold(text: str) -> str:
    """Simple case folding, character by character."""
    return "".join(
        chr(_SIMPLE[ord(each)])
        if ord(each) in _SIMPLE
        else (each.casefold() if len(each.casefold()) == 1 else each)
        for each in text
    )


def canonical(text: str) -> str:
    return unicodedata.normalize("NFD", text)


def compatible(text: str) -> str:
    return unicodedata.normalize("NFKD", text)


def written(
    arcs: Iterable[Arc], start: int, finals: Iterable[int], words: Iterable[bytes], longest: int
) -> set[bytes]:
    """What a transducer writes on ``words``, as far as it has at most ``longest`` bytes."""
    arcs, finals, found = list(arcs), set(finals), set()
    for word in words:
        stack = [(start, 0, b"")]
        seen = set(stack)
        while stack:
            state, at, out = stack.pop()
            if at == len(word) and state in finals:
                found.add(out)
            for source, read, write, target in arcs:
                step = (target, at + len(read), out + write)
                if (
                    source == state
                    and word.startswith(read, at)
                    and len(step[2]) <= longest
                    and step not in seen
                ):
                    seen.add(step)
                    stack.append(step)
    return found
