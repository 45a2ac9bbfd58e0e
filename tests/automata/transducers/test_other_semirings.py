"""The semirings that OpenFst's Python lacks, on random machines: probabilities against logarithms, Boolean machines
against costs, min-max by its thresholds: a pair weighs t at most where the arcs that do map the one to the other.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

from support.worlds.random_transducers import Operations, World, few_and_many, tried
from support.worlds.transducer_worlds import meaning

import tokenfst.fst as fst
from reference.transducers.transducers import Plain, close, diverges, plain, relation
from tokenfst import Budget
from tokenfst.errors import BudgetExceeded

SMALL = Budget(states=2000, seconds=60)
Made = Callable[..., fst.VectorFst]
UNARY: dict[str, tuple[Made, dict[str, Any]]] = {
    "rmepsilon": (lambda m: m.copy().rmepsilon(), {}),
    "closure": (lambda m: m.copy().closure("plus"), {"acyclic": True}),
    "reverse": (lambda m: fst.reverse(m), {}),
    "connect": (lambda m: m.copy().connect(), {}),
    "determinize": (
        lambda m: fst.determinize(m, budget=SMALL),
        {"acceptor": True, "epsilons": False, "acyclic": True},
    ),
    "minimize": (
        lambda m: fst.determinize(m, delta=1e-12, budget=SMALL).minimize(delta=1e-12),
        {"acceptor": True, "epsilons": False, "acyclic": True},
    ),
    "disambiguate": (lambda m: fst.disambiguate(m, delta=1e-12, budget=SMALL), {"acceptor": True}),
    "push": (lambda m: fst.push(m, push_weights=True), {}),
    "statemap": (lambda m: fst.statemap(m, "arc_sum"), {}),
    "optimize": (lambda m: fst.optimize(m), {}),
    "lazy-rmepsilon": (lambda m: fst.lazy.rmepsilon(m).expand(), {}),
}
BINARY: dict[str, Made] = {
    "compose": lambda a, b: fst.compose(a, b),
    "union": lambda a, b: a.copy().union(b),
    "concat": lambda a, b: a.copy().concat(b),
    "lazy-compose": lambda a, b: fst.lazy.compose(a, b).expand(),
}
MINMAX = {"rmepsilon", "reverse", "connect", "compose", "union", "determinize", "statemap"}


def levels(machine: fst.VectorFst) -> dict[Any, float]:
    """What a min-max machine maps to what, by the twin."""
    given = plain(machine)
    weights = sorted({-float("inf"), *given.finals.values(), *(arc[3] for arc in given.arcs)}, reverse=True)
    found: dict[Any, float] = {}
    for most in weights:
        arcs = [(s, i, o, 0.0, t) for s, i, o, w, t in given.arcs if w <= most]
        finals = {state: 0.0 for state, weight in given.finals.items() if weight <= most}
        kept = Plain(given.start, finals, arcs, given.states)
        found.update(dict.fromkeys(relation(kept, 2, False), most))
    return found


def of_probabilities(operation: Made, machines: list[fst.VectorFst]) -> None:
    found = fst.convert(operation(*machines), "log64")
    if not diverges(plain(found)):
        wanted = operation(*(fst.convert(each, "log64") for each in machines))
        assert close(meaning(found), meaning(wanted), 1e-9)


def of_truths(operation: Made, machines: list[fst.VectorFst]) -> None:
    wanted = operation(*(fst.convert(each, "standard") for each in machines))
    assert meaning(fst.convert(operation(*machines), "standard")).keys() == meaning(wanted).keys()


def of_levels(name: str, operation: Made, machines: list[fst.VectorFst]) -> None:
    found, (first, *others) = levels(operation(*machines)), (levels(each) for each in machines)
    if name == "reverse":
        assert found == {(x[::-1], y[::-1]): weight for (x, y), weight in first.items()}
    elif name == "union":
        keys = first | others[0]
        assert found == {key: min(first.get(key, 1e9), others[0].get(key, 1e9)) for key in keys}
    elif name == "compose":  # what stands between may be longer than what the twin looks at
        for ((x, y), one), ((again, z), other) in itertools.product(first.items(), others[0].items()):
            assert y != again or found[x, z] <= max(one, other)
    else:
        assert found == first


def checked(operation: Made, count: int, shape: dict[str, Any], name: str) -> Callable[[World], None]:
    def check(world: World) -> None:
        machines = [world.machine(**shape) for _ in range(count)]
        try:
            if world.arc_type == "real64":
                of_probabilities(operation, machines)
            elif world.arc_type == "boolean":
                of_truths(operation, machines)
            else:
                of_levels(name, operation, machines)
        except BudgetExceeded:
            return

    return check


class Other(World):
    """Machines over a semiring that the twin does not have."""

    def __init__(self, seed: int, arc_type: str) -> None:
        basis = {"real64": "log64", "boolean": "standard", "minmax64": "tropical64"}[arc_type]
        super().__init__(seed, basis)
        self.basis, self.arc_type = basis, arc_type

    def machine(self, **shape: Any) -> fst.VectorFst:
        wanted, self.arc_type = self.arc_type, self.basis
        try:
            made = super().machine(**shape)
        finally:
            self.arc_type = wanted
        if wanted != "minmax64":
            return fst.convert(made, wanted)
        again = fst.VectorFst(wanted).add_states(made.num_states()).set_start(made.start())
        for state in made.states():
            if (final := float(made.final(state))) != float("inf"):
                again.set_final(state, final)
            for arc in made.arcs(state):
                again.add_arc(state, fst.Arc(arc.ilabel, arc.olabel, float(arc.weight), arc.nextstate))
        return again


def types(name: str) -> tuple[str, ...]:
    return ("real64", "boolean", "minmax64") if name in MINMAX else ("real64", "boolean")


OPERATIONS: Operations = {
    **{name: (checked(made, 1, shape, name), types(name)) for name, (made, shape) in UNARY.items()},
    **{name: (checked(made, 2, {}, name), types(name)) for name, made in BINARY.items()},
}


@few_and_many(OPERATIONS, dict.fromkeys(OPERATIONS, 2))
def test_an_operation_over_another_semiring(name: str, arc_type: str, seeds: range) -> None:
    tried(name, OPERATIONS[name][0], arc_type, seeds, Other)
