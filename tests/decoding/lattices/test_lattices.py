"""Lattices beside a walk of all their paths, and their gradients beside finite differences."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch

import tokenfst.fst as fst
from reference.transducers.weighted import lattice_total
from tokenfst import WeightedLanguage
from tokenfst.decoding.lattices.lattice import Lattice
from tokenfst.decoding.lattices.texts import TextLattice
from tokenfst.errors import ArgumentValueError, ConstraintError


def random_lattice(seed: int) -> tuple[Lattice, list[tuple[int, int]], int]:
    """Arcs between states in an order that is not that of their numbers; some states lie apart."""
    draw = random.Random(seed)
    states = draw.randrange(1, 8)
    order = draw.sample(range(states), states)
    arcs = []
    for _ in range(draw.randrange(0, 13) if states > 1 else 0):
        low, high = sorted(draw.sample(range(states), 2))
        arcs.append((order[low], order[high]))
    start = draw.randrange(states)
    return Lattice(arcs, states, start=start), arcs, start


@pytest.mark.parametrize("seed", range(30))
def test_totals_and_gradients(seed: int) -> None:
    lattice, arcs, start = random_lattice(seed)
    generator = torch.Generator().manual_seed(seed)
    weights = torch.randn(2, 3, len(arcs), generator=generator, dtype=torch.float64, requires_grad=True)
    finals = torch.randn(2, 3, lattice.states, generator=generator, dtype=torch.float64, requires_grad=True)
    totals = lattice.log_partition(weights, finals)
    assert totals.shape == (2, 3)
    for b in range(2):
        for c in range(3):
            due = lattice_total(arcs, weights[b, c].tolist(), finals[b, c].tolist(), start)
            assert float(totals[b, c].detach()) == pytest.approx(due)
    assert torch.autograd.gradcheck(lattice.log_partition, (weights, finals))
    narrow = lattice.log_partition(weights.float(), finals.float())
    assert narrow.dtype == torch.float32 and torch.allclose(narrow, totals.float(), atol=1e-5)


def test_gradients_are_posteriors() -> None:
    lattice = Lattice([(0, 1), (0, 2), (1, 3), (2, 3)], 4, finals=[3])
    weights = torch.tensor([0.0, math.log(3), 0.0, 0.0])
    assert lattice.posteriors(weights).tolist() == pytest.approx([0.25, 0.75, 0.25, 0.75])
    assert float(lattice.log_partition(weights)) == pytest.approx(math.log(4))


def test_finals_may_be_shared_by_a_batch_and_paths_may_be_missing() -> None:
    lattice = Lattice([(0, 1), (1, 2)], 3, finals=[2])
    weights = torch.tensor([[0.0, 1.0], [-torch.inf, 1.0]], requires_grad=True)
    finals = torch.zeros(3, requires_grad=True)
    totals = lattice.log_partition(weights, finals)
    assert totals.tolist() == [1.0, -math.inf]
    totals[0].backward()
    assert weights.grad is not None and weights.grad.tolist() == [[1.0, 1.0], [0.0, 0.0]]
    assert finals.grad is not None and finals.grad.tolist() == [0.0, 0.0, 1.0]
    assert lattice.log_partition(torch.zeros(0, 2)).shape == (0,)


def test_what_is_refused() -> None:
    with pytest.raises(ConstraintError, match="no cycles"):
        Lattice([(0, 1), (1, 2), (2, 1)], 3)
    with pytest.raises(ValueError, match=r"arcs\[1\]"):
        Lattice([(0, 1), (1, 3)], 3)
    lattice = Lattice([(0, 1)], 2)
    with pytest.raises(ValueError, match="weights"):
        lattice.log_partition(torch.zeros(2))
    with pytest.raises(ValueError, match="NaN"):
        lattice.log_partition(torch.full((1,), torch.nan))
    with pytest.raises(ValueError, match="float32"):
        lattice.log_partition(torch.zeros(1, dtype=torch.float16))


@pytest.mark.parametrize("arcs", [[(0, 1.5)], [(0, 1, 2)], [(0, 1, 1, 2)], [(0, 1), (1,)], [("0", "1")]])
def test_arcs_that_are_no_pairs_of_states_are_refused(arcs: Any) -> None:
    """1.5 was state 1, and four numbers were two arcs."""
    with pytest.raises(ArgumentValueError, match="arcs must be pairs of whole numbers"):
        Lattice(arcs, 3)


def test_shapes_that_do_not_fit_are_refused() -> None:
    with pytest.raises(ArgumentValueError, match=r"finals must be of a batch that fits .* \(3,\)"):
        Lattice([(0, 1)], 2).log_partition(torch.zeros(3, 1), torch.zeros(2, 2))
    lattice = TextLattice(WeightedLanguage.alternatives({"a": 1, "b": 2}), "a")
    for weights, finals in ((5, 3), (2, 1)):
        with pytest.raises(ArgumentValueError, match=r"must be a tensor \(..., "):
            lattice.log_weight(torch.zeros(weights), torch.zeros(finals))


def test_weights_learned_from_texts_are_their_shares() -> None:
    """A machine whose states' weights are softmaxes: the most likely ones are the relative counts."""
    made = fst.VectorFst("real64").add_states(1).set_start(0).set_final(0, 0.5)
    for letter in "abc":
        made.add_arc(0, fst.Arc(ord(letter), ord(letter), 0.2, 0))
    language = WeightedLanguage.from_fst(made, token_type="byte")
    texts = ["ab", "aac", "a", "b"]
    lattices = [TextLattice(language, text) for text in texts]
    parameters = torch.zeros(4, dtype=torch.float64, requires_grad=True)
    optimizer = torch.optim.LBFGS([parameters], max_iter=100, line_search_fn="strong_wolfe")

    def loss() -> torch.Tensor:
        optimizer.zero_grad()
        logs = parameters.log_softmax(0)
        total = -torch.stack([each.log_weight(logs[:3], logs[3:]) for each in lattices]).sum()
        total.backward()  # type: ignore[no-untyped-call]
        return total

    optimizer.step(loss)  # type: ignore[no-untyped-call]
    assert parameters.softmax(0).tolist() == pytest.approx([4 / 11, 2 / 11, 1 / 11, 4 / 11], abs=1e-4)
    with pytest.raises(ConstraintError, match="no path"):
        TextLattice(language, "x")


def test_the_lattice_of_a_text_sums_what_the_machine_does() -> None:
    language = WeightedLanguage.alternatives({"ab": 3, "abc": 1}) | WeightedLanguage.alternatives({"ab": 2})
    machine = language.plain
    lattice = TextLattice(language, "ab")
    found = lattice.log_weight(torch.from_numpy(machine.weights), torch.from_numpy(machine.finals))
    assert float(found) + machine.initial == pytest.approx(math.log(5))
