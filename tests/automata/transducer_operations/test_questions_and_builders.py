"""Questions, selections, labels, machines from strings, on random machines: against pywrapfst, pynini and the twin."""

from __future__ import annotations

import math
from typing import Any

import pynini
import pytest
import pywrapfst
from support.worlds.random_transducers import ALL, BOTH, Operations, World, few_and_many, tried
from support.worlds.transducer_worlds import meaning, same, theirs

import tokenfst.fst as fst
from reference.transducers.transducers import close
from tokenfst import Budget
from tokenfst.errors import BudgetExceeded, FstArgError, FstOpError

SMALL = Budget(states=2000, seconds=60)
LETTERS = "\x01\x02"
"""Their labels are those of the twin."""


def changed(world: World, machine: fst.VectorFst) -> fst.VectorFst:
    """A copy, or with another weight or label somewhere."""
    other = machine.copy()
    state = world.rng.randrange(machine.num_states())
    what = world.rng.randrange(4)
    if what == 0:
        other.set_final(state, 2.625)
    elif what == 1 and other.num_arcs(state):
        other.delete_arcs(state, 1)
    elif what == 2:
        other.add_arc(state, fst.Arc(1, 1, 1.5, 0))
    return other


def shuffled(world: World, machine: fst.VectorFst) -> fst.VectorFst:
    """The same machine with other numbers of states and another order of arcs."""
    places = list(machine.states())
    world.rng.shuffle(places)
    made = fst.VectorFst(machine.arc_type()).add_states(len(places))
    made.set_start(places[machine.start()])
    for state in machine.states():
        made.set_final(places[state], machine.final(state))
        arcs = list(machine.arcs(state))
        world.rng.shuffle(arcs)
        for arc in arcs:
            made.add_arc(places[state], fst.Arc(arc.ilabel, arc.olabel, arc.weight, places[arc.nextstate]))
    return made


def equal(world: World) -> None:
    one = world.machine()
    other = changed(world, one)
    assert fst.equal(one, other) == pywrapfst.equal(theirs(one), theirs(other))


def isomorphic(world: World) -> None:
    one = fst.statemap(world.machine(), "arc_sum").connect()
    if not one.num_states():
        return
    other = shuffled(world, changed(world, one)).connect()
    try:
        found = fst.isomorphic(one, other)
    except FstOpError as error:
        assert "same labels" in str(error)
        return
    assert found == pywrapfst.isomorphic(theirs(one), theirs(other))


def equivalent(world: World) -> None:
    one = fst.determinize(world.machine(acceptor=True, epsilons=False, acyclic=True))
    other = one.copy().minimize()
    assert fst.equivalent(one, other, 1e-3)
    if other.num_states():
        other = fst.determinize(changed(world, other).connect(), budget=SMALL)
    if world.arc_type == "standard":
        assert fst.equivalent(one, other) == pywrapfst.equivalent(theirs(one), theirs(other))
    if fst.equivalent(one, other, 1e-3):
        assert same(one, other, 4, 1e-2)


def randequivalent(world: World) -> None:
    one = world.machine()
    other = changed(world, one)
    arguments: dict[str, Any] = {"npath": 3, "max_length": 6, "delta": 1e-3}
    try:
        found = fst.randequivalent(one, other, **arguments)
    except FstOpError:
        return  # the change made a sum that diverges
    if not found:
        assert not same(one, other, 6, 1e-6)
    assert fst.randequivalent(one, shuffled(world, one), **arguments)


def relabel(world: World) -> None:
    machine = world.machine()
    pairs = [(old, world.rng.randint(0, 4)) for old in world.rng.sample(range(4), world.rng.randint(1, 3))]
    wanted = theirs(machine).relabel_pairs(ipairs=pairs, opairs=[(1, 3)])
    assert pywrapfst.equal(theirs(machine.relabel_pairs(ipairs=pairs, opairs=[(1, 3)])), wanted)


def verify(world: World) -> None:
    machine = world.machine()
    assert machine.verify() and theirs(machine).verify()


