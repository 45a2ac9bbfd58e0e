"""``Run``: execution of a capture reading's instructions on a text, byte by byte.

All parses of the text so far are followed in parallel, in order of preference (Pike; Thompson, "Regular Expression
Search Algorithm", 1968; Cox, "Regular Expression Matching: the Virtual Machine Approach", 2009). A thread is an
instruction that waits for a byte, a state in its leaf, a stack of rules, and the saved positions so far. Of two threads
that differ only in their saved positions the first is kept: both have the same continuations, and the first thread
would be preferred after each of them.

Invariant: every thread can be completed to some text, so the first one is the preferred parse as far as known. Saved
positions that all threads share are final: no continuation can change them.

Cost: threads × bytes; there are few threads unless the text is ambiguous. Threads with different stacks are never
merged, so an ambiguous grammar can have very many: ``Budget.states`` bounds them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import tokenfst._native as _native
from tokenfst.automata.captures.code import (
    Accept,
    Begin,
    Check,
    Code,
    Enter,
    Instruction,
    Read,
    ReadToken,
    Save,
    Split,
)
from tokenfst.automata.captures.trees import Temperature
from tokenfst.automata.expressions.expression import TokenName
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.errors import BudgetExceeded

Saved = tuple[str | int | Temperature, bool, int, "Saved"] | None
"""The saved positions of a thread, as a linked list with the last one first: a name, whether the position is a start,
the position, and the earlier ones.
"""

_WHERE = "the ways to read a text with captures"
_Way = tuple[int, int, int, Saved]
"""A thread: an instruction that reads, a state in its leaf, a stack, and the saved positions."""
_Bits = tuple[int, "_Bits"] | None
"""Which repeated bodies of a rule began at this position, as bits; then the same for the rule that called it.

