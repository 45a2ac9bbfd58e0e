"""``ExactlyOne``: the values that satisfy exactly one branch of a ``oneOf``.

Branches that no value can share need no comparison (``overlaps``). From each other branch, those that overlap with it
are subtracted. Where many branches overlap, strings and objects are counted instead: each set of cells is divided by
how many branches hold it, and the part in exactly one is kept.

Invariant: the union of the result is what lies in exactly one branch and in all value sets beside the ``oneOf``. Cost:
n² comparisons of n branches at most, and one complement for each pair that overlaps.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING

from tokenfst.automata.json_schema.documents.keywords import known
from tokenfst.automata.json_schema.documents.source import Place
from tokenfst.automata.json_schema.reading.discriminators import advice, advised
from tokenfst.automata.json_schema.reading.overlaps import suspects
from tokenfst.automata.json_schema.sets import strings as schema_strings
from tokenfst.automata.json_schema.sets.formula import Formula
from tokenfst.automata.json_schema.sets.value_sets import NOTHING, Algebra, ValueSet, are_many
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.errors import BudgetExceeded, UnsupportedSchemaError

if TYPE_CHECKING:
    from tokenfst.automata.json_schema.reading.meaning import Meaning

_MOST_RIVALS = 4
"""Maximum number of branches of a ``oneOf`` that are subtracted from each of the others one by one."""


def one_of(place: Place, formulas: list[Formula], beside: list[ValueSet], meaning: Meaning) -> ValueSet:
    """The values of exactly one of the branches of the ``oneOf`` at ``place``, each with its formula, exact only among
    the values in all sets ``beside``.

    If that is unsupported, or if it needs more than half of the remaining positions, and may be relaxed: the values of
    at least one branch. Raises UnsupportedSchemaError and BudgetExceeded, with advice if the branches differ in a
    member that they do not require.
    """
    work = meaning.formulas.work
    work.place = place.where("oneOf")
    try:
        with work.half("exactly one of these schemas") if meaning.relaxes else nullcontext():
            return _compared(place, formulas, beside, meaning)
    # No error is kept in a variable: its own frame would hold it, in a cycle that only the garbage collector frees.
    except BudgetExceeded as error:
        said = error.advice or advice(formulas)
        raise BudgetExceeded(error.resource, error.limit, error.where, said) from None
    except UnsupportedSchemaError as error:
        if not meaning.relaxes:
            raise advised(error, formulas) from None
        some = meaning.value_set(meaning.formulas.any_of(formulas))
        return meaning.relaxed_to(some, advised(error, formulas))


def _compared(place: Place, formulas: list[Formula], beside: list[ValueSet], meaning: Meaning) -> ValueSet:
    where = place.where("oneOf")
    algebra, opened = meaning.algebra, formulas
    if place.closed is not None:
        schemas = known(place)["oneOf"]
        opened = [meaning.opened(place.below(each, "oneOf", k)) for k, each in enumerate(schemas)]
    value_sets = [meaning.value_set_among(formula, beside) for formula in opened]

    def negation(branch: int) -> ValueSet:
        if not meaning.is_known(opened[branch]):  # known only among the values in the sets beside
            return algebra.invert(value_sets[branch], where)
        return meaning.value_set(meaning.formulas.negate(opened[branch]))

    found = ExactlyOne(algebra, meaning.formulas.work, meaning.glance).value_sets(
        value_sets, beside, negation, where, counted=opened is formulas
    )
    if opened is not formulas:
        found = [
            algebra.meet(value_set, meaning.value_set(formula), where)
            for value_set, formula in zip(found, formulas, strict=True)
        ]
    return algebra.join(found, where)


class ExactlyOne:
    """The comparison of the branches of one ``oneOf``.

    ``value_set_of`` returns the values of a part's formula; ``None`` if they are not known.
    """

    def __init__(
        self, algebra: Algebra, work: Work, value_set_of: Callable[[Formula], ValueSet | None]
    ) -> None:
        self._algebra, self._work, self._value_set_of = algebra, work, value_set_of

    def value_sets(
        self,
        value_sets: list[ValueSet],
        beside: list[ValueSet],
        negation: Callable[[int], ValueSet],
        where: str,
        *,
        counted: bool,
    ) -> list[ValueSet]:
        """Value sets whose union is what exactly one of ``value_sets`` holds, among the values in all sets ``beside``.

        ``negation`` gives the complement of a branch by its index. ``where`` is the place for messages. ``counted``:
        whether strings and objects that are in many branches may be counted instead of compared; the resulting value
        sets then belong to no single branch. Otherwise the result has one value set for each branch, in order. Raises
        UnsupportedSchemaError for a branch that has no exact complement.
        """
        value_sets = list(value_sets)
        rivals = self._overlaps(value_sets)
        if any(rivals):
            for k in range(len(value_sets)):
                for each in beside:
                    value_sets[k] = self._algebra.meet(value_sets[k], each, where)
            rivals = self._overlaps(value_sets)
        found: list[ValueSet] = []
        if counted and sum(map(len, rivals)) > _MOST_RIVALS * len(value_sets):
            found.append(self._one_string(value_sets))
            value_sets = [value_set.without_strings() for value_set in value_sets]
            rivals = self._overlaps(value_sets)
        many = counted and any(are_many([value_sets[other].objects for other in others]) for others in rivals)
        apart = self._one_object(value_sets) if many else None
        if apart is not None:
            found.append(apart)
            value_sets = [value_set.without_objects() for value_set in value_sets]
            rivals = self._overlaps(value_sets)
        for value_set, others in zip(value_sets, rivals, strict=True):
            for other in others:
                without = negation(other) if apart is None else self._algebra.invert(value_sets[other], where)
                value_set = self._algebra.meet(value_set, without, where)
            found.append(value_set)
        return found

    def _one_string(self, value_sets: list[ValueSet]) -> ValueSet:
        """The strings in exactly one of the value sets."""
        for value_set in value_sets:
            self._algebra.check_complement(value_set, self._work.where())
        strings = schema_strings.exactly_one([value_set.strings for value_set in value_sets], self._work)
        return replace(NOTHING, strings=strings)

    def _one_object(self, value_sets: list[ValueSet]) -> ValueSet | None:
        """The objects in exactly one of the value sets; ``None`` if there are too many cases."""
        where = self._work.where()
        for value_set in value_sets:
            self._algebra.check_complement(value_set, where)
        objects = self._algebra.objects_in(
            [value_set.objects for value_set in value_sets], frozenset({1}), where
        )
        return None if objects is None else replace(NOTHING, objects=objects)

    def _overlaps(self, value_sets: list[ValueSet]) -> list[list[int]]:
        """For each value set, the others that may share a value with it."""
        found: list[list[int]] = [[] for _ in value_sets]
        for k, other in suspects(value_sets, self._value_set_of):
            self._work.tick()
            if not self._disjoint(value_sets[k], value_sets[other]):
                found[k].append(other)
                found[other].append(k)
        return found

    def _disjoint(self, left: ValueSet, right: ValueSet) -> bool:
        try:
            return self._algebra.are_disjoint(left, right)
        except UnsupportedSchemaError:
            return False
