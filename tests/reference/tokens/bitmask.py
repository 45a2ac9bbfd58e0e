"""Slow twins of the bitmask kernel: one logit at a time, on bit patterns."""

from __future__ import annotations

import numpy as np

MINUS_INF = {"float32": 0xFF800000, "float16": 0xFC00, "bfloat16": 0xFF80}
INF = {"float32": 0x7F800000, "float16": 0x7C00, "bfloat16": 0x7F80}
SIGN = {"float32": 0x80000000, "float16": 0x8000, "bfloat16": 0x8000}


def bit(words, token: int) -> bool:
    return bool(int(words[token // 32]) >> (token % 32) & 1)


def is_nan(pattern: int, kind: str) -> bool:
    return (pattern & ~SIGN[kind]) > INF[kind]


def apply(patterns, bitmask, kind: str, vocab_size: int | None = None, indices=None):
    """What masking gives: the new bit patterns, and the first (row, column) of a NaN at an allowed token."""
    out = [[int(pattern) for pattern in row] for row in patterns]
    nan = None
    for row in range(len(out)) if indices is None else indices:
        for column in range(len(out[row])):
            known = column < 32 * len(bitmask[row]) and (vocab_size is None or column < vocab_size)
            if not known or not bit(bitmask[row], column):
                out[row][column] = MINUS_INF[kind]
            elif nan is None and is_nan(out[row][column], kind):
                nan = row, column
    return np.array(out, dtype=np.uint32 if kind == "float32" else np.uint16).reshape(np.shape(patterns)), nan
