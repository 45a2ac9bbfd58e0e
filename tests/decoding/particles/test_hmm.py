"""Hidden Markov models against sums over all hidden paths, and against themselves at lengths that underflow."""

from __future__ import annotations

import itertools
import math
import random
from pathlib import Path

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import load_file, save_file

from reference.decoding.probability import path_probability
from tests.support.worlds.hmm_worlds import seeded, small, split, tables
from tokenfst.decoding.particles.hmm import Hmm
from tokenfst.errors import ArtifactError, ArtifactVersionError, HmmError, TokenIdError

pytestmark = pytest.mark.usefixtures("one_torch_thread")


def with_zeros() -> Hmm:
    """State 0 emits token 0 and goes to state 1, which emits tokens 1 and 2 and stays."""
    return Hmm(
        torch.tensor([1.0, 0.0]),
        torch.tensor([[0.0, 1.0], [0.0, 1.0]]),
        torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.0, 0.5, 0.5, 0.0]]),
    )


@pytest.mark.parametrize("seed", range(5))
def test_likelihoods_are_sums_over_hidden_paths(seed: int) -> None:
    hmm = small(seed, hidden=1 + seed, vocab=3)
    for length in range(5):
        every = list(itertools.product(range(3), repeat=length))
        found = hmm.log_likelihood(torch.tensor(every, dtype=torch.long).reshape(len(every), length)).exp()
        expected = [path_probability(*tables(hmm), tokens) for tokens in every]
        assert found.tolist() == pytest.approx(expected, rel=1e-10)
        assert float(found.sum()) == pytest.approx(1.0)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), lengths=st.lists(st.integers(0, 5), min_size=1, max_size=5))
def test_rows_of_a_batch_do_not_see_each_other(seed: int, lengths: list[int]) -> None:
    hmm, rng = small(seed), random.Random(seed)
    width = max(lengths)
    rows = [[rng.randrange(4) for _ in range(length)] for length in lengths]
    padded = torch.tensor([row + [-100] * (width - len(row)) for row in rows]).reshape(len(rows), width)
    found = hmm.log_likelihood(padded, torch.tensor(lengths))
    expected = [math.log(path_probability(*tables(hmm), row)) for row in rows]
    assert found.tolist() == pytest.approx(expected, rel=1e-9, abs=1e-9)


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), lengths=st.lists(st.integers(1, 5), min_size=1, max_size=4))
def test_forward_and_backward_agree_at_every_place(seed: int, lengths: list[int]) -> None:
    hmm, rng = small(seed), random.Random(seed)
    width = max(lengths)
    tokens = torch.tensor([[rng.randrange(4) for _ in range(width)] for _ in lengths])
    filtered, gains = hmm.forward(tokens, torch.tensor(lengths))
    scaled, scales = hmm.backward(tokens, torch.tensor(lengths))
    for row, length in enumerate(lengths):
        whole = math.log(path_probability(*tables(hmm), tokens[row, :length].tolist()))
        for place in range(length):
            before = math.log(path_probability(*tables(hmm), tokens[row, : place + 1].tolist()))
            assert float(gains[row, : place + 1].sum()) == pytest.approx(before)
            after = float((filtered[row, place] * scaled[row, place]).sum().log() + scales[row, place])
            assert before + after == pytest.approx(whole)
        assert float(gains[row, length:].abs().sum()) == 0


def test_beliefs_predict_the_next_token() -> None:
    hmm = small(7)
    prefix = [2, 0, 3]
    belief = hmm.observe_all(hmm.start(), torch.tensor([prefix]))
    whole = path_probability(*tables(hmm), prefix)
    expected = [path_probability(*tables(hmm), [*prefix, token]) / whole for token in range(4)]
    assert hmm.log_next(belief).exp()[0].tolist() == pytest.approx(expected)
    assert float(belief.log_likelihood[0]) == pytest.approx(math.log(whole))
    twice = belief.select(torch.tensor([0, 0]))
    assert twice.state.shape == (2, 3)


def test_4096_states_do_not_underflow_in_float32() -> None:
    hmm = small(1, hidden=2, vocab=7, sharpness=3.0)
    wide = split(hmm, 2048)
    tokens = torch.randint(
        7, (1, 110), generator=seeded(2)
    )  # ln p is at most -110 ln 7 on average, by any model
    exact = hmm.log_likelihood(tokens)
    assert float(exact) < 1.5 * math.log(1e-38), "the product of the probabilities would underflow"
    assert wide.log_likelihood(tokens).tolist() == pytest.approx(exact.tolist(), rel=1e-5)
    scaled, scales = wide.backward(tokens)
    expected, exact_scales = hmm.backward(tokens)
    assert torch.allclose(scaled[..., ::2048], expected.float(), rtol=1e-4)
    assert torch.allclose(scales, exact_scales.float(), rtol=1e-4)


