"""Boolean formulas over sub-schemas, hash-consed: the conditions on one JSON value.

Nothing is computed below the top level of a value. ``items: A`` and ``items: B`` together are ``items: A and B``; the
complement of ``items: A`` has an element that satisfies ``not A``. So a value's parts carry formulas, and the values of
a formula are determined when its rule is written (``reading.meaning``), once: equal formulas are one object. Recursion
through ``$ref`` terminates because a schema has finitely many atoms.

Invariants: ``not`` is applied to atoms only; operands of ``and`` and ``or`` are flat and distinct, and never contradict
each other; ``ANY`` and ``NONE`` are not operands. Atoms have arbitrary keys.
"""

from __future__ import annotations

import enum
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Final

from tokenfst.automata.json_schema.sets.work import Work


class Kind(enum.Enum):
    """The kind of a formula."""

    __hash__ = object.__hash__  # the hash of an enumeration is a slower function in Python

    ANY = enum.auto()
    NONE = enum.auto()
    ATOM = enum.auto()
    NOT = enum.auto()
    AND = enum.auto()
    OR = enum.auto()


@dataclass(slots=True, eq=False)
class Formula:
    """A formula. Equal formulas are the same object, so compare with ``is``. ``atom`` is the content of an ATOM."""

    # Final instead of frozen: mypy checks it, and a frozen dataclass takes three times as long to make.
    kind: Final[Kind]
    parts: Final[tuple[Formula, ...]] = ()
    atom: Final[object] = None


ANY = Formula(Kind.ANY)
"""Every value."""
NONE = Formula(Kind.NONE)
"""No value."""


class Formulas:
    """The formulas of one schema. ``work`` is the budget of all operations."""

    def __init__(self, work: Work | None = None) -> None:
        self.work = work or Work()
        self.atoms: dict[Hashable, Formula] = {}
        """The atoms, by their keys."""
        self._negations: dict[Formula, Formula] = {ANY: NONE, NONE: ANY}
        self._combined: dict[Kind, dict[frozenset[Formula], Formula]] = {Kind.AND: {}, Kind.OR: {}}
        self._both: dict[tuple[Formula, Formula], Formula] = {}

    def atom(self, key: Hashable, content: object) -> Formula:
        """The atom with this key; ``content`` is kept if it is new."""
        found = self.atoms.get(key)
        if found is None:
            found = self.atoms[key] = Formula(Kind.ATOM, atom=content)
        return found

    def negate(self, formula: Formula) -> Formula:
        """The complement. Linear in a formula that was not negated before."""
        found = self._negations.get(formula)
        if found is None:
            if formula.kind is Kind.ATOM:
                found = Formula(Kind.NOT, (formula,))
            else:
                parts = [self.negate(part) for part in formula.parts]
                found = self.all_of(parts) if formula.kind is Kind.OR else self.any_of(parts)
            self._negations[formula], self._negations[found] = found, formula
        return found

    def all_of(self, formulas: Iterable[Formula]) -> Formula:
        """The conjunction; ``ANY`` if there are no formulas."""
        return self._combine(Kind.AND, formulas, ANY, NONE)

    def both(self, left: Formula, right: Formula) -> Formula:
        """The conjunction of two formulas, the most frequent case."""
        if left is right or right is ANY:
            return left
        if left is ANY:
            return right
        key = left, right
        found = self._both.get(key)
        if found is None:
            found = self._both[key] = self.all_of(key)
        return found

    def without_last(self, conjunction: Formula) -> Formula | None:
        """The conjunction of all parts but the last, if it was made with its parts in this order."""
        parts = conjunction.parts[:-1]
        found = self._combined[Kind.AND].get(frozenset(parts))
        return found if found is not None and found.parts == parts else None

    def any_of(self, formulas: Iterable[Formula]) -> Formula:
        """The disjunction; ``NONE`` if there are no formulas."""
        return self._combine(Kind.OR, formulas, NONE, ANY)

    def _combine(self, kind: Kind, formulas: Iterable[Formula], neutral: Formula, zero: Formula) -> Formula:
        parts: dict[Formula, None] = {}
        for formula in formulas:
            if formula is zero:
                return zero
            if formula is not neutral:
                parts.update(dict.fromkeys(formula.parts if formula.kind is kind else (formula,)))
        if len(parts) < 2:
            return next(iter(parts), neutral)
        if any(self._negations.get(part) in parts for part in parts):
            return zero
        known, key = self._combined[kind], frozenset(parts)
        found = known.get(key)
        if found is None:
            found = known[key] = Formula(kind, tuple(parts))
        return found
