"""The items of an array that are counted by their kinds (``contains``).

The idea: a small separate automaton walks the sequence of items. Its states are rules: the number of items, up to the
point where it matters, and the number of items of each kind. Both only grow, so the only cycles are loops at a state;
and a rule calls the next one last, so no stack is needed.

For each kind that still counts, an item may be required to be of that kind, or may be anything. These choices multiply,
and so do the states that they lead to. So if there are several kinds, and items are values without parts, items are
classified: each is of a kind or of its complement, and combinations without a value are omitted. Then there are few
combinations, mostly one more than kinds, and few states.

Cost: states multiplied by choices, which are counted (``sets.work``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tokenfst.automata.expressions.expression import EPSILON, Expr, concat, repeat, union
from tokenfst.automata.json_schema.sets.arrays import EVERY_ARRAY, Array, Contains
from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula
from tokenfst.automata.json_schema.sets.objects import EVERY_OBJECT
from tokenfst.common.plurals import counted
from tokenfst.errors import UnsupportedSchemaError

if TYPE_CHECKING:
    from tokenfst.automata.json_schema.writing.writer import Writer

_MOST_STATES = 2_000
_FEW = 2
"""Maximum number of kinds that are counted without classifying items."""

_State = tuple[int, tuple[int, ...]]
_Choice = tuple[Formula, tuple[int, ...]]
"""The condition on an item, and for each kind what the item adds to its count."""


class Counting:
    """Writes the items of one array cell with ``contains``."""

    def __init__(self, writer: Writer, cell: Array, item: Callable[[Formula], Expr] | None = None) -> None:
        """``item``: a function that returns the texts of an item; by default ``writer.value``.

        Raises UnsupportedSchemaError if too many states are needed.
        """
        self.item = item or writer.value
        self.writer, self.cell, self.formulas = writer, cell, writer.meaning.formulas
        kinds = cell.contains
        bounds = (len(cell.prefix), cell.low, cell.high or 0, *(each.start for each in kinds))
        self.last = max(1, *bounds)
        """The number of items up to which the position matters; later items are all alike."""
        self.caps = tuple(each.low if each.high is None else each.high for each in kinds)
        states = self.last + 1
        for cap in self.caps:
            states *= cap + 1
        if states > _MOST_STATES:
            raise UnsupportedSchemaError(
                kinds[0].where,
                f"counting up to such bounds takes {counted(states, 'state')}, more than {_MOST_STATES:,}",
            )
        self.apart = len(kinds) > _FEW and self._tells_apart()
        self._names: dict[_State, Expr] = {}
        self._known: dict[tuple[int, tuple[bool, ...]], list[_Choice]] = {}

    def texts(self) -> Expr:
        """The texts of all non-empty sequences of items that satisfy the cell."""
        return self._step((0, (0,) * len(self.caps)))

    def _tells_apart(self) -> bool:
        """Whether there are several kinds, items have no parts, and the complements of kinds do not multiply cases."""
        meaning, cell = self.writer.meaning, self.cell
        if len(cell.contains) <= _FEW:
            return False
        try:
            items = [meaning.value_set(formula) for formula in (cell.rest, *cell.prefix)]
            kinds = [meaning.value_set(each.formula) for each in cell.contains]
            kinds += [meaning.value_set(self.formulas.negate(each.formula)) for each in cell.contains]
        except UnsupportedSchemaError:
            return False
        return not any(value_set.arrays or value_set.objects for value_set in items) and all(
            value_set.arrays in ((), EVERY_ARRAY) and value_set.objects in ((), EVERY_OBJECT)
            for value_set in kinds
        )

    def _state(self, key: _State) -> Expr:
        found = self._names.get(key)
        if found is None:
            found = self._names[key] = self.writer.rule("contains", lambda: self._step(key))
        return found

    def _step(self, key: _State) -> Expr:
        place, counts = key
        cell = self.cell
        endings: list[Expr] = []
        leads: dict[_State, list[Formula]] = {}
        enough = all(count >= each.low for count, each in zip(counts, cell.contains, strict=True))
        if enough and place and place >= cell.low:
            endings.append(EPSILON)
        if cell.high is None or place < cell.high:
            for formula, gains in self._choices(place, counts):
                following = tuple(
                    min(count + more, cap) for count, more, cap in zip(counts, gains, self.caps, strict=True)
                )
                leads.setdefault((min(place + 1, self.last), following), []).append(formula)
        again: list[Expr] = []
        for target, formulas in leads.items():
            items = union(*(self.item(formula) for formula in formulas))
            lead = items if place == 0 else concat(self.writer.layout.comma, items)
            if target == key:
                again.append(lead)
            else:
                endings.append(concat(lead, self._state(target)))
        ending = union(*endings)
        return concat(repeat(again[0]), ending) if again else ending

    def _choices(self, place: int, counts: tuple[int, ...]) -> list[_Choice]:
        """The possible next items, and their counts."""
        cell = self.cell
        full = tuple(count >= cap for count, cap in zip(counts, self.caps, strict=True))
        key = min(place, self.last), full
        found = self._known.get(key)
        if found is None:
            found = [(cell.at(place), ())]
            for each, is_full in zip(cell.contains, full, strict=True):
                kinds = self._kinds(each, is_full, place)
                found = [
                    (both, (*gains, more))
                    for held, gains in found
                    for kind, more in kinds
                    if (both := self._both(held, kind)) is not NONE
                ]
            self._known[key] = found
        return found

    def _both(self, held: Formula, kind: Formula) -> Formula:
        """The conjunction; ``NONE`` if it is found to have no value."""
        self.formulas.work.tick()
        both = self.formulas.both(held, kind)
        if self.apart and self.writer.meaning.value_set(both).is_plainly_empty():
            return NONE
        return both

    def _kinds(self, each: Contains, is_full: bool, place: int) -> list[tuple[Formula, int]]:
        """The possible next items for one ``contains``, and their counts."""
        if place < each.start or (each.high is None and is_full):
            return [(ANY, 0)]
        if each.high is None and not self.apart:
            return [(each.formula, 1), (ANY, 0)]
        others = (self.formulas.negate(each.formula), 0)
        return [others] if is_full else [(each.formula, 1), others]
