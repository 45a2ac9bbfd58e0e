"""The acceptors of ``pynini.lib.byte``: classes of ASCII characters. Each is an ``Fst`` that is made when it is first
used, and a copy each time, so that changing one in place changes no other.

``BYTE`` is every byte but 0, ``SPACE`` the blank, tab, newline and carriage return, ``PUNCT`` the punctuation of
``string.punctuation``, ``GRAPH`` every visible character.
"""

from __future__ import annotations

import string
from functools import cache
from typing import TYPE_CHECKING

from tokenfst.automata.transducer_grammars.machines import Fst
from tokenfst.automata.transducers.arcs import Arc

if TYPE_CHECKING:
    ALNUM: Fst
    ALPHA: Fst
    BYTE: Fst
    DIGIT: Fst
    GRAPH: Fst
    HEX: Fst
    LOWER: Fst
    NOT_QUOTE: Fst
    NOT_SPACE: Fst
    PUNCT: Fst
    SPACE: Fst
    UPPER: Fst

_SPACE = b" \t\n\r"  # Python's string.whitespace has two more
_PUNCT = string.punctuation.encode()
_CLASSES = {
    "BYTE": bytes(range(1, 256)),
    "DIGIT": string.digits.encode(),
    "LOWER": string.ascii_lowercase.encode(),
    "UPPER": string.ascii_uppercase.encode(),
    "ALPHA": string.ascii_letters.encode(),
    "ALNUM": (string.ascii_letters + string.digits).encode(),
    "HEX": string.hexdigits.encode(),
    "SPACE": _SPACE,
    "NOT_SPACE": bytes(set(range(1, 256)) - set(_SPACE)),
    "NOT_QUOTE": bytes(set(range(1, 256)) - {ord('"')}),
    "PUNCT": _PUNCT,
    "GRAPH": string.ascii_letters.encode() + string.digits.encode() + _PUNCT,
}

__all__ = [
    "ALNUM", "ALPHA", "BYTE", "DIGIT", "GRAPH", "HEX", "LOWER", "NOT_QUOTE", "NOT_SPACE", "PUNCT", "SPACE", "UPPER",
]  # fmt: skip


def one_of(found: bytes) -> Fst:
    """The acceptor of one of some bytes."""
    made = Fst()
    made.add_states(2)
    made.set_start(0).set_final(1)
    for byte in sorted(set(found)):
        made.add_arc(0, Arc(byte, byte, made.kind.core.one(), 1))
    return made


@cache
def _made(name: str) -> Fst:
    return one_of(_CLASSES[name])


def __getattr__(name: str) -> Fst:
    if name in _CLASSES:
        return _made(name).copy()
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
