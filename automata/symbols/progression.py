"""Formulas of linear temporal logic on finite traces, and what remains of one after a letter has been read.

The idea: progression (Bacchus, Kabanza, "Using temporal logics to express search control knowledge for planning",
2000; for finite traces De Giacomo, Vardi, "Linear temporal logic and linear dynamic logic on finite traces", IJCAI
2013). A state of the automaton is a formula about the rest of the trace; reading a letter rewrites it:

    d(X f) = f and more          d(f U g) = d(g) or  (d(f) and f U g)
    d(N f) = f or end            d(f R g) = d(g) and (d(f) or  f R g)

Letters exclude each other, so a propositional formula at one place *is* a set of letters. *END*, the place after
the last letter, is one more letter of these sets: ``a`` is the set {a}, ``not a`` all letters and END, ``end``
{END}, ``more`` all letters. So each formula has a meaning on the empty trace too, and negation is complement
everywhere.

Data. Formulas are numbers of hash-consed nodes in negation normal form; operands have smaller numbers, so passes in
ascending order replace recursion. The remainder after a letter is a *sum*: a disjunction of clauses, each with a
set of letters for the next place and a bit set of *obligations* (nodes X, N, U, R), without clauses that imply
others. A state is one clause and a set of sums that could not be merged into it, all of which must hold. So
conjunctions, of which specifications consist, are never multiplied out.

Invariant: there are finitely many obligations, hence finitely many states: at most 2^(2^n) for n obligations, which
is unavoidable. Cost of a step: linear in the obligations of the state that change; for sums quadratic in their
clauses.

Rejected: the translation to monadic logic and MONA (a process, a program to install, and a bit for each symbol
although symbols exclude each other); binary decision diagrams over obligations, which are canonical while the
states here are not, but minimization follows in any case.
"""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Iterable, Iterator

from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

ATOM, NEXT, WEAK_NEXT, UNTIL, RELEASE, AND, OR = range(7)

Clause = tuple[int, int]
"""The letters that are possible at the next place (bits), and obligations (bits)."""

Sum = frozenset[Clause]
"""A disjunction of clauses; empty: false."""

State = tuple[int, int, frozenset[Sum]]
"""Letters and obligations that must hold, and sums that must hold in addition."""

FALSE_STATE: State = (0, 0, frozenset())

Formula = tuple[int, int]
"""A formula and its negation, both in negation normal form."""

_POSITIONS = 16
"""The cost of a clause in memory."""


