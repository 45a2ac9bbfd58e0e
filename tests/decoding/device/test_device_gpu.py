"""The kernels on a GPU against matchers, native kernels and plain torch: ``make test-gpu`` runs this file, and prints
what ran. Without a GPU only the tests' own proxy is tried, on the host.
"""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest

from reference.decoding.token_sampling import distribution
from tests.decoding.device import test_device_automaton as flat
from tests.decoding.device import test_device_lazy as lazy
from tests.decoding.device import test_device_stacks as stacks
from tokenfst import Vocabulary

torch = pytest.importorskip("torch")
tokenfst = pytest.importorskip("tokenfst")
elsewhere = pytest.importorskip("tests.support.worlds.devices.elsewhere")
worlds = pytest.importorskip("tests.support.worlds.devices.sampled_options")

pytestmark = pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")
on_a_gpu = pytest.mark.skipif(
    not torch.cuda.is_available(),
    reason="no GPU: torch.cuda.is_available() is False; make test-gpu needs one",
)
PATTERNS = (r'"([^"\\]|\\.)*"', "[0-9]{3}-[0-9]{4}", "(yes|no) [a-z]{2,9}")


def there(made: Any, where: str = "cuda") -> Any:
    return lambda automata, **options: elsewhere.Elsewhere(made, automata, where, **options)


FLAT, DEEP = there(tokenfst.DeviceAutomaton), there(tokenfst.PushDownDeviceAutomaton)
LAZY = there(tokenfst.LazyDeviceAutomaton)


def test_the_proxy_on_the_host() -> None:
    flat.check(there(tokenfst.DeviceAutomaton, "cpu"), 0, 1)
    stacks.test_rows_are_values(there(tokenfst.PushDownDeviceAutomaton, "cpu"))
    lazy.check(there(tokenfst.LazyDeviceAutomaton, "cpu"), 0, 1)


@on_a_gpu
def test_tritons_kernels_are_used() -> None:
    from tokenfst.decoding.device.kernels import triton

    device = tokenfst.DeviceAutomaton(flat.automaton("ab"), "cuda")
    assert triton.AVAILABLE and device._triton(device.start_states(1)) is triton


@on_a_gpu
@pytest.mark.parametrize("seed", range(6))
def test_as_matchers(seed: int) -> None:
    flat.check(FLAT, seed, 7)


@on_a_gpu
@pytest.mark.parametrize("seed", range(4))
def test_stacks_as_matchers(seed: int) -> None:
    made = stacks.automata()
    stacks.walk(random.Random(seed), DEEP(made, depth=9), made, stacks.VOCABULARY, 10, 8)
    stacks.check_random(seed, DEEP, 6, depth=4)


@on_a_gpu
@pytest.mark.parametrize("seed", range(4))
def test_lazy_automata_as_matchers(seed: int) -> None:
    """Pages, limits and evictions; masks composed on the GPU."""
    lazy.check(LAZY, seed, 6)
    lazy.check_grammars(LAZY, seed, 3)


@on_a_gpu
@pytest.mark.parametrize("seed", range(3))
def test_schemas_without_expansion(seed: int) -> None:
    lazy.test_schemas_without_expansion(LAZY, seed)


@on_a_gpu
@pytest.mark.parametrize(
    "test", ["test_anything_in_a_row_is_harmless", "test_rows_are_values", "test_a_stack_without_room"]
)
def test_stacks(test: str) -> None:
    getattr(stacks, test)(DEEP)


@on_a_gpu
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_as_native_kernels_on_a_real_vocabulary(tekken: Vocabulary, dtype: str) -> None:
    rng, size = np.random.default_rng(0), len(tekken)
    automata = [flat.automaton(pattern, tekken) for pattern in PATTERNS]
    ours, native = FLAT(automata), tokenfst.DeviceAutomaton(automata)
    states = torch.from_numpy(rng.integers(-3, native.num_states + 5, 999).astype(np.int32))
    tokens = torch.from_numpy(rng.integers(-2, size + 2, 999))
    assert torch.equal(ours.advance(states, tokens), native.advance(states, tokens))
    few = states[:64]
    for left in (None, 4, torch.from_numpy(rng.integers(-1, 9, 64).astype(np.int32))):
        for width in (size, size + 9):
            logits = torch.from_numpy(rng.standard_normal((64, width)).astype(np.float32))
            logits = logits.to(getattr(torch, dtype))
            for one, other in zip(ours.step(logits, few, left), native.step(logits, few, left), strict=True):
                assert torch.equal(one, other)
            masked = [device.mask_logits_(logits.clone(), few, left) for device in (ours, native)]
            assert torch.equal(*masked)
    assert torch.equal(ours.compose(few), native.bitmask(few))


