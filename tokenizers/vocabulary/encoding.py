"""``BytePairEncoding``: how a byte-pair tokenizer makes tokens of a text, as far as a vocabulary knows it.

A text is split into pieces, match by match of a pattern. Each piece is at first one part for each byte. The two
adjacent parts whose merge has the lowest rank are merged, the leftmost first, until nothing can be merged. The parts
that are left are the tokens.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BytePairEncoding:
    """A split pattern and the merges.

    ``split_pattern``: the pattern, as tiktoken has it. ``merges``: the two parts of each merge, by rank: a line for
    each, with a space between them, in the characters of ``byte_level_alphabet`` (as ``merges.txt``, without its first
    line). ``None``: any two parts whose bytes are a token can be merged, with its id as the rank (tiktoken's form).
    """

    split_pattern: str
    merges: str | None = None


def byte_level_alphabet() -> dict[str, int]:
    """The characters of GPT-2's byte-level BPE, with the bytes that they stand for."""
    shown = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    hidden = [byte for byte in range(256) if byte not in set(shown)]
    return {chr(byte): byte for byte in shown} | {chr(256 + k): byte for k, byte in enumerate(hidden)}
