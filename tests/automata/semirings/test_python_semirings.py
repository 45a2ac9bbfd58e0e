"""Semirings written in Python: the laws, sums beside the native ones and by hand, what each is for, what is refused."""

from __future__ import annotations

import itertools
import math
import random
from typing import Any

import pytest
from support.worlds.transducer_worlds import ours, same, sums

import tokenfst.fst as fst
import tokenfst.semirings as sr
from reference.transducers.transducers import diverges, random_plain
from tokenfst import Budget
from tokenfst.errors import (
    ArgumentTypeError,
    BudgetExceeded,
    FstArgError,
    FstBadWeightError,
    FstIndexError,
    FstOpError,
)

REAL, LOG, TROPICAL = sr.Number("real64"), sr.Number("log64"), sr.Number("tropical64")
STRINGS = [None, (), (1,), (1, 2), (2, 1), (1, 2, 1)]
VALUES: list[tuple[sr.Semiring, list[Any]]] = [
    (TROPICAL, [math.inf, 0.0, 1.0, 2.5]),
    (LOG, [math.inf, 0.0, 1.0, 2.5]),
    (REAL, [0.0, 1.0, 0.25, 2.0]),
    (sr.Number("minmax64"), [math.inf, -math.inf, 1.0, 2.0]),
    (sr.Number("boolean"), [0.0, 1.0]),
    (sr.Reals(), [0.0, 1.0, -0.5, 2.0]),
    (sr.String("left"), STRINGS),
    (sr.String("right"), STRINGS),
    (
        sr.Lexicographic(TROPICAL, TROPICAL),
        [(math.inf, math.inf), (0.0, 0.0), (1.0, 2.0), (1.0, 1.0), (2.0, 0.0)],
    ),
    (sr.Power(TROPICAL, 2), [(math.inf, math.inf), (0.0, 0.0), (1.0, 2.0), (2.0, 1.0)]),
    (sr.Product(TROPICAL, LOG), [(math.inf, math.inf), (0.0, 0.0), (1.0, 2.0), (2.0, 1.0)]),
    (sr.SignedLog(), [(1.0, math.inf), (1.0, 0.0), (-1.0, 0.0), (1.0, 1.0), (-1.0, 2.5), (-1.0, -0.5)]),
    (sr.Expectation(REAL, sr.Reals()), [(0.0, 0.0), (1.0, 0.0), (0.5, 1.0), (0.25, -2.0)]),
    (sr.Gallic(TROPICAL, "left"), [(None, math.inf), ((), 0.0), ((1,), 1.0), ((1, 2), 2.0)]),
    (sr.Gallic(TROPICAL, "right"), [(None, math.inf), ((), 0.0), ((1,), 1.0), ((2, 1), 2.0)]),
    (sr.Gallic(TROPICAL, "min"), [(None, math.inf), ((), 0.0), ((1,), 1.0), ((1, 2), 2.0)]),
]


@pytest.mark.parametrize("at", range(len(VALUES)))
def test_the_laws(at: int) -> None:
    semiring, values = VALUES[at]

    def near(one: Any, other: Any) -> bool:
        return semiring.near(one, other, 1e-9)

    for a, b, c in itertools.product(values, repeat=3):
        assert near(semiring.plus(semiring.plus(a, b), c), semiring.plus(a, semiring.plus(b, c)))
        assert near(semiring.times(semiring.times(a, b), c), semiring.times(a, semiring.times(b, c)))
        assert near(semiring.plus(a, b), semiring.plus(b, a))
        if semiring.left_semiring:
            together = semiring.times(a, semiring.plus(b, c))
            assert near(together, semiring.plus(semiring.times(a, b), semiring.times(a, c)))
        if semiring.right_semiring:
            together = semiring.times(semiring.plus(a, b), c)
            assert near(together, semiring.plus(semiring.times(a, c), semiring.times(b, c)))
        if semiring.commutative:
            assert near(semiring.times(a, b), semiring.times(b, a))
        if semiring.path:
            assert semiring.plus(a, b) in (a, b)
    for a in values:
        assert semiring.checked(a) == a
        assert near(semiring.plus(a, semiring.zero), a) and near(semiring.times(a, semiring.one), a)
        assert near(semiring.times(a, semiring.zero), semiring.zero)
        assert near(semiring.reversed_semiring().reverse(semiring.reverse(a)), a) or not semiring.commutative
        for b in values:
            if b != semiring.zero and not isinstance(semiring, sr.Expectation):
                try:
                    quotient = semiring.divide_left(semiring.times(b, a), b)
                except (FstOpError, FstBadWeightError):
                    assert "min" in semiring.name
                    continue
                assert near(semiring.times(b, quotient), semiring.times(b, a))


