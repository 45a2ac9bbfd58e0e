"""Pairs of value sets that may share a value: the branches that a ``oneOf`` must compare.

Branches are usually distinguished by a constant, of the value or of one of its members (a discriminator). So an index
has each value set under the constants that its values have, or under the type if these are not listed, and each is
compared only with value sets under the same keys. All other pairs are certainly disjoint; the caller must compare the
remaining pairs.

Cost: linear in the value sets and their constants, plus the number of pairs; without constants that is every pair.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, field

from tokenfst.automata.json_schema.documents.source import Place
from tokenfst.automata.json_schema.sets.formula import Formula
from tokenfst.automata.json_schema.sets.objects import Object
from tokenfst.automata.json_schema.sets.value_sets import ValueSet
from tokenfst.automata.json_values.multiples import NONE as NO_MULTIPLES

_FEW = 12
"""Up to this number of value sets, all pairs are returned."""
_CONSTANTS = frozenset(("const", "enum"))

_Key = tuple[str, Hashable]
"""A type and a constant of this type; ``_ANY`` if the constant may be any."""
_ANY = object()


@dataclass(slots=True)
class _Index:
    """The value sets so far, by their keys: those with a constant, those with any of a type, and all of a type."""

    listed: defaultdict[_Key, list[int]] = field(default_factory=lambda: defaultdict(list))
    unlisted: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    every: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))


def suspects(
    value_sets: list[ValueSet], value_set: Callable[[Formula], ValueSet | None]
) -> Iterator[tuple[int, int]]:
    """All pairs of indices, the larger one first, whose value sets may share a value.

    ``value_set`` returns the values of a member's formula; ``None`` if they are not known.
    """
    if len(value_sets) <= _FEW:
        yield from ((k, other) for k in range(len(value_sets)) for other in range(k))
        return
    name = _discriminator(value_sets)
    index = _Index()
    for k, each in enumerate(value_sets):
        keys = set(_keys(each)) | {key for cell in each.objects for key in _of_object(cell, name, value_set)}
        found: set[int] = set()
        for kind, constant in keys:
            if constant is _ANY:
                found.update(index.every[kind])
            else:
                found.update(index.listed[kind, constant], index.unlisted[kind])
        yield from ((k, other) for other in sorted(found))
        for kind, constant in keys:
            (index.unlisted[kind] if constant is _ANY else index.listed[kind, constant]).append(k)
            index.every[kind].append(k)


def _keys(value_set: ValueSet) -> Iterator[_Key]:
    """The keys of all values except objects."""
    yield from (("null", name) for name in ("null", "true", "false") if getattr(value_set, name))
    sets = [value_set.numbers] if value_set.whole is None else [value_set.numbers, value_set.whole]
    if any(part != NO_MULTIPLES for numbers in sets for part in numbers.inside):
        yield "number", _ANY
    else:
        for numbers in sets:
            yield from (("number", cut) for cut, there in zip(numbers.cuts, numbers.at, strict=True) if there)
    for strings in value_set.strings:
        if strings.values is None:
            yield "string", _ANY
        else:
            yield from (("string", word) for word in strings.values)
    if value_set.arrays:
        yield "array", _ANY


def _of_object(
    cell: Object, name: str | None, value_set: Callable[[Formula], ValueSet | None]
) -> Iterator[_Key]:
    """The keys of a cell: the constants of its member ``name``."""
    formula = dict(cell.listed).get(name) if name in cell.required else None
    held = value_set(formula) if formula is not None and _is_constant(formula) else None
    keys = [] if held is None or held.objects else list(_keys(held))
    if not keys or any(constant is _ANY for _, constant in keys):
        yield "object", _ANY
    else:
        yield from (("object", key) for key in keys)


def _discriminator(value_sets: list[ValueSet]) -> str | None:
    """The member that most objects require, with listed constants, if there is one."""
    names = Counter(
        name
        for each in value_sets
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
