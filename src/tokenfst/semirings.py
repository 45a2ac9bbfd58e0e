"""Semirings written in Python, and machines over them: ``import tokenfst.semirings`` (docs/fst/semirings.md).

For research, and slow: what ``tokenfst.fst`` has natively is quicker by orders of magnitude.
"""

from __future__ import annotations

from tokenfst.automata.semirings.distances import shortestdistance
from tokenfst.automata.semirings.machines import SemiringArc, SemiringFst, lifted, lowered
from tokenfst.automata.semirings.numbers import Number, Reals
from tokenfst.automata.semirings.operations import (
    closure,
    compose,
    concat,
    connect,
    determinize,
    invert,
    project,
    push,
    reverse,
    rmepsilon,
    union,
)
from tokenfst.automata.semirings.protocol import Semiring
from tokenfst.automata.semirings.structured import Expectation, Gallic, Lexicographic, Power, String

__all__ = [
    "Expectation",
    "Gallic",
    "Lexicographic",
    "Number",
    "Power",
    "Reals",
    "Semiring",
    "SemiringArc",
    "SemiringFst",
    "String",
    "closure",
    "compose",
    "concat",
    "connect",
    "determinize",
    "invert",
    "lifted",
    "lowered",
    "project",
    "push",
    "reverse",
    "rmepsilon",
    "shortestdistance",
    "union",
]