def worlds(arc_type: str, count: int, **shape: Any) -> Any:
    for seed in range(count):
        made = random_plain(random.Random(seed), least=1.5 if sums(arc_type) else 0.0, **shape)
        if not sums(arc_type) or not diverges(made):
            yield seed, ours(made, arc_type)


@pytest.mark.parametrize("arc_type", ["log64", "tropical64"])
def test_machines_over_numbers_are_the_native_ones(arc_type: str) -> None:
    number = sr.Number(arc_type)
    machines = list(worlds(arc_type, 16))
    for (seed, machine), (_, other) in itertools.pairwise(machines):
        one, two = (sr.lifted(each, number, lambda w, _: w) for each in (machine, other))
        for backward in (False, True):
            wanted = fst.shortestdistance(machine, reverse=backward).tolist()
            assert sr.shortestdistance(one, backward) == pytest.approx(wanted), seed
        pairs = [
            (sr.compose(one, two), fst.compose(machine, other)),
            (sr.union(one, two), machine.copy().union(other)),
            (sr.concat(one, two), machine.copy().concat(other)),
            (sr.rmepsilon(one), machine.copy().rmepsilon()),
            (sr.invert(one), machine.copy().invert()),
            (sr.project(one, "output"), machine.copy().project("output")),
            (sr.reverse(one), fst.reverse(machine)),
            (sr.connect(one), machine.copy().connect()),
            (sr.push(one), machine),
        ]
        for found, wanted_machine in pairs:
            assert same(sr.lowered(found, arc_type, lambda w: w), wanted_machine, 2), seed
    for seed, machine in worlds(arc_type, 10, acceptor=True, acyclic=True):
        found = sr.determinize(sr.lifted(machine, number, lambda w, _: w))
        assert same(sr.lowered(found, arc_type, lambda w: w), fst.determinize(machine), 3), seed
        assert all(len({a.ilabel for a in found.arcs(s)}) == found.num_arcs(s) for s in found.states())
    looped = sr.closure(sr.lifted(fst.accep("a", 1, arc_type), number, lambda w, _: w), "plus")
    assert same(sr.lowered(looped, arc_type, lambda w: w), fst.accep("a", 1, arc_type).closure("plus"), 2)


def test_expectations() -> None:
    # A coin that falls on heads with 1/4: tosses up to the first heads are 4 on the average.
    machine = sr.SemiringFst(sr.Expectation(REAL, sr.Reals()))
    machine.add_state(), machine.add_state()
    machine.set_start(0).set_final(1)
    machine.add_arc(0, 1, 1, (0.75, 0.75), 0).add_arc(0, 2, 2, (0.25, 0.25), 1)
    probability, mean = sr.shortestdistance(machine, True)[0]
    assert probability == pytest.approx(1) and mean == pytest.approx(4)


def test_gallic_determinizes_transducers() -> None:
    gallic = sr.Gallic(TROPICAL)
    pairs = [("ab", "xy", 1.0), ("ac", "xz", 2.0)]
    machine = fst.string_map(pairs, arc_type="tropical64")
    lifted = sr.lifted(machine, gallic, lambda w, arc: ((arc.olabel,) if arc and arc.olabel else (), w))
    found = sr.determinize(sr.project(lifted, "input"))
    first = list(found.arcs(found.start()))
    assert [(chr(arc.ilabel), arc.weight) for arc in first] == [("a", ((ord("x"),), 0.0))]
    assert sr.shortestdistance(lifted, True)[lifted.start()] == ((ord("x"),), 1.0)
    pushed = sr.push(lifted)
    assert next(pushed.arcs(pushed.start())).weight == ((ord("x"),), 1.0)


def test_lexicographic_and_power() -> None:
    pair = sr.Lexicographic(TROPICAL, TROPICAL)
    both = sr.Power(TROPICAL, 2)
    for semiring, wanted in ((pair, (1.0, 2.0)), (both, (1.0, 0.0))):
        machine = sr.SemiringFst(semiring)
        machine.add_state(), machine.add_state()
        machine.set_start(0).set_final(1)
        for weight in ((2.0, 0.0), (1.0, 3.0), (1.0, 2.0)):
            machine.add_arc(0, 1, 1, weight, 1)
        assert sr.shortestdistance(machine)[1] == wanted


class Ways(sr.Semiring):
    """How many ways there are: no star, no division."""

    name, zero, one = "ways", 0, 1

    def plus(self, one: int, other: int) -> int:
        return one + other

    def times(self, one: int, other: int) -> int:
        return one * other

    def member(self, value: Any) -> bool:
        return isinstance(value, int) and value >= 0


