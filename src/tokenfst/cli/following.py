"""What may follow a text on the way into a language: characters where its bytes are UTF-8, bytes where not.

The automaton is about bytes; a person asks about characters. So the live bytes are followed to the ends of
the UTF-8 sequences that they begin: at most 17,500 looks at the automaton, a few milliseconds, and the answer
is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Any

from tokenfst.automata.language import Language
from tokenfst.cli.terminal import shown_character

Range = tuple[int, int]

_ASCII_END = 0x80
_LEADS = range(0xC2, 0xF5)
_CONTINUATIONS = range(0x80, 0xC0)
_SURROGATES = (0xD800, 0xDFFF)
_LAST = 0x10FFFF
_SHOWN_RANGES = 12
_ESCAPED = frozenset("\\[]^-")


@dataclass(frozen=True, slots=True)
class Following:
    """``ends``: the text may end here. ``characters``: code points that may follow, as ascending ranges, both
    ends included. ``others``: bytes that may follow and begin no character that may, ascending."""

    ends: bool
    characters: tuple[Range, ...]
    others: bytes

    def as_json(self) -> dict[str, Any]:
        """The value in JSON."""
        return {
            "end": self.ends,
            "characters": [[chr(first), chr(last)] for first, last in self.characters],
            "bytes": list(self.others),
        }

    def __str__(self) -> str:
        parts = []
        if self.characters:
            parts.append(character_class(self.characters))
        parts += [f"\\x{byte:02x}" for byte in self.others[:_SHOWN_RANGES]]
        if len(self.others) > _SHOWN_RANGES:
            parts.append(f"… ({len(self.others)} bytes)")
        if self.ends:
            parts.append("the end of the text")
        return f"{', '.join(parts[:-1])} or {parts[-1]}" if len(parts) > 1 else "".join(parts) or "nothing"


def following(language: Language, prefix: bytes) -> Following:
    """What may follow ``prefix``, which is whole in characters. Nothing if no word of the language begins
    so."""
    live, ends = language.next_bytes(prefix)
    points: list[Range] = [(byte, byte) for byte in live if byte < _ASCII_END]
    others = bytearray()
    for byte in live:
        if byte < _ASCII_END:
            continue
        found = _sequences(language, prefix, bytes((byte,))) if byte in _LEADS else []
        points += found
        if not found:
            others.append(byte)
    return Following(ends, tuple(_merged(points)), bytes(others))


def _sequences(language: Language, prefix: bytes, begun: bytes) -> list[Range]:
    """The code points whose UTF-8 begins with ``begun`` and may follow, ascending."""
    live, _ = language.next_bytes(prefix + begun)
    last = len(begun) + 1 == (2 if begun[0] < 0xE0 else 3 if begun[0] < 0xF0 else 4)
    found: list[Range] = []
    for byte in live:
        if byte not in _CONTINUATIONS:
            continue
        data = begun + bytes((byte,))
        if not last:
            found += _sequences(language, prefix, data)
            continue
        try:
            point = ord(data.decode())
        except UnicodeDecodeError:
            continue
        found.append((point, point))
    return _merged(found)


def _merged(ranges: list[Range]) -> list[Range]:
    merged: list[Range] = []
    for first, last in ranges:
        if merged and merged[-1][1] + 1 == first:
            merged[-1] = (merged[-1][0], last)
        else:
            merged.append((first, last))
    return merged


def character_class(ranges: tuple[Range, ...]) -> str:
    r"""Characters as a regular expression writes them: ``[0-9]``, ``[^"\\]``, or one in quotation marks."""
    if len(ranges) == 1 and ranges[0][0] == ranges[0][1]:
        return f'"{shown_character(chr(ranges[0][0]))}"'
    outside = _complement(ranges)
    if not outside:
        return "any character"
    sign, shown = ("^", outside) if len(outside) < len(ranges) else ("", ranges)
    text = "".join(_shown_range(*each) for each in shown[:_SHOWN_RANGES])
    return f"[{sign}{text}{'…' if len(shown) > _SHOWN_RANGES else ''}]"


def _complement(ranges: tuple[Range, ...]) -> tuple[Range, ...]:
    """All other characters. Surrogates are none."""
    split = sorted([*ranges, _SURROGATES])
    edges = [(0, -1), *split, (_LAST + 1, _LAST)]
    return tuple((left[1] + 1, right[0] - 1) for left, right in pairwise(edges) if left[1] + 1 < right[0])


def _shown_range(first: int, last: int) -> str:
    ends = [("\\" if chr(end) in _ESCAPED else "") + shown_character(chr(end)) for end in (first, last)]
    if first == last:
        return ends[0]
    return "".join(ends) if first + 1 == last else "-".join(ends)
