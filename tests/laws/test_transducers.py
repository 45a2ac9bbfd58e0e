"""Laws of weighted transducers: what must hold for all machines, whatever OpenFst says."""

from __future__ import annotations

import numpy as np
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.worlds.transducer_worlds import TOLERANCE, ours, same

import tokenfst.fst as fst
from reference.transducers.transducers import Diverges, Plain
from tokenfst import Budget
from tokenfst.errors import BudgetExceeded, FstOpError

SMALL = Budget(states=2000)
COSTS = st.integers(6, 14).map(lambda quarters: quarters / 4)


@st.composite
def machines(draw: st.DrawFn, arc_type: str, acceptor: bool = False, epsilons: bool = True) -> fst.VectorFst:
    states = draw(st.integers(1, 4))
    state, label = st.integers(0, states - 1), st.integers(0 if epsilons else 1, 2)
    arcs = draw(st.lists(st.tuples(state, label, label, COSTS, state), max_size=6))
    if acceptor:
        arcs = [(source, ilabel, ilabel, weight, target) for source, ilabel, _, weight, target in arcs]
    finals = draw(st.dictionaries(state, COSTS, min_size=1, max_size=2))
    return ours(Plain(0, finals, arcs, states), arc_type)


TYPES = st.sampled_from(["standard", "tropical64", "log64"])


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_composition_associates(data: st.DataObject) -> None:
    kind = data.draw(TYPES)
    a, b, c = (data.draw(machines(kind)) for _ in range(3))
    try:
        assert same(fst.compose(fst.compose(a, b), c), fst.compose(a, fst.compose(b, c)))
    except Diverges:
        assume(False)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_composition_is_inverted_backwards(data: st.DataObject) -> None:
    kind = data.draw(TYPES)
    a, b = (data.draw(machines(kind)) for _ in range(2))
    try:
        turned = fst.compose(b.copy().invert(), a.copy().invert())
        assert same(fst.compose(a, b).invert(), turned)
    except Diverges:
        assume(False)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_composition_distributes_over_union(data: st.DataObject) -> None:
    kind = data.draw(TYPES)
    a, b, c = (data.draw(machines(kind)) for _ in range(3))
    try:
        assert same(fst.compose(a, b.copy().union(c)), fst.compose(a, b).union(fst.compose(a, c)))
    except Diverges:
        assume(False)


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_distances_backwards_are_those_of_the_reverse(data: st.DataObject) -> None:
    kind = data.draw(TYPES)
    machine = data.draw(machines(kind))
    try:
        backward = fst.shortestdistance(machine, reverse=True)
        turned = fst.shortestdistance(fst.reverse(machine))
    except FstOpError:
        assume(False)
    assert np.allclose(backward, turned[1:], rtol=TOLERANCE[kind])
    forward = fst.shortestdistance(machine)
    finals = machine.arrays()[0]
    plus, total = machine.kind.core.plus, machine.kind.core.zero()
    for distance, final in zip(forward, finals, strict=True):
        total = plus(total, float(distance) + float(final))
    assert np.isclose(total, backward[0], rtol=TOLERANCE[kind])


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_a_pushed_machine_sums_to_one_in_each_state(data: st.DataObject) -> None:
    machine = data.draw(machines("log64", epsilons=False)).connect()
    try:
        pushed = fst.push(machine, push_weights=True, remove_total_weight=True)
    except FstOpError:
        assume(False)
    for state in pushed.states():
        shares = [np.exp(-float(arc.weight)) for arc in pushed.arcs(state)]
        assert np.isclose(sum(shares) + np.exp(-float(pushed.final(state))), 1, rtol=1e-9)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_determinizing_and_minimizing_change_no_meaning_and_do_so_once(data: st.DataObject) -> None:
    kind = data.draw(TYPES)
    machine = data.draw(machines(kind, acceptor=True))
    try:
        machine.rmepsilon()
        found = fst.determinize(machine, budget=SMALL)
        assert same(machine, found, 4, 4 * TOLERANCE[kind])
        smallest = found.copy().minimize()
    except (BudgetExceeded, Diverges, FstOpError):
        assume(False)
    assert same(machine, smallest, 4, 4 * TOLERANCE[kind])
    assert smallest.copy().minimize().num_states() == smallest.num_states()
    assert fst.equivalent(found, smallest, 1e-4)
    if smallest.num_states():
        assert not fst.equivalent(
            found, smallest.copy().concat(fst.accep("\t", arc_type=kind)).rmepsilon(), 1e-4
        )


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_a_machine_and_what_it_lacks(data: st.DataObject) -> None:
    a, b = (data.draw(machines("standard", acceptor=True)) for _ in range(2))
    b = fst.arcmap(b, map_type="rmweight")
    plain = fst.optimize(b)
    assert same(fst.intersect(a, plain).union(fst.difference(a, b)), a, 4)
    assert fst.intersect(fst.difference(a, b), plain).num_states() == 0


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_the_best_paths_are_the_first_of_more_of_them(data: st.DataObject) -> None:
    machine = data.draw(machines("standard"))
    weights = []
    for count in (1, 2, 4):
        tree = fst.shortestpath(machine, nshortest=count)
        forward, finals = fst.shortestdistance(tree), tree.arrays()[0]
        weights.append(sorted(float(w) for w in forward + finals if w != np.inf))
    assert all(np.allclose(weights[-1][: len(each)], each) for each in weights)
    distance = fst.shortestdistance(machine, reverse=True)[0]
    assert weights[0] == ([] if distance == np.inf else [float(distance)])


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_semirings_agree_where_they_mean_the_same(data: st.DataObject) -> None:
    machine = data.draw(machines("log64"))
    real = fst.convert(machine, "real64")
    try:
        costs = fst.shortestdistance(machine)
    except FstOpError:
        try:
            fst.shortestdistance(real)
        except FstOpError:
            return
        raise AssertionError("probabilities have a sum, and their logarithms none") from None
    assert np.allclose(np.exp(-costs), fst.shortestdistance(real), rtol=1e-9)
    reached = fst.shortestdistance(fst.convert(machine, "boolean"))
    assert np.array_equal(reached == 1, costs != np.inf)
