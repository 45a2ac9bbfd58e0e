"""Labels of OpenFst arcs (convention 2): 0 is ε, byte b has label b + 1, token t has label t + 1.

Only this module knows the shift. All functions accept Python ints and, element-wise, numpy arrays. Labels are shifted
because byte 0 is an ordinary byte: with label = byte it would be ε. pynini's own string compiler uses label = byte;
``label_kinds`` reads such machines.
"""

from __future__ import annotations

import re
from typing import TypeVar

import numpy as np
import numpy.typing as npt

EPSILON_LABEL = 0
"""The label of ε."""

BYTE_ZERO_LABEL = 1
"""The label of byte 0."""

LAST_BYTE_LABEL = 256
"""The label of byte 255."""

_BYTE_SYMBOL = re.compile("0x([0-9a-fA-F]{2})")

_Labels = TypeVar("_Labels", int, npt.NDArray[np.integer])


def byte_label(byte: _Labels) -> _Labels:
    """The label of a byte 0..255."""
    return byte + 1


def label_byte(label: _Labels) -> _Labels:
    """The byte of a label 1..256."""
    return label - 1


def token_label(token: _Labels) -> _Labels:
    """The label of a token id."""
    return token + 1


def label_token(label: _Labels) -> _Labels:
    """The token id of a label of at least 1."""
    return label - 1


def symbol_bytes(symbol: str) -> bytes | None:
    """The bytes of a symbol: UTF-8 for a single character, the byte for ``0x`` and two hexadecimal digits; None for any
    other.
    """
    if len(symbol) == 1:
        return None if "\ud800" <= symbol <= "\udfff" else symbol.encode()
    named = _BYTE_SYMBOL.fullmatch(symbol)
    return bytes.fromhex(named[1]) if named else None
