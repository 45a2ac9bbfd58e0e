"""Weighted transducers under pywrapfst's names, in the native core: ``import tokenfst.fst as fst`` (docs/fst/index.md).

``fst.read``, ``fst.VectorFst``, ``fst.compose`` ... mean what they mean in ``pywrapfst``; ``accep``,
``cross``, ``string_map`` and ``optimize`` what they mean in ``pynini``. Neither is needed.
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
from tokenfst.automata.transducers.symbols import NO_SYMBOL, SymbolTable
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
"""The same class: there is one kind of machine."""

__all__ = [
    "NO_LABEL",
    "NO_STATE_ID",
    "NO_SYMBOL",
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
    "LazyFst",
    "SymbolTable",
    "VectorFst",
    "Weight",
    "accep",
    "arcmap",
    "cdrewrite",
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
    "from_bytes",
    "from_pynini",
    "intersect",
    "isomorphic",
    "lazy",
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
    "write",
]
