"""Sets of objects as statements about one variable each, and what remains of them after a variable is decided.

The idea: a set is a union of cells, a cell a conjunction of clauses, a clause a disjunction of literals. A literal is
about one variable: a member, the condition on other members, or the number of members. Equal literals, clauses and
cells are the same object, so they are compared and looked up by identity. What remains of a statement after a decision
is computed once, because the cases of other variables reach the same statements again.

Invariant: literals, clauses, cells and groups of one ``Statements`` are equal only if they are the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from typing import Final

from tokenfst.automata.json_schema.sets.formula import Formula
from tokenfst.automata.json_schema.sets.strings import Strings


@dataclass(slots=True, eq=False)
class Others:
    """The condition that all members with a name in ``names``, none of which any set lists, have values in ``held``."""

    names: Final[Strings]
    held: Final[Formula]


Variable = str | Others | None
"""What a literal is about: the name of a member, a condition on other names, or (``None``) the number of members."""


@dataclass(slots=True, eq=False)
class Member:
    """The literal about the member with the name ``about``: it has a value in ``held``, or it is missing and
    ``absent``.
    """

    about: Final[str]
    absent: Final[bool]
    held: Final[Formula]


@dataclass(slots=True, eq=False)
class Rest:
    """The literal about a condition on other names: it is true if ``all`` is set, otherwise false."""

    about: Final[Others]
    all: Final[bool]


@dataclass(slots=True, eq=False)
class Count:
    """The literal about the number of members: it is at least ``number`` if ``least`` is set, otherwise less."""

    number: Final[int]
    least: Final[bool]
    about: Final[None] = None


Literal = Member | Rest | Count
Decide = Callable[[Literal], bool | None]
"""Whether a literal is true; ``None`` if that is undecided."""


@dataclass(slots=True, eq=False)
class Clause:
    """A disjunction of literals. ``variables``: what its literals are about, in their order."""

    # Tuples instead of sets, because the order in which cases are split must not depend on addresses.
    literals: Final[tuple[Literal, ...]]
    variables: Final[dict[Variable, None]]


@dataclass(slots=True, eq=False)
class Cell:
    """A conjunction of clauses."""

    clauses: Final[tuple[Clause, ...]]
    variables: Final[dict[Variable, None]]


class Group:
    """A disjunction of cells: the remaining condition of a set."""

    __slots__ = ("_said", "cells", "left", "variables")

    def __init__(self, cells: tuple[Cell, ...], variables: dict[Variable, None]) -> None:
        self.cells: Final = cells
        self.variables: Final = variables
        self.left: Final[dict[Hashable, Group | None]] = {}
        """The remaining groups after decisions, by the keys of these; ``None`` stands for the group itself.

        So no group contains itself, and the memory of a query is freed by reference counts.
        """
        self._said: dict[str, list[Formula]] | None = None

    def said(self, name: str) -> list[Formula]:
        """The conditions that the literals of this group put on the value of the member ``name``."""
        if self._said is None:
            self._said = {}
            for made in self.cells:
                for clause in made.clauses:
                    for literal in clause.literals:
                        if isinstance(literal, Member):
                            self._said.setdefault(literal.about, []).append(literal.held)
        return self._said.get(name, [])


Groups = tuple[tuple[int, Group], ...]
"""Pairs of the index of a set and its remaining condition."""

TRUE = Group((Cell((), {}),), {})
FALSE = Group((), {})
_UNKNOWN = Group((), {})
"""The result of a decision that was not computed yet."""


class Statements:
    """The literals, clauses, cells and groups of one query."""

    def __init__(self) -> None:
        self._members: dict[tuple[str, bool, Formula], Member] = {}
        self._others: dict[tuple[Strings, Formula], Others] = {}
        self._rests: dict[tuple[Others, bool], Rest] = {}
        self._counts: dict[tuple[int, bool], Count] = {}
        self._clauses: dict[tuple[Literal, ...], Clause] = {}
        self._cells: dict[tuple[Clause, ...], Cell] = {}
        self._groups: dict[tuple[Cell, ...], Group] = {}
        self._left: dict[Hashable, dict[Clause, Clause | bool]] = {}

    def member(self, name: str, absent: bool, held: Formula) -> Member:
        """The literal that the member ``name`` has a value in ``held`` or, if ``absent`` is set, is missing."""
        key = name, absent, held
        return self._members.get(key) or self._members.setdefault(key, Member(*key))

    def rest(self, names: Strings, held: Formula, *, holds: bool) -> Rest:
        """The literal for the condition on other names, or for its negation."""
        said = names, held
        about = self._others.get(said) or self._others.setdefault(said, Others(*said))
        key = about, holds
        return self._rests.get(key) or self._rests.setdefault(key, Rest(*key))

    def count(self, number: int, *, least: bool) -> Count:
        """The literal for the number of members."""
        key = number, least
        return self._counts.get(key) or self._counts.setdefault(key, Count(*key))

    def clause(self, literals: tuple[Literal, ...]) -> Clause:
        """The disjunction of the literals."""
        found = self._clauses.get(literals)
        if found is None:
            variables: dict[Variable, None] = dict.fromkeys([each.about for each in literals])
            found = self._clauses[literals] = Clause(literals, variables)
        return found

    def cell(self, clauses: Iterable[Clause]) -> Cell:
        """The conjunction of the clauses."""
        key = tuple(dict.fromkeys(clauses))
        found = self._cells.get(key)
        if found is None:
            variables: dict[Variable, None] = {}
            for each in key:
                variables |= each.variables
            found = self._cells[key] = Cell(key, variables)
        return found

    def group(self, cells: Iterable[Cell]) -> Group:
        """The disjunction of the cells. ``TRUE`` and ``FALSE`` are one object each."""
        key = tuple(dict.fromkeys(cells))
        if not key:
            return FALSE
        found = self._groups.get(key)
        if found is None:
            if not all(each.clauses for each in key):
                return TRUE
            variables: dict[Variable, None] = {}
            for each in key:
                variables |= each.variables
            found = self._groups[key] = Group(key, variables)
        return found

    def decided(self, groups: Groups, about: Variable, key: Hashable, decide: Decide) -> Groups:
        """What remains of the sets after the variable ``about`` is decided.

        ``decide`` returns whether a literal about this variable is true. ``key`` identifies the decision.
        """
        return tuple(
            [
                (place, group)
                if about not in group.variables or (left := group.left.get(key, _UNKNOWN)) is None
                else (place, self._of_group(group, about, key, decide) if left is _UNKNOWN else left)
                for place, group in groups
            ]
        )

    def _of_group(self, group: Group, about: Variable, key: Hashable, decide: Decide) -> Group:
        known = self._left.setdefault(key, {})
        cells = []
        for made in group.cells:
            if about in made.variables:
                left = [
                    _of_clause(clause, decide, self, known) if about in clause.variables else clause
                    for clause in made.clauses
                ]
                if False in left:
                    continue
                made = self.cell([clause for clause in left if clause is not True])  # type: ignore[misc]
            cells.append(made)
        found = self.group(cells)
        group.left[key] = None if found is group else found
        return found


def _of_clause(
    clause: Clause, decide: Decide, statements: Statements, known: dict[Clause, Clause | bool]
) -> Clause | bool:
    found = known.get(clause)
    if found is None:
        answers = [(literal, decide(literal)) for literal in clause.literals]
        if any(answer is True for _, answer in answers):
            found = True
        else:
            rest = tuple([literal for literal, answer in answers if answer is None])
            found = statements.clause(rest) if rest else False
        known[clause] = found
    return found
