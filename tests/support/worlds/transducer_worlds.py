"""Machines of ours and of pywrapfst's out of plain ones, and what is compared of them."""

from __future__ import annotations

import random
from typing import Any

import pywrapfst

from reference.transducers.transducers import Plain, close, plain, relation
from tokenfst.automata.transducers.arcs import Arc
from tokenfst.automata.transducers.vector import VectorFst

TOLERANCE = {"standard": 1e-5, "log": 1e-4, "log64": 1e-9, "tropical64": 1e-9}


def damaged(rng: random.Random, data: bytes) -> bytes:
    """A file with one wrong byte, sometimes cut off."""
    changed = bytearray(data)
    changed[rng.randrange(len(changed))] = rng.choice([0, 1, 127, 128, 255, rng.randrange(256)])
    if rng.random() < 0.2:
        del changed[rng.randrange(4, len(changed)) :]
    return bytes(changed)


def ours(given: Plain, arc_type: str = "standard") -> VectorFst:
    made = VectorFst(arc_type)
    made.add_states(given.states)
    if given.states:
        made.set_start(given.start)
    for state, weight in given.finals.items():
        made.set_final(state, weight)
    for source, ilabel, olabel, weight, target in given.arcs:
        made.add_arc(source, Arc(ilabel, olabel, float(weight), target))
    return made


def theirs(machine: VectorFst) -> Any:
    """The same machine in pywrapfst."""
    return pywrapfst.VectorFst.read_from_string(machine.write_to_string())


def adopted(machine: Any) -> VectorFst:
    """A machine of pywrapfst as one of ours."""
    return VectorFst.read_from_string(machine.write_to_string())


def sums(arc_type: str) -> bool:
    return arc_type in ("log", "log64")


def meaning(machine: Any, longest: int = 3) -> dict[Any, float]:
    """What a machine maps to what, by the twin."""
    return relation(plain(machine), longest, sums(machine.arc_type()))


def same(one: Any, other: Any, longest: int = 2, tolerance: float | None = None) -> bool:
    """Whether two machines, of ours or pywrapfst's, mean the same on all short pairs."""
    allowed = TOLERANCE[one.arc_type()] if tolerance is None else tolerance
    return close(meaning(one, longest), meaning(other, longest), allowed)
