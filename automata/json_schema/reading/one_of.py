"""``ExactlyOne``: the values that satisfy exactly one branch of a ``oneOf``.

Branches that no value can share need no comparison (``overlaps``). From each other branch, those that overlap with it
are subtracted. Where many branches overlap, strings and objects are counted instead: each set of cells is divided by
how many branches hold it, and the part in exactly one is kept.

Invariant: the union of the result is what lies in exactly one branch and in all shapes beside the ``oneOf``. Cost: n²
comparisons of n branches at most, and one complement for each pair that overlaps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from tokenfst.automata.json_schema.reading.overlaps import suspects
from tokenfst.automata.json_schema.sets import strings as schema_strings
from tokenfst.automata.json_schema.sets.formula import Formula
from tokenfst.automata.json_schema.sets.shape import NOTHING, Algebra, Shape, are_many
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.errors import UnsupportedSchemaError

_MOST_RIVALS = 4
"""Maximum number of branches of a ``oneOf`` that are subtracted from each of the others one by one."""


class ExactlyOne:
    """The comparison of the branches of one ``oneOf``. ``shape_of``: the shape of a part's formula, if known."""

    def __init__(self, algebra: Algebra, work: Work, shape_of: Callable[[Formula], Shape | None]) -> None:
        self._algebra, self._work, self._shape_of = algebra, work, shape_of

    def shapes(
        self,
        shapes: list[Shape],
        beside: list[Shape],
        negation: Callable[[int], Shape],
        where: str,
        *,
        counted: bool,
    ) -> list[Shape]:
        """Shapes whose union is what exactly one of ``shapes`` holds, among the values in all shapes ``beside``.

        ``negation`` gives the complement of a branch by its index. ``where`` is the place for messages. ``counted``:
        strings and objects in many branches may be counted, and these shapes then follow no branch. Otherwise the
        result has one shape for each branch, in order. Raises UnsupportedSchemaError for a branch that has no exact
        complement.
        """
        shapes = list(shapes)
        rivals = self._overlaps(shapes)
        if any(rivals):
            for k in range(len(shapes)):
                for each in beside:
                    shapes[k] = self._algebra.meet(shapes[k], each, where)
            rivals = self._overlaps(shapes)
        found: list[Shape] = []
        if counted and sum(map(len, rivals)) > _MOST_RIVALS * len(shapes):
            found.append(self._one_string(shapes))
            shapes = [shape.without_strings() for shape in shapes]
            rivals = self._overlaps(shapes)
        many = counted and any(are_many([shapes[other].objects for other in others]) for others in rivals)
        apart = self._one_object(shapes) if many else None
        if apart is not None:
            found.append(apart)
            shapes = [shape.without_objects() for shape in shapes]
            rivals = self._overlaps(shapes)
        for shape, others in zip(shapes, rivals, strict=True):
            for other in others:
                without = negation(other) if apart is None else self._algebra.invert(shapes[other], where)
                shape = self._algebra.meet(shape, without, where)
            found.append(shape)
        return found

    def _one_string(self, shapes: list[Shape]) -> Shape:
        """The strings in exactly one of the shapes."""
        for shape in shapes:
            self._algebra.check_complement(shape, self._work.where())
        strings = schema_strings.exactly_one([shape.strings for shape in shapes], self._work)
        return replace(NOTHING, strings=strings)

    def _one_object(self, shapes: list[Shape]) -> Shape | None:
        """The objects in exactly one of the shapes; ``None`` if there are too many cases."""
        where = self._work.where()
        for shape in shapes:
            self._algebra.check_complement(shape, where)
        objects = self._algebra.objects_in([shape.objects for shape in shapes], frozenset({1}), where)
        return None if objects is None else replace(NOTHING, objects=objects)

    def _overlaps(self, shapes: list[Shape]) -> list[list[int]]:
        """For each shape, the others that may share a value with it."""
        found: list[list[int]] = [[] for _ in shapes]
        for k, other in suspects(shapes, self._shape_of):
            self._work.tick()
            if not self._disjoint(shapes[k], shapes[other]):
                found[k].append(other)
                found[other].append(k)
        return found

    def _disjoint(self, left: Shape, right: Shape) -> bool:
        try:
            return self._algebra.are_disjoint(left, right)
        except UnsupportedSchemaError:
            return False
