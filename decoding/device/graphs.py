"""CUDA graphs for batches of any size, captured once for each of a few bucket sizes.

A CUDA graph replays the same launches on the same addresses, so it fits only one batch size. ``batch_bucket`` rounds a
batch size up to a bucket size. ``pad_states`` adds rows in state DEAD: they may take the end token and stay dead, have
no effect on other rows, and cost as much as any row. ``GraphedStep`` does both around ``automaton.step``: the first
step of a bucket warms up and captures; later steps copy their inputs in, replay, and copy the results out.

Invariant: the result is that of ``automaton.step`` for the given rows, whatever the bucket. A graph is never replayed
on tables that ``add`` has moved (``generation``). Without CUDA the same padding is done and the step is called
directly.

Source: torch.cuda.graph's documentation, "Whole-network capture"; a graph's inputs and outputs are static tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tokenfst.common.arguments import checked
from tokenfst.common.plurals import counted
from tokenfst.common.renamed import renamed
from tokenfst.decoding.device.automata.automaton import DeviceAutomaton
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.errors import ConstraintError, StateError

WARM_UP = 3
"""Steps on a side stream before capture, as torch advises."""


def batch_bucket(rows: int, largest: int = 4096) -> int:
    """The bucket size for a batch: the next power of 2 up to 64, then the next multiple of 64, but at most ``largest``.

    Raises ``StateError`` for more than ``largest`` rows, or none.
    """
    if not 1 <= rows <= largest:
        raise StateError(
            f"a batch has from 1 to {counted(largest, 'row')}, not {rows:,}: split it, or set largest="
        )
    bucket = 1 << (rows - 1).bit_length() if rows <= 64 else -(-rows // 64) * 64
    return min(bucket, largest)


def pad_states(states: Tensor, rows: int) -> Tensor:
    """The states, padded with DEAD rows to ``rows`` rows."""
    padded = states.new_zeros((rows, *states.shape[1:]))
    padded[: len(states)] = states
    return padded


def captured(call: Callable[[], object], device: torch.device) -> torch.cuda.CUDAGraph:
    """A CUDA graph of a call, warmed up on a side stream."""
    here, side = torch.cuda.current_stream(device), torch.cuda.Stream(device)
    side.wait_stream(here)
    with torch.cuda.stream(side):
        for _ in range(WARM_UP):
            call()
    here.wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        call()
    return graph


class _Bucket(NamedTuple):
    """Static inputs and outputs of one size, and the graph between them."""

    logits: Tensor
    states: Tensor
    max_new_tokens: Tensor | None
    tokens: Tensor
    reached: Tensor
    graph: torch.cuda.CUDAGraph | None


class GraphedStep:
    """``automaton.step`` at temperature 0, as one CUDA graph for each bucket size and dtype of logits.

    ``largest``: maximum number of rows in a batch. Memory: the logits of each bucket that was used. The caller owns the
    tensors that a call returns. Not thread-safe. Raises ``ConstraintError`` for an automaton whose steps may wait for
    the host.
    """

    @checked
    def __init__(self, automaton: DeviceAutomaton, *, largest: int = 4096) -> None:
        if not automaton.can_be_captured:
            raise ConstraintError(
                f"a step of a {type(automaton).__name__} may wait for the host, which no CUDA graph can capture: call "
                "its step() directly"
            )
        self.automaton, self.largest = automaton, largest
        self._buckets: dict[tuple[int, int, torch.dtype, bool], _Bucket] = {}
        self._generation = automaton.generation

    def __len__(self) -> int:
        """How many buckets there are so far."""
        return len(self._buckets)

    @renamed(budget="max_new_tokens")
    def __call__(
        self, logits: Tensor, states: Tensor, max_new_tokens: Tensor | int | None = None
    ) -> tuple[Tensor, Tensor]:
        """The greedy step: ``(tokens, states)``; see ``DeviceAutomaton.step``."""
        if len(states) == 0:
            return self.automaton.step(logits, states, max_new_tokens)
        self.automaton.check(logits, states, max_new_tokens)
        if self._generation != self.automaton.generation:
            self._buckets.clear()
            self._generation = self.automaton.generation
        rows, width = logits.shape
        size = batch_bucket(rows, self.largest)
        key = size, width, logits.dtype, max_new_tokens is not None
        if key not in self._buckets:
            self._buckets[key] = self._made(logits, states, size, max_new_tokens is not None)
        bucket = self._buckets[key]
        bucket.logits[:rows] = logits
        bucket.states.zero_()
        bucket.states[:rows] = states
        if bucket.max_new_tokens is not None and max_new_tokens is not None:
            bucket.max_new_tokens[:rows] = max_new_tokens
        if bucket.graph is None:
            self._step(bucket)
        else:
            bucket.graph.replay()
        return bucket.tokens[:rows].clone(), bucket.reached[:rows].clone()

    def _made(self, logits: Tensor, states: Tensor, size: int, limited: bool) -> _Bucket:
        device = states.device
        bucket = _Bucket(
            logits.new_zeros((size, logits.shape[1])),
            pad_states(states[:0], size),
            torch.zeros(size, dtype=torch.int32, device=device) if limited else None,
            torch.zeros(size, dtype=torch.int64, device=device),
            pad_states(states[:0], size),
            None,
        )
        graph = captured(lambda: self._step(bucket), device) if device.type == "cuda" else None
        return bucket._replace(graph=graph)

    def _step(self, bucket: _Bucket) -> None:
        tokens, reached = self.automaton.step(bucket.logits, bucket.states, bucket.max_new_tokens)
        bucket.tokens.copy_(tokens)
        bucket.reached.copy_(reached)
