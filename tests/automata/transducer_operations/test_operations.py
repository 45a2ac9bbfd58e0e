"""Every operation on random machines: against pywrapfst, and against the twin that sums paths by matrices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import pywrapfst
from support.worlds.random_transducers import ALL, BOTH, Operations, World, few_and_many, tried
from support.worlds.transducer_worlds import adopted, meaning, same, sums, theirs

import tokenfst.fst as fst
from reference.transducers.transducers import close
from tokenfst import Budget
from tokenfst.automata.transducers.checks import SHORTEST_DELTA
from tokenfst.errors import BudgetExceeded, FstOpError

SMALL = Budget(states=2000, seconds=20)


def in_place(name: str, *arguments: Any) -> Callable[[World], None]:
    """An operation in place whose result has the very states and arcs of pywrapfst's."""

    def check(world: World) -> None:
        machine = world.machine()
        found = getattr(machine.copy(), name)(*arguments)
        wanted = getattr(theirs(machine), name)(*arguments)
        assert pywrapfst.equal(theirs(found), wanted)

    return check


def of_two(name: str) -> Callable[[World], None]:
    def check(world: World) -> None:
        one, other = world.machine(), world.machine()
        found = getattr(one.copy(), name)(other)
        wanted = getattr(theirs(one), name)(theirs(other))
        assert pywrapfst.equal(theirs(found), wanted) or (name == "union" and world.same(found, wanted))

    return check


def reverse(world: World) -> None:
    machine = world.machine()
    assert pywrapfst.equal(theirs(fst.reverse(machine)), pywrapfst.reverse(theirs(machine)))
    plain = fst.reverse(machine, require_superinitial=False)
    assert world.same(plain, fst.reverse(machine))


def topsort(world: World) -> None:
    machine = world.machine(acyclic=world.rng.random() < 0.8)
    found = machine.copy().topsort()
    known = found.properties(0xC00000000)
    if known & 0x800000000:
        assert found.properties(0x4000000000)
        assert pywrapfst.isomorphic(theirs(found), theirs(machine)) if is_plain(machine) else True
    else:
        assert fst.equal(found, machine)


def is_plain(machine: fst.VectorFst) -> bool:
    """Whether the arcs of a state differ, as ``isomorphic`` needs."""
    return all(
        len({(a.ilabel, a.olabel, float(a.weight)) for a in machine.arcs(s)}) == machine.num_arcs(s)
        for s in machine.states()
    )


def properties(world: World) -> None:
    machine = world.machine()
    mask = (1 << 48) - 4
    assert machine.properties(mask) == pywrapfst_properties(machine) & mask


def pywrapfst_properties(machine: fst.VectorFst) -> int:
    return int(theirs(machine).properties(pywrapfst.FST_PROPERTIES, True).value)


def composition(name: str) -> Callable[[World], None]:
    def check(world: World) -> None:
        one, other = world.machine(), world.machine()
        if world.rng.random() < 0.5:
            one.arcsort("olabel")
        if world.rng.random() < 0.5:
            other.arcsort("ilabel")
        found = fst.compose(one, other, name)
        wanted = pywrapfst.compose(theirs(one).arcsort("olabel"), theirs(other), compose_filter=name)
        assert world.same(found, wanted)

    return check


def intersect(world: World) -> None:
    one, other = world.machine(acceptor=True), world.machine(acceptor=True)
    wanted = pywrapfst.intersect(theirs(one).arcsort("olabel"), theirs(other))
    assert world.same(fst.intersect(one, other), wanted, 4)


def difference(world: World) -> None:
    one, other = world.machine(acceptor=True), world.machine(acceptor=True)
    other = fst.arcmap(other, map_type="rmweight")
    if world.arc_type == "standard":
        plain = pywrapfst.determinize(theirs(other).rmepsilon()).arcsort("ilabel")
        if plain.start() >= 0:
            wanted = pywrapfst.difference(theirs(one), plain)
            assert world.same(fst.difference(one, other), wanted, 4)
    lost = meaning(fst.difference(one, other), 3)
    gone = meaning(fst.convert(other, "standard"), 3) if not sums(world.arc_type) else None
    if gone is not None:
        kept = {key: weight for key, weight in meaning(one, 3).items() if key not in gone}
        assert close(lost, kept, world.tolerance)


def distances(world: World) -> None:
    machine = world.machine()
    # pywrapfst gives a weight as a text of nine digits, which is all that float() finds.
    digits = max(world.tolerance, 1e-8)
    for backward in (False, True):
        found = fst.shortestdistance(machine, reverse=backward)
        wanted = [
            float(w) for w in pywrapfst.shortestdistance(theirs(machine), reverse=backward, delta=1e-12)
        ]
        wanted += [np.inf] * (machine.num_states() - len(wanted))
        assert np.allclose(found, wanted, rtol=digits, atol=digits)
        if sums(world.arc_type):
            assert np.allclose(found, solved(machine, backward), rtol=world.tolerance, atol=world.tolerance)


