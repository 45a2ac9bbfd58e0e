"""What a lazy automaton holds of its constraint and its program.

Masks need neither. ``explain``, ``captures`` and ``repr`` of a matcher ask the constraint; ``save``, ``expand`` and
``pickle`` ask the program. The expressions of a schema take about ten times the memory of its text, and its program
twice. So if a constraint can be made again from its schema (``Constraint.recipe``), an automaton holds the constraint
and its program by weak references only. As long as another object holds them, they are used; later equal ones are made
when they are needed, and the last few constraints are kept. A program that is made again has the same instructions,
because they depend on the schema alone (docs/decisions/042), so an automaton always writes the same bytes. Constraints
without a recipe are held by normal references.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import ref

from tokenfst._native import TokenAutomaton
from tokenfst.automata.expressions.program import Program
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.common.clock_cache import Recent


@dataclass(slots=True, eq=False)
class HeldConstraint:
    """A constraint; or a recipe, which is a function without arguments that makes the constraint again."""

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
        """Whether a rule sets a sampling temperature. No rule of a constraint with a recipe does."""
        return self.constraint is not None and self.constraint.has_temperature

    def get(self) -> Constraint:
        """The constraint, made again if necessary. Raises ``BudgetExceeded`` if it exceeds its budget this time."""
        found = self.seen() if self.seen is not None else self.constraint
        if found is None and self.recipe is not None:
            found = _made_again.get(self, self.recipe)
        assert found is not None
        return found


@dataclass(slots=True, eq=False)
class HeldProgram:
    """The program of a constraint that can be made again."""

    seen: ref[Program]
    constraint: HeldConstraint

    def __reduce__(self) -> tuple[Any, ...]:
        return program_of, (self.get(),)

    def get(self) -> Program:
        """The program. Raises as ``HeldConstraint.get``."""
        return self.seen() or self.constraint.get().program()


_made_again: Recent[HeldConstraint, Constraint] = Recent(4)


def hold(constraint: Constraint, native: TokenAutomaton, program: Program | None = None) -> None:
    """Let the core's automaton hold its constraint. ``program``: the constraint's own program, which is then held
    weakly if the constraint has a recipe.
    """
    recipe = constraint.recipe()
    if recipe is None:
        native.held_constraint = HeldConstraint(constraint.source, constraint)
        return
    native.held_constraint = held = HeldConstraint(constraint.source, None, recipe, ref(constraint))
    if program is not None:
        make, _, *parts = native.made_from
        native.made_from = make, HeldProgram(ref(program), held), *parts


def held_by(native: TokenAutomaton) -> HeldConstraint | None:
    """The constraint that an automaton was made from; ``None`` if it was loaded from a file."""
    return getattr(native, "held_constraint", None)


def held_program(native: TokenAutomaton, program: Program | None) -> Program | HeldProgram | None:
    """The weakly held program of a core's automaton if it has one, else ``program``."""
    known = getattr(native, "made_from", (None, program))[1]
    return known if isinstance(known, HeldProgram) else program


def program_of(held: Program | HeldProgram) -> Program:
    """The program itself, made again if it is held weakly and gone."""
    return held.get() if isinstance(held, HeldProgram) else held
