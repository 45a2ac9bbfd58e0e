"""Where the words of regular expressions lead in a deterministic automaton, and which words lead to a given state.

The idea: a leaf X of a grammar that is entered in state p of an automaton is split by the states q in which its
words end. The parallel runs of X's own automaton and of the given one form a graph of pairs of states. The ends
that a pair can reach are a set of states, stored as the bits of an int and shared by all p that reach the pair.
State 0, DEAD, counts as an end: it shows that some word of X is lost, and so whether X can be used unchanged.

Invariant: ``words(X, p, q)`` for different q are disjoint, and their union is the part of X that is not lost.

Cost: each pair of states is expanded once. X's automaton is built only up to a small number of states; a larger one
(``.{0,100000}``) is walked inside of the given automaton alone, again for each p. Rejected: asking the native core
whether X meets L(p→q) for each p and q, which is quadratic in native calls.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.expression import (
    ALL_BYTES,
    EMPTY,
    Dfa,
    Expr,
    Op,
    byte_set,
    intersect,
    machine,
    union,
)
from tokenfst.automata.expressions.tables import frozen_dfa
from tokenfst.automata.languages.engine import make_automaton, make_tables
from tokenfst.automata.rules.graph import COMPOSED
from tokenfst.budget import QUICK, Budget
from tokenfst.errors import BudgetExceeded

ACCEPTING = 0
"""As the state to end in: any accepting state. (It has the number of DEAD, which never accepts.)"""

_ATOMS = (Op.EMPTY, Op.EPSILON, Op.BYTES, Op.LITERAL)
_BITS = 4_096
"""Each set of states counts as one more pair for this number of bits."""

_DEAD = np.zeros(1, np.int64)


class LeafWalks:
    """The walks of leaves through ``dfa``. ``charge`` gets the number of pairs of states that are made."""

    def __init__(self, dfa: Dfa, budget: Budget, charge: Callable[[int], None]) -> None:
        self.dfa, self.budget, self.charge = dfa, budget, charge
        self.accepting = _bits(np.flatnonzero(dfa.accepting).tolist())
        self._after = _Closures([sorted(set(row) - {0}) for row in dfa.table.tolist()])
        sources: list[list[int]] = [[] for _ in range(dfa.num_states)]
        for state, targets in enumerate(self._after.neighbours):
            for target in targets:
                sources[target].append(state)
        self._before = _Closures(sources)
        self._rows: dict[int, list[int]] = {}
        self._leaves: dict[int, _Leaf] = {}
        self._machines: dict[tuple[int, int], Expr] = {}

    def ends(self, expr: Expr, state: int) -> int:
        """The states in which words of ``expr`` end if they begin in ``state``, as bits; bit 0 if some are lost.

        Raises BudgetExceeded for an expression that outgrows the budget within the automaton.
        """
        leaf = self._leaves.get(id(expr))
        if leaf is None:
            leaf = self._leaves[id(expr)] = _Leaf(expr)
        if state not in leaf.ends:
            leaf.ends[state] = self._find_ends(leaf, state)
        return leaf.ends[state]

    def words(self, expr: Expr, state: int, end: int) -> Expr:
        """The words of ``expr`` that lead from ``state`` to ``end``, or to ``ACCEPTING``."""
        ends = self.ends(expr, state)
        wanted = self.accepting if end == ACCEPTING else 1 << end
        if ends & wanted == 0:
            return EMPTY
        if ends & ~wanted == 0:
            return expr
        if expr.op is Op.BYTES:
            row = self._row(state)
            return byte_set(_bits(byte for byte in _bytes_of(expr) if wanted >> row[byte] & 1))
        if _is_finite(expr):
            return union(*(self.words(arg, state, end) for arg in expr.args))
        return intersect(expr, self._between(state, end))

    def leads(self, state: int, end: int) -> bool:
        """Whether some word leads from ``state`` to ``end``."""
        reached = self._after[state]
        place = int(np.searchsorted(reached, end))
        return place < len(reached) and int(reached[place]) == end

    # --- ends -----------------------------------------------------------------------------------------

    def _find_ends(self, leaf: _Leaf, state: int) -> int:
        expr = leaf.expr
        if expr.op is Op.EPSILON:
            return 1 << state
        if isinstance(expr.value, bytes):
            for byte in expr.value:
                state = self._row(state)[byte]
            return 1 << state
        if expr.op is Op.BYTES:
            row = self._row(state)
            return _bits({row[byte] for byte in _bytes_of(expr)})
        if _is_finite(expr):
            ends = 0
            for arg in expr.args:
                ends |= self.ends(arg, state)
            return ends
        row = self._row(state)
        if all(row[byte] == state for byte in leaf.alphabet):
            return 1 << state if leaf.has_words(self.budget) else 0
        pairs = leaf.pairs(self.dfa, self.budget)
        if pairs is not None:
            return pairs.ends(state, self.charge)
        inside = intersect(expr, self._between(state, None))
        return _Pairs(make_tables(make_automaton(inside, self.budget)), self.dfa).ends(state, self.charge) | 1

    def _row(self, state: int) -> list[int]:
        """The target of each byte."""
        if state not in self._rows:
            self._rows[state] = self.dfa.table[state][self.dfa.classes].tolist()
        return self._rows[state]

    def _between(self, state: int, end: int | None) -> Expr:
        """The words that lead from ``state`` to ``end``, to ACCEPTING, or (``None``) anywhere but DEAD.

        The result is trim without a further search: only states are kept that ``state`` reaches and that reach
        ``end``.
        """
        key = (state, -1 if end is None else end)
        if key not in self._machines:
            kept = self._after[state]
            if end:
                kept = np.intersect1d(kept, self._before[end], assume_unique=True)
            kept = np.concatenate((_DEAD, kept))
            accepting = self.dfa.accepting[kept] if end == ACCEPTING else kept == end
            if end is None:
                accepting = kept > 0
            targets = self.dfa.table[kept]
            number = np.minimum(np.searchsorted(kept, targets), len(kept) - 1)
            table = np.where(kept[number] == targets, number, 0).astype(np.uint32)
            start = int(np.searchsorted(kept, state))
            self._machines[key] = machine(frozen_dfa(self.dfa.classes, table, accepting, start))
        return self._machines[key]


class _Closures:
    """The states that each state reaches along ``regex.conditions``, including itself, in ascending order; computed
    on demand.
    """

    def __init__(self, neighbours: list[list[int]]) -> None:
        self.neighbours = neighbours
        self._found: dict[int, npt.NDArray[np.int64]] = {}

    def __getitem__(self, state: int) -> npt.NDArray[np.int64]:
        if state not in self._found:
            reached = {state}
            stack = [state]
            while stack:
                for target in self.neighbours[stack.pop()]:
                    if target not in reached:
                        reached.add(target)
                        stack.append(target)
            self._found[state] = np.array(sorted(reached), np.int64)
        return self._found[state]


@dataclass(slots=True, eq=False)
class _Leaf:
    """The known facts about one expression."""

    expr: Expr
    ends: dict[int, int] = field(default_factory=dict)
    _alphabet: list[int] | None = None
    _nonempty: bool | None = None
    _pairs: _Pairs | None = None
    _too_large: bool = False

    @property
    def alphabet(self) -> list[int]:
        """A set of bytes that contains all bytes of its words."""
        if self._alphabet is None:
            self._alphabet = _used_bytes(self.expr)
        return self._alphabet

    def has_words(self, budget: Budget) -> bool:
        """Whether there is any word."""
        if self._nonempty is None:
            self._nonempty = make_automaton(self.expr, budget).viable_prefix(b"") >= 0
        return self._nonempty

    def pairs(self, dfa: Dfa, budget: Budget) -> _Pairs | None:
        """The walks of its own automaton through ``dfa``; ``None`` if its automaton would be too large."""
        if self._pairs is None and not self._too_large:
            quick = replace(budget, states=min(budget.states, QUICK.states))
            try:
                self._pairs = _Pairs(make_tables(make_automaton(self.expr, quick)), dfa)
            except BudgetExceeded as error:
                if error.resource == "seconds":
                    raise
                self._too_large = True
        return self._pairs


class _Pairs:
    """Parallel runs of two automata, from the start of the first and any state of the second."""

    def __init__(self, leaf: Dfa, dfa: Dfa) -> None:
        classes = leaf.classes.astype(np.int64) * 256 + dfa.classes
        one_of_each = np.unique(classes, return_index=True)[1]
        self._left = leaf.table, leaf.classes[one_of_each]
        self._right = dfa.table, dfa.classes[one_of_each]
        self._start, self._accepting, self._width = leaf.start, leaf.accepting, dfa.num_states
        self._known: dict[int, int] = {}

    def ends(self, state: int, charge: Callable[[int], None]) -> int:
        """The bits of the states that words reach from ``state``; bit 0 if some words are lost."""
        if self._start == 0:
            return 0
        first = self._start * self._width + state
        if first not in self._known:
            self._explore(first, charge)
        return self._known[first]

    def _explore(self, first: int, charge: Callable[[int], None]) -> None:
        known, onward = self._known, dict[int, list[int]]()
        order: list[int] = []  # operands first, except in cycles
        stack = [(first, False)]
        while stack:
            pair, ready = stack.pop()
            if ready:
                order.append(pair)
            elif pair not in known:
                charge(1 + self._width // _BITS)
                known[pair], onward[pair] = self._step(*divmod(pair, self._width))
                stack.append((pair, True))
                stack.extend((target, False) for target in onward[pair])
        changed = True
        while changed:
            changed = False
            charge(0)
            for pair in order:
                ends = known[pair]
                for target in onward[pair]:
                    ends |= known[target]
                changed |= ends != known[pair]
                known[pair] = ends

    def _step(self, left: int, right: int) -> tuple[int, list[int]]:
        """The ends of a pair of states, and the pairs that follow it."""
        ends = 1 << right if self._accepting[left] else 0
        (table, columns), (other, other_columns) = self._left, self._right
        onward: dict[int, None] = {}
        for target, state in zip(
            table[left][columns].tolist(), other[right][other_columns].tolist(), strict=True
        ):
            if target and state:
                onward[target * self._width + state] = None
            elif target:
                ends |= 1  # the leaf's automaton is trim, so a word of it continues here
        return ends, list(onward)


def _bits(numbers: Iterable[int]) -> int:
    found = 0
    for number in numbers:
        found |= 1 << number
    return found


def _bytes_of(expr: Expr) -> list[int]:
    """The bytes of a byte set."""
    assert isinstance(expr.value, int)
    return [byte for byte in range(256) if expr.value >> byte & 1]


def _is_finite(expr: Expr) -> bool:
    """Whether an expression is a choice of words and bytes, or empty."""
    return expr is EMPTY or (expr.op is Op.UNION and all(arg.op in _ATOMS for arg in expr.args))


def _used_bytes(expr: Expr) -> list[int]:
    """A set of bytes that contains all bytes of the words of ``expr``.

    It is exact for expressions without ``&``, and has all bytes for expressions that are not built of sets, words
    and automata.
    """
    used: dict[int, int] = {}
    for node in expr.walk():
        value = node.value
        if isinstance(value, bytes):
            mask = _bits(value)
        elif isinstance(value, Dfa):
            live = (value.table != 0).any(axis=0)
            mask = _bits(np.flatnonzero(live[value.classes]).tolist())
        elif node.op is Op.BYTES:
            assert isinstance(value, int)
            mask = value
        elif node.op in (*COMPOSED, Op.EMPTY, Op.EPSILON):
            mask = 0
            for arg in node.args:
                mask |= used.get(id(arg), ALL_BYTES)  # a variable is visited before its body is finished
        elif node.op is Op.INTERSECT:
            mask = ALL_BYTES
            for arg in node.args:
                mask &= used.get(id(arg), ALL_BYTES)
        else:
            mask = ALL_BYTES
        used[id(node)] = mask
    return [byte for byte in range(256) if used[id(expr)] >> byte & 1]