class Sets(sr.Semiring):
    """Sets of labels, sum and product the union and intersection; cycles add nothing, and there is no star."""

    name, zero, one = "sets", frozenset(), frozenset(range(9))

    def plus(self, one: Any, other: Any) -> Any:
        return one | other

    def times(self, one: Any, other: Any) -> Any:
        return one & other


def test_a_semiring_of_ones_own() -> None:
    machine = sr.SemiringFst(Ways())
    for _ in range(4):
        machine.add_state()
    machine.set_start(0).set_final(3)
    for source, target in ((0, 1), (0, 2), (1, 3), (2, 3), (0, 3)):
        machine.add_arc(source, 1, 1, 1, target)
    assert sr.shortestdistance(machine) == [1, 1, 1, 3]
    with pytest.raises(FstBadWeightError, match="-1 is no weight of the semiring 'ways'"):
        machine.add_arc(0, 1, 1, -1, 1)
    with pytest.raises(FstOpError, match="does not divide"):
        sr.push(machine)
    machine.add_arc(1, 1, 1, 1, 0)
    with pytest.raises(BudgetExceeded):
        sr.shortestdistance(machine, budget=Budget(seconds=0.2))
    sets = sr.SemiringFst(Sets())
    sets.add_state(), sets.add_state()
    sets.set_start(0).set_final(1)
    sets.add_arc(0, 1, 1, frozenset({1, 2}), 1).add_arc(1, 1, 1, frozenset({2, 3}), 0)
    assert sr.shortestdistance(sets)[1] == {1, 2}


def test_what_is_refused() -> None:
    strings = sr.SemiringFst(sr.String())
    strings.add_state()
    strings.set_start(0).set_final(0, (1,))
    with pytest.raises(FstOpError, match="not commutative"):
        sr.compose(strings, strings)
    with pytest.raises(FstOpError, match="do not distribute from the right"):
        sr.shortestdistance(strings)
    assert sr.reverse(strings).semiring.name == "right_string"
    with pytest.raises(FstOpError, match="are over"):
        sr.union(strings, sr.SemiringFst(TROPICAL))
    with pytest.raises(FstIndexError, match="there is no state 3"):
        strings.set_start(3)
    with pytest.raises(FstIndexError, match="a label is"):
        strings.add_arc(0, -1, 0, (), 0)
    for weight in ("ab", (0,), [1]):
        with pytest.raises(FstBadWeightError):
            strings.set_final(0, weight)
    machine = sr.SemiringFst(sr.Reals())
    machine.add_state()
    machine.set_start(0).set_final(0).add_arc(0, 1, 1, 1.0, 0)
    with pytest.raises(FstOpError, match="has no sum"):
        sr.shortestdistance(machine)
    with pytest.raises(FstOpError, match="transducer"):
        sr.determinize(sr.lifted(fst.cross("a", "b"), TROPICAL, lambda w, _: w))
    with pytest.raises(FstArgError, match="sum is one of its terms"):
        sr.Lexicographic(LOG, TROPICAL)
    with pytest.raises(FstArgError, match="n must be"):
        sr.Power(LOG, 0)
    with pytest.raises(FstArgError, match="kind is"):
        sr.String("middle")
    for weight, value in ((LOG, sr.Reals()), (LOG, sr.SignedLog()), (sr.String(), REAL)):
        with pytest.raises(FstArgError, match=r"Use Number\('real64'\) with Reals\(\), or SignedLog"):
            sr.Expectation(weight, value)
    wrong: Any = 3
    for make in (
        lambda: sr.Power(REAL, 2.5),  # type: ignore[arg-type]
        lambda: sr.Power(wrong, 2),
        lambda: sr.Product(REAL, wrong),
        lambda: sr.Gallic(wrong),
        lambda: sr.Expectation(wrong),
    ):
        with pytest.raises(ArgumentTypeError):
            make()
    with pytest.raises(FstOpError, match="not functional"):
        sr.String("restrict").plus((1,), (2,))
    with pytest.raises(TypeError):
        sr.union(strings, "a")  # type: ignore[arg-type]


def test_arcs_of_weight_zero_are_on_no_path() -> None:
    machine = sr.SemiringFst(REAL)
    for _ in range(3):
        machine.add_state()
    machine.set_start(0).set_final(1).add_arc(0, 1, 1, 0.5, 1)
    machine.add_arc(0, 2, 2, 0.5, 2).add_arc(2, 1, 1, 0.0, 1).add_arc(1, 1, 1, 0.0, 1)
    assert (sr.connect(machine).num_states(), sr.connect(machine).num_arcs()) == (2, 1)
    pushed = sr.push(machine)
    assert sr.shortestdistance(pushed)[1] == 0.5
    assert [arc.weight for state in pushed.states() for arc in pushed.arcs(state)] == [1.0, 0.5]


