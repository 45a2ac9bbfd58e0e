"""``Explanation``: where a text leaves a language, and what was expected there, as characters where bytes are UTF-8.

The automaton reads bytes, but people think in characters. So the live bytes are followed to the ends of the UTF-8
sequences that they start: at most 17,652 steps of the automaton, a few milliseconds, and the answer is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tokenfst.automata.characters.utf8 import Ranges, normalize
from tokenfst.automata.languages.display.drawing import bytes_label
from tokenfst.automata.languages.display.readable import cells, character_class
from tokenfst.automata.languages.texts.walk import Walk

_ASCII_END = 0x80
_LEADS = range(0xC2, 0xF5)
_CONTINUATION = (0x80, 0xBF)
_SECOND = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}
"""For first bytes after which UTF-8 does not allow all continuation bytes, the allowed range."""
_SHOWN = 60

NextBytes = Callable[[bytes], tuple[bytes, bool]]
"""A function from a suffix to the bytes that may follow it, and whether the text may end there."""


@dataclass(frozen=True, slots=True)
class Following:
    """What may follow a prefix.

    ``ends``: the text may end here. ``characters``: code points that may follow, as ascending ranges, inclusive.
    ``others``: other bytes that may follow, which start none of these characters, ascending.
    """

    ends: bool
    characters: Ranges
    others: bytes

    def as_json(self) -> dict[str, Any]:
        """The value as JSON data."""
        return {
            "end": self.ends,
            "characters": [list(each) for each in self.characters],
            "bytes": list(self.others),
        }

    def __str__(self) -> str:
        parts = []
        if self.characters:
            parts.append(character_class(self.characters))
        if self.others:
            parts.append(f"{'byte' if len(self.others) == 1 else 'bytes'} {_byte_class(self.others)}")
        if self.ends:
            parts.append("the end of the text")
        return f"{', '.join(parts[:-1])} or {parts[-1]}" if len(parts) > 1 else "".join(parts)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Whether a text is in a language; true in a boolean context if it is.

    If it is not: ``place`` is the byte offset at which it leaves the language (its length, if it ends too early), at
    the start of a character; ``character`` the same in characters; ``expected`` what could stand there (``None``: the
    language is empty); ``ending`` a shortest completion of the text before, if known; ``rules`` the grammar rules that
    are open there, outermost first.
    """

    text: bytes
    accepted: bool
    place: int = 0
    character: int = 0
    expected: Following | None = None
    ending: bytes | None = None
    rules: tuple[str, ...] | None = None

    def __bool__(self) -> bool:
        return self.accepted

    def __str__(self) -> str:
        """In words, with a caret under the place."""
        if self.accepted:
            return "the text is in the language"
        if self.expected is None:
            return "the language has no text at all"
        shown = [piece for _, piece in cells(self.text)]
        begin = max(0, self.character - _SHOWN)
        line = "".join(shown[begin : self.character])
        indent = len(line) + (begin > 0)
        line = ("…" if begin else "") + line + "".join(shown[self.character : self.character + _SHOWN])
        line += "…" if len(shown) > self.character + _SHOWN else ""
        early = self.place == len(self.text)
        where = f"the text {'stops too early, at' if early else 'leaves the language at'} byte {self.place:,}"
        if self.character != self.place:
            where += f" (character {self.character:,})"
        return f"{where}: expected {self.expected}\n  {line}\n  {' ' * indent}^"


def leaving(text: bytes, valid: int) -> tuple[int, int]:
    """The position, in bytes and in characters, at which a text leaves a language: the start of the character after its
    first ``valid`` bytes.
    """
    starts = [begin for begin, _ in cells(text)]
    character = sum(begin <= valid for begin in starts) - (valid < len(text))
    return (starts[character] if valid < len(text) else valid), character


def walked(walk: Walk, at: int) -> NextBytes:
    """The ``NextBytes`` of a configuration."""
    reached: dict[bytes, int] = {b"": at}
    seen: dict[int, tuple[bytes, bool]] = {}

    def next_bytes(way: bytes) -> tuple[bytes, bool]:
        here = reached.get(way)
        if here is None:
            here = walk.step(reached[way[:-1]], way[-1])
            assert here is not None, "only ways that lead on are asked for"
            reached[way] = here
        if here not in seen:
            live = sorted(byte for _, bytes_ in walk.arcs(here) for byte in bytes_)
            seen[here] = bytes(live), walk.accepting(here)
        return seen[here]

    return next_bytes


def following(next_bytes: NextBytes, *, whole: bool = True) -> Following:
    """What may follow a position between two characters. Unless ``whole``, characters beyond ASCII are given by their
    first bytes only, which takes one step.
    """
    live, ends = next_bytes(b"")
    points: list[tuple[int, int]] = [(byte, byte) for byte in live if byte < _ASCII_END]
    others = bytearray()
    for byte in live:
        if byte < _ASCII_END:
            continue
        found: Ranges = ()
        if whole and byte in _LEADS:
            missing = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
            found = _sequences(next_bytes, bytes((byte,)), byte & (63 >> missing), missing)
        points += found
        if not found:
            others.append(byte)
    return Following(ends, normalize(points), bytes(others))


def _sequences(next_bytes: NextBytes, begun: bytes, value: int, missing: int) -> Ranges:
    """The code points that may follow and whose UTF-8 begins with ``begun``, ascending. ``value``: the bits
    of these bytes; ``missing``: how many bytes are to come.
    """
    low, high = _SECOND.get(begun[0], _CONTINUATION) if len(begun) == 1 else _CONTINUATION
    live = [byte for byte in next_bytes(begun)[0] if low <= byte <= high]
    if missing == 1:
        if len(live) == high - low + 1:  # the most common case, and the only one for a text of any characters
            return ((value << 6 | low & 63, value << 6 | high & 63),)
        return normalize((value << 6 | byte & 63, value << 6 | byte & 63) for byte in live)
    found: list[tuple[int, int]] = []
    for byte in live:
        found += _sequences(next_bytes, begun + bytes((byte,)), value << 6 | byte & 63, missing - 1)
    return normalize(found)


def _byte_class(data: bytes) -> str:
    return bytes_label(sum(1 << byte for byte in data))
