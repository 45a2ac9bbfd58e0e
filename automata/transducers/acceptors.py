"""Machines of ``tokenfst.fst`` from tables: from columns of arcs, and from automata over bytes."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.openfst.byte_automata import dfa_to_arcs
from tokenfst.automata.openfst.fst import INT32_MAX, Arcs, check_range, integer_column
from tokenfst.automata.openfst.label_kinds import filled_with_bytes
from tokenfst.automata.transducers.checks import limits
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import ArcType, arc_type_named
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import FstError


def acceptor_of(dfa: Dfa, byte_zero: int) -> VectorFst:
    """The acceptor of an automaton, with symbol tables for its byte labels."""
    arcs = dfa_to_arcs(dfa, byte_zero)  # which refuses labels that no machine has
    table = byte_table(byte_zero)
    return machine_of(arcs, table, table)


def byte_table(byte_zero: int) -> SymbolTable:
    """The symbol table of byte labels; byte 0 has the label ``byte_zero``."""
    table = SymbolTable("bytes")
    filled_with_bytes(table, byte_zero)
    return table


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
