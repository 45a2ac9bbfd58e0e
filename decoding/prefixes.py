"""Matchers that follow the rows of a batch, told apart by the tokens that the rows hold.

A decoding loop shows whole rows of token ids, step after step, and says neither where a row came from (beam
search reorders and duplicates them), nor how many tokens are new (assisted decoding goes back and forth), nor
where a new prompt begins. So the rows of the last call are kept, with one matcher each, and a row is found
again by comparing.

Invariants. The first ``prompt_length`` columns are the prompt and are never fed to a matcher. A matcher has
accepted the row's tokens up to the first one that its constraint does not allow (the row is *dead* from there
on) or up to the end token (the row is *finished*, and what follows is padding); both stay as they are until
the row is cut back.

A call continues the last one if it has as many rows, the same prompts, and each row is a prefix of a row kept
(of the same constraint), or such a prefix and one token more. Anything else starts a new prompt, which is the
whole width. This is decided by the ids alone; where they cannot say (a second prompt that is the first one
and one token more), ``reset()`` does. After ``reset(prompt_length=n)`` nothing is inferred: a row may grow by
any number of tokens.

Cost per step and row: one accepted token, and one comparison of the row with the one kept (8 bytes a token,
less than the copy that the caller makes to append a token: 4 µs at 10,000 tokens). Reordered rows are found
in a dictionary. Rejected: matchers kept for every prefix ever seen (memory grows with length times beams),
and hashing rows, which reads as much as comparing and then must compare all the same.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tokenfst import _native
from tokenfst.decoding.node_matcher import NodeMatcher
from tokenfst.errors import MaskBufferError

AnyMatcher: TypeAlias = _native.Matcher | NodeMatcher[Any]

Ids: TypeAlias = npt.NDArray[np.integer[Any]]


class PrefixStates:
    """One matcher per row: after ``update(ids)``, ``matchers[i]`` stands where the tokens of row ``i`` lead.

    ``initial``: the matchers at their start, one per prompt; a batch of R rows gives each prompt R /
    len(initial) consecutive rows (its beams or samples). ``vocab_size``: ids from there on are dead tokens.
    """

    def __init__(self, initial: Sequence[AnyMatcher], vocab_size: int) -> None:
        self._initial = list(initial)
        self._vocab_size = vocab_size
        self.matchers: list[AnyMatcher] = []
        self.reset()

    def reset(self, prompt_length: int | None = None) -> None:
        """The next call starts a new prompt: of this many columns, or of all that it has."""
        self._told = prompt_length
        self._prompt = 0
        self._width = -1
        self._seen = np.empty((0, 0), dtype=np.int64)

    def update(self, ids: Ids) -> None:
        """Follow the rows ``ids``, of shape ``(rows, width)``.

        Raises ``MaskBufferError`` where the prompts do not divide the rows; after any error, all is reset.
        """
        try:
            self._update(ids)
        except BaseException:
            self.reset(self._told)
            raise

    def is_dead(self, row: int) -> bool:
        """Whether the row holds a token that its constraint does not allow."""
        matcher = self.matchers[row]
        return matcher.num_tokens < self._width - self._prompt and not matcher.is_terminated()

    def _update(self, ids: Ids) -> None:
        rows, width = ids.shape
        if rows == len(self._seen) and width == self._width + 1 and np.array_equal(ids[:, :-1], self._kept()):
            self._advance(ids, width - 1)
            if width > self._seen.shape[1]:
                self._keep(ids)
            self._seen[:, width - 1] = ids[:, -1]
            self._width = width
            return
        known = self._resume(ids)
        if known is None:
            known = self._begin(ids)
        self._advance(ids, known)
        self._keep(ids)

    def _kept(self) -> Ids:
        return self._seen[:, : self._width]

    def _keep(self, ids: Ids) -> None:
        """Copy the rows (the caller may change them in place), with room to grow."""
        rows, width = ids.shape
        if self._seen.shape[0] != rows or self._seen.shape[1] < width:
            self._seen = np.empty((rows, 2 * width + 64), dtype=np.int64)
        self._seen[:, :width] = ids
        self._width = width

    def _begin(self, ids: Ids) -> int:
        """A new prompt: all rows at the start."""
        rows, width = ids.shape
        if rows % len(self._initial):
            raise MaskBufferError(
                f"{len(self._initial)} constraints cannot be shared out over {rows} rows; give one "
                "constraint for all rows, or one per prompt"
            )
        self._prompt = width if self._told is None else self._told
        if width < self._prompt:
            raise MaskBufferError(
                f"the rows have {width} tokens, and the prompt was said to have {self._prompt}"
            )
        share = rows // len(self._initial)
        self.matchers = [matcher.fork() for matcher in self._initial for _ in range(share)]
        return self._prompt

    def _resume(self, ids: Ids) -> int | None:
        """Give each row the matcher of a row kept that shares its beginning, rolled back to what they share.

        Returns how many columns the matchers have followed; None for a new prompt.
        """
        rows, width = ids.shape
        kept, prompt = self._kept(), self._prompt
        if rows != len(kept) or width < prompt or not np.array_equal(ids[:, :prompt], kept[:, :prompt]):
            return None
        share = rows // len(self._initial)
        known: int = min(max(width - 1, prompt), self._width)
        parents = _find(ids[:, prompt:known], kept[:, prompt:known], share)
        while parents is None and self._told is not None:
            known = prompt + (known - prompt) // 2
            parents = _find(ids[:, prompt:known], kept[:, prompt:known], share)
        if parents is None or (self._told is None and known < width - 1):
            return None
        heirs = Counter(parents)
        matchers = []
        for parent in parents:
            heirs[parent] -= 1
            matchers.append(self.matchers[parent].fork() if heirs[parent] else self.matchers[parent])
        for matcher in matchers:
            matcher.rollback(max(matcher.num_tokens - (known - prompt), 0))
        self.matchers = matchers
        return known

    def _advance(self, ids: Ids, known: int) -> None:
        """Feed each row's tokens from column ``known`` on, while the row is neither dead nor finished."""
        for matcher, tokens in zip(self.matchers, ids[:, known:].tolist(), strict=True):
            if matcher.num_tokens < known - self._prompt:
                continue
            for token in tokens:
                if (
                    matcher.is_terminated()
                    or not 0 <= token < self._vocab_size
                    or not matcher.accept_token(token)
                ):
                    break


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
