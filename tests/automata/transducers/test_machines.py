"""Machines in Python: building, changing, sharing; weights; what is refused, and how; budgets."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tokenfst.fst as fst
from tokenfst import Budget
from tokenfst.errors import BudgetExceeded, FstError


def a_or_b() -> fst.VectorFst:
    """a with 0.5, b with 1.5."""
    made = fst.VectorFst()
    made.add_states(2)
    made.set_start(0).set_final(1, 0.25)
    return made.add_arc(0, fst.Arc(1, 1, 0.25, 1)).add_arc(0, fst.Arc(2, 2, "1.25", 1))


def test_building_and_looking() -> None:
    machine = a_or_b()
    assert (machine.num_states(), machine.num_arcs(), machine.num_arcs(0), machine.start()) == (2, 2, 2, 0)
    assert [arc.ilabel for arc in machine.arcs(0)] == [1, 2]
    assert machine.final(1) == fst.Weight("tropical", 0.25)
    assert machine.final(0) == fst.Weight.zero("tropical")
    assert repr(machine) == "<VectorFst standard of 2 states and 2 arcs>"
    machine.delete_arcs(0, 1)
    assert machine.print() == "0\t1\t1\t1\t0.25\n1\t0.25\n"
    machine.add_arc(0, fst.Arc(0, 3, 0, 0)).delete_states([1])
    assert machine.print() == "0\t0\t0\t3\n"
    assert (machine.num_input_epsilons(0), machine.num_output_epsilons(0)) == (1, 0)
    assert machine.delete_states().num_states() == 0


def test_arcs_in_any_order_of_states() -> None:
    rng = np.random.default_rng(0)
    machine, wanted = fst.VectorFst("log64"), dict[int, list[int]]()
    machine.add_states(20)
    for label in range(1, 2000):
        state = int(rng.integers(20))
        machine.add_arc(state, fst.Arc(label, label, 0.0, 0))
        wanted.setdefault(state, []).append(label)
        if label % 97 == 0:
            machine.delete_arcs(state)
            wanted[state] = []
    assert all([arc.ilabel for arc in machine.arcs(s)] == wanted[s] for s in range(20))
    assert machine.num_arcs() == sum(map(len, wanted.values()))


def test_a_copy_is_a_machine_of_its_own() -> None:
    machine = a_or_b()
    other = machine.copy()
    other.set_final(0).invert()
    machine.add_state()
    assert (machine.num_states(), other.num_states()) == (3, 2)
    assert machine.final(0) == fst.Weight.zero("tropical")


def test_machines_that_others_change_meanwhile() -> None:
    machine = fst.VectorFst()
    machine.add_states(2000).set_start(0).set_final(1999)
    for state in range(1999):
        machine.add_arc(state, fst.Arc(1, 1, 0.0, state + 1))
    found: list[int] = []

    def compose() -> None:
        found.extend(fst.compose(machine, machine).num_states() % 2000 for _ in range(20))

    threads = [threading.Thread(target=compose) for _ in range(2)]
    for each in threads:
        each.start()
    for _ in range(200):
        machine.set_final(1999).arcsort()
    for each in threads:
        each.join()
    assert found == [0] * 40


# --- weights ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "one", "zero", "a", "b", "total", "product", "quotient"),
    [
        ("tropical", 0, math.inf, 1, 2, 1, 3, -1),
        ("log64", 0, math.inf, 1, 2, -math.log(math.exp(-1) + math.exp(-2)), 3, -1),
        ("real64", 1, 0, 0.25, 0.5, 0.75, 0.125, 0.5),
        ("minmax", -math.inf, math.inf, 2, 1, 1, 2, 2),
        ("boolean", 1, 0, 0, 1, 1, 0, 0),
    ],
)
def test_arithmetic(
    kind: str, one: float, zero: float, a: float, b: float, total: float, product: float, quotient: float
) -> None:
    x, y = fst.Weight(kind, a), fst.Weight(kind, b)
    assert float(fst.Weight.one(kind)) == one
    assert float(fst.Weight.zero(kind)) == zero
    assert float(fst.plus(x, y)) == pytest.approx(total)
    assert float(fst.times(x, y)) == pytest.approx(product)
    assert float(fst.divide(x, y)) == pytest.approx(quotient)
    assert fst.plus(x, fst.Weight.zero(kind)) == x == fst.times(x, fst.Weight.one(kind))
    assert fst.power(x, 0) == fst.Weight.one(kind)
    assert float(fst.power(x, 3)) == pytest.approx(float(x * x * x))
    assert fst.Weight(kind, str(x)) == x


REFUSED: list[tuple[Callable[[], object], type[Exception], str]] = [
    (lambda: fst.VectorFst("standrad"), fst.FstArgError, "'standrad'.*standard, tropical64"),
    (lambda: fst.Weight("tropical", math.nan), fst.FstBadWeightError, "nan.*'tropical'"),
    (lambda: fst.Weight("tropical", -math.inf), fst.FstBadWeightError, "inf"),
    (lambda: fst.Weight("tropical", 1e300), fst.FstBadWeightError, "1e\\+300"),
    (lambda: fst.Weight("real", -0.5), fst.FstBadWeightError, "-0.5"),
    (lambda: fst.Weight("boolean", 0.5), fst.FstBadWeightError, "0.5"),
    (lambda: fst.Weight("tropical", 10**400), fst.FstBadWeightError, "an integer of this size is no weight"),
    (
        lambda: fst.VectorFst().add_states(1).set_final(0, -(10**400)),
        fst.FstBadWeightError,
        "a final weight: an int",
    ),
    (lambda: fst.Weight("tropical", "x"), fst.FstBadWeightError, "'x' is not a number"),
    (lambda: fst.Weight("tropical", 1) + fst.Weight("log", 1), fst.FstOpError, "'log'.*'tropical' is due"),
    (
        lambda: fst.divide(fst.Weight("minmax", 1), fst.Weight("minmax", 2)),
        fst.FstBadWeightError,
        "1 divided by 2 is no weight",
    ),
    (lambda: a_or_b().add_arc(7, fst.Arc(1, 1, 0, 0)), fst.FstIndexError, "no state 7.*has 2"),
    (lambda: a_or_b().add_arc(0, fst.Arc(1, 1, 0, 2)), fst.FstIndexError, "no state 2"),
    (lambda: a_or_b().add_arc(0, fst.Arc(-1, 1, 0, 1)), fst.FstIndexError, "label.*-1"),
    (lambda: a_or_b().add_arc(0, fst.Arc(1, 2**31, 0, 1)), fst.FstIndexError, "2147483648"),
    (lambda: a_or_b().add_arc(0, fst.Arc(2**70, 1, 0, 1)), fst.FstArgError, "whole numbers below 2\\^31"),
    (
        lambda: a_or_b().add_arc(0, fst.Arc(1, 1, math.nan, 1)),
        fst.FstBadWeightError,
        "the weight of an arc: nan is no weight of the semiring 'tropical'",
    ),
    (
        lambda: fst.intersect(fst.accep("a"), fst.accep("a", arc_type="log64")),
        fst.FstOpError,
        r"^intersect: the machines are over different semirings \(log64, standard\): convert .*\(machine, 'log64'\)",
    ),
    (
        lambda: fst.lazy.intersect(fst.accep("a"), fst.accep("a", arc_type="log64")),
        fst.FstOpError,
        "^intersect: ",
    ),
    (lambda: a_or_b().set_final(0, fst.Weight("log", 1)), fst.FstOpError, "'log'"),
    (lambda: a_or_b().final(2), fst.FstIndexError, "no state 2"),
    (lambda: a_or_b().arcsort("label"), fst.FstArgError, "'ilabel' or 'olabel'"),
    (lambda: a_or_b().union(fst.VectorFst("log")), fst.FstOpError, "different semirings \\(log, standard\\)"),
    (lambda: fst.compose(a_or_b(), "a"), TypeError, "ifst2 must be a VectorFst"),  # type: ignore[arg-type]
    (lambda: fst.compose(a_or_b(), a_or_b(), "sequnce"), fst.FstArgError, "'sequnce'"),
    (lambda: fst.intersect(a_or_b(), fst.cross("a", "b")), fst.FstOpError, "second machine is a transducer"),
    (lambda: fst.difference(a_or_b(), a_or_b()), fst.FstOpError, "rmweight"),
    (lambda: fst.determinize(a_or_b(), nstate=-3), fst.FstArgError, "or -1 for no limit: -3"),
    (lambda: fst.determinize(a_or_b(), delta=0), fst.FstArgError, "delta"),
    (lambda: fst.shortestpath(fst.VectorFst("log")), fst.FstOpError, "shortestpath needs a semiring"),
    (lambda: fst.shortestpath(a_or_b(), nshortest=0), fst.FstArgError, "nshortest"),
    (lambda: a_or_b().union(a_or_b()).rmepsilon().minimize(), fst.FstOpError, "not deterministic"),
    (lambda: fst.equivalent(a_or_b(), a_or_b().closure()), fst.FstOpError, "second machine has epsilon"),
    (
        lambda: fst.equivalent(fst.cross("a", "b"), a_or_b()),
        fst.FstOpError,
        "first machine is not an acceptor: project",
    ),
    (
        lambda: a_or_b().relabel_pairs(ipairs=[(1, 2), (1, 3)]),
        fst.FstArgError,
        r"ipairs\[1\].*second new label",
    ),
    (lambda: a_or_b().relabel_pairs(), fst.FstArgError, "neither"),
    (lambda: fst.replace([(1, a_or_b())]), fst.FstOpError, "label 1 calls itself"),
    (lambda: fst.accep(b"a\xff", token_type="utf8"), fst.FstArgError, "no UTF-8 from place 1"),
    (lambda: fst.string(fst.accep(b"\xff")), fst.FstOpError, "no UTF-8"),
    (lambda: fst.string(fst.accep("✓", token_type="utf8")), fst.FstOpError, "label 10003 is no byte"),
    (lambda: fst.string(fst.accep("a"), fst.SymbolTable("t")), fst.FstOpError, "label 97 .* table 't'"),
    (lambda: fst.string(fst.accep("a"), "words"), fst.FstArgError, "token_type"),
    (lambda: fst.string(fst.accep("a"), side="left"), fst.FstArgError, "side"),
    (lambda: fst.accep("a\0"), fst.FstArgError, "place 1 .*character 0"),
    (lambda: fst.convert(a_or_b(), "minmax"), fst.FstOpError, "no common meaning"),
    (lambda: fst.arcmap(fst.VectorFst("real"), map_type="to_std"), fst.FstOpError, "no negative logarithms"),
    (lambda: fst.statemap(a_or_b(), "x"), fst.FstArgError, "arc_sum"),
    (lambda: a_or_b().reweight([0, 1, 2]), fst.FstOpError, "more potentials than states"),
    (lambda: a_or_b().set_start(None), fst.FstArgError, "set_start: a state is"),  # type: ignore[arg-type]
    (lambda: a_or_b().set_final("x"), fst.FstArgError, "set_final: a state is.*'x'"),  # type: ignore[arg-type]
    (lambda: a_or_b().final(2**70), fst.FstArgError, "final: a state is"),
    (lambda: a_or_b().arcs(1.5), fst.FstArgError, "arcs: a state is.*1.5"),  # type: ignore[arg-type]
    (lambda: a_or_b().num_arcs("x"), fst.FstArgError, "num_arcs: a state is"),  # type: ignore[arg-type]
    (lambda: a_or_b().num_input_epsilons([]), fst.FstArgError, "a state is"),  # type: ignore[arg-type]
    (lambda: a_or_b().add_states(-1), fst.FstArgError, "negative"),
    (lambda: a_or_b().add_states(2**31 - 3, budget=Budget.unlimited()), fst.FstArgError, "at most"),
    (lambda: fst.plus(fst.Weight("log", 1), 3), TypeError, "other must be a Weight"),  # type: ignore[arg-type]
    (lambda: fst.power(fst.Weight("log", 1), -1), fst.FstArgError, "negative"),
    (lambda: fst.SymbolTable("t").add_table({}), TypeError, "must be a SymbolTable"),  # type: ignore[arg-type]
    (lambda: fst.Far(3), TypeError, "filename"),  # type: ignore[arg-type]
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_is_refused(number: int) -> None:
    call, error, message = REFUSED[number]
    with pytest.raises(error, match=message) as caught:
        call()
    assert isinstance(caught.value, FstError | TypeError)


def test_transducers_that_are_not_functional() -> None:
    machine = fst.string_map([("a", "x"), ("a", "y", 1.0), ("ab", "z")])
    with pytest.raises(fst.FstOpError, match="not functional"):
        fst.determinize(machine)
    both = fst.determinize(machine, det_type="nonfunctional")
    assert fst.shortestpath(fst.compose(fst.accep("a"), both), nshortest=5).num_states() > 3
    best = fst.determinize(machine, det_type="disambiguate")
    assert fst.string(fst.compose(fst.accep("a"), best)) == "x"
    with pytest.raises(fst.FstOpError, match="disambiguate"):
        fst.determinize(fst.convert(machine, "log"), det_type="disambiguate")


def test_arcs_that_weigh_zero_lead_nowhere() -> None:
    machine = a_or_b().add_arc(0, fst.Arc(3, 3, math.inf, 1))
    dead = machine.add_state()
    machine.set_final(dead).add_arc(0, fst.Arc(4, 4, "Infinity", dead))
    plain = a_or_b()
    smallest = machine.copy().minimize()
    assert fst.isomorphic(smallest, plain.copy().minimize())
    assert fst.equivalent(machine, plain)
    assert fst.equivalent(fst.determinize(machine), plain)
    for found in (
        machine.copy().rmepsilon(),
        fst.push(machine, push_weights=True),
        machine.copy().prune(weight=9.0),
    ):
        assert found.verify()
        assert fst.equivalent(found, plain)
    assert not fst.compose(loop(1e30, "real", 1), loop(1e30, "real", 1)).verify()


def test_tables_that_differ_do_not_meet() -> None:
    one, other = fst.SymbolTable("one"), fst.SymbolTable("other")
    one.add_symbol("a", 1)
    other.add_symbol("b", 1)
    a, b = a_or_b().set_output_symbols(one), a_or_b().set_input_symbols(other)
    with pytest.raises(fst.FstOpError, match="'one' and 'other' differ"):
        fst.compose(a, b)
    fst.compose(a, b.set_input_symbols(one.copy()))
    with pytest.raises(fst.FstOpError, match="union: the output symbol tables"):
        a.union(a_or_b().set_output_symbols(other))


# --- sums over cycles ---------------------------------------------------------------------------------


def loop(weight: float, arc_type: str, label: int = 0, states: int = 1) -> fst.VectorFst:
    """A cycle of so many states that weighs ``weight`` a step."""
    made = fst.VectorFst(arc_type)
    made.add_states(states).set_start(0).set_final(states - 1)
    for state in range(states):
        made.add_arc(state, fst.Arc(label, label, weight, (state + 1) % states))
    return made


@pytest.mark.parametrize("states", [1, 2, 100])
def test_a_geometric_sum_is_exact(states: int) -> None:
    for p in (0.5, 0.999, 1 - 1e-9):
        step = p ** (1 / states)
        wanted = step ** (states - 1) / (1 - p)
        real = fst.shortestdistance(loop(step, "real64", states=states))[states - 1]
        assert real == pytest.approx(wanted, rel=1e-5 if p > 0.9999 else 1e-9)
        log = fst.shortestdistance(loop(-math.log(step), "log64", states=states))[states - 1]
        assert log == pytest.approx(-math.log(wanted), rel=1e-6)
        assert float(loop(step, "real64", states=states).rmepsilon().final(0)) == pytest.approx(
            wanted, rel=1e-5
        )


@pytest.mark.parametrize(
    ("weight", "arc_type"),
    [(1.0, "real"), (1.5, "real64"), (0.0, "log"), (-0.5, "log64"), (-1.0, "standard")],
)
@pytest.mark.parametrize("states", [1, 3])
def test_a_sum_that_diverges_is_refused(weight: float, arc_type: str, states: int) -> None:
    machine = loop(weight, arc_type, states=states)
    for call in (
        lambda: fst.shortestdistance(machine),
        lambda: fst.shortestdistance(machine, reverse=True),
        lambda: machine.copy().rmepsilon(),
        lambda: fst.push(machine, push_weights=True),
    ):
        with pytest.raises(fst.FstOpError, match=r"state \d+ have no sum.*Give the cycle a cost above 0"):
            call()


def test_larger_components_are_summed_until_little_is_left() -> None:
    for p in (0.5, 0.9):
        states = 400
        step = p ** (1 / states)
        machine = loop(step, "real64", states=states)
        found = fst.shortestdistance(machine, delta=1e-12)[states - 1]
        assert found == pytest.approx(step ** (states - 1) / (1 - p), rel=1e-6)


# --- budgets ------------------------------------------------------------------------------------------


def endless() -> fst.VectorFst:
    """Two cycles over one word whose weights differ: determinization has no end."""
    made = fst.VectorFst()
    made.add_states(3).set_start(0).set_final(1).set_final(2)
    for target, weight in ((1, 1.0), (2, 2.0)):
        made.add_arc(0, fst.Arc(1, 1, 0.0, target))
        made.add_arc(target, fst.Arc(1, 1, weight, target))
    return made


def chain(states: int) -> fst.VectorFst:
    made = fst.VectorFst()
    made.add_states(states).set_start(0)
    for state in range(states):
        made.set_final(state, 1.0)
        made.add_arc(state, fst.Arc(1, 1, 0.5, state))
        made.add_arc(state, fst.Arc(1, 1, 0.5, (state + 1) % states))
    return made


def fan(arcs: int) -> fst.VectorFst:
    """So many arcs with one label between two states: composed with itself one pair has the square of them."""
    made = fst.VectorFst()
    made.add_states(2).set_start(0).set_final(1)
    for weight in range(arcs):
        made.core.add_arc(0, 1, 1, float(weight), 1)
    return made


BUDGETED: list[Callable[[Budget], Any]] = [
    lambda b: fst.determinize(endless(), budget=b),
    lambda b: fst.compose(chain(300), chain(300), budget=b),
    lambda b: fst.compose(fan(3000), fan(3000), budget=b),
    lambda b: a_or_b().closure(budget=b),
    lambda b: fst.replace([(9, chain(200))], budget=b),
]


@pytest.mark.parametrize("number", [0, 1, 3, 4])
def test_states_run_out(number: int) -> None:
    with pytest.raises(BudgetExceeded, match="states"):
        BUDGETED[number](Budget(states=2))


@pytest.mark.parametrize("number", [0, 1, 2])
def test_bytes_run_out(number: int) -> None:
    with pytest.raises(BudgetExceeded, match="bytes"):
        BUDGETED[number](Budget(bytes=100_000, states=10**9))


def test_states_by_the_number_keep_to_a_budget() -> None:
    """All are added or none; 2^40 of them are refused at once, and not when memory is full."""
    machine = a_or_b()
    for call in (machine.add_states, machine.reserve_states):
        with pytest.raises(BudgetExceeded, match="bytes"):
            call(2**30)
        with pytest.raises(BudgetExceeded, match="bytes"):
            call(1000, budget=Budget(bytes=50_000))
        with pytest.raises(FstError, match="at most"):
            call(2**40)
    assert machine.num_states() == 2
    assert machine.add_states(1000, budget=Budget(bytes=70_000)).num_states() == 1002


def test_seconds_run_out() -> None:
    with pytest.raises(BudgetExceeded, match="seconds"):
        fst.determinize(endless(), budget=Budget(seconds=0.05, states=10**9, bytes=1 << 40))


def test_nothing_recurses() -> None:
    states = 200_000
    machine = fst.VectorFst()
    machine.add_states(states).set_start(0).set_final(states - 1)
    for state in range(states - 1):
        machine.core.add_arc(state, 0, 0, 0.0, state + 1)
    machine.core.add_arc(states - 1, 1, 1, 0.0, 0)
    assert machine.copy().connect().num_states() == states
    assert fst.shortestdistance(machine)[-1] == 0
    assert machine.copy().rmepsilon().num_states() == 1
    assert machine.properties(0xC00000000) == 0x400000000


# --- strings ------------------------------------------------------------------------------------------


def test_strings_and_maps() -> None:
    table = fst.SymbolTable()
    for word in ("<eps>", "new", "york"):
        table.add_symbol(word)
    made = fst.accep("new york", weight=0.5, token_type=table)
    assert fst.string(made, table) == "new york"
    assert fst.string(fst.accep("é", token_type="utf8"), "utf8") == "é"
    assert (
        fst.string(fst.compose("x" and fst.accep("one"), fst.string_map([("one", "1"), ("two", "2")]))) == "1"
    )
    with pytest.raises(fst.FstOpError, match="accepts nothing"):
        fst.string(fst.VectorFst())
    small = fst.optimize(fst.string_map(["ab", "cb", "ab"]))
    assert (small.num_states(), small.num_arcs()) == (3, 3)
    crossed = fst.cross(fst.accep("a").union(fst.accep("b", weight=1.0)), "xyz")
    assert fst.string(fst.compose(fst.accep("b"), crossed)) == "xyz"
    assert fst.string(fst.compose(fst.accep("b"), crossed), side="input") == "b"
