"""FAR archives (machines under keys): reading and writing of OpenFst's types sttable, stlist and fst.

fst: a file with one machine, whose key is the file's name. stlist: alternating keys and machines, with an empty key at
the end. sttable: the same, followed by the number of entries, the offset of each, and the number again. Keys are
ascending in both. A machine is stored as in a separate file. An archive is read as a whole; a machine is decoded on
access. Linear; finding a key is O(log entries).
"""

from __future__ import annotations

import bisect
import os
import struct
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType

import numpy as np

from tokenfst.automata.openfst.headers import ISYMBOLS, MAGIC, OSYMBOLS, Cursor
from tokenfst.automata.transducers.checks import chosen
from tokenfst.automata.transducers.files import from_bytes, numeric, to_bytes
from tokenfst.automata.transducers.symbols import read_symbols
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import arc_type_named
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.common.plurals import counted
from tokenfst.errors import FstArgError, FstIOError, FstOpError

_MAGIC = {"sttable": 2125656924, "stlist": 5656924}
_VERSION = 1
_TYPES = ("default", "sttable", "stlist", "fst")


class FarReader:
    """The machines of one or more archives in the order of their keys, under pywrapfst's names.

    It has a current entry (``get_key``, ``get_fst``, ``next``, ``done``, ``reset``, ``find``) and can be iterated.
    Raises ``FstIOError`` for an invalid file.
    """

    def __init__(self, entries: list[tuple[str, bytes]], far_type: str, budget: Budget | None) -> None:
        self._entries, self._type, self._budget = entries, far_type, budget
        self._at = 0

    @classmethod
    @checked
    def open(cls, *sources: str | os.PathLike[str], budget: Budget | None = None) -> FarReader:
        """Open the archives in files."""
        if not sources:
            raise FstArgError("FarReader.open: no file was given")
        entries, types, arcs = list[tuple[str, bytes]](), set[str](), set[str]()
        for source in sources:
            try:
                far_type, found = _entries_of(Path(source).read_bytes(), os.fspath(source))
                arcs |= {_arc_type(data) for _, data in found}
            except FstIOError as error:
                raise FstIOError(f"{os.fspath(source)}: {error}") from error
            entries += found
            types.add(far_type)
        if len(arcs) > 1:
            raise FstIOError(f"the archives have machines of several arc types: {', '.join(sorted(arcs))}")
        entries.sort(key=lambda entry: entry[0].encode())
        return cls(entries, types.pop() if len(types) == 1 else "default", budget)

    def far_type(self) -> str:
        """The type of the archive: "sttable", "stlist" or "fst"."""
        return self._type

    def arc_type(self) -> str:
        """The arc type of the machines; "standard" where there are none."""
        return _arc_type(self._entries[0][1]) if self._entries else "standard"

    def done(self) -> bool:
        """Whether there is no current entry, because the last one was passed."""
        return self._at >= len(self._entries)

    def error(self) -> bool:
        """Always False: errors are exceptions."""
        return False

    def reset(self) -> None:
        """Return to the first entry."""
        self._at = 0

    def next(self) -> None:
        """Advance to the next entry."""
        self._at += 1

    @checked
    def find(self, key: str) -> bool:
        """Go to the entry of a key, or else to the next larger key; returns whether the key exists."""
        self._at = bisect.bisect_left(self._entries, key.encode(), key=lambda entry: entry[0].encode())
        return not self.done() and self._entries[self._at][0] == key

    def get_key(self) -> str:
        """The key of the current entry."""
        return self._entry()[0]

    def get_fst(self) -> VectorFst:
        """The machine of the current entry. Raises ``FstIOError``."""
        key, data = self._entry()
        try:
            return from_bytes(data, budget=self._budget)
        except FstIOError as error:
            raise FstIOError(f"the entry {key!r}: {error}") from error

    def __getitem__(self, key: str) -> VectorFst:
        if not self.find(key):
            raise KeyError(key)
        return self.get_fst()

    def __iter__(self) -> Iterator[tuple[str, VectorFst]]:
        while not self.done():
            yield self.get_key(), self.get_fst()
            self.next()

    def _entry(self) -> tuple[str, bytes]:
        if self.done():
            raise FstOpError("the archive is after its last entry: reset() goes back to the first")
        return self._entries[self._at]


