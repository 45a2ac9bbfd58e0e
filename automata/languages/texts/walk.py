"""``Walk``: counting and enumerating the texts of an automaton, and unranking (the text with a given number).

A text leads a lazily determinized automaton to one configuration, with or without stacks, however ambiguous it is. So
the paths of ``Walk`` correspond to texts, and counting paths counts texts, not derivations. Acceptance can be reached
from every configuration. A text of n bytes is a path of n arcs, so counts are indexed by a configuration and the number
of remaining bytes (``ways``). With stacks there are infinitely many configurations; those that need more bytes than
remain are skipped (``least``).

Invariant: counts are exact integers, and depend on the language only. Cost: configurations × lengths; with nested
stacks there may be as many configurations as texts (two kinds of brackets: 2^(n/2) for n bytes). The budget's states
bound them, its seconds each query.

Rejected: counting derivations by convolution, which is fast, but wrong for ambiguous grammars, and ambiguity is
undecidable.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import tokenfst._native as _native
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

Arcs = list[tuple[int, bytes]]
"""For a configuration: the next configurations, ascending and distinct, each with its bytes."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The number of texts: ``total``, and ``by_length[n]`` for n bytes."""

    total: int
    by_length: tuple[int, ...]


_BYTES_OF_ENTRY = 120
"""Approximate memory of a table entry."""


