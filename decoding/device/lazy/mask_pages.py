"""``MaskPages``: the masks of lazy automata on the device, in slots of equal size.

A mask that several states have is stored once. When all slots are taken, their number doubles, the oldest masks are
evicted, or ``BudgetExceeded`` is raised. A slot that the current batch needs (``protected``) is not evicted. Limits of
tokens are layers, as in ``tables.tables``: the masks of a state by the number of tokens left.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable, Sequence
from hashlib import blake2b

import numpy as np
import numpy.typing as npt

from tokenfst.decoding.device.paged.paging import Overflow
from tokenfst.decoding.device.tables.pool import Pool, Tables, torch
from tokenfst.errors import ArgumentValueError, BudgetExceeded

Words = npt.NDArray[np.int32]


class MaskPages:
    """``slots`` slots for masks of ``words`` words, and the layers of states, in the tables of ``pool``.

    ``copied``, ``evictions``: counters. ``voided``: the states that lost a mask since the caller last cleared it.
    """

    def __init__(self, pool: Pool, words: int, slots: int, overflow: Overflow) -> None:
        if overflow not in ("grow", "evict", "raise"):
            raise ArgumentValueError(f'overflow is "grow", "evict" or "raise", not {overflow!r}')
        if slots < 1:
            raise ArgumentValueError(f"slots must be at least 1, not {slots}")
        self._pool, self._words, self._overflow = pool, words, overflow
        self._first_mask, self._first_row = pool.used["masks"], pool.used["rows"]
        self._slots = 0
        self._by_key: OrderedDict[Hashable, int] = OrderedDict()
        self._keys: dict[int, Hashable] = {}
        self._free: list[int] = []
        self._users: dict[int, set[int]] = {}
        self._of: dict[int, set[int]] = {}
        self._fresh: dict[int, Words] = {}
        self._layers = np.zeros((pool.used["layers"], 2), np.int32)
        self._used_layers = len(self._layers)
        self._regions: dict[int, tuple[int, int]] = {}
        self._changed: set[int] = set()
        self.copied = self.evictions = 0
        self.voided: set[int] = set()
        self._grow(slots)

    def of(self, state: int) -> set[int]:
        """The slots that hold masks of a state."""
        return self._of.get(state, set())

    def take(self, state: int, words: Words | None, protected: set[int]) -> int:
        """A slot for a mask of a state, which is then protected; ``words``: ``None`` if the caller writes the mask."""
        key: Hashable = (
            ("composed", state) if words is None else blake2b(words.tobytes(), digest_size=16).digest()
        )
        slot = self._by_key.get(key)
        if slot is None:
            slot = self._room(protected)
            self._by_key[key], self._keys[slot], self._users[slot] = slot, key, set()
            if words is not None:
                self._fresh[slot] = words
                self.copied += 1
        self._users[slot].add(state)
        self._of.setdefault(state, set()).add(slot)
        protected.add(slot)
        return slot

    def mask(self, slot: int) -> int:
        """The number of the mask in a slot, in the table ``masks``."""
        return self._first_mask + slot

    def row(self, slot: int) -> int:
        """The place of the mask in a slot, in the table ``rows``."""
        return self._first_row + slot

    def layered(self, state: int, layers: Sequence[tuple[int, int]]) -> tuple[int, int]:
        """Set the layers of a state: distances and masks. Returns their range in the table ``layers``."""
        begin, size = self._regions.get(state, (0, 0))
        if size < len(layers):
            begin, size = self._used_layers, len(layers)
            if begin + size > len(self._layers):
                more = np.zeros((max(64, len(self._layers) // 2, size), 2), np.int32)
                self._pool.append({"layers": more}, "the limits of lazy automata")
                self._layers = np.concatenate([self._layers, more])
            self._used_layers += size
            self._regions[state] = begin, size
        self._layers[begin : begin + len(layers)] = layers
        self._changed.update(range(begin, begin + len(layers)))
        return begin, begin + len(layers)

    def write(self, tables: Tables) -> None:
        """Copy new masks and layers to the device."""
        device = tables.rows.device
        if self._fresh:
            places = torch.tensor([self.row(slot) for slot in self._fresh], device=device)
            masks = torch.from_numpy(np.stack(list(self._fresh.values())))
            tables.rows.index_copy_(0, places, masks.to(device))
            self._fresh.clear()
        if self._changed:
            changed = np.array(sorted(self._changed))
            places = torch.from_numpy(changed).to(device)
            tables.layers.index_copy_(0, places, torch.from_numpy(self._layers[changed]).to(device))
            self._changed.clear()

    # --- details ------------------------------------------------------------------------------------------

    def _room(self, protected: set[int]) -> int:
        if not self._free and self._overflow == "raise":
            raise BudgetExceeded("slots", self._slots, "the masks of lazy automata on the device")
        if not self._free and self._overflow == "grow":
            self._grow(self._slots)
        if not self._free:
            old = next((slot for slot in self._by_key.values() if slot not in protected), None)
            if old is None:
                raise BudgetExceeded(
                    "slots", self._slots, "the masks of one batch, all of which must be on the device"
                )
            self._evict(old)
        return self._free.pop()

    def _evict(self, slot: int) -> None:
        """Free a slot. Its states lose all their masks, so that none is left with some of them."""
        del self._by_key[self._keys.pop(slot)]
        self._fresh.pop(slot, None)
        for state in self._users.pop(slot):
            for other in self._of.pop(state):
                if other != slot:
                    self._users[other].discard(state)
            self.voided.add(state)
        self._free.append(slot)
        self.evictions += 1

    def _grow(self, count: int) -> None:
        """Add this number of slots, or raise ``BudgetExceeded`` and add none."""
        masks = np.zeros((count, 4), np.int32)
        masks[:, 0] = self._first_row + self._slots + np.arange(count)
        rows = np.zeros((count, self._words), np.uint32)
        self._pool.append({"masks": masks, "rows": rows}, "the masks of lazy automata")
        self._free += range(self._slots + count - 1, self._slots - 1, -1)
        self._slots += count