class FarWriter:
    """An archive that is being written, under pywrapfst's names.

    The file exists after ``close``, or after a ``with`` block that ends without an error.
    """

    def __init__(self, source: str | os.PathLike[str], arc_type: str, far_type: str) -> None:
        self._kind = arc_type_named(arc_type)
        self._type = chosen("far_type", far_type, _TYPES).replace("default", "sttable")
        self._path: Path | None = Path(source)
        self._parts = [] if self._type == "fst" else [struct.pack("<ii", _MAGIC[self._type], _VERSION)]
        self._places = list[int]()
        self._size, self._last = 8, ""

    @classmethod
    @checked
    def create(
        cls, source: str | os.PathLike[str], arc_type: str = "standard", far_type: str = "default"
    ) -> FarWriter:
        """An archive for machines of one arc type; "default" is "sttable", and "fst" holds one machine."""
        return cls(source, arc_type, far_type)

    def far_type(self) -> str:
        """The type of the archive: "sttable", "stlist" or "fst"."""
        return self._type

    def arc_type(self) -> str:
        """The arc type of its machines."""
        return self._kind.name

    def error(self) -> bool:
        """Always False: errors are exceptions."""
        return False

    @checked
    def add(self, key: str, fst: VectorFst) -> None:
        """Add a machine. Keys must be ascending in byte order. Raises ``FstArgError``; ``FstOpError`` for another arc
        type.
        """
        if self._path is None:
            raise FstOpError("the archive is closed")
        if not key or key.encode() < self._last.encode():
            raise FstArgError(
                f"an archive's keys are not empty and ascend: {key!r} comes after {self._last!r}"
            )
        if fst.kind is not self._kind:
            raise FstOpError(
                f"the archive has arcs of type {self._kind.name!r}, and the machine {fst.arc_type()!r}"
            )
        if self._type == "fst" and self._places:
            raise FstOpError(
                'an archive of type "fst" is the file of one machine, which it has: take "sttable"'
            )
        self._places.append(self._size)
        name = key.encode()
        head = b"" if self._type == "fst" else struct.pack("<i", len(name)) + name
        self._put(head + to_bytes(fst))
        self._last = key

    def __setitem__(self, key: str, fst: VectorFst) -> None:
        self.add(key, fst)

    def close(self) -> None:
        """Write the file."""
        if self._path is None:
            return
        count = len(self._places)
        if self._type == "sttable":
            self._put(struct.pack(f"<{count + 2}q", count, *self._places, count))
        elif self._type == "stlist":
            self._put(struct.pack("<i", 0))
        elif not count:
            raise FstOpError('an archive of type "fst" is the file of one machine, and none was added')
        self._path.write_bytes(b"".join(self._parts))
        self._path = None

    def _put(self, part: bytes) -> None:
        self._parts.append(part)
        self._size += len(part)

    def __enter__(self) -> FarWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self.close()


@checked
def Far(  # noqa: N802  # pynini's name
    filename: str | os.PathLike[str], mode: str = "r", arc_type: str = "standard", far_type: str = "default"
) -> FarReader | FarWriter:
    """A reader (mode "r") or a writer ("w"), as pynini's ``Far``."""
    if chosen("Far: mode", mode, ("r", "w")) == "r":
        return FarReader.open(filename)
    return FarWriter.create(filename, arc_type, far_type)


# --- details ------------------------------------------------------------------------------------------


def _entries_of(data: bytes, source: str) -> tuple[str, list[tuple[str, bytes]]]:
    if data.startswith((MAGIC, MAGIC[::-1])):
        Cursor(data).header()
        return "fst", [(source, data)]
    cursor = Cursor(data)
    magic, version = cursor.unpack("<ii")
    far_type = next((name for name, each in _MAGIC.items() if each == magic), None)
    if far_type is None or version != _VERSION:
        raise FstIOError("it is no archive of type sttable, stlist (version 1) or fst")
    end = len(data)
    places = list[int]()
    if far_type == "sttable":
        if end < 24:
            raise FstIOError("the archive ends too early: it is cut short")
        (count,) = struct.unpack_from("<q", data, end - 8)
        if not 0 <= count <= (end - 24) // 8:
            raise FstIOError(f"the archive announces {count} entries: it is damaged or cut short")
        end -= 8 * (count + 2)
        first, *places = struct.unpack_from(f"<{count + 1}q", data, end)
        if first != count:
            raise FstIOError(f"the archive announces {first} and {count} entries: it is damaged or cut short")
    entries = list[tuple[str, bytes]]()
    while cursor.at < end:
        place = cursor.at
        key = cursor.text()
        if far_type == "stlist" and not key:
            if cursor.at != end:
                raise FstIOError("there are bytes after the archive's last entry: it is damaged")
            return far_type, entries
        begin = cursor.at
        _skip_machine(cursor)
        if cursor.at > end or (places and (len(entries) >= len(places) or places[len(entries)] != place)):
            raise FstIOError(f"the entry {key!r} is not where the archive's table says: it is damaged")
        entries.append((key, data[begin : cursor.at]))
    if far_type == "stlist" or len(entries) != len(places):
        raise FstIOError("the archive ends too early: it is cut short")
    return far_type, entries


def _skip_machine(cursor: Cursor) -> None:
    """The position after the current machine, whose length is known only from its parts."""
    head = cursor.header()
    kind = numeric(head.arc_type.decode("ascii", "backslashreplace"))
    for flag in (ISYMBOLS, OSYMBOLS):
        if head.flags & flag:
            read_symbols(cursor)
    weight = np.dtype(kind.dtype).itemsize
    if head.kind == b"const":
        padding = 4 if weight == 8 else 0
        cursor.skip(head.num_states * (weight + 16) + head.num_arcs * (12 + weight + padding))
        return
    if head.kind != b"vector" or head.num_states < 0:
        raise FstIOError(
            f"a machine of type {head.kind!r} with {counted(head.num_states, 'state')} cannot be read from an archive"
        )
    for _ in range(head.num_states):
        cursor.skip(weight)
        (arcs,) = cursor.unpack("<q")
        cursor.skip(arcs * (12 + weight))


def _arc_type(data: bytes) -> str:
    return Cursor(data).header().arc_type.decode("ascii", "backslashreplace")
