"""Grammars under pynini's names, on native transducers: ``import tokenfst.grm as pynini`` (docs/fst/grammars.md).

Strings in square brackets, operators, ``cdrewrite``, ``string_map`` ... mean what they mean in ``pynini``.
``determinize``, ``rmepsilon`` and OpenFst's other operations are functions that make a new machine. The modules
``byte``, ``pynutil``, ``rewrite`` and ``utf8`` are those of ``pynini.lib``; the functions of ``pynutil`` and
``rewrite`` are here, too. pynini need not be installed.
"""

from __future__ import annotations

from tokenfst.automata.transducer_grammars import byte, export, pynutil, utf8
from tokenfst.automata.transducer_grammars import rewriting as rewrite
from tokenfst.automata.transducer_grammars.functions import (
    arcmap,
    arcsort,
    connect,
    convert,
    decode,
    determinize,
    disambiguate,
    encode,
    epsnormalize,
    equal,
    equivalent,
    isomorphic,
    leniently_compose,
    minimize,
    prune,
    push,
    randequivalent,
    randgen,
    relabel_pairs,
    relabel_tables,
    replace,
    reverse,
    reweight,
    rmepsilon,
    statemap,
    synchronize,
    topsort,
)
from tokenfst.automata.transducer_grammars.machines import (
    Fst,
    FstLike,
    WeightLike,
    accep,
    cdrewrite,
    closure,
    compose,
    concat,
    cross,
    difference,
    intersect,
    invert,
    optimize,
    project,
    shortestpath,
    string_file,
    string_map,
    union,
)
from tokenfst.automata.transducer_grammars.pynutil import add_weight, delete, insert, join
from tokenfst.automata.transducer_grammars.rewriting import (
    matches,
    one_rewrite,
    one_top_rewrite,
    optimal_rewrites,
    rewrite_lattice,
    rewrites,
    top_rewrite,
    top_rewrites,
)
from tokenfst.automata.transducer_grammars.strings import TokenType, default_token_type, escape
from tokenfst.automata.transducer_operations.operations import shortestdistance
from tokenfst.automata.transducers.arcs import Arc
from tokenfst.automata.transducers.checks import NO_LABEL, NO_STATE_ID
from tokenfst.automata.transducers.far import Far
from tokenfst.automata.transducers.mapping import EncodeMapper
from tokenfst.automata.transducers.property_bits import FstProperties
from tokenfst.automata.transducers.symbols import (
    NO_SYMBOL,
    SymbolTable,
    compact_symbol_table,
    merge_symbol_table,
)
from tokenfst.automata.transducers.text import Compiler
from tokenfst.automata.transducers.weights import Weight, divide, plus, power, times
from tokenfst.errors import FstArgError, FstBadWeightError, FstIndexError, FstIOError, FstOpError

FstStringCompilationError = FstArgError
"""What pynini raises for strings with unmatched brackets."""

__all__ = [
    "NO_LABEL",
    "NO_STATE_ID",
    "NO_SYMBOL",
    "Arc",
    "Compiler",
    "EncodeMapper",
    "Far",
    "Fst",
    "FstArgError",
    "FstBadWeightError",
    "FstIOError",
    "FstIndexError",
    "FstLike",
    "FstOpError",
    "FstProperties",
    "FstStringCompilationError",
    "SymbolTable",
    "TokenType",
    "Weight",
    "WeightLike",
    "accep",
    "add_weight",
    "arcmap",
    "arcsort",
    "byte",
    "cdrewrite",
    "closure",
    "compact_symbol_table",
    "compose",
    "concat",
    "connect",
    "convert",
    "cross",
    "decode",
    "default_token_type",
    "delete",
    "determinize",
    "difference",
    "disambiguate",
    "divide",
    "encode",
    "epsnormalize",
    "equal",
    "equivalent",
    "escape",
    "export",
    "insert",
    "intersect",
    "invert",
    "isomorphic",
    "join",
    "leniently_compose",
    "matches",
    "merge_symbol_table",
    "minimize",
    "one_rewrite",
    "one_top_rewrite",
    "optimal_rewrites",
    "optimize",
    "plus",
    "power",
    "project",
    "prune",
    "push",
    "pynutil",
    "randequivalent",
    "randgen",
    "relabel_pairs",
    "relabel_tables",
    "replace",
    "reverse",
    "reweight",
    "rewrite",
    "rewrite_lattice",
    "rewrites",
    "rmepsilon",
    "shortestdistance",
    "shortestpath",
    "statemap",
    "string_file",
    "string_map",
    "synchronize",
    "times",
    "top_rewrite",
    "top_rewrites",
    "topsort",
    "union",
    "utf8",
]
