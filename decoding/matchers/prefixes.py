"""Matchers for the rows of a batch, identified by the token ids of the rows.

A decoding loop passes complete rows of token ids at each step. It does not say where a row came from (beam search
reorders and duplicates rows), how many tokens are new (assisted decoding goes back and forth), or where a new prompt
begins. Given the end of the prompt, the ids of a row determine the state of its matcher (``RowStates``); data kept from
the last call only saves work. So only the prompt of a loop must be known. ``PrefixStates`` determines it:

    a call of transformers' generate()   the prompt is what generate() was given (``generate_calls``)
    reset(prompt_length=n)               n columns, and nothing is inferred
    any other loop                       by the ids, within one thread, see below

A custom loop starts with its prompt and grows by one token for each call. So a call is the next step of a loop if each
row is a row of the last call plus one token; otherwise it is a new prompt. Several such loops may alternate: the newest
16 of a thread are kept. Ambiguous calls are rejected (``MatcherError``): ids that a loop has seen before, or those plus
one token, which may be a step back or another prompt; and ids that may be the next step of either of two loops. One
ambiguity cannot be detected: a prompt that equals the ids of the last call plus one token is taken for the next step.

Invariants of ``RowStates``. The first ``prompt`` columns are never fed to a matcher. A matcher has accepted the row's
tokens up to the first one that its constraint rejects (the row is *dead* from there on) or up to the end token (the row
is *finished*, and the rest is padding); both stay so until the row is cut back.

Cost per step and row: one accepted token, and one comparison of the row with the stored one (8 bytes per token, less
than the copy that the caller makes to append a token: 4 µs at 10,000 tokens). Reordered rows are found in a dictionary.
Rejected: matchers for every prefix ever seen (memory grows with length times beams), and hashing rows, which reads as
much as a comparison and needs a comparison afterwards anyway.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias
from weakref import ref

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.common.plurals import counted
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask
from tokenfst.decoding.matchers.node_matcher import NodeMatcher
from tokenfst.errors import MaskBufferError, MatcherError

AnyMatcher: TypeAlias = _native.Matcher | NodeMatcher[Any]

Ids: TypeAlias = npt.NDArray[np.integer[Any]]

_LOOPS = 16
"""The number of custom loops that are kept for each thread."""


class RowStates:
    """The matchers of one loop: after ``follow(ids)``, ``matchers[i]`` has accepted the tokens of row ``i``.

    ``initial``: the matchers at their start, one per prompt; a batch of R rows gives each prompt R / len(initial)
    consecutive rows (its beams or samples). A ``None`` in it: the rows of that prompt have no constraint.
    ``vocab_size``: the constraint rejects ids from this number on. ``prompt``: the number of prompt columns.
    ``beams``: the number of rows that form one beam search. Not thread-safe.

    ``bitmask``: a buffer with a mask for each row. ``constrained``: the rows that have a matcher; None: all. ``ends``:
    the numbers of the beam searches that may have found a complete text.
    """

    def __init__(
        self, initial: Sequence[AnyMatcher | None], vocab_size: int, prompt: int, beams: int = 1
    ) -> None:
        self._initial = initial
        self._vocab_size = vocab_size
        self.prompt, self.beams = prompt, beams
        self.matchers: list[AnyMatcher | None] = []
        self.constrained: list[int] | None = None
        self.ends: set[int] = set()
        self.bitmask = allocate_token_bitmask(0, vocab_size)
        self.forget()

    def forget(self) -> None:
        """Process the next rows from the prompt on."""
        self.width = -1
        self._seen = np.empty((0, 0), dtype=np.int64)

    def follow(self, ids: Ids) -> None:
        """Advance the matchers to the rows ``ids``, of shape ``(rows, width)``, wherever they come from.

        Raises ``MaskBufferError`` if the number of rows is not a multiple of the number of prompts, or if rows are
        shorter than the prompt. After any error the next rows are processed from the prompt on.
        """
        try:
            if not self._step(ids):
                known = self._resume(ids)
                if known is None:
                    known = self._begin(ids)
                self._advance(ids, known)
                self._keep(ids)
        except BaseException:
            self.forget()
            raise

    def step(self, ids: Ids) -> bool:
        """Advance and return True if each row is the last call's row with the same index plus one token; else return
        False.
        """
        try:
            return self._step(ids)
        except BaseException:
            self.forget()
            raise

    def is_dead(self, row: int) -> bool:
        """Whether the row contains a token that its constraint rejects."""
        matcher = self.matchers[row]
        if matcher is None:
            return False
        return matcher.num_tokens < self.width - self.prompt and not matcher.is_terminated()

    def is_over(self, row: int) -> bool:
        """Whether the row is finished or dead, or has no tokens left."""
        matcher = self.matchers[row]
        return matcher is not None and (
            matcher.is_terminated() or matcher.max_tokens_left == 0 or self.is_dead(row)
        )

    def goes_on_with(self, ids: Ids) -> bool:
        """Whether each row is a row of the last call, with the same constraint, plus one token."""
        return ids.shape[1] == self.width + 1 and self._has(ids[:, :-1])

    def began_with(self, ids: Ids) -> bool:
        """Whether the rows are the prompts of this loop."""
        return ids.shape[1] == self.prompt and self._has(ids)

    def may_claim(self, ids: Ids) -> bool:
        """Whether the rows have the length of this loop's next rows, or of its prompts."""
        return ids.shape[1] in (self.width + 1, self.prompt)

    def has_met(self, ids: Ids) -> bool:
        """Whether each row, possibly without its last token, is a prefix of a row of the last call and longer than the
        prompt.
        """
        return self.prompt < ids.shape[1] <= self.width and self._has(ids[:, :-1])

    def _has(self, ids: Ids) -> bool:
        kept = self._seen[:, : ids.shape[1]]
        return len(ids) == len(kept) and _find(ids, kept, len(ids) // len(self._initial)) is not None

    def _step(self, ids: Ids) -> bool:
        rows, width = ids.shape
        if (
            rows != len(self._seen)
            or width != self.width + 1
            or not np.array_equal(ids[:, :-1], self._kept())
        ):
            return False
        self._advance(ids, width - 1)
        if width > self._seen.shape[1]:
            self._keep(ids)
        self._seen[:, width - 1] = ids[:, -1]
        self.width = width
        return True

    def _kept(self) -> Ids:
        return self._seen[:, : self.width]

    def _keep(self, ids: Ids) -> None:
        """Copy the rows (the caller may change them in place), with room to grow."""
        rows, width = ids.shape
        if self._seen.shape[0] != rows or self._seen.shape[1] < width:
            self._seen = np.empty((rows, 2 * width + 64), dtype=np.int64)
        self._seen[:, :width] = ids
        self.width = width

    def _begin(self, ids: Ids) -> int:
        """All rows at the start."""
        rows, width = ids.shape
        if rows % len(self._initial):
            raise MaskBufferError(
                f"{counted(len(self._initial), 'constraint')} cannot be distributed over {counted(rows, 'row')}; "
                "give one constraint for all rows, or one per prompt"
            )
        if width < self.prompt:
            raise MaskBufferError(
                f"the rows have {counted(width, 'token')}, fewer than the prompt, which has {self.prompt:,}"
            )
        share = rows // len(self._initial)
        self.matchers = [matcher and matcher.fork() for matcher in self._initial for _ in range(share)]
        some = [row for row, matcher in enumerate(self.matchers) if matcher is not None]
        self.constrained = some if len(some) < rows else None
        if len(self.bitmask) != rows:
            self.bitmask = allocate_token_bitmask(rows, self._vocab_size)
        return self.prompt

    def _resume(self, ids: Ids) -> int | None:
        """Give each row the matcher of a row kept that shares its beginning, rolled back to what they share.

        Returns how many columns the matchers have followed; None where prompts or rows are others.
        """
        rows, width = ids.shape
        kept, prompt = self._kept(), self.prompt
        if rows != len(kept) or width < prompt or not np.array_equal(ids[:, :prompt], kept[:, :prompt]):
            return None
        share = rows // len(self._initial)
        known: int = min(max(width - 1, prompt), self.width)
        parents = _find(ids[:, prompt:known], kept[:, prompt:known], share)
        while parents is None:
            known = prompt + (known - prompt) // 2
            parents = _find(ids[:, prompt:known], kept[:, prompt:known], share)
        heirs = Counter(parents)
        matchers: list[AnyMatcher | None] = []
        for parent in parents:
            heirs[parent] -= 1
            matcher = self.matchers[parent]
            matchers.append(matcher.fork() if matcher and heirs[parent] else matcher)
        for matcher in matchers:
            if matcher is not None:
                matcher.rollback(max(matcher.num_tokens - (known - prompt), 0))
        self.matchers = matchers
        return known

    def _advance(self, ids: Ids, known: int) -> None:
        """Feed each row's tokens from column ``known`` on, while the row is neither dead nor finished."""
        for matcher, tokens in zip(self.matchers, ids[:, known:].tolist(), strict=True):
            if matcher is None or matcher.num_tokens < known - self.prompt:
                continue
            for token in tokens:
                if (
                    matcher.is_terminated()
                    or not 0 <= token < self._vocab_size
                    or not matcher.accept_token(token)
                ):
                    break


class PrefixStates:
    """The loops that one processor serves, each with its prompt. Shared by threads; see the module.

    ``initial`` and ``vocab_size`` are those of ``RowStates``.
    """

    def __init__(self, initial: Sequence[AnyMatcher | None], vocab_size: int) -> None:
        self._initial = list(initial)
        self._vocab_size = vocab_size
        self._of_calls: dict[int, tuple[ref[Any], RowStates]] = {}
        self.reset()

    def reset(self, prompt_length: int | None = None) -> None:
        """Forget the loops of all threads, except calls of ``generate``. ``prompt_length``: the number of prompt
        columns of every later loop.
        """
        self._told = prompt_length
        self._own = threading.local()

    def update(self, ids: Ids) -> RowStates:
        """The states of the loop that passes the rows ``ids``, of shape ``(rows, width)``, advanced to them.

        Raises ``MatcherError`` if the ids do not determine the loop, and the errors of ``RowStates.follow``.
        """
        own, told = self._loops(), self._told
        if told is None and any(loop.may_claim(ids) for loop in own[1:]):
            states = self._choose(ids, own)
        elif own and own[0].step(ids):
            return own[0]
        elif told is None:
            states = self._choose(ids, own)
        else:
            states = own[0] if own else self.new(told)
        states.follow(ids)
        if not own or own[0] is not states:
            own[:] = [states, *(loop for loop in own if loop is not states)][:_LOOPS]
        return states

    def of_call(self, key: int) -> RowStates | None:
        """The states of the running call of ``generate`` with this key."""
        config, states = self._of_calls.get(key, (None, None))
        return None if config is None or config() is None else states

    def add_call(self, key: int, config: Any, states: RowStates) -> None:
        """Register a call of ``generate`` under a key, for the lifetime of its ``config``."""
        calls = self._of_calls
        calls[key] = ref(config, lambda dead: calls.pop(key) if calls[key][0] is dead else None), states

    def new(self, prompt: int, beams: int = 1) -> RowStates:
        """The states of another loop, with ``prompt`` prompt columns unless ``reset`` has set the number."""
        told = self._told
        return RowStates(self._initial, self._vocab_size, prompt if told is None else told, beams)

    @property
    def matchers(self) -> list[AnyMatcher | None]:
        """The matchers of this thread's last loop."""
        return self._loops()[0].matchers

    def is_dead(self, row: int) -> bool:
        """``RowStates.is_dead`` for this thread's last loop."""
        return self._loops()[0].is_dead(row)

    def _loops(self) -> list[RowStates]:
        """This thread's loops, the last one first."""
        own = self._own
        if not hasattr(own, "loops"):
            own.loops = []
        found: list[RowStates] = own.loops
        return found

    def _choose(self, ids: Ids, loops: list[RowStates]) -> RowStates:
        """The loop that continues with these rows, or a new one. Raises ``MatcherError`` if the rows do not
        determine it.
        """
        going = [loop for loop in loops if loop.goes_on_with(ids)]
        prompts = {loop.prompt for loop in going} | {loop.prompt for loop in loops if loop.began_with(ids)}
        if not going:
            prompts |= {loop.prompt for loop in loops if loop.has_met(ids)} | {ids.shape[1]}
        if len(prompts) > 1:
            raise MatcherError(
                f"rows of {counted(ids.shape[1], 'token')} may be those of several loops, with prompts of "
                f"{' or '.join(map(str, sorted(prompts)))} tokens: a new prompt, or a step of an earlier one? Call "
                "reset() before a new prompt, or reset(prompt_length=n) for a loop that goes back or asks twice"
            )
        return going[0] if going else self.new(ids.shape[1])


def _find(wanted: Ids, kept: Ids, share: int) -> list[int] | None:
    """For each row wanted, an equal row kept in the same group of ``share`` rows, itself if it can be."""
    same = (wanted == kept).all(axis=1)
    if same.all():
        return list(range(len(wanted)))
    places = {(row // share, kept[row].tobytes()): row for row in range(len(kept))}
    parents = []
    for row in range(len(wanted)):
        key = row // share, np.ascontiguousarray(wanted[row], dtype=kept.dtype).tobytes()
        parent = row if same[row] else places.get(key)
        if parent is None:
            return None
        parents.append(parent)
    return parents