def test_what_is_impossible_has_probability_zero_and_breaks_nothing() -> None:
    hmm = with_zeros()
    found = hmm.log_likelihood(torch.tensor([[0, 1, 2], [1, 0, 1], [0, 3, 1], [0, 2, 2]]))
    assert found.tolist() == pytest.approx([math.log(0.25), -math.inf, -math.inf, math.log(0.25)])
    belief = hmm.observe_all(hmm.start(2), torch.tensor([[3, 1], [3, 3]]))
    assert bool(belief.state.isfinite().all())
    assert belief.state.sum(1).tolist() == [1, 1]
    scaled, _ = hmm.backward(torch.tensor([[0, 3, 1]]))
    assert scaled[0].tolist() == [[0, 0], [1, 1], [1, 1]]


def test_samples_have_the_models_frequencies() -> None:
    hmm = small(11, hidden=3, vocab=3)
    count = 40_000
    codes = (hmm.sample(count, 3, seeded(3)) * torch.tensor([9, 3, 1])).sum(1)
    found = torch.bincount(codes, minlength=27) / count
    every = list(itertools.product(range(3), repeat=3))
    expected = torch.tensor([path_probability(*tables(hmm), tokens) for tokens in every])
    deviation = ((found - expected) / (expected * (1 - expected) / count).sqrt()).abs()
    assert float(deviation.max()) < 4.5
    assert torch.equal(hmm.sample(5, 6, seeded(9)), hmm.sample(5, 6, seeded(9)))


def test_files_bring_the_same_model_back(tmp_path: Path) -> None:
    hmm = Hmm.random(5, 9, generator=seeded(4), vocabulary="f00d")
    first, second = tmp_path / "a.safetensors", tmp_path / "b.safetensors"
    hmm.save(first)
    found = Hmm.load(first)
    found.save(second)
    assert first.read_bytes() == second.read_bytes()
    assert found.vocabulary == "f00d"
    assert torch.equal(found.emission, hmm.emission)
    assert torch.equal(found.transition, hmm.transition)
    assert torch.equal(found.initial, hmm.initial)


def test_files_that_hold_no_model_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    path.write_bytes(b"no safetensors")
    with pytest.raises(ArtifactError, match="holds no hidden Markov model"):
        Hmm.load(path)
    Hmm.random(2, 3).save(path)
    parts = load_file(path)
    save_file(parts, path, {"tokenfst.hmm": '{"version": 2}'})
    with pytest.raises(ArtifactVersionError, match="version 2"):
        Hmm.load(path)
    save_file(parts, path)
    with pytest.raises(ArtifactError):
        Hmm.load(path)
    save_file(parts | {"initial": torch.tensor([0.5, 0.4])}, path, {"tokenfst.hmm": '{"version": 1}'})
    with pytest.raises(HmmError, match=r"row 0 of initial is no distribution: its sum is 0\.9"):
        Hmm.load(path)
    del parts["emission"]
    save_file(parts, path, {"tokenfst.hmm": '{"version": 1}'})
    with pytest.raises(ArtifactError, match="emission"):
        Hmm.load(path)


def test_tables_and_sequences_are_checked() -> None:
    row, square, wide = torch.tensor([0.5, 0.5]), torch.eye(2), torch.full((2, 4), 0.25)
    with pytest.raises(HmmError, match=r"shapes \(2,\), \(3, 3\)"):
        Hmm(row, torch.eye(3), wide)
    with pytest.raises(HmmError, match="row 1 of transition"):
        Hmm(row, torch.tensor([[1.0, 0.0], [1.5, -0.5]]), wide)
    with pytest.raises(HmmError, match="no distribution"):
        Hmm(row, square, wide * float("nan"))
    with pytest.raises(HmmError, match="of one floating-point type"):
        Hmm(row, square, wide.double())
    with pytest.raises(HmmError, match="at least 1"):
        Hmm.random(0, 3)
    hmm = Hmm(row, square, wide)
    with pytest.raises(TokenIdError, match="token id 4 lies outside the 4 tokens"):
        hmm.log_likelihood(torch.tensor([[0, 4]]))
    with pytest.raises(HmmError, match="shape"):
        hmm.log_likelihood(torch.tensor([0, 1]))
    with pytest.raises(HmmError, match=r"lengths must be one for each row .1 row., from 0 to 2"):
        hmm.forward(torch.tensor([[0, 1]]), torch.tensor([3]))
    for tokens in (torch.tensor([[0.7, 1.0]]), torch.tensor([[True, False]]), torch.tensor([[1j]])):
        with pytest.raises(HmmError, match="tokens must be integers, not torch"):
            hmm.log_likelihood(tokens)
    with pytest.raises(HmmError, match="lengths must be integers"):
        hmm.log_likelihood(torch.tensor([[0, 1]]), torch.tensor([1.5]))
