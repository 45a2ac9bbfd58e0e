"""``PagedRows``: matchers that walk on the host, with data for their places in slots on the device.

A place in a text has a *page*: its mask (``matchers``), or its scores (``score_matchers``). Pages recur, so each is
copied to the device once, into a slot, and a step sends only slot numbers. ``follow(tokens)`` starts the work of
the next step at once, while the model computes: the tokens are copied to the host, and a thread advances the
matchers and computes the pages that are not on the device yet. ``states`` waits for it.

Invariant: a slot that a row of the current step uses is not overwritten before the next step. If all slots are
taken, their number grows (``overflow="grow"``), the least recently used pages are evicted (``"evict"``), or
``BudgetExceeded`` is raised (``"raise"``). It is also raised if the pages of one step do not fit.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, Literal, NamedTuple, Protocol

from tokenfst.common.arguments import refuse
from tokenfst.common.token_ids import token_id
from tokenfst.decoding.device.tables.pool import Tensor, torch
from tokenfst.decoding.device.tables.tables import ENDED
from tokenfst.errors import ArgumentValueError, BudgetExceeded, TokenIdError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Overflow = Literal["grow", "evict", "raise"]
FIRST_SLOT = ENDED + 1
"""The slot of the first page. The slots before it are DEAD and ENDED, which allow the end tokens only."""


class Walker(Protocol):
    """The methods of a matcher that this module uses."""

    def accept_token(self, token: int, /) -> bool:
        """Advance by a token; False if it is not allowed."""

    def is_terminated(self) -> bool:
        """Whether an end token was accepted."""


class Paging(NamedTuple):
    """Counters: ``steps``; ``stalls``, the steps that waited for the host; ``pages`` copied to the device;
    ``evictions`` of pages from the device.
    """

    steps: int
    stalls: int
    pages: int
    evictions: int


class PagedRows(ABC):
    """The slots, and the thread that advances the matchers. Row i of a batch belongs to ``matchers[i]``."""

    device: torch.device
    vocabulary: Vocabulary
    _what = "pages"
    """The plural of the pages' name, for errors."""

    def _begin(self, matchers: Sequence[Walker], slots: int, overflow: Overflow) -> None:
        """Check the arguments, and compute the pages of the first step."""
        if overflow not in ("grow", "evict", "raise"):
            raise ArgumentValueError(f'overflow is "grow", "evict" or "raise", not {overflow!r}')
        if slots < 1:
            raise ArgumentValueError(f"slots must be at least 1, not {slots}")
        if len({id(matcher) for matcher in matchers}) < len(matchers):
            raise ArgumentValueError(
                "a matcher occurs twice in the list: give each row a matcher of its own (fork())"
            )
        self._walkers = list(matchers)
        self.overflow: Overflow = overflow
        self.dead = [False] * len(self._walkers)
        """The rows that got a token that is not allowed."""
        self._slots: OrderedDict[Hashable, int] = OrderedDict()
        self._free: list[int] = []
        self._counts = [0, 0, 0, 0]
        self._grow(slots)
        self._worker = ThreadPoolExecutor(1, "tokenfst-pages")
        self._pending: Future[list[Hashable]] = self._worker.submit(self._look, None, None)

    @property
    def paging(self) -> Paging:
        """The counters so far."""
        return Paging(*self._counts)

    def follow(self, tokens: Tensor) -> None:
        """Start to advance every row by its token, int64 (B,), and to compute the next pages; does not wait.

        Raises the host-side error of the previous step, as ``states`` does. After ``TokenIdError``, for a token outside
        the vocabulary, no row has moved, and the step can be repeated.
        """
        if not isinstance(tokens, torch.Tensor):
            refuse(f"{type(self).__name__}.follow", "tokens", tokens, "a tensor of token ids")
        if tokens.dtype is not torch.int64 or tokens.shape != (len(self._walkers),):
            raise TokenIdError(
                f"tokens must be int64 ({len(self._walkers)},), not {tokens.dtype} {tuple(tokens.shape)}"
            )
        self._looked()
        arrived = None
        if tokens.is_cuda:
            host = torch.empty(tokens.shape, dtype=tokens.dtype, pin_memory=True)
            host.copy_(tokens, non_blocking=True)
            arrived = torch.cuda.Event()
            arrived.record()
            tokens = host
        self._pending = self._worker.submit(self._look, tokens if arrived else tokens.clone(), arrived)

    def states(self) -> Tensor:
        """The slot of each row, int32 (B,). Call it once for each step.

        Waits for the host if necessary and copies new pages. Raises ``BudgetExceeded`` if there is no room for them,
        and ``TokenIdError`` as ``follow`` says.
        """
        self._counts[0] += 1
        self._counts[1] += not self._pending.done()
        keys = self._looked()
        used = dict.fromkeys(keys)
        fresh = [key for key in used if key not in self._slots]
        for key in used:
            if key in self._slots:
                self._slots.move_to_end(key)
        if len(fresh) > self._room() - len(self._slots):
            self._make_room(len(fresh), used)
        if fresh:
            slots = []
            for key in fresh:
                slots.append(self._free.pop() if self._free else FIRST_SLOT + len(self._slots))
                self._slots[key] = slots[-1]
            self._write(slots, fresh, keys)
            self._counts[2] += len(fresh)
        return self._sent(torch.tensor([self._slots[key] for key in keys], dtype=torch.int32))

    # --- for subclasses -----------------------------------------------------------------------------------

    @abstractmethod
    def _pages(self) -> list[Hashable]:
        """The key of each row's page, computed in the thread. Equal keys have equal pages. Pages without a slot are
        computed.
        """

    @abstractmethod
    def _room(self) -> int:
        """The number of slots, free or taken."""

    @abstractmethod
    def _grow(self, count: int) -> None:
        """Add this number of slots, or raise ``BudgetExceeded`` and add none."""

    @abstractmethod
    def _write(self, slots: list[int], fresh: list[Hashable], keys: list[Hashable]) -> None:
        """Copy the pages of the keys ``fresh`` to these slots. ``keys``: those of all rows."""

    def _sent(self, tensor: Tensor) -> Tensor:
        """A copy on the device, without waiting for it."""
        return (
            tensor.pin_memory().to(self.device, non_blocking=True) if self.device.type == "cuda" else tensor
        )

    # --- details ------------------------------------------------------------------------------------------

    def _looked(self) -> list[Hashable]:
        """What the thread has found for the present step."""
        try:
            return self._pending.result()
        except TokenIdError:  # the rows are where they were
            self._pending = self._worker.submit(self._look, None, None)
            raise

    def _look(self, tokens: Tensor | None, arrived: Any) -> list[Hashable]:
        """Advance the matchers, and return the keys of their pages."""
        if arrived is not None:
            arrived.synchronize()
        if tokens is not None:
            moving = [
                (row, matcher, token)
                for row, (matcher, token) in enumerate(zip(self._walkers, tokens.tolist(), strict=True))
                if not self.dead[row] and not matcher.is_terminated()
            ]
            for row, _, token in moving:  # all of them before the first one moves
                token_id("follow", f"tokens[{row}]", token, len(self.vocabulary))
            for row, matcher, token in moving:
                self.dead[row] = not matcher.accept_token(token)
        return self._pages()

    def _make_room(self, wanted: int, used: dict[Hashable, None]) -> None:
        have = self._room()
        room = have - len(self._slots)
        if self.overflow == "raise":
            raise BudgetExceeded("slots", have, f"the {self._what} of matchers on the device")
        if self.overflow == "grow":
            self._grow(max(wanted - room, have))
            return
        old = [key for key in self._slots if key not in used][: wanted - room]
        if len(old) < wanted - room:
            raise BudgetExceeded(
                "slots", have, f"the {self._what} of one step, all of which must be on the device"
            )
        for key in old:
            self._free.append(self._slots.pop(key))
        self._counts[3] += len(old)