def solved(machine: fst.VectorFst, backward: bool) -> Any:
    """The distances of sums as a system of linear equations."""
    n = machine.num_states()
    step, ends = np.zeros((n, n)), np.zeros(n)
    for state in machine.states():
        ends[state] = np.exp(-float(machine.final(state)))
        for arc in machine.arcs(state):
            step[state, arc.nextstate] += np.exp(-float(arc.weight))
    begin = np.arange(n) == machine.start()
    reach = np.linalg.matrix_power(np.eye(n) + (step > 0), n) > 0
    total = np.linalg.solve(np.eye(n) - (step if backward else step.T), ends if backward else begin)
    there = (reach @ (ends > 0)) if backward else (begin @ reach)
    with np.errstate(divide="ignore"):
        return -np.log(np.where(there, total, 0))


def rmepsilon(world: World) -> None:
    machine = world.machine()
    found = machine.copy().rmepsilon()
    assert not any(arc.ilabel == arc.olabel == 0 for s in found.states() for arc in found.arcs(s))
    assert world.same(machine, found)


def within_delta(
    world: World, machine: fst.VectorFst, make: Callable[[float], fst.VectorFst], longest: int
) -> fst.VectorFst:
    """What ``make`` makes with OpenFst's ``delta``. Weights within ``delta`` of each other count as equal there, so
    that each arc of a path and its end may move its weight by as much; by nothing that is seen where ``delta`` is far
    below the tolerance.
    """
    made = make(SHORTEST_DELTA)
    assert same(machine, made, longest, max(world.tolerance, (longest + 1) * SHORTEST_DELTA))
    assert world.same(machine, make(1e-10), longest)
    return made


def minimized(world: World, machine: fst.VectorFst, longest: int, **more: bool) -> fst.VectorFst:
    """The smallest machine."""
    return within_delta(world, machine, lambda delta: machine.copy().minimize(delta=delta, **more), longest)


def determinize(world: World) -> None:
    machine = world.machine(acceptor=True, epsilons=False, acyclic=True)
    found = fst.determinize(machine)
    assert found.properties(0x40000)
    assert world.same(machine, found, 4)
    wanted = pywrapfst.determinize(theirs(machine.copy().connect()))
    assert found.num_states() == wanted.num_states()
    assert found.num_states() == 0 or fst.equivalent(found, adopted(wanted), 1e-3)
    smallest = minimized(world, found, 4)
    assert smallest.num_states() == wanted.minimize().num_states()


def determinize_cycles(world: World) -> None:
    machine = world.machine(acceptor=True, epsilons=False, states=4, arcs=6)
    try:
        found = within_delta(
            world, machine, lambda delta: fst.determinize(machine, delta=delta, budget=SMALL), 5
        )
    except BudgetExceeded:
        return
    assert found.properties(0x40000)
    smallest = minimized(world, found, 5)
    if (
        world.arc_type == "standard"
    ):  # quarters lie on the grid, sums of logarithms may lie between two places of it
        assert smallest.num_states() <= theirs(found).minimize().num_states()
    assert fst.equivalent(found, smallest, 1e-3)


def transducers(world: World) -> None:
    machine = world.machine(acyclic=True)
    kept = fst.determinize(machine, det_type="nonfunctional")
    assert world.same(machine, kept, 3)
    minimized(world, machine, 3, allow_nondet=True)
    try:
        found = fst.determinize(machine)
    except FstOpError as error:
        assert "not functional" in str(error)
        return
    assert world.same(machine, found, 3)
    if found.properties(0x40000):
        minimized(world, found, 3)


def push(world: World) -> None:
    machine = world.machine()
    for side in ("to_initial", "to_final"):
        for what in (
            {"push_weights": True},
            {"push_labels": True},
            {"push_weights": True, "push_labels": True},
        ):
            assert world.same(machine, fst.push(machine, reweight_type=side, **what))  # type: ignore[arg-type]
        distance = fst.shortestdistance(machine, reverse=side == "to_initial")
        if world.arc_type == "tropical64" or np.isfinite(distance).all():
            assert world.same(machine, machine.copy().reweight(distance, side))
        if machine.copy().connect().num_states():
            bare = fst.push(
                machine, push_weights=True, remove_total_weight=True, reweight_type=side, delta=1e-9
            )
            arguments = {
                "push_weights": True,
                "remove_total_weight": True,
                "reweight_type": side,
                "delta": 1e-9,
            }
            if world.arc_type in BOTH:
                wanted = pywrapfst.push(theirs(machine), **arguments)
                # OpenFst stops adding up cycles early; what is left of the total in its machine says how early.
                left = abs(float(fst.shortestdistance(fst.from_pynini(wanted), reverse=True)[wanted.start()]))
                ours = float(fst.shortestdistance(bare, reverse=True)[bare.start()])
                assert abs(ours) <= max(world.tolerance, 1e-6)
                assert same(bare, wanted, 2, max(world.tolerance, 1e-6, 2 * left))


