"""Slow twin of ``tokenizers/segmentation/byte_pairs.py``: the encoding itself, merge by merge."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise


def encode(piece: bytes, ranks: Mapping[bytes, int]) -> list[int]:
    """Byte-pair encoding of one piece of text, as tiktoken does it: the lowest rank first, leftmost of equals."""
    if piece in ranks:
        return [ranks[piece]]
    parts = [piece[i : i + 1] for i in range(len(piece))]
    while len(parts) > 1:
        found = [(ranks.get(a + b), i) for i, (a, b) in enumerate(pairwise(parts))]
        known = [(rank, i) for rank, i in found if rank is not None]
        if not known:
            break
        _, at = min(known)
        parts[at : at + 2] = [parts[at] + parts[at + 1]]
    return [ranks[part] for part in parts]


def train(text: bytes, merges: int) -> list[bytes]:
    """The tokens of a byte-pair encoding by rank: 256 bytes, then the merges of the most frequent pairs of ``text``."""
    tokens = [bytes([byte]) for byte in range(256)]
    parts = [text[i : i + 1] for i in range(len(text))]
    for _ in range(merges):
        count: dict[bytes, int] = {}
        pairs = {}
        for a, b in pairwise(parts):
            count[a + b] = count.get(a + b, 0) + 1
            pairs.setdefault(a + b, (a, b))
        fresh = [data for data in count if data not in tokens]
        if not fresh:
            break
        new = max(fresh, key=lambda data: (count[data], data))
        first, second = pairs[new]
        tokens.append(new)
        merged: list[bytes] = []
        for part in parts:
            if merged and merged[-1] == first and part == second:
                merged[-1] = new
            else:
                merged.append(part)
        parts = merged
    return tokens
