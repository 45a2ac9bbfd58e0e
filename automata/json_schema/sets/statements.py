"""What sets of objects say, as statements about one variable each, and what is left of them once a variable is decided.

The idea: a set is a union of cells, a cell a conjunction of clauses, a clause a disjunction of literals, and a literal
speaks of one variable: a member, what is said of other members, or how many there are. Each of them is one object, so
that equal ones are compared and looked up by identity, and what a decision leaves of one is worked out once: the cases
of other variables come back to the same ones.

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
    """That all members with one of these names, which no set lists, have values in ``held``."""

    names: Final[Strings]
    held: Final[Formula]


Variable = str | Others | None
"""A name; what holds of other names; ``None`` for the number of members."""


@dataclass(slots=True, eq=False)
class Member:
    """Of the member ``about``: it may be missing if ``absent``, and if it is there, its value is in ``held``."""

    about: Final[str]
    absent: Final[bool]
    held: Final[Formula]


@dataclass(slots=True, eq=False)
class Rest:
    """What is said of others holds; or, not ``all``, it does not."""

    about: Final[Others]
    all: Final[bool]


@dataclass(slots=True, eq=False)
class Count:
    """There are at least ``number`` members; or, if not ``least``, fewer."""

    number: Final[int]
    least: Final[bool]
    about: Final[None] = None


Literal = Member | Rest | Count
Decide = Callable[[Literal], bool | None]
"""Whether a literal holds; ``None`` if that is left open."""


@dataclass(slots=True, eq=False)
class Clause:
    """One of the literals holds. ``variables``: those that it speaks of, in this order."""

    # Tuples, not sets: the order in which cases are split must not depend on addresses.
    literals: Final[tuple[Literal, ...]]
    variables: Final[dict[Variable, None]]


@dataclass(slots=True, eq=False)
class Cell:
    """All of the clauses hold."""

    clauses: Final[tuple[Clause, ...]]
    variables: Final[dict[Variable, None]]


class Group:
    """One of the cells holds: what is left to decide of a set."""

    __slots__ = ("_said", "cells", "left", "variables")

    def __init__(self, cells: tuple[Cell, ...], variables: dict[Variable, None]) -> None:
        self.cells: Final = cells
        self.variables: Final = variables
        self.left: Final[dict[Hashable, Group | None]] = {}
        """What decisions leave of it, by their keys; ``None``: all of it, so that no group holds itself, and what a
        question took is freed by its counts."""
        self._said: dict[str, list[Formula]] | None = None

    def said(self, name: str) -> list[Formula]:
        """What its literals say of the values of a member."""
        if self._said is None:
            self._said = {}
            for made in self.cells:
                for clause in made.clauses:
                    for literal in clause.literals:
                        if isinstance(literal, Member):
                            self._said.setdefault(literal.about, []).append(literal.held)
        return self._said.get(name, [])


Groups = tuple[tuple[int, Group], ...]
"""What is left to decide of sets, by their place."""

TRUE = Group((Cell((), {}),), {})
FALSE = Group((), {})
_UNKNOWN = Group((), {})
"""What a decision leaves that was not made yet."""


class Statements:
    """The statements of one question."""

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
        """The literal of a member."""
        key = name, absent, held
        return self._members.get(key) or self._members.setdefault(key, Member(*key))

    def rest(self, names: Strings, held: Formula, *, holds: bool) -> Rest:
        """The literal of what is said of others, or that this does not hold."""
        said = names, held
        about = self._others.get(said) or self._others.setdefault(said, Others(*said))
        key = about, holds
        return self._rests.get(key) or self._rests.setdefault(key, Rest(*key))

    def count(self, number: int, *, least: bool) -> Count:
        """The literal of how many members there are."""
        key = number, least
        return self._counts.get(key) or self._counts.setdefault(key, Count(*key))

    def clause(self, literals: tuple[Literal, ...]) -> Clause:
        """One of the literals."""
        found = self._clauses.get(literals)
        if found is None:
            variables: dict[Variable, None] = dict.fromkeys([each.about for each in literals])
            found = self._clauses[literals] = Clause(literals, variables)
        return found

    def cell(self, clauses: Iterable[Clause]) -> Cell:
        """All of the clauses."""
        key = tuple(dict.fromkeys(clauses))
        found = self._cells.get(key)
        if found is None:
            variables: dict[Variable, None] = {}
            for each in key:
                variables |= each.variables
            found = self._cells[key] = Cell(key, variables)
        return found

    def group(self, cells: Iterable[Cell]) -> Group:
        """One of the cells. ``TRUE`` and ``FALSE`` are one object each."""
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
        """The sets, given what ``decide`` says of the literals that speak of a variable. ``key``: of this decision."""
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
