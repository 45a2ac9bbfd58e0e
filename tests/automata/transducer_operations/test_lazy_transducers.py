"""Lazy machines stand for the eager results, whatever their caches forget."""

from __future__ import annotations

import threading
from collections.abc import Callable

import pytest
from support.worlds import random_transducers
from support.worlds.random_transducers import ALL, few_and_many, tried
from support.worlds.transducer_worlds import same

import tokenfst.fst as fst
from reference.transducers.transducers import Diverges
from tokenfst import Budget
from tokenfst.automata.transducers.weights import ARC_TYPES
from tokenfst.errors import BudgetExceeded, FstArgError, FstIndexError, FstOpError

SMALL = Budget(states=3000, seconds=60)


class World(random_transducers.World):
    def __init__(self, seed: int, arc_type: str) -> None:
        super().__init__(seed, arc_type)
        self.cache = self.rng.choice((0, 300, 1 << 20))

    def check(self, found: fst.LazyFst, wanted: fst.VectorFst, longest: int = 2) -> None:
        """Asked twice, state by state in any order, and walked to the end."""
        walked = found.expand(budget=SMALL)
        assert same(walked, wanted, longest, self.tolerance)
        states = list(walked.states())
        self.rng.shuffle(states)
        for state in states:
            assert [*found.arcs(state)] == [*walked.arcs(state)]
            assert found.final(state) == walked.final(state)
        assert found.start() == walked.start()


def compose(world: World) -> None:
    one, other = world.machine(), world.machine()
    if world.rng.random() < 0.5:
        one.arcsort("olabel")
    if world.rng.random() < 0.5:
        other.arcsort("ilabel")
    name = world.rng.choice(("auto", "alt_sequence", "match"))
    found = fst.lazy.compose(one, other, name, cache_bytes=world.cache)
    world.check(found, fst.compose(one, other, name))
    assert fst.equal(found.expand(), fst.compose(one, other, name, connect=False), 1e-6)


def of_three(world: World) -> None:
    one, two, three = world.machine(), world.machine(), world.machine()
    inner = fst.lazy.compose(one, two, cache_bytes=world.cache)
    found = fst.lazy.compose(inner, three, cache_bytes=world.cache)
    world.check(found, fst.compose(fst.compose(one, two), three))


def determinize(world: World) -> None:
    machine = world.machine(acceptor=True, acyclic=True)
    found = fst.lazy.determinize(machine, cache_bytes=world.cache)
    world.check(found, fst.determinize(machine), 4)
    assert fst.equal(found.expand(), fst.determinize(machine))
    inner = fst.lazy.rmepsilon(machine, cache_bytes=world.cache)
    again = fst.lazy.determinize(inner, acceptor=True, cache_bytes=world.cache)
    world.check(again, fst.determinize(machine.copy().rmepsilon()), 4)


def transducers(world: World) -> None:
    machine = world.machine(acyclic=True, epsilons=False, states=4)
    found = fst.lazy.determinize(
        machine, det_type="nonfunctional", subsequential_label=7, cache_bytes=world.cache
    )
    eager = fst.determinize(machine, det_type="nonfunctional", subsequential_label=7)
    world.check(found, eager, 3)


def rmepsilon(world: World) -> None:
    machine = world.machine()
    world.check(fst.lazy.rmepsilon(machine, cache_bytes=world.cache), machine.copy().rmepsilon())


def union(world: World) -> None:
    machines = [world.machine() for _ in range(3)]
    found = fst.lazy.union(*machines, cache_bytes=world.cache)
    world.check(found, machines[0].copy().union(*machines[1:]))


def concat(world: World) -> None:
    one, other = world.machine(), world.machine()
    world.check(fst.lazy.concat(one, other, cache_bytes=world.cache), one.copy().concat(other))


def closure(world: World) -> None:
    machine = world.machine()
    kind = world.rng.choice(("star", "plus"))
    wanted = machine.copy().closure(kind)
    try:
        fst.shortestdistance(wanted)
    except FstOpError:
        raise Diverges from None
    world.check(fst.lazy.closure(machine, kind, cache_bytes=world.cache), wanted)


