"""Grammars under pynini's names, on native transducers: ``import tokenfst.grm as pynini`` (docs/fst/grammars.md).

Strings in square brackets, operators, ``cdrewrite``, ``string_map`` ... mean what they mean in ``pynini``; ``insert``,
``delete``, ``add_weight`` and ``join`` what they mean in ``pynini.lib.pynutil``; ``top_rewrite`` and its kin what they
mean in ``pynini.lib.rewrite``. pynini is not needed.
"""

from __future__ import annotations

from tokenfst.automata.transducer_grammars.machines import (
    Fst,
    accep,
    add_weight,
    cdrewrite,
    closure,
    compose,
    concat,
    cross,
    delete,
    difference,
    insert,
    intersect,
    invert,
    join,
    optimize,
    project,
    shortestpath,
    string_file,
    string_map,
    union,
)
from tokenfst.automata.transducer_grammars.rewriting import (
    matches,
    one_rewrite,
    one_top_rewrite,
    rewrite_lattice,
    rewrites,
    top_rewrite,
    top_rewrites,
)
from tokenfst.automata.transducer_grammars.strings import escape

__all__ = [
    "Fst",
    "accep",
    "add_weight",
    "cdrewrite",
    "closure",
    "compose",
    "concat",
    "cross",
    "delete",
    "difference",
    "escape",
    "insert",
    "intersect",
    "invert",
    "join",
    "matches",
    "one_rewrite",
    "one_top_rewrite",
    "optimize",
    "project",
    "rewrite_lattice",
    "rewrites",
    "shortestpath",
    "string_file",
    "string_map",
    "top_rewrite",
    "top_rewrites",
    "union",
]
