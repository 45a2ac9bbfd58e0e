"""``weighted_edits``: the texts near a language, weighted by the cost of their cheapest edits.

As in ``images/edits``, a state is a set of pairs (state of the language, cost of the edits so far), closed under
deletions, with the least cost for each state of the language. A cost that all paths to a set share is charged as soon
as it is known: the *potential* of a set is the least cost in it, the weight of an arc is the difference of potentials,
and the final weight is the remaining cost of the accepting states. So the weight of a text is exactly e to the minus
its distance, and each token is charged its own cost.

Cost: the reachable sets, exponentially many in the worst case; the budget bounds them. Rejected: the composition with
an edit transducer in the log semiring: its weight is the sum over all edit sequences, which are infinitely many if
edits cancel.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import cache

import numpy as np
import numpy.typing as npt

from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges, normalize, utf8_dfa
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.images.letters import LetterAutomaton, Unit, crawl, read_letters
from tokenfst.automata.images.repair import Kind, prices_of
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.weights.language import WeightedLanguage, as_language
from tokenfst.automata.weights.machine import Floats, Machine, make
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, refuse
from tokenfst.errors import ArgumentValueError, EmptyLanguageError

_State = frozenset[tuple[int, float]]
_DIGITS = 9
"""Sums of costs that agree to this many decimal places are equal."""


@checked
def weighted_edits(
    language: Constraint,
    max_cost: float,
    costs: Mapping[str, float] | None = None,
    *,
    unit: Unit = "characters",
    budget: Budget | None = None,
) -> WeightedLanguage:
    """The texts that edits make of texts of ``language``, each with minus the least total cost as its log weight.

    Texts that cost more than ``max_cost`` are excluded. ``costs``: non-negative costs of "insert", "delete" and
    "replace", 1 by default; infinity forbids an edit. An edit inserts, deletes or replaces one character, or one byte
    with ``unit="bytes"``. Deterministic. Raises ``ConstraintError`` for invalid costs and grammars that are not
    regular, ``EmptyLanguageError``, ``BudgetExceeded``. A state for each set of states of the language with costs up to
    ``max_cost``: exponential in it at worst.
    """
    if not 0 <= max_cost < math.inf:
        refuse("weighted_edits", "max_cost", max_cost, "finite and not negative", ArgumentValueError)
    if unit not in ("characters", "bytes"):
        refuse("weighted_edits", "unit", unit, "'characters' or 'bytes'", ArgumentValueError)
    source = as_language(language, "weighted_edits")
    name = f"weighted_edits({source.source}, {max_cost:g})"
    deadline = Deadline(budget or source.budget, name)
    letters = read_letters(source, unit, deadline)
    if letters.start == 0:
        raise EmptyLanguageError("weighted_edits: the language has no text")
    edits = _Edits(letters, max_cost, prices_of(costs or {}, "weighted_edits"), deadline)
    table, _ = crawl(edits.start, edits.follow, edits.note, letters.table.shape[1], deadline)
    made = _written(letters, table, np.array(edits.paid), np.array(edits.ends), unit, deadline)
    found = WeightedLanguage(made, name, deadline.budget)
    return found if found.is_deterministic else found.determinize()


class _Edits:
    """The sets of states, the targets of letters, and their costs."""

    def __init__(
        self, letters: LetterAutomaton, max_cost: float, prices: Mapping[Kind, float], deadline: Deadline
    ) -> None:
        self.max_cost, self.prices, self.deadline = max_cost, prices, deadline
        self.arcs = [[(c, q) for c, q in enumerate(row) if q] for row in letters.table.tolist()]
        self.next = [sorted({q for _, q in arcs}) for arcs in self.arcs]
        self.final: list[bool] = letters.accepting.tolist()
        self.start = self.closed({letters.start: 0.0})
        self.paid, self.ends = [0.0], [-math.inf]
        """For each set, DEAD first, its potential and the log weight of an end there."""

    def note(self, state: _State) -> bool:
        """Record the cost of a set, and whether a text may end there."""
        self.paid.append(min(cost for _, cost in state))
        least = min((cost for q, cost in state if self.final[q]), default=math.inf)
        self.ends.append(self.paid[-1] - least)
        return least < math.inf

    def follow(self, state: _State) -> tuple[_State | None, dict[int, _State]]:
        """The target of all letters that the language does not use, and the targets of the others."""
        edited: dict[int, float] = {}
        matched: dict[int, dict[int, float]] = {}
        for q, cost in state:
            self.deadline.tick(1 + len(self.arcs[q]))
            self._reach(edited, q, cost + self.prices["insert"])
            for target in self.next[q]:
                self._reach(edited, target, cost + self.prices["replace"])
            for letter, target in self.arcs[q]:
                self._reach(matched.setdefault(letter, {}), target, cost)
        for reached in matched.values():
            self.deadline.tick(1 + len(edited))
            for q, cost in edited.items():
                self._reach(reached, q, cost)
        steps = {letter: self.closed(reached) for letter, reached in matched.items()}
        return (self.closed(edited) if edited else None), steps

    def closed(self, reached: dict[int, float]) -> _State:
        """With all that deletions reach."""
        pending = list(reached)
        while pending:
            q = pending.pop()
            self.deadline.tick(1 + len(self.next[q]))
            cost = reached[q] + self.prices["delete"]
            pending += [target for target in self.next[q] if self._reach(reached, target, cost)]
        return frozenset(reached.items())

    def _reach(self, reached: dict[int, float], q: int, cost: float) -> bool:
        cost = round(cost, _DIGITS)
        if cost > self.max_cost or cost >= reached.get(q, math.inf):
            return False
        reached[q] = cost
        return True


def _written(
    letters: LetterAutomaton,
    table: npt.NDArray[np.uint32],
    paid: Floats,
    ends: Floats,
    unit: Unit,
    deadline: Deadline,
) -> Machine:
    """The sets as a machine over bytes.

    An arc's weight is on the last byte of its letter. Letters that begin alike and lead elsewhere have parallel
    arcs.
    """
    lasts = np.append(letters.begins[1:], MAX_CODE_POINT + 1) - 1
    arcs: list[tuple[int, int, float, int]] = []
    count = len(table)
    spelled = cache(utf8_dfa)
    for state in range(1, len(table)):
        targets = np.where(letters.group >= 0, table[state, letters.group], 0)
        for target in np.unique(targets[targets > 0]).tolist():
            here = np.flatnonzero(targets == target)
            weight = float(paid[state] - paid[target])
            deadline.tick(10 + len(here))
            if unit == "bytes":
                arcs += [(state, byte, weight, target) for byte in letters.begins[here].tolist()]
                continue
            pairs = zip(letters.begins[here].tolist(), lasts[here].tolist(), strict=True)
            ranges: Ranges = normalize(pairs)
            dfa = spelled(ranges)
            rows = dfa.table[:, dfa.classes].astype(np.int64)
            place = {1: state, 2: target} | {
                inner: count + at for at, inner in enumerate(range(3, dfa.num_states))
            }
            count += max(dfa.num_states - 3, 0)
            for inner, byte in zip(*(each.tolist() for each in np.nonzero(rows)), strict=True):
                following = int(rows[inner, byte])
                arcs.append((place[inner], byte, weight if following == 2 else 0.0, place[following]))
            deadline.tick(256)
    finals = np.full(count, -np.inf)
    finals[: len(ends)] = ends
    columns = [np.array(each) for each in zip(*arcs, strict=True)] if arcs else [np.zeros(0)] * 4
    source, label, target_of = (columns[place].astype(np.int64) for place in (0, 1, 3))
    return make(1, 0.0, finals, (source, label, columns[2].astype(np.float64), target_of))