def intersect(world: World) -> None:
    one, other = world.machine(acceptor=True), world.machine(acceptor=True)
    world.check(fst.lazy.intersect(one, other, cache_bytes=world.cache), fst.intersect(one, other), 4)


def difference(world: World) -> None:
    one, other = world.machine(acceptor=True), fst.arcmap(world.machine(acceptor=True), map_type="rmweight")
    world.check(fst.lazy.difference(one, other, cache_bytes=world.cache), fst.difference(one, other), 4)


def arcmap(world: World) -> None:
    machine = world.machine()
    for name in ("identity", "input_epsilon", "output_epsilon", "times"):
        try:
            found = fst.lazy.arcmap(machine, name, 2 if name == "times" else None, cache_bytes=world.cache)
            wanted = fst.arcmap(machine, map_type=name, weight=2 if name == "times" else None)
        except FstOpError:
            continue
        assert fst.equal(found.expand(), wanted.connect()) or same_states(found, wanted)
    assert (
        fst.equal(fst.lazy.arcmap(machine, "invert").expand(), machine.copy().invert()) or machine.start() < 0
    )
    assert fst.equal(fst.lazy.arcmap(machine, "project_input").expand(), machine.copy().project("input"))


def same_states(found: fst.LazyFst, wanted: fst.VectorFst) -> bool:
    return fst.equal(found.expand().connect(), wanted.copy().connect())


def replace(world: World) -> None:
    root, called = world.machine(acyclic=True), world.machine(acyclic=True)
    pairs = [(5, root), (2, called.relabel_pairs(opairs=[(2, 1)]))]
    world.check(fst.lazy.replace(pairs, cache_bytes=world.cache), fst.replace(pairs))


OPERATIONS: random_transducers.Operations = {
    each.__name__: (each, ALL)
    for each in (
        compose, of_three, determinize, transducers, rmepsilon, union, concat, closure, intersect, difference,
        arcmap, replace,
    )
}  # fmt: skip
PARTS = {"of_three": 2, "determinize": 2, "transducers": 2, "intersect": 2, "difference": 2}
"""Of the soak: those that take longer than half a minute."""


@few_and_many(OPERATIONS, PARTS)
def test_a_lazy_machine_is_the_eager_one(name: str, arc_type: str, seeds: range) -> None:
    tried(name, OPERATIONS[name][0], arc_type, seeds, World, 2)


@pytest.mark.parametrize("arc_type", ARC_TYPES)
def test_there_are_lazy_machines_over_each_semiring(arc_type: str) -> None:
    one = fst.accep("ab", arc_type=arc_type)
    lazy = fst.lazy.compose(fst.lazy.union(one, one), fst.lazy.closure(one))
    assert lazy.arc_type() == arc_type and lazy.fst_type() == "lazy"
    found = fst.lazy.determinize(fst.lazy.rmepsilon(lazy), acceptor=True).expand().connect()
    assert found.num_states() == 3


def test_states_are_made_when_they_are_asked_for() -> None:
    n = 40
    letters = fst.accep("a").union(fst.accep("b")).closure()
    one = fst.accep("a" * n)
    lazy = fst.lazy.compose(one, letters)
    assert lazy.counts().made == 0
    state = lazy.start()
    assert lazy.num_arcs(state) == 1
    assert lazy.counts().made == 1
    assert lazy.counts().named == 2
    with pytest.raises(FstIndexError, match="no state 99 was named"):
        lazy.final(99)


def test_the_cache_forgets_the_least_recently_used() -> None:
    lazy = fst.lazy.closure(fst.accep("a" * 200), cache_bytes=3000)
    lazy.expand()
    counts = lazy.counts()
    assert counts.made == counts.named and counts.kept < 40 and counts.bytes <= 3000
    last = counts.named - 1
    lazy.final(last)
    assert lazy.counts().made == counts.made  # it is there still
    lazy.final(0)
    assert lazy.counts().made == counts.made + 1  # it was made again


