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


FILTERS: list[dict[str, Any]] = [
    {},
    {"temperature": [0.0, 0.7, 1.5], "top_k": 3},
    {"top_p": 0.9, "presence_penalty": 0.5, "repetition_penalty": 1.2},
]


@pytest.mark.parametrize("options", FILTERS)
@pytest.mark.parametrize("which", [0, 1])
def test_the_sampled_step_as_torch_wants_it(devices: list[Any], which: int, options: dict[str, Any]) -> None:
    device = devices[which]
    sampler = tokenfst.DeviceSampler(device, 3, **options)
    states, logits = device.start_states([0, 1, 0]), torch.randn(3, 9)
    each = torch.tensor([9, -1, 3], dtype=torch.int32)
    of_rows = (sampler._numbers, sampler.seeds, sampler.draws, sampler.forced, sampler.seen)
    for limit in ((None, None), (each, None)):
        for walks, logs in ((True, True), (True, False), (False, False)):
            arguments = (logits, states, *of_rows, *limit, sampler.handle, walks, logs)
            torch.library.opcheck(operators.sample, arguments, test_utils=("test_schema", "test_faketensor"))


@pytest.mark.parametrize("backend", ["eager", "aot_eager"])
@pytest.mark.parametrize("options", FILTERS)
@pytest.mark.parametrize("which", [0, 1])
def test_compiled_samplers_call_the_same_kernels(
    devices: list[Any], which: int, options: dict[str, Any], backend: str
) -> None:
    """``aot_eager`` gives operators copies of what they change: draws, forced rows and seen tokens come back."""
    device = devices[which]
    one, other = (tokenfst.DeviceSampler(device, 3, **options, seeds=[5, 6, 7]) for _ in range(2))

    def loop(sampler: Any, logits: Any, states: Any, each: Any) -> Any:
        found = sampler.step_with_logs(logits, states, each)
        tokens, reached = sampler.step(logits, found.states)
        return *found, tokens, reached, sampler.choose(logits, reached)

    torch._dynamo.reset()
    compiled = torch.compile(lambda *given: loop(one, *given), fullgraph=True, backend=backend)
    states, logits = device.start_states([0, 1, 0]), torch.randn(3, 9)
    logits[2] = -torch.inf
    each = torch.tensor([9, -1, 6], dtype=torch.int32)
    for _ in range(3):
        wanted = loop(other, logits, states, each)
        for found, right in zip(compiled(logits, states, each), wanted, strict=True):
            torch.testing.assert_close(found, right, rtol=0, atol=0, equal_nan=True)
    assert one.draws.tolist() == [9] * 3 and one.forced.tolist() == other.forced.tolist() == [0, 0, 9]
    assert one.seen is None or torch.equal(one.seen, other.seen)


def test_a_compiled_sampler_is_one_operator(devices: list[Any]) -> None:
    sampler = tokenfst.DeviceSampler(devices[0], 2, top_p=0.9)
    traced: list[str] = []

    def backend(graph: Any, inputs: Any) -> Any:
        traced.extend(str(node.target) for node in graph.graph.nodes if node.op == "call_function")
        return graph.forward

    torch._dynamo.reset()
    step = torch.compile(sampler.step, fullgraph=True, backend=backend)
    step(torch.randn(2, 9), devices[0].start_states([0, 1]))
    assert [name for name in traced if "getitem" not in name] == ["tokenfst.sample.default"]


def test_drafts_are_verified_in_compiled_code(devices: list[Any]) -> None:
    one, other = (tokenfst.DeviceSampler(devices[0], 2, temperature=0.8, seeds=4) for _ in range(2))
    states, logits = devices[0].start_states([0, 1]), torch.randn(5, 9)
    parents, drafts = torch.tensor([-1, 0, -2]), torch.tensor([3, 3, 3])
    torch._dynamo.reset()
    verify = torch.compile(one.verify, fullgraph=True, backend="aot_eager")
    for _ in range(3):
        wanted = other.verify(logits, states, parents, drafts, 2)
        for found, right in zip(verify(logits, states, parents, drafts, 2), wanted, strict=True):
            assert torch.equal(found, right)
    assert torch.equal(one.draws, other.draws)


def test_a_sampler_of_states_that_come_as_they_are_met_is_compiled() -> None:
    bytes_alone = Vocabulary([*(bytes([byte]) for byte in range(256)), b"ab", b""], 257)
    lazy = tokenfst.LazyDeviceAutomaton(compile(regex("(ab|c){4}"), bytes_alone), ahead=0)
    one, other = (tokenfst.DeviceSampler(lazy, 2, seeds=3) for _ in range(2))
    torch._dynamo.reset()
    step = torch.compile(one.step, fullgraph=True, backend="aot_eager")
    states, logits = lazy.start_states(2), torch.randn(2, 258)
    for left in range(8, 0, -1):
        wanted = other.step(logits, states.clone(), left)
        found = step(logits, states, torch.full((2,), left, dtype=torch.int32))
        assert torch.equal(found[0], wanted[0])
        states = found[1]
    assert bool(lazy.is_accepting(states).all())


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