def text(world: World) -> None:
    machine = world.machine()
    compiler = pywrapfst.Compiler(arc_type=world.arc_type, keep_state_numbering=True)
    compiler.write(machine.print(show_weight_one=True))
    found = compiler.compile()
    again = fst.Compiler(arc_type=world.arc_type, keep_state_numbering=True)
    again.write(machine.print())
    assert pywrapfst.isomorphic(found, theirs(again.compile())) or pywrapfst.equal(
        found, theirs(again.compile())
    )
    assert fst.equal(fst.from_bytes(machine.write_to_string("const")), machine)


def after(machine: Any, label: int) -> Any:
    """With what stands for the end of an input read as nothing."""
    return machine.relabel_pairs(ipairs=[(label, 0)])


def determinize_types(world: World) -> None:
    machine = world.machine(acyclic=True, epsilons=False)
    given: dict[str, Any] = {"det_type": "nonfunctional", "subsequential_label": 9}
    found = fst.determinize(machine, **given)
    wanted = pywrapfst.determinize(theirs(machine), **given)
    assert not found.properties(
        fst.I_EPSILONS
    )  # each arc writes one label at most, and the rest is after the end
    assert same(after(found, 9), after(wanted, 9), 3, 4e-3 if world.arc_type != "standard" else None)
    assert world.same(found, machine, 3)
    if world.arc_type == "standard":
        best = fst.determinize(machine, det_type="disambiguate", subsequential_label=9)
        least: dict[Any, float] = {}
        for (read, _), weight in meaning(machine, 3).items():
            least[read] = min(least.get(read, 1e9), weight)
        kept = {read: (written, weight) for (read, written), weight in meaning(after(best, 9), 3).items()}
        whole = meaning(machine, 3)
        for read, (written, weight) in kept.items():
            assert abs(weight - whole[read, written]) < 1e-4
            assert abs(weight - least[read]) < 1e-4


def determinize_pruned(world: World) -> None:
    machine = world.machine(acceptor=True, acyclic=True, epsilons=False)
    weight = world.rng.choice((0.25, 1.0, 3.0))
    found = fst.determinize(machine, weight=weight)
    assert world.same(found, pywrapfst.determinize(theirs(machine), weight=weight), 4)
    assert fst.determinize(machine, nstate=2).num_states() <= 2


def rmepsilon_pruned(world: World) -> None:
    machine = world.machine(acyclic=True)
    assert world.same(machine.copy().rmepsilon(weight=1.0), theirs(machine).rmepsilon(weight=1.0), 3)


def disambiguate(world: World) -> None:
    machine = world.machine(acceptor=True, acyclic=world.rng.random() < 0.5)
    try:
        found = fst.disambiguate(machine, delta=1e-9, budget=SMALL)
    except BudgetExceeded:
        return
    assert same(found, machine, 3, 2 * world.tolerance)
    if world.arc_type == "standard" and machine.properties(1 << 35):  # acyclic: pywrapfst ends
        assert world.same(found, pywrapfst.disambiguate(theirs(machine)), 3)


def word(world: World) -> str:
    return "".join(world.rng.choice(LETTERS) for _ in range(world.rng.randint(0, 3)))


def accep_and_cross(world: World) -> None:
    one, other, weight = word(world), word(world), world.rng.randint(0, 8) / 4
    machine = fst.accep(one, weight, world.arc_type)
    wanted = pynini.accep(one, weight, world.arc_type)
    assert pywrapfst.equal(theirs(machine), wanted)
    crossed = fst.cross(machine, fst.accep(other, arc_type=world.arc_type))
    assert world.same(crossed, pynini.cross(wanted, pynini.accep(other, arc_type=world.arc_type)), 3)
    left, right = world.machine(acceptor=True), world.machine(acceptor=True)
    reads, writes = meaning(left), meaning(right)
    found = meaning(fst.cross(left, right))
    pairs = {(x, y): reads[x, x] + writes[y, y] for x, _ in reads for y, _ in writes}
    assert close(found, pairs, world.tolerance)
    its = [pynini.Fst.from_pywrapfst(theirs(each)) for each in (left, right)]
    assert close(found, meaning(pynini.cross(*its)), 4e-3)  # it sums cycles of epsilons up to a delta


