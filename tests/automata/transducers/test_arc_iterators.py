"""Iterators over the arcs of a state: beside pywrapfst's, and what they refuse."""

from __future__ import annotations

from typing import Any

import pytest
import pywrapfst
from support.worlds.transducer_worlds import theirs

import tokenfst.fst as fst
from tokenfst.errors import FstArgError, FstIndexError


def test_iterators_of_arcs_are_pywrapfsts() -> None:
    """Beside pywrapfst: loops, calls by hand, and arcs that are replaced on the way."""
    arcs = [(1, 2, 0.5), (3, 4, 1.5), (5, 6, 0.25), (7, 0, 0.0)]

    def made(module: Any) -> Any:
        machine = module.VectorFst()
        machine.add_states(2)
        machine.set_start(0).set_final(1)
        for ilabel, olabel, weight in arcs:
            machine.add_arc(0, module.Arc(ilabel, olabel, weight, 1))
        return machine

    def seen(machine: Any, module: Any) -> list[Any]:
        found = []
        at = machine.arcs(0)
        while not at.done():
            arc = at.value()
            found.append((at.position(), arc.ilabel, arc.olabel, float(arc.weight), arc.nextstate))
            at.next()
        at.reset()
        at.seek(2)
        found.append(at.value().ilabel)
        found.append([(at.position(), arc.ilabel) for arc in at])
        changing = machine.mutable_arcs(0)
        for arc in changing:
            if arc.ilabel in (3, 7):
                arc.olabel, arc.weight, arc.nextstate = 9, 2.5, 0
                changing.set_value(arc)
        changing.reset()
        changing.next()
        found.append((changing.position(), changing.value().olabel, changing.done()))
        changing.set_value(module.Arc(8, 8, 0.125, 1))
        return found

    ours, other = made(fst), made(pywrapfst)
    assert seen(ours, fst) == seen(other, pywrapfst)
    assert pywrapfst.equal(theirs(ours), other)
    assert [arc.ilabel for arc in ours.arcs(0)] == [1, 8, 5, 7] and next(ours.arcs(0)).ilabel == 1
    lazy = fst.lazy.union(ours, ours)
    at = lazy.arcs(lazy.start())
    at.next()
    assert not at.done() and at.value().ilabel == 0


def test_iterators_of_arcs_refuse_what_is_not_there() -> None:
    machine = fst.accep("a")
    at = machine.mutable_arcs(0)
    for wrong in (fst.Arc(-1, 1, 0, 1), fst.Arc(1, 1, float("nan"), 1), fst.Arc(1, 1, 0, 9)):
        with pytest.raises(fst.FstError):
            at.set_value(wrong)
    assert fst.equal(machine, fst.accep("a"))
    with pytest.raises(FstArgError, match="seek: the number of an arc must not be negative: -1"):
        at.seek(-1)
    at.seek(1)
    for call in (at.value, lambda: at.set_value(fst.Arc(1, 1, 0, 1))):
        with pytest.raises(FstIndexError, match="after the last of 1 arcs"):
            call()
    with pytest.raises(FstIndexError):
        machine.arcs(7)