def test_pairs_whose_order_products_lose_do_not_distribute() -> None:
    """max(5, 1) = max(5, 2), so which of two is better can depend on what came before."""
    pairs = sr.Lexicographic(sr.Number("minmax64"), TROPICAL)
    machine = sr.SemiringFst(pairs)
    machine.set_start(machine.add_state()).set_final(0)
    for backward in (False, True):
        with pytest.raises(FstOpError, match="do not distribute"):
            sr.shortestdistance(machine, backward)
    assert sr.Lexicographic(TROPICAL, sr.Number("minmax64")).left_semiring


def test_what_a_semiring_does_not_say() -> None:
    class Nothing(sr.Semiring):
        name = "nothing"
        zero, one = 0, 1

    for call in (Nothing().plus, Nothing().times):
        with pytest.raises(FstOpError, match="'nothing' does not say"):
            call(1, 1)
    with pytest.raises(FstOpError, match="star"):
        Nothing().star(1)


def test_logarithms_with_a_sign_are_the_reals() -> None:
    """Sums, products, quotients, stars and distances, beside those of floats."""
    signed, rng = sr.SignedLog(), random.Random(4)

    def of(number: float) -> tuple[float, float]:
        return (math.copysign(1.0, number), -math.log(abs(number))) if number else signed.zero

    def value(weight: tuple[float, float]) -> float:
        return weight[0] * math.exp(-weight[1])

    numbers = [
        0.0,
        *(rng.choice((-1, 1)) * rng.choice((0.25, 0.5, 1.0, 3.0, rng.random())) for _ in range(20)),
    ]
    for a, b in itertools.product(numbers, repeat=2):
        assert value(signed.plus(of(a), of(b))) == pytest.approx(a + b, abs=1e-12)
        assert value(signed.times(of(a), of(b))) == pytest.approx(a * b)
        assert signed.member(signed.plus(of(a), of(b))) and signed.member(signed.times(of(a), of(b)))
        if b:
            assert value(signed.divide_left(of(a), of(b))) == pytest.approx(a / b)
    for a in numbers:
        if abs(a) < 1:
            assert value(signed.star(of(a))) == pytest.approx(1 / (1 - a))
        else:
            with pytest.raises(FstOpError, match="has no sum"):
                signed.star(of(a))
    machine, plain = sr.SemiringFst(signed), sr.SemiringFst(sr.Reals())
    for _ in range(4):
        machine.add_state(), plain.add_state()
    machine.set_start(0).set_final(3)
    plain.set_start(0).set_final(3)
    for _ in range(12):
        s, t, number = rng.randrange(4), rng.randrange(4), rng.uniform(-0.3, 0.3)
        machine.add_arc(s, 1, 1, of(number), t)
        plain.add_arc(s, 1, 1, number, t)
    found = [value(each) for each in sr.shortestdistance(machine)]
    assert found == pytest.approx(sr.shortestdistance(plain), abs=1e-9)
    with pytest.raises(FstOpError, match="divided by Zero"):
        signed.divide_left(signed.one, signed.zero)
    for wrong in ((0.5, 1.0), (-1.0, math.inf), (1.0, math.nan), (1.0,), 3.0, [1.0, 1.0]):
        with pytest.raises(FstBadWeightError):
            signed.checked(wrong)
    with pytest.raises(FstArgError, match="'log' or 'log64'"):
        sr.SignedLog("real")


def test_semirings_that_differ_in_a_part_do_not_match() -> None:
    def of(semiring: sr.Semiring) -> sr.SemiringFst:
        machine = sr.SemiringFst(semiring)
        machine.set_start(machine.add_state())
        return machine

    class One(sr.Semiring):
        zero, one = 0, 1

    class Other(sr.Semiring):
        zero, one = 0, 1

    for one, other in (
        (sr.Gallic(TROPICAL), sr.Gallic(LOG)),
        (sr.Gallic(TROPICAL), sr.Gallic(TROPICAL, "min")),
        (sr.Product(TROPICAL, LOG), sr.Product(LOG, TROPICAL)),
        (sr.SignedLog("log"), sr.SignedLog("log64")),
        (One(), Other()),
    ):
        for call in (sr.union, sr.concat):
            with pytest.raises(FstOpError, match="the machines are over"):
                call(of(one), of(other))
