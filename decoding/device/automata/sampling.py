"""Token sampling on a device: mask, penalties, temperature, filters, choice and advance as one step.

A ``DeviceSampler`` holds the sampling parameters of each row of a batch, and the data that changes with each draw: the
number of draws, the tokens seen, and how often no allowed logit had any weight. All of it is in tensors, so a step does
not synchronize with the host, and CUDA graphs can capture it: a replay continues where the last one stopped.

Invariants. The token drawn for a row depends on its logits, state, parameters, seed and draw number; not on other rows,
nor on the order in which a device adds up sums (``kernels.sampling.plain`` specifies it). The distribution is the
softmax over the tokens that are allowed and pass the filters, renormalized. The token is allowed whatever the logits
are.

Cost: two Triton launches, also with stacks, which read each row once if there are no filters; plain torch elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from tokenfst.common.arguments import checked, shown, whole
from tokenfst.common.plurals import counted
from tokenfst.decoding.device.automata import operators
from tokenfst.decoding.device.automata.automaton import DeviceAutomaton
from tokenfst.decoding.device.automata.masks import DeviceMasks, Left, first_row
from tokenfst.decoding.device.automata.verification import Tree, Verified, accept, left_at, seen_at
from tokenfst.decoding.device.kernels.sampling import plain
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.errors import ArgumentValueError, ConstraintError, StateError, TokenIdError

_MOST_ROWS = 1 << 20
_MOST_K = 1 << 24
"""Integers up to here are exact in float32."""
_FINITE = 3e38
"""About the greatest finite float32."""


class Drawn(NamedTuple):
    """For each row: the token, int64; the next state; and two log-probabilities, float32: of the token under the
    sampling distribution (0 if it was forced), and under the logits alone, at temperature 1 over the whole vocabulary.
    """

    tokens: Tensor
    states: Tensor
    log_probabilities: Tensor
    model_log_probabilities: Tensor


class DeviceSampler:
    """Sampling parameters for ``rows`` rows over the tokens that ``automaton`` allows.

    Each parameter is one number for all rows or a list with one for each. ``temperature`` 0 takes the first greatest
    logit. ``top_k`` keeps that many tokens (``None`` or 0: all); among equal logits, lower ids come first. Then
    ``top_p`` keeps the fewest tokens that have this share of the remaining mass. Then ``min_p`` keeps the tokens with
    at least this share of the highest probability. ``repetition_penalty`` divides the positive logits of seen tokens
    and multiplies their negative ones; ``presence_penalty`` is then subtracted from all logits of seen tokens. Tokens
    count as seen when they are drawn, or by ``see``. ``seeds``: one number for each row, or one number that is
    incremented from row to row.

    Equal seeds draw equal tokens, whatever the batch. ``draws`` counts the draws of each row, and ``forced`` those
    where every allowed logit was NaN or -inf and the first allowed token was taken: int64 (B,), updated in place by
    each step.
    """

    @checked
    def __init__(
        self,
        automaton: DeviceMasks,
        rows: int,
        *,
        temperature: float | Sequence[float] = 1.0,
        top_k: int | Sequence[int] | None = None,
        top_p: float | Sequence[float] | None = None,
        min_p: float | Sequence[float] | None = None,
        repetition_penalty: float | Sequence[float] | None = None,
        presence_penalty: float | Sequence[float] | None = None,
        seeds: int | Sequence[int] = 0,
    ) -> None:
        self.automaton = automaton
        self.handle = operators.handle_of(self)
        """The number by which operators of torch identify this object."""
        rows = whole("DeviceSampler", "rows", rows, 0, _MOST_ROWS)
        heat = _each("temperature", temperature, rows, 0.0, _FINITE)
        kept = [int(k) for k in _each("top_k", 0 if top_k is None else top_k, rows, 0, _MOST_K)]
        mass = _each("top_p", 1.0 if top_p is None else top_p, rows, 0.0, 1.0, above=True)
        part = _each("min_p", 0.0 if min_p is None else min_p, rows, 0.0, 1.0)
        has_penalties = repetition_penalty is not None or presence_penalty is not None
        again = 1.0 if repetition_penalty is None else repetition_penalty
        again = _each("repetition_penalty", again, rows, 0.0, _FINITE, above=True)
        present = 0.0 if presence_penalty is None else presence_penalty
        present = _each("presence_penalty", present, rows, -_FINITE, _FINITE)
        table = [
            [
                plain.LOG2_E / t if t else plain.LOG2_E,
                float(k) if t else 1.0,
                p if t else 1.0,
                math.log2(least) if least and t else -math.inf,
                penalty,
                1 / penalty,
                presence,
                0.0,
            ]
            for t, k, p, least, penalty, presence in zip(heat, kept, mass, part, again, present, strict=True)
        ]
        self._is_filtered = any(row[1] > 0 or row[2] < 1 or row[3] > -math.inf for row in table)
        device = automaton.device
        self._numbers = torch.tensor(table, dtype=torch.float32, device=device).reshape(rows, 8)
        self._numbers[:, plain.SCALE].clamp_(max=_FINITE)
        self.seeds = torch.tensor(_seeds(seeds, rows), dtype=torch.int64, device=device)
        self.draws = torch.zeros(rows, dtype=torch.int64, device=device)
        self.forced = torch.zeros(rows, dtype=torch.int64, device=device)
        words = -(-len(automaton.vocabulary) // 32)
        self.seen = torch.zeros((rows, words), dtype=torch.int32, device=device) if has_penalties else None
        """The tokens that penalties apply to, as bits, int32 (B, words); ``None`` without penalties."""
        self._workspaces: dict[tuple[int, bool], Any] = {}

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.seeds)

    def __repr__(self) -> str:
        return f"<DeviceSampler: {counted(len(self), 'row')} on {self.automaton.device}>"

    def choose(self, logits: Tensor, states: Tensor, max_new_tokens: Left = None) -> Tensor:
        """A token for each row, int64 (B,); ``logits`` are not changed. See ``DeviceAutomaton.choose``."""
        return self._drawn(logits, states, max_new_tokens, walks=False, logs=False)[0]

    def step(self, logits: Tensor, states: Tensor, max_new_tokens: Left = None) -> tuple[Tensor, Tensor]:
        """``choose`` and advance: ``(tokens, states)``. See ``DeviceAutomaton.step``."""
        tokens, reached, _, _ = self._drawn(logits, states, max_new_tokens, walks=True, logs=False)
        return tokens, reached

    def step_with_logs(self, logits: Tensor, states: Tensor, max_new_tokens: Left = None) -> Drawn:
        """``step``, and the log-probabilities of the tokens."""
        return Drawn(*self._drawn(logits, states, max_new_tokens, walks=True, logs=True))

    def verify(
        self,
        logits: Tensor,
        states: Tensor,
        parents: Tensor,
        tokens: Tensor,
        depth: int,
        max_new_tokens: Left = None,
    ) -> Verified:
        """Verify a tree of draft tokens for each row, and draw the token after the accepted ones.

        The result is what calls of ``step`` would draw one by one, whatever the drafts are.

        ``parents``, ``tokens``, ``depth``: as for ``DeviceAutomaton.advance_tree``, with N nodes for all rows.
        ``logits``: (B + N, width), the model's logits after each text, then after each node. ``states``,
        ``max_new_tokens``: those of the B texts. A row stops at its end token. Raises the errors of ``step`` and
        ``advance_tree``.
        """
        walker, rows = self.automaton, len(self)
        if not isinstance(walker, DeviceAutomaton):
            raise ConstraintError(
                f"a {type(walker).__name__} advances on the host: verify drafts there by speculative_generate"
            )
        limit = walker._check_limit(max_new_tokens, states)  # noqa: SLF001  # of this room
        reached = walker.advance_tree(states, parents, tokens, depth)
        if len(states) != rows:
            raise StateError(
                f"this sampler draws for {counted(rows, 'row')}, not for {len(states)}: see select()"
            )
        tree = Tree.of(parents, rows, depth)
        left = left_at(tree, limit)
        seen = None if self.seen is None else seen_at(tree, parents, tokens, self.seen, depth)
        positions = self._of(tree.rows, seen)
        positions.draws += tree.levels
        positions.forced.zero_()
        after = torch.cat([states, reached])
        drawn = positions.choose(logits, after, left)
        verified, visited = accept(walker, tree, tokens, drawn, after, left, depth)
        self.draws += verified.counts
        self.forced += (visited & (positions.forced > 0)).sum(1)
        self.see(verified.tokens)
        return verified

    def see(self, tokens: Tensor) -> None:
        """Mark tokens as seen, such as those of a prompt: int64 (B, n). Numbers that are not token ids, such as
        padding, are ignored. No effect without penalties.
        """
        if (
            not isinstance(tokens, torch.Tensor)
            or tokens.dtype is not torch.int64
            or tokens.dim() != 2
            or len(tokens) != len(self)
            or tokens.device != self.seeds.device
        ):
            raise TokenIdError(
                f"DeviceSampler.see: tokens must be int64 ({len(self)}, n) on {self.seeds.device}, not {shown(tokens)}"
            )
        if self.seen is not None:
            plain.see_(self.seen, tokens)

    def select(self, rows: Tensor) -> DeviceSampler:
        """A sampler with copies of these rows, in this order, int64 (n,): for beams, or to drop rows that have ended.
        Synchronizes with the device to check that the rows exist.
        """
        if (
            not isinstance(rows, torch.Tensor)
            or rows.dtype is not torch.int64
            or rows.dim() != 1
            or rows.device != self.seeds.device
        ):
            raise StateError(
                f"DeviceSampler.select: rows must be int64 (n,) on {self.seeds.device}, not {shown(rows)}"
            )
        if (wrong := first_row((rows < 0) | (rows >= len(self)))) is not None:
            raise StateError(
                f"DeviceSampler.select: rows must be from 0 to {len(self) - 1}, not {int(rows[wrong])} (place {wrong})"
            )
        return self._of(rows, None if self.seen is None else self.seen[rows].contiguous())

    def _of(self, rows: Tensor, seen: Tensor | None) -> DeviceSampler:
        """A sampler with copies of these rows, which have seen the tokens ``seen``."""
        other = object.__new__(DeviceSampler)
        other.automaton, other._is_filtered = self.automaton, self._is_filtered
        other.handle = self.handle if torch.compiler.is_compiling() else operators.handle_of(other)
        other._numbers, other.seeds, other.draws, other.forced = (
            part[rows].contiguous() for part in (self._numbers, self.seeds, self.draws, self.forced)
        )
        other.seen, other._workspaces = seen, {}
        return other

    def _drawn(
        self, logits: Tensor, states: Tensor, max_new_tokens: Left, *, walks: bool, logs: bool
    ) -> tuple[Tensor, Tensor, Any, Any]:
        """The tokens; with ``walks`` also the next states, with ``logs`` the log-probabilities."""
        device = self.automaton
        device.check(logits, states, max_new_tokens)
        if len(states) != len(self):
            raise StateError(
                f"this sampler draws for {counted(len(self), 'row')}, not for {len(states)}: see select()"
            )
        if walks and not isinstance(device, DeviceAutomaton):
            raise ConstraintError(
                f"a {type(device).__name__} advances by itself: use choose(), then follow() with the tokens"
            )
        limit = device._check_limit(max_new_tokens, states)  # noqa: SLF001  # of this room
        rows = plain.Rows(self._numbers, self.seeds, self.draws, self.forced, self.seen)
        if torch.compiler.is_compiling():
            left = operators.limits(limit)
            found: tuple[Tensor, Tensor, Any, Any] = operators.sample(
                logits, states, *rows, *left, self.handle, walks, logs
            )
            return found
        return self._sampled(logits, states, rows, limit, walks=walks, logs=logs)

    def _sampled(
        self, logits: Tensor, states: Tensor, rows: plain.Rows, left: Left, *, walks: bool, logs: bool
    ) -> tuple[Tensor, Tensor, Any, Any]:
        """``_drawn`` with the numbers of ``rows``, which are this sampler's, or copies that compiled code made."""
        device = self.automaton
        if device._triton(states, logits) is not None:  # noqa: SLF001  # of this room
            return self._by_triton(logits, states, rows, left, walks, logs)
        resting, left = device._resting(states, left)  # noqa: SLF001  # of this room
        drawn = plain.sample(
            logits,
            device._allowed(resting, left),  # noqa: SLF001  # of this room
            rows.numbers,
            rows.seeds,
            rows.draws,
            rows.seen,
            filtered=self._is_filtered,
            logs=logs,
        )
        rows.draws.add_(1)
        rows.forced.add_(drawn.forced)
        if rows.seen is not None:
            plain.see_(rows.seen, drawn.tokens[:, None])
        reached = (
            device.advance(states, drawn.tokens) if walks and isinstance(device, DeviceAutomaton) else states
        )
        return drawn.tokens, reached, drawn.log_probabilities, drawn.model_log_probabilities

    def _by_triton(
        self, logits: Tensor, states: Tensor, rows: plain.Rows, left: Left, walks: bool, logs: bool
    ) -> tuple[Tensor, Tensor, Any, Any]:
        from tokenfst.decoding.device.kernels.sampling import triton as triton_sampling

        device = self.automaton
        kind = len(states), logs
        if kind not in self._workspaces:
            self._workspaces[kind] = triton_sampling.Workspace.of(
                len(states), len(device.vocabulary), device.device, filtered=self._is_filtered, logs=logs
            )
        given, left = device._given(states, left)  # noqa: SLF001  # of this room
        tokens, reached, *logged = triton_sampling.sample(
            device.tables,
            logits,
            given,
            left,
            device._steps,  # noqa: SLF001  # of this room
            rows,
            self._workspaces[kind],
            filtered=self._is_filtered,
            walks=walks,
            logs=logs,
        )
        if walks:
            reached = device._reached(given, tokens, reached)  # noqa: SLF001  # of this room
        return tokens, reached, logged[0], logged[1]


