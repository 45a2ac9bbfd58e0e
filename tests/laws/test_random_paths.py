"""Laws of random paths: each is a path of the machine, each as often as its probability says, and machines that an
operation does not change in meaning are not told from each other by them.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

import pytest
import pywrapfst
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.worlds.transducer_worlds import meaning, theirs

import tokenfst.fst as fst
from reference.transducers.transducers import Diverges
from tests.laws.test_transducers import SMALL, machines
from tokenfst.errors import BudgetExceeded, FstOpError

Path = tuple[tuple[int, int], ...]
"""The labels of the arcs of a path, input and output."""
DRAWS, ACYCLIC = 2000, 0x800000000
COSTS = ("standard", "tropical64", "log", "log64")
TYPES = st.sampled_from([*COSTS, "real64"])


@st.composite
def any_machine(draw: st.DrawFn, kind: str, **shape: Any) -> fst.VectorFst:
    """A small machine over costs or, for ``real64``, probabilities."""
    if kind != "real64":
        return draw(machines(kind, **shape))
    return fst.convert(draw(machines("log64", **shape)), kind)


def paths(machine: Any, longest: int = 10_000) -> list[tuple[Path, float]]:
    """The accepting paths of an acyclic machine, or all up to a length: labels, and the weights as written."""
    if machine.start() < 0:
        return []
    none = 0.0 if machine.weight_type().startswith("real") else math.inf
    product = float.__mul__ if machine.weight_type().startswith("real") else float.__add__
    found, waiting = [], [(machine.start(), (), 1.0 if none == 0 else 0.0)]
    while waiting:
        state, labels, weight = waiting.pop()
        if (final := float(machine.final(state))) != none:
            found.append((labels, product(weight, final)))
        if len(labels) < longest:
            for arc in machine.arcs(state):
                pair = (*labels, (arc.ilabel, arc.olabel))
                waiting.append((arc.nextstate, pair, product(weight, float(arc.weight))))
    return found


def drawn(machine: Any) -> Counter[Path]:
    """How often each path was drawn: the result is a chain for each, from one start."""
    return Counter(labels for labels, _ in paths(machine))


def probabilities(machine: fst.VectorFst, select: str, longest: int) -> dict[Path, float]:
    """The probability of each path of at most ``longest`` arcs, by the shares of the arcs of each state, in which the
    end counts as an arc. None of the states is dead.
    """
    real = machine.arc_type().startswith("real")

    def share(weight: Any) -> float:
        if select == "uniform":
            return 1.0
        return float(weight) if real else math.exp(-float(weight))

    none = 0.0 if real else math.inf
    found: dict[Path, float] = defaultdict(float)
    waiting: list[tuple[int, Path, float]] = [(machine.start(), (), 1.0)]
    while waiting:
        state, labels, probability = waiting.pop()
        end = share(machine.final(state)) if float(machine.final(state)) != none else 0.0
        arcs = [(arc, share(arc.weight)) for arc in machine.arcs(state)]
        total = end + sum(each for _, each in arcs)
        if end:
            found[labels] += probability * end / total
        if len(labels) < longest:
            for arc, each in arcs:
                pair = (*labels, (arc.ilabel, arc.olabel))
                waiting.append((arc.nextstate, pair, probability * each / total))
    return dict(found)


def unlikely(counts: dict[Any, int], expected: dict[Any, float]) -> bool:
    """Whether Pearson's statistic is beyond what chance gives once in more than a million cases: its mean is the number
    of classes less one, and its variance twice that. Classes that are rare count as one.
    """
    rare = [key for key, count in expected.items() if count < 5]
    kept = [(counts.get(key, 0), count) for key, count in expected.items() if count >= 5]
    left = sum(expected[key] for key in rare)
    if left > 0:
        kept.append((sum(counts.get(key, 0) for key in rare), max(left, 1.0)))
    freedom = max(len(kept) - 1, 1)
    return sum((seen - due) ** 2 / due for seen, due in kept) > freedom + 6 * math.sqrt(2 * freedom) + 20


@settings(max_examples=30, deadline=None)
@given(st.data())
def test_random_paths_are_paths_of_the_machine(data: st.DataObject) -> None:
    """The labels of each, epsilons too, are those of a path of the machine, and it is at most as long as allowed."""
    machine = data.draw(any_machine(data.draw(TYPES)))
    longest, seed = data.draw(st.integers(0, 5)), data.draw(st.integers(0, 1000))
    select = data.draw(st.sampled_from(["uniform", "log_prob"]))
    found = drawn(fst.randgen(machine, npath=30, seed=seed, select=select, max_length=longest))
    known = {labels for labels, _ in paths(machine, longest)}
    assert all(labels in known or (labels == ((0, 0),) and () in known) for labels in found)
    assert found.total() <= 30
    if machine.copy().connect().num_states() and not machine.copy().connect().num_arcs():
        assert found.total() == 30  # the path without arcs, written as an epsilon


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_paths_are_drawn_with_their_probabilities(data: st.DataObject) -> None:
    machine = data.draw(any_machine(data.draw(TYPES))).connect()
    assume(machine.num_states() > 0)
    select, longest = data.draw(st.sampled_from(["uniform", "log_prob"])), 3
    due = {path or ((0, 0),): 0.0 for path in probabilities(machine, select, longest)}
    for path, probability in probabilities(machine, select, longest).items():
        due[path or ((0, 0),)] += probability * DRAWS
    found = drawn(fst.randgen(machine, npath=DRAWS, seed=1, select=select, max_length=longest))
    dropped = DRAWS - sum(due.values())
    counts = {**found, "dropped": DRAWS - found.total()}
    assert not unlikely(counts, {**due, "dropped": dropped}), machine.print()


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_paths_are_drawn_as_often_as_by_openfst(data: st.DataObject) -> None:
    """Two samples of one distribution: half of what both draw is expected of each. OpenFst's result has the path
    without arcs at most once, so what was drawn without arcs counts as not drawn for both.
    """
    machine = data.draw(any_machine(data.draw(st.sampled_from(["standard", "log", "log64"])))).connect()
    assume(machine.num_states() > 0)
    select = data.draw(st.sampled_from(["uniform", "log_prob"]))
    arguments: dict[str, Any] = {"npath": DRAWS, "seed": 2, "select": select}
    samples = [
        drawn(fst.randgen(machine, max_length=4, **arguments)),
        drawn(pywrapfst.randgen(theirs(machine), max_length=5, **arguments)),  # it counts the end as an arc
    ]
    counts: dict[Any, int] = {}
    for who, sample in enumerate(samples):
        some = {path: count for path, count in sample.items() if path not in ((), ((0, 0),))}
        counts |= {(who, path): count for path, count in some.items()}
        counts[who, "none"] = DRAWS - sum(some.values())
    due = {
        (who, path): (counts.get((0, path), 0) + counts.get((1, path), 0)) / 2
        for _, path in counts
        for who in (0, 1)
    }
    assert not unlikely(counts, due), machine.print()


@settings(max_examples=20, deadline=None)
@given(st.data())
def test_the_tree_of_random_paths_has_their_counts(data: st.DataObject) -> None:
    """The weight of each path in the tree is how often it was drawn, or with ``remove_total_weight`` its share."""
    kind = data.draw(TYPES)
    machine = data.draw(any_machine(kind))
    arguments: dict[str, Any] = {"npath": 40, "seed": data.draw(st.integers(0, 100)), "max_length": 4}
    counts: Counter[Path] = Counter()
    for labels, count in drawn(fst.randgen(machine, **arguments)).items():
        counts[tuple(pair for pair in labels if pair != (0, 0))] += count
    for share in (False, True):
        tree = fst.randgen(machine, weighted=True, remove_total_weight=share, **arguments)
        assert tree.verify()
        found = dict(paths(tree))
        assert len(found) == len(paths(tree)) and found.keys() == counts.keys()
        for path, weight in found.items():
            value = weight if kind == "real64" else math.exp(-weight)
            assert math.isclose(value, counts[path] * ((1 if share else 40) / counts.total()), rel_tol=1e-4)


@settings(max_examples=15, deadline=None)
@given(st.data())
def test_a_seed_gives_the_same_paths_and_more_of_them_begin_with_fewer(data: st.DataObject) -> None:
    machine = data.draw(any_machine(data.draw(TYPES)))
    seed = data.draw(st.integers(0, 2**62))
    few, many = (fst.randgen(machine, npath=count, seed=seed, max_length=5) for count in (5, 20))
    assert fst.equal(few, fst.randgen(machine.copy(), npath=5, seed=seed, max_length=5))
    assert not drawn(few) - drawn(many)


UNCHANGED: dict[str, Callable[[fst.VectorFst], fst.VectorFst]] = {
    "rmepsilon": lambda a: a.copy().rmepsilon(),
    "connect": lambda a: a.copy().connect(),
    "push": lambda a: fst.push(a.copy().connect(), push_weights=True),
    "reverse": lambda a: fst.reverse(fst.reverse(a)),
    "synchronize": lambda a: fst.synchronize(a, budget=SMALL),
    "epsnormalize": lambda a: fst.epsnormalize(a, budget=SMALL),
    "optimize": lambda a: fst.optimize(a, budget=SMALL),
    "union": lambda a: fst.VectorFst(a.arc_type()).union(a),
    "invert": lambda a: a.copy().invert().invert(),
    "arcsort": lambda a: a.copy().arcsort("olabel"),
    "lazy": lambda a: fst.lazy.rmepsilon(a).expand(),
}  # fmt: skip


@pytest.mark.parametrize("name", UNCHANGED)
@settings(max_examples=8, deadline=None)
@given(st.data())
def test_random_paths_do_not_tell_a_machine_from_what_means_the_same(name: str, data: st.DataObject) -> None:
    machine = data.draw(any_machine(data.draw(TYPES)))
    seed, select = data.draw(st.integers(0, 1000)), data.draw(st.sampled_from(["uniform", "log_prob"]))
    try:
        made = UNCHANGED[name](machine)
        found = fst.randequivalent(machine, made, npath=12, seed=seed, select=select, max_length=6)
    except (BudgetExceeded, FstOpError):  # there is no such machine, or a sum diverges
        assume(False)
    assert found


@settings(max_examples=40, deadline=None)
@given(st.data())
def test_random_paths_tell_machines_from_each_other_by_a_witness(data: st.DataObject) -> None:
    """False only where some pair of texts has two weights. Where all paths are short and many are drawn: only then,
    and OpenFst says so too.
    """
    kind = data.draw(st.sampled_from(["standard", "log", "log64"]))
    one = data.draw(machines(kind))
    other = one.copy()
    change = data.draw(st.sampled_from(["none", "final", "arc", "gone"]))
    state = data.draw(st.integers(0, one.num_states() - 1))
    if change == "final":
        other.set_final(state, 2.625)
    elif change == "arc":
        other.add_arc(state, fst.Arc(1, 2, 1.5, one.num_states() - 1))
    elif change == "gone":
        other.delete_arcs(state)
    arguments: dict[str, Any] = {"npath": 400, "delta": 1e-3, "max_length": 4}
    try:
        found = fst.randequivalent(one, other, seed=3, **arguments)
        means = [meaning(each, 4) for each in (one, other)]
    except (Diverges, FstOpError):
        assume(False)
    none = math.inf
    apart = [
        pair
        for pair in means[0].keys() | means[1].keys()
        if (first := means[0].get(pair, none)) != (second := means[1].get(pair, none))
        and not abs(first - second) <= 1e-3
    ]
    if not found:
        assert apart
    if one.properties(ACYCLIC) and other.properties(ACYCLIC):
        assert found == (not apart)
        assert found == pywrapfst.randequivalent(theirs(one), theirs(other), seed=3, **arguments)
