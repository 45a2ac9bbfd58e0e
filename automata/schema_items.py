"""The texts of an array cell: the first items one by one, then a counted repetition.

Where items are counted by what they are (``contains``), the sequence is walked by a small automaton of its own, whose
states are rules: the number of items up to where it matters, and how many of each kind there were. Both only grow, so
a state leads back to itself at most, which is a loop; and a rule calls the next one last, so no stack is needed. Where
they must differ (``uniqueItems``) and have listed values, each value is a member that comes at most once, in any order
(``expression.unordered``); strings that are not listed are told apart as the text goes on (``schema_fresh``).
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from tokenfst.automata.expression import EMPTY, EPSILON, Expr, concat, repeat, union, unordered
from tokenfst.automata.schema_arrays import Array, Contains
from tokenfst.automata.schema_formula import NONE, Formula
from tokenfst.automata.schema_fresh import fresh_text, room
from tokenfst.automata.schema_shape import Shape
from tokenfst.automata.schema_strings import subset_of_words
from tokenfst.automata.schema_values import listed_values
from tokenfst.errors import UnsupportedSchemaError

if TYPE_CHECKING:
    from tokenfst.automata.schema_text import Writer

_MOST_STATES = 2_000

_State = tuple[int, tuple[int, ...]]


class Items:
    """Writes one cell."""

    def __init__(self, writer: Writer, cell: Array) -> None:
        self.writer, self.cell = writer, cell
        self.formulas, self.layout = writer.meaning.formulas, writer.layout

    def texts(self) -> Expr:
        """The texts of all arrays of the cell. UnsupportedSchemaError for what needs too many states."""
        distinct = False
        if self.cell.unique and (self.cell.high is None or self.cell.high > 1):
            strings = self._different_strings()
            distinct = strings is not None
            inner = self._distinct() if strings is None else strings
        elif self.cell.contains:
            inner = self._containing()
        else:
            inner = self._plain()
        return self.writer.bracketed(b"[", inner, b"]", empty=self.cell.low == 0, distinct=distinct)

    def _plain(self) -> Expr:
        """The items in order; like all of these, without the empty sequence."""
        return self._in_order(
            [self.writer.value(item) for item in self.cell.prefix], self.writer.value(self.cell.rest)
        )

    def _in_order(self, prefix: list[Expr], rest: Expr) -> Expr:
        """The same, given the texts of items."""
        cell, comma = self.cell, self.layout.comma
        length = len(prefix)
        if not length:
            if cell.high == 0 or rest is EMPTY:
                return EMPTY
            most = None if cell.high is None else cell.high - 1
            return concat(rest, repeat(concat(comma, rest), max(cell.low - 1, 0), most))
        after: Expr = EPSILON
        if rest is not EMPTY and (cell.high is None or cell.high > length):
            most = None if cell.high is None else cell.high - length
            after = repeat(concat(comma, rest), max(cell.low - length, 0), most)
        elif cell.low > length:
            return EMPTY
        for place in range(length - 1, -1, -1):
            item = prefix[place]
            after = concat(item if place == 0 else concat(comma, item), after)
            if place and place >= cell.low:
                after = union(after, EPSILON)
        return after

    # --- contains -------------------------------------------------------------------------------------

    def _containing(self) -> Expr:
        """Items counted by kind."""
        cell = self.cell
        last = max([1, len(cell.prefix), cell.low, cell.high or 0, *(each.start for each in cell.contains)])
        caps = tuple(each.low if each.high is None else each.high for each in cell.contains)
        states = last + 1
        for cap in caps:
            states *= cap + 1
        if states > _MOST_STATES:
            raise UnsupportedSchemaError(
                cell.contains[0].where,
                f"counting up to such bounds takes {states:,} states, more than {_MOST_STATES:,}",
            )
        start: _State = (0, (0,) * len(caps))
        names: dict[_State, Expr] = {}

        def state(key: _State) -> Expr:
            if key not in names:
                names[key] = self.writer.rule("contains", lambda: self._step(key, last, caps, state))
            return names[key]

        return self._step(start, last, caps, state)

    def _step(self, key: _State, last: int, caps: tuple[int, ...], state: Callable[[_State], Expr]) -> Expr:
        place, counts = key
        cell = self.cell
        alternatives: list[Expr] = []
        again: list[Expr] = []
        enough = all(count >= each.low for count, each in zip(counts, cell.contains, strict=True))
        if enough and place and place >= cell.low:
            alternatives.append(EPSILON)
        if cell.high is None or place < cell.high:
            kinds = [
                self._kinds(each, count, place) for each, count in zip(cell.contains, counts, strict=True)
            ]
            for choice in product(*kinds):
                formula = self.formulas.all_of((cell.at(place), *(held for held, _ in choice)))
                if formula is NONE:
                    continue
                following = tuple(
                    min(count + more, cap) for count, (_, more), cap in zip(counts, choice, caps, strict=True)
                )
                item = self.writer.value(formula)
                lead = item if place == 0 else concat(self.layout.comma, item)
                target = (min(place + 1, last), following)
                if target == key:
                    again.append(lead)
                else:
                    alternatives.append(concat(lead, state(target)))
        ending = union(*alternatives)
        return concat(repeat(union(*again)), ending) if again else ending

    def _kinds(self, each: Contains, count: int, place: int) -> list[tuple[Formula, int]]:
        """What the next item may be for one ``contains``, and how much it counts."""
        neutral = self.formulas.all_of(())
        if place < each.start or (each.high is None and count >= each.low):
            return [(neutral, 0)]
        if each.high is None:
            return [(each.formula, 1), (neutral, 0)]
        others = (self.formulas.negate(each.formula), 0)
        return [others] if count >= each.high else [(each.formula, 1), others]

    # --- uniqueItems ----------------------------------------------------------------------------------

    def _different_strings(self) -> Expr | None:
        """Items that differ, strings that are told apart as the text goes on and, at most once each, some listed
        values; ``None`` if it is no such cell."""
        cell = self.cell
        if cell.contains or not self.writer.distinct:
            return None
        shapes = [self.writer.meaning.shape(formula) for formula in cell.prefix]
        prefix = [_different(shape, place) for place, shape in enumerate(shapes)]
        last = self.writer.meaning.shape(cell.rest)
        rest = EMPTY if cell.rest is NONE else _different(last, len(prefix))
        if rest is None or any(item is None for item in prefix):
            return None
        others = listed_values(last.without_strings())
        if rest is not EMPTY and cell.low > 1 and others is not None:
            supply = room(last.strings).count
            if supply is None:
                raise UnsupportedSchemaError(
                    cell.unique,
                    f"{cell.low} items are asked for, and it is not known how many strings there are",
                )
            if cell.low > supply + len(others):
                return None if prefix else EMPTY
        if prefix and not others and all(not listed_values(shape.without_strings()) for shape in shapes):
            return self._in_order([item for item in prefix if item is not None], rest)
        if prefix or others is None:
            return None
        options = [self.writer.value(self.writer.meaning.constant(value)) for value in others]
        return unordered(options, self.layout.comma, other=rest, low=max(cell.low, 1), high=cell.high)

    def _distinct(self) -> Expr:
        """Items that differ, out of listed values. Which ones ``prefix`` used is followed set by set; behind it, the
        others come in any order."""
        cell, comma = self.cell, self.layout.comma
        if cell.contains:
            raise UnsupportedSchemaError(
                cell.unique, "items that must differ are not counted by what they contain at the same time"
            )
        formulas = [*cell.prefix, *([cell.rest] if cell.rest is not NONE else [])]
        known: dict[Formula, int] = {}
        places: list[list[int]] = []
        for formula in formulas:
            found = listed_values(self.writer.meaning.shape(formula))
            if found is None:
                raise UnsupportedSchemaError(
                    cell.unique,
                    "items must differ that are neither strings nor out of a list: only strings are remembered while a "
                    "text goes on. List the values in an enum, or leave this keyword out",
                )
            values = [self.writer.meaning.constant(value) for value in found]
            places.append([known.setdefault(value, len(known)) for value in values])
        if cell.rest is NONE:
            places.append([])
        items = [self.writer.value(value) for value in known]
        length = len(places) - 1 if cell.high is None else min(len(places) - 1, cell.high)
        levels: list[dict[frozenset[int], None]] = [{frozenset(): None}]
        for place in range(length):
            levels.append({used | {k}: None for used in levels[-1] for k in places[place] if k not in used})
            if sum(map(len, levels)) > _MOST_STATES:
                raise UnsupportedSchemaError(
                    cell.unique,
                    f"prefixItems leave more than {_MOST_STATES:,} sets of values that may have been used",
                )

        def after(place: int, more: Expr) -> Expr:
            return union(
                EPSILON if place and place >= cell.low else EMPTY, concat(comma, more) if place else more
            )

        following: dict[frozenset[int], Expr] = {}
        most = None if cell.high is None else cell.high - length
        for used in levels[length]:
            left = [items[k] for k in places[-1] if k not in used]
            more = unordered(left, comma, low=max(cell.low - length, 1), high=most)
            following[used] = after(length, EMPTY if most == 0 else more)
        for place in range(length - 1, -1, -1):
            following = {
                used: after(
                    place,
                    union(*(concat(items[k], following[used | {k}]) for k in places[place] if k not in used)),
                )
                for used in levels[place]
            }
        return following[frozenset()]


def _different(shape: Shape, place: int) -> Expr | None:
    """The strings of a shape, each at most once, if they are not listed, one is left when so many others are used, and
    there are few other values."""
    if subset_of_words(shape.strings) is not None or listed_values(shape.without_strings()) is None:
        return None
    if place and (room(shape.strings).count or 0) <= place:
        return None
    return fresh_text(shape.strings)
