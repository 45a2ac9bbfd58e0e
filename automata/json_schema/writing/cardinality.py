"""A lower bound of the number of distinct values of a formula, for items that must differ (``uniqueItems``,
``minItems``).

The check is bounded. Scalars are counted; arrays and objects by the values of their parts, a few levels deep.
Everything else is not counted, so the number may be too small and is never too large.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tokenfst.automata.json_schema.sets.arrays import Array
from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula
from tokenfst.automata.json_schema.sets.objects import Object
from tokenfst.automata.json_schema.sets.strings import has_surrogate
from tokenfst.automata.json_schema.writing.distinct import MANY, count_texts

if TYPE_CHECKING:
    from tokenfst.automata.json_schema.writing.writer import Writer

_LOOK = 3
"""The number of levels of parts that are inspected."""


class ValueCounts:
    """Lower bounds of the numbers of values, for one writer, with a cache."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._known: dict[tuple[Formula, int], int] = {}

    def of(self, formula: Formula, depth: int = _LOOK) -> int:
        """A lower bound of the number of distinct values of a formula, up to ``MANY``."""
        if formula is ANY or formula is NONE:
            return MANY if formula is ANY else 0
        key = formula, depth
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = min(self._count(formula, depth), MANY)
        return found

    def _count(self, formula: Formula, depth: int) -> int:
        self._writer.work.tick()
        value_set = self._writer.meaning.value_set(formula)
        count = value_set.null + value_set.true + value_set.false
        numbers = [each for each in (value_set.numbers, value_set.whole) if each is not None]
        count += max(MANY if (size := each.count()) is None else size for each in numbers)
        if value_set.strings:
            strings = count_texts(value_set.strings, self._writer.spelling, self._writer.work).count
            count += 0 if strings is None else strings
        # Cells of one type may share values.
        count += max((self._arrays(cell, depth - 1) for cell in value_set.arrays), default=0)
        return count + max((self._objects(cell, depth - 1) for cell in value_set.objects), default=0)

    def _arrays(self, cell: Array, depth: int) -> int:
        count = 1
        if depth < 0 or cell.contains or cell.low > len(cell.prefix) + 1:
            return count if cell.low == 0 else 0
        for place in range(cell.low):
            values = self.of(cell.at(place), depth)
            count *= max(values - place, 0) if cell.unique else values
        if not count or (cell.high is not None and cell.high <= cell.low):
            return count
        more = self.of(cell.at(cell.low), depth)
        if more and cell.high is None and cell.low >= len(cell.prefix) and not cell.unique:
            return MANY
        return count + count * max(more - (cell.low if cell.unique else 0), 0)

    def _objects(self, cell: Object, depth: int) -> int:
        if cell.some or cell.low > len(cell.required):
            return 0
        if depth < 0:
            return 0 if cell.required else 1
        values = {
            **dict.fromkeys(cell.required, ANY),
            **cell.values(self._writer.meaning.formulas),
        }
        if cell.required - dict(cell.listed).keys() and cell.demands:
            return 0  # the conditions on these members are not inspected
        count = 1
        for name in cell.required:
            count *= 0 if has_surrogate(name) else self.of(values[name], depth)
        if not count or (cell.high is not None and cell.high <= len(cell.required)):
            return count
        held = cell.held()
        if held is not None and self.of(held, depth):
            return MANY
        more = (
            self.of(formula, depth)
            for name, formula in values.items()
            if name not in cell.required and not has_surrogate(name)
        )
        return count + count * max(more, default=0)
