"""Translation of linear temporal logic on finite traces (LTLf) to automata over symbols.

``ltlf(formula, symbols)`` is the minimal automaton of the traces that satisfy a formula. A trace is a sequence of
symbols: exactly one symbol, a named one or *anything else*, stands at each position. The semantics is that of De
Giacomo and Vardi ("Linear temporal logic and linear dynamic logic on finite traces", IJCAI 2013), and on the empty
trace, which they leave out, that of ltlf2dfa and MONA: ``a``, ``X f``, ``F f`` and ``f U g`` are false there and
``!a``, ``WX f``, ``G f`` and ``f R g`` true. So ``ltlf("!(f)")`` is always the complement of ``ltlf("f")``.

Usage. ``ltlf("G(order -> F delivery)", ["order", "delivery", "refund"])``; docs/research/temporal-logic.md.

Complexity. Doubly exponential in the worst case, like every translation to deterministic automata; conjunctions of
Declare patterns have one state for each combination of open obligations. Symbols that no formula names cost nothing.

Limitation. Symbols exclude each other, so ``a & b`` is unsatisfiable: this is not a logic over sets of propositions.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np

from tokenfst.automata.symbols.automaton import SymbolAutomaton, checked_symbols
from tokenfst.automata.symbols.progression import FALSE_STATE, Formula, Formulas, State
from tokenfst.automata.symbols.syntax import Reader
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but
from tokenfst.errors import BudgetExceeded, ConflictError, ConstraintError, UnknownSymbolError

_WHERE = "the automaton of a temporal formula"
_SUBSETS = 2_000
"""The number of sets of conjuncts that are tried, small ones first, before a set that may not be minimal is
accepted.
"""


@checked_but("symbols")
def ltlf(
    formula: str | Iterable[str], symbols: Sequence[str] | None = None, budget: Budget | None = None
) -> SymbolAutomaton:
    """The automaton of the traces that satisfy a formula, or all of several formulas.

    ``symbols``: the symbols that formulas may name, in the order of the automaton's columns; by default, those that
    they do name. All others are "anything else". docs/research/temporal-logic.md defines the syntax.

    Raises ``PatternSyntaxError`` and ``UnknownSymbolError`` (with position and caret), ``ConflictError`` for formulas
    that no trace satisfies, with the smallest contradictory set of conjuncts, ``BudgetExceeded`` and, without lark,
    ``MissingDependencyError``.
    """
    texts = [formula] if isinstance(formula, str) else list(formula)
    if not texts:
        raise ConstraintError("ltlf() needs a formula, or a sequence of at least one")
    declared = None if symbols is None else checked_symbols(symbols)
    formulas = Formulas(budget or Budget())
    letters: dict[str, int] = {}
    places: dict[str, tuple[int, int]] = {}
    conjuncts: list[tuple[Formula, str]] = []
    for number, text in enumerate(texts):

        def symbol(name: str, position: int, number: int = number, text: str = text) -> Formula:
            if declared is not None and name not in declared:
                raise UnknownSymbolError(name, declared, text, position)
            places[name] = min(places.get(name, (number, position)), (number, position))
            return formulas.letters(1 << letters.setdefault(name, len(letters) + 1))

        parts = Reader(formulas, text, symbol, declared or ()).read()
        conjuncts += ((part.formula, text[part.begin : part.end]) for part in parts)
    every = formulas.conjunction(each for each, _ in conjuncts)
    automaton = _Exploration(formulas, formulas.conjuncts(every), len(letters) + 1)
    for _ in automaton.accepting():
        pass
    if not any(map(formulas.ends, automaton.states)):
        raise _conflict(formulas, conjuncts, len(letters) + 1)
    names = tuple(sorted(letters, key=places.__getitem__)) if declared is None else declared
    column = [*(letters.get(name, len(letters) + 1) - 1 for name in names), len(letters)]
    accepting = np.fromiter(map(formulas.ends, automaton.states), np.bool_, len(automaton.states))
    table = np.array(automaton.rows, np.uint32)[:, column]
    return SymbolAutomaton(names, table, accepting, 1, f"ltlf({', '.join(map(repr, texts))})")


class _Exploration:
    """The states that letters lead to, breadth first: ``states`` in this order, ``rows`` of next states."""

    def __init__(self, formulas: Formulas, parts: Iterable[int], letters: int) -> None:
        self.formulas = formulas
        self.states: dict[State, int] = {FALSE_STATE: 0}
        self.states.setdefault(formulas.start(parts), 1)
        self.rows: list[list[int]] = []
        self.letters = range(1, letters + 1)

    def accepting(self) -> Iterator[State]:
        """Create all states, and yield each accepting one when it is reached. Raises ``BudgetExceeded``."""
        formulas, numbers, limit = self.formulas, self.states, self.formulas.budget.states
        todo = list(numbers)
        for state in todo:
            if formulas.ends(state):
                yield state
            row = []
            for letter in self.letters:
                following = formulas.step(state, letter)
                number = numbers.get(following)
                if number is None:
                    number = numbers[following] = len(numbers)
                    todo.append(following)
                row.append(number)
            self.rows.append(row)
            if len(numbers) > limit:
                raise BudgetExceeded("states", limit, _WHERE)
            formulas.check_time()


def _conflict(formulas: Formulas, conjuncts: list[tuple[Formula, str]], letters: int) -> ConflictError:
    """The error for conjuncts that no trace satisfies together."""
    if len(conjuncts) == 1:
        text = conjuncts[0][1]
        return ConflictError(f"no trace satisfies {text}: it contradicts itself", (text,))

    def possible(chosen: Iterable[int]) -> bool:
        parts = formulas.conjunction(conjuncts[number][0] for number in chosen)
        return any(True for _ in _Exploration(formulas, formulas.conjuncts(parts), letters).accepting())

    try:
        chosen = _least_conflict(len(conjuncts), possible)
    except BudgetExceeded as error:
        if error.resource == "seconds":
            raise
        return ConflictError("no trace satisfies all of these formulas", ())
    texts = tuple(conjuncts[number][1] for number in chosen)
    if len(texts) == 1:
        return ConflictError(f"no trace satisfies {texts[0]}: it contradicts itself", texts)
    listed = "\n".join(f"  {text}" for text in texts)
    return ConflictError(
        f"no trace satisfies all of the formulas; these {len(texts)} contradict each other:\n{listed}", texts
    )


def _least_conflict(count: int, possible: Callable[[Iterable[int]], bool]) -> tuple[int, ...]:
    """A contradictory set of conjuncts: a smallest one, or after ``_SUBSETS`` trials a minimal one."""
    kept = list(range(count))
    for number in range(count):
        without = [each for each in kept if each != number]
        if not possible(without):
            kept = without
    trials = 0
    for size in range(1, len(kept)):
        trials += math.comb(count, size)
        if trials > _SUBSETS:
            break
        for chosen in itertools.combinations(range(count), size):
            if not possible(chosen):
                return chosen
    return tuple(kept)
