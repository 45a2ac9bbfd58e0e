"""The texts of an array cell: the first items one by one, then a counted repetition.

Where items are counted by what they are (``contains``) or must differ (``uniqueItems``), the sequence is walked by a
small automaton of its own, whose states are rules: the number of items up to where it matters, and how many of each
kind there were, or which of the listed values were used. A rule calls the next one last, so no stack is needed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import TYPE_CHECKING

from tokenfst.automata.expression import EMPTY, EPSILON, Expr, concat, repeat, union
from tokenfst.automata.schema_arrays import Array, Contains
from tokenfst.automata.schema_formula import NONE, Formula
from tokenfst.automata.schema_values import Constant, listed_values
from tokenfst.errors import UnsupportedSchemaError

if TYPE_CHECKING:
    from tokenfst.automata.schema_text import Writer

_MOST_STATES = 2_000
_MOST_VALUES = 7

_State = tuple[int, tuple[int, ...]]


class Items:
    """Writes one cell."""

    def __init__(self, writer: Writer, cell: Array) -> None:
        self.writer, self.cell = writer, cell
        self.formulas, self.layout = writer.meaning.formulas, writer.layout

    def texts(self) -> Expr:
        """The texts of all arrays of the cell. UnsupportedSchemaError for what needs too many states."""
        if self.cell.unique and (self.cell.high is None or self.cell.high > 1):
            inner = self._distinct()
        elif self.cell.contains:
            inner = self._containing()
        else:
            inner = self._plain()
        return self.writer.bracketed(b"[", inner, b"]", empty=self.cell.low == 0)

    def _plain(self) -> Expr:
        """The items in order; like all of these, without the empty sequence."""
        cell, comma = self.cell, self.layout.comma
        length = len(cell.prefix)
        rest = self.writer.value(cell.rest)
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
            item = self.writer.value(cell.prefix[place])
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
                alternatives.append(concat(lead, state((min(place + 1, last), following))))
        return union(*alternatives)

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

    def _distinct(self) -> Expr:
        """Items that differ, out of a few values."""
        cell = self.cell
        formulas = [*cell.prefix, *([cell.rest] if cell.rest is not NONE else [])]
        values: dict[Formula, Constant] = {}
        for formula in formulas:
            found = listed_values(self.writer.meaning.shape(formula))
            if found is None or cell.contains:
                raise UnsupportedSchemaError(
                    cell.unique, "items of infinitely many values cannot be remembered; list them in an enum"
                )
            for value in found:
                values[self.writer.meaning.constant(value)] = Constant(value)
        if len(values) > _MOST_VALUES:
            raise UnsupportedSchemaError(
                cell.unique,
                f"{len(values)} possible items; which were used is remembered for up to {_MOST_VALUES}",
            )
        known = list(values)
        high = len(known) if cell.high is None else min(cell.high, len(known))
        after: dict[tuple[int, int], Expr] = {}
        for place in range(high, -1, -1):
            for used in range(1 << len(known)):
                if used.bit_count() != place:
                    continue
                nexts = [EPSILON] if place and place >= cell.low else []
                if place < high:
                    for k, value in enumerate(known):
                        both = self.formulas.all_of((cell.at(place), value))
                        if not used >> k & 1 and not self.writer.meaning.shape(both).is_plainly_empty():
                            item = self.writer.value(value)
                            lead = item if place == 0 else concat(self.layout.comma, item)
                            nexts.append(concat(lead, after[place + 1, used | 1 << k]))
                after[place, used] = union(*nexts)
        return after[0, 0]
