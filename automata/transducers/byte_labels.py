"""The label of a byte in a machine, as its symbol tables say, and the rule that keeps two conventions apart.

Machines of languages and vocabularies have label b + 1 for byte b (convention 2), and the table ``byte_table(1)`` says
so. Machines of strings (``accep``, ``cross``, ``string_map``, ``cdrewrite``) have label b, as in pynini, and no table.

Invariant: where labels of two machines meet, equal labels stand for equal symbols as far as tables say, and a side with
the table of convention 2 meets no side without a table. An operation that would join them raises ``FstOpError``;
``acceptors.with_byte_labels`` converts one of them. A side on which all labels are epsilon needs no table. A table of
other symbols may meet a side without a table, as in OpenFst.
"""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from tokenfst.automata.openfst.label_kinds import filled_with_bytes
from tokenfst.automata.openfst.labels import BYTE_ZERO_LABEL
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.errors import FstOpError

Tables = tuple[SymbolTable | None, SymbolTable | None]
"""Of input labels, and of output labels."""
REMEDY = (
    "fst.with_byte_labels(machine) converts a machine of strings, and fst.with_byte_labels(machine, byte_zero=1) gives "
    "its table to one that has label b + 1 already"
)


def byte_table(byte_zero: int) -> SymbolTable:
    """The symbol table of byte labels; byte 0 has the label ``byte_zero``."""
    table = SymbolTable("bytes")
    filled_with_bytes(table, byte_zero)
    return table


@lru_cache(maxsize=2)
def _known(byte_zero: int) -> SymbolTable:
    return byte_table(byte_zero)


def is_byte_table(table: SymbolTable | None, byte_zero: int = BYTE_ZERO_LABEL) -> bool:
    """Whether a table is ``byte_table(byte_zero)``, whatever its name."""
    return table is not None and table == _known(byte_zero)


def common_tables(call: str, *machines: Any) -> Tables:
    """The input and the output table of a result of machines whose inputs meet, and whose outputs meet. They are those
    of the first machine; where it has none, the table of byte labels if another machine has it. Raises ``FstOpError``
    if the machines' labels stand for different symbols.
    """
    return _meeting(call, "input", *((each, 0) for each in machines)), _meeting(
        call, "output", *((each, 1) for each in machines)
    )


def require_middle(call: str, one: Any, other: Any) -> None:
    """Raise ``FstOpError`` if the output labels of ``one`` and the input labels of ``other`` stand for different
    symbols.
    """
    _meeting(call, "middle", (one, 1), (other, 0))


def _meeting(call: str, what: str, *sides: tuple[Any, int]) -> SymbolTable | None:
    """The table of sides that meet; a side is a machine with 0 for its inputs, or 1 for its outputs."""
    tables: list[SymbolTable | None] = [
        each.output_symbols() if side else each.input_symbols() for each, side in sides
    ]
    first = next((each for each in tables if each is not None), None)
    for table in tables:
        if first is not None and table is not None and table is not first and table != first:
            raise FstOpError(f"{call}: the {what} symbol tables {_differ(first, table)}")
    if not is_byte_table(first):
        return tables[0]
    for at, (table, side) in enumerate(zip(tables, sides, strict=True), 1):
        if table is None and _has_labels(*side):
            raise FstOpError(
                f"{call}: on the {what} side, a machine's symbol table says that byte b has label b + 1, and machine "
                f"{at} has no table: in machines of strings byte b has label b. {REMEDY}"
            )
    return first


def _differ(one: SymbolTable, other: SymbolTable) -> str:
    names = f"{one.name()!r} and {other.name()!r} differ: "
    if any(is_byte_table(a) and is_byte_table(b, 0) for a, b in ((one, other), (other, one))):
        return (
            f"{names}byte b has label b + 1 in one machine and label b in the other, which "
            "fst.with_byte_labels(machine) converts"
        )
    return (
        f"{names}relabel one machine with relabel_tables, or take the tables off with set_input_symbols(None)"
    )


def _has_labels(machine: Any, side: int) -> bool:
    """Whether a side has labels other than epsilon; those of a lazy machine are not known."""
    return not hasattr(machine, "arrays") or bool(machine.arrays()[2 + side].any())