def _each(name: str, given: Any, rows: int, low: float, high: float, above: bool = False) -> list[float]:
    """One number for each row, from ``low`` to ``high``; with ``above``, greater than ``low``."""
    values = [given] * rows if isinstance(given, int | float) else list(given)
    if len(values) != rows:
        raise ArgumentValueError(
            f"DeviceSampler: {name} must be a number or {rows} of them, not {len(values)}"
        )
    for row, value in enumerate([given] if isinstance(given, int | float) else values):
        if not (low < value if above else low <= value) or not value <= high:
            where = "" if isinstance(given, int | float) else f" (row {row})"
            least = "more than" if above else "at least"
            most = "" if high in (_FINITE, _MOST_K) and value <= high else f" and at most {high:g}"
            raise ArgumentValueError(
                f"DeviceSampler: {name} must be {least} {low:g}{most}, not {value}{where}"
            )
    return [float(value) for value in values]


def _seeds(given: int | Sequence[int], rows: int) -> list[int]:
    """One seed for each row, as 64 bits with a sign."""
    seeds = [given + row for row in range(rows)] if isinstance(given, int) else list(given)
    if len(seeds) != rows:
        raise ArgumentValueError(f"DeviceSampler: seeds must be a number or {rows} of them, not {len(seeds)}")
    return [(seed + 2**63) % 2**64 - 2**63 for seed in seeds]