def long_word(length: int = 120) -> fst.VectorFst:
    return fst.accep("ab" * (length // 2))


LETTERS = fst.accep("a").union(fst.accep("b")).closure()
BOUNDED: dict[str, Callable[[int], fst.LazyFst]] = {
    "compose": lambda size: fst.lazy.compose(long_word(), LETTERS, cache_bytes=size),
    "intersect": lambda size: fst.lazy.intersect(long_word(), LETTERS, cache_bytes=size),
    "difference": lambda size: fst.lazy.difference(long_word(), fst.accep("b"), cache_bytes=size),
    "determinize": lambda size: fst.lazy.determinize(long_word(), cache_bytes=size),
    "rmepsilon": lambda size: fst.lazy.rmepsilon(long_word(60).concat(long_word(60)), cache_bytes=size),
    "replace": lambda size: fst.lazy.replace(
        [(1, fst.accep("c" * 120)), (99, long_word())], cache_bytes=size
    ),
    "union": lambda size: fst.lazy.union(long_word(), long_word(), cache_bytes=size),
    "concat": lambda size: fst.lazy.concat(long_word(), long_word(), cache_bytes=size),
    "closure": lambda size: fst.lazy.closure(long_word(), cache_bytes=size),
    "arcmap": lambda size: fst.lazy.arcmap(long_word(), "invert", cache_bytes=size),
}


@pytest.mark.parametrize("name", BOUNDED)
def test_the_bound_of_the_cache_holds_after_each_step(name: str) -> None:
    size = 2000
    lazy, free = BOUNDED[name](size), BOUNDED[name](1 << 20)
    pending, seen, evicted = [lazy.start()], {lazy.start()}, False
    while pending:
        state = pending.pop()
        for arc in lazy.arcs(state):
            if arc.nextstate not in seen:
                seen.add(arc.nextstate)
                pending.append(arc.nextstate)
        counts = lazy.counts()
        assert counts.bytes <= size and counts.kept >= 1
        evicted = evicted or counts.kept < counts.named
    assert evicted and len(seen) > 100
    assert fst.equal(BOUNDED[name](size).expand(), free.expand())
    assert free.counts().bytes > size  # without the bound, all states would be kept


def test_a_machine_that_calls_itself_is_as_far_as_it_is_looked_at() -> None:
    # S -> a S b | c, which no eager replacement has.
    rule = fst.VectorFst()
    rule.add_states(4)
    rule.set_start(0).set_final(3)
    for source, label, target in ((0, 1, 1), (1, 9, 2), (2, 2, 3), (0, 3, 3)):
        rule.add_arc(source, fst.Arc(label, label, 0, target))
    lazy = fst.lazy.replace([(9, rule)], epsilon_on_replace=True)
    word = fst.VectorFst()
    labels = [1, 1, 1, 3, 2, 2, 2]
    word.add_states(len(labels) + 1)
    word.set_start(0).set_final(len(labels))
    for at, label in enumerate(labels):
        word.add_arc(at, fst.Arc(label, label, 0, at + 1))
    assert fst.lazy.compose(word, lazy).expand().connect().num_states() > 0
    assert fst.lazy.compose(word.set_final(6), lazy).expand().connect().num_states() > 0
    with pytest.raises(BudgetExceeded):
        lazy.expand(budget=Budget(states=500))


def test_threads_share_a_lazy_machine() -> None:
    one, letters = fst.accep("ab" * 300), fst.accep("a").union(fst.accep("b")).closure()
    lazy = fst.lazy.compose(one, letters, cache_bytes=2000)
    wanted = fst.compose(one, letters, connect=False)
    found = list[fst.VectorFst]()
    threads = [threading.Thread(target=lambda: found.append(lazy.expand())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4 and all(fst.isomorphic(each, wanted) for each in found)


def test_bad_arguments_are_refused() -> None:
    word = fst.accep("a")
    with pytest.raises(FstOpError, match="different semirings"):
        fst.lazy.compose(word, fst.accep("a", arc_type="log"))
    with pytest.raises(FstArgError, match="cache_bytes"):
        fst.lazy.closure(word, cache_bytes=-1)
    with pytest.raises(FstArgError, match="rewrite_mode must be"):
        fst.lazy.compose(word, fst.lazy.closure(word), sigma_label=9)
    with pytest.raises(FstArgError, match="no machine was given"):
        fst.lazy.union()
    with pytest.raises(TypeError):
        fst.lazy.closure("a")  # type: ignore[arg-type]
