"""What an automaton holds of its constraint, which ``explain``, ``captures`` and ``repr`` of its matchers ask.

Masks do not need the constraint, and the expressions of a schema take about ten times the memory of its text. So an
automaton holds a constraint weakly if it can be made again from little memory (``Constraint.recipe``). As long as
somebody else holds the constraint, that object answers. Later an equal one is made when it is needed, and the last few
are kept. Other constraints are held as they are.

The program is held, too: ``save``, ``expand`` and ``pickle`` need it. A constraint that is made again has a program of
the same language, but in one of 70 schemas of MaskBench with other instructions, since caches of the process decide
which expressions are shared. An automaton always writes the same bytes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import ref

from tokenfst._native import TokenAutomaton
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.common.clock_cache import Recent


@dataclass(slots=True, eq=False)
class HeldConstraint:
    """A constraint, or a recipe: a call without arguments that makes it again."""

    source: str
    constraint: Constraint | None
    recipe: Callable[[], Constraint] | None = None
    seen: ref[Constraint] | None = None

    def __reduce__(self) -> tuple[Any, ...]:
        # As a plain language or grammar: what else a schema knows, such as a Python type, need not be known over there.
        plain = self.constraint and self.constraint.with_budget(self.constraint.budget)
        return HeldConstraint, (self.source, plain, self.recipe)

    @property
    def has_temperature(self) -> bool:
        """Whether a rule sets a sampling temperature. What has a recipe sets none."""
        return self.constraint is not None and self.constraint.has_temperature

    def get(self) -> Constraint:
        """The constraint. If it is made again and exceeds its budget now, raises ``BudgetExceeded``."""
        found = self.seen() if self.seen is not None else self.constraint
        if found is None and self.recipe is not None:
            found = _made_again.get(self, self.recipe)
        assert found is not None
        return found


_made_again: Recent[HeldConstraint, Constraint] = Recent(4)


def hold(constraint: Constraint, native: TokenAutomaton) -> None:
    """Let the core's automaton hold its constraint."""
    recipe = constraint.recipe()
    native.held_constraint = (
        HeldConstraint(constraint.source, constraint)
        if recipe is None
        else HeldConstraint(constraint.source, None, recipe, ref(constraint))
    )


def held_by(native: TokenAutomaton) -> HeldConstraint | None:
    """The constraint that an automaton was made from; ``None`` if it was loaded from a file."""
    return getattr(native, "held_constraint", None)
