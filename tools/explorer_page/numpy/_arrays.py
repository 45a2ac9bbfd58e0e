"""Arrays: their places, their shapes, and what is done number by number."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Iterator
from itertools import chain, product
from typing import Any

from ._types import (
    CTYPES,
    OF_NAME,
    OF_TYPE,
    NotHereError,
    dtype,
    int64,
    memory,
    uint64,
)

DTYPE = dtype
"""Where an argument has that name."""


class ndarray:
    """See the module's text."""

    __array_priority__ = 1

    def __class_getitem__(cls, item: Any) -> type:
        return cls

    def __init__(self, flat: memoryview, of: dtype, shape: tuple[int, ...]) -> None:
        self._flat, self.dtype, self.shape = flat, of, shape

    # --- what it is -----------------------------------------------------------------------------------

    ndim = property(lambda self: len(self.shape))
    size = property(lambda self: len(self._flat))
    itemsize = property(lambda self: self.dtype.itemsize)
    nbytes = property(lambda self: self.size * self.dtype.itemsize)
    flat = property(lambda self: iter(self._flat.tolist()))
    T = property(lambda self: self.transpose())

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def __buffer__(self, flags: int) -> memoryview:
        if len(self.shape) == 1:
            return self._flat
        if self.size == 0:
            kind: Any = CTYPES[self.dtype.code]
            for length in reversed(self.shape):
                kind = kind * length
            return memoryview(kind())
        return self._flat.cast("B").cast(self.dtype.code, self.shape)

    def __repr__(self) -> str:
        return f"array({self.tolist()!r}, dtype={self.dtype.name})"

    def __bool__(self) -> bool:
        if self.size != 1:
            raise ValueError("the truth of an array of several numbers is ambiguous: use any() or all()")
        return bool(self._flat[0])

    def __int__(self) -> int:
        return int(self.item())

    def __float__(self) -> float:
        return float(self.item())

    def __index__(self) -> int:
        return operator.index(self.item())

    __hash__ = None  # type: ignore[assignment]

    # --- other forms ----------------------------------------------------------------------------------

    def item(self) -> Any:
        if self.size != 1:
            raise ValueError("only an array of one number is a number")
        return self._flat[0]

    def tolist(self) -> Any:
        if not self.shape:
            return self._flat[0]
        if len(self.shape) == 1:
            return self._flat.tolist()
        return [row.tolist() for row in self]

    def tobytes(self) -> bytes:
        return self._flat.tobytes()

    def astype(self, of: Any, copy: bool = True) -> ndarray:
        of = dtype(of)
        if of is self.dtype and not copy:
            return self
        values = self._flat.tolist()
        return ndarray(memory(values if of is self.dtype else of.fit(values), of), of, self.shape)

    def copy(self) -> ndarray:
        return self.astype(self.dtype)

    def view(self, of: Any) -> Any:
        if isinstance(of, dtype) and of.kind == "V":
            data = self.tobytes()
            return Rows([data[at : at + of.itemsize] for at in range(0, len(data), of.itemsize)])
        of = dtype(of)
        shape = (*self.shape[:-1], self.shape[-1] * self.dtype.itemsize // of.itemsize)
        return ndarray(self._flat.cast("B").cast(of.code), of, shape)

    def reshape(self, *shape: Any) -> ndarray:
        if len(shape) == 1 and not isinstance(shape[0], int):
            shape = tuple(shape[0])
        if -1 in shape:
            rest = math.prod(length for length in shape if length != -1)
            shape = tuple(self.size // rest if length == -1 else length for length in shape)
        if math.prod(shape) != self.size:
            raise ValueError(f"{self.size} numbers have not the shape {shape}")
        return ndarray(self._flat, self.dtype, tuple(int(length) for length in shape))

    def ravel(self) -> ndarray:
        return self.reshape(self.size)

    def flatten(self) -> ndarray:
        return self.ravel().copy()

    def transpose(self) -> ndarray:
        if self.ndim < 2:
            return self
        if self.ndim > 2:
            raise NotHereError(
                "the page without a server turns tables of two axes alone: use `tokenfst explore`"
            )
        rows, columns = self.shape
        values = self._flat.tolist()
        return made(
            [values[row * columns + column] for column in range(columns) for row in range(rows)],
            self.dtype,
            (columns, rows),
        )

    flags = property(lambda self: _Flags(self))

    def setflags(self, write: bool = True) -> None:
        if not write:
            self._flat = self._flat.toreadonly()

    # --- places ---------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[Any]:
        if len(self.shape) == 1:
            return iter(self._flat.tolist())
        return (self[index] for index in range(len(self)))

    def __contains__(self, value: Any) -> bool:
        return value in self._flat.tolist()

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice) and key.step in (None, 1):
            begin, end, _ = key.indices(len(self))
            width = self._width()
            return ndarray(
                self._flat[begin * width : max(begin, end) * width],
                self.dtype,
                (max(begin, end) - begin, *self.shape[1:]),
            )
        if not isinstance(key, tuple | list | ndarray | slice) and key is not None and key is not Ellipsis:
            index = _index(key, len(self))
            if len(self.shape) == 1:
                return self._flat[index]
            width = self._width()
            return ndarray(self._flat[index * width : (index + 1) * width], self.dtype, self.shape[1:])
        places, shape = self._places(key)
        if shape == ():
            return self._flat[places[0]]
        values = self._flat.tolist()
        return ndarray(memory([values[place] for place in places], self.dtype), self.dtype, shape)

    def __setitem__(self, key: Any, value: Any) -> None:
        if not isinstance(key, tuple | list | ndarray | slice) and key is not None and len(self.shape) == 1:
            self._flat[_index(key, len(self))] = self.dtype.fit(
                [value.item() if isinstance(value, ndarray) else value]
            )[0]
            return
        places, shape = self._places(key)
        given = asarray(value)
        for place, each in zip(places, self.dtype.fit(spread(given, shape)), strict=True):
            self._flat[place] = each

    def _width(self) -> int:
        return math.prod(self.shape[1:])

    def _places(self, key: Any) -> tuple[list[int], tuple[int, ...]]:
        """The places of ``self[key]`` in the flat memory, and its shape."""
        if isinstance(key, ndarray) and key.dtype.kind == "b" and key.ndim > 1:
            if key.shape != self.shape:
                raise IndexError("a mask has the shape of the array")
            return [place for place, chosen in enumerate(key._flat.tolist()) if chosen], (
                int(sum(key._flat.tolist())),
            )
        keys = list(key) if isinstance(key, tuple) else [key]
        if Ellipsis in [each for each in keys if not isinstance(each, ndarray)]:
            where = next(i for i, each in enumerate(keys) if each is Ellipsis)
            missing = len(self.shape) - sum(each is not None for each in keys) + 1
            keys[where : where + 1] = [slice(None)] * missing
        keys += [slice(None)] * (len(self.shape) - sum(each is not None for each in keys))
        lengths = iter(self.shape)  # of each axis is chosen: a number, or a list, or an array of numbers
        chosen: list[Any] = [None if each is None else _chosen(each, next(lengths)) for each in keys]
        arrays = [each for each in chosen if isinstance(each, ndarray)]
        steps = [math.prod(self.shape[axis + 1 :]) for axis in range(len(self.shape))]
        together = broadcast_shape([each.shape for each in arrays]) if arrays else ()
        parts: list[list[int]] = []  # of each axis of the result: what it adds to the place
        shape: list[int] = []
        base, axis, met = 0, 0, False
        for each in chosen:
            if each is None:
                parts.append([0])
                shape.append(1)
                continue
            step = steps[axis]
            axis += 1
            if isinstance(each, int):
                base += each * step
            elif isinstance(each, ndarray):
                added = [value * step for value in spread(each, together)]
                if not met:
                    met, where = True, len(parts)
                    parts.append(added)
                    shape += together
                else:
                    parts[where] = [one + other for one, other in zip(parts[where], added, strict=True)]
            else:
                parts.append([value * step for value in each])
                shape.append(len(each))
        return [base + sum(each) for each in product(*parts)], tuple(shape)

    # --- operations -----------------------------------------------------------------------------------

    def __neg__(self) -> ndarray:
        return mapped(self, operator.neg, self.dtype)

    def __invert__(self) -> ndarray:
        return mapped(self, operator.not_ if self.dtype.kind == "b" else operator.invert, self.dtype)

    def __abs__(self) -> ndarray:
        return mapped(self, operator.abs, self.dtype)

    def sum(self, axis: int | None = None, dtype: Any = None) -> Any:
        result = wide(self.dtype)
        return _reduced(self, lambda values: sum(values), axis, result)

    def max(self, axis: int | None = None, initial: Any = None) -> Any:
        return _reduced(
            self, lambda values: max(values if initial is None else [initial, *values]), axis, self.dtype
        )

    def min(self, axis: int | None = None, initial: Any = None) -> Any:
        return _reduced(
            self, lambda values: min(values if initial is None else [initial, *values]), axis, self.dtype
        )

    def any(self, axis: int | None = None) -> Any:
        return _reduced(self, any, axis, OF_TYPE[bool])

    def all(self, axis: int | None = None) -> Any:
        return _reduced(self, all, axis, OF_TYPE[bool])

    def argmax(self, axis: int | None = None) -> Any:
        return _reduced(self, lambda values: values.index(max(values)), axis, OF_TYPE[int])

    def argmin(self, axis: int | None = None) -> Any:
        return _reduced(self, lambda values: values.index(min(values)), axis, OF_TYPE[int])

    def sort(self) -> None:
        flat_only(self, "sort")
        self._flat[:] = memory(sorted(self._flat.tolist()), self.dtype)

    def fill(self, value: Any) -> None:
        self._flat[:] = memory(self.dtype.fit([value]) * self.size, self.dtype)

    def take(self, places: Any) -> ndarray:
        return self[asarray(places)]


class Rows:
    """The rows of a table as bytes, in the order of bytes: for ``unique`` alone."""

    def __init__(self, values: list[bytes]) -> None:
        self.values = values

    def ravel(self) -> Rows:
        return self


def flat_only(given: ndarray, what: str) -> None:
    """For what goes along one axis, and has here no other."""
    if given.ndim > 1:
        raise NotHereError(
            f"the page without a server has numpy.{what} of one axis alone: use `tokenfst explore`"
        )


class _Flags:
    """What an array lets one do."""

    def __init__(self, of: ndarray) -> None:
        self._of = of

    c_contiguous = True

    @property
    def writeable(self) -> bool:
        return not self._of._flat.readonly

    @writeable.setter
    def writeable(self, given: bool) -> None:
        self._of.setflags(write=given)


def _index(key: Any, length: int) -> int:
    index = operator.index(key)
    if not -length <= index < length:
        raise IndexError(f"index {index} is out of bounds for {length}")
    return index % length


def _chosen(key: Any, length: int) -> Any:
    """What one key takes of an axis: a number, a range, or an array of numbers."""
    if isinstance(key, slice):
        return range(length)[key]
    if isinstance(key, list | ndarray):
        found = asarray(key)
        if found.dtype.kind == "b":
            if len(found) != length:
                raise IndexError("a mask is as long as its axis")
            return made([place for place, value in enumerate(found.tolist()) if value], OF_TYPE[int], None)
        return made([_index(each, length) for each in found._flat.tolist()], OF_TYPE[int], found.shape)
    return _index(key, length)


def made(values: list[Any], of: dtype, shape: tuple[int, ...] | None) -> ndarray:
    return ndarray(memory(of.fit(values), of), of, (len(values),) if shape is None else shape)


def broadcast_shape(shapes: list[tuple[int, ...]]) -> tuple[int, ...]:
    count = max(map(len, shapes), default=0)
    found = []
    for axis in range(count):
        lengths = {shape[axis - count + len(shape)] for shape in shapes if axis - count + len(shape) >= 0} - {
            1
        }
        if len(lengths) > 1:
            raise ValueError(f"arrays of the shapes {shapes} do not go together")
        found.append(lengths.pop() if lengths else 1)
    return tuple(found)


def spread(given: ndarray, shape: tuple[int, ...]) -> list[Any]:
    """The numbers of an array, repeated to a shape."""
    values = given._flat.tolist()
    if given.shape == shape:
        return values
    if len(values) == 1:
        return values * math.prod(shape)
    own = (1,) * (len(shape) - len(given.shape)) + given.shape
    if len(own) > len(shape) or any(one not in (1, other) for one, other in zip(own, shape, strict=True)):
        raise ValueError(f"an array of the shape {given.shape} has not the shape {shape}")
    steps = [0 if own[axis] == 1 else math.prod(own[axis + 1 :]) for axis in range(len(own))]
    ranges = [
        range(0, length * step, step) if step else [0] * length
        for length, step in zip(shape, steps, strict=True)
    ]
    return [values[sum(each)] for each in product(*ranges)]


def mapped(given: Any, of: Callable[[Any], Any], result: dtype) -> ndarray:
    found = asarray(given)
    return made([of(value) for value in found._flat.tolist()], result, found.shape)


def wide(of: dtype) -> dtype:
    """The type of sums."""
    return of if of.kind == "f" else dtype(uint64 if of.kind == "u" else int64)


def _reduced(given: ndarray, of: Callable[[list[Any]], Any], axis: int | None, result: dtype) -> Any:
    if axis is None or given.ndim == 1:
        return result.fit([of(given._flat.tolist())])[0]
    if given.ndim != 2:
        raise NotHereError(
            "the page without a server reduces arrays of two axes at most: use `tokenfst explore`"
        )
    rows = given if axis in (1, -1) else given.transpose()
    return made([of(row.tolist()) for row in rows], result, (len(rows),))


def asarray(given: Any, dtype: Any = None) -> ndarray:
    wanted = None if dtype is None else DTYPE(dtype)
    if isinstance(given, ndarray):
        return given if wanted is None else given.astype(wanted, copy=False)
    if isinstance(given, list | tuple):
        return of_list(given, wanted)
    if isinstance(given, bool | int | float):
        of = wanted or (
            OF_TYPE[int]
            if isinstance(given, int) and not isinstance(given, bool) and abs(given) > 1 << 62
            else OF_TYPE[type(given)]
        )
        if wanted is None and isinstance(given, int) and given >= 1 << 63:
            of = DTYPE(uint64)
        return made([given], of, ())
    if isinstance(given, range):
        return made(list(given), wanted or OF_TYPE[int], (len(given),))
    view = memoryview(given)
    of, shape = OF_NAME[view.format.lstrip("<@=")], view.shape
    flat = (view.cast("B") if view.nbytes else memoryview(b"")).cast(of.code)
    found = ndarray(flat, of, tuple(shape or ()))
    return found if wanted is None else found.astype(wanted, copy=False)


def of_list(given: Any, wanted: dtype | None) -> ndarray:
    if given and isinstance(given[0], list | tuple | ndarray):
        rows = [asarray(each, wanted) for each in given]
        if len({row.shape for row in rows}) > 1:
            raise ValueError("the rows of an array are of one length")
        return concatenated(rows, rows[0].dtype, (len(rows), *rows[0].shape))
    values = [each.item() if isinstance(each, ndarray) else each for each in given]
    if wanted is None:
        kinds = {type(each) for each in values}
        wanted = OF_TYPE[bool if kinds == {bool} else float if float in kinds or not kinds else int]
        if wanted.kind == "i" and max(values) > wanted.high:
            wanted = DTYPE(uint64)
    return made(values, wanted, (len(values),))


def concatenated(parts: list[ndarray], of: dtype, shape: tuple[int, ...]) -> ndarray:
    """The numbers of some arrays one after the other."""
    values = chain.from_iterable(each.astype(of, copy=False)._flat.tolist() for each in parts)
    return ndarray(memory(values, of), of, shape)
