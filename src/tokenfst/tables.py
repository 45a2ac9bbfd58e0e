"""The tables that constraints and automata consist of: ``from tokenfst import tables`` (docs/research/tables.md).

``Dfa``: a deterministic automaton over bytes. ``Program``: the serialized expressions of a constraint, which the native
core reads. ``Arcs``: a transducer as columns of numbers. The functions convert them to and from machines of pynini, and
labels of arcs to and from bytes and token ids. Only functions that take or return a ``pynini.Fst`` need pynini.
"""

from __future__ import annotations

from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.expressions.program import Program
from tokenfst.automata.openfst.byte_automata import dfa_to_arcs, dfa_to_fst
from tokenfst.automata.openfst.files import parse_fst, read_fst
from tokenfst.automata.openfst.fst import Arcs, from_arcs, to_arcs
from tokenfst.automata.openfst.labels import (
    BYTE_ZERO_LABEL,
    EPSILON_LABEL,
    byte_label,
    label_byte,
    label_token,
    token_label,
)

__all__ = [
    "BYTE_ZERO_LABEL",
    "EPSILON_LABEL",
    "Arcs",
    "Dfa",
    "Program",
    "byte_label",
    "dfa_to_arcs",
    "dfa_to_fst",
    "from_arcs",
    "label_byte",
    "label_token",
    "parse_fst",
    "read_fst",
    "to_arcs",
    "token_label",
]
