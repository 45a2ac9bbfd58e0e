"""Capture readings compiled to instructions for a machine that follows all parses in parallel, in order of preference.

It is Pike's machine, with a stack for rules. Counted repetitions are expanded, bounded by ``Budget.positions``. For a
body that may be empty, an instruction records the start of each repetition, because Python does not repeat a body after
an empty match.

Rejected: counters in the state of a thread, which avoid the copies but create as many states.
"""

from __future__ import annotations

from typing import NamedTuple

import tokenfst._native as _native
from tokenfst.automata.captures.trees import (
    Call,
    Choice,
    Group,
    HasProgram,
    Leaf,
    Reading,
    Repeat,
    Sequence,
    Temperature,
    Tree,
    has_temperature,
)
from tokenfst.automata.expressions.expression import Expr, TokenName
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.expressions.program import linearize
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError


class Read(NamedTuple):
    """Read a word of a leaf, then continue at ``then``. ``longest``: whether longer words are preferred."""

    leaf: int
    longest: bool
    then: int


class ReadToken(NamedTuple):
    """Read one token of a token name, which has no bytes, then continue at ``then``."""

    name: TokenName
    then: int


class Split(NamedTuple):
    """Continue at each of ``ways`` with a thread of its own, in order of preference."""

    ways: tuple[int, ...]


class Save(NamedTuple):
    """Save the position as a start (``begins``) or an end, then continue at ``then``.

    ``name``: of a group, or the temperature in its place, or the number of a leaf that is parsed again.
    """

    name: str | int | Temperature
    begins: bool
    then: int


class Enter(NamedTuple):
    """Enter a rule, and continue at ``back`` after it; ``back`` is -1 for a tail call."""

    rule: str
    back: int


class Begin(NamedTuple):
    """Record that a repetition of a body that may be empty begins here."""

    bit: int
    then: int


class Check(NamedTuple):
    """The end of such a repetition: continue at ``on``, or at ``out`` if the body was empty."""

    bit: int
    on: int
    out: int


class Leave(NamedTuple):
    """Return from a rule to the instruction after its call."""


class Accept(NamedTuple):
    """Accept: the text is complete."""


Instruction = Read | ReadToken | Split | Save | Enter | Begin | Check | Leave | Accept
ACCEPT, LEAVE = 0, 1
_WHERE = "the repetitions around named groups"


