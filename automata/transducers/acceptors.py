"""Machines of ``tokenfst.fst`` from tables: from columns of arcs, and from automata over bytes, whose labels others can
get.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.openfst.byte_automata import dfa_to_arcs
from tokenfst.automata.openfst.fst import INT32_MAX, Arcs, check_range, integer_column
from tokenfst.automata.openfst.labels import BYTE_ZERO_LABEL, EPSILON_LABEL
from tokenfst.automata.transducers.byte_labels import byte_table, is_byte_table
from tokenfst.automata.transducers.checks import chosen, limits
from tokenfst.automata.transducers.mapping import rebuilt
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import ArcType, arc_type_named
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import FstArgError, FstError, FstOpError


def acceptor_of(dfa: Dfa, byte_zero: int) -> VectorFst:
    """The acceptor of an automaton, with symbol tables for its byte labels."""
    arcs = dfa_to_arcs(dfa, byte_zero)  # which refuses labels that no machine has
    table = byte_table(byte_zero)
    return machine_of(arcs, table, table)


def machine_of(
    arcs: Arcs, inputs: SymbolTable | None = None, outputs: SymbolTable | None = None
) -> VectorFst:
    """The machine with these arcs over the tropical semiring, all with weight One. O(states + arcs)."""
    kind = arc_type_named("standard")
    finals = np.full(arcs.num_states, kind.core.zero(), np.float32)
    finals[arcs.final_states] = kind.core.one()
    counts = np.bincount(arcs.source, minlength=arcs.num_states).astype(np.int64)
    weights = np.full(len(arcs.source), kind.core.one(), np.float32)
    given = (finals, counts, arcs.ilabel, arcs.olabel, weights, arcs.nextstate)
    core = kind.core.from_arrays(arcs.start, *given, limits(Budget.unlimited()))
    return VectorFst.of_core(kind, core, (inputs, outputs))


@checked
def from_arrays(
    start: int,
    finals: npt.ArrayLike,
    counts: npt.ArrayLike,
    ilabels: npt.ArrayLike,
    olabels: npt.ArrayLike,
    weights: npt.ArrayLike,
    nextstates: npt.ArrayLike,
    *,
    arc_type: str = "standard",
    budget: Budget | None = None,
) -> VectorFst:
    """The machine with these states and arcs, without symbol tables: the inverse of ``machine.arrays()``.

    ``start``: the start state, or -1. ``finals``: floating point (states,), the final weights, of which Zero says that
    a state is not final. ``counts``: integers (states,), the number of arcs of each state. ``ilabels``, ``olabels``,
    ``weights``, ``nextstates``: (arcs,), the arcs of state 0, then those of state 1, and so on; labels are from 0 to
    2^31 - 1. Weights are rounded to the dtype of ``arc_type``.

    O(states + arcs), without a loop in Python. Raises ``FstError`` for arrays of other shapes or types, different
    lengths, and states or labels out of range; ``FstBadWeightError`` for numbers that are no weights of the semiring.
    """
    kind = arc_type_named(arc_type)
    ends, costs = _weights("finals", finals, kind), _weights("weights", weights, kind)
    return VectorFst.of_core(
        kind,
        kind.core.from_arrays(
            start,
            ends,
            _numbers("counts", counts, len(costs) + 1, np.int64),
            _numbers("ilabels", ilabels, INT32_MAX + 1, np.int32),
            _numbers("olabels", olabels, INT32_MAX + 1, np.int32),
            costs,
            _numbers("nextstates", nextstates, len(ends), np.int32),
            limits(budget),
        ),
    )


@checked
def with_byte_labels(
    fst: VectorFst, byte_zero: int = 0, side: str = "both", *, budget: Budget | None = None
) -> VectorFst:
    """The machine with label b + 1 for byte b and the symbol tables that say so: the labels of languages and
    vocabularies, with which it can then be composed.

    ``byte_zero``: the label that byte 0 has, or would have, in the given machine: 0 in machines of strings, where byte
    b has label b; 1 if labels are b + 1 already. ``side``: "input", "output" or "both"; a side that has the table
    already is unchanged. Linear. Raises ``FstOpError`` for labels that are no bytes, and for a side whose table says
    that its labels stand for something else.
    """
    if byte_zero not in (0, 1):
        raise FstArgError(
            f"with_byte_labels: byte_zero is the label of byte 0 in the given machine: 0 in machines of strings, or 1; "
            f"not {byte_zero}"
        )
    chosen("with_byte_labels: side", side, ("input", "output", "both"))
    labels, tables = list(fst.arrays()[2:4]), list(fst.tables)
    for at, name in enumerate(("input", "output")):
        if side in (name, "both") and not is_byte_table(tables[at]):
            labels[at] = _shifted(name, labels[at], tables[at], byte_zero)
            tables[at] = byte_table(BYTE_ZERO_LABEL)
    made = rebuilt(fst, ilabels=labels[0], olabels=labels[1], budget=budget)
    return made.set_tables((tables[0], tables[1]))


def _shifted(
    side: str, labels: npt.NDArray[np.int32], table: SymbolTable | None, byte_zero: int
) -> npt.NDArray[np.int32]:
    if table is not None and not is_byte_table(table, byte_zero):
        raise FstOpError(
            f"with_byte_labels: the {side} symbol table {table.name()!r} says that labels stand for something else: "
            "compose the machine with a transducer that spells its symbols in bytes"
        )
    last = 255 + byte_zero
    if (beyond := labels[labels > last]).size:
        raise FstOpError(
            f"with_byte_labels: the {side} label {beyond[0]} is no byte, of which the last has label {last}: make the "
            'machine with token_type="byte", or give side= if the other side alone has bytes'
        )
    return np.where(labels == EPSILON_LABEL, labels, labels - byte_zero + BYTE_ZERO_LABEL)


def _numbers(
    name: str, values: npt.ArrayLike, limit: int, dtype: npt.DTypeLike
) -> npt.NDArray[np.integer[Any]]:
    column = integer_column(name, values)
    check_range(name, column, limit)
    return np.ascontiguousarray(column, dtype)


def _weights(name: str, values: npt.ArrayLike, kind: ArcType) -> npt.NDArray[np.floating[Any]]:
    column = np.asarray(values)
    if column.ndim != 1 or column.dtype.kind not in "fiu":
        raise FstError(
            f"{name} must be a one-dimensional array of numbers, not {column.dtype} {column.shape}"
        )
    with np.errstate(over="ignore"):  # what float32 cannot hold is infinity, which may be a weight
        return np.ascontiguousarray(column, kind.dtype)
