"""Right quotients: texts with a suffix removed.

``before(whole, end)`` has the words w such that some word of ``end`` after w gives a word of ``whole``. A state of the
automaton of ``whole`` accepts if a word of ``end`` leads from it to an accepting state, so only the accepting states
change (Hopcroft and Ullman, 1979, section 3.2).

Cost: both automata are computed; then states of one × states of the other × byte classes, for each byte of the longest
of the shortest words that lead from a state to an end. Bounded by the budget.
"""

from __future__ import annotations

import numpy as np

from tokenfst.automata.expressions.expression import EMPTY, Expr, machine
from tokenfst.automata.expressions.tables import frozen_dfa
from tokenfst.automata.languages.engine import make_automaton, make_tables
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

_MOST_PAIRS = 50_000_000
"""Maximum number of pairs of states and classes that are processed in one round."""


def before(whole: Expr, end: Expr, budget: Budget | None = None) -> Expr:
    """The right quotient of ``whole`` by ``end``. Raises BudgetExceeded."""
    bounds = budget or Budget()
    first, second = (make_tables(make_automaton(each, bounds)) for each in (whole, end))
    _, kinds = np.unique(
        first.classes.astype(np.int64) << 8 | second.classes, return_index=True
    )  # a byte of each
    if len(kinds) * first.num_states * second.num_states > _MOST_PAIRS:
        raise BudgetExceeded("states", bounds.states, "what stands before the end of a text")
    onward, others = first.table[:, first.classes[kinds]], second.table[:, second.classes[kinds]]
    good = np.outer(first.accepting, second.accepting)
    while True:
        more = good.copy()
        for column in range(len(kinds)):
            more |= good[onward[:, column]][:, others[:, column]]
        if (more == good).all():
            break
        good = more
    accepting = good[:, second.start]
    live = accepting.copy()
    while not (more := live | live[first.table].any(axis=1)).all() and (more != live).any():
        live = more
    table = np.where(more[first.table], first.table, 0).astype(np.uint32)
    return machine(frozen_dfa(first.classes, table, accepting, first.start)) if more[first.start] else EMPTY
