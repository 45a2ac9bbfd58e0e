"""Sets of arrays as unions of cells, closed under intersection, union and complement.

A cell constrains the first items one by one, every later item, the number of items, and how many of the items from some
index on have a property (``contains``). All of these are closed under negation: an array that is not ``items: A``
contains an item of ``not A``, and an array whose items do not all differ contains an item twice. To find a repeated
item needs unbounded memory in general. If the other side of an intersection requires different items, the two
conditions cancel; otherwise the cell is rejected when it is written, unless its items are listed (``writing.items``).

Invariants of a cell made by ``cell``: items beyond ``high`` are unconstrained; the formula of the last item of
``prefix`` differs from ``rest``; ``low <= high``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula, Formulas


@dataclass(frozen=True, slots=True)
class Contains:
    """A condition: of the items from index ``start`` on, ``low`` to ``high`` satisfy ``formula``.

    ``high``: ``None`` for no upper bound. ``where``: the place of the keyword that requires it.
    """

    formula: Formula
    low: int
    high: int | None
    start: int
    where: str


@dataclass(slots=True, unsafe_hash=True)
class Array:
    """One cell: the arrays that satisfy all of these conditions.

    ``prefix``: the formulas of the first items; ``rest``: that of all later items. ``low``, ``high``: the bounds of the
    number of items. ``unique``: the place of the ``uniqueItems`` that requires different items; empty if there is none.
    ``twice``: the place of the ``uniqueItems`` that must be violated, so that some item occurs twice; empty if there is
    none.
    """

    # Final instead of frozen: mypy checks it, and a frozen dataclass takes three times as long to make.
    prefix: Final[tuple[Formula, ...]] = ()
    rest: Final[Formula] = ANY
    low: Final[int] = 0
    high: Final[int | None] = None
    contains: Final[tuple[Contains, ...]] = ()
    unique: Final[str] = ""
    twice: Final[str] = ""

    def at(self, place: int) -> Formula:
        """The formula of the item at an index."""
        return self.prefix[place] if place < len(self.prefix) else self.rest


ArraySet = tuple[Array, ...]
"""A union of cells."""

EVERY_ARRAY: ArraySet = (Array(),)


def cell(array: Array) -> ArraySet:
    """The cell in normal form, as a union of at most one cell; no cell if it is obviously empty."""
    prefix, high = list(array.prefix), array.high
    if array.rest is NONE:
        high = len(prefix) if high is None else min(high, len(prefix))
    if NONE in prefix:
        high = prefix.index(NONE) if high is None else min(high, prefix.index(NONE))
    if high is not None:
        prefix = prefix[:high]
    rest = array.rest if high is None or high > len(prefix) else NONE
    while prefix and prefix[-1] is rest:
        prefix.pop()
    contains = []
    for each in array.contains:
        needed = each.low
        if needed == 0 and each.high is None:
            continue
        if each.formula is NONE or (high is not None and max(high - each.start, 0) < needed):
            if needed:
                return ()
            continue
        contains.append(each)
    low = max([array.low, *(each.start + each.low for each in contains), *([2] if array.twice else [])])
    if (high is not None and low > high) or (array.unique and array.twice):
        return ()
    if high is not None and high <= 1:
        return (Array(tuple(prefix), rest, low, high, tuple(contains)),)
    return (Array(tuple(prefix), rest, low, high, tuple(contains), array.unique, array.twice),)


def meet_cells(left: Array, right: Array, formulas: Formulas) -> ArraySet:
    """The intersection of two cells."""
    length = max(len(left.prefix), len(right.prefix))
    formulas.work.tick(2 + (length + len(left.contains) + len(right.contains)) // 4)
    highs = [high for high in (left.high, right.high) if high is not None]
    return cell(
        Array(
            tuple(formulas.both(left.at(place), right.at(place)) for place in range(length)),
            formulas.both(left.rest, right.rest),
            max(left.low, right.low),
            min(highs, default=None),
            tuple(dict.fromkeys((*left.contains, *right.contains))),
            left.unique or right.unique,
            left.twice or right.twice,
        )
    )


def invert_cell(array: Array, formulas: Formulas) -> ArraySet:
    """The complement of a cell, as a union of cells."""
    found: list[Array] = []
    if array.unique or array.twice:  # only among arrays that have its items; other arrays follow below
        found.append(Array(array.prefix, array.rest, unique=array.twice, twice=array.unique))
    if array.low:
        found.append(Array(high=array.low - 1))
    if array.high is not None:
        found.append(Array(low=array.high + 1))
    for place, formula in enumerate(array.prefix):
        if formula is not ANY:
            found.append(Array((*(ANY,) * place, formulas.negate(formula)), low=place + 1))
    if array.rest is not ANY and array.rest is not NONE:
        start = len(array.prefix)
        found.append(Array(contains=(Contains(formulas.negate(array.rest), 1, None, start, ""),)))
    for each in array.contains:
        if each.low:
            fewer = Contains(each.formula, 0, each.low - 1, each.start, each.where)
            found.append(Array(contains=(fewer,)))
        if each.high is not None:
            more = Contains(each.formula, each.high + 1, None, each.start, each.where)
            found.append(Array(contains=(more,)))
    return tuple(one for array in found for one in cell(array))


def of_items(formulas: list[Formula]) -> Array:
    """The arrays with exactly these items."""
    return Array(tuple(formulas), NONE, len(formulas), len(formulas))
