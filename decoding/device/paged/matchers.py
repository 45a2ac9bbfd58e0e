"""Matchers on the host with masks on the device: for lazy automata, stacks and canonical tokenizations.

An automaton without a finite table is walked on the host, but its masks recur: each distinct mask is a page
(``paging``), copied to the device once. Masks are exactly those of the matchers.

A mask that depends on the matcher's state alone (no limit of tokens, no stack, no strings that must differ) is looked
up by that state: if it is on the device, it is neither computed nor read on the host.

Cost of a step: one small copy; for each row whose mask is not known by its state, its mask on the host and a digest of
16 bytes; for a new mask ceil(V / 32) words.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst._native import Matcher
from tokenfst.common.arguments import checked
from tokenfst.decoding.device.automata.masks import DeviceMasks
from tokenfst.decoding.device.paged.paging import FIRST_SLOT, Overflow, PagedRows
from tokenfst.decoding.device.tables.pool import torch
from tokenfst.decoding.device.tables.tables import MASK
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, bitmask_from_ids, fill_bitmasks
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenfst.decoding.matchers.node_matcher import NodeMatcher

_MOST_KNOWN = 1 << 16
"""Maximum number of states whose masks are remembered. Beyond it all are forgotten, and computed again on demand."""


_Place = tuple[_native.TokenAutomaton, int]
"""A state of an automaton."""


class DeviceMatchers(PagedRows, DeviceMasks):
    """The masks of a batch of matchers, row i from ``matchers[i]``, on ``device``.

    ``slots``: initial number of masks on the device. ``overflow``: what happens when all slots are taken: their number
    grows (``"grow"``), the least recently used masks are evicted (``"evict"``), or ``BudgetExceeded`` is raised
    (``"raise"``). ``capacity``: maximum bytes of all tables. If a matcher rejects a token or has ended, its row allows
    the end tokens only.

    Raises ``ArgumentValueError`` if a matcher occurs twice.
    """

    device = DeviceMasks.device
    _what = "masks"

    @checked
    def __init__(
        self,
        matchers: Sequence[Matcher | NodeMatcher[Any]],
        vocabulary: Vocabulary,
        device: torch.device | str = "cpu",
        *,
        slots: int = 256,
        overflow: Overflow = "grow",
        capacity: int | None = None,
    ) -> None:
        super().__init__(vocabulary, device, capacity, None, False)
        self.matchers = list(matchers)
        self._words = allocate_token_bitmask(len(self.matchers), len(vocabulary))
        self._only_end_row = bitmask_from_ids(vocabulary.eos_token_ids, len(vocabulary))
        self._only_end_key = _digest(self._only_end_row)
        self._known: dict[_Place, Hashable] = {}
        self._automata = [_automaton_of_state(matcher) for matcher in self.matchers]
        self._begin(self.matchers, slots, overflow)

    # --- pages --------------------------------------------------------------------------------------------

    def _pages(self) -> list[Hashable]:
        keys: list[Hashable] = [None] * len(self.matchers)
        first: dict[_Place, int] = {}  # of the rows in equal states, one computes the mask
        places: list[_Place | None] = [None] * len(self.matchers)
        compute: list[int] = []
        for row, (matcher, automaton) in enumerate(zip(self.matchers, self._automata, strict=True)):
            left = matcher.max_tokens_left
            if self.dead[row] or left == 0 or matcher.is_terminated():
                keys[row], self._words[row] = self._only_end_key, self._only_end_row
                continue
            if automaton is not None and left is None and isinstance(matcher, Matcher):
                place = places[row] = automaton, matcher.state
                known = self._known.get(place)
                if known is not None and known in self._slots:
                    keys[row] = known
                    continue
                if first.setdefault(place, row) != row:
                    continue
            compute.append(row)
        self._fill(compute)
        for row in compute:
            keys[row] = _digest(self._words[row])
        self._remember({place: keys[row] for place, row in first.items()})
        for row, at in enumerate(places):
            if at in first:
                keys[row] = keys[first[at]]
        return keys

    def _fill(self, rows: list[int]) -> None:
        """Compute the masks of these rows."""
        if len(rows) == len(self.matchers):
            fill_bitmasks(self.matchers, self._words)
        elif rows:
            words = np.ascontiguousarray(self._words[rows])
            fill_bitmasks([self.matchers[row] for row in rows], words)
            self._words[rows] = words

    def _remember(self, keys: dict[_Place, Hashable]) -> None:
        if len(self._known) + len(keys) > _MOST_KNOWN:
            self._known.clear()
        self._known.update(keys)

    def _room(self) -> int:
        return self._pool.used["states"] - FIRST_SLOT

    def _grow(self, count: int) -> None:
        used, places = self._pool.used, np.arange(count)
        masks = np.zeros((count, 4), np.int32)
        masks[:, 0] = used["rows"] + places
        states = np.zeros((count, 8), np.int32)
        states[:, MASK] = used["masks"] + places
        rows = np.zeros((count, self._words.shape[1]), np.uint32)
        self._pool.append({"states": states, "masks": masks, "rows": rows}, "masks of matchers")
        self._publish()

    def _write(self, slots: list[int], fresh: list[Hashable], keys: list[Hashable]) -> None:
        rows = np.array(slots) + (self._pool.used["rows"] - self._pool.used["states"])
        words = self._words[[keys.index(key) for key in fresh]]
        table = self._tables.rows
        if self.device.type == "cpu":  # torch would wake its threads, which takes longer than the copy
            table.numpy()[rows] = words
        else:
            table.index_copy_(0, self._sent(torch.from_numpy(rows)), self._sent(torch.from_numpy(words)))


def _digest(words: npt.NDArray[np.int32]) -> bytes:
    return blake2b(words.tobytes(), digest_size=16).digest()


def _automaton_of_state(matcher: Matcher | NodeMatcher[Any]) -> _native.TokenAutomaton | None:
    """The automaton of a matcher, if its state alone determines the mask without a limit of tokens."""
    if not isinstance(matcher, Matcher):
        return None
    automaton = matcher.automaton
    return None if automaton.is_pushdown or automaton.has_marks else automaton
