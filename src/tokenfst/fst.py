"""Weighted transducers under pywrapfst's names, in the native core: ``import tokenfst.fst as fst`` (docs/fst/index.md).

``fst.read``, ``fst.VectorFst``, ``fst.compose`` ... mean what they mean in ``pywrapfst``; ``accep``,
``cross``, ``string_map`` and ``optimize`` what they mean in ``pynini``. Neither library need be installed.
"""

from __future__ import annotations

from tokenfst.automata.transducer_grammars.cdrewrite import cdrewrite
from tokenfst.automata.transducer_operations import lazy
from tokenfst.automata.transducer_operations.building import accep, cross, optimize, string, string_map
from tokenfst.automata.transducer_operations.lazy import LazyFst
from tokenfst.automata.transducer_operations.operations import (
    compose,
    determinize,
    difference,
    disambiguate,
    epsnormalize,
    equal,
    equivalent,
    intersect,
    isomorphic,
    prune,
    push,
    randequivalent,
    randgen,
    reverse,
    shortestdistance,
    shortestpath,
    synchronize,
)
from tokenfst.automata.transducer_operations.replacing import replace
from tokenfst.automata.transducers.acceptors import from_arrays, with_byte_labels
from tokenfst.automata.transducers.arcs import Arc
from tokenfst.automata.transducers.checks import NO_LABEL, NO_STATE_ID
from tokenfst.automata.transducers.far import Far, FarReader, FarWriter
from tokenfst.automata.transducers.files import (
    from_bytes,
    from_pynini,
    read,
    table_of,
    to_bytes,
    to_pynini,
    write,
)
from tokenfst.automata.transducers.mapping import EncodeMapper, arcmap, convert, decode, encode, statemap
from tokenfst.automata.transducers.property_bits import FstProperties
from tokenfst.automata.transducers.symbols import (
    NO_SYMBOL,
    SymbolTable,
    compact_symbol_table,
    merge_symbol_table,
)
from tokenfst.automata.transducers.text import Compiler
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.automata.transducers.weights import Weight, divide, plus, power, times
from tokenfst.errors import (
    FstArgError,
    FstBadWeightError,
    FstError,
    FstIndexError,
    FstIOError,
    FstOpError,
)

Fst = VectorFst
"""The same class as ``VectorFst``, for code that names ``pywrapfst.Fst``."""

ACCEPTOR = FstProperties.ACCEPTOR
NOT_ACCEPTOR = FstProperties.NOT_ACCEPTOR
I_DETERMINISTIC = FstProperties.I_DETERMINISTIC
NON_I_DETERMINISTIC = FstProperties.NON_I_DETERMINISTIC
O_DETERMINISTIC = FstProperties.O_DETERMINISTIC
NON_O_DETERMINISTIC = FstProperties.NON_O_DETERMINISTIC
EPSILONS = FstProperties.EPSILONS
NO_EPSILONS = FstProperties.NO_EPSILONS
I_EPSILONS = FstProperties.I_EPSILONS
NO_I_EPSILONS = FstProperties.NO_I_EPSILONS
O_EPSILONS = FstProperties.O_EPSILONS
NO_O_EPSILONS = FstProperties.NO_O_EPSILONS
I_LABEL_SORTED = FstProperties.I_LABEL_SORTED
NOT_I_LABEL_SORTED = FstProperties.NOT_I_LABEL_SORTED
O_LABEL_SORTED = FstProperties.O_LABEL_SORTED
NOT_O_LABEL_SORTED = FstProperties.NOT_O_LABEL_SORTED
WEIGHTED = FstProperties.WEIGHTED
UNWEIGHTED = FstProperties.UNWEIGHTED
CYCLIC = FstProperties.CYCLIC
ACYCLIC = FstProperties.ACYCLIC
INITIAL_CYCLIC = FstProperties.INITIAL_CYCLIC
INITIAL_ACYCLIC = FstProperties.INITIAL_ACYCLIC
TOP_SORTED = FstProperties.TOP_SORTED
NOT_TOP_SORTED = FstProperties.NOT_TOP_SORTED
ACCESSIBLE = FstProperties.ACCESSIBLE
NOT_ACCESSIBLE = FstProperties.NOT_ACCESSIBLE
COACCESSIBLE = FstProperties.COACCESSIBLE
NOT_COACCESSIBLE = FstProperties.NOT_COACCESSIBLE
STRING = FstProperties.STRING
NOT_STRING = FstProperties.NOT_STRING
WEIGHTED_CYCLES = FstProperties.WEIGHTED_CYCLES
UNWEIGHTED_CYCLES = FstProperties.UNWEIGHTED_CYCLES

__all__ = [
    "ACCEPTOR",
    "ACCESSIBLE",
    "ACYCLIC",
    "COACCESSIBLE",
    "CYCLIC",
    "EPSILONS",
    "INITIAL_ACYCLIC",
    "INITIAL_CYCLIC",
    "I_DETERMINISTIC",
    "I_EPSILONS",
    "I_LABEL_SORTED",
    "NON_I_DETERMINISTIC",
    "NON_O_DETERMINISTIC",
    "NOT_ACCEPTOR",
    "NOT_ACCESSIBLE",
    "NOT_COACCESSIBLE",
    "NOT_I_LABEL_SORTED",
    "NOT_O_LABEL_SORTED",
    "NOT_STRING",
    "NOT_TOP_SORTED",
    "NO_EPSILONS",
    "NO_I_EPSILONS",
    "NO_LABEL",
    "NO_O_EPSILONS",
    "NO_STATE_ID",
    "NO_SYMBOL",
    "O_DETERMINISTIC",
    "O_EPSILONS",
    "O_LABEL_SORTED",
    "STRING",
    "TOP_SORTED",
    "UNWEIGHTED",
    "UNWEIGHTED_CYCLES",
    "WEIGHTED",
    "WEIGHTED_CYCLES",
    "Arc",
    "Compiler",
    "EncodeMapper",
    "Far",
    "FarReader",
    "FarWriter",
    "Fst",
    "FstArgError",
    "FstBadWeightError",
    "FstError",
    "FstIOError",
    "FstIndexError",
    "FstOpError",
    "FstProperties",
    "LazyFst",
    "SymbolTable",
    "VectorFst",
    "Weight",
    "accep",
    "arcmap",
    "cdrewrite",
    "compact_symbol_table",
    "compose",
    "convert",
    "cross",
    "decode",
    "determinize",
    "difference",
    "disambiguate",
    "divide",
    "encode",
    "epsnormalize",
    "equal",
    "equivalent",
    "from_arrays",
    "from_bytes",
    "from_pynini",
    "intersect",
    "isomorphic",
    "lazy",
    "merge_symbol_table",
    "optimize",
    "plus",
    "power",
    "prune",
    "push",
    "randequivalent",
    "randgen",
    "read",
    "replace",
    "reverse",
    "shortestdistance",
    "shortestpath",
    "statemap",
    "string",
    "string_map",
    "synchronize",
    "table_of",
    "times",
    "to_bytes",
    "to_pynini",
    "with_byte_labels",
    "write",
]
