"""Steps in buckets of batch sizes: padding changes nothing, whatever a bucket held before. The graphs need CUDA."""

from __future__ import annotations

from typing import Any

import pytest

from tokenfst import Vocabulary, compile, gbnf, regex
from tokenfst.errors import MaskBufferError, StateError, TokenLimitError

torch = pytest.importorskip("torch")
graphs = pytest.importorskip("tokenfst.decoding.device.graphs")
from tokenfst import DeviceAutomaton, GraphedStep, PushDownDeviceAutomaton

VOCABULARY = Vocabulary([*(bytes([b]) for b in range(256)), b"12", b""], eos_token_id=257)
AUTOMATA = [compile(regex(pattern), VOCABULARY) for pattern in ("[0-9]{3}-[0-9]+", "(yes|no)+")]


def test_buckets() -> None:
    sizes = [graphs.batch_bucket(rows) for rows in (1, 2, 3, 5, 33, 64, 65, 128, 129, 4096)]
    assert sizes == [1, 2, 4, 8, 64, 64, 128, 128, 192, 4096]
    assert graphs.batch_bucket(100, largest=100) == 100
    assert graphs.batch_bucket(40, largest=50) == 50
    for rows in (0, 4097):
        with pytest.raises(StateError, match="from 1 to 4,096 rows"):
            graphs.batch_bucket(rows)


def grammar() -> Any:
    return compile(gbnf('root ::= "(" root ")" | [0-9]'), VOCABULARY)


@pytest.mark.parametrize("stacked", [False, True])
def test_padding_changes_nothing(stacked: bool) -> None:
    device = PushDownDeviceAutomaton([grammar(), AUTOMATA[1]]) if stacked else DeviceAutomaton(AUTOMATA)
    step = GraphedStep(device)
    torch.manual_seed(0)
    for rows in (3, 4, 1, 3, 2, 9, 3):
        states = device.start_states([row % 2 for row in range(rows)])
        for left in range(8, 0, -1):
            logits = torch.randn(rows, 260)
            budget = [None, left, torch.full((rows,), left, dtype=torch.int32)][rows % 3]
            tokens, reached = step(logits, states, budget)
            wanted = device.step(logits, states, budget)
            assert torch.equal(tokens, wanted[0]) and torch.equal(reached, wanted[1])
            kept = reached.clone()
            step(torch.randn(rows, 260), states, budget)
            assert torch.equal(kept, reached)  # not overwritten by the next call
            states = reached
    assert len(step) <= 8
    empty = step(torch.zeros(0, 260), states[:0])
    assert len(empty[0]) == len(empty[1]) == 0


def test_tables_that_moved_and_tensors_that_do_not_fit() -> None:
    device = DeviceAutomaton(AUTOMATA[0], token_limits=False)
    step = GraphedStep(device, largest=2)
    states = device.start_states(2)
    step(torch.zeros(2, 258), states)
    assert len(step) == 1
    index = device.add(AUTOMATA[1])
    tokens, _ = step(torch.zeros(2, 258), device.start_states([index, 0]))
    assert len(step) == 1 and bytes(tokens.tolist()) == b"n0"
    with pytest.raises(StateError, match="1 to 2 rows"):
        step(torch.zeros(3, 258), device.start_states([0, 0, 0]))
    with pytest.raises(MaskBufferError, match="must have shape"):
        step(torch.zeros(1, 258), states)
    with pytest.raises(TokenLimitError, match="token_limits=True"):
        step(torch.zeros(2, 258), states, 3)
    assert torch.equal(graphs.pad_states(states, 4), torch.cat([states, torch.zeros(2, dtype=torch.int32)]))


def test_a_capture_is_warmed_up_on_a_side_stream(monkeypatch: pytest.MonkeyPatch) -> None:
    """In torch's order; a graph itself needs CUDA."""
    happened: list[str] = []

    class Stream:
        def __init__(self, name: str = "side") -> None:
            self.name = name

        def wait_stream(self, other: Stream) -> None:
            happened.append(f"{self.name} waits for {other.name}")

    class Within:
        def __init__(self, what: Any) -> None:
            self.what = what.name

        def __enter__(self) -> None:
            happened.append(f"in {self.what}")

        def __exit__(self, *error: object) -> None:
            happened.append(f"out of {self.what}")

    monkeypatch.setattr(torch.cuda, "current_stream", lambda device: Stream("here"))
    monkeypatch.setattr(torch.cuda, "Stream", lambda device: Stream())
    monkeypatch.setattr(torch.cuda, "CUDAGraph", lambda: Stream("graph"))
    monkeypatch.setattr(torch.cuda, "stream", Within)
    monkeypatch.setattr(torch.cuda, "graph", Within)
    graphs.captured(lambda: happened.append("step"), torch.device("cpu"))
    assert happened == [
        *("side waits for here", "in side", *["step"] * 3, "out of side", "here waits for side"),
        *("in graph", "step", "out of graph"),
    ]
