"""Matchers of scores on the host with rows of scores on the device: for weighted grammars, machines with several paths
for a text, models over token ids.

Such a language has no finite table of states, so it is walked on the host; but its rows of scores recur. A row is
computed when its place is first met, and copied to a slot of a table on the device (``paging``). A step sends one
number for each row of the batch, and one gather adds the scores of all rows. Places are compared by what their future
depends on (``ScoreMatcher.row_key``), so a row that is on the device is not computed again.

Cost of a step: a token's bytes and a key for each row of the batch; a new row takes a walk of the vocabulary, and 4
bytes for each token on the device.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any

import numpy as np

from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, refuse
from tokenfst.common.plurals import counted
from tokenfst.decoding.device.kernels.scores import plain as plain_scores
from tokenfst.decoding.device.paged.paging import FIRST_SLOT, Overflow, PagedRows
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.decoding.device.weighted.score_rows import ScoreRows
from tokenfst.decoding.scores.matcher import ScoreMatcher
from tokenfst.decoding.scores.rows import ScoreRow
from tokenfst.errors import ArgumentValueError, BudgetExceeded, VocabularyMismatchError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_SLOTS = 64


class DeviceScoreMatchers(PagedRows, ScoreRows):
    """The scores of a batch of matchers, row i from ``matchers[i]``, on ``device``.

    ``matchers``: of compiled weighted languages, weighted grammars or n-gram models, in any mixture, over
    ``vocabulary``. ``slots``: the initial number of rows in the table, by default 64, or two for each matcher if that
    is more. ``capacity``: the largest number of bytes of the table, by default the bytes of ``Budget()``.
    ``overflow``: what happens if all slots are taken: ``"evict"`` the least recently used rows, ``"grow"`` up to
    ``capacity``, or ``"raise"``. A row whose matcher rejects a token or has ended takes the end tokens only, at
    score 0.

    Raises ``VocabularyMismatchError``; ``BudgetExceeded`` if the table does not fit ``capacity``, or the rows of one
    step do not fit the table.
    """

    _what = "rows of scores"

    @checked
    def __init__(
        self,
        matchers: Sequence[ScoreMatcher[Any]],
        vocabulary: Vocabulary,
        device: torch.device | str = "cpu",
        *,
        slots: int | None = None,
        overflow: Overflow = "evict",
        capacity: int | None = None,
    ) -> None:
        name = "DeviceScoreMatchers"
        for at, matcher in enumerate(matchers):
            if not isinstance(matcher, ScoreMatcher):
                wanted = "a matcher of scores: compile(weighted, vocabulary).matcher()"
                refuse(name, f"matchers[{at}]", matcher, wanted)
            if matcher.automaton.vocabulary.fingerprint != vocabulary.fingerprint:
                raise VocabularyMismatchError(f"{name}: matchers[{at}] is over another vocabulary")
        if capacity is not None and capacity < 0:
            refuse(name, "capacity", capacity, "not negative", ArgumentValueError)
        self.matchers, self.vocabulary = list(matchers), vocabulary
        self.capacity = Budget().bytes if capacity is None else capacity
        self.device = torch.empty(0, device=device).device
        self.generation = 0
        """A counter that changes when the table has moved: a CUDA graph must then be captured again."""
        self._ended = torch.full((1, len(vocabulary)), -np.inf, device=self.device)
        self._ended[:, list(vocabulary.eos_token_ids)] = 0.0
        self._table = self._ended.expand(FIRST_SLOT, -1).contiguous()
        self._made: dict[Hashable, ScoreRow] = {}
        self._begin(self.matchers, max(_SLOTS, 2 * len(self.matchers)) if slots is None else slots, overflow)

    def __repr__(self) -> str:
        matchers, rows = counted(len(self.matchers), "matcher"), counted(self._room(), "row")
        return f"<DeviceScoreMatchers: {matchers}, {rows} on {self.device}>"

    @property
    def memory(self) -> int:
        """Bytes of the table on the device."""
        return int(self._table.nbytes)

    def log_weights(self) -> list[float]:
        """The log weight of each row's text so far; -inf after a token that was not allowed. Waits for the host."""
        self._looked()
        pairs = zip(self.matchers, self.dead, strict=True)
        return [-np.inf if dead else matcher.log_weight for matcher, dead in pairs]

    def _add(self, logits: Tensor, states: Tensor, weight: float) -> Tensor:
        if (triton := self._triton(states)) is not None:
            added: Tensor = triton.add_rows_(self._table, logits, states, weight)
            return added
        return plain_scores.add_rows_(self._table, logits, states, weight)

    # --- pages --------------------------------------------------------------------------------------------

    def _pages(self) -> list[Hashable]:
        keys: list[Hashable] = []
        self._made.clear()
        for dead, matcher in zip(self.dead, self.matchers, strict=True):
            if dead or matcher.is_terminated():
                keys.append(None)
                continue
            key = id(matcher.automaton), matcher.row_key()
            keys.append(key)
            if key not in self._slots and key not in self._made:
                self._made[key] = matcher.row()
        return keys

    def _room(self) -> int:
        return len(self._table) - FIRST_SLOT

    def _grow(self, count: int) -> None:
        wanted = len(self._table) + count
        if 4 * len(self.vocabulary) * wanted > self.capacity:
            raise BudgetExceeded("bytes", self.capacity, f"scores on the device ({counted(wanted, 'row')})")
        self._table = torch.cat([self._table, self._ended.expand(count, -1)])
        self.generation += 1

    def _write(self, slots: list[int], fresh: list[Hashable], keys: list[Hashable]) -> None:
        for slot, key in zip(slots, fresh, strict=True):
            row = self._ended if key is None else self._sent(torch.from_numpy(self._made[key].full())[None])
            self._table[slot : slot + 1] = row
