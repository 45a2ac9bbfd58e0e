"""Arrays that are made: of one number, of a range, of bytes, of others."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Iterable
from typing import Any

from ._arrays import DTYPE, asarray, concatenated, flat_only, made, ndarray, of_list, spread
from ._types import NotHereError, int64, memory, promoted


def array(given: Any, dtype: Any = None, copy: bool | None = True) -> ndarray:
    found = asarray(given, dtype)
    return found.copy() if found is given and copy else found


def _shape(given: Any) -> tuple[int, ...]:
    return (
        (operator.index(given),)
        if hasattr(given, "__index__")
        else tuple(operator.index(each) for each in given)
    )


def full(shape: Any, value: Any, dtype: Any = None) -> ndarray:
    shape = _shape(shape)
    of = asarray(value).dtype if dtype is None else DTYPE(dtype)
    return ndarray(memory(of.fit([value]) * math.prod(shape), of), of, shape)


def zeros(shape: Any, dtype: Any = float) -> ndarray:
    return full(shape, 0, dtype)


def ones(shape: Any, dtype: Any = float) -> ndarray:
    return full(shape, 1, dtype)


empty = zeros


def zeros_like(given: ndarray, dtype: Any = None) -> ndarray:
    return zeros(given.shape, given.dtype if dtype is None else dtype)


empty_like = zeros_like


def full_like(given: ndarray, value: Any, dtype: Any = None) -> ndarray:
    return full(given.shape, value, given.dtype if dtype is None else dtype)


def eye(size: int, dtype: Any = float) -> ndarray:
    return made(
        [int(row == column) for row in range(size) for column in range(size)], DTYPE(dtype), (size, size)
    )


def arange(*bounds: Any, dtype: Any = None) -> ndarray:
    return asarray(range(*map(operator.index, bounds)), int64 if dtype is None else dtype)


def frombuffer(data: Any, dtype: Any = float, count: int = -1, offset: int = 0) -> ndarray:
    of = DTYPE(dtype)
    view = memoryview(data).cast("B")[offset:]
    count = len(view) // of.itemsize if count == -1 else count
    if count * of.itemsize > len(view):
        raise ValueError("buffer is smaller than requested size")
    return ndarray(view[: count * of.itemsize].cast(of.code), of, (count,))


def fromiter(values: Iterable[Any], dtype: Any, count: int = -1) -> ndarray:
    found = of_list(list(values), DTYPE(dtype))
    if count not in (-1, len(found)):
        raise ValueError("the iterator has another length")
    return found


def concatenate(parts: Iterable[Any], axis: int = 0, dtype: Any = None) -> ndarray:
    arrays = [asarray(each) for each in parts]
    of = DTYPE(dtype) if dtype is not None else arrays[0].dtype
    if dtype is None:
        for each in arrays[1:]:
            of = promoted(of, each.dtype)
    if axis in (1, -1) and arrays[0].ndim == 2:
        return concatenate([each.transpose() for each in arrays], 0, of).transpose()
    if axis != 0:
        raise NotHereError(
            "the page without a server joins tables of two axes at most: use `tokenfst explore`"
        )
    if len({each.shape[1:] for each in arrays}) > 1:
        raise ValueError("all dimensions but the first must agree")
    return concatenated(arrays, of, (builtins.sum(each.shape[0] for each in arrays), *arrays[0].shape[1:]))


def append(one: Any, other: Any, axis: int | None = None) -> ndarray:
    if axis is not None:
        return concatenate([one, other], axis)
    return concatenate([asarray(one).ravel(), asarray(other).ravel()])


def stack(parts: Iterable[Any], axis: int = 0) -> ndarray:
    arrays = [asarray(each) for each in parts]
    found = concatenate([each.reshape(1, *each.shape) for each in arrays])
    return found if axis == 0 else found.transpose()


def column_stack(parts: Iterable[Any]) -> ndarray:
    arrays = [asarray(each) for each in parts]
    return concatenate([each.reshape(-1, 1) if each.ndim == 1 else each for each in arrays], axis=1)


def insert(given: Any, places: Any, values: Any) -> ndarray:
    found = asarray(given)
    flat_only(found, "insert")
    wanted = asarray(places).ravel()
    put = sorted(zip(wanted.tolist(), range(wanted.size), spread(asarray(values), wanted.shape), strict=True))
    result = found.tolist()
    for place, _, value in reversed(put):
        result.insert(place, value)
    return made(result, found.dtype, None)


def repeat(given: Any, counts: Any) -> ndarray:
    found, numbers = asarray(given), asarray(counts)
    each = spread(numbers, found.shape)
    values = [value for value, count in zip(found._flat.tolist(), each, strict=True) for _ in range(count)]
    return ndarray(memory(values, found.dtype), found.dtype, (len(values),))


def tile(given: Any, count: int) -> ndarray:
    return concatenate([asarray(given)] * count)
