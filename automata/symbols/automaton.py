"""Automata over plain symbols (class labels, tags, actions, concepts), and their languages over bytes.

A ``SymbolAutomaton`` reads one symbol at a time. Its alphabet consists of the symbols that it names, which are mutually
exclusive, and *anything else*, one letter for all symbols that it does not name. So it is defined over every vocabulary
that contains its symbols. ``ltlf`` builds one from a formula, ``from_transitions`` from a table.

The engine works on bytes. ``symbol_codes`` gives each of n symbols a distinct code of fixed length: one byte for up to
256 symbols, two for up to 65,536, and so on. A *symbol vocabulary* (``Vocabulary.of_symbols``) has these codes as its
tokens, and ``language(symbols)`` is the automaton over them. So masks, distances, token limits, artifacts and matchers
work on symbols unchanged. Users see names, not codes.

Other constructions read the automaton through ``table``, ``accepting``, ``start`` and ``distance``, which are
read-only.

Invariant: the automaton is minimal, its states are numbered breadth-first from 1, and state 0 is DEAD (convention 3).
Two automata over the same symbols accept the same sequences if and only if their tables are equal.

Cost. Operators build the product and minimize it: O(product of the numbers of states * letters * log).

Rejected: readable codes, such as the name and a separator. They need a state for every letter of every name.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from functools import cached_property

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.expression import Dfa
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.expressions.minimization import minimal
from tokenfst.automata.expressions.tables import levels
from tokenfst.automata.languages.display.readable import shorten
from tokenfst.automata.languages.language import Language
from tokenfst.automata.pictures import drawing
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, refuse, whole
from tokenfst.common.plurals import counted
from tokenfst.errors import BudgetExceeded, ConstraintError, UnknownSymbolError

UNREACHABLE = 0xFFFFFFFF
"""The distance of DEAD."""

_MOST_STATES = 1 << 26
"""Maximum number of states that transitions may name: their table is dense."""

OTHER = "…"
"""The label of *anything else* in drawings."""

_SOURCE_LENGTH = 240
"""The greatest number of characters of ``source``, as for languages: ``a & a`` would double it each time."""


class SymbolAutomaton:
    """A deterministic automaton over symbols. Immutable. Combine automata with ``& | - ~``.

    ``symbols``: the letters by number. ``table``: uint32 (states, symbols + 1), the next state; the last column is for
    anything else. ``accepting``: bool (states,). ``start``: 1, or 0 if no sequence is accepted. ``source``: a
    description of its origin; a long one is shortened in the middle.
    """

    @checked
    def __init__(
        self,
        symbols: Iterable[str],
        table: npt.ArrayLike,
        accepting: npt.ArrayLike,
        start: int,
        source: str = "symbols",
    ) -> None:
        """From any complete deterministic automaton, with tables of the shapes that the class describes.

        Here state 0 need not be DEAD, and ``start`` may be any state. The tables are checked and minimized. Raises
        ``ConstraintError``, which names what is wrong.
        """
        names = checked_symbols(symbols)
        given, final = np.asarray(table), np.asarray(accepting)
        states = len(final) if final.ndim else 0
        if given.dtype.kind not in "iu":
            raise ConstraintError(f"the table holds numbers of states, which are integers, not {given.dtype}")
        if given.shape != (states, len(names) + 1) or final.ndim != 1 or final.dtype != np.bool_:
            raise ConstraintError(
                f"tables must have shapes table (states, {len(names) + 1}), a column for each symbol and one for "
                f"anything else, and accepting (states,), of bool; not {given.shape} and {final.shape} of {final.dtype}"
            )
        if not 0 <= start < states or given.min() < 0 or given.max() >= states:
            raise ConstraintError(
                f"the start state or the table names a state that is not one of the {states}"
            )
        self.symbols = names
        self.table, self.accepting, self.start = minimal(given, final, start)
        self.table.flags.writeable = self.accepting.flags.writeable = False
        self.source = shorten(source, _SOURCE_LENGTH)
        self._column = {symbol: column for column, symbol in enumerate(names)}

    @classmethod
    @checked
    def from_transitions(
        cls,
        transitions: Iterable[tuple[int, str | None, int]],
        start: int,
        accepting: Iterable[int],
        symbols: Sequence[str] | None = None,
        source: str = "transitions",
    ) -> SymbolAutomaton:
        """An automaton from triples (state, symbol, next state); the symbol ``None`` is anything else. States are
        integers from 0.

        ``symbols``: the letters; by default, those that the transitions name. Missing transitions lead to DEAD. Raises
        ``ConstraintError`` if transitions with one symbol lead from one state to two states, ``UnknownSymbolError`` for
        a transition whose symbol is not in ``symbols``.
        """
        arcs = list(transitions)
        final = {whole("from_transitions", "accepting", each, 0, _MOST_STATES) for each in accepting}
        start = whole("from_transitions", "start", start, 0, _MOST_STATES)
        for place, arc in enumerate(arcs):
            if not isinstance(arc, Sequence) or len(arc) != 3 or not isinstance(arc[1], str | None):
                refuse(
                    "from_transitions", f"transitions[{place}]", arc, "a state, a symbol or None, and a state"
                )
            for state in (arc[0], arc[2]):
                whole("from_transitions", f"a state of transitions[{place}]", state, 0, _MOST_STATES)
        names = checked_symbols(
            dict.fromkeys(symbol for _, symbol, _ in arcs if symbol is not None)
            if symbols is None
            else symbols
        )
        column: dict[str | None, int] = {symbol: number for number, symbol in enumerate(names)}
        column[None] = len(names)
        states = 1 + max([start, *final, *(max(begin, end) for begin, _, end in arcs)])
        table = np.full((states + 1, len(column)), states, np.uint32)
        for begin, symbol, end in arcs:
            if symbol not in column:
                raise UnknownSymbolError(str(symbol), names)
            if min(begin, end) < 0 or table[begin, column[symbol]] not in (states, end):
                raise ConstraintError(
                    f"state {begin} has no one next state after {symbol!r}: give one transition"
                )
            table[begin, column[symbol]] = end
        ends = np.zeros(states + 1, np.bool_)
        ends[sorted(final)] = True
        return cls(names, table, ends, start, source)

    # --- walking ------------------------------------------------------------------------------------------

    @property
    def num_states(self) -> int:
        """The number of states, including DEAD."""
        return len(self.accepting)

    @cached_property
    def distance(self) -> npt.NDArray[np.uint32]:
        """The least number of symbols from each state to acceptance: uint32 (states,); UNREACHABLE for DEAD."""
        source = np.repeat(np.arange(self.num_states), self.table.shape[1])
        found = levels(
            self.table.ravel().astype(np.int64), source, np.flatnonzero(self.accepting), self.num_states
        )
        result = np.where(found < 0, UNREACHABLE, found).astype(np.uint32)
        result.flags.writeable = False
        return result

    def step(self, state: int, symbol: str | None) -> int:
        """The state after ``state`` reads ``symbol``. A symbol that the automaton does not name, and ``None``, count as
        anything else.
        """
        if type(state) is not int or not 0 <= state < self.num_states:
            state = whole("SymbolAutomaton", "state", state, 0, self.num_states - 1)
        if not isinstance(symbol, str | None):
            refuse("SymbolAutomaton.step", "symbol", symbol, "text or None")
        return int(
            self.table[state, self._column.get(symbol, len(self.symbols)) if symbol else len(self.symbols)]
        )

    @checked
    def run(self, sequence: Iterable[str | None], state: int | None = None) -> int:
        """The state after a sequence, from ``state`` or the start."""
        at = self.start if state is None else whole("SymbolAutomaton", "state", state, 0, self.num_states - 1)
        for symbol in sequence:
            at = self.step(at, symbol)
        return at

    @checked
    def accepts(self, sequence: Iterable[str | None]) -> bool:
        """Whether a sequence of symbols is accepted. Linear."""
        return bool(self.accepting[self.run(sequence)])

    def next_symbols(self, state: int) -> tuple[list[str], bool]:
        """The symbols with a transition to a live state, and whether anything else has one."""
        row = self.table[whole("SymbolAutomaton", "state", state, 0, self.num_states - 1)] != 0
        return [self.symbols[column] for column in np.flatnonzero(row[:-1])], bool(row[-1])

    # --- questions ----------------------------------------------------------------------------------------

    def is_empty(self) -> bool:
        """Whether no sequence is accepted."""
        return self.start == 0

    @checked
    def witness(self, state: int | None = None) -> tuple[str | None, ...] | None:
        """A shortest accepted sequence, or from ``state`` a shortest completion; ``None`` if there is none.

        Deterministic. ``None`` inside the sequence is anything else, which is used only if no symbol gives an equally
        short one.
        """
        state = (
            self.start if state is None else whole("SymbolAutomaton", "state", state, 0, self.num_states - 1)
        )
        if state == 0:
            return None
        found: list[str | None] = []
        while left := int(self.distance[state]):
            column = int(np.flatnonzero(self.distance[self.table[state]] == left - 1)[0])
            found.append((*self.symbols, None)[column])
            state = int(self.table[state, column])
        return tuple(found)

    @checked
    def count(self, length: int) -> int:
        """The number of accepted sequences of exactly ``length`` symbols, all of them named.

        ``Language.count`` differs: it counts the texts of all lengths up to a maximum. O(length * arcs), in integers of
        O(length) digits. Raises BudgetExceeded if that takes too long.
        """
        whole("SymbolAutomaton.count", "length", length, 0)
        arcs = [[int(target) for target in row[:-1] if target] for row in self.table]
        counts = [int(final) for final in self.accepting]
        seconds = Budget().seconds
        deadline = time.monotonic() + seconds
        for _ in range(length):
            if time.monotonic() > deadline:
                raise BudgetExceeded("seconds", seconds, f"counting sequences of {counted(length, 'symbol')}")
            counts = [sum(counts[target] for target in row) for row in arcs]
        return counts[self.start]

    @checked
    def equivalent(self, other: SymbolAutomaton) -> bool:
        """Whether both accept the same sequences. ``((a - b) | (b - a)).witness()`` is a difference."""
        both = _joint(self, other)
        return np.array_equal(both[0].table, both[1].table) and np.array_equal(
            both[0].accepting, both[1].accepting
        )

    @checked
    def includes(self, other: SymbolAutomaton) -> bool:
        """Whether every sequence that ``other`` accepts is accepted. ``(other - self).witness()`` is a
        counterexample.
        """
        return (other - self).is_empty()

    # --- algebra ------------------------------------------------------------------------------------------

    def __and__(self, other: SymbolAutomaton) -> SymbolAutomaton:
        """Sequences that both accept; the symbols are those of both."""
        return self._combined("&", other, np.logical_and)

    def __or__(self, other: SymbolAutomaton) -> SymbolAutomaton:
        """Sequences that at least one of both accepts."""
        return self._combined("|", other, np.logical_or)

    def __sub__(self, other: SymbolAutomaton) -> SymbolAutomaton:
        """Sequences that this one accepts and the other does not."""
        return self._combined("-", other, np.greater)

    def __invert__(self) -> SymbolAutomaton:
        """Sequences, the empty one included, that are not accepted."""
        return SymbolAutomaton(self.symbols, self.table, ~self.accepting, self.start, f"~({self.source})")

    @checked
    def over(self, symbols: Iterable[str]) -> SymbolAutomaton:
        """The same sequences over the given symbols, which may be more, or in another order. New symbols were read as
        "anything else" before.

        Raises ``UnknownSymbolError`` if a symbol of this automaton is missing, because it would become anything else.
        """
        names = checked_symbols(symbols)
        for symbol in self.symbols:
            if symbol not in names:
                raise UnknownSymbolError(symbol, names)
        return SymbolAutomaton(
            names, self.table[:, self._columns(names)], self.accepting, self.start, self.source
        )

    def closed(self) -> SymbolAutomaton:
        """The accepted sequences without anything else (a closed alphabet)."""
        table = np.concatenate([self.table[:, :-1], np.zeros((self.num_states, 1), np.uint32)], axis=1)
        return SymbolAutomaton(self.symbols, table, self.accepting, self.start, f"({self.source}).closed()")

    # --- out ----------------------------------------------------------------------------------------------

    @checked
    def language(self, symbols: Sequence[str | None] | None = None, budget: Budget | None = None) -> Language:
        """The accepted sequences as words: symbol k of ``symbols`` is the byte string ``symbol_codes(...)[k]``.

        ``symbols``: all symbols of a vocabulary (``Vocabulary.symbols``); ``None`` among them is a code that no word
        contains, such as that of an end token. By default, the automaton's own symbols. Symbols that the automaton does
        not name are anything else. Raises ``UnknownSymbolError`` if one of the automaton's own is missing. Linear in
        its tables; raises ``BudgetExceeded`` if codes of several bytes need more states than ``budget``.
        """
        names: Sequence[str | None] = self.symbols if symbols is None else tuple(symbols)
        known = {name for name in names if name is not None}
        for symbol in self.symbols:
            if symbol not in known:
                raise UnknownSymbolError(symbol, tuple(name for name in names if name is not None))
        table = self.table[:, self._columns(names)[:-1]]
        table[:, [column for column, name in enumerate(names) if name is None]] = 0
        dfa = _over_codes(table, self.accepting, self.start, budget or Budget())
        return Language(Language.from_dfa(dfa).expr, self.source, budget)

    @checked
    def draw(self, title: str | None = None, max_states: int = 200) -> drawing.Drawing:
        """A picture with one edge for each pair of states, labelled with the symbols between them; ``…`` is anything
        else.

        An edge with most of the symbols shows the missing ones instead (``not a, b``). Raises ``DrawingError`` beyond
        ``max_states``.
        """
        drawing.check_size(self.num_states - 1, max_states)
        edges = [
            drawing.Edge(source, target, self._label(row == target))
            for source, row in enumerate(self.table)
            for target in np.unique(row[row != 0]).tolist()
        ]
        final = np.flatnonzero(self.accepting).tolist()
        return drawing.draw_graph(self.start, final, edges, self.source if title is None else title)

    def __repr__(self) -> str:
        return (
            f"<SymbolAutomaton {self.source}: {counted(self.num_states - 1, 'state')}, "
            f"{counted(len(self.symbols), 'symbol')}>"
        )

    def __reduce__(self) -> tuple[type[SymbolAutomaton], tuple[object, ...]]:
        return SymbolAutomaton, (self.symbols, self.table, self.accepting, self.start, self.source)

    # --- details ------------------------------------------------------------------------------------------

    def _columns(self, names: Sequence[str | None]) -> list[int]:
        """The column of each name, and of anything else at the end where it is missing from ``names``."""
        other = len(self.symbols)
        columns = [other if name is None else self._column.get(name, other) for name in names]
        return [*columns, other]

    def _combined(self, sign: str, other: SymbolAutomaton, operation: np.ufunc) -> SymbolAutomaton:
        if not isinstance(other, SymbolAutomaton):
            return NotImplemented
        left, right = _joint(self, other)
        width, budget = right.num_states, Budget()
        deadline = Deadline(budget, f"the product of {self.source} and {other.source}")
        pairs = frontier = np.array([left.start * width + right.start])
        rows = []
        while len(frontier):
            targets = left.table[frontier // width].astype(np.int64) * width + right.table[frontier % width]
            rows.append(targets)
            frontier = np.setdiff1d(targets, pairs)
            pairs = np.concatenate([pairs, frontier])
            if len(pairs) > budget.states:
                raise BudgetExceeded("states", budget.states, deadline.where)
            if 8 * len(pairs) * left.table.shape[1] > budget.bytes:
                raise BudgetExceeded("bytes", budget.bytes, deadline.where)
            deadline.check()
        order = np.argsort(pairs)
        table = order[np.searchsorted(pairs[order], np.concatenate(rows))]
        accepting = operation(left.accepting[pairs // width], right.accepting[pairs % width])
        half = (_SOURCE_LENGTH - 7) // 2
        source = f"({shorten(self.source, half)}) {sign} ({shorten(other.source, half)})"
        return SymbolAutomaton(left.symbols, table, accepting, 0, source)

    def _label(self, taken: npt.NDArray[np.bool_]) -> str:
        names = (*self.symbols, OTHER)
        inside = [names[column] for column in np.flatnonzero(taken)]
        outside = [names[column] for column in np.flatnonzero(~taken)]
        if not outside:
            return "any"
        return f"not {', '.join(outside)}" if taken[-1] and len(outside) < len(inside) else ", ".join(inside)


def symbol_codes(count: int) -> list[bytes]:
    """The codes of ``count`` symbols: their numbers in big-endian order, in the fewest bytes that hold all of them."""
    width = max(1, (max(count - 1, 0).bit_length() + 7) // 8)
    return [number.to_bytes(width, "big") for number in range(count)]


def checked_symbols(symbols: Iterable[str]) -> tuple[str, ...]:
    """The symbols as a tuple. Raises ``ConstraintError`` for a symbol that is not a str, is empty, or is repeated."""
    if isinstance(symbols, str):
        raise ConstraintError(f"symbols are a sequence of names, not the one string {symbols!r}")
    names = tuple(symbols)
    seen: dict[object, int] = {}
    for place, name in enumerate(names):
        if not isinstance(name, str) or not name:
            raise ConstraintError(f"symbol {place} is {name!r}: a symbol is a str of at least one character")
        if name in seen:
            raise ConstraintError(f"the symbol {name!r} is there twice, as {seen[name]} and as {place}")
        seen[name] = place
    return names


def _joint(left: SymbolAutomaton, right: SymbolAutomaton) -> tuple[SymbolAutomaton, SymbolAutomaton]:
    """Both over the symbols of both."""
    if left.symbols == right.symbols:
        return left, right
    names = tuple(dict.fromkeys((*left.symbols, *right.symbols)))
    return left.over(names), right.over(names)


def _over_codes(
    table: npt.NDArray[np.uint32], accepting: npt.NDArray[np.bool_], start: int, budget: Budget
) -> Dfa:
    """The automaton over the codes of the columns of ``table``, byte by byte from the last one to the first.

    The rows that 256 neighbouring columns make are the states between two bytes; equal ones are one state.
    """
    rows, layers = table.astype(np.int64), []
    while rows.shape[1] > 256:
        blocks = np.pad(rows, ((0, 0), (0, -rows.shape[1] % 256)))
        layer, number = np.unique(blocks.reshape(-1, 256), axis=0, return_inverse=True)
        rows = number.reshape(len(table), -1)
        layers.append(layer)
    targets: npt.NDArray[np.int64] = np.arange(len(table))
    every, begin = [rows], len(table)
    for layer in layers:
        every.append(targets[layer])
        # A block without a path to acceptance is DEAD; the others become states after the existing ones.
        targets = np.where(layer.any(axis=1), begin + np.arange(len(layer)), 0)
        begin += len(layer)
    every[0] = np.pad(targets[rows], ((0, 0), (0, 256 - rows.shape[1])))
    if begin > budget.states:
        raise BudgetExceeded("states", budget.states, f"the codes of {counted(table.shape[1], 'symbol')}")
    columns, classes = np.unique(np.concatenate(every), axis=1, return_inverse=True)
    final = np.concatenate([accepting, np.zeros(begin - len(table), np.bool_)])
    return Dfa(classes.ravel().astype(np.uint8), columns.astype(np.uint32), final, start)
