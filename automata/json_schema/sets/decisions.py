"""How many of several sets of objects hold: exactly one of them (``oneOf``), none (``not``), all (``allOf``).

The idea: written out, "exactly one of n" is a product of n complements, each a union of as many cells as a schema says
things. But schemas mostly speak of the same few names. So the cases are told apart one name after the other, the one
first that most of the undecided sets speak of: it is not there, or its value is in one of the regions into which what
is said of it splits all values. Each case decides some of the sets, and is done as soon as the number of those that
hold is known; cases in which the same is left to decide are one. So a discriminator is asked once, and what does not
interact is never multiplied (Shannon's expansion, as of decision diagrams, over variables with several values).

What is said of names that no set lists is a variable that holds or not, and so is the number of members.

Invariants: the cells of different cases share no object. Literals of a clause are alternatives; clauses of a cell hold
together; of a set, one cell holds.

Cost: a step for each case, and there are at most ``_MOST_CASES``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import TypeGuard

from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula, Formulas
from tokenfst.automata.json_schema.sets.objects import Named, Object, ObjectSet, cell
from tokenfst.automata.json_schema.sets.strings import Strings

_MOST_CASES = 20_000
_MOST_CELLS = 600


@dataclass(frozen=True, slots=True)
class _Member:
    """Of the member ``name``: it may be missing if ``absent``, and if it is there, its value is in ``held``."""

    name: str
    absent: bool
    held: Formula


@dataclass(frozen=True, slots=True)
class _Rest:
    """All members with one of these names, which no set lists, have values in ``held``; not ``all``: one has not."""

    names: Strings
    held: Formula
    all: bool = True


@dataclass(frozen=True, slots=True)
class _Count:
    """There are at least so many members; or, not ``least``, fewer."""

    number: int
    least: bool = True


_Literal = _Member | _Rest | _Count
# Tuples, not sets: in which order cases are told apart must not depend on addresses.
_Clause = tuple[_Literal, ...]
_Cell = tuple[_Clause, ...]
_Group = tuple[_Cell, ...]
_Variable = str | tuple[Strings, Formula] | None
"""A name; of other names, which and what holds of them; ``None`` for the number of members."""

_TRUE: _Group = ((),)
_FALSE: _Group = ()
_Groups = tuple[tuple[int, _Group], ...]
"""What is left to decide of sets, by their place."""


@dataclass(frozen=True, slots=True)
class _Case:
    """What is known of an object: for each name whether it may be missing and which values it may have."""

    members: dict[str, tuple[bool, Formula]] = field(default_factory=dict)
    demands: tuple[Named, ...] = ()
    some: tuple[Named, ...] = ()
    low: int = 0
    high: int | None = None


class Decisions:
    """One question: in which objects is the number of ``sets`` that hold one of ``counts``?"""

    def __init__(
        self,
        sets: Sequence[ObjectSet],
        counts: frozenset[int],
        formulas: Formulas,
        is_empty: Callable[[Formula], bool],
        where: str,
    ) -> None:
        """``is_empty``: whether a formula surely has no value."""
        self._counts, self._formulas, self._is_empty, self._where = counts, formulas, is_empty, where
        cells = [each for cells in sets for each in cells]
        listed = dict.fromkeys(name for each in cells for name, _ in each.listed)
        self._names = list(listed | dict.fromkeys(sorted({name for each in cells for name in each.required})))
        self._cases = 0
        self._found: dict[Object, None] = {}
        self._groups: _Groups = tuple(
            (place, _group([self._read(each) for each in cells])) for place, cells in enumerate(sets)
        )
        self._orders = [dict.fromkeys(name for each in cells for name, _ in each.listed) for cells in sets]

    def cells(self) -> ObjectSet | None:
        """The objects; ``None`` where there are too many cases."""
        pending = [(self._groups, _Case())]
        while pending:
            groups, case = pending.pop()
            self._formulas.work.tick()
            self._cases += 1
            if self._cases > _MOST_CASES or len(self._found) > _MOST_CELLS:
                return None
            held = [place for place, group in groups if group == _TRUE]
            left = tuple((place, group) for place, group in groups if group not in (_TRUE, _FALSE))
            possible = [count for count in self._counts if len(held) <= count <= len(held) + len(left)]
            if not possible:
                continue
            if len(possible) == len(left) + 1:
                self._emit(case, held)
            elif possible == [len(held) + len(left)] and (cells := _plain(left)) is not None:
                for each in cells:
                    self._emit(self._taken(case, each), [*held, *(place for place, _ in left)])
            else:
                done = tuple((place, _TRUE) for place in held)
                pending += reversed([((*done, *rest), inner) for rest, inner in self._split(left, case)])
        return tuple(self._found)

    # --- what cells say -------------------------------------------------------------------------------

    def _read(self, made: Object) -> _Cell:
        """The clauses of a cell: of each listed name one, with what demands say of it."""
        clauses: dict[_Clause, None] = {}
        listed, formulas = dict(made.listed), self._formulas
        for name in self._names:
            held = listed.get(name, ANY)
            for demand in made.demands:
                if demand.names.holds(name):
                    held = formulas.both(held, demand.formula)
            if held is not ANY or name in made.required:
                clauses[(_Member(name, name not in made.required, held),)] = None
        for demand in made.demands:
            rest = self._rest(demand.names)
            if rest is not None and demand.formula is not ANY:
                clauses[(_Rest(rest, demand.formula),)] = None
        for some in made.some:
            options: list[_Literal] = [
                _Member(name, False, some.formula) for name in self._names if some.names.holds(name)
            ]
            rest = self._rest(some.names)
            if rest is not None:
                options.append(_Rest(rest, formulas.negate(some.formula), False))
            clauses[tuple(options)] = None
        if made.low > max(len(made.required), bool(made.some)):
            clauses[(_Count(made.low),)] = None
        if made.high is not None:
            clauses[(_Count(made.high + 1, False),)] = None
        return tuple(clauses)

    def _rest(self, names: Strings) -> Strings | None:
        """Those that no set lists."""
        if names.values is not None:
            values = names.values.difference(self._names)
            return Strings(values=values) if values else None
        return replace(names, excluded=names.excluded.union(self._names))

    # --- cases ----------------------------------------------------------------------------------------

    def _split(self, groups: _Groups, case: _Case) -> Iterator[tuple[_Groups, _Case]]:
        """The cases of one variable, with what is left to decide."""
        variable = self._variable(groups)
        if isinstance(variable, str):
            for left, absent, region in self._regions(variable, groups):
                yield left, replace(case, members={**case.members, variable: (absent, region)})
        elif variable is None:
            for left, low, high in _numbers(groups):
                yield left, _counted(case, low, high)
        else:
            names, formula = variable
            for holds in (True, False):

                def decide(literal: _Literal, holds: bool = holds) -> bool | None:
                    if isinstance(literal, _Rest) and (literal.names, literal.held) == variable:
                        return literal.all is holds
                    return None

                yield _decided(groups, decide), self._rested(case, names, formula, holds)

    def _variable(self, groups: _Groups) -> _Variable:
        """What most sets speak of: a name rather than what is said of others, and the number of members last."""
        seen: Counter[_Variable] = Counter()
        for one in groups:
            seen.update(list(dict.fromkeys(_variable(each) for each in _literals((one,)))))
        order = {name: place for place, name in enumerate(self._names)}

        def rank(variable: _Variable) -> tuple[bool, int, int]:
            place = order[variable] if isinstance(variable, str) else len(order)
            return variable is None, -seen[variable], place

        return min(seen, key=rank)

    def _regions(self, name: str, groups: _Groups) -> Iterator[tuple[_Groups, bool, Formula]]:
        """What is left to decide, for each kind of a member: whether it may be missing, and its values."""

        missing = _decided(groups, lambda literal: literal.absent if _speaks_of(literal, name) else None)
        present = self._divided(
            name, _decided(groups, lambda literal: _value_of(literal, name, ANY, holds=True)), ANY
        )
        for left, region in present.items():
            yield left, left == missing, region
        if missing not in present:
            yield missing, True, NONE

    def _divided(self, name: str, left: _Groups, region: Formula) -> dict[_Groups, Formula]:
        """What is left where the member is there, and the values in a region for which that is so."""
        self._formulas.work.tick()
        said = Counter(literal.held for literal in _literals(left) if _speaks_of(literal, name))
        if not said:
            return {left: region}
        [(formula, _)] = said.most_common(1)
        inside = self._formulas.both(region, formula)
        outside = self._formulas.both(region, self._formulas.negate(formula))
        holds = _decided(left, lambda literal: _value_of(literal, name, formula, holds=True))
        fails = _decided(left, lambda literal: _value_of(literal, name, formula, holds=False))
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

    def _rested(self, case: _Case, names: Strings, formula: Formula, holds: bool) -> _Case:
        if holds:
            return replace(case, demands=(*case.demands, Named(names, formula)))
        return replace(case, some=(*case.some, Named(names, self._formulas.negate(formula))))

    # --- answers --------------------------------------------------------------------------------------

    def _taken(self, case: _Case, literals: list[_Literal]) -> _Case:
        """A case in which all of these hold, too."""
        for literal in literals:
            if isinstance(literal, _Member):
                absent, region = case.members.get(literal.name, (True, ANY))
                region = self._formulas.both(region, literal.held)
                case = replace(
                    case, members={**case.members, literal.name: (absent and literal.absent, region)}
                )
            elif isinstance(literal, _Rest):
                case = self._rested(case, literal.names, literal.held, literal.all)
            elif literal.least:
                case = _counted(case, literal.number, None)
            else:
                case = _counted(case, 0, literal.number - 1)
        return case

    def _emit(self, case: _Case, held: list[int]) -> None:
        """The objects of a case, their members in the order of the first set that holds."""
        order = self._orders[min(held)] if held else {}
        names = order | dict.fromkeys(self._names)
        listed = tuple((name, case.members.get(name, (True, ANY))[1]) for name in names)
        required = frozenset(name for name, (absent, _) in case.members.items() if not absent)
        made = Object(listed, required, case.demands, case.some, case.low, case.high, self._where)
        self._found.update(dict.fromkeys(cell(made, self._formulas)))


def _literals(groups: _Groups) -> Iterator[_Literal]:
    return (each for _, group in groups for made in group for clause in made for each in clause)


def _speaks_of(literal: _Literal, name: str) -> TypeGuard[_Member]:
    return isinstance(literal, _Member) and literal.name == name


def _value_of(literal: _Literal, name: str, formula: Formula, *, holds: bool) -> bool | None:
    """Whether a literal holds of a member that is there, if ``formula`` holds of its value, or does not."""
    if not _speaks_of(literal, name):
        return None
    if literal.held is ANY or literal.held is NONE:
        return literal.held is ANY
    return holds if literal.held is formula else None


def _variable(literal: _Literal) -> _Variable:
    if isinstance(literal, _Member):
        return literal.name
    return (literal.names, literal.held) if isinstance(literal, _Rest) else None


def _group(cells: list[_Cell]) -> _Group:
    return _TRUE if () in cells else tuple(dict.fromkeys(cells))


def _decided(groups: _Groups, decide: Callable[[_Literal], bool | None]) -> _Groups:
    """The sets, given whether some literals hold."""
    known: dict[_Clause, _Clause | bool] = {}

    def clause_left(clause: _Clause) -> _Clause | bool:
        found = known.get(clause)
        if found is None:
            answers = {literal: decide(literal) for literal in clause}
            rest = tuple(literal for literal, answer in answers.items() if answer is None)
            found = known[clause] = True if True in answers.values() else (rest or False)
        return found

    result = []
    for place, group in groups:
        cells = []
        for made in group:
            left = [clause_left(clause) for clause in made]
            if False not in left:
                cells.append(tuple(dict.fromkeys(clause for clause in left if not isinstance(clause, bool))))
        result.append((place, _group(cells)))
    return tuple(result)


def _plain(groups: _Groups) -> list[list[_Literal]] | None:
    """The literals that make all sets hold, for each way; ``None`` if these are not plainly few."""
    if sum(len(group) > 1 for _, group in groups) > 1:
        return None
    ways: list[list[_Literal]] = [[]]
    for _, group in groups:
        if any(len(clause) > 1 for made in group for clause in made):
            return None
        ways = [[*way, *(each for clause in made for each in clause)] for way in ways for made in group]
    return ways


def _numbers(groups: _Groups) -> Iterator[tuple[_Groups, int, int | None]]:
    """What is left to decide, from one number of members to another."""
    said = {each.number for each in _literals(groups) if isinstance(each, _Count)}
    for low, beyond in pairwise([0, *sorted(said - {0}), None]):
        assert low is not None

        def decide(literal: _Literal, low: int = low) -> bool | None:
            return (low >= literal.number) is literal.least if isinstance(literal, _Count) else None

        yield _decided(groups, decide), low, None if beyond is None else beyond - 1


def _counted(case: _Case, low: int, high: int | None) -> _Case:
    highs = [each for each in (case.high, high) if each is not None]
    return replace(case, low=max(case.low, low), high=min(highs, default=None))