def string_map(world: World) -> None:
    lines = [(word(world), word(world), world.rng.randint(0, 8) / 4) for _ in range(world.rng.randint(1, 5))]
    found = fst.string_map(lines, arc_type=world.arc_type)
    plus, due = found.kind.core.plus, dict[Any, float]()
    for read, written, weight in lines:
        pair = tuple(map(ord, read)), tuple(map(ord, written))
        due[pair] = plus(due[pair], weight) if pair in due else weight
    assert close(meaning(found), due, world.tolerance)
    wanted = pynini.string_map([(i, o, str(w)) for i, o, w in lines], arc_type=world.arc_type)
    assert same(found, wanted, 3, max(world.tolerance, 1e-6))  # it adds weights up to a delta


def optimize(world: World) -> None:
    machine = world.machine(acyclic=world.rng.random() < 0.5)
    found = fst.optimize(machine)
    assert same(found, machine, 3, max(world.tolerance, 1e-5))
    wanted = pynini.optimize(pynini.Fst.from_pywrapfst(theirs(machine)))
    assert same(found, wanted, 3, max(world.tolerance, 4e-3))


OPERATIONS: Operations = {
    "equal": (equal, BOTH),
    "isomorphic": (isomorphic, BOTH),
    "equivalent": (equivalent, BOTH),
    "randequivalent": (randequivalent, ALL),
    "relabel": (relabel, BOTH),
    "verify": (verify, BOTH),
    "text-and-files": (text, BOTH),
    "determinize-types": (determinize_types, BOTH),
    "determinize-pruned": (determinize_pruned, ("standard",)),
    "rmepsilon-pruned": (rmepsilon_pruned, ("standard",)),
    "disambiguate": (disambiguate, ALL),
    "accep-and-cross": (accep_and_cross, BOTH),
    "string_map": (string_map, BOTH),
    "optimize": (optimize, BOTH),
}
PARTS = {
    "randequivalent": 30,
    "string_map": 3,
    "accep-and-cross": 6,
    "determinize-types": 3,
    "disambiguate": 6,
    "optimize": 5,
}


@few_and_many(OPERATIONS, PARTS)
def test_an_operation_is_openfsts(name: str, arc_type: str, seeds: range) -> None:
    tried(name, OPERATIONS[name][0], arc_type, seeds)


@pytest.mark.parametrize("select", ["uniform", "log_prob"])
def test_paths_at_random_take_no_arc_of_weight_zero(select: str) -> None:
    machine = fst.VectorFst("log64").add_states(3).set_start(0).set_final(1)
    for source, label, weight, target in (
        (0, 1, math.inf, 1),
        (0, 2, 0.5, 1),
        (0, 3, 0.2, 2),
        (2, 1, math.inf, 1),
    ):
        machine.add_arc(source, fst.Arc(label, label, weight, target))
    tree = fst.randgen(machine, 50, 1, select, weighted=True)
    assert [arc.ilabel for state in tree.states() for arc in tree.arcs(state)] == [2]


@pytest.mark.filterwarnings("error")
def test_weights_that_the_new_arcs_cannot_say_are_refused() -> None:
    """They became Zero, so their paths were lost."""

    def one(arc_type: str, weight: float) -> fst.VectorFst:
        made = fst.VectorFst(arc_type).add_states(2).set_start(0).set_final(1)
        return made.add_arc(0, fst.Arc(1, 1, weight, 1))

    for weight in (800.0, -800.0):
        with pytest.raises(
            fst.FstBadWeightError, match=rf"convert: the weight {weight} does not fit .*'real64'"
        ):
            fst.convert(one("log64", weight), "real64")
    assert fst.convert(one("log64", math.inf), "real64").arrays()[4].tolist() == [0.0]
    for arc_type, weight in (("standard", 3e38), ("real", 1e-30)):
        with pytest.raises(fst.FstBadWeightError, match=r"arcmap: power: the weight .* does not fit"):
            fst.arcmap(one(arc_type, weight), map_type="power", power=10.0)
    with pytest.raises(fst.FstBadWeightError):
        fst.arcmap(one("real", 1e-44), map_type="invert")


@pytest.mark.parametrize("label", [0, -1, True, 2**31, "a"])
def test_labels_of_replace_are_labels(label: Any) -> None:
    for replace in (fst.replace, fst.lazy.replace):
        with pytest.raises(FstArgError, match=r"a label is an integer from 1 to 2\^31 - 1, once"):
            replace([(label, fst.accep("a", 1))])