class Walk:
    """The configurations of an automaton by number. Not thread-safe."""

    def __init__(self, automaton: _native.ByteAutomaton, budget: Budget, purpose: str) -> None:
        """``purpose``: what an error of the budget names. A walk does not check that strings differ where they must; if
        there are such strings, callers test each text with ``accepts``.
        """
        self._native = _native.ByteWalk(automaton)
        self.start = 0 if len(self._native) else None
        """The first configuration; ``None`` if there is no text."""
        self.budget, self.purpose = budget, purpose
        self.deadline = Deadline(budget, purpose)
        self.accepting = self._native.accepting
        self.least = self._native.least
        self._arcs: dict[int, Arcs] = {}
        self._ways: list[dict[int, int]] = []
        self._completes: dict[tuple[int, int], bool] = {}

    def begin(self) -> None:
        """Start a query: its time is counted from here."""
        self.deadline = Deadline(self.budget, self.purpose)

    def hold(self, entries: int) -> None:
        """Raise BudgetExceeded("bytes") if this number of table entries exceeds the budget."""
        if entries * _BYTES_OF_ENTRY > self.budget.bytes:
            raise BudgetExceeded("bytes", self.budget.bytes, self.purpose)

    def arcs(self, at: int) -> Arcs:
        """The successors of a configuration."""
        found = self._arcs.get(at)
        if found is None:
            self.deadline.tick(20)
            found = self._arcs[at] = self._native.arcs(at)
        return found

    def run(self, text: bytes) -> int | None:
        """The configuration after a text; ``None`` if no text of the language starts with it."""
        at = self.start
        for byte in text:
            if at is None:
                break
            at = self.step(at, byte)
        return at

    def step(self, at: int, byte: int) -> int | None:
        """The configuration after a byte; ``None`` if there is none."""
        self.deadline.tick(2)
        found = self._native.advance(at, byte)
        return None if found < 0 else found

    # --- how many -------------------------------------------------------------------------------------

    def counts(self, longest: int | None) -> Counts:
        """The number of texts of 0 to ``longest`` bytes; ``None``: of all lengths, if there are finitely many."""
        found: list[int] = []
        here = {} if self.start is None else {self.start: 1}
        while here or (longest is not None and len(found) <= longest):
            self.deadline.tick()
            self.hold(len(found))
            found.append(sum(number for at, number in here.items() if self.accepting(at)))
            if longest is not None and len(found) > longest:
                break
            onward: dict[int, int] = {}
            for at, number in here.items():
                for target, bytes_ in self.arcs(at):
                    self.deadline.tick()
                    onward[target] = onward.get(target, 0) + number * len(bytes_)
            if longest is not None:
                left = longest - len(found)
                onward = {at: number for at, number in onward.items() if self.least(at) <= left}
            here = onward
        return Counts(sum(found), tuple(found))

    def ways(self, at: int, left: int) -> int:
        """The number of texts of ``left`` bytes that lead from a configuration to acceptance."""
        known = self._ways
        self.hold(left)
        while len(known) <= left:
            self.deadline.tick()
            known.append({})
        layers = [{at} if at not in known[left] else set()]
        for length in range(left, 0, -1):
            self.deadline.tick()
            onward: set[int] = set()
            for each in layers[-1]:
                for target, _ in self.arcs(each):
                    self.deadline.tick()
                    if target not in known[length - 1] and self.least(target) < length:
                        onward.add(target)
            layers.append(onward)
        for length, layer in enumerate(reversed(layers)):
            if length == 0:
                known[0].update((each, int(self.accepting(each))) for each in layer)
                continue
            below = known[length - 1]
            for each in layer:
                self.deadline.tick(2)
                known[length][each] = sum(
                    below.get(target, 0) * len(bytes_) for target, bytes_ in self.arcs(each)
                )
        return known[left][at]

    # --- which ----------------------------------------------------------------------------------------

    def text_at(self, length: int, place: int) -> bytes:
        """The text of ``length`` bytes with rank ``place`` in a fixed order."""
        assert self.start is not None
        at, text = self.start, bytearray()
        self.ways(at, length)
        for left in range(length - 1, -1, -1):
            known = self._ways[left]
            for target, bytes_ in self.arcs(at):
                each = known.get(target, 0)
                if place < each * len(bytes_):
                    byte, place = divmod(place, each)
                    text.append(bytes_[byte])
                    at = target
                    break
                place -= each * len(bytes_)
        return bytes(text)

    def completes(self, at: int, left: int) -> bool:
        """Whether some text of ``left`` bytes leads to acceptance. Visits no more than necessary."""
        known = self._completes
        stack = [(at, left)]
        while stack:
            key = stack[-1]
            if key in known:
                stack.pop()
                continue
            self.deadline.tick(2)
            self.hold(len(stack) + len(known))
            here, length = key
            if length == 0 or self.least(here) > length:
                known[key] = length == 0 and self.accepting(here)
                continue
            found: bool | None = False
            for target, _ in self.arcs(here):
                found = known.get((target, length - 1))
                if found is None:
                    stack.append((target, length - 1))
                if found is not False:
                    break
            if found is not None:
                known[key] = found
        return known[at, left]

    def of_length(self, length: int) -> Iterator[bytes]:
        """All texts of ``length`` bytes, in byte order."""
        if self.start is None or not self.completes(self.start, length):
            return
        if length == 0:
            yield b""
            return
        text = bytearray()
        levels = [iter(self._steps(self.start))]
        while levels:
            left = length - len(levels)
            step = next((step for step in levels[-1] if self.completes(step[1], left)), None)
            if step is None:
                levels.pop()
                if text:
                    text.pop()
                continue
            text.append(step[0])
            if left == 0:
                yield bytes(text)
                text.pop()
            else:
                levels.append(iter(self._steps(step[1])))

    def _steps(self, at: int) -> list[tuple[int, int]]:
        """The bytes that lead on, ascending, and where to."""
        return sorted((byte, target) for target, bytes_ in self.arcs(at) for byte in bytes_)

    def completion(self, at: int) -> bytes:
        """The shortest completion, of several the least in byte order."""
        way = bytearray()
        for left in range(self._distance(at) - 1, -1, -1):
            byte, at = next(step for step in self._steps(at) if self.completes(step[1], left))
            way.append(byte)
        return bytes(way)

    def _distance(self, at: int) -> int:
        """The bytes of a shortest way to acceptance: best first, by the least that is missing."""
        seen = {at: 0}
        queue: list[tuple[int, int, int]] = [(self.least(at), 0, at)]
        while True:
            _, length, here = heapq.heappop(queue)
            if self.accepting(here):
                return length
            if length > seen[here]:
                continue
            for target, _ in self.arcs(here):
                if length + 1 < seen.get(target, length + 2):
                    seen[target] = length + 1
                    heapq.heappush(queue, (length + 1 + self.least(target), length + 1, target))

    def is_finite(self) -> bool:
        """Whether there are finitely many texts: the graph has no cycle. Visits all configurations, so it is for
        automata without stacks.
        """
        open_: set[int] = set()
        done: set[int] = set()
        stack: list[tuple[int, Iterator[tuple[int, bytes]]]] = []
        if self.start is not None:
            open_.add(self.start)
            stack.append((self.start, iter(self.arcs(self.start))))
        while stack:
            at, onward = stack[-1]
            for target, _ in onward:
                if target in open_:
                    return False
                if target not in done:
                    open_.add(target)
                    stack.append((target, iter(self.arcs(target))))
                    break
            else:
                stack.pop()
                open_.discard(at)
                done.add(at)
        return True


def texts(walk: Walk, endless: bool, accepts: Callable[[bytes], bool] | None = None) -> Iterator[bytes]:
    """All texts that ``accepts`` accepts, shorter ones first, in byte order within a length.

    ``endless``: the language is known to be infinite; otherwise the end is searched for. Each text has the seconds of
    the budget.
    """
    here = set() if walk.start is None else {walk.start}
    length = 0
    while here:
        for text in walk.of_length(length):
            if accepts is None or accepts(text):
                yield text
                walk.begin()
        if not endless:
            here = {target for at in here for target, _ in walk.arcs(at)}
        length += 1


def below(generator: Any, limit: int) -> int:
    """A uniform random number from 0 to ``limit`` - 1, from a ``random.Random`` or numpy's ``Generator``."""
    size = (limit.bit_length() + 7) // 8
    draw = generator.randbytes if hasattr(generator, "randbytes") else generator.bytes
    while True:
        found = int.from_bytes(draw(size), "little") & ((1 << limit.bit_length()) - 1)
        if found < limit:
            return found
