"""Disambiguation, and what a threshold of weights or states leaves, beside pywrapfst."""

from __future__ import annotations

import random

import pytest
import pywrapfst
from support.worlds.transducer_worlds import TOLERANCE, adopted, meaning, ours, same, sums, theirs

import tokenfst.fst as fst
from reference.transducers.transducers import diverges, random_plain
from tokenfst import Budget
from tokenfst.errors import BudgetExceeded, FstArgError, FstOpError

SMALL = Budget(states=3000, seconds=60)


def random_machine(rng: random.Random, arc_type: str, **shape: object) -> fst.VectorFst:
    while True:
        made = random_plain(rng, least=1.5 if sums(arc_type) else 0.0, **shape)  # type: ignore[arg-type]
        if not sums(arc_type) or not diverges(made):
            return ours(made, arc_type)


def ambiguous_words(machine: fst.VectorFst, longest: int) -> set[tuple[int, ...]]:
    """Inputs of more than one path, among the short ones; epsilon counts as a label."""
    ways: dict[tuple[int, ...], list[int]] = {(): [machine.start()]} if machine.start() >= 0 else {}
    zero, found = fst.Weight.zero(machine.weight_type()), set()
    for _ in range(longest + 1):
        after: dict[tuple[int, ...], list[int]] = {}
        for word, states in ways.items():
            if sum(machine.final(state) != zero for state in states) > 1:
                found.add(word)
            for state in states:
                for arc in machine.arcs(state):
                    after.setdefault((*word, arc.ilabel), []).append(arc.nextstate)
        ways = after
    return found


@pytest.mark.parametrize("arc_type", ["standard", "log64", "log", "tropical64"])
def test_disambiguate_leaves_one_path_a_word(arc_type: str) -> None:
    done = 0
    for seed in range(25):
        rng = random.Random(seed)
        machine = random_machine(rng, arc_type, acceptor=True, acyclic=rng.random() < 0.5)
        try:
            found = fst.disambiguate(machine, delta=1e-9, budget=SMALL)
        except BudgetExceeded:
            continue
        done += 1
        assert not ambiguous_words(found, 5), seed
        assert same(found, machine, 4, 8 * TOLERANCE[arc_type]), seed
        if arc_type == "standard" and seed < 15:
            assert same(found, pywrapfst.disambiguate(theirs(machine)), 4), seed
    assert done > 18


def test_disambiguate_keeps_what_is_unambiguous() -> None:
    # Not determinizable: after "a", "aa" ... with two weights, which of them only the last label tells.
    machine = ours(random_plain(random.Random(0)), "log64")
    machine.delete_states().add_states(4)
    machine.set_start(0).set_final(3)
    for source, label, weight, target in (
        (0, 1, 1, 1),
        (0, 1, 2, 2),
        (1, 1, 1, 1),
        (2, 1, 3, 2),
        (1, 2, 0, 3),
        (2, 3, 0, 3),
    ):
        machine.add_arc(source, fst.Arc(label, label, weight, target))
    assert fst.isomorphic(fst.disambiguate(machine), machine)
    with pytest.raises(BudgetExceeded):
        fst.determinize(machine, budget=Budget(states=200))


def test_disambiguate_of_transducers() -> None:
    for seed in range(6):
        rng = random.Random(seed)
        machine = random_machine(rng, "standard", acyclic=True, epsilons=False)
        try:
            found = fst.disambiguate(machine, budget=SMALL)
        except FstOpError as error:
            assert "not functional" in str(error)
            relation = meaning(machine, 4)
            assert len({read for read, _ in relation}) < len(relation)
            continue
        assert not ambiguous_words(found, 5) and same(found, machine, 4), seed
    nothing = fst.VectorFst()
    assert fst.disambiguate(nothing).num_states() == 0


def test_prune_by_states_is_openfsts() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        machine = random_machine(rng, "standard", states=7, arcs=14)
        # Weights that differ, so that the order of states does not hang on ties.
        for at, state in enumerate(machine.states()):
            machine.set_final(state, machine.final(state)) if at else None
        machine = fst.arcmap(machine, map_type="power", power=1 + seed / 97)
        nstate, weight = rng.randint(0, 7), rng.choice((None, 0.5, 2.0))
        found = fst.prune(machine, nstate=nstate, weight=weight)
        assert found.num_states() <= nstate
        wanted = pywrapfst.prune(theirs(machine), nstate=nstate, weight=weight).connect()
        assert found.num_states() == wanted.num_states() or not is_generic(machine), seed
        everything = fst.prune(machine, nstate=1000, weight=weight)
        assert same(everything, fst.prune(machine, weight="Infinity" if weight is None else weight)), seed


def is_generic(machine: fst.VectorFst) -> bool:
    """Whether no two states lie on best paths of one weight."""
    before, after = fst.shortestdistance(machine), fst.shortestdistance(machine, reverse=True)
    through = [round(float(a + b), 4) for a, b in zip(before, after, strict=True) if a + b < float("inf")]
    return len(set(through)) == len(through)


