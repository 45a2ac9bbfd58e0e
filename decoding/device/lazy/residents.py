"""``Residents``: the states and masks of lazy automata that are on the device, with a copy of the states on the host.

A state's number is never reused for another state. Its arcs are a row of ``table``, one entry for each byte. An arc to
a state that is not on the device leads to ``MISSING``, from which all bytes lead to ``MISSING`` again. When the state
is copied to the device, the arcs that should lead to it are set. The field ``DISTANCE`` of a state holds the greatest
number of tokens left for which its mask is not on the device: ``FAR`` if none of its masks is, 0 if all are.

Changes are collected on the host, and ``write`` copies them to the device. If a call raises, the states and masks that
it had added until then are complete, and are written as well.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokenfst.decoding.device.lazy.byte_states import START, ByteStates
from tokenfst.decoding.device.lazy.mask_pages import MaskPages
from tokenfst.decoding.device.paged.paging import Overflow
from tokenfst.decoding.device.tables.pool import Pool, torch
from tokenfst.decoding.device.tables.tables import (
    ACCEPTING,
    AFTER_EMPTY,
    CLASSES,
    DEAD,
    DISTANCE,
    FAR,
    FIRST,
    FLAGS,
    LAYERS_BEGIN,
    LAYERS_END,
    MASK,
    ROW,
)

MISSING = 2
"""The state of a row that waits for the host."""
NUMBER, BEFORE, TOKEN = range(3)
"""The columns of a row of a batch; the last two are 0 unless the first is ``MISSING``."""
_WIDTH = 257
"""Entries of ``table`` for one state: its number and its arcs, by bytes."""


class Residents:
    """The states whose rows are on the device. ``token_limits``: whether masks depend on the number of tokens left.
    ``slots``, ``overflow``: see ``MaskPages``.
    """

    def __init__(
        self, pool: Pool, slots: int, overflow: Overflow, *, token_limits: bool, absorbs: bool
    ) -> None:
        self._pool, self._limits, self._absorbs = pool, token_limits, absorbs
        self.sources: list[ByteStates] = []
        self.open: list[int] = []
        """For each automaton, how many states that bytes lead to are not on the device."""
        self.steps = 0
        """The number of steps of a binary search among the layers of a state."""
        self.fresh: list[tuple[int, int]] = []
        """States whose masks are to be composed, with the places of these masks in ``rows``. The caller clears the
        list.
        """
        self._numbers: dict[tuple[int, int], int] = {}
        self._keys: list[tuple[int, int]] = []
        self._waiting: dict[tuple[int, int], list[tuple[int, npt.NDArray[np.int64]]]] = {}
        self._dirty: set[int] = set()
        self._identity = pool.used["classes"]
        pool.append({"classes": np.arange(256, dtype=np.uint8)}, "the states of lazy automata")
        self.pages = MaskPages(pool, pool.tables().rows.shape[1], slots, overflow)
        self._records, self._arcs = np.zeros((2, 8), np.int32), np.zeros((2, _WIDTH), np.int32)
        self._reserve(MISSING)
        place = (MISSING - 1) * _WIDTH
        self._records[MISSING, [ROW, CLASSES, DISTANCE]] = place, self._identity, FAR
        self._arcs[MISSING] = place
        self._arcs[MISSING, 0] = MISSING
        self._dirty.add(MISSING)

    def __len__(self) -> int:
        return len(self._keys)

    def key(self, number: int) -> tuple[int, int] | None:
        """The automaton and the byte state of a number; ``None`` if there is no such state."""
        place = number - MISSING - 1
        found = self._keys[place] if 0 <= place < len(self._keys) else (-1, 0)
        return None if found[0] < 0 else found

    # --- states -------------------------------------------------------------------------------------------

    def add(self, source: ByteStates, ahead: int) -> int:
        """Add an automaton with its start state and the ``ahead`` states that the fewest bytes lead to from there.
        Returns the number of the start state.
        """
        index = len(self.sources)
        self.sources.append(source)
        self.open.append(0)
        try:
            start = self.number(index, source.start)
            place, end = start - MISSING - 1, len(self._keys) + ahead
            while place < len(self._keys) < end:
                for target, _ in source.arcs(self._keys[place][1]):
                    if len(self._keys) < end:
                        self.number(index, target)
                place += 1
        except BaseException:
            self._forget(index)
            raise
        return start

    def _forget(self, index: int) -> None:
        """Undo what ``add`` did for the last automaton, but for the numbers of its states."""
        self.sources.pop()
        self.open.pop()
        for key in [key for key in self._numbers if key[0] == index]:
            del self._numbers[key]
        for key in [key for key in self._waiting if key[0] == index]:
            del self._waiting[key]
        self._keys = [(-1, 0) if key[0] == index else key for key in self._keys]

    def followed(self, before: int, token: int) -> int:
        """The number of the state after a token, with all states on its way; DEAD if there is none."""
        key = self.key(before)
        if key is None or token < 0:
            return DEAD
        index, state = key
        source = self.sources[index]
        for byte in source.after(state, token):
            self.number(index, state)
            target = source.step(state, byte)
            if target is None:
                return DEAD
            state = target
        return self.number(index, state)

    def number(self, index: int, state: int) -> int:
        """The number of a byte state, which is added if it is not on the device yet. O(arcs + waiting arcs)."""
        key = index, state
        if key in self._numbers:
            return self._numbers[key]
        source = self.sources[index]
        arcs = source.arcs(state)
        number = MISSING + 1 + len(self._keys)
        self._reserve(number)
        self._numbers[key] = number
        self._keys.append(key)
        place = (number - 1) * _WIDTH
        record, row = self._records[number], self._arcs[number]
        record[[ROW, CLASSES, DISTANCE]] = place, self._identity, FAR
        record[FLAGS] = ACCEPTING if source.accepting(state) else 0
        row[0] = number
        for target, letters in arcs:
            self._lead(index, target, number, np.frombuffer(letters, np.uint8).astype(np.int64) + 1)
        if key in self._waiting:
            self.open[index] -= 1
            for other, places in self._waiting.pop(key):
                self._arcs[other, places] = place
                self._dirty.add(other)
        if state == START:
            record[FLAGS] |= FIRST
            if source.has_silent:
                after = number if self._absorbs else self.number(index, 0)
                self._records[number, AFTER_EMPTY] = after
        self._dirty.add(number)
        return number

    def _lead(self, index: int, target: int, number: int, places: npt.NDArray[np.int64]) -> None:
        """Let bytes of a state lead to another one, or to ``MISSING`` until that one comes."""
        known = self._numbers.get((index, target), MISSING)
        self._arcs[number, places] = self._records[known, ROW]
        if known == MISSING:
            self.open[index] += (index, target) not in self._waiting
            self._waiting.setdefault((index, target), []).append((number, places))

    def _reserve(self, number: int) -> None:
        """Make room for a state, on the host and on the device."""
        if number < len(self._records):
            return
        count = max(64, len(self._records) // 2)
        parts = {"states": np.zeros((count, 8), np.int32), "table": np.zeros(count * _WIDTH, np.int32)}
        self._pool.append(parts, "the states of lazy automata")
        self._records = np.concatenate([self._records, parts["states"]])
        self._arcs = np.concatenate([self._arcs, parts["table"].reshape(count, _WIDTH)])

    # --- masks --------------------------------------------------------------------------------------------

    def bring(
        self, rows: npt.NDArray[np.int32], limits: npt.NDArray[np.int32] | None, *, composes: bool
    ) -> None:
        """Add the states and masks that the rows of a batch need, and rewrite in place the rows that wait for the host.

        ``limits``: the tokens left of each row, negative for no limit; ``None``: no masks. ``composes``: whether masks
        may be composed on the device.
        """
        for row in rows:
            if row[NUMBER] == MISSING:
                row[:] = self.followed(int(row[BEFORE]), int(row[TOKEN])), 0, 0
        if limits is None:
            return
        wanted: dict[int, int] = {}
        for number, left in zip(rows[:, NUMBER].tolist(), limits.tolist(), strict=True):
            if self.key(number) is not None:
                least = wanted.get(number, FAR)
                wanted[number] = min(least, left) if left > 0 else least
        protected = {slot for number in wanted for slot in self.pages.of(number)}
        for number, least in wanted.items():
            self._give_masks(number, least, protected, composes)

    def _give_masks(self, number: int, least: int, protected: set[int], composes: bool) -> None:
        """Bring the masks of a state for at least ``least`` tokens left, and for no limit."""
        record, key = self._records[number], self.key(number)
        assert key is not None
        index, state = key
        source = self.sources[index]
        self._dirty.add(number)
        if record[DISTANCE] == FAR:
            composed = composes and self.open[index] == 0
            slot = self.pages.take(number, None if composed else source.mask(state), protected)
            if composed:
                self.fresh.append((number, self.pages.row(slot)))
            record[MASK] = self.pages.mask(slot)
            if self._limits:
                self._set_layers(number, [(FAR - 1, int(record[MASK]))])
            record[DISTANCE] = FAR - 1 if self._limits else 0
        if least <= record[DISTANCE]:
            enough = source.enough(state, least)
            if enough is not None:
                self._set_layers(number, [(enough - 1, int(record[MASK]))])
                record[DISTANCE] = enough - 1
                return
            layers = []
            for distance, words in source.layers(state):
                slot = self.pages.take(number, words, protected)
                layers.append((min(distance, FAR - 1), self.pages.mask(slot)))
            self._set_layers(number, layers)
            record[DISTANCE] = 0

    def _set_layers(self, number: int, layers: list[tuple[int, int]]) -> None:
        record = self._records[number]
        record[LAYERS_BEGIN], record[LAYERS_END] = self.pages.layered(number, layers)
        self.steps = max(self.steps, len(layers).bit_length())

    # --- the device ---------------------------------------------------------------------------------------

    def write(self) -> None:
        """Copy what has changed to the device."""
        for number in self.pages.voided:
            self._records[number, [MASK, LAYERS_BEGIN, LAYERS_END]] = 0
            self._records[number, DISTANCE] = FAR
            self._dirty.add(number)
        self.pages.voided.clear()
        t = self._pool.tables()
        if self._dirty:
            changed = np.array(sorted(self._dirty))
            places = torch.from_numpy(changed).to(t.states.device)
            rows = t.table[_WIDTH : (len(self._records) - 1) * _WIDTH].view(-1, _WIDTH)
            rows.index_copy_(0, places - 2, torch.from_numpy(self._arcs[changed]).to(t.states.device))
            t.states.index_copy_(0, places, torch.from_numpy(self._records[changed]).to(t.states.device))
            self._dirty.clear()
        self.pages.write(t)
