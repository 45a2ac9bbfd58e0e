"""The header and the symbol tables of OpenFst's binary files.

Every size is compared with the size of the file first.
"""

from __future__ import annotations

import os
import struct
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

from tokenfst.common.plurals import counted
from tokenfst.errors import FstIOError

MAGIC = struct.pack("<i", 2125659606)
SYMBOLS_MAGIC = struct.pack("<i", 2125658996)
VERSION = 2
ISYMBOLS, OSYMBOLS, ALIGNED = 1, 2, 4

_Read = TypeVar("_Read")
Symbols = tuple[str, list[tuple[str, int]]]
"""The name of a table, and its symbols with their labels."""


class Header(NamedTuple):
    """The header of an OpenFst file."""

    kind: bytes
    arc_type: bytes
    version: int
    flags: int
    properties: int
    start: int
    num_states: int
    num_arcs: int


def read_file(path: str | os.PathLike[str], reader: Callable[[bytes], _Read]) -> _Read:
    """The result of ``reader`` for the bytes of a file. The name of the file is added to the message of an
    ``FstIOError``.
    """
    try:
        return reader(Path(path).read_bytes())
    except FstIOError as error:
        raise FstIOError(f"{os.fspath(path)}: {error}") from error


class Cursor:
    """A sequential reader of a file's bytes. Reading beyond the end raises ``FstIOError``."""

    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def header(self) -> Header:
        """Read the header, including its magic number."""
        magic = self._take(len(MAGIC))
        if magic == MAGIC[::-1]:
            raise FstIOError(
                "it was written on a machine of the other byte order (big-endian): only little-endian is read"
            )
        if magic != MAGIC:
            raise FstIOError("it is no OpenFst file: it does not begin with OpenFst's magic number")
        return Header(self._text(), self._text(), *self.unpack("<iiQqqq"))

    def symbols(self) -> Symbols:
        """Read a symbol table."""
        if self._take(len(SYMBOLS_MAGIC)) != SYMBOLS_MAGIC:
            raise FstIOError("a table of symbols is announced and is not there: the file is damaged")
        name = self._string()
        _, count = self.unpack("<qq")
        if not 0 <= count <= len(self.data):
            raise FstIOError(f"a table of symbols announces {counted(count, 'symbol')}: the file is damaged")
        return name, [(self._string(), self.unpack("<q")[0]) for _ in range(count)]

    def unpack(self, form: str) -> tuple[int, ...]:
        """Read numbers."""
        return struct.unpack(form, self._take(struct.calcsize(form)))

    def text(self) -> str:
        """Read a length-prefixed string."""
        try:
            return self._text().decode()
        except UnicodeDecodeError as error:
            raise FstIOError("a key is no UTF-8: the file is damaged") from error

    def skip(self, length: int) -> None:
        """Skip ``length`` bytes."""
        self._take(length)

    def _string(self) -> str:
        try:
            return self._text().decode()
        except UnicodeDecodeError as error:
            raise FstIOError("a table of symbols holds what is no UTF-8: the file is damaged") from error

    def _text(self) -> bytes:
        (length,) = self.unpack("<i")
        return self._take(length)

    def _take(self, length: int) -> bytes:
        end = self.at + length
        if length < 0 or end > len(self.data):
            raise FstIOError("it ends too early: the file is damaged")
        taken, self.at = self.data[self.at : end], end
        return taken
