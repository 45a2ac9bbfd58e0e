"""Tokens drawn on a device: the distribution is the one of tests/reference/decoding/token_sampling.py, draws are
reproducible whatever the batch, and rows without any weight are counted.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from reference.decoding.token_sampling import distribution
from tests.decoding.device.test_device_tracing import NoWaiting
from tokenfst import Vocabulary, compile, gbnf, regex
from tokenfst.errors import ArgumentValueError, ConstraintError, MaskBufferError, StateError, TokenIdError

torch = pytest.importorskip("torch")
tokenfst = pytest.importorskip("tokenfst")
plain = pytest.importorskip("tokenfst.decoding.device.kernels.sampling.plain")
DeviceAutomaton = pytest.importorskip("tokenfst.decoding.device.automata.automaton").DeviceAutomaton
DeviceSampler = pytest.importorskip("tokenfst.decoding.device.automata.sampling").DeviceSampler

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), b"ab", b""], 257)


@pytest.fixture(scope="module")
def device() -> Any:
    return DeviceAutomaton([compile(regex(pattern), VOCABULARY) for pattern in ("[a-m]+", "[0-9]+", "x+")])


def allowed(device: Any, states: Any) -> list[list[int]]:
    bits = np.unpackbits(device.bitmask(states).numpy().view(np.uint8), axis=1, bitorder="little")
    return [np.flatnonzero(row).tolist() for row in bits]


def probabilities(sampler: Any, logits: Any, states: Any) -> Any:
    """The distribution that the integer weights stand for, float64 (B, V), by the parts of ``plain.sample``."""
    device, numbers = sampler.automaton, sampler._numbers
    raw = logits[:, : len(device.vocabulary)].float()
    if sampler.seen is not None:
        raw = plain._penalized(raw, sampler.seen, numbers)
    scores = plain._counted(raw, device._allowed(states, None))
    scale = numbers[:, plain.SCALE, None]
    tops, masses, weights = plain._blocks(scores, scale)
    top, shares = plain._shares(tops, masses, scale)
    total = shares.sum(1, keepdim=True)
    parts = (shares / total / masses.clamp_min(1))[:, :, None] * weights
    kept = plain._kept(scores, top, total, numbers)
    cuts = (numbers[:, plain.TOP_K] > 0) | (numbers[:, plain.TOP_P] < 1) | numbers[:, plain.FLOOR].isfinite()
    whole = parts.flatten(1)[:, : scores.shape[1]]
    return torch.where(cuts[:, None], kept / kept.sum(1, keepdim=True), whole).double()


# --- random numbers ---


def test_philox_is_the_published_one() -> None:
    """Known answers of Random123 for Philox 4x32-10."""
    found = plain.philox(torch.tensor([0, -1]), torch.tensor([0, -1]))
    words = [[(value >> shift) & 0xFFFFFFFF for value in row for shift in (32, 0)] for row in found.tolist()]
    assert words[0] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    assert len(set(words[1]) | set(words[0])) == 8


def test_high_products() -> None:
    rng = random.Random(0)
    a = [rng.getrandbits(64) for _ in range(500)] + [0, 2**64 - 1, 2**63, 1]
    b = [rng.getrandbits(rng.randint(1, 62)) for _ in range(500)] + [2**62, 2**62, 2**61 + 1, 5]
    signed = [value - 2**64 if value >= 2**63 else value for value in a]
    found = plain.high_product(torch.tensor(signed), torch.tensor(b)).tolist()
    assert found == [x * y >> 64 for x, y in zip(a, b, strict=True)]


# --- the distribution ---


def random_options(rng: random.Random, rows: int) -> dict[str, list[Any]]:
    """Penalties are sums of few powers of two: scores that they make equal are so in float32 and in float64."""
    choices: dict[str, list[Any]] = {
        "temperature": [0, 0.3, 1, 2.5],
        "top_k": [0, 0, 1, 3, 9, 400],
        "top_p": [1.0, 1.0, 0.05, 0.5, 0.83, 0.97],
        "min_p": [0, 0, 0.013, 0.4, 1],
        "repetition_penalty": [1, 0.75, 1.75],
        "presence_penalty": [0, 0.625, -0.875],
    }
    return {name: [rng.choice(values) for _ in range(rows)] for name, values in choices.items()}


@pytest.mark.parametrize("seed", range(6))
def test_the_distribution_is_the_references(device: Any, seed: int) -> None:
    rng, rows = random.Random(seed), 40
    torch.manual_seed(seed)
    options = random_options(rng, rows)
    states = device.start_states([rng.randrange(3) for _ in range(rows)])
    logits = torch.randn(rows, 264) * rng.choice([0.3, 2.0, 8.0])
    if seed % 2:
        logits = (logits * 2).round() / 2  # many are equal
        logits[torch.rand(logits.shape) < 0.1] = rng.choice([math.nan, -math.inf, math.inf])
    sampler = DeviceSampler(device, rows, **options)
    seen = torch.randint(-3, 300, (rows, 60))
    sampler.see(seen)
    found = probabilities(sampler, logits, states)
    token, _, logs, models = sampler.step_with_logs(logits, states)
    for row, tokens in enumerate(allowed(device, states)):
        given = {name: values[row] for name, values in options.items()}
        wanted = distribution(logits[row].tolist(), tokens, seen=set(seen[row].tolist()), **given)
        assert int(token[row]) in wanted
        if not bool(sampler.forced[row]):
            ours = {t: float(found[row, t]) for t in range(258) if found[row, t] > 0}
            least = {t: p for t, p in wanted.items() if p > 1e-7}
            assert {t: p for t, p in ours.items() if t in least} == pytest.approx(least, rel=2e-5, abs=2**-28)
            assert sum(p for t, p in ours.items() if t not in least) < 1e-5
        assert float(logs[row]) == pytest.approx(math.log(wanted[int(token[row])]), abs=2e-5)
    plain_logits = torch.where(logits[:, :258].isnan(), -math.inf, logits[:, :258]).double()
    finite = ~(plain_logits == math.inf).any(1) & logits.gather(1, token[:, None])[:, 0].isfinite()
    expected = plain_logits.log_softmax(1).gather(1, token[:, None])[:, 0]
    assert torch.allclose(models[finite].double(), expected[finite], atol=2e-5)


def chi_square(device: Any, draws: int, chunk: int, **options: Any) -> None:
    """Draws of one row's distribution against it, by Pearson's statistic, six standard deviations off at most."""
    logits = torch.randn(1, 258, generator=torch.Generator().manual_seed(4)).mul(1.5)
    counts = torch.zeros(258, dtype=torch.int64)
    for begin in range(0, draws, chunk):
        sampler = DeviceSampler(device, chunk, seeds=begin, **options)
        tokens = sampler.choose(logits.repeat(chunk, 1), device.start_states([0] * chunk))
        counts += torch.bincount(tokens, minlength=258)
    wanted = distribution(logits[0].tolist(), allowed(device, device.start_states([0]))[0], **options)
    assert int(counts.sum()) == sum(int(counts[token]) for token in wanted) == draws
    statistic = sum((int(counts[t]) - draws * p) ** 2 / (draws * p) for t, p in wanted.items())
    free = len(wanted) - 1
    assert statistic < free + 6 * math.sqrt(2 * free)


@pytest.mark.parametrize("options", [{}, {"temperature": 0.7, "top_k": 9, "top_p": 0.95}, {"min_p": 0.1}])
def test_draws_follow_the_distribution(device: Any, options: dict[str, Any]) -> None:
    chi_square(device, 3000, 3000, **options)


@pytest.mark.soak
@pytest.mark.parametrize("options", [{}, {"temperature": 1.3, "top_p": 0.9}])
def test_a_million_draws_follow_the_distribution(device: Any, options: dict[str, Any]) -> None:
    chi_square(device, 1_000_000, 10_000, **options)


def test_blocks_are_drawn_by_their_mass(monkeypatch: pytest.MonkeyPatch) -> None:
    """Several blocks of columns; the draws of one seed are independent."""
    monkeypatch.setattr(plain, "BLOCK", 16)
    rows, places = 4000, [5, 15, 16, 40]
    scores = torch.full((1, 41), -30.0)
    scores[0, places] = torch.tensor([0.1, 0.4, 0.2, 0.3]).log()
    numbers = torch.tensor([[plain.LOG2_E, 0, 1, -math.inf, 1, 1, 0, 0]])
    drawn = plain.sample(
        scores.expand(rows, -1), torch.ones(rows, 41, dtype=torch.bool), numbers.expand(rows, -1),
        torch.full((rows,), 7), torch.arange(rows), None, filtered=False, logs=False,
    ).tokens  # fmt: skip
    counts = torch.bincount(drawn, minlength=41)[places].double()
    assert int(counts.sum()) == rows
    wanted = torch.tensor([0.1, 0.4, 0.2, 0.3]).double() * rows
    assert float(((counts - wanted) ** 2 / wanted).sum()) < 3 + 6 * math.sqrt(6)


# --- rows are alone ---


def test_a_draw_depends_on_its_own_row_alone(device: Any) -> None:
    rng, rows = random.Random(3), 24
    options = random_options(rng, rows)
    seeds = [rng.getrandbits(63) - 2**62 for _ in range(rows)]
    states, logits = device.start_states([rng.randrange(3) for _ in range(rows)]), torch.randn(3, rows, 258)
    together = DeviceSampler(device, rows, seeds=seeds, **options)
    steps = [together.choose(logits[i], states) for i in range(3)]
    order = torch.randperm(rows)
    shuffled = DeviceSampler(
        device, rows, seeds=[seeds[i] for i in order],
        **{name: [values[i] for i in order] for name, values in options.items()},
    )  # fmt: skip
    for row in range(0, rows, 5):
        own = {name: values[row] for name, values in options.items()}
        alone = DeviceSampler(device, 1, seeds=[seeds[row]], **own)
        for i in range(3):
            assert int(alone.choose(logits[i, row : row + 1], states[row : row + 1])) == int(steps[i][row])
    for i in range(3):
        assert torch.equal(shuffled.choose(logits[i][order], states[order]), steps[i][order])


def test_rows_are_selected(device: Any) -> None:
    states, logits = device.start_states([0, 0, 1]), torch.randn(3, 258)
    first = DeviceSampler(device, 3, seeds=5, presence_penalty=2.0)
    first.step(logits, states)
    beams = first.select(torch.tensor([2, 0]))
    wanted = first.choose(logits, states)
    assert beams.choose(logits[[2, 0]], states[[2, 0]]).tolist() == wanted[[2, 0]].tolist()
    assert beams.draws.tolist() == [2, 2] and len(beams) == 2


def test_temperature_0_is_greedy(device: Any) -> None:
    states, logits = device.start_states([0, 1, 0, 0]), torch.randn(4, 258).round()
    sampler = DeviceSampler(device, 4, temperature=0)
    tokens, reached = sampler.step(logits, states)
    wanted = device.step(logits, states)
    assert torch.equal(tokens, wanted[0]) and torch.equal(reached, wanted[1])


def test_rows_without_weight_are_forced_and_counted(device: Any) -> None:
    states, logits = device.start_states([0, 1, 2]), torch.randn(3, 258)
    logits[0] = math.nan
    logits[1] = -math.inf
    logits[2, ord("x")] = -math.inf
    for options in ({}, {"top_k": 3, "top_p": 0.5}, {"temperature": 0}):
        sampler = DeviceSampler(device, 3, **options)
        for _ in range(2):
            tokens, _, logs, _ = sampler.step_with_logs(logits, states)
            assert tokens.tolist() == [ord("a"), ord("0"), ord("x")]
            assert logs.tolist() == [0, 0, 0]
        assert sampler.forced.tolist() == [2, 2, 2] and sampler.draws.tolist() == [2, 2, 2]


def test_what_was_drawn_is_seen(device: Any) -> None:
    """A presence penalty beyond all logits never draws a token twice while there is another."""
    sampler, states = (
        DeviceSampler(device, 2, presence_penalty=1000.0, seeds=[1, 2]),
        device.start_states([0, 1]),
    )
    drawn = [sampler.step(torch.zeros(2, 258), states)[0].tolist() for _ in range(10)]
    assert sorted(row[1] for row in drawn) == [*b"0123456789"]
    assert len({row[0] for row in drawn}) == 10


# --- other automata ---


def test_stacks_and_limits() -> None:
    nested = compile(gbnf('root ::= "(" root ")" | [0-9]'), VOCABULARY)
    stacked = tokenfst.PushDownDeviceAutomaton([nested], depth=8)
    sampler, states = DeviceSampler(stacked, 5, seeds=9), stacked.start_states([0] * 5)
    torch.manual_seed(0)
    for left in range(9, 0, -1):
        _, states = sampler.step(torch.randn(5, 258), states, left)
    assert bool((stacked.is_accepting(states) | stacked.is_ended(states)).all())


def test_matchers_choose_by_it() -> None:
    made = compile(regex("[0-9]{4}"), VOCABULARY)
    paged = tokenfst.DeviceMatchers([made.matcher(), made.matcher()], VOCABULARY)
    sampler = DeviceSampler(paged, 2, temperature=2.0)
    for _ in range(4):
        paged.follow(sampler.choose(torch.randn(2, 258), paged.states()))
    paged.states()
    assert all(matcher.is_accepting() for matcher in paged.matchers)
    with pytest.raises(ConstraintError, match="use choose"):
        sampler.step(torch.randn(2, 258), paged.states())


# --- no word to the host ---


def test_no_operation_waits(device: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(DeviceAutomaton, "_is_native", lambda self: False)
    sampler = DeviceSampler(device, 3, top_k=[0, 3, 5], top_p=0.9, min_p=0.1, presence_penalty=0.5)
    states, logits = device.start_states([0, 1, 0]), torch.randn(3, 258)
    with NoWaiting():
        for _ in range(2):
            _, states, _, _ = sampler.step_with_logs(logits, states, 7)


def test_one_graph(device: Any) -> None:
    torch._dynamo.reset()
    states, logits = device.start_states([0, 1, 0]), torch.randn(3, 258)
    one, other = (DeviceSampler(device, 3, top_p=0.9, seeds=4) for _ in range(2))
    step = torch.compile(lambda x, s: one.step(x, s, 9), fullgraph=True, backend="eager")
    for _ in range(3):
        for found, wanted in zip(step(logits, states), other.step(logits, states, 9), strict=True):
            assert torch.equal(found, wanted)


# --- what is refused ---


def test_bad_numbers(device: Any) -> None:
    for options, message in (
        ({"temperature": -0.5}, "temperature must be at least 0, not -0.5"),
        ({"temperature": [1.0, math.inf]}, r"temperature .* not inf \(row 1\)"),
        ({"top_k": -1}, "top_k must be at least 0"),
        ({"top_p": 0.0}, "top_p must be more than 0 and at most 1|top_p must be more than 0"),
        ({"top_p": [0.5, 1.5]}, r"top_p must be more than 0 and at most 1, not 1.5 \(row 1\)"),
        ({"min_p": 1.01}, "min_p must be at least 0 and at most 1"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must be more than 0"),
        ({"presence_penalty": math.inf}, "presence_penalty"),
        ({"top_k": [1, 2, 3]}, "top_k must be a number or 2 of them, not 3"),
        ({"seeds": [1]}, "seeds must be a number or 2 of them, not 1"),
    ):
        with pytest.raises(ArgumentValueError, match=message):
            DeviceSampler(device, 2, **options)


def test_bad_tensors(device: Any) -> None:
    sampler, states = DeviceSampler(device, 2), device.start_states([0, 1])
    with pytest.raises(StateError, match=r"draws for 2 rows, not for 1: see select\(\)"):
        sampler.step(torch.zeros(1, 258), states[:1])
    with pytest.raises(MaskBufferError, match="must have shape"):
        sampler.step(torch.zeros(1, 258), states)
    for bad in (
        torch.tensor([1]),
        torch.tensor([[1.0]] * 2),
        torch.zeros(2, 1, dtype=torch.int64, device="meta"),
        None,
    ):
        with pytest.raises(TokenIdError, match="tokens must be int64"):
            sampler.see(bad)
    for rows, message in (
        (torch.tensor([2]), "from 0 to 1, not 2"),
        (torch.tensor([0.5]), "must be int64"),
        (3, "int64"),
    ):
        with pytest.raises(StateError, match=message):
            sampler.select(rows)
