# mypy: disable-error-code="untyped-decorator"
"""The masking loop as operators of torch, so that ``torch.compile(fullgraph=True)`` keeps its kernels.

Traced code cannot call a native or a Triton kernel. Here each call of the loop is an operator of ``torch.library``,
with the shapes of its results (*fake* kernels) for the tracer. Compiled code calls the operator, which calls the
same method, untraced. So compiled and other calls give the same results, with the same kernels.

An operator takes tensors and numbers only: an automaton is identified by its ``handle``, a number that is never
reused. Automata are referenced weakly; code that was compiled for one keeps it alive.
"""

from __future__ import annotations

from itertools import count
from typing import Any
from weakref import WeakValueDictionary

from tokenfst.decoding.device.kernels.sampling.plain import Rows
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.errors import StateError

_OWNERS: WeakValueDictionary[int, Any] = WeakValueDictionary()
_HANDLES = count(1)
_LIMIT = "Tensor? each, int? limit, int handle"
"""The remaining tokens, as a number for each row or one for all; and the handle."""


def handle_of(owner: Any) -> int:
    """A new number by which operators find ``owner``, an automaton or a sampler. It is never reused."""
    handle = next(_HANDLES)
    _OWNERS[handle] = owner
    return handle


def limits(max_new_tokens: Tensor | int | None) -> tuple[Tensor | None, int | None]:
    """``max_new_tokens`` as operators take it: as a tensor and None, or as None and a number (None for no limit)."""
    if isinstance(max_new_tokens, torch.Tensor):
        return max_new_tokens, None
    return None, max_new_tokens


def _owner(handle: int) -> Any:
    owner = _OWNERS.get(handle)
    if owner is None:
        raise StateError(
            f"no device automaton or sampler has the handle {handle}: it is gone, or of another process"
        )
    return owner


@torch.library.custom_op(
    "tokenfst::mask_logits_",
    mutates_args={"logits"},
    schema=f"(Tensor(a!) logits, Tensor states, {_LIMIT}) -> ()",
)
def mask_logits_(logits: Tensor, states: Tensor, each: Tensor | None, limit: int | None, handle: int) -> None:
    """``DeviceMasks.mask_logits_``."""
    _owner(handle).mask_logits_(logits, states, limit if each is None else each)


@torch.library.custom_op(
    "tokenfst::greedy",
    mutates_args=(),
    schema=f"(Tensor logits, Tensor states, {_LIMIT}) -> (Tensor, Tensor)",
)
def greedy(
    logits: Tensor, states: Tensor, each: Tensor | None, limit: int | None, handle: int
) -> tuple[Tensor, Tensor]:
    """``DeviceAutomaton.step`` at temperature 0."""
    left = limit if each is None else each
    found: tuple[Tensor, Tensor] = _owner(handle)._greedy(logits, states, left)  # noqa: SLF001  # of this room
    return found


@greedy.register_fake
def _(
    logits: Tensor, states: Tensor, each: Tensor | None, limit: int | None, handle: int
) -> tuple[Tensor, Tensor]:
    return states.new_empty(states.shape[0], dtype=torch.int64), torch.empty_like(states)


@torch.library.custom_op(
    "tokenfst::sample",
    mutates_args={"draws", "forced", "seen"},
    schema="(Tensor logits, Tensor states, Tensor numbers, Tensor seeds, Tensor(a!) draws, Tensor(b!) forced, "
    f"Tensor(c!)? seen, {_LIMIT}, bool walks, bool logs) -> (Tensor, Tensor, Tensor, Tensor)",
)
def sample(
    logits: Tensor,
    states: Tensor,
    numbers: Tensor,
    seeds: Tensor,
    draws: Tensor,
    forced: Tensor,
    seen: Tensor | None,
    each: Tensor | None,
    limit: int | None,
    handle: int,
    walks: bool,
    logs: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """``DeviceSampler.step_with_logs``; without ``walks`` the states are empty, without ``logs`` the logarithms.

    The tensors that a draw changes are arguments, because a compiler may pass copies and write them back afterwards.
    """
    rows = Rows(numbers, seeds, draws, forced, seen)
    left = limit if each is None else each
    tokens, reached, *logged = _owner(handle)._sampled(  # noqa: SLF001  # of this room
        logits, states, rows, left, walks=walks, logs=logs
    )
    ours, models = logged if logs else (numbers.new_empty(0) for _ in range(2))
    return tokens, reached if walks else states.new_empty(0), ours, models


@sample.register_fake
def _(logits: Tensor, states: Tensor, numbers: Tensor, *others: Any) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    *_, walks, logs = others
    count = states.shape[0]
    reached = torch.empty_like(states) if walks else states.new_empty(0)
    ours, models = (numbers.new_empty(count if logs else 0) for _ in range(2))
    return states.new_empty(count, dtype=torch.int64), reached, ours, models


@torch.library.custom_op(
    "tokenfst::advance", mutates_args=(), schema="(Tensor states, Tensor tokens, int handle) -> Tensor"
)
def advance(states: Tensor, tokens: Tensor, handle: int) -> Tensor:
    """``DeviceAutomaton.advance``."""
    reached: Tensor = _owner(handle).advance(states, tokens)
    return reached


@advance.register_fake
def _(states: Tensor, tokens: Tensor, handle: int) -> Tensor:
    return torch.empty_like(states)


@torch.library.custom_op(
    "tokenfst::bitmask", mutates_args=(), schema=f"(Tensor states, {_LIMIT}, int words) -> Tensor"
)
def bitmask(states: Tensor, each: Tensor | None, limit: int | None, handle: int, words: int) -> Tensor:
    """``DeviceMasks.bitmask``; ``words``: the number of words of a row, for the tracer."""
    found: Tensor = _owner(handle).bitmask(states, limit if each is None else each)
    return found


@bitmask.register_fake
def _(states: Tensor, each: Tensor | None, limit: int | None, handle: int, words: int) -> Tensor:
    return states.new_empty((states.shape[0], words), dtype=torch.int32)
