"""Machines from columns of numbers: the same as arc by arc, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from support.worlds.transducer_worlds import ours

import tokenfst.fst as fst
from reference.transducers.transducers import random_plain
from tokenfst import Budget
from tokenfst.errors import BudgetExceeded, FstError


@pytest.mark.parametrize("arc_type", ["standard", "tropical64", "log", "log64", "minmax"])
def test_a_machine_of_columns_is_the_machine_arc_by_arc(arc_type: str) -> None:
    rng = random.Random(3)
    for _ in range(40):
        machine = ours(random_plain(rng), arc_type)  # which adds its arcs one by one
        again = fst.from_arrays(machine.start(), *machine.arrays(), arc_type=arc_type)
        assert fst.equal(machine, again) and again.arc_type() == arc_type and again.print() == machine.print()


def test_columns_are_anything_that_numpy_reads() -> None:
    given: tuple[Any, ...] = ([np.inf, 0.5], [1, 0], (97,), np.array([98], np.uint8), [2], [1])
    machine = fst.from_arrays(0, *given, arc_type="log64")
    assert machine.print() == "0\t1\t97\t98\t2\n1\t0.5\n"
    assert machine.input_symbols() is None and machine.output_symbols() is None
    empty: list[int] = []
    assert fst.from_arrays(-1, *[empty] * 6).num_states() == 0


@pytest.mark.parametrize(
    ("place", "value", "says"),
    [
        (1, [0.0] * 3, "differ in length"),
        (1, [[0.0, 0.0]], "finals must be a one-dimensional array of numbers"),
        (1, ["a", "b"], "finals must be a one-dimensional array of numbers"),
        (1, [float("nan"), 0], "final weight of state 0 is no weight of this semiring"),
        (2, [2, 0], r"counts\[0\] is 2, outside 0..1"),
        (2, [0, 0], "do not add up"),
        (2, [0.5, 1], "counts must be a one-dimensional array of integers"),
        (3, [-1], r"ilabels\[0\] is -1, outside 0..2147483647"),
        (4, [2**31], r"olabels\[0\] is 2147483648, outside 0..2147483647"),
        (5, [float("nan")], "weight of an arc of state 0 is no weight"),
        (5, [-1.0], "weight of an arc of state 0 is no weight"),
        (6, [2], r"nextstates\[0\] is 2, outside 0..1"),
        (0, 2, "start is not a state: 2"),
    ],
)
def test_what_is_no_machine_is_refused(place: int, value: Any, says: str) -> None:
    given: list[Any] = [0, [0.0, 1.0], [1, 0], [1], [1], [0.5], [1]]
    fst.from_arrays(*given, arc_type="real64")
    given[place] = value
    with pytest.raises(FstError, match=says):
        fst.from_arrays(*given, arc_type="real64")


def test_a_budget_bounds_it() -> None:
    with pytest.raises(BudgetExceeded):
        fst.from_arrays(0, np.zeros(9), np.zeros(9, int), [], [], [], [], budget=Budget(states=8))
