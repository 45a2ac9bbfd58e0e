"""Sets of JSON values, divided by type: the normal form of schemas, closed under intersection, union and complement.

A value has one of six types, and every keyword applies to one of them, so a set of values is a set for each type, and
operations work type by type (Attouche et al., "Witness Generation for JSON Schema", VLDB 2022). Only arrays and objects
have parts, and conditions on parts stay formulas.

Invariant: ``exact`` is false if something was relaxed; such a value set has too many values and is never complemented.
Cost: unions, and intersections with a single cell, are linear in the cells. Other intersections multiply cells, and
complements distinguish all of them: there, more than ``_MOST`` cells of one type are rejected.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from itertools import chain, product
from typing import Final, TypeVar

from tokenfst.automata.json_schema.sets import arrays as schema_arrays
from tokenfst.automata.json_schema.sets import objects as schema_objects
from tokenfst.automata.json_schema.sets import strings as schema_strings
from tokenfst.automata.json_schema.sets.arrays import EVERY_ARRAY, Array, ArraySet
from tokenfst.automata.json_schema.sets.decisions import Decisions
from tokenfst.automata.json_schema.sets.formula import ANY, Formula, Formulas
from tokenfst.automata.json_schema.sets.objects import EVERY_OBJECT, Object, ObjectSet
from tokenfst.automata.json_schema.sets.strings import EVERY_STRING, NO_STRING, StringSet
from tokenfst.automata.json_values.numbers import NumberSet
from tokenfst.errors import UnsupportedSchemaError

_MOST = 600
_MOST_PAIRS = 600
"""Up to this number, pairs of object cells are intersected one by one."""
_MANY = 64
"""Maximum number of cells of a product of complements before cases are split name by name (``decisions``)."""
_Cell = TypeVar("_Cell", Array, Object)

EVERY_NUMBER = NumberSet.every()
INTEGERS = NumberSet.integers()
NO_NUMBER = NumberSet.none()


@dataclass(slots=True, unsafe_hash=True)
class ValueSet:
    """A set of JSON values: for each type, the values of this type.

    ``exact``: false if a keyword was omitted, so that the set has too many values. ``whole``: in draft-04, where 1.0 is
    a number but not an integer, the integers that are written without a fraction and an exponent; ``numbers`` are then
    all other numbers. ``None``: both are in ``numbers``. ``bare``: a set that contains the integers that the schema
    declares or lists as integers, and perhaps other numbers. The plain spellings (``writing.numbers``) write an integer
    of ``bare`` with digits only.
    """

    # Final instead of frozen: mypy checks it, and a frozen dataclass takes three times as long to make.
    null: Final[bool] = True
    true: Final[bool] = True
    false: Final[bool] = True
    numbers: Final[NumberSet] = EVERY_NUMBER
    strings: Final[StringSet] = EVERY_STRING
    arrays: Final[ArraySet] = EVERY_ARRAY
    objects: Final[ObjectSet] = EVERY_OBJECT
    exact: Final[bool] = True
    whole: Final[NumberSet | None] = None
    bare: Final[NumberSet] = NO_NUMBER

    def written_whole(self) -> NumberSet:
        """The numbers that may be written with digits only, if they are integers."""
        return self.numbers if self.whole is None else self.whole

    def has_numbers(self) -> bool:
        """Whether the set contains a number."""
        return not (self.numbers.is_empty() and self.written_whole().is_empty())

    def is_plainly_empty(self) -> bool:
        """Whether no type has a value or a cell. A set whose cells are all empty is not plainly empty."""
        return not (
            self.null
            or self.true
            or self.false
            or self.strings
            or self.arrays
            or self.objects
            or self.has_numbers()
        )

    def without_strings(self) -> ValueSet:
        """The values of this set that are not strings."""
        return self._with(NO_STRING, self.arrays, self.objects)

    def without_objects(self) -> ValueSet:
        """The values of this set that are not objects."""
        return self._with(self.strings, self.arrays, ())

    def without_parts(self) -> ValueSet:
        """The values of this set that are neither arrays nor objects."""
        return self._with(self.strings, (), ())

    def _with(self, strings: StringSet, arrays: ArraySet, objects: ObjectSet) -> ValueSet:
        """Other values of these types. ``dataclasses.replace`` takes six times as long."""
        return ValueSet(
            self.null,
            self.true,
            self.false,
            self.numbers,
            strings,
            arrays,
            objects,
            self.exact,
            self.whole,
            self.bare,
        )


EVERY = ValueSet()
EVERY_SCALAR = ValueSet(arrays=(), objects=())
NOTHING = ValueSet(False, False, False, NO_NUMBER, NO_STRING, (), ())


@dataclass(frozen=True, slots=True)
class Algebra:
    """The operations on value sets.

    ``alive(cell)``: whether a cell may have an element; cells without one are dropped where cells multiply.
    ``is_empty(formula)``: whether a formula certainly has no values.
    """

    formulas: Formulas
    alive: Callable[[Array | Object], bool]
    is_empty: Callable[[Formula], bool]

    def meet(self, left: ValueSet, right: ValueSet, where: str) -> ValueSet:
        """The intersection."""
        if _is_every(left):
            return right
        if _is_every(right):
            return left
        numbers = _meet_numbers(left.numbers, right.numbers)
        whole = None
        if left.whole is not None or right.whole is not None:
            whole = _whole(numbers, _meet_numbers(left.written_whole(), right.written_whole()))
        bare = left.bare
        if bare.is_empty() or numbers.is_empty():
            bare = NO_NUMBER if numbers.is_empty() else right.bare
        elif bare is not right.bare and not right.bare.is_empty():
            bare = bare | right.bare
        return ValueSet(
            left.null and right.null,
            left.true and right.true,
            left.false and right.false,
            numbers,
            schema_strings.meet(left.strings, right.strings, self.formulas.work),
            self._meet_arrays(left.arrays, right.arrays, where),
            self._meet_objects(left.objects, right.objects, where),
            left.exact and right.exact,
            whole,
            bare,
        )

    def are_disjoint(self, left: ValueSet, right: ValueSet) -> bool:
        """Whether the value sets have no common cell in any type. Stops at the first common one."""
        return not (
            (left.null and right.null)
            or (left.true and right.true)
            or (left.false and right.false)
            or not _meet_numbers(left.numbers, right.numbers).is_empty()
            or not _meet_numbers(left.written_whole(), right.written_whole()).is_empty()
            or self._share(left.arrays, right.arrays, EVERY_ARRAY, schema_arrays.meet_cells)
            or self._share(left.objects, right.objects, EVERY_OBJECT, schema_objects.meet_cells)
            or schema_strings.meet(left.strings, right.strings, self.formulas.work)  # last: may search
        )

    def _share(
        self,
        left: tuple[_Cell, ...],
        right: tuple[_Cell, ...],
        every: tuple[_Cell, ...],
        meet_cells: Callable[[_Cell, _Cell, Formulas], tuple[_Cell, ...]],
    ) -> bool:
        """Whether a cell of one and a cell of the other may share a member."""
        if not left or not right or every in (left, right):
            return bool(left and right)
        for one, other in product(left, right):
            self.formulas.work.tick()
            if any(self.alive(cell) for cell in meet_cells(one, other, self.formulas)):
                return True
        return False

    def join(self, value_sets: list[ValueSet], where: str) -> ValueSet:
        """The union."""
        if len(value_sets) == 1:
            return value_sets[0]
        numbers = self._join_numbers([value_set.numbers for value_set in value_sets])
        whole = None
        if any(value_set.whole is not None for value_set in value_sets):
            whole = _whole(
                numbers, self._join_numbers([value_set.written_whole() for value_set in value_sets])
            )
        return ValueSet(
            any(value_set.null for value_set in value_sets),
            any(value_set.true for value_set in value_sets),
            any(value_set.false for value_set in value_sets),
            numbers,
            schema_strings.join([value_set.strings for value_set in value_sets], self.formulas.work),
            self._union([value_set.arrays for value_set in value_sets], EVERY_ARRAY),
            self._union([value_set.objects for value_set in value_sets], EVERY_OBJECT),
            all(value_set.exact for value_set in value_sets),
            whole,
            _all_bare([value_set for value_set in value_sets if not value_set.numbers.is_empty()]),
        )

    def _union(self, sets: list[tuple[_Cell, ...]], every: tuple[_Cell, ...]) -> tuple[_Cell, ...]:
        cells = tuple(dict.fromkeys(cell for cells in sets for cell in cells))
        self.formulas.work.tick(len(cells))
        return every if every[0] in cells else cells

    def _join_numbers(self, sets: list[NumberSet]) -> NumberSet:
        """The union. Sets are united in pairs, and then their unions, so that n sets of one number cost n log n."""
        left = [each for each in sets if not each.is_empty()]
        while len(left) > 1:
            pairs = list(zip(left[::2], left[1::2], strict=False))
            alone = left[2 * len(pairs) :]
            left = []
            for one, other in pairs:
                self.formulas.work.tick(1 + (len(one.cuts) + len(other.cuts)) // 8)
                left.append(one | other)
            left += alone
        return left[0] if left else NO_NUMBER

    def check_complement(self, value_set: ValueSet, where: str) -> None:
        """Raise UnsupportedSchemaError for a set without an exact complement.

        Such a set is inexact, or a format leaves out some of its strings or of the names that it constrains.
        """
        if not value_set.exact:
            raise UnsupportedSchemaError(
                where, "the complement of what was relaxed would leave valid values out"
            )
        names = tuple(demand.names for cell in value_set.objects for demand in cell.demands)
        partial = schema_strings.partial_reason(value_set.strings) or schema_strings.partial_reason(
            names, known=True
        )
        if partial:
            raise UnsupportedSchemaError(where, f"the complement of a format that leaves out {partial}")

    def invert(self, value_set: ValueSet, where: str) -> ValueSet:
        """The complement. Raises UnsupportedSchemaError if it is not supported."""
        self.check_complement(value_set, where)
        _refuse_many(value_set.arrays, where)
        _refuse_many(value_set.objects, where)
        arrays, objects = EVERY_ARRAY, EVERY_OBJECT
        for array in value_set.arrays:
            arrays = self._meet_arrays(arrays, schema_arrays.invert_cell(array, self.formulas), where)
        apart = (
            self.objects_in([value_set.objects], frozenset({0}), where)
            if are_many([value_set.objects])
            else None
        )
        if apart is not None:
            objects = apart
        else:
            for made in value_set.objects:
                objects = self._meet_objects(objects, schema_objects.invert_cell(made, self.formulas), where)
        numbers = ~value_set.numbers
        return ValueSet(
            not value_set.null,
            not value_set.true,
            not value_set.false,
            numbers,
            schema_strings.invert(value_set.strings, self.formulas.work, surely=True),
            arrays,
            objects,
            whole=None if value_set.whole is None else _whole(numbers, ~value_set.whole),
        )

    def _meet_arrays(self, left: ArraySet, right: ArraySet, where: str) -> ArraySet:
        if left is EVERY_ARRAY or left == EVERY_ARRAY or not right:
            return right
        if right is EVERY_ARRAY or right == EVERY_ARRAY or not left:
            return left
        return self._met(left, right, schema_arrays.meet_cells, where)

    def _meet_objects(self, left: ObjectSet, right: ObjectSet, where: str) -> ObjectSet:
        if left is EVERY_OBJECT or left == EVERY_OBJECT or not right:
            return right
        if right is EVERY_OBJECT or right == EVERY_OBJECT or not left:
            return left
        if len(left) * len(right) > _MOST_PAIRS and min(len(left), len(right)) > 1:
            apart = self.objects_in([left, right], frozenset({2}), where)
            if apart is not None:
                return apart
        return self._met(left, right, schema_objects.meet_cells, where)

    def objects_in(self, sets: list[ObjectSet], counts: frozenset[int], where: str) -> ObjectSet | None:
        """The objects that are in exactly n of the sets, for some n in ``counts``; ``None`` if a split by names has too
        many cases.
        """
        for each in sets:
            _refuse_many(each, where)
        found = Decisions(sets, counts, self.formulas, self.is_empty, where).cells()
        return None if found is None else tuple(filter(self.alive, found))

    def _met(
        self,
        left: tuple[_Cell, ...],
        right: tuple[_Cell, ...],
        meet_cells: Callable[[_Cell, _Cell, Formulas], tuple[_Cell, ...]],
        where: str,
    ) -> tuple[_Cell, ...]:
        """The cells of all pairs that may have a member, each once. Raises as soon as there are too many."""
        found: dict[_Cell, None] = {}
        several = min(len(left), len(right)) > 1
        for one in left:
            for other in right:
                self.formulas.work.tick()
                for cell in meet_cells(one, other, self.formulas):
                    if cell not in found and self.alive(cell):
                        found[cell] = None
            if several:
                _refuse_many(found, where)
        return tuple(found)


def _is_every(value_set: ValueSet) -> bool:
    """Whether it is ``EVERY``. Most value sets differ in the first types, so that nothing else is compared."""
    return value_set is EVERY or (
        value_set.null and value_set.true and value_set.false and value_set == EVERY
    )


def are_many(others: list[ObjectSet]) -> bool:
    """Whether the product of the complements of these sets has so many cells that cases are split name by name."""
    return _complement_size(others) > _MANY


def _complement_size(sets: list[ObjectSet]) -> int:
    """An upper bound of the number of cells of a product of complements, capped at ``_MANY``."""
    size = 1
    for cell in chain.from_iterable(sets):
        said = sum(formula is not ANY for _, formula in cell.listed)
        size *= (
            said
            + len(cell.required)
            + len(cell.demands)
            + len(cell.some)
            + (cell.low > 0)
            + (cell.high is not None)
        )
        if size > _MANY:
            break
    return size


def _meet_numbers(left: NumberSet, right: NumberSet) -> NumberSet:
    if left is right or left is EVERY_NUMBER or right.is_empty():
        return right
    if right is EVERY_NUMBER or left.is_empty():
        return left
    return left & right


def _all_bare(value_sets: list[ValueSet]) -> NumberSet:
    """``ValueSet.bare`` for the numbers of several sets: those that are bare in every set that contains them."""
    bare = value_sets[0].bare if value_sets else NO_NUMBER
    if all(value_set.bare is bare for value_set in value_sets):
        return bare
    bare = INTEGERS
    for value_set in value_sets:
        if value_set.bare is not INTEGERS:
            bare = bare & (value_set.bare | ~value_set.numbers)
    return bare


def _whole(numbers: NumberSet, whole: NumberSet) -> NumberSet | None:
    """``ValueSet.whole`` in normal form: integers only, and ``None`` if they are the integers of ``numbers``."""
    integers = whole & INTEGERS
    return None if integers == numbers & INTEGERS else integers


def _refuse_many(cells: Collection[Array | Object], where: str) -> None:
    """Raise UnsupportedSchemaError for too many cells of one type."""
    if len(cells) > _MOST:
        kind = type(next(iter(cells))).__name__.lower()
        raise UnsupportedSchemaError(where, f"its combinations split {kind}s into more than {_MOST} kinds")
