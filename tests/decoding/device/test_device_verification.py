"""Drafts verified on a device: the tokens, states and counts are those of plain decoding, whatever the drafts are."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tests.decoding.device.test_device_sampling import VOCABULARY, random_options
from tests.decoding.device.test_device_tracing import NoWaiting
from tokenfst import compile, gbnf, regex
from tokenfst.errors import ArgumentValueError, ConstraintError, MaskBufferError, StateError

torch = pytest.importorskip("torch")
worlds = pytest.importorskip("tests.support.worlds.devices.drafted_worlds")
tokenfst = pytest.importorskip("tokenfst")

PATTERNS = ("[a-c]+", "(ab|ba){1,3}", "[0-9]{2}-[0-9]*")


def devices() -> list[Any]:
    automata = [compile(regex(pattern), VOCABULARY) for pattern in PATTERNS]
    nested = compile(gbnf('root ::= "(" root ")" | [a-b]'), VOCABULARY)
    return [
        tokenfst.DeviceAutomaton(automata),
        tokenfst.PushDownDeviceAutomaton([nested, *automata[:2]], depth=3),
    ]


@pytest.fixture(scope="module")
def made() -> list[Any]:
    return devices()


@pytest.mark.parametrize(
    "seed", [*range(12), *(pytest.param(n, marks=pytest.mark.soak) for n in range(12, 200))]
)
def test_as_plain_decoding(made: list[Any], seed: int) -> None:
    rng = random.Random(seed)
    device = made[seed % len(made)]
    rows = rng.randint(1, 4)
    starts = device.start_states([rng.randrange(3) for _ in range(rows)])
    options = random_options(rng, rows) if seed % 3 else {"temperature": 0}
    accepted = worlds.check(rng, device, starts, {**options, "seeds": seed}, rounds=4)
    assert accepted or seed not in (0, 1, 2, 3)  # else nothing would have been tested


def test_nothing_waits_for_the_device(made: list[Any]) -> None:
    sampler = tokenfst.DeviceSampler(made[0], 2, presence_penalty=0.5)
    states = made[0].start_states([0, 1])
    parents, tokens = torch.tensor([-1, 0, -2]), torch.tensor([97, 98, 97])
    logits = torch.zeros(5, len(VOCABULARY))
    device_check = made[0]._is_native
    made[0]._is_native = lambda: False  # host tensors are checked by value, which waits for nothing there
    try:
        with NoWaiting():
            sampler.verify(logits, states, parents, tokens, 2)
    finally:
        made[0]._is_native = device_check


def test_a_chain_of_the_right_tokens_is_accepted_whole(made: list[Any]) -> None:
    """Greedy: what is most probable at each place, then one token more."""
    sampler = tokenfst.DeviceSampler(made[0], 1, temperature=0)
    logits = torch.zeros(4, len(VOCABULARY))
    for place, byte in enumerate(b"abca"):
        logits[place, byte] = 9
    found = sampler.verify(
        logits, made[0].start_states([0]), torch.tensor([-1, 0, 1]), torch.tensor([*b"abc"]), 3
    )
    assert found.tokens.tolist() == [[*b"abca"]]
    assert found.nodes.tolist() == [[0, 1, 2]]
    assert found.counts.tolist() == [4]
    assert made[0].is_accepting(found.states).tolist() == [True]


def test_what_cannot_be_verified(made: list[Any]) -> None:
    sampler = tokenfst.DeviceSampler(made[0], 1)
    states, logits = made[0].start_states([0]), torch.zeros(2, len(VOCABULARY))
    one = torch.tensor([-1]), torch.tensor([97])
    with pytest.raises(MaskBufferError, match=r"shape \(2, width\)"):
        sampler.verify(torch.zeros(1, len(VOCABULARY)), states, *one, 1)
    with pytest.raises(StateError, match="parents must name rows"):
        sampler.verify(logits, states, torch.tensor([-2]), torch.tensor([97]), 1)
    with pytest.raises(StateError, match="parents must be int64"):
        sampler.verify(logits, states, torch.tensor([-1.0]), torch.tensor([97]), 1)
    with pytest.raises(StateError, match="draws for 1 row, not for 2"):
        sampler.verify(torch.zeros(3, len(VOCABULARY)), made[0].start_states([0, 0]), *one, 1)
    with pytest.raises(ArgumentValueError, match="depth"):
        sampler.verify(logits, states, *one, 0)
    paged = tokenfst.DeviceMatchers([compile(regex("a"), VOCABULARY).matcher()], VOCABULARY)
    with pytest.raises(ConstraintError, match="speculative_generate"):
        tokenfst.DeviceSampler(paged, 1).verify(logits, paged.states(), *one, 1)
