"""The texts of an object cell: listed members in their order, then the others.

The idea: a listed member is preceded by a comma unless it is the first one present. The first one is found by halves:
either it is in the first half, and then all members of the second half follow commas, or it is in the second half. So n
optional members cost O(n log n), instead of 2^n as a tree. If the number of members matters, there is an expression for
each listed name and each number written so far. After the listed names come those that are only required, and all other
members, in any order (``expression.unordered``). With ``property_order="any"``, everything comes in any order. The
names of other members differ from the listed and required ones: the demands on names split all strings into disjoint
classes, each with its own value. A class of few names is listed; the names of a large class are compared as the text is
generated (``distinct``).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

from tokenfst._native import first_of
from tokenfst.automata.expressions.expression import EMPTY, EPSILON, Expr, concat, union, unordered
from tokenfst.automata.json_schema.sets import strings as schema_strings
from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula
from tokenfst.automata.json_schema.sets.objects import Named, Object
from tokenfst.automata.json_schema.sets.strings import Strings, has_surrogate
from tokenfst.automata.json_schema.sets.value_sets import EVERY
from tokenfst.automata.json_schema.writing.choices import Groups, choices, subsets
from tokenfst.automata.json_schema.writing.distinct import (
    MANY,
    MOST_LISTED,
    MOST_OPTIONS,
    TextCount,
    count_texts,
    fresh_text,
)
from tokenfst.automata.json_schema.writing.layout import Differs
from tokenfst.errors import UnsupportedSchemaError

if TYPE_CHECKING:
    from tokenfst.automata.json_schema.writing.writer import Writer

_MOST_SOME = 6
_MOST_CLASSES = 64
_MOST_COUNTED = 40_000
_RUN = 100
_LOOK = 3

_Class = tuple[Strings, Formula]


class Members:
    """Writes one object cell."""

    def __init__(self, writer: Writer, cell: Object, *, differs: Differs = "") -> None:
        """``differs``: as for ``Writer.bracketed``."""
        self.writer, self.cell, self.differs = writer, cell, differs
        self.formulas, self.layout = writer.meaning.formulas, writer.layout
        self.any_order = writer.any_order
        self.distinct = False
        """Whether there are names that are compared as the text is generated."""

    def texts(self) -> Expr:
        """The texts of all objects of the cell. Raises UnsupportedSchemaError if they need too many states."""
        held = self.cell.held()
        if held is not None:
            return self.plain(dict(self.cell.listed), self.cell.required, held)
        listed = {name for name, _ in self.cell.listed}
        pending = sorted((self.cell.required | self._few(listed)) - listed)
        cell = self.cell
        if pending:
            cell = replace(cell, listed=(*cell.listed, *((name, ANY) for name in pending)))
        values = cell.values(self.formulas)
        classes = self._classes(frozenset(values))
        ways = choices(cell, values, self.formulas, free=bool(classes))
        return union(
            *(
                self.written(
                    values | way.listed, cell.required | way.listed.keys(), set(pending), classes, way.groups
                )
                for way in ways
            )
        )

    def plain(self, values: dict[str, Formula], required: frozenset[str], held: Formula) -> Expr:
        """The texts of objects with these ``values`` of listed names, whose other members have values in ``held``."""
        pending = sorted(required - values.keys())
        if pending:
            values = {**values, **dict.fromkeys(pending, held)}
        classes = [] if held is NONE else [(Strings(excluded=frozenset(values)), held)]
        return self.written(values, required, set(pending), classes, ())

    # --- names ----------------------------------------------------------------------------------------

    def _count_texts(self, names: schema_strings.StringSet) -> TextCount:
        return count_texts(names, self.layout.spelling, self.formulas.work)

    def _few(self, listed: set[str]) -> frozenset[str]:
        """Unlisted names that are so few that they can be listed."""
        if not self.writer.distinct:
            return frozenset()
        work = self.formulas.work
        found = [self._count_texts((each.names,)).words or frozenset() for each in self.cell.some]
        if len(self.cell.some) <= _MOST_SOME:
            others = (
                tuple(strings for strings, _ in self._classes(frozenset(listed))) if self.cell.some else ()
            )
            for group in subsets(self.cell.some):
                names: schema_strings.StringSet = others
                for each in group:
                    names = schema_strings.meet(names, (each.names,), work)
                found.append(self._count_texts(names).words or frozenset())
        if self.cell.demands:
            words_of_classes = [
                self._count_texts((strings,)).words or frozenset()
                for strings, _ in self._classes(frozenset(listed))
            ]
            found += [words for words in words_of_classes if len(words) <= MOST_OPTIONS]
        return frozenset().union(*found)

    def _free(self, strings: Strings) -> Expr:
        """The texts of names that are not listed."""
        if not self.writer.distinct:
            return strings.json(self.layout.spelling, self.formulas.work)
        found = fresh_text((strings,), self.layout.spelling, self.formulas.work)
        self.distinct |= found is not EMPTY
        return found

    def _supply(self, classes: list[_Class], free: list[Formula]) -> tuple[int, bool]:
        """A lower bound of the number of unlisted names, less the ``free`` members that may have no value; and
        whether it is exact.

        The number is unbounded if there are infinitely many names for which it is only not known whether they have
        a value: if they have none, no such member ever begins.
        """
        supply, exact, endless = 0, True, False
        for strings, held in classes:
            count = self._count_texts((strings,)).count if self.writer.distinct else MANY
            held_by_some = self._has_value(held)
            if held_by_some is False or count == 0:
                continue
            if held_by_some is None:
                endless, exact = endless or count == MANY, exact and count == MANY
            else:
                supply += 1 if count is None else count  # if the number is not known, there is at least one
                exact &= count is not None
        if endless and supply < MANY:
            supply, exact = (MANY, True) if exact and not supply else (supply, False)
        if supply < MANY:
            unsure = sum(self._has_value(held) is None for held in free)
            return supply - unsure, exact and not unsure
        return supply, exact

    def _has_value(self, formula: Formula, depth: int = _LOOK) -> bool | None:
        """Whether a formula has a value, by a check of this number of levels of parts."""
        value_set = EVERY if formula is ANY else self.writer.meaning.value_set(formula)
        if any((value_set.null, value_set.true, value_set.false, value_set.has_numbers())) or any(
            cell.json(self.layout.spelling, self.formulas.work) is not EMPTY for cell in value_set.strings
        ):
            return True
        if any(cell.low == 0 for cell in value_set.arrays) or any(
            cell.low == 0 for cell in value_set.objects
        ):
            return True
        if depth and any(self._has_plain_value(cell, depth - 1) for cell in value_set.objects):
            return True
        return None if value_set.arrays or value_set.objects else False

    def _has_plain_value(self, cell: Object, depth: int) -> bool:
        """Whether an object with only the required members of a cell is clearly in it."""
        if cell.some or cell.low > len(cell.required):
            return False
        values = replace(cell, listed=(*((name, ANY) for name in cell.required), *cell.listed)).values(
            self.formulas
        )
        return all(not has_surrogate(name) and self._has_value(values[name], depth) for name in cell.required)

    def _classes(self, listed: frozenset[str]) -> list[_Class]:
        """Disjoint sets of all unlisted names, with the conditions on their values; without unsatisfiable ones."""
        classes: list[_Class] = [(Strings(excluded=listed), ANY)]
        for demand in self.cell.demands:
            classes = [part for each in classes for part in self._split(each, demand)]
            if len(classes) > _MOST_CLASSES:
                raise UnsupportedSchemaError(
                    self.cell.where, f"its patterns split names into more than {_MOST_CLASSES} classes"
                )
        return classes

    def _split(self, names: _Class, demand: Named) -> list[_Class]:
        strings, formula = names
        work = self.formulas.work
        both = self.formulas.all_of((formula, demand.formula))
        if both is formula:
            return [names]
        outside = schema_strings.meet((strings,), schema_strings.invert((demand.names,), work), work)
        disjoint: list[_Class] = []
        taken: list[Strings] = []
        for each in outside:
            fresh: schema_strings.StringSet = (each,)
            for other in taken:
                fresh = schema_strings.meet(fresh, schema_strings.invert((other,), work), work)
            disjoint += [(one, formula) for one in fresh]
            taken.append(each)
        if both is not NONE:
            disjoint += [(one, both) for one in schema_strings.meet((strings,), (demand.names,), work)]
        return disjoint

    # --- texts ----------------------------------------------------------------------------------------

    def written(
        self,
        values: dict[str, Formula],
        required: frozenset[str],
        pending: set[str],
        classes: list[_Class],
        some: Groups,
    ) -> Expr:
        """The texts of objects with these ``values`` of listed names.

        ``pending``: names that come after the other listed ones, together with members whose names are in one of
        ``classes``, and with one member for each of ``some``.
        """
        names = list(values)
        if NONE in values.values() or not "".join(names).isascii():
            names = [name for name in names if values[name] is not NONE and not has_surrogate(name)]
            if not required.issubset(names):
                return EMPTY
        low, high = self.cell.low, self.cell.high
        if high == 0 and not required:
            return self.writer.bracketed(b"{", EMPTY, b"}", empty=not some, differs=self.differs)
        witnesses = [union(*(self._witnesses(each, classes, alone=len(some) == 1))) for each in some]
        others = union(*(self._member(self._free(strings), held) for strings, held in classes))
        if high is not None and others is EMPTY and high >= len(names):
            high = None
        if low <= len(required):
            low = 0
        counted = high is not None or low > 1
        members = self.writer.members(names, values)
        left = [members[name] for name in names if name in required and (self.any_order or name in pending)]
        apart = [
            members[name] for name in names if name not in required and (self.any_order or name in pending)
        ]
        if low > len(required) + 1 and others is not EMPTY and not self.writer.distinct:
            raise UnsupportedSchemaError(
                self.cell.where,
                f"it asks for {low} members and requires {len(required)}: the others may have names that are not "
                f"listed, and a text may repeat such a name, so that only one of these members counts",
            )
        supply = (0, True)
        if low and others is not EMPTY:
            free = [
                values[name] for name in names if name not in required and (self.any_order or name in pending)
            ]
            supply = self._supply(classes, free)
        if self.any_order:
            inner = self._any_order(left, witnesses, apart, others, low, high, supply)
        else:
            tail = self._tail(left, witnesses, apart, others, low, high, supply, counted=counted)
            ordered = [(members[name], name in required) for name in names if name not in pending]
            inner = self._counted(ordered, tail, low, high) if counted else self._listed(ordered, tail)
        empty = not required and not some and low == 0
        return self.writer.bracketed(
            b"{", inner, b"}", empty=empty, distinct=self.distinct, differs=self.differs
        )

    def _member(self, name: Expr, formula: Formula) -> Expr:
        return concat(name, self.layout.colon, self.writer.value(formula))

    def _witnesses(self, group: tuple[Named, ...], classes: list[_Class], *, alone: bool) -> list[Expr]:
        """The members without a listed name that satisfy all of a group; ``alone``: there is no other group.

        If it is alone, finitely many names cannot be used up, if every member with such a name is the required one.
        """
        found = []
        distinct = self.writer.distinct
        for strings, held in classes:
            formula = self.formulas.all_of((held, *(each.formula for each in group)))
            names: schema_strings.StringSet = (strings,)
            for each in group:
                names = schema_strings.meet(names, (each.names,), self.formulas.work)
            if formula is not NONE:
                surely = alone and formula is held
                if (
                    distinct
                    and not surely
                    and any(self._count_texts((one,)).count not in (0, MANY) for one in names)
                ):
                    raise UnsupportedSchemaError(
                        self.cell.where,
                        f"a member must be there out of more than {MOST_LISTED} names, but finitely many, that other "
                        f"members may use up",
                    )
                found += [self._member(self._free(one), formula) for one in names]
        return found

    def _listed(self, ordered: list[tuple[Expr, bool]], tail: Callable[[int], Expr]) -> Expr:
        """All members, at least one. ``tail(n)`` are the texts after the listed ones: n = 0 if none is written.

        By halves: either the first half has a member, and those of the second follow after commas, or it has none.
        """
        if not ordered:
            return tail(0)
        later = [self.writer.later(member, needed) for member, needed in ordered]
        needs = [needed for _, needed in ordered]
        some = True in needs
        first = needs.index(True) + 1 if some else len(needs)
        listed = concat(first_of([member for member, _ in ordered], later, first), *later[first:], tail(1))
        return listed if some else union(listed, tail(0))

    def _counted(
        self, ordered: list[tuple[Expr, bool]], tail: Callable[[int], Expr], low: int, high: int | None
    ) -> Expr:
        """All members, at least one, if their number matters.

        ``tail(n)`` are the texts after the listed members when n of them are written, or at least n if a higher
        number makes no difference.
        """
        comma = self.layout.comma
        most = max(low, 1) if high is None else high
        steps = len(ordered) * min(len(ordered), most)
        if steps > _MOST_COUNTED:
            raise UnsupportedSchemaError(
                self.cell.where,
                f"counting {len(ordered):,} listed members takes {steps:,} steps, more than {_MOST_COUNTED:,}",
            )
        after = [tail(count) for count in range(min(len(ordered), most) + 1)]
        for place in range(len(ordered) - 1, -1, -1):
            member, needed = ordered[place]
            before = []
            for count in range(min(place, most) + 1):
                following = count + 1 if count < most else (most if high is None else None)
                lead = member if count == 0 else concat(comma, member)
                written = EMPTY if following is None else concat(lead, after[following])
                before.append(written if needed else union(written, after[count]))
            after = before
            if place and place % _RUN == 0:
                after = [self._apart(each) for each in after]
        return after[0]

    def _apart(self, expr: Expr) -> Expr:
        """An expression as a separate rule, so that nothing is nested very deeply."""
        return expr if expr is EMPTY or expr is EPSILON else self.writer.rule("members", lambda: expr)

    def _tail(
        self,
        left: list[Expr],
        some: list[Expr],
        apart: list[Expr],
        others: Expr,
        low: int,
        high: int | None,
        supply: tuple[int, bool],
        *,
        counted: bool,
    ) -> Callable[[int], Expr]:
        """The texts after the listed members: any others, in any order.

        Each of ``left`` and ``some`` occurs once, and each of ``apart`` at most once.
        """
        plain = None if counted else self._any_order(left, some, apart, others, 0, None, supply)

        def tail(count: int) -> Expr:
            least = max(low - count, 0) if counted else 0
            most = high - count if counted and high is not None else None
            more = self._any_order(left, some, apart, others, least, most, supply) if plain is None else plain
            if not count:
                return more
            done = EPSILON if not left and not some and least == 0 else EMPTY
            return union(done, concat(self.layout.comma, more))

        return tail

    def _any_order(
        self,
        required: list[Expr],
        some: list[Expr],
        free: list[Expr],
        others: Expr,
        low: int,
        high: int | None,
        supply: tuple[int, bool],
    ) -> Expr:
        """Members in any order, at least one. ``supply``: the number of free names (``_supply``)."""
        if others is EMPTY and not required and not some and not free:
            return EMPTY
        names = len(required) + len(some) + sum(member is not EMPTY for member in free) + supply[0]
        if low > names and others is not EMPTY:
            if supply[1]:
                return EMPTY
            raise UnsupportedSchemaError(
                self.cell.where,
                f"it asks for {self.cell.low} members, and of names that are not listed it is not known how many there "
                f"are with a value",
            )
        return unordered(
            [*required, *some, *free],
            self.layout.comma,
            required=len(required) + len(some),
            other=others,
            low=max(low, 1),
            high=high,
        )
