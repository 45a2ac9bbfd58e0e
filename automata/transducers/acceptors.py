"""Automata over bytes as unweighted machines."""

from __future__ import annotations

import numpy as np

from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.openfst.fst import dfa_to_arcs
from tokenfst.automata.openfst.label_kinds import filled_with_bytes
from tokenfst.automata.transducers.checks import limits
from tokenfst.automata.transducers.symbols import SymbolTable
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import ARC_TYPES
from tokenfst.budget import Budget


def acceptor_of(dfa: Dfa, byte_zero: int) -> VectorFst:
    """The acceptor of an automaton, over the tropical semiring, with tables that say which byte a label is."""
    arcs, kind = dfa_to_arcs(dfa, byte_zero), ARC_TYPES["standard"]
    finals = np.full(arcs.num_states, kind.core.zero(), np.float32)
    finals[arcs.final_states] = kind.core.one()
    counts = np.bincount(arcs.source, minlength=arcs.num_states).astype(np.int64)
    weights = np.full(len(arcs.source), kind.core.one(), np.float32)
    given = (finals, counts, arcs.ilabel, arcs.olabel, weights, arcs.nextstate)
    table = filled_with_bytes(SymbolTable("bytes"), byte_zero)
    core = kind.core.from_arrays(arcs.start, *given, limits(Budget.unlimited()))
    return VectorFst.of_core(kind, core, (table, table))
