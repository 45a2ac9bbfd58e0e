"""All machines of two states and at most two arcs (one by default) over a label and epsilon, against the twin."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator

import pytest
from support.worlds.transducer_worlds import meaning, ours, same

import tokenfst.fst as fst
from reference.transducers.transducers import Diverges, Plain, close, plain, relation
from tokenfst.errors import FstOpError

LABELS = ((0, 0), (0, 1), (1, 0), (1, 1))
FINALS = ({0: 0.5}, {1: 0.5}, {0: 0.25, 1: 1.0})


def worlds(arcs: int) -> Iterator[Plain]:
    """Weights are 0.75, 1.0, ... in the order of the arcs."""
    edges = [(s, i, o, t) for s, t in itertools.product(range(2), repeat=2) for i, o in LABELS]
    for count in range(arcs + 1):
        for chosen in itertools.combinations_with_replacement(edges, count):
            made = [(s, i, o, 0.75 + k / 4, t) for k, (s, i, o, t) in enumerate(chosen)]
            for finals in FINALS:
                yield Plain(0, dict(finals), made, 2)


@pytest.mark.parametrize("arcs", [1, pytest.param(2, marks=pytest.mark.soak)])
@pytest.mark.parametrize("arc_type", ["tropical64", "log64"])
def test_each_operation_of_one_machine(arc_type: str, arcs: int) -> None:
    for world in worlds(arcs):
        machine = ours(world, arc_type)
        try:
            wanted = meaning(machine, 2)
        except Diverges:
            with pytest.raises(FstOpError):
                machine.copy().rmepsilon(connect=False)
            continue
        for found in (
            machine.copy().rmepsilon(),
            machine.copy().connect(),
            machine.copy().arcsort("olabel"),
            machine.copy().topsort(),
            fst.push(machine, push_labels=True),
            machine.copy().minimize(allow_nondet=True) if converges(machine) else machine,
            fst.reverse(fst.reverse(machine)),
        ):
            assert close(meaning(found, 2), wanted, 1e-9), machine.print()


def converges(machine: fst.VectorFst) -> bool:
    try:
        fst.shortestdistance(machine, reverse=True)
    except FstOpError:
        return False
    return True


def test_composition_of_all_pairs() -> None:
    """The sum over what stands between is written out: both write and read at most two labels on the way."""
    small = [world for world in worlds(1) if all(s != t for s, _, _, _, t in world.arcs)]
    relations = [relation(world, 2, False, (1,)) for world in small]
    machines = [ours(world, "tropical64") for world in small]
    for (one, first), (other, second) in itertools.product(zip(machines, relations, strict=True), repeat=2):
        wanted: dict[object, float] = {}
        for (x, y), weight in first.items():
            for (again, z), more in second.items():
                if y == again:
                    wanted[x, z] = min(wanted.get((x, z), math.inf), weight + more)
        for name in ("sequence", "alt_sequence", "match"):
            found = relation_of(fst.compose(one, other, name))
            assert close(found, wanted, 1e-9)


def relation_of(machine: fst.VectorFst) -> dict[object, float]:
    return relation(plain(machine), 2, False, (1,))


def test_all_small_acceptors_are_determinized() -> None:
    edges = [(s, label, t) for s, t in itertools.product(range(2), repeat=2) for label in (1, 2)]
    for chosen in itertools.combinations(edges, 2):
        arcs = [(s, label, label, 1.0, t) for s, label, t in chosen]
        for finals in FINALS:
            machine = ours(Plain(0, dict(finals), arcs, 2), "standard")
            found = fst.determinize(machine)
            assert same(machine, found, 4)
            assert same(machine, found.copy().minimize(), 4)
            wanted = fst.optimize(fst.arcmap(machine, map_type="rmweight"))
            assert wanted.num_states() <= found.num_states() or not found.num_states()
