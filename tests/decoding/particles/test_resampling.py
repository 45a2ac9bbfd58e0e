"""Resampling schemes: expectations, bounds on the copies, and what they refuse."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenfst.decoding.particles.resampling import SCHEMES, draw_one, resample

pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_expected_number_of_copies_is_in_proportion_to_the_weights(scheme: str) -> None:
    weights = torch.tensor([0.5, 0.0, 3.0, 1.25, 0.25, 1.0])
    rows, count = 20_000, len(weights)
    parents = resample(weights.expand(rows, -1), scheme, torch.Generator().manual_seed(1))
    assert parents.shape == (rows, count)
    assert bool((parents[:, 1:] >= parents[:, :-1]).all())
    copies = torch.nn.functional.one_hot(parents, count).sum(1).double()
    expected = count * weights.double() / weights.sum()
    error = copies.std(0) / math.sqrt(rows)
    assert bool(((copies.mean(0) - expected).abs() <= 4.5 * error + 1e-9).all())
    assert not copies[:, 1].any()
    if scheme == "systematic":
        assert bool(((copies >= expected.floor()) & (copies <= expected.ceil())).all())
    if scheme == "residual":
        assert bool((copies >= expected.floor()).all())
    if scheme == "stratified":
        assert bool(((copies - expected).abs() < 2).all())


def test_schemes_differ_in_variance_as_they_should() -> None:
    weights = torch.tensor([[0.9, 1.6, 0.3, 1.2]]).expand(20_000, -1)
    spread = {}
    for scheme in SCHEMES:
        parents = resample(weights, scheme, torch.Generator().manual_seed(2))
        spread[scheme] = float(torch.nn.functional.one_hot(parents, 4).sum(1).double().var(0).sum())
    assert spread["systematic"] <= spread["stratified"] < spread["multinomial"]
    assert spread["residual"] < spread["multinomial"]


@settings(max_examples=60, deadline=None)
@given(
    weights=st.lists(st.sampled_from([0.0, 1e-300, 1e-9, 0.1, 1.0, 7.0, 1e9]), min_size=1, max_size=9),
    scheme=st.sampled_from(SCHEMES),
    seed=st.integers(0, 10**6),
)
def test_weightless_particles_die(weights: list[float], scheme: str, seed: int) -> None:
    table = torch.tensor([weights, weights], dtype=torch.float64)
    if not sum(weights):
        with pytest.raises(ValueError, match="positive, finite sum"):
            resample(table, scheme)
        return
    parents = resample(table, scheme, torch.Generator().manual_seed(seed))
    assert parents.shape == table.shape
    assert bool((table.gather(1, parents) > 0).all())


@pytest.mark.parametrize("scheme", SCHEMES)
def test_equal_weights_keep_every_particle_where_the_scheme_has_little_variance(scheme: str) -> None:
    parents = resample(torch.full((50, 7), 0.1), scheme, torch.Generator().manual_seed(3))
    if scheme != "multinomial":
        assert bool((parents == torch.arange(7)).all())


def test_one_draw_follows_the_distribution() -> None:
    shares = torch.tensor([0.0, 0.2, 0.0, 0.5, 0.3, 0.0])
    drawn = draw_one(shares.expand(40_000, -1), torch.Generator().manual_seed(4))
    found = torch.bincount(drawn, minlength=6) / 40_000
    assert bool(((found - shares).abs() <= 4.5 * (shares * (1 - shares) / 40_000).sqrt()).all())


def test_the_ends_of_the_line_are_never_left(monkeypatch: pytest.MonkeyPatch) -> None:
    for place in (0.0, 1 - 2**-53):
        monkeypatch.setattr(
            torch, "rand", lambda *shape, _place=place, **_: torch.full(shape, _place, dtype=torch.float64)
        )
        for total in (0.1, 1.0, 3.0, 1e-30, 7e20):
            shares = torch.tensor([[0.0, 1.0, 2.0, 0.0], [0.0, 0.0, 1.0, 0.0]]) * total
            assert draw_one(shares).tolist() == ([1, 2] if place == 0 else [2, 2])


def test_broken_weights_are_refused() -> None:
    for weights in ([[1.0, -1.0]], [[math.nan, 1.0]], [[math.inf, 1.0]]):
        with pytest.raises(ValueError, match="non-negative"):
            resample(torch.tensor(weights))
    with pytest.raises(ValueError, match="one of multinomial"):
        resample(torch.ones(1, 2), "cubic")  # type: ignore[arg-type]
