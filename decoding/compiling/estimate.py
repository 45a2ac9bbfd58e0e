"""``estimate``: how large an automaton will be with all of its states, before it is expanded.

The states of a token automaton are those of the automaton over bytes. An estimate constructs only the latter and walks
no tokens, so it takes milliseconds where tables and masks take seconds. If it does not finish within a second, it
returns a lower bound of the number of states.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.common.plurals import counted
from tokenfst.common.sizes import byte_size
from tokenfst.errors import BudgetExceeded, ConstraintError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_ESTIMATE = Budget(states=250_000, bytes=256 << 20, seconds=1.0)
"""The budget of an estimate. It is larger than ``tokenfst.budget.QUICK``, whose description says why."""
_FIRST_LOOK = 4_000
"""The bound of states of the first attempt, so that there is a lower bound if the second attempt runs out of time."""
_STATE_BYTES = 13
"""Bytes of an artifact per state, without its row of the table: mask, distance, bound, accepting."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """The size of an automaton. If not ``exact``, ``states`` is only a lower bound, and ``classes`` is unknown (0).

    ``words``: the words of 32 bits in a mask.
    """

    states: int
    classes: int
    exact: bool
    words: int

    @property
    def table_bytes(self) -> int:
        """Bytes of the tables, without masks."""
        return self.states * (4 * self.classes + _STATE_BYTES)

    @property
    def mask_bytes(self) -> int:
        """An upper bound of the bytes of masks: a full mask for each state. In fact most states share a mask or have a
        list.
        """
        return self.states * 4 * self.words

    def as_json(self) -> dict[str, Any]:
        """The estimate in JSON."""
        return {
            "exact": self.exact,
            "states": self.states,
            "table_bytes": self.table_bytes if self.exact else None,
            "mask_bytes_at_most": self.mask_bytes if self.exact else None,
        }

    def __str__(self) -> str:
        if not self.exact:
            return f"more than {counted(self.states, 'state')}"
        return (
            f"{counted(self.states, 'state')}, tables {byte_size(self.table_bytes)}, masks at most "
            f"{byte_size(self.mask_bytes)} (most states share theirs)"
        )


@checked
def estimate(constraint: Constraint, vocabulary: Vocabulary) -> Estimate:
    """How large ``compile(constraint, vocabulary).expand()`` and its file would be: ``tokenfst compile --estimate``.

    Tries 4,000 states first and then 250,000, for at most a second each, or within the constraint's budget if that is
    less. ``exact`` says whether the automaton was complete by then. Raises ``ConstraintError`` for a constraint that
    needs a stack (its states are made as texts visit them; ``truncate(depth)`` of a grammar needs none) or constrains
    tokens as such.
    """
    if not isinstance(constraint, Language):
        raise ConstraintError(
            f"estimate needs a finite automaton, but {constraint.source} needs a stack: take truncate(depth) of the "
            "grammar"
        )
    if constraint.program().is_token_level:
        raise ConstraintError(f"estimate counts byte states, but {constraint.source} constrains tokens")
    words = (len(vocabulary) + 31) // 32
    made = 0
    for states in (_FIRST_LOOK, _ESTIMATE.states):
        budget = Budget(
            states=min(states, constraint.budget.states),
            bytes=min(_ESTIMATE.bytes, constraint.budget.bytes),
            seconds=min(_ESTIMATE.seconds, constraint.budget.seconds),
        )
        try:
            size = constraint.with_budget(budget).size()
        except BudgetExceeded as error:
            if error.resource != "states":
                break
            made = int(error.limit)
        else:
            return Estimate(size.states, size.classes, True, words)
    return Estimate(made, 0, False, words)
