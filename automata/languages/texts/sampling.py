r"""Random words of a language, by a lazy walk that prefers readable text.

The walk starts at the start state and follows live bytes, preferring bytes that continue readable text. There is always
one until a word is complete, because machines are trim (convention 3). After a random length the walk takes a shortest
path to acceptance. Then every byte of that path is replaced by a random one if the result is still a word, so that
``[0-9a-f]{32}`` does not end in zeros. Only states near the walk are computed, so ``(\w{1,300} ){1,3000}`` is sampled
at once. Rejected: uniform sampling by counting words, which needs all states and, for text, mostly yields control
characters.

The result depends on the language and the generator only.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable
from typing import Protocol

_STOP = 0.15
"""The probability of stopping where a word is complete and could continue."""
_SOFT_LENGTHS = 48
"""The walk heads for acceptance after a random length below this."""
_WEIGHTS = (6.0, 3.0, 1.0)
"""The weights of three groups: letters and digits; other printable ASCII; bytes of other characters."""
_UNPRINTABLE, _NO_TEXT = 3, 4
"""The next two groups, which are used only if no other byte is live."""


class Random(Protocol):
    """The common interface of ``random.Random`` and ``numpy.random.Generator``: numbers in [0, 1)."""

    def random(self) -> float:
        """The next number."""


class Walkable(Protocol):
    """The required interface of a language."""

    def accepts(self, word: bytes) -> bool:
        """Whether a word is in it."""

    def next_bytes(self, prefix: bytes) -> tuple[bytes, bool]:
        """The bytes that lead on, and whether the prefix is a word."""


def sample(language: Walkable, complete: Callable[[bytes], bytes], rng: Random, limit: int | None) -> bytes:
    """A word of a non-empty language. ``complete`` returns a shortest completion of a live prefix.

    With ``limit``, a word of at most this many bytes; there must be one. Quadratic in the length of the word.
    """
    soft = _below(rng, _SOFT_LENGTHS if limit is None else min(limit + 1, _SOFT_LENGTHS))
    prefix = b""
    text = _Text()
    while True:
        live, accepted = language.next_bytes(prefix)
        late = len(prefix) >= soft
        if not live or (text.whole and accepted and (late or rng.random() < _STOP)):
            word = prefix
            break
        if text.whole and late:
            word = prefix + complete(prefix)
            break
        byte = text.choose(live, rng)
        text.feed(byte)
        prefix += bytes((byte,))
    if limit is not None and len(word) > limit:
        prefix, word = _within(prefix, complete, limit)
    return _vary(language, word, len(prefix), rng)


def _within(prefix: bytes, complete: Callable[[bytes], bytes], limit: int) -> tuple[bytes, bytes]:
    """The longest beginning of ``prefix`` that a word of at most ``limit`` bytes continues, and such a word.

    length + distance to acceptance never decreases along a walk, so bisection finds it.
    """
    low, high = 0, len(prefix)
    best = complete(b"")
    while low < high:
        middle = (low + high + 1) // 2
        end = complete(prefix[:middle])
        if middle + len(end) <= limit:
            low, best = middle, end
        else:
            high = middle - 1
    return prefix[:low], prefix[:low] + best


def _vary(language: Walkable, word: bytes, begin: int, rng: Random) -> bytes:
    """``word`` with its bytes from ``begin`` on exchanged for random ones, each only if the whole stays
    accepted.
    """
    text = _Text()
    for byte in word[:begin]:
        text.feed(byte)
    for at in range(begin, len(word)):
        live, _ = language.next_bytes(word[:at])
        varied = word[:at] + bytes((text.choose(live, rng),)) + word[at + 1 :]
        if language.accepts(varied):
            word = varied
        text.feed(word[at])
    return word


class _Text:
    """The position of a walk in a UTF-8 text. Once the bytes are not UTF-8 any more, each counts as complete."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")()
        self.whole = True

    def feed(self, byte: int) -> None:
        try:
            self.whole = self._decoder.decode(bytes((byte,))) != ""
        except UnicodeDecodeError:
            self._decoder.reset()
            self.whole = True

    def choose(self, live: bytes, rng: Random) -> int:
        """One of the live bytes: first by group, then evenly."""
        groups: list[list[int]] = [[] for _ in range(_NO_TEXT + 1)]
        for byte in live:
            groups[self._group(byte)].append(byte)
        chosen = groups[_UNPRINTABLE] or groups[_NO_TEXT]
        point = rng.random() * sum(weight for weight, group in zip(_WEIGHTS, groups, strict=False) if group)
        for weight, group in zip(_WEIGHTS, groups, strict=False):
            if group and point >= 0:
                chosen = group
                point -= weight
        return chosen[_below(rng, len(chosen))]

    def _group(self, byte: int) -> int:
        """The group of a byte here; the first ones are those of ``_WEIGHTS``."""
        if self.whole and byte < 0x80:
            character = chr(byte)
            return 0 if character.isalnum() else 1 if character.isprintable() else _UNPRINTABLE
        state = self._decoder.getstate()
        if state[0] == b"\xed" and byte > 0x9F:  # a surrogate; the decoder notices one byte later
            return _NO_TEXT
        try:
            done = self._decoder.decode(bytes((byte,)))
        except UnicodeDecodeError:
            return _NO_TEXT
        finally:
            self._decoder.setstate(state)
        return 2 if not done or done.isprintable() else _UNPRINTABLE


def _below(rng: Random, limit: int) -> int:
    """An integer in 0..limit-1."""
    return min(int(rng.random() * limit), limit - 1)