class Formulas:
    """Formulas over any letters, and their progression.

    Letters are numbered from 1. A set of letters is an int: bit k is letter k, bit 0 is END, and all high bits are
    equal, for the letters that no formula distinguishes.

    Raises ``BudgetExceeded`` if a sum has too many clauses, each of which counts as ``_POSITIONS`` of
    ``budget.positions``, and after ``budget.seconds``.
    """

    end, more, everything = 1, ~1, -1

    def __init__(self, budget: Budget) -> None:
        self.budget = budget
        self._deadline = time.monotonic() + budget.seconds
        self._nodes: list[tuple[int, tuple[int, ...]]] = []
        self._numbers: dict[tuple[int, tuple[int, ...]], int] = {}
        self.false, self.true = self._atom(0), self._atom(self.everything)
        self._true_sum: Sum = frozenset({(self.everything, 0)})
        self._sums: dict[int, Sum] = {}
        self._bit: dict[int, int] = {}
        self._obligations: list[int] = []
        self._holds_at_end = 0
        self._after: defaultdict[int, dict[int, Sum]] = defaultdict(dict)
        # By letter: remainders of obligations, and the sets of known, violated, fulfilled and unchanged ones.
        self._left: defaultdict[int, dict[int, Sum]] = defaultdict(dict)
        self._known: defaultdict[int, int] = defaultdict(int)
        self._violated: defaultdict[int, int] = defaultdict(int)
        self._fulfilled: defaultdict[int, int] = defaultdict(int)
        self._unchanged: defaultdict[int, int] = defaultdict(int)

    # --- making formulas ----------------------------------------------------------------------------------

    def letters(self, bits: int) -> Formula:
        """One of the letters ``bits`` is at this place, or, with the bit ``end``, the trace has ended."""
        return self._atom(bits), self._atom(~bits)

    def conjunction(self, parts: Iterable[Formula]) -> Formula:
        """All of the parts."""
        given = list(parts)
        return self._joined(AND, [f for f, _ in given]), self._joined(OR, [f for _, f in given])

    def disjunction(self, parts: Iterable[Formula]) -> Formula:
        """At least one of the parts."""
        return negated(self.conjunction(map(negated, parts)))

    def next(self, part: Formula) -> Formula:
        """There is a next place, and ``part`` holds there."""
        return self._next(NEXT, part[0]), self._next(WEAK_NEXT, part[1])

    def until(self, left: Formula, right: Formula) -> Formula:
        """``right`` holds at some place from here on, and ``left`` at all places before that one."""
        return self._until(UNTIL, left[0], right[0]), self._until(RELEASE, left[1], right[1])

    def conjuncts(self, formula: Formula) -> tuple[int, ...]:
        """The parts of a conjunction, as node numbers."""
        kind, parts = self._nodes[formula[0]]
        return parts if kind == AND else (formula[0],)

    def _node(self, kind: int, parts: tuple[int, ...]) -> int:
        key = (kind, parts)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._nodes)
            self._nodes.append(key)
        return number

    def _atom(self, bits: int) -> int:
        return self._node(ATOM, (bits,))

    def _joined(self, kind: int, parts: list[int]) -> int:
        neutral, dominant = (self.true, self.false) if kind == AND else (self.false, self.true)
        bits = self._nodes[neutral][1][0]
        rest: set[int] = set()
        for part in parts:
            inner, operands = self._nodes[part]
            for each in operands if inner == kind else (part,):
                each_kind, value = self._nodes[each]
                if each_kind == ATOM:
                    bits = bits & value[0] if kind == AND else bits | value[0]
                else:
                    rest.add(each)
        atom = self._atom(bits)
        if atom == dominant:
            return dominant
        if atom != neutral:
            rest.add(atom)
        if len(rest) < 2:
            return rest.pop() if rest else neutral
        return self._node(kind, tuple(sorted(rest)))

    def _next(self, kind: int, part: int) -> int:
        dominant = self.false if kind == NEXT else self.true
        return dominant if part == dominant else self._node(kind, (part,))

    def _until(self, kind: int, left: int, right: int) -> int:
        """``left U right``, or the dual ``left R right``; constants are folded, and G is distributed."""
        absorbing, idle, guard, join = (
            (self.false, self.true, self._atom(self.more), AND)
            if kind == UNTIL
            else (self.true, self.false, self._atom(self.end), OR)
        )
        if right == absorbing:
            return absorbing
        if right == idle:
            return guard
        if left == absorbing:
            return self._joined(join, [right, guard])
        if left == idle:
            inner, operands = self._nodes[right]
            if inner == kind and operands[0] == idle:
                return right
            if kind == RELEASE and inner == AND:  # keeps the parts separate
                return self._joined(AND, [self._until(kind, left, part) for part in operands])
        return self._node(kind, (left, right))

    # --- sums ---------------------------------------------------------------------------------------------

    def _reduced(self, clauses: Iterable[Clause]) -> Sum:
        """The clauses without those that imply others; clauses with equal obligations are combined."""
        by_mask: dict[int, int] = {}
        for bits, mask in clauses:
            if bits:
                by_mask[mask] = by_mask.get(mask, 0) | bits
        if len(by_mask) < 2:
            return frozenset((bits, mask) for mask, bits in by_mask.items())
        self._charge(len(by_mask))
        kept: list[Clause] = []
        for mask in sorted(by_mask, key=int.bit_count):
            self.check_time()
            bits = by_mask[mask]
            for weaker, other in kept:
                if other & mask == other:
                    bits &= ~weaker
                    if not bits:
                        break
            else:
                kept.append((bits, mask))
        return frozenset(kept)

    def _product(self, left: Sum, right: Sum) -> Sum:
        if not left or right is self._true_sum:
            return left
        if not right or left is self._true_sum:
            return right
        self._charge(len(left) * len(right))
        return self._reduced((a & b, m | n) for a, m in left for b, n in right)

    def _combined(self, kind: int, parts: Iterable[Sum]) -> Sum:
        """The conjunction or disjunction of sums."""
        if kind == OR:
            some = [part for part in parts if part]
            if len(some) == 1 or self._true_sum in some:
                return some[0] if len(some) == 1 else self._true_sum
            return self._reduced(clause for part in some for clause in part)
        result = self._true_sum
        for part in parts:
            result = self._product(result, part)
        return result

    def _sum(self, root: int) -> Sum:
        """A formula as a sum of obligations."""
        for node in self._pending(root, self._sums, (AND, OR)):
            kind, parts = self._nodes[node]
            if kind == ATOM:
                found = frozenset({(parts[0], 0)}) if parts[0] else frozenset()
                self._sums[node] = self._true_sum if node == self.true else found
            elif kind in (AND, OR):
                self._sums[node] = self._combined(kind, [self._sums[part] for part in parts])
            else:
                self._sums[node] = self._obligation(node)
        return self._sums[root]

    def _obligation(self, node: int) -> Sum:
        """The sum with this node as its only obligation."""
        bit = self._bit.get(node)
        if bit is None:
            bit = self._bit[node] = 1 << len(self._obligations)
            self._obligations.append(node)
            if self._nodes[node][0] in (WEAK_NEXT, RELEASE):
                self._holds_at_end |= bit
        return frozenset({(self.everything, bit)})

    def _pending(self, root: int, done: dict[int, Sum], through: tuple[int, ...]) -> list[int]:
        """The nodes below ``root`` that are not done, operands first; only nodes of the kinds ``through`` are
        descended into.
        """
        if root in done:
            return []
        found, stack = {root}, [root]
        while stack:
            kind, parts = self._nodes[stack.pop()]
            if kind in through:
                for part in parts:
                    if part not in found and part not in done:
                        found.add(part)
                        stack.append(part)
        return sorted(found)

    # --- progression --------------------------------------------------------------------------------------

    def _progressed(self, root: int, letter: int) -> Sum:
        """The remainder of a node after ``letter``."""
        done = self._after[letter]
        for node in self._pending(root, done, (AND, OR, UNTIL, RELEASE)):
            kind, parts = self._nodes[node]
            if kind == ATOM:
                done[node] = self._true_sum if parts[0] >> letter & 1 else frozenset()
            elif kind in (AND, OR):
                done[node] = self._combined(kind, [done[part] for part in parts])
            elif kind in (NEXT, WEAK_NEXT):
                after = self._sum(parts[0])
                if self._may_end(after) and kind == NEXT:
                    after = self._reduced((bits & self.more, mask) for bits, mask in after)
                elif not self._may_end(after) and kind == WEAK_NEXT:
                    after = self._reduced([*after, (self.end, 0)])
                done[node] = after
            else:
                again, left, right = self._obligation(node), done[parts[0]], done[parts[1]]
                if kind == UNTIL:
                    done[node] = self._combined(OR, [right, self._product(left, again)])
                else:
                    done[node] = self._product(right, self._combined(OR, [left, again]))
        return done[root]

    def _learn(self, mask: int, letter: int) -> None:
        """Compute the remainders of obligations after a letter."""
        for bit in _bits(mask & ~self._known[letter]):
            left = self._progressed(self._obligations[bit.bit_length() - 1], letter)
            self._left[letter][bit] = left
            if not left:
                self._violated[letter] |= bit
            elif left == self._true_sum:
                self._fulfilled[letter] |= bit
            elif left == frozenset({(self.everything, bit)}):
                self._unchanged[letter] |= bit
        self._known[letter] |= mask

    def _each(self, mask: int, letter: int) -> list[Sum] | None:
        """The remainders of the obligations, without those that are fulfilled; ``None`` if one is violated."""
        if mask & ~self._known[letter]:
            self._learn(mask, letter)
        if mask & self._violated[letter]:
            return None
        left = self._left[letter]
        idle = mask & self._unchanged[letter]
        parts = [left[bit] for bit in _bits(mask & ~idle & ~self._fulfilled[letter])]
        return [*parts, frozenset({(self.everything, idle)})] if idle else parts

    def start(self, parts: Iterable[int]) -> State:
        """The state in which all of these nodes must hold for the whole trace."""
        return self._state(map(self._sum, parts))

    def step(self, state: State, letter: int) -> State:
        """The condition on the rest of the trace after ``letter``; ``FALSE_STATE`` if it is unsatisfiable."""
        bits, mask, sums = state
        if not bits >> letter & 1:
            return FALSE_STATE
        left = self._each(mask, letter)
        if left is None:
            return FALSE_STATE
        for alternatives in sums:
            clauses: list[Clause] = []
            for needed, obligations in alternatives:
                if needed >> letter & 1 and (parts := self._each(obligations, letter)) is not None:
                    clauses += self._combined(AND, parts)
            left.append(self._reduced(clauses))
        return self._state(left)

    def _state(self, parts: Iterable[Sum]) -> State:
        """The conjunction of all parts: single clauses are merged, and the sums are simplified by them."""
        bits, mask = self.everything, 0
        todo, sums = list(parts), set[Sum]()
        if frozenset() in todo:
            return FALSE_STATE
        while todo:
            for part in todo:
                if len(part) == 1:
                    ((needed, obligations),) = part
                    bits, mask = bits & needed, mask | obligations
                else:
                    sums.add(part)
            todo = []
            for part in list(sums):
                possible = frozenset((needed, also) for needed, also in part if bits & needed)
                if any(bits & needed == bits and mask & also == also for needed, also in possible):
                    sums.discard(part)
                elif len(possible) < len(part):
                    sums.discard(part)
                    todo.append(possible)
            if not bits or frozenset() in todo:
                return FALSE_STATE
        return bits, mask, frozenset(sums)

    def ends(self, state: State) -> bool:
        """Whether the trace may end in this state."""
        bits, mask, sums = state
        return self._may_end([(bits, mask)]) and all(map(self._may_end, sums))

    def _may_end(self, clauses: Iterable[Clause]) -> bool:
        """Whether some clause holds at the end of the trace."""
        return any(bits & self.end and not mask & ~self._holds_at_end for bits, mask in clauses)

    def _charge(self, clauses: int) -> None:
        if clauses * _POSITIONS > self.budget.positions:
            raise BudgetExceeded("positions", self.budget.positions, "the alternatives of a temporal formula")

    def check_time(self) -> None:
        """Raise ``BudgetExceeded`` after the budget's seconds."""
        if time.monotonic() > self._deadline:
            raise BudgetExceeded("seconds", self.budget.seconds, "the automaton of a temporal formula")


def negated(formula: Formula) -> Formula:
    """The formula that holds where this one does not."""
    return formula[1], formula[0]


def _bits(mask: int) -> Iterator[int]:
    """The single bits of a set, ascending."""
    while mask:
        bit = mask & -mask
        mask ^= bit
        yield bit