@on_a_gpu
def test_graphs_of_greedy_steps(tekken: Vocabulary) -> None:
    device = tokenfst.DeviceAutomaton(flat.automaton(PATTERNS[0], tekken), "cuda")
    step = tokenfst.GraphedStep(device)
    for rows in (3, 2, 64, 70, 3):
        states = device.start_states([0] * rows)
        for left in range(12, 0, -1):
            logits = torch.randn(rows, len(tekken), device="cuda", dtype=torch.bfloat16)
            tokens, reached = step(logits, states, left)
            wanted = device.step(logits, states, left)
            assert torch.equal(tokens, wanted[0]) and torch.equal(reached, wanted[1])
            states = reached
        assert bool(device.is_accepting(states).all())


# --- samplers ---


@on_a_gpu
@pytest.mark.parametrize("seed", range(8))
def test_samplers_as_plain_torch(tekken: Vocabulary, seed: int) -> None:
    """A device rounds exponentials in a way of its own: draws may differ where a random number falls on a border."""
    rng, rows = random.Random(seed), 64
    automata = [flat.automaton(pattern, tekken) for pattern in (*PATTERNS, "[^x]+")]
    devices = [tokenfst.DeviceAutomaton(automata, where) for where in ("cuda", "cpu")]
    given, seeds = worlds.options(rng, rows), [rng.getrandbits(63) for _ in range(rows)]
    samplers = [tokenfst.DeviceSampler(device, rows, seeds=seeds, **given) for device in devices]
    states = devices[1].start_states([rng.choice([0, 3, 3, 3]) for _ in range(rows)])
    logits = worlds.scores(rng, rows, len(tekken))
    found = [
        [part.cpu() for part in sampler.step_with_logs(logits.to(where), states.to(where), 7)]
        for sampler, where in zip(samplers, ("cuda", "cpu"), strict=True)
    ]
    equal = found[0][0] == found[1][0]
    assert int(equal.sum()) >= rows - 2
    assert torch.equal(found[0][1][equal], found[1][1][equal])
    for ours, wanted in zip(found[0][2:], found[1][2:], strict=True):
        assert torch.allclose(ours[equal], wanted[equal], atol=1e-4, equal_nan=True)
    assert torch.equal(samplers[0].forced.cpu(), samplers[1].forced)


@on_a_gpu
def test_draws_are_the_same_in_any_batch_and_in_graphs(tekken: Vocabulary) -> None:
    from tokenfst.decoding.device.graphs import captured

    device = tokenfst.DeviceAutomaton(flat.automaton("[^x]+", tekken), "cuda")
    rng, rows = random.Random(0), 48
    given = worlds.options(rng, rows) | {"top_p": [0.9] * rows}
    given = {name: values for name, values in given.items() if "penalty" not in name}
    seeds, logits = list(range(rows)), torch.randn(rows, len(tekken), device="cuda")
    states = device.start_states([0] * rows)
    together = tokenfst.DeviceSampler(device, rows, seeds=seeds, **given)
    alone = [
        tokenfst.DeviceSampler(
            device, 1, seeds=[row], **{name: values[row] for name, values in given.items()}
        )
        for row in range(rows)
    ]
    steps = [together.choose(logits, states).tolist() for _ in range(3)]
    for step in steps:
        assert step == [int(alone[row].choose(logits[row : row + 1], states[:1])) for row in range(rows)]
    replayed = tokenfst.DeviceSampler(device, rows, seeds=seeds, **given)
    out = torch.zeros(rows, dtype=torch.int64, device="cuda")
    graph = captured(lambda: out.copy_(replayed.choose(logits, states)), torch.device("cuda"))
    replayed.draws.zero_()
    for step in steps:
        graph.replay()
        assert out.tolist() == step


@on_a_gpu
@pytest.mark.parametrize(
    "options", [{}, {"temperature": 0.7, "top_k": 9, "top_p": 0.95}, {"top_p": 0.9}, {"min_p": 0.1}]
)
def test_a_million_draws(options: dict[str, Any]) -> None:
    device = tokenfst.DeviceAutomaton(flat.automaton("[a-m]+", flat.EVERY_BYTE), "cuda")
    draws, size = 1_000_000, len(flat.EVERY_BYTE)
    logits = torch.randn(1, size, generator=torch.Generator().manual_seed(4)).mul(1.5)
    sampler = tokenfst.DeviceSampler(device, draws, seeds=0, **options)
    states = torch.full((draws,), device.start(0), dtype=torch.int32, device="cuda")
    tokens = sampler.choose(logits.cuda().repeat(draws, 1), states)
    counts = torch.bincount(tokens, minlength=size).tolist()
    allowed = [token for token in range(256) if token in b"abcdefghijklm"] + [256]
    wanted = distribution(logits[0].tolist(), allowed, **options)
    assert sum(counts[token] for token in wanted) == draws
    statistic = sum((counts[t] - draws * p) ** 2 / (draws * p) for t, p in wanted.items())
    assert statistic < len(wanted) - 1 + 6 * math.sqrt(2 * len(wanted))
