"""``SymbolTable``: the symbols of labels, and OpenFst's binary and text files of them."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path

from tokenfst.automata.openfst.headers import SYMBOLS_MAGIC, Cursor, read_file
from tokenfst.common.arguments import checked
from tokenfst.common.digits import natural
from tokenfst.common.plurals import counted
from tokenfst.errors import FstArgError, FstIOError

NO_SYMBOL = -1
"""The label of a symbol that is not in the table."""
_MOST = 2**63 - 2
"""The greatest label of a table. A file also stores the next free label, as a signed number of 8 bytes."""


class SymbolTable:
    """A bijection between symbols and labels, in insertion order."""

    def __init__(self, name: str = "<unspecified>") -> None:
        self._name = name
        self._labels: dict[str, int] = {}
        self._symbols: dict[int, str] = {}
        self._next = 0

    @checked
    def add_symbol(self, symbol: str, key: int = NO_SYMBOL) -> int:
        """Add ``symbol`` and return its label: its existing one, else ``key``, else the next free one.

        Raises ``FstArgError`` if ``key`` belongs to another symbol.
        """
        if symbol in self._labels:
            return self._labels[symbol]
        key = self._next if key == NO_SYMBOL else key
        if not 0 <= key <= _MOST:
            raise FstArgError(f"add_symbol: a label is from 0 to 2^63 - 2, not {key}")
        if key in self._symbols:
            raise FstArgError(f"add_symbol: label {key} stands for {self._symbols[key]!r} already")
        self._labels[symbol] = key
        self._symbols[key] = symbol
        self._next = max(self._next, key + 1)
        return key

    @checked
    def add_table(self, other: SymbolTable) -> None:
        """Add all symbols of another table, with new labels."""
        for symbol in other._labels:
            self.add_symbol(symbol)

    @checked
    def find(self, key: int | str) -> str | int:
        """The symbol of a label ("" if there is none), or the label of a symbol (-1 if there is none)."""
        return self._labels.get(key, NO_SYMBOL) if isinstance(key, str) else self._symbols.get(key, "")

    @checked
    def member(self, key: int | str) -> bool:
        """Whether a label or symbol is in the table."""
        return key in self._labels if isinstance(key, str) else key in self._symbols

    @checked
    def get_nth_key(self, pos: int) -> int:
        """The label at a position of the table, or -1 beyond the last one."""
        keys = list(self._symbols)
        return keys[pos] if 0 <= pos < len(keys) else NO_SYMBOL

    def available_key(self) -> int:
        """The next free label."""
        return self._next

    def num_symbols(self) -> int:
        """The number of symbols."""
        return len(self._labels)

    def name(self) -> str:
        """The table's name."""
        return self._name

    def set_name(self, name: str) -> None:
        """Rename the table."""
        self._name = name

    def copy(self) -> SymbolTable:
        """An independent copy."""
        made = SymbolTable(self._name)
        made._labels, made._symbols, made._next = dict(self._labels), dict(self._symbols), self._next
        return made

    def __iter__(self) -> Iterator[tuple[int, str]]:
        return iter(self._symbols.items())

    def __len__(self) -> int:
        return len(self._labels)

    def __eq__(self, other: object) -> bool:
        return self._symbols == other._symbols if isinstance(other, SymbolTable) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"<SymbolTable {self._name!r} of {counted(len(self), 'symbol')}>"

    # --- files ----------------------------------------------------------------------------------------

    def write_to_string(self) -> bytes:
        """The table in OpenFst's binary format."""
        parts = [SYMBOLS_MAGIC, _text(self._name), struct.pack("<qq", self._next, len(self))]
        for key, symbol in self:
            parts += [_text(symbol), struct.pack("<q", key)]
        return b"".join(parts)

    @classmethod
    @checked
    def read_from_string(cls, data: bytes) -> SymbolTable:
        """The table in the bytes of a file. Raises ``FstIOError`` if they are invalid."""
        return _read(Cursor(data), cls)

    @checked
    def write(self, path: str | os.PathLike[str]) -> None:
        """Write a file in OpenFst's binary format."""
        Path(path).write_bytes(self.write_to_string())

    @classmethod
    @checked
    def read(cls, path: str | os.PathLike[str]) -> SymbolTable:
        """The table in a file in OpenFst's binary format. Raises ``FstIOError``, ``OSError``."""
        return read_file(path, cls.read_from_string)

    @checked
    def write_text(self, path: str | os.PathLike[str]) -> None:
        """Write a text file, with one symbol and its label on each line. Raises ``FstIOError`` for a symbol that is
        empty or contains white space.
        """
        for _, symbol in self:
            if len(symbol.split()) != 1:
                raise FstIOError(f"write_text: the symbol {symbol!r} is empty or has white space in it")
        Path(path).write_text("".join(f"{symbol}\t{key}\n" for key, symbol in self), encoding="utf-8")

    @classmethod
    @checked
    def read_text(cls, path: str | os.PathLike[str]) -> SymbolTable:
        """Read a text file. Raises ``FstIOError``, which names the faulty line."""
        made = cls(os.fspath(path))
        try:
            lines = Path(path).read_text(encoding="utf-8").splitlines()
        except UnicodeDecodeError as error:
            raise FstIOError(f"{path}: byte {error.start} is no UTF-8") from error
        for at, line in enumerate(lines, 1):
            words = line.split()
            if not words:
                continue
            if len(words) != 2 or not words[1].isdecimal() or (label := natural(words[1], _MOST)) > _MOST:
                raise FstIOError(f"{path}, line {at}: a line is a symbol and its label, not {line[:60]!r}")
            if made.member(words[0]) or made.member(label):
                raise FstIOError(f"{path}, line {at}: the symbol or label is there already: {line[:60]!r}")
            made.add_symbol(words[0], label)
        return made


@checked
def merge_symbol_table(lhs: SymbolTable, rhs: SymbolTable) -> SymbolTable:
    """A new table with the symbols of both.

    Those of ``lhs`` keep their labels; those of ``rhs`` alone keep theirs where they are free, and get new ones
    elsewhere. Linear.
    """
    made = lhs.copy()
    new = [(key, symbol) for key, symbol in rhs if not lhs.member(symbol)]
    for key, symbol in new:
        if not lhs.member(key):
            made.add_symbol(symbol, key)
    for key, symbol in new:
        if lhs.member(key):
            made.add_symbol(symbol)
    return made


@checked
def compact_symbol_table(symbols: SymbolTable) -> SymbolTable:
    """A new table with the labels 0, 1, 2, ..., in the order of the given labels."""
    made = SymbolTable(symbols.name())
    for _, symbol in sorted(symbols):
        made.add_symbol(symbol)
    return made


def read_symbols(cursor: Cursor) -> SymbolTable:
    """The table at a position of a file."""
    return _read(cursor, SymbolTable)


def _read(cursor: Cursor, cls: type[SymbolTable]) -> SymbolTable:
    name, symbols = cursor.symbols()
    made = cls(name)
    for symbol, key in symbols:
        if made.member(symbol) or made.member(key) or key < 0:
            raise FstIOError(f"a table of symbols has {symbol!r} or label {key} twice: the file is damaged")
        made.add_symbol(symbol, key)
    return made


def _text(value: str) -> bytes:
    data = value.encode()
    return struct.pack("<i", len(data)) + data
