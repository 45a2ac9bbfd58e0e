"""Matchers on the host with masks on the device: for lazy automata, stacks and canonical tokenizations.

An automaton without a finite table is walked on the host, but its masks recur. Each distinct mask is copied to the
device once, into a slot of a pool, and a step sends only slot numbers. ``follow(tokens)`` starts the work of the next
step at once, while the model computes: the tokens are copied to the host, and a thread advances the matchers and fills
their masks. ``mask_logits_`` waits for it. ``stalls`` counts the steps that had to wait, ``pages`` the masks that were
copied.

Invariant: a slot that a row of the current step uses is not overwritten before the next step. If the pool is full, it
grows (``overflow="grow"``), evicts the least recently used masks (``"evict"``) or raises ``BudgetExceeded``
(``"raise"``). It also raises if the masks of one step do not fit ``capacity``. A mask is never wrong.

Cost of a step: the masks of all rows on the host, a digest of 16 bytes for each, and one small copy; for a new mask
ceil(V / 32) words.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from tokenfst._native import Matcher
from tokenfst.arguments import checked, refuse
from tokenfst.decoding.device.masks import DeviceMasks
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.decoding.device.tables.tables import MASK
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, bitmask_from_ids, fill_bitmasks
from tokenfst.errors import BudgetExceeded, TokenIdError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenfst.decoding.matchers.node_matcher import NodeMatcher

Overflow = Literal["grow", "evict", "raise"]
_FIRST = 2
"""The slot of the first mask. The slots before it are DEAD and ENDED, which allow the end tokens only."""


class Paging(NamedTuple):
    """Counters: ``steps`` masked, ``stalls`` of them that waited for the host, ``pages`` (masks copied), ``evictions``
    from the pool.
    """

    steps: int
    stalls: int
    pages: int
    evictions: int


class DeviceMatchers(DeviceMasks):
    """The masks of a batch of matchers, row i from ``matchers[i]``, on ``device``.

    ``slots``: initial number of masks in the pool. ``overflow`` and ``capacity`` (bytes): what to do when the pool is
    full. If a matcher rejects a token or has ended, its row allows the end tokens only.
    """

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
        if overflow not in ("grow", "evict", "raise"):
            raise ValueError(f'overflow is "grow", "evict" or "raise", not {overflow!r}')
        if slots < 1 or len({id(matcher) for matcher in matchers}) < len(matchers):
            raise ValueError("slots must be positive, and no matcher may stand in the list twice")
        super().__init__(vocabulary, device, capacity, None, False)
        self.matchers = list(matchers)
        self.overflow: Overflow = overflow
        self.dead = [False] * len(self.matchers)
        self._slots: OrderedDict[bytes, int] = OrderedDict()
        self._free: list[int] = []
        self._counts = [0, 0, 0, 0]
        self._words = allocate_token_bitmask(len(self.matchers), len(vocabulary))
        self._only_end_row = bitmask_from_ids(vocabulary.eos_token_ids, len(vocabulary))
        self._grow(slots)
        self._worker = ThreadPoolExecutor(1, "tokenfst-masks")
        self._pending: Future[list[bytes]] = self._worker.submit(self._look, None, None)

    @property
    def paging(self) -> Paging:
        """The counters so far."""
        return Paging(*self._counts)

    def follow(self, tokens: Tensor) -> None:
        """Start to advance every row by its token, int64 (B,), and to compute the next masks; does not wait.

        Raises the host-side error of the previous step: ``TokenIdError`` for a token outside the vocabulary.
        """
        if not isinstance(tokens, torch.Tensor):
            refuse("DeviceMatchers.follow", "tokens", tokens, "a tensor of token ids")
        if tokens.dtype is not torch.int64 or tokens.shape != (len(self.matchers),):
            raise TokenIdError(
                f"tokens must be int64 ({len(self.matchers)},), not {tokens.dtype} {tuple(tokens.shape)}"
            )
        self._pending.result()
        arrived = None
        if tokens.is_cuda:
            host = torch.empty(tokens.shape, dtype=tokens.dtype, pin_memory=True)
            host.copy_(tokens, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
            tokens = host
        self._pending = self._worker.submit(self._look, tokens if arrived else tokens.clone(), arrived)

    def states(self) -> Tensor:
        """The slot of each row's mask, int32 (B,), for ``mask_logits_``, ``choose`` and ``bitmask``. Call it once for
        each step.

        Waits for the host if necessary and copies new masks. Raises ``BudgetExceeded`` if the pool may not hold them.
        """
        self._counts[0] += 1
        self._counts[1] += not self._pending.done()
        digests = self._pending.result()
        used = dict.fromkeys(digests)
        fresh = [digest for digest in used if digest not in self._slots]
        for digest in used:
            if digest in self._slots:
                self._slots.move_to_end(digest)
        if len(fresh) > self._pool.used["states"] - _FIRST - len(self._slots):
            self._make_room(len(fresh), used)
        if fresh:
            self._page_in(fresh, self._words[[digests.index(digest) for digest in fresh]])
        return self._sent(torch.tensor([self._slots[digest] for digest in digests], dtype=torch.int32))

    # --- on the host --------------------------------------------------------------------------------------

    def _look(self, tokens: Tensor | None, arrived: Any) -> list[bytes]:
        """Advance, fill the masks, and say which they are."""
        if arrived is not None:
            arrived.synchronize()
        if tokens is not None:
            for row, token in enumerate(tokens.tolist()):
                matcher = self.matchers[row]
                if not self.dead[row] and not matcher.is_terminated():
                    self.dead[row] = not matcher.accept_token(token)
        fill_bitmasks(self.matchers, self._words)
        for row, matcher in enumerate(self.matchers):
            if self.dead[row] or matcher.max_tokens_left == 0:
                self._words[row] = self._only_end_row
        return [blake2b(words.tobytes(), digest_size=16).digest() for words in self._words]

    # --- the pool -----------------------------------------------------------------------------------------

    def _grow(self, count: int) -> None:
        """Make room for this number of additional masks."""
        used, places = self._pool.used, np.arange(count)
        masks = np.zeros((count, 4), np.int32)
        masks[:, 0] = used["rows"] + places
        states = np.zeros((count, 8), np.int32)
        states[:, MASK] = used["masks"] + places
        rows = np.zeros((count, self._words.shape[1]), np.uint32)
        self._pool.append({"states": states, "masks": masks, "rows": rows}, "masks of matchers")
        self._publish()

    def _make_room(self, wanted: int, used: dict[bytes, None]) -> None:
        have = self._pool.used["states"] - _FIRST
        room = have - len(self._slots)
        if self.overflow == "raise":
            raise BudgetExceeded("slots", have, "the masks of matchers on the device")
        if self.overflow == "grow":
            self._grow(max(wanted - room, have))
            return
        old = [digest for digest in self._slots if digest not in used][: wanted - room]
        if len(old) < wanted - room:
            raise BudgetExceeded("slots", have, "the masks of one step, all of which must be on the device")
        for digest in old:
            self._free.append(self._slots.pop(digest))
        self._counts[3] += len(old)

    def _page_in(self, digests: list[bytes], words: npt.NDArray[np.int32]) -> None:
        slots = []
        for digest in digests:
            slots.append(self._free.pop() if self._free else _FIRST + len(self._slots))
            self._slots[digest] = slots[-1]
        rows = torch.tensor(slots) + self._pool.used["rows"] - self._pool.used["states"]
        self._tables.rows.index_copy_(0, self._sent(rows), self._sent(torch.from_numpy(words)))
        self._counts[2] += len(digests)

    def _sent(self, tensor: Tensor) -> Tensor:
        """On the device, without waiting for it."""
        return (
            tensor.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else tensor
        )
