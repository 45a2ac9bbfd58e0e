"""Unweighted machines as machines of ``tokenfst.fst`` over the tropical semiring: from automata over bytes, and from
arcs.
"""

from __future__ import annotations

import numpy as np

from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.openfst.byte_automata import dfa_to_arcs
from tokenfst.automata.openfst.fst import Arcs
from tokenfst.automata.openfst.label_kinds import filled_with_bytes
from tokenfst.automata.transducers.checks import limits
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import ARC_TYPES
from tokenfst.budget import Budget


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
    """The machine with these arcs, all with weight One. O(states + arcs)."""
    kind = ARC_TYPES["standard"]
    finals = np.full(arcs.num_states, kind.core.zero(), np.float32)
    finals[arcs.final_states] = kind.core.one()
    counts = np.bincount(arcs.source, minlength=arcs.num_states).astype(np.int64)
    weights = np.full(len(arcs.source), kind.core.one(), np.float32)
    given = (finals, counts, arcs.ilabel, arcs.olabel, weights, arcs.nextstate)
    core = kind.core.from_arrays(arcs.start, *given, limits(Budget.unlimited()))
    return VectorFst.of_core(kind, core, (inputs, outputs))
