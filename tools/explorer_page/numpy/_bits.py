"""Bits of bytes, floats, and the bounds of types."""

from __future__ import annotations

import builtins
import math
import operator
from collections.abc import Callable
from itertools import chain
from typing import Any

from ._arrays import asarray, flat_only, mapped, ndarray
from ._making import stack
from ._operators import operation
from ._types import OF_NAME, OF_TYPE, bool_, dtype, memory, uint8

minimum, maximum = operation(builtins.min), operation(builtins.max)
logical_and = operation(lambda one, other: bool(one and other), dtype(bool_))
logical_or = operation(lambda one, other: bool(one or other), dtype(bool_))
bitwise_and, bitwise_or = operation(operator.and_), operation(operator.or_)

_LITTLE = [[byte >> bit & 1 for bit in range(8)] for byte in range(256)]
_BIG = [bits[::-1] for bits in _LITTLE]


def unpackbits(
    given: ndarray, axis: int | None = None, count: int | None = None, bitorder: str = "big"
) -> ndarray:
    table = _LITTLE if bitorder == "little" else _BIG
    if axis in (1, -1) and given.ndim == 2:
        return stack([unpackbits(row, count=count, bitorder=bitorder) for row in given])
    if axis is not None:
        flat_only(given, "unpackbits")
    bits = list(chain.from_iterable(table[byte] for byte in given._flat.tolist()))[:count]
    return ndarray(memory(bits, OF_NAME["u1"]), OF_NAME["u1"], (len(bits),))


def packbits(given: Any, axis: int | None = None, bitorder: str = "big") -> ndarray:
    found = asarray(given)
    if axis in (1, -1) and found.ndim == 2:
        return stack([packbits(row, bitorder=bitorder) for row in found])
    if axis is not None:
        flat_only(found, "packbits")
    bits = [int(bool(value)) for value in found._flat.tolist()]
    bits += [0] * (-len(bits) % 8)
    order = range(8) if bitorder == "little" else range(7, -1, -1)
    return asarray(
        [builtins.sum(bits[at + i] << by for i, by in enumerate(order)) for at in range(0, len(bits), 8)],
        uint8,
    )


def isfinite(given: Any) -> Any:
    return _of_floats(given, math.isfinite, OF_TYPE[bool])


def isnan(given: Any) -> Any:
    return _of_floats(given, math.isnan, OF_TYPE[bool])


def exp(given: Any) -> Any:
    return _of_floats(given, math.exp, OF_TYPE[float])


def log(given: Any) -> Any:
    return _of_floats(given, lambda value: math.log(value) if value > 0 else -math.inf, OF_TYPE[float])


def abs(given: Any) -> Any:
    return builtins.abs(given)


def _of_floats(given: Any, of: Callable[[float], Any], result: dtype) -> Any:
    if not isinstance(given, ndarray | list | tuple):
        return of(given)
    found = asarray(given)
    return mapped(found, of, found.dtype if result.kind == found.dtype.kind == "f" else result)


class iinfo:
    """The bounds of a type."""

    def __init__(self, of: Any) -> None:
        self.min, self.max = dtype(of).low, dtype(of).high


def issubdtype(one: Any, other: type) -> bool:
    return issubclass(dtype(one).type, other)