def test_paths_at_random_as_a_tree_of_counts() -> None:
    machine = fst.string_map(["\x01\x01", "\x01\x02", "\x02", ""])
    tree = fst.randgen(machine, npath=400, seed=5, weighted=True)
    assert fst.optimize(fst.arcmap(tree, map_type="rmweight")).num_states() == 3
    log = fst.arcmap(tree, map_type="to_log64")
    total = fst.shortestdistance(log, reverse=True)[log.start()]
    assert abs(2.718281828459045 ** -float(total) - 400) < 1e-2  # all paths together
    share = fst.convert(
        fst.randgen(machine, npath=400, seed=5, weighted=True, remove_total_weight=True), "log64"
    )
    assert abs(fst.shortestdistance(share, reverse=True)[share.start()]) < 1e-5
    real = fst.randgen(fst.convert(machine, "real64"), npath=400, seed=5, weighted=True)
    assert abs(fst.shortestdistance(real, reverse=True)[real.start()] - 400) < 1e-9
    assert fst.randgen(fst.VectorFst(), npath=3, weighted=True).num_states() == 0
    with pytest.raises(FstOpError, match="counts of paths are no weights"):
        fst.randgen(fst.convert(machine, "boolean"), weighted=True)
    with pytest.raises(FstArgError, match="must not be negative"):
        fst.randgen(machine, npath=-1)


def test_questions_refuse_what_they_cannot_compare() -> None:
    one, other = fst.accep("ab"), fst.accep("ab")
    for machine, symbol in ((one, "x"), (other, "y")):
        table = fst.SymbolTable(symbol)
        table.add_symbol(symbol, 97)
        machine.set_input_symbols(table)
    for question in (fst.equivalent, fst.randequivalent):
        with pytest.raises(
            FstOpError, match=f"{question.__name__}: the input symbol tables 'x' and 'y' differ"
        ):
            question(one, other)
    assert fst.equal(one, other)  # as OpenFst's: it compares no tables
    with pytest.raises(FstArgError, match="randequivalent: npath must not be negative: -1"):
        fst.randequivalent(one, one, npath=-1)
    with pytest.raises(FstArgError, match="randequivalent: delta must not be negative"):
        fst.randequivalent(one, one, delta=-1.0)
    with pytest.raises(FstArgError, match="equal: delta must not be negative"):
        fst.equal(one, one, delta=-1.0)
    fast = fst.randgen(one, npath=3, select="fast_log_prob")
    assert fst.equal(fast, fst.randgen(one, npath=3, select="log_prob"))


def test_an_output_that_was_put_off_is_written_label_by_label() -> None:
    """As in OpenFst: input epsilons come from what is left at the end of the input alone."""
    machine = fst.VectorFst()
    machine.add_states(6)
    machine.set_start(0).set_final(3)
    for s, read, written, t in (
        (0, 1, 1, 1), (0, 1, 2, 2), (1, 2, 1, 3), (2, 3, 2, 3), (3, 1, 1, 4), (3, 1, 2, 5), (4, 2, 2, 3), (5, 3, 1, 3),
    ):  # fmt: skip
        machine.add_arc(s, fst.Arc(read, written, 0, t))
    for label in (0, 9):
        wanted = pywrapfst.determinize(theirs(machine), subsequential_label=label)
        lazy = fst.lazy.determinize(machine, subsequential_label=label).expand()
        assert pywrapfst.isomorphic(theirs(lazy), wanted)
        eager = fst.determinize(machine, subsequential_label=label)
        rest = [arc.ilabel for s in eager.states() for arc in eager.arcs(s) if arc.ilabel not in (1, 2, 3)]
        assert rest == [label, label] and same(eager, lazy)


@pytest.mark.parametrize("side", ["to_initial", "to_final"])
def test_potentials_of_zero_are_openfsts(side: str) -> None:
    machine = fst.string_map([("ab", "x", 1.0), ("c", "y", 2.0)])
    zero = float("inf")
    for potentials in ([0.5, zero, 1.0], [], [0.0, 1.0, zero, 2.0]):
        weights = [pywrapfst.Weight("tropical", each) for each in potentials]
        assert pywrapfst.equal(
            theirs(machine.copy().reweight(potentials, side)), theirs(machine).reweight(weights, side)
        )
