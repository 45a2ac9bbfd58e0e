"""Searches, orders, sets, sums and counts."""

from __future__ import annotations

import builtins
import math
from bisect import bisect_left, bisect_right
from itertools import accumulate, chain
from typing import Any

from ._arrays import DTYPE, Rows, asarray, broadcast_shape, flat_only, made, mapped, ndarray, spread, wide
from ._making import concatenate, stack
from ._types import OF_TYPE, NotHereError, float64, int64, of_scalar, promoted


def flatnonzero(given: Any) -> ndarray:
    return asarray([place for place, value in enumerate(asarray(given)._flat.tolist()) if value], int64)


def nonzero(given: Any) -> tuple[ndarray, ...]:
    found = asarray(given)
    places = flatnonzero(found)._flat.tolist()
    axes = []
    for axis, length in enumerate(found.shape):
        step = math.prod(found.shape[axis + 1 :])
        axes.append(asarray([place // step % length for place in places], int64))
    return tuple(axes)


def argwhere(given: Any) -> ndarray:
    return stack(nonzero(given), axis=1)


def where(given: Any, one: Any = None, other: Any = None) -> Any:
    if one is None and other is None:
        return nonzero(given)
    choice, first, second = asarray(given), asarray(one), asarray(other)
    plain = not isinstance(one, ndarray), not isinstance(other, ndarray)
    if plain[0] != plain[1]:
        of = of_scalar(one, second.dtype) if plain[0] else of_scalar(other, first.dtype)
    else:
        of = promoted(first.dtype, second.dtype)
    shape = broadcast_shape([choice.shape, first.shape, second.shape])
    parts = zip(spread(choice, shape), spread(first, shape), spread(second, shape), strict=True)
    return made([a if chosen else b for chosen, a, b in parts], of, shape)


def count_nonzero(given: Any) -> int:
    return builtins.sum(map(bool, asarray(given)._flat.tolist()))


def any(given: Any, axis: int | None = None) -> Any:
    return asarray(given).any(axis)


def all(given: Any, axis: int | None = None) -> Any:
    return asarray(given).all(axis)


def sum(given: Any, axis: int | None = None) -> Any:
    return asarray(given).sum(axis)


def prod(given: Any) -> Any:
    return math.prod(asarray(given)._flat.tolist())


def argmax(given: Any, axis: int | None = None) -> Any:
    return asarray(given).argmax(axis)


def cumsum(given: Any, dtype: Any = None) -> ndarray:
    found = asarray(given)
    of = wide(found.dtype) if dtype is None else DTYPE(dtype)
    return made(list(accumulate(of.fit(found._flat.tolist()))), of, (found.size,))


def diff(given: Any, prepend: Any = None, append: Any = None) -> ndarray:
    found = asarray(given)
    before = (
        []
        if prepend is None
        else [asarray([prepend], found.dtype) if not isinstance(prepend, ndarray) else prepend]
    )
    behind = (
        []
        if append is None
        else [asarray([append], found.dtype) if not isinstance(append, ndarray) else append]
    )
    flat_only(found, "diff")
    found = concatenate([*before, found, *behind])
    if found.dtype.kind == "b":
        return found[1:] != found[:-1]
    return found[1:] - found[:-1]


def sort(given: Any) -> ndarray:
    found = asarray(given).copy()
    found.sort()
    return found


def argsort(given: Any, kind: str = "stable") -> ndarray:
    flat_only(asarray(given), "argsort")
    values = asarray(given)._flat.tolist()
    return asarray(sorted(range(len(values)), key=values.__getitem__), int64)


def lexsort(keys: Any) -> ndarray:
    columns = [asarray(each)._flat.tolist() for each in keys][::-1]
    return asarray(
        sorted(range(len(columns[0])), key=lambda place: [column[place] for column in columns]), int64
    )


def searchsorted(given: Any, wanted: Any, side: str = "left") -> Any:
    values = asarray(given)._flat.tolist()
    find = bisect_left if side == "left" else bisect_right
    if not isinstance(wanted, ndarray | list | tuple):
        return find(values, wanted)
    return mapped(wanted, lambda value: find(values, value), OF_TYPE[int])


def unique(
    given: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
) -> Any:
    if isinstance(given, Rows):
        values: list[Any] = given.values
    elif axis is None:
        values = asarray(given)._flat.tolist()
    elif asarray(given).ndim == 2 and axis in (0, 1, -1):
        values = [tuple(row) for row in (given if axis == 0 else given.transpose()).tolist()]
    else:
        raise NotHereError(
            "the page without a server has unique rows and columns of tables alone: use `tokenfst explore`"
        )
    first: dict[Any, int] = {}
    counts: dict[Any, int] = {}
    for place, value in enumerate(values):
        first.setdefault(value, place)
        counts[value] = counts.get(value, 0) + 1
    ordered = sorted(first)
    number_of = {value: index for index, value in enumerate(ordered)}
    result: list[Any] = [_told(given, ordered, axis)]
    if return_index:
        result.append(asarray([first[value] for value in ordered], int64))
    if return_inverse:
        shape = given.shape if axis is None and isinstance(given, ndarray) else None
        result.append(made([number_of[value] for value in values], OF_TYPE[int], shape))
    if return_counts:
        result.append(asarray([counts[value] for value in ordered], int64))
    return result[0] if len(result) == 1 else tuple(result)


def _told(given: Any, ordered: list[Any], axis: int | None) -> Any:
    """What of an array is there once: numbers, rows or columns."""
    if isinstance(given, Rows):
        return Rows(ordered)
    found = asarray(given)
    if axis is None:
        return made(ordered, found.dtype, None)
    width = found.shape[1 if axis == 0 else 0]
    table = made(list(chain.from_iterable(ordered)), found.dtype, (len(ordered), width))
    return table if axis == 0 else table.transpose()


def isin(given: Any, among: Any, invert: bool = False) -> ndarray:
    wanted = set(asarray(among)._flat.tolist())
    return mapped(given, lambda value: (value in wanted) != invert, OF_TYPE[bool])


def union1d(one: Any, other: Any) -> ndarray:
    return unique(concatenate([one, other]))


def intersect1d(one: Any, other: Any) -> ndarray:
    return unique(asarray(one)[isin(one, other)])


def setdiff1d(one: Any, other: Any) -> ndarray:
    return unique(asarray(one)[isin(one, other, invert=True)])


def bincount(given: Any, weights: Any = None, minlength: int = 0) -> ndarray:
    values = asarray(given)._flat.tolist()
    counts: list[Any] = [0] * builtins.max(minlength, builtins.max(values, default=-1) + 1)
    for value, weight in zip(
        values, [1] * len(values) if weights is None else asarray(weights)._flat.tolist(), strict=True
    ):
        counts[value] += weight
    return asarray(counts, int64 if weights is None else float64)


def array_equal(one: Any, other: Any) -> bool:
    first, second = asarray(one), asarray(other)
    return first.shape == second.shape and first._flat.tolist() == second._flat.tolist()


for _method in (argsort, cumsum, nonzero):
    setattr(ndarray, _method.__name__, _method)