``None``: no body of these rules began here. A rule has bits of its own because it may call itself: the repetition of
the inner call is not that of the outer one.
"""
_Step = tuple[int, int, _Bits, Saved]
"""An instruction, a stack, the bodies that began at this position, and the saved positions."""


class Run:
    """The execution of a reading's instructions on one text. Not thread-safe."""

    def __init__(self, code: Code) -> None:
        self.code, self.position = code, 0
        self.ended: Saved | tuple[()] = ()
        """The saved positions of the preferred parse of the text so far as a complete text; ``()`` if there is none."""
        self._frames: list[tuple[int, int]] = [(-1, -1)]
        self._frame_numbers: dict[tuple[int, int], int] = {}
        self._walks = [_native.ByteWalk(leaf) for leaf in code.leaves]
        self._steps: list[dict[int, tuple[int, bool, bool]]] = [{} for _ in code.leaves]
        self._seen: set[tuple[int, int, _Bits]] = set()
        self._waiting: set[tuple[int, int, int]] = set()
        self._ways: list[_Way] = []
        self._follow(code.start, 0, None)

    def feed(self, data: bytes) -> None:
        """Read bytes. Raises BudgetExceeded."""
        instructions, steps = self.code.instructions, self._steps
        deadline = Deadline(
            self.code.budget, _WHERE
        )  # of this call only, because writing a text may take any time
        for byte in data:
            ways, self._ways = self._ways, []
            self._seen.clear()
            self._waiting.clear()
            self.ended = ()
            self.position += 1
            deadline.tick(2 + 4 * len(ways))
            if len(ways) > self.code.budget.states:
                raise BudgetExceeded("states", self.code.budget.states, _WHERE)
            for at, place, stack, saved in ways:
                instruction = instructions[at]
                if not isinstance(instruction, Read):
                    continue
                leaf = instruction.leaf
                step = steps[leaf].get(place << 8 | byte)
                if step is None:
                    step = steps[leaf][place << 8 | byte] = self._step(leaf, place, byte)
                to, ends, goes_on = step
                if goes_on and instruction.longest:
                    self._wait(at, to, stack, saved)
                if ends:
                    self._follow(instruction.then, stack, saved)
                if goes_on and not instruction.longest:
                    self._wait(at, to, stack, saved)

    def token(self, is_one: Callable[[TokenName], bool]) -> None:
        """Read a token without bytes. ``is_one``: a function that says whether the token belongs to a token name."""
        ways, self._ways = self._ways, []
        self._seen.clear()
        self._waiting.clear()
        self.ended = ()
        for at, _, stack, saved in ways:
            instruction = self.code.instructions[at]
            if isinstance(instruction, ReadToken) and is_one(instruction.name):
                self._follow(instruction.then, stack, saved)

    def boundary(self) -> None:
        """Read a token boundary, which matters if tokens are counted."""
        counting = self.code.counting
        if not counting or not self._ways:
            return
        ways, self._ways = self._ways, []
        self._waiting.clear()
        for at, place, stack, saved in ways:
            instruction = self.code.instructions[at]
            if isinstance(instruction, Read) and instruction.leaf in counting:
                walk = self._walks[instruction.leaf]
                place = walk.boundary(place)
                if place < 0 or not walk.arcs(place):
                    continue
            self._wait(at, place, stack, saved)

    @property
    def going_on(self) -> list[Saved]:
        """The saved positions of each thread that waits for more text, in order of preference."""
        return [way[3] for way in self._ways]

    def all_saved(self) -> list[Saved]:
        """The saved positions of each thread in order of preference. A parse of the complete text comes first."""
        ended: list[Saved] = [] if self.ended == () else [self.ended]  # type: ignore[list-item]
        return ended + self.going_on

    def _step(self, leaf: int, place: int, byte: int) -> tuple[int, bool, bool]:
        """The target of a byte in a leaf, whether a word may end there, and whether it may continue."""
        walk = self._walks[leaf]
        to = walk.advance(place, byte)
        return (to, False, False) if to < 0 else (to, walk.accepting(to), bool(walk.arcs(to)))

    def _wait(self, at: int, place: int, stack: int, saved: Saved) -> None:
        key = at, place, stack
        if key not in self._waiting:
            self._waiting.add(key)
            self._ways.append((at, place, stack, saved))

    def _follow(self, at: int, stack: int, saved: Saved) -> None:
        """Continue from an instruction to all instructions that read."""
        instructions, seen = self.code.instructions, self._seen
        todo: list[_Step] = [(at, stack, None, saved)]
        while todo:
            at, stack, bits, saved = todo.pop()
            if at < 0:  # a leaf that may be empty and prefers to be
                self._wait(-at, 0, stack, saved)
                continue
            if (at, stack, bits) in seen:
                continue
            seen.add((at, stack, bits))
            if len(seen) > self.code.budget.states:
                raise BudgetExceeded("states", self.code.budget.states, _WHERE)
            instruction = instructions[at]
            if isinstance(instruction, ReadToken):
                self._wait(at, 0, stack, saved)
            elif isinstance(instruction, Read):
                todo += self._read(at, instruction, stack, bits, saved)
            elif not isinstance(instruction, Accept):
                todo += self._next(instruction, stack, bits, saved)
            elif self.ended == ():
                self.ended = saved

    def _read(self, at: int, read: Read, stack: int, bits: _Bits, saved: Saved) -> list[_Step]:
        """Begin a leaf. Returns the instructions to continue with, last one first."""
        walk = self._walks[read.leaf]
        if not len(walk):
            return []
        ends, goes_on = walk.accepting(0), bool(walk.arcs(0))
        after = [(read.then, stack, bits, saved)] if ends else []
        if goes_on and ends and not read.longest:
            return [(-at, stack, bits, saved), *after]
        if goes_on:
            self._wait(at, 0, stack, saved)
        return after

    def _next(self, instruction: Instruction, stack: int, bits: _Bits, saved: Saved) -> list[_Step]:
        """The continuations of an instruction that reads nothing, last one first."""
        match instruction:
            case Split(ways):
                return [(way, stack, bits, saved) for way in reversed(ways)]
            case Save(name, begins, then):
                return [(then, stack, bits, (name, begins, self.position, saved))]
            case Enter(rule, back):
                entry = self.code.entry[rule]
                if back < 0:  # the caller does nothing more
                    return [(entry, stack, bits and bits[1] and (0, bits[1]), saved)]
                return [(entry, self._pushed(back, stack), bits and (0, bits), saved)]
            case Begin(bit, then):
                own, around = bits or (0, None)
                return [(then, stack, (own | bit, around), saved)]
            case Check(bit, on, out):
                return [(out if bits and bits[0] & bit else on, stack, bits, saved)]
            case _:  # the end of a rule
                back, outer = self._frames[stack]
                return [(back, outer, bits and bits[1], saved)]

    def _pushed(self, back: int, stack: int) -> int:
        key = back, stack
        number = self._frame_numbers.get(key)
        if number is None:
            self._frames.append(key)
            number = self._frame_numbers[key] = len(self._frames) - 1
        return number


Listed = list[tuple[str | int | Temperature, bool, int]]
"""Saved positions in the order in which they were made."""


def listed(saved: Saved, known: Saved = None) -> Listed | None:
    """The saved positions after ``known``, in the order in which they were made; ``None`` if ``known`` is not among
    them.
    """
    found: Listed = []
    while saved is not known:
        if saved is None:
            return None
        name, begins, place, saved = saved
        found.append((name, begins, place))
    return found[::-1]


def shared(ways: Iterable[Saved], known: Saved = None) -> Listed | None:
    """The saved positions after ``known`` with which all threads begin; ``None`` if some thread does not contain
    ``known``.
    """
    lists = [listed(saved, known) for saved in ways]
    found: Listed = []
    if any(each is None for each in lists):
        return None
    for same in zip(*(each for each in lists if each is not None), strict=False):
        if any(each != same[0] for each in same):
            break
        found.append(same[0])
    return found
