"""Semirings written in Python, and machines over them: ``import tokenfst.semirings`` (docs/fst/semirings.md).

They are for research, and slow: the semirings that ``tokenfst.fst`` has natively are faster by orders of magnitude.
"""

from __future__ import annotations

from tokenfst.automata.semirings.distances import shortestdistance
from tokenfst.automata.semirings.files import from_bytes, read, to_bytes, write
from tokenfst.automata.semirings.machines import SemiringArc, SemiringFst, lifted, lowered
from tokenfst.automata.semirings.numbers import Number, Reals, SignedLog
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
from tokenfst.automata.semirings.structured import Expectation, Gallic, Lexicographic, Power, Product, String

__all__ = [
    "Expectation",
    "Gallic",
    "Lexicographic",
    "Number",
    "Power",
    "Product",
    "Reals",
    "Semiring",
    "SemiringArc",
    "SemiringFst",
    "SignedLog",
    "String",
    "closure",
    "compose",
    "concat",
    "connect",
    "determinize",
    "from_bytes",
    "invert",
    "lifted",
    "lowered",
    "project",
    "push",
    "read",
    "reverse",
    "rmepsilon",
    "shortestdistance",
    "to_bytes",
    "union",
    "write",
]