class Code:
    """The instructions of a reading.

    ``leaves``: the automaton of each leaf. ``inner``: the code of each reading by which a leaf is parsed again, by the
    number that ``Save`` has for the leaf. ``entry``: the first instruction of each rule; ``start``: that of the text.
    ``counting``: leaves that count tokens. Immutable; shared by threads.
    """

    def __init__(self, reading: Reading, budget: Budget) -> None:
        self.budget, self.reading = budget, reading
        self.has_temperature = has_temperature(reading.start, reading.rules)
        self.instructions: list[Instruction] = [Accept(), Leave()]
        self.leaves: list[_native.ByteAutomaton] = []
        self.inner: list[list[Code]] = []
        self.entry: dict[str, int] = {}
        self.ignored: dict[str, int] = {}
        self.counting: set[int] = set()
        self._bits = 0
        self._numbers: dict[int, int] = {}
        self._empty: dict[int, bool] = {}
        self._deadline = Deadline(budget, _WHERE)
        self.start = self._emit(reading.start, ACCEPT)
        waiting = True
        while waiting:
            called = {each.rule for each in self.instructions if isinstance(each, Enter)}
            waiting = bool(called - self.entry.keys())
            for rule in sorted(called - self.entry.keys()):
                self.entry[rule] = self._emit(reading.rules[rule], LEAVE)

    def _add(self, instruction: Instruction) -> int:
        self._deadline.tick()
        if len(self.instructions) > self.budget.positions:
            raise BudgetExceeded("positions", self.budget.positions, _WHERE)
        self.instructions.append(instruction)
        return len(self.instructions) - 1

    def _emit(self, tree: Tree, then: int) -> int:
        """The first instruction of a tree that is followed by ``then``."""
        match tree:
            case Leaf():
                return self._leaf(tree, then)
            case Sequence():
                for part in reversed(tree.parts):
                    then = self._emit(part, then)
                return then
            case Choice():
                return self._add(Split(tuple(self._emit(part, then) for part in tree.parts)))
            case Group():
                if tree.ignored is not None and isinstance(tree.name, str):
                    self.ignored[tree.name] = self._number(tree.ignored)
                end = self._add(Save(tree.name, False, then))
                return self._add(Save(tree.name, True, self._emit(tree.part, end)))
            case Call():
                return self._add(Enter(tree.rule, -1 if then == LEAVE else then))
            case Repeat():
                return self._repeat(tree, then)

    def _leaf(self, leaf: Leaf, then: int) -> int:
        if isinstance(leaf.words, Expr) and isinstance(leaf.words.value, TokenName):
            return self._add(ReadToken(leaf.words.value, then))
        number = self._number(leaf)
        if not leaf.inner:
            return self._add(Read(number, leaf.longest, then))
        self.inner.append([Code(reading, self.budget) for reading in leaf.inner])
        own = len(self.inner) - 1
        end = self._add(Save(own, False, then))
        return self._add(Save(own, True, self._add(Read(number, leaf.longest, end))))

    def _number(self, leaf: Leaf) -> int:
        """The number of a leaf's automaton."""
        number = self._numbers.get(id(leaf.words))
        if number is None:
            words: Expr | HasProgram = leaf.words
            program = linearize(words) if isinstance(words, Expr) else words.program()
            if program.is_token_level and not program.only_counts_tokens:
                raise ConstraintError(
                    "captures beside tokens are told where special tokens stand by themselves, and not inside of "
                    "intersections, repetitions without a name that hold them, or beside one_token()"
                )
            bounds = self.budget.states, self.budget.bytes, self.budget.seconds
            self.leaves.append(
                _native.ByteAutomaton(program.native([] if program.is_token_level else None), *bounds)
            )
            number = self._numbers[id(words)] = len(self.leaves) - 1
            if program.is_token_level:
                self.counting.add(number)
        return number

    def _repeat(self, tree: Repeat, then: int) -> int:
        onward = then
        if tree.high is None:
            onward = self._add(Split(()))
            ways = self._once(tree.part, onward, then), then
            self.instructions[onward] = Split(ways if tree.greedy else ways[::-1])
        else:
            for _ in range(tree.high - tree.low):
                ways = self._once(tree.part, onward, then), then
                onward = self._add(Split(ways if tree.greedy else ways[::-1]))
        for _ in range(tree.low):
            onward = self._emit(tree.part, onward)
        return onward

    def _once(self, part: Tree, onward: int, out: int) -> int:
        """A word of an optional body. After an empty one no other is read."""
        if not self._may_be_empty(part):
            return self._emit(part, onward)
        self._bits += 1
        bit = 1 << self._bits
        return self._add(Begin(bit, self._emit(part, self._add(Check(bit, onward, out)))))

    def _may_be_empty(self, tree: Tree) -> bool:
        """Whether a tree may have the empty word; rules are assumed to have it."""
        match tree:
            case Leaf():
                if isinstance(tree.words, Expr) and isinstance(tree.words.value, TokenName):
                    return False
                number = self._number(tree)
                if number not in self._empty:
                    self._empty[number] = self.leaves[number].accepts(b"")
                return self._empty[number]
            case Sequence():
                return all(map(self._may_be_empty, tree.parts))
            case Choice():
                return any(map(self._may_be_empty, tree.parts))
            case Repeat():
                return tree.low == 0 or self._may_be_empty(tree.part)
            case Group():
                return self._may_be_empty(tree.part)
            case Call():
                return True
