"""The acceptors of ``pynini.lib.utf8``: parts of UTF-8 (RFC 3629) over bytes, each a copy of an ``Fst`` that is made
when it is first used.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING

from tokenfst.automata.transducer_grammars.byte import one_of
from tokenfst.automata.transducer_grammars.machines import Fst, union

if TYPE_CHECKING:
    CONTINUATION_BYTE: Fst
    LEADING_BYTE: Fst
    SINGLE_BYTE: Fst
    VALID_BYTE: Fst
    VALID_UTF8_CHAR: Fst
    VALID_UTF8_CHAR_REGIONAL_INDICATOR_SYMBOL: Fst

__all__ = [
    "CONTINUATION_BYTE", "LEADING_BYTE", "SINGLE_BYTE", "VALID_BYTE", "VALID_UTF8_CHAR",
    "VALID_UTF8_CHAR_REGIONAL_INDICATOR_SYMBOL",
]  # fmt: skip

_LATER = (0x80, 0xBF)
_FORMS = [
    [(0x01, 0x7F)],
    [(0xC2, 0xDF), _LATER],
    [(0xE0, 0xE0), (0xA0, 0xBF), _LATER],
    [(0xE1, 0xEC), _LATER, _LATER],
    [(0xED, 0xED), (0x80, 0x9F), _LATER],
    [(0xEE, 0xEF), _LATER, _LATER],
    [(0xF0, 0xF0), (0x90, 0xBF), _LATER, _LATER],
    [(0xF1, 0xF3), _LATER, _LATER, _LATER],
    [(0xF4, 0xF4), (0x80, 0x8F), _LATER, _LATER],
]
"""The encodings of characters: for each byte the first and the last that may stand there."""


def _range(first: int, last: int) -> Fst:
    return one_of(bytes(range(first, last + 1)))


def _form(ranges: list[tuple[int, int]]) -> Fst:
    made = _range(*ranges[0])
    for each in ranges[1:]:
        made.concat(_range(*each))
    return made


_MAKERS: dict[str, Callable[[], Fst]] = {
    "SINGLE_BYTE": lambda: _range(0x01, 0x7F),
    "LEADING_BYTE": lambda: _range(0xC2, 0xF4),
    "CONTINUATION_BYTE": lambda: _range(*_LATER),
    "VALID_BYTE": lambda: one_of(bytes([*range(0x01, 0xC0), *range(0xC2, 0xF5)])),
    "VALID_UTF8_CHAR": lambda: union(*map(_form, _FORMS)).optimize(),
    "VALID_UTF8_CHAR_REGIONAL_INDICATOR_SYMBOL": lambda: _form(
        [(0xF0, 0xF0), (0x9F, 0x9F), (0x87, 0x87), (0xA6, 0xBF)]
    ),
}


@cache
def _made(name: str) -> Fst:
    return _MAKERS[name]()


def __getattr__(name: str) -> Fst:
    if name in _MAKERS:
        return _made(name).copy()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
