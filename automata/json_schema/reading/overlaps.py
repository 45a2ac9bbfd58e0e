"""Pairs of shapes that may share a value: the branches that a ``oneOf`` must compare.

Branches are usually distinguished by a constant, of the value or of one of its members (a discriminator). So each shape
is entered into an index under the constants that its values have, or under the type if these are not listed, and is
compared only with shapes under the same keys. All other pairs are certainly disjoint; the remaining pairs must be
compared by the caller.

Cost: linear in the shapes and their constants, plus the number of pairs; without constants that is every pair.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from tokenfst.automata.json_schema.documents.source import Place
from tokenfst.automata.json_schema.sets.formula import Formula
from tokenfst.automata.json_schema.sets.objects import Object
from tokenfst.automata.json_schema.sets.shape import Shape
from tokenfst.automata.json_values.multiples import NONE as NO_MULTIPLES

_FEW = 12
"""Up to this number of shapes, all pairs are returned."""
_CONSTANTS = frozenset(("const", "enum"))

_Mark = tuple[str, Hashable]
"""A type, and a constant of it; ``_ANY`` for any."""
_ANY = object()


@dataclass(slots=True)
class _Index:
    """The shapes so far, by their marks: those with a constant, those with any of a type, and all of a type."""

    listed: defaultdict[_Mark, list[int]] = field(default_factory=lambda: defaultdict(list))
    unlisted: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    every: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


def suspects(shapes: list[Shape], shape: Callable[[Formula], Shape | None]) -> Iterator[tuple[int, int]]:
    """All pairs of indices, the larger one first, whose shapes may share a value. ``shape``: returns the shape of a
    member's formula, if known.
    """
    if len(shapes) <= _FEW:
        yield from ((k, other) for k in range(len(shapes)) for other in range(k))
        return
    name = _discriminator(shapes)
    index = _Index()
    for k, each in enumerate(shapes):
        marks = set(_marks(each)) | {mark for cell in each.objects for mark in _of_object(cell, name, shape)}
        found: set[int] = set()
        for kind, constant in marks:
            if constant is _ANY:
                found.update(index.every[kind])
            else:
                found.update(index.listed[kind, constant], index.unlisted[kind])
        yield from ((k, other) for other in sorted(found))
        for kind, constant in marks:
            (index.unlisted[kind] if constant is _ANY else index.listed[kind, constant]).append(k)
            index.every[kind].append(k)


def _marks(shape: Shape) -> Iterator[_Mark]:
    """The marks of all values except objects."""
    yield from (("null", name) for name in ("null", "true", "false") if getattr(shape, name))
    sets = [shape.numbers] if shape.whole is None else [shape.numbers, shape.whole]
    if any(part != NO_MULTIPLES for numbers in sets for part in numbers.inside):
        yield "number", _ANY
    else:
        for numbers in sets:
            yield from (("number", cut) for cut, there in zip(numbers.cuts, numbers.at, strict=True) if there)
    for strings in shape.strings:
        if strings.values is None:
            yield "string", _ANY
        else:
            yield from (("string", word) for word in strings.values)
    if shape.arrays:
        yield "array", _ANY


def _of_object(cell: Object, name: str | None, shape: Callable[[Formula], Shape | None]) -> Iterator[_Mark]:
    """The marks of a cell: the constants of its member ``name``."""
    formula = dict(cell.listed).get(name) if name in cell.required else None
    held = shape(formula) if formula is not None and _is_constant(formula) else None
    marks = [] if held is None or held.objects else list(_marks(held))
    if not marks or any(constant is _ANY for _, constant in marks):
        yield "object", _ANY
    else:
        yield from (("object", mark) for mark in marks)


def _discriminator(shapes: list[Shape]) -> str | None:
    """The member that most objects require, with listed constants, if there is one."""
    names = Counter(
        name
        for each in shapes
        for cell in each.objects
        for name, formula in cell.listed
        if name in cell.required and _is_constant(formula)
    )
    return next((name for name, _ in names.most_common(1)), None)


def _is_constant(formula: Formula) -> bool:
    """Whether a formula clearly lists its values."""
    place = formula.atom
    return (
        isinstance(place, Place) and isinstance(place.value, dict) and not _CONSTANTS.isdisjoint(place.value)
    )
