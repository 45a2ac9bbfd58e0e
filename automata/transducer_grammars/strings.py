"""pynini's string notation: square brackets contain a label number or the name of a symbol.

``[BOS]`` and ``[EOS]`` have pynini's labels. Other names get labels from 0x100000 on, in the order in which this
process first uses them, as in pynini. So do not write machines with such labels to files for other processes, unless
these use the names in the same order.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from tokenfst.automata.transducer_operations.building import characters, labels_of
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.common.arguments import refuse
from tokenfst.errors import FstArgError

TokenType = str | SymbolTable
BOS, EOS = 0xF8FE, 0xF8FF
_FIRST = 0x100000
_PART = re.compile(r"\\(.)|\[((?:[^\[\]\\]|\\.)*)\]|([^\[\]\\]+)|(.)", re.DOTALL)
_names: dict[str, int] = {"BOS": BOS, "EOS": EOS}
_next = itertools.count(_FIRST)
_default: ContextVar[TokenType] = ContextVar("the token type of strings", default="byte")


@contextmanager
def default_token_type(token_type: TokenType) -> Iterator[None]:
    """Within the ``with`` block, the token type of strings for which none is given: "byte", "utf8" or a symbol table.
    It applies to the current thread or asynchronous task.
    """
    if not isinstance(token_type, SymbolTable) and token_type not in ("byte", "utf8"):
        refuse("default_token_type", "token_type", token_type, "'byte', 'utf8' or a SymbolTable")
    before = _default.set(token_type)
    try:
        yield
    finally:
        _default.reset(before)


def type_or_default(token_type: TokenType | None) -> TokenType:
    """The given token type, or the current default."""
    return _default.get() if token_type is None else token_type


def bracketed(text: str | bytes, token_type: TokenType | None = None) -> list[int]:
    r"""The labels of a string with brackets. ``\[``, ``\]`` and ``\\`` stand for the characters themselves.

    Raises ``FstArgError`` for brackets and backslashes without a partner, and for labels out of range.
    """
    token_type = type_or_default(token_type)
    if isinstance(token_type, SymbolTable):
        return labels_of(text, token_type)
    if isinstance(text, bytes):
        text = text.decode("latin-1") if token_type == "byte" else characters(text)
        plain = (lambda part: labels_of(part.encode("latin-1"), "byte")) if token_type == "byte" else None
    else:
        plain = None
    out = list[int]()
    for part in _PART.finditer(text):
        escaped, name, run, wrong = part.groups()
        if wrong is not None:
            raise FstArgError(
                f"place {part.start()} of {text!r:.60}: {wrong!r} has no partner; write \\{wrong}"
            )
        if name is not None:
            out += [_label(each) for each in name.split()]
        else:
            piece = escaped if run is None else run
            out += plain(piece) if plain else labels_of(piece, token_type)
    return out


def _label(name: str) -> int:
    try:
        label = int(name, 0)
    except ValueError:
        if name not in _names:
            _names.setdefault(name, next(_next))  # two threads that meet one name at once get one label
        return _names[name]
    if not 0 < label < 2**31:
        raise FstArgError(f"[{name}]: a label in brackets is from 1 to 2^31 - 1")
    return label


def name_of(label: int) -> str | None:
    """The bracketed name that has a label."""
    return next((name for name, each in _names.items() if each == label), None)


def escape(text: str) -> str:
    """The text with brackets and backslashes escaped."""
    return re.sub(r"([\[\]\\])", r"\\\1", text)
