"""Matchers on the host with masks on the device: for lazy automata, stacks and canonical tokenizations.

An automaton without a finite table is walked on the host, but its masks recur: each distinct mask is a page
(``paging``), copied to the device once. A mask is never wrong.

Cost of a step: the masks of all rows on the host, a digest of 16 bytes for each, and one small copy; for a new mask
ceil(V / 32) words.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from hashlib import blake2b
from typing import TYPE_CHECKING, Any

import numpy as np

from tokenfst._native import Matcher
from tokenfst.arguments import checked
from tokenfst.decoding.device.masks import DeviceMasks
from tokenfst.decoding.device.paging import FIRST_SLOT, Overflow, PagedRows
from tokenfst.decoding.device.tables.pool import torch
from tokenfst.decoding.device.tables.tables import MASK
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, bitmask_from_ids, fill_bitmasks
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenfst.decoding.matchers.node_matcher import NodeMatcher


class DeviceMatchers(PagedRows, DeviceMasks):
    """The masks of a batch of matchers, row i from ``matchers[i]``, on ``device``.

    ``slots``: initial number of masks in the pool. ``overflow`` and ``capacity`` (bytes): what to do when the pool is
    full. If a matcher rejects a token or has ended, its row allows the end tokens only.
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
        self._begin(self.matchers, slots, overflow)

    # --- pages --------------------------------------------------------------------------------------------

    def _pages(self) -> list[Hashable]:
        fill_bitmasks(self.matchers, self._words)
        for row, matcher in enumerate(self.matchers):
            if self.dead[row] or matcher.max_tokens_left == 0:
                self._words[row] = self._only_end_row
        return [blake2b(words.tobytes(), digest_size=16).digest() for words in self._words]

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
        rows = torch.tensor(slots) + self._pool.used["rows"] - self._pool.used["states"]
        words = self._words[[keys.index(key) for key in fresh]]
        self._tables.rows.index_copy_(0, self._sent(rows), self._sent(torch.from_numpy(words)))
