"""The plain torch loop never asks for a value: it traces into one graph, and no operation waits for the device."""

from __future__ import annotations

from typing import Any

import pytest

from tokenfst import Vocabulary, compile, regex

torch = pytest.importorskip("torch")
DeviceAutomaton = pytest.importorskip("tokenfst.decoding.device.automata.automaton").DeviceAutomaton

VOCABULARY = Vocabulary([b"a", b"b", b"ab", b"c", b"cab", b""], 5)
OPTIONS: list[dict[str, Any]] = [{}, {"temperature": 0.8}, {"temperature": 1.0, "top_k": 2, "top_p": 0.7}]


class NoWaiting(torch.utils._python_dispatch.TorchDispatchMode):  # type: ignore[misc]
    """Refuses every operation that copies a value to the host or has a shape that depends on one."""

    WAITING = (
        "_local_scalar_dense",
        "nonzero",
        "is_nonzero",
        "masked_select",
        "unique",
        "equal",
        "_to_copy.cpu",
        "item",
    )

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        name = func.overloadpacket.__name__
        assert name not in self.WAITING, f"{name} waits for the device"
        if name == "index":  # a boolean index is a hidden nonzero
            assert all(index is None or index.dtype != torch.bool for index in args[1])
        return func(*args, **(kwargs or {}))


@pytest.fixture
def device() -> Any:
    return DeviceAutomaton([compile(regex(pattern), VOCABULARY) for pattern in ("(ab|c){2,9}", "c+b?")])


@pytest.fixture
def plain(device: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setattr(DeviceAutomaton, "_is_native", lambda self: False)
    return device


def loop(device: Any, logits: Any, states: Any, budget: Any, options: dict[str, Any]) -> Any:
    """Several steps: everything that a decoding loop does."""
    for _ in range(3):
        device.mask_logits_(logits.clone(), states, budget)
        tokens, states = device.step(logits, states, budget, **options)
        budget = budget - 1
    states = device.advance(states[torch.tensor([1, 0, 0])], tokens)
    return (
        tokens,
        states,
        device.bitmask(states, budget),
        device.is_accepting(states),
        device.distance(states),
    )


def test_the_guard_sees_what_waits() -> None:
    values = torch.tensor([1.0, 2.0])
    for waits in (
        lambda: bool(values.any()),
        lambda: values[values > 1],
        values.nonzero,
        lambda: int(values[0]),
    ):
        with pytest.raises(AssertionError), NoWaiting():
            waits()


@pytest.mark.parametrize("options", OPTIONS)
def test_no_operation_waits(plain: Any, options: dict[str, Any]) -> None:
    logits, states = torch.randn(3, 8), plain.start_states([0, 1, 0])
    budget = torch.tensor([9, -1, 4], dtype=torch.int32)
    with NoWaiting():
        loop(plain, logits, states, budget, options)


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
def test_one_graph(device: Any, backend: str) -> None:
    """What is compiled gives what the native kernels give."""
    torch._dynamo.reset()
    logits, states = torch.randn(3, 8), device.start_states([0, 1, 0])
    budget = torch.tensor([9, -1, 4], dtype=torch.int32)
    compiled = torch.compile(loop, fullgraph=True, backend=backend)
    for found, wanted in zip(
        compiled(device, logits, states, budget, {}), loop(device, logits, states, budget, {}), strict=True
    ):
        assert torch.equal(found, wanted)
    sampled = torch.compile(
        lambda logits, states: device.step(logits, states, temperature=1.0, top_k=2),
        fullgraph=True,
        backend=backend,
    )
    tokens, reached = sampled(logits, states)
    assert torch.equal(device.advance(states, tokens), reached) and not device.is_dead(reached).any()
