"""What may follow a text on the way into a language: characters where its bytes are UTF-8, bytes where not.

The automaton is about bytes; a person asks about characters. So the live bytes are followed to the ends of
the UTF-8 sequences that they begin: at most 17,500 looks at the automaton, a few milliseconds, and the answer
is exact.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenfst.automata.characters.utf8 import Ranges, normalize
from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.drawing import bytes_label
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.readable import character_class
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

_ASCII_END = 0x80
_LEADS = range(0xC2, 0xF5)
_CONTINUATION = (0x80, 0xBF)
_SECOND = {0xE0: (0xA0, 0xBF), 0xED: (0x80, 0x9F), 0xF0: (0x90, 0xBF), 0xF4: (0x80, 0x8F)}
"""The bytes after a first byte, where UTF-8 does not allow all."""
_LONG = 500
"""Bytes of a prefix that is walked thousands of times without hesitation."""
_GLANCE = Budget(states=250_000, bytes=256 << 20, seconds=1.0)
"""What making a table may cost, after a longer prefix."""


@dataclass(frozen=True, slots=True)
class Following:
    """``ends``: the text may end here. ``characters``: code points that may follow, as ascending ranges, both
    ends included. ``others``: bytes that may follow and begin no character that may, ascending."""

    ends: bool
    characters: Ranges
    others: bytes

    def as_json(self) -> dict[str, Any]:
        """The value in JSON."""
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


def following(language: Language | Grammar, prefix: bytes) -> tuple[Following, bytes | None]:
    """What may follow ``prefix``, which is whole in characters, and a shortest way on to a word of the
    language.

    After a long prefix in a language too large for a table, characters beyond ASCII are told by their first
    bytes only, and no way (``None``), since each look would walk the prefix again.
    """
    if len(prefix) > _LONG:
        rest = _residual(language, prefix)
        if rest is None:
            live, ends = language.next_bytes(prefix)
            ascii_part = normalize((byte, byte) for byte in live if byte < _ASCII_END)
            others = bytes(byte for byte in live if byte >= _ASCII_END)
            return Following(ends, ascii_part, others), None
        language, prefix = rest, b""
    return _continuations(language, prefix), _ending(language, prefix)


def _residual(language: Language | Grammar, prefix: bytes) -> Language | None:
    """The language of what follows ``prefix``, if the automaton is small enough to be made in full."""
    if isinstance(language, Grammar) or language.automaton.has_marks:
        return None
    try:
        dfa = language.with_budget(_GLANCE).determinize()
    except BudgetExceeded:
        return None
    state, table, classes = dfa.start, dfa.table, dfa.classes
    for byte in prefix:
        state = int(table[state, classes[byte]])
    return Language.from_dfa(Dfa(classes, table, dfa.accepting, state))


def _ending(language: Language | Grammar, prefix: bytes) -> bytes | None:
    begun = Language.literal(prefix) + Language.any_bytes()
    try:
        if language.automaton.has_marks:  # no finite machine can be made of it
            word = language.automaton.completed(prefix)
            return None if word is None else word[len(prefix) :]
        word = (language & begun).witness()
    except BudgetExceeded:
        return None
    return None if word is None else word[len(prefix) :]


def _continuations(language: Language | Grammar, prefix: bytes) -> Following:
    live, ends = language.next_bytes(prefix)
    points: list[tuple[int, int]] = [(byte, byte) for byte in live if byte < _ASCII_END]
    others = bytearray()
    for byte in live:
        if byte < _ASCII_END:
            continue
        found: Ranges = ()
        if byte in _LEADS:
            missing = 1 if byte < 0xE0 else 2 if byte < 0xF0 else 3
            found = _sequences(language, prefix, bytes((byte,)), byte & (63 >> missing), missing)
        points += found
        if not found:
            others.append(byte)
    return Following(ends, normalize(points), bytes(others))


def _sequences(language: Language | Grammar, prefix: bytes, begun: bytes, value: int, missing: int) -> Ranges:
    """The code points that may follow and whose UTF-8 begins with ``begun``, ascending. ``value``: the bits
    of these bytes; ``missing``: how many bytes are to come."""
    low, high = _SECOND.get(begun[0], _CONTINUATION) if len(begun) == 1 else _CONTINUATION
    live = [byte for byte in language.next_bytes(prefix + begun)[0] if low <= byte <= high]
    if missing == 1:
        if len(live) == high - low + 1:  # what is most common, and all that a text of any characters asks for
            return ((value << 6 | low & 63, value << 6 | high & 63),)
        return normalize((value << 6 | byte & 63, value << 6 | byte & 63) for byte in live)
    found: list[tuple[int, int]] = []
    for byte in live:
        found += _sequences(language, prefix, begun + bytes((byte,)), value << 6 | byte & 63, missing - 1)
    return normalize(found)


def _byte_class(data: bytes) -> str:
    return bytes_label(sum(1 << byte for byte in data))
