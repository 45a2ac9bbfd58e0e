"""The operators that ``torch.compile`` sees: torch's own checks of them, and compiled loops beside others."""

from __future__ import annotations

import gc
from typing import Any

import pytest

from tokenfst import Vocabulary, compile, gbnf, regex
from tokenfst.errors import MaskBufferError, StateError

torch = pytest.importorskip("torch")
tokenfst = pytest.importorskip("tokenfst")
operators = pytest.importorskip("tokenfst.decoding.device.automata.operators")

VOCABULARY = Vocabulary([b"a", b"b", b"ab", b"c", b"(", b")", b""], 6)


@pytest.fixture(scope="module")
def devices() -> list[Any]:
    patterns = ("(ab|c){2,9}", "c+b?")
    nested = compile(gbnf('root ::= "(" root ")" | "c"'), VOCABULARY)
    return [
        tokenfst.DeviceAutomaton([compile(regex(pattern), VOCABULARY) for pattern in patterns]),
        tokenfst.PushDownDeviceAutomaton([nested, compile(regex(patterns[1]), VOCABULARY)], depth=4),
    ]


@pytest.mark.parametrize("which", [0, 1])
def test_as_torch_wants_them(devices: list[Any], which: int) -> None:
    device = devices[which]
    states, logits, tokens = device.start_states([0, 1, 0]), torch.randn(3, 9), torch.tensor([3, 3, 4])
    each = torch.tensor([9, -1, 3], dtype=torch.int32)
    for limit in ((None, None), (None, 7), (each, None)):
        for operator, arguments in (
            (operators.mask_logits_, (logits.clone(), states, *limit, device.handle)),
            (operators.greedy, (logits, states, *limit, device.handle)),
            (operators.bitmask, (states, *limit, device.handle, 1)),
        ):
            torch.library.opcheck(operator, arguments, test_utils=("test_schema", "test_faketensor"))
    torch.library.opcheck(
        operators.advance, (states, tokens, device.handle), test_utils=("test_schema", "test_faketensor")
    )


@pytest.mark.parametrize("which", [0, 1])
def test_what_is_compiled_calls_the_same_kernels(devices: list[Any], which: int) -> None:
    device = devices[which]

    def loop(logits: Any, states: Any, each: Any) -> Any:
        masked = device.mask_logits_(logits.clone(), states, each)
        tokens, states = device.step(logits, states, each)
        return masked, tokens, states, device.bitmask(states, 5), device.advance(states, tokens)

    torch._dynamo.reset()
    traced: list[Any] = []

    def backend(graph: Any, inputs: Any) -> Any:
        traced.append(graph)
        return graph.forward

    compiled = torch.compile(loop, fullgraph=True, backend=backend)
    states, logits = device.start_states([0, 1, 0]), torch.randn(3, 9)
    for _ in range(3):
        each = torch.tensor([9, -1, 6], dtype=torch.int32)
        native = loop(logits, states, each)
        for found, wanted in zip(compiled(logits, states, each), native, strict=True):
            assert torch.equal(found, wanted)
        states = native[2]
    names = [str(node.target) for node in traced[0].graph.nodes if node.op == "call_function"]
    for name in ("mask_logits_", "greedy", "bitmask", "advance"):
        assert any(f"tokenfst.{name}" in found for found in names), names


def test_what_is_refused_is_refused_while_tracing(devices: list[Any]) -> None:
    torch._dynamo.reset()
    compiled = torch.compile(devices[0].mask_logits_, fullgraph=True, backend="eager")
    with pytest.raises(Exception, match="must have shape") as raised:
        compiled(torch.zeros(2, 9), devices[0].start_states([0]))
    assert isinstance(raised.value, MaskBufferError) or "MaskBufferError" in str(raised.value)


def test_automata_are_held_weakly() -> None:
    device = tokenfst.DeviceAutomaton(compile(regex("c+"), VOCABULARY))
    handle, states = device.handle, device.start_states(1)
    assert operators.advance(states, torch.tensor([3]), handle).tolist() != [0]
    del device
    gc.collect()
    with pytest.raises(StateError, match=f"handle {handle}"):
        operators.advance(states, torch.tensor([3]), handle)