def shortestpath(world: World) -> None:
    machine = world.machine()
    for count in (1, 2, 5):
        found = fst.shortestpath(machine, nshortest=count)
        wanted = pywrapfst.shortestpath(theirs(machine), nshortest=count)
        assert np.allclose(sorted(path_weights(found)), sorted(path_weights(wanted)))
    found = fst.shortestpath(machine, unique=True)  # one path is unique: OpenFst takes transducers too
    wanted = pywrapfst.shortestpath(theirs(machine), unique=True)
    assert np.allclose(path_weights(found), path_weights(wanted))
    acceptor = world.machine(acceptor=True, acyclic=True)
    found = fst.shortestpath(acceptor, nshortest=4, unique=True)
    wanted = sorted(meaning(acceptor, 5).values())[:4]
    assert np.allclose(sorted(path_weights(found)), wanted)
    assert len(meaning(found, 5)) == len(wanted)


def path_weights(machine: Any) -> list[float]:
    """Of a machine without cycles, the weight of each path."""
    found, stack = [], [(machine.start(), 0.0)] if machine.start() >= 0 else []
    while stack:
        state, weight = stack.pop()
        final = float(machine.final(state))
        if final != np.inf:
            found.append(weight + final)
        stack += [(arc.nextstate, weight + float(arc.weight)) for arc in machine.arcs(state)]
    return found


def prune(world: World) -> None:
    machine = world.machine()
    found = machine.copy().prune(weight=1.0)
    assert world.same(found, theirs(machine).prune(weight=1.0))


def randgen(world: World) -> None:
    machine = world.machine()
    path = fst.randgen(machine, npath=2, seed=world.rng.randrange(1000), max_length=4)
    known = meaning(machine, 3)
    assert all(key in known for key in meaning(path, 3))
    assert fst.randequivalent(machine, machine.copy(), npath=4, max_length=8)


def arcmap(world: World) -> None:
    machine = world.machine()
    maps: list[tuple[str, dict[str, Any]]] = [
        (name, {})
        for name in (
            "identity",
            "input_epsilon",
            "output_epsilon",
            "invert",
            "rmweight",
            "to_std",
            "to_log",
            "to_log64",
        )
    ]
    maps += [
        ("plus", {"weight": 2.0}),
        ("times", {"weight": 0.5}),
        ("power", {"power": 2.0}),
        ("quantize", {"delta": 0.5}),
    ]
    for name, arguments in maps:
        found = fst.arcmap(machine, map_type=name, **arguments)
        wanted = pywrapfst.arcmap(theirs(machine), map_type=name, **arguments)
        assert pywrapfst.equal(theirs(found), wanted), name
    assert world.same(machine, fst.arcmap(machine, map_type="superfinal"))


def encode(world: World) -> None:
    machine = world.machine()
    for labels, weights in ((True, False), (False, True), (True, True)):
        mapper = fst.EncodeMapper(machine.arc_type(), labels, weights)
        encoded = fst.encode(machine, mapper)
        if labels:
            assert encoded.properties(0x10000)
        if weights:
            assert encoded.properties(0x200000000)
        assert world.same(encoded.decode(mapper), machine)
    if world.arc_type == "tropical64":
        return
    plain = world.machine(epsilons=False)  # epsilon arcs of weight One have a label of their own in OpenFst
    wanted = theirs(plain).encode(pywrapfst.EncodeMapper(world.arc_type, encode_labels=True))
    assert pywrapfst.equal(theirs(fst.encode(plain, fst.EncodeMapper(world.arc_type, True))), wanted)


def replace(world: World) -> None:
    inner, root = world.machine(acyclic=True), world.machine()
    root = fst.arcmap(root)
    called = root.copy().relabel_pairs(opairs=[(2, 9)])
    for call in ("neither", "input", "output", "both"):
        found = fst.replace([(8, called), (9, inner)], call_arc_labeling=call)
        wanted = pywrapfst.replace([(8, theirs(called)), (9, theirs(inner))], call_arc_labeling=call)
        assert world.same(found, wanted)


