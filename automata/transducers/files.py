"""OpenFst's binary files, vector and const type, in both directions, and conversion of pynini's objects through
them.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any, Literal

import numpy as np

from tokenfst.automata.openfst.fst import require_pynini
from tokenfst.automata.openfst.headers import (
    ALIGNED,
    ISYMBOLS,
    MAGIC,
    OSYMBOLS,
    VERSION,
    Cursor,
    Header,
    read_file,
)
from tokenfst.automata.transducers.checks import chosen, limits
from tokenfst.automata.transducers.symbols import SymbolTable, read_symbols
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import ARC_TYPES, ArcType
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import FstArgError, FstIOError

_EXPANDED, _MUTABLE = 1, 2
KINDS = ("vector", "const")
"""The types of OpenFst's files that are read and written."""
_ALIGNED_VERSION, _ALIGNMENT = 1, 16
_STRUCTURED = (
    "gallic",
    "string",
    "lexicographic",
    "expectation",
    "power",
    "signed",
    "_LT_",
    "_^",
    "reverse_",
)
"""Parts of the names of arc types whose weights are pairs, strings or tuples."""


@checked
def read(source: str | os.PathLike[str], *, budget: Budget | None = None) -> VectorFst:
    """The machine in an OpenFst file, of type vector or const, over any supported semiring.

    Raises ``FstIOError`` for an invalid file, ``OSError``, ``BudgetExceeded``. Linear.
    """
    return read_file(source, lambda data: from_bytes(data, budget=budget))


@checked
def from_bytes(data: bytes, *, budget: Budget | None = None) -> VectorFst:
    """The machine in the bytes of an OpenFst file."""
    cursor = Cursor(data)
    found = head(cursor)
    arc_type = numeric(found.arc_type.decode("ascii", "backslashreplace"))
    tables = symbol_tables(cursor, found)
    at = cursor.at
    if aligned(found):
        weight = np.dtype(arc_type.dtype).itemsize
        data, at = packed(data, at, found.num_states * (weight + 16)), 0
    core = arc_type.core.from_body(
        data, at, found.kind == b"vector", found.start, found.num_states, found.num_arcs, limits(budget)
    )
    return VectorFst.of_core(arc_type, core, tables)


def head(cursor: Cursor) -> Header:
    """The header of a file of type vector or const. Raises ``FstIOError`` for other types and versions."""
    found = cursor.header()
    kind = found.kind.decode("ascii", "backslashreplace")
    if kind not in KINDS or not (found.version == VERSION or aligned(found)):
        raise FstIOError(
            f"it is an OpenFst file of type {kind!r}, version {found.version}; read are vector and const, version "
            f"{VERSION}: convert it with fstconvert --fst_type=vector"
        )
    return found


def symbol_tables(cursor: Cursor, header: Header) -> tuple[SymbolTable | None, SymbolTable | None]:
    """The tables of the input and the output labels, which come after the header."""
    inputs = read_symbols(cursor) if header.flags & ISYMBOLS else None
    outputs = read_symbols(cursor) if header.flags & OSYMBOLS else None
    return inputs, outputs


def aligned(header: Header) -> bool:
    """Whether it is a const file whose states and arcs begin at multiples of 16 bytes."""
    return header.kind == b"const" and (header.version == _ALIGNED_VERSION or bool(header.flags & ALIGNED))


def numeric(name: str) -> ArcType:
    """The arc type of a file. Raises ``FstIOError`` if it is not supported."""
    if name in ARC_TYPES:
        return ARC_TYPES[name]
    known = ", ".join(ARC_TYPES)
    if any(each in name for each in _STRUCTURED):
        raise FstIOError(
            f"its arcs are of type {name!r}, whose weights are not single numbers; read are {known}: read this "
            "file with tokenfst.semirings.read"
        )
    raise FstIOError(f"its arcs are of type {name!r}; read are {known}")


def packed(data: bytes, at: int, states: int) -> bytes:
    """The states and arcs of an aligned const file: consecutive, both beginning at multiples of 16 bytes."""
    if states < 0:
        raise FstIOError("it announces fewer than no states: the file is damaged")
    begin = at + -at % _ALIGNMENT
    end = begin + states
    return data[begin:end] + data[end + -end % _ALIGNMENT :]


@checked
def to_bytes(
    fst: VectorFst, fst_type: Literal["vector", "const"] = "vector", *, budget: Budget | None = None
) -> bytes:
    """The bytes of an OpenFst file. Linear."""
    is_vector = chosen("write: fst_type", fst_type, KINDS) == "vector"
    sizes = fst.start(), fst.num_states(), fst.num_arcs()
    body: bytes = fst.core.body(is_vector, limits(budget))
    return written_head(fst_type, fst.arc_type(), sizes, fst.tables) + body


def written_head(
    fst_type: str,
    arc_type: str,
    sizes: tuple[int, int, int],
    tables: tuple[SymbolTable | None, SymbolTable | None],
) -> bytes:
    """The bytes in front of the states: header and symbol tables. ``sizes``: the start, and how many states and
    arcs there are.
    """
    flags = sum(flag for table, flag in zip(tables, (ISYMBOLS, OSYMBOLS), strict=True) if table is not None)
    properties = _EXPANDED | (_MUTABLE if fst_type == "vector" else 0)
    parts = [
        MAGIC,
        _text(fst_type),
        _text(arc_type),
        struct.pack("<iiQqqq", VERSION, flags, properties, *sizes),
        *(table.write_to_string() for table in tables if table is not None),
    ]
    return b"".join(parts)


@checked
def write(
    fst: VectorFst, source: str | os.PathLike[str], fst_type: Literal["vector", "const"] = "vector", *,
    budget: Budget | None = None,
) -> None:  # fmt: skip
    """Write an OpenFst file, which OpenFst's own programs can read if they support its arc type."""
    Path(source).write_bytes(to_bytes(fst, fst_type, budget=budget))


def _text(value: str) -> bytes:
    return struct.pack("<i", len(value)) + value.encode("ascii")


# --- pynini -------------------------------------------------------------------------------------------


def from_pynini(fst: Any, *, budget: Budget | None = None) -> VectorFst:
    """The machine of a pynini or pywrapfst object, with its weights and tables. Raises ``FstArgError`` for anything
    else.
    """
    if not callable(getattr(fst, "write_to_string", None)):
        raise FstArgError(f"from_pynini: a machine of pynini or pywrapfst is due, not a {type(fst).__name__}")
    return from_bytes(bytes(fst.write_to_string()), budget=budget)


@checked
def to_pynini(fst: VectorFst, *, budget: Budget | None = None) -> Any:
    """The machine as a ``pynini.Fst``.

    Raises ``MissingDependencyError`` without pynini; ``FstArgError`` for semirings that pynini does not support.
    """
    pynini = require_pynini()
    if fst.arc_type() not in ("standard", "log", "log64"):
        raise FstArgError(
            f"to_pynini: pynini has no arcs of type {fst.arc_type()!r}, only standard, log and log64"
        )
    return pynini.Fst.read_from_string(to_bytes(fst, budget=budget))


@checked
def table_of(table: Any) -> SymbolTable:
    """A symbol table of pynini or pywrapfst as a ``SymbolTable``."""
    if isinstance(table, SymbolTable):
        return table
    if not callable(getattr(table, "write_to_string", None)):
        raise FstArgError(f"table_of: a symbol table is due, not a {type(table).__name__}")
    return SymbolTable.read_from_string(bytes(table.write_to_string()))