def test_determinize_with_a_threshold() -> None:
    for seed in range(20):
        rng = random.Random(seed)
        machine = random_machine(rng, "standard", acceptor=True, acyclic=True, epsilons=False)
        weight = rng.choice((0.25, 1.0, 3.0))
        found = fst.determinize(machine, weight=weight)
        wanted = pywrapfst.determinize(theirs(machine), weight=weight)
        assert same(found, wanted, 4), seed
        assert same(found, fst.prune(fst.determinize(machine), weight=weight), 4), seed
        few = fst.determinize(machine, nstate=2)
        assert few.num_states() <= 2


def test_a_threshold_spares_the_subsets_it_drops() -> None:
    # (a|b)* a (a|b)^n: 2^n subsets; with a cost for each b, few of them are good.
    n = 18
    machine = fst.VectorFst()
    machine.add_states(n + 2)
    machine.set_start(0).set_final(n + 1)
    for label in (1, 2):
        machine.add_arc(0, fst.Arc(label, label, 10.0 * label, 0))
        for state in range(1, n + 1):
            machine.add_arc(state, fst.Arc(label, label, 10.0 * label, state + 1))
    machine.add_arc(0, fst.Arc(1, 1, 1, 1))
    with pytest.raises(BudgetExceeded):
        fst.determinize(machine, budget=Budget(states=5000))
    found = fst.determinize(machine, weight=5.0, budget=Budget(states=5000))
    assert 0 < found.num_states() < 100


def test_rmepsilon_and_shortestpath_with_thresholds() -> None:
    for seed in range(6):
        rng = random.Random(seed)
        machine = random_machine(rng, "standard", acyclic=True)
        found = machine.copy().rmepsilon(weight=1.0)
        assert same(found, theirs(machine).rmepsilon(weight=1.0), 4), seed
        best = fst.shortestpath(machine, nshortest=20, weight=1.0)
        assert same(best, pywrapfst.shortestpath(theirs(machine), nshortest=20, weight=1.0), 4), seed
        assert fst.shortestpath(machine, nshortest=20, nstate=1).num_states() <= 3
        if machine.num_states() > 1:
            found = fst.shortestdistance(machine, nstate=1)
            assert [float(each) for each in found] == pytest.approx(
                (
                    [float(each) for each in pywrapfst.shortestdistance(theirs(machine), nstate=1)]
                    + [float("inf")] * 9
                )[: len(found)],
                abs=1e-4,
            )


def test_increment_subsequential_label() -> None:
    machine = fst.VectorFst()
    machine.add_states(3)
    machine.set_start(0).set_final(1).set_final(2)
    machine.add_arc(0, fst.Arc(1, 5, 0, 1)).add_arc(0, fst.Arc(1, 6, 0, 2))
    given = {"det_type": "nonfunctional", "subsequential_label": 100, "increment_subsequential_label": True}
    found = fst.determinize(machine, **given)
    assert {arc.ilabel for state in found.states() for arc in found.arcs(state)} == {1, 100, 101}
    assert same(found, pywrapfst.determinize(theirs(machine), **given))
    assert same(adopted(theirs(found)), found)


def test_bad_thresholds_are_refused() -> None:
    machine = fst.accep("a")
    with pytest.raises(FstArgError, match="nstate is a number of states"):
        fst.prune(machine, nstate=-2)
    with pytest.raises(FstOpError, match="needs a semiring"):
        fst.determinize(fst.accep("a", arc_type="log64"), weight=1)
    with pytest.raises(FstOpError, match="needs a semiring"):
        fst.accep("a", arc_type="log").rmepsilon(nstate=3)


@pytest.mark.parametrize("arc_type", ["log", "log64", "real64"])
def test_disambiguate_counts_a_word_once_beside_an_arc_of_weight_zero(arc_type: str) -> None:
    machine = fst.VectorFst(arc_type)
    zero = float(fst.Weight.zero(machine.weight_type()))
    machine.add_states(2)
    machine.set_start(0).set_final(1)
    for weight in (zero, 0.5):
        machine.add_arc(0, fst.Arc(1, 1, weight, 1))
    found = fst.disambiguate(machine)
    assert float(fst.shortestdistance(found, reverse=True)[found.start()]) == 0.5


@pytest.mark.parametrize("arc_type", ["standard", "log64", "real", "minmax", "boolean"])
def test_difference_keeps_a_word_whose_path_has_weight_zero(arc_type: str) -> None:
    one = fst.accep("a", arc_type=arc_type)
    other = one.copy()
    other.delete_arcs(0).add_arc(0, fst.Arc(97, 97, fst.Weight.zero(one.weight_type()), 1))
    for found in (fst.difference(one, other), fst.lazy.difference(one, other).expand()):
        assert fst.equal(found.connect(), one)