def statemap(world: World) -> None:
    machine = world.machine()
    found = fst.statemap(machine, "arc_sum")
    assert world.same(found, machine)
    keys = [[(a.ilabel, a.olabel, a.nextstate) for a in found.arcs(s)] for s in found.states()]
    assert all(len(set(each)) == len(each) for each in keys)
    unique = fst.statemap(machine, "arc_unique")
    for state in machine.states():
        arcs = [(a.ilabel, a.olabel, float(a.weight), a.nextstate) for a in unique.arcs(state)]
        assert len(set(arcs)) == len(arcs)
        assert set(arcs) == {(a.ilabel, a.olabel, float(a.weight), a.nextstate) for a in machine.arcs(state)}


def epsnormalize(world: World) -> None:
    machine = world.machine(acyclic=True)
    for side in ("input", "output"):
        found = fst.epsnormalize(machine, side)
        assert world.same(found, machine, 3)
        if world.arc_type != "tropical64":
            assert world.same(found, pywrapfst.epsnormalize(theirs(machine), side), 3)
        for state in found.states():
            for arc in found.arcs(state):
                assert arc.ilabel or arc.olabel
    cyclic = world.machine()
    try:
        assert world.same(fst.epsnormalize(cyclic), cyclic)
    except FstOpError as error:
        assert "reads nothing and writes" in str(error)


def synchronize(world: World) -> None:
    machine = world.machine(acyclic=True)
    found = fst.synchronize(machine)
    assert world.same(found, machine, 3)
    assert world.same(found, pywrapfst.synchronize(theirs(machine)), 3)
    for state in found.states():
        for arc in found.arcs(state):
            if bool(arc.ilabel) != bool(arc.olabel):  # then one side alone goes on, to the end
                for after in found.arcs(arc.nextstate):
                    assert (not after.ilabel or bool(arc.ilabel)) and (not after.olabel or bool(arc.olabel))


OPERATIONS: Operations = {
    "closure": (in_place("closure"), BOTH),
    "closure-plus": (in_place("closure", "plus"), BOTH),
    "connect": (in_place("connect"), BOTH),
    "invert": (in_place("invert"), BOTH),
    "project": (in_place("project", "output"), BOTH),
    "arcsort": (in_place("arcsort", "olabel"), BOTH),
    "union": (of_two("union"), BOTH),
    "concat": (of_two("concat"), BOTH),
    "reverse": (reverse, BOTH),
    "topsort": (topsort, BOTH),
    "properties": (properties, BOTH),
    **{
        f"compose-{name}": (composition(name), BOTH)
        for name in ("auto", "alt_sequence", "match", "trivial", "null", "no_match")
    },
    "intersect": (intersect, BOTH),
    "difference": (difference, ("standard", "tropical64")),
    "shortestdistance": (distances, BOTH),
    "rmepsilon": (rmepsilon, ALL),
    "determinize": (determinize, BOTH),
    "determinize-cycles": (determinize_cycles, BOTH),
    "determinize-transducers": (transducers, ALL),
    "push": (push, ALL),
    "shortestpath": (shortestpath, ("standard",)),
    "prune": (prune, ("standard",)),
    "randgen": (randgen, ALL),
    "arcmap": (arcmap, BOTH),
    "encode": (encode, ALL),
    "replace": (replace, BOTH),
    "statemap": (statemap, BOTH),
    "epsnormalize": (epsnormalize, ALL),
    "synchronize": (synchronize, BOTH),
}
PARTS = {
    "determinize": 2, "determinize-cycles": 5, "determinize-transducers": 5, "push": 2, "shortestpath": 2, "randgen": 2,
    "epsnormalize": 3, "synchronize": 3,
}  # fmt: skip
"""Of the soak: those that take longer than half a minute."""


@few_and_many(OPERATIONS, PARTS)
def test_an_operation_is_openfsts(name: str, arc_type: str, seeds: range) -> None:
    tried(name, OPERATIONS[name][0], arc_type, seeds)


@pytest.mark.parametrize("side", ["ilabel", "olabel"])
@pytest.mark.parametrize("count", [0, 1, 2, 23, 24, 25, 26, 300])
def test_arcsort_is_stable_for_few_and_many_arcs(side: str, count: int) -> None:
    """Arcs with equal labels keep their order, whether they are inserted one by one or sorted by their keys."""
    drawn = np.random.default_rng(count).integers(1, 5, (count, 2)).tolist()
    arcs = [(one, other, float(place)) for place, (one, other) in enumerate(drawn)]
    machine = fst.VectorFst()
    machine.set_start(machine.add_state()).set_final(0)
    for one, other, weight in arcs:
        machine.core.add_arc(0, one, other, weight, 0)
    machine.arcsort(side)
    first, second = (0, 1) if side == "ilabel" else (1, 0)
    wanted = sorted(arcs, key=lambda arc: (arc[first], arc[second]))
    assert [(arc.ilabel, arc.olabel, float(arc.weight)) for arc in machine.arcs(0)] == wanted
