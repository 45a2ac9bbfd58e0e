"""OpenFst's binary files both ways, vector and const type, and pynini's objects, which cross as such files in
memory."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any, Literal

from tokenfst.arguments import checked
from tokenfst.automata.openfst.fst import require_pynini
from tokenfst.automata.openfst.headers import ALIGNED, ISYMBOLS, MAGIC, OSYMBOLS, VERSION, Cursor
from tokenfst.automata.transducers.checks import chosen, limits
from tokenfst.automata.transducers.symbols import SymbolTable, read_symbols
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import ARC_TYPES
from tokenfst.budget import Budget
from tokenfst.errors import FstArgError, FstIOError

_EXPANDED, _MUTABLE = 1, 2
_KINDS = ("vector", "const")


@checked
def read(source: str | os.PathLike[str], *, budget: Budget | None = None) -> VectorFst:
    """The machine in an OpenFst file, of type vector or const, over any semiring that there is here.

    ``FstIOError`` says what is wrong with the file; ``OSError``; ``BudgetExceeded``. Linear.
    """
    try:
        return from_bytes(Path(source).read_bytes(), budget=budget)
    except FstIOError as error:
        raise FstIOError(f"{os.fspath(source)}: {error}") from error


@checked
def from_bytes(data: bytes, *, budget: Budget | None = None) -> VectorFst:
    """The machine in the bytes of an OpenFst file."""
    cursor = Cursor(data)
    head = cursor.header()
    kind, name = (each.decode("ascii", "backslashreplace") for each in (head.kind, head.arc_type))
    if name not in ARC_TYPES:
        raise FstIOError(f"its arcs are of type {name!r}; read are {', '.join(ARC_TYPES)}")
    if kind not in _KINDS or head.version != VERSION or head.flags & ALIGNED:
        raise FstIOError(
            f"it is an OpenFst file of type {kind!r}, version {head.version}; read are vector and const, version "
            f"{VERSION}, not aligned: convert it with fstconvert --fst_type=vector"
        )
    tables = [read_symbols(cursor) if head.flags & flag else None for flag in (ISYMBOLS, OSYMBOLS)]
    arc_type = ARC_TYPES[name]
    core = arc_type.core.from_body(
        data, cursor.at, kind == "vector", head.start, head.num_states, head.num_arcs, limits(budget)
    )
    return VectorFst.of_core(arc_type, core, (tables[0], tables[1]))


@checked
def to_bytes(
    fst: VectorFst, fst_type: Literal["vector", "const"] = "vector", *, budget: Budget | None = None
) -> bytes:
    """The bytes of an OpenFst file. Linear."""
    is_vector = chosen("write: fst_type", fst_type, _KINDS) == "vector"
    flags = sum(
        flag for table, flag in zip(fst.tables, (ISYMBOLS, OSYMBOLS), strict=True) if table is not None
    )
    properties = _EXPANDED | (_MUTABLE if is_vector else 0)
    parts = [
        MAGIC,
        _text(fst_type),
        _text(fst.arc_type()),
        struct.pack("<iiQqqq", VERSION, flags, properties, fst.start(), fst.num_states(), fst.num_arcs()),
        *(table.write_to_string() for table in fst.tables if table is not None),
        fst.core.body(is_vector, limits(budget)),
    ]
    return b"".join(parts)


@checked
def write(
    fst: VectorFst, source: str | os.PathLike[str], fst_type: Literal["vector", "const"] = "vector", *,
    budget: Budget | None = None,
) -> None:  # fmt: skip
    """Write an OpenFst file, which OpenFst's own programs read for the arc types that they have."""
    Path(source).write_bytes(to_bytes(fst, fst_type, budget=budget))


def _text(value: str) -> bytes:
    return struct.pack("<i", len(value)) + value.encode("ascii")


# --- pynini -------------------------------------------------------------------------------------------


def from_pynini(fst: Any, *, budget: Budget | None = None) -> VectorFst:
    """A machine of pynini or pywrapfst, with its weights and tables. ``FstArgError`` for anything else."""
    if not callable(getattr(fst, "write_to_string", None)):
        raise FstArgError(f"from_pynini: a machine of pynini or pywrapfst is due, not a {type(fst).__name__}")
    return from_bytes(bytes(fst.write_to_string()), budget=budget)


@checked
def to_pynini(fst: VectorFst, *, budget: Budget | None = None) -> Any:
    """The machine as a ``pynini.Fst``. ``MissingDependencyError`` without pynini; ``FstArgError`` for
    semirings that it lacks."""
    pynini = require_pynini()
    if fst.arc_type() not in ("standard", "log", "log64"):
        raise FstArgError(
            f"to_pynini: pynini has no arcs of type {fst.arc_type()!r}, only standard, log and log64"
        )
    return pynini.Fst.read_from_string(to_bytes(fst, budget=budget))


@checked
def table_of(table: Any) -> SymbolTable:
    """A symbol table of pynini or pywrapfst as one of ours."""
    if isinstance(table, SymbolTable):
        return table
    if not callable(getattr(table, "write_to_string", None)):
        raise FstArgError(f"table_of: a symbol table is due, not a {type(table).__name__}")
    return SymbolTable.read_from_string(bytes(table.write_to_string()))
