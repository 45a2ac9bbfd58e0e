"""Objects that are in a given number of several sets: in exactly one (``oneOf``), none (``not``), all (``allOf``).

Expanded directly, "exactly one of n" is a product of n complements, each a union of as many cells as a schema has
conditions. But schemas mostly constrain the same few names. So the cases are split by one name after the other. The
name that most of the undecided sets constrain comes first: either the member is missing, or its value is in one of the
regions into which the conditions on it divide all values. Each case decides some of the sets, and ends as soon as the
number of sets that contain the object is known. Cases with the same remaining conditions are merged. So a discriminator
is tested once, and independent conditions are never multiplied (Shannon expansion, as in decision diagrams, over
multi-valued variables). Each condition on unlisted names is a variable that is true or false; the number of members is
one more variable.

Invariants: the cells of different cases are disjoint. The literals of a clause are alternatives; the clauses of a cell
hold together; a set is the union of its cells.

Cost: a step for each case, at most ``_MOST_CASES``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeGuard

from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula, Formulas
from tokenfst.automata.json_schema.sets.objects import Named, Object, ObjectSet, cell
from tokenfst.automata.json_schema.sets.statements import (
    FALSE,
    TRUE,
    Cell,
    Count,
    Groups,
    Literal,
    Member,
    Others,
    Rest,
    Statements,
    Variable,
)
from tokenfst.automata.json_schema.sets.strings import Strings

_MOST_CASES = 20_000
_MOST_CELLS = 600


@dataclass(frozen=True, slots=True)
class _Case:
    """The facts about an object in a case: for each name whether it may be missing and which values it may have."""

    members: dict[str, tuple[bool, Formula]] = field(default_factory=dict)
    demands: tuple[Named, ...] = ()
    some: tuple[Named, ...] = ()
    low: int = 0
    high: int | None = None

    def with_member(self, name: str, absent: bool, held: Formula) -> _Case:
        """The case with an additional fact about a member."""
        members = {**self.members, name: (absent, held)}
        return _Case(members, self.demands, self.some, self.low, self.high)


class Decisions:
    """One query: which objects are in exactly n of the ``sets``, for some n in ``counts``?"""

    def __init__(
        self,
        sets: Sequence[ObjectSet],
        counts: frozenset[int],
        formulas: Formulas,
        is_empty: Callable[[Formula], bool],
        where: str,
    ) -> None:
        """``is_empty(formula)``: whether the formula certainly has no value. ``where``: the place, for messages."""
        self._counts, self._formulas, self._is_empty, self._where = counts, formulas, is_empty, where
        cells = [each for cells in sets for each in cells]
        listed = dict.fromkeys(name for each in cells for name, _ in each.listed)
        self._names = list(listed | dict.fromkeys(sorted({name for each in cells for name in each.required})))
        self._cases = 0
        self._found: dict[Object, None] = {}
        self._order = {name: place for place, name in enumerate(self._names)}
        self._statements = statements = Statements()
        self._groups: Groups = tuple(
            (place, statements.group([self._read(each) for each in cells]))
            for place, cells in enumerate(sets)
        )
        self._orders = [dict.fromkeys(name for each in cells for name, _ in each.listed) for cells in sets]

    def cells(self) -> ObjectSet | None:
        """The objects that answer the query; ``None`` if there are too many cases."""
        pending = [(self._groups, _Case())]
        while pending:
            groups, case = pending.pop()
            self._formulas.work.tick()
            self._cases += 1
            if self._cases > _MOST_CASES or len(self._found) > _MOST_CELLS:
                return None
            held = [place for place, group in groups if group is TRUE]
            left = tuple(
                (place, group) for place, group in groups if group is not TRUE and group is not FALSE
            )
            possible = [count for count in self._counts if len(held) <= count <= len(held) + len(left)]
            if not possible:
                continue
            if len(possible) == len(left) + 1:
                self._emit(case, held)
            elif possible == [len(held) + len(left)] and (cells := _plain(left)) is not None:
                for each in cells:
                    self._emit(self._taken(case, each), [*held, *(place for place, _ in left)])
            else:
                done = tuple((place, TRUE) for place in held)
                pending += reversed([((*done, *rest), inner) for rest, inner in self._split(left, case)])
        return tuple(self._found)

    # --- what cells say -------------------------------------------------------------------------------

    def _read(self, made: Object) -> Cell:
        """The clauses of a cell: one for each listed name, including the demands on it."""
        clauses: list[tuple[Literal, ...]] = []
        listed, formulas, statements = dict(made.listed), self._formulas, self._statements
        for name in self._names:
            held = listed.get(name, ANY)
            for demand in made.demands:
                if demand.names.holds(name):
                    held = formulas.both(held, demand.formula)
            if held is not ANY or name in made.required:
                clauses.append((statements.member(name, name not in made.required, held),))
        for demand in made.demands:
            rest = self._rest(demand.names)
            if rest is not None and demand.formula is not ANY:
                clauses.append((statements.rest(rest, demand.formula, holds=True),))
        for some in made.some:
            options: list[Literal] = [
                statements.member(name, False, some.formula) for name in self._names if some.names.holds(name)
            ]
            rest = self._rest(some.names)
            if rest is not None:
                options.append(statements.rest(rest, formulas.negate(some.formula), holds=False))
            clauses.append(tuple(options))
        if made.low > max(len(made.required), bool(made.some)):
            clauses.append((statements.count(made.low, least=True),))
        if made.high is not None:
            clauses.append((statements.count(made.high + 1, least=False),))
        return statements.cell(map(statements.clause, clauses))

    def _rest(self, names: Strings) -> Strings | None:
        """The names that no set lists."""
        if names.values is not None:
            values = names.values.difference(self._names)
            return Strings(values=values) if values else None
        return replace(names, excluded=names.excluded.union(self._names))

    # --- cases ----------------------------------------------------------------------------------------

    def _split(self, groups: Groups, case: _Case) -> Iterator[tuple[Groups, _Case]]:
        """The cases of one variable, with the remaining conditions."""
        variable = self._variable(groups)
        if isinstance(variable, str):
            for left, absent, region in self._regions(variable, groups):
                yield left, case.with_member(variable, absent, region)
        elif variable is None:
            for left, low, high in self._numbers(groups):
                yield left, _counted(case, low, high)
        else:
            for holds in (True, False):

                def decide(literal: Literal, holds: bool = holds) -> bool | None:
                    return (
                        literal.all is holds
                        if isinstance(literal, Rest) and literal.about is variable
                        else None
                    )

                left = self._statements.decided(groups, variable, (variable, holds), decide)
                yield left, self._rested(case, variable, holds)

    def _variable(self, groups: Groups) -> Variable:
        """The variable that most sets constrain: names before other members, and the number of members last."""
        seen: Counter[Variable] = Counter()
        for _, group in groups:
            seen.update(group.variables.keys())
        order, last = self._order, len(self._order)

        def rank(variable: Variable) -> tuple[bool, int, int]:
            place = order[variable] if isinstance(variable, str) else last
            return variable is None, -seen[variable], place

        return min(seen, key=rank)

    def _regions(self, name: str, groups: Groups) -> Iterator[tuple[Groups, bool, Formula]]:
        """The remaining conditions for each kind of a member: whether it may be missing, and its values."""
        statements = self._statements
        missing = statements.decided(
            groups,
            name,
            (name, None),
            lambda literal: literal.absent if _speaks_of(literal, name) else None,
        )
        present = self._divided(name, self._valued(groups, name, ANY, holds=True), ANY)
        for left, region in present.items():
            yield left, left == missing, region
        if missing not in present:
            yield missing, True, NONE

    def _valued(self, groups: Groups, name: str, formula: Formula, *, holds: bool) -> Groups:
        """The remaining conditions if the member is present and ``formula`` is true or false for its value."""
        return self._statements.decided(
            groups,
            name,
            (name, formula, holds),
            lambda literal: _value_of(literal, name, formula, holds=holds),
        )

    def _divided(self, name: str, left: Groups, region: Formula) -> dict[Groups, Formula]:
        """The remaining conditions if the member is present, and for each the values in a region that lead to it."""
        self._formulas.work.tick()
        said: Counter[Formula] = Counter()
        for _, group in left:
            if name in group.variables:
                said.update(group.said(name))
        if not said:
            return {left: region}
        [(formula, _)] = said.most_common(1)
        inside = self._formulas.both(region, formula)
        outside = self._formulas.both(region, self._formulas.negate(formula))
        holds = self._valued(left, name, formula, holds=True)
        fails = self._valued(left, name, formula, holds=False)
        if self._is_empty(inside):
            return self._divided(name, fails, region)
        if self._is_empty(outside):
            return self._divided(name, holds, region)
        found, others = self._divided(name, holds, inside), self._divided(name, fails, outside)
        if len(found) == 1 and found.keys() == others.keys():
            return dict.fromkeys(found, region)
        for rest, values in others.items():
            found[rest] = self._formulas.any_of((found[rest], values)) if rest in found else values
        return found

    def _numbers(self, groups: Groups) -> Iterator[tuple[Groups, int, int | None]]:
        """The remaining conditions for each range of the number of members."""
        said = {each.number for each in _literals(groups) if isinstance(each, Count)}
        for low, beyond in pairwise([0, *sorted(said - {0}), None]):
            assert low is not None

            def decide(literal: Literal, low: int = low) -> bool | None:
                return (low >= literal.number) is literal.least if isinstance(literal, Count) else None

            left = self._statements.decided(groups, None, (None, low), decide)
            yield left, low, None if beyond is None else beyond - 1

    def _rested(self, case: _Case, others: Others, holds: bool) -> _Case:
        if holds:
            return replace(case, demands=(*case.demands, Named(others.names, others.held)))
        return replace(case, some=(*case.some, Named(others.names, self._formulas.negate(others.held))))

    # --- answers --------------------------------------------------------------------------------------

    def _taken(self, case: _Case, literals: list[Literal]) -> _Case:
        """A case in which all of these literals are also true."""
        for literal in literals:
            if isinstance(literal, Member):
                absent, region = case.members.get(literal.about, (True, ANY))
                region = self._formulas.both(region, literal.held)
                case = case.with_member(literal.about, absent and literal.absent, region)
            elif isinstance(literal, Rest):
                case = self._rested(case, literal.about, literal.all)
            elif literal.least:
                case = _counted(case, literal.number, None)
            else:
                case = _counted(case, 0, literal.number - 1)
        return case

    def _emit(self, case: _Case, held: list[int]) -> None:
        """The objects of a case, with members in the order of the first set that contains them."""
        order = self._orders[min(held)] if held else {}
        names = order | dict.fromkeys(self._names)
        listed = tuple((name, case.members.get(name, (True, ANY))[1]) for name in names)
        required = frozenset(name for name, (absent, _) in case.members.items() if not absent)
        made = Object(listed, required, case.demands, case.some, case.low, case.high, self._where)
        self._found.update(dict.fromkeys(cell(made, self._formulas)))


def _literals(groups: Groups) -> Iterator[Literal]:
    return (
        each
        for _, group in groups
        for made in group.cells
        for clause in made.clauses
        for each in clause.literals
    )


def _speaks_of(literal: Literal, name: str) -> TypeGuard[Member]:
    return literal.about == name


def _value_of(literal: Literal, name: str, formula: Formula, *, holds: bool) -> bool | None:
    """Whether a literal is true for a member that is present, if ``formula`` is true or false for its value."""
    if not _speaks_of(literal, name):
        return None
    if literal.held is ANY or literal.held is NONE:
        return literal.held is ANY
    return holds if literal.held is formula else None


def _plain(groups: Groups) -> list[list[Literal]] | None:
    """For each alternative, the literals that make all sets contain the object; ``None`` unless these are clearly
    few.
    """
    if sum(len(group.cells) > 1 for _, group in groups) > 1:
        return None
    ways: list[list[Literal]] = [[]]
    for _, group in groups:
        if any(len(clause.literals) > 1 for made in group.cells for clause in made.clauses):
            return None
        ways = [
            [*way, *(each for clause in made.clauses for each in clause.literals)]
            for way in ways
            for made in group.cells
        ]
    return ways


def _counted(case: _Case, low: int, high: int | None) -> _Case:
    highs = [each for each in (case.high, high) if each is not None]
    return replace(case, low=max(case.low, low), high=min(highs, default=None))
