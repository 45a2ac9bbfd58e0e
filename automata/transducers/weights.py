"""``Weight``: values of a semiring; and the names of semirings and arc types.

An arc type is a semiring in a precision, under OpenFst's name. A ``Weight`` is a value of such a type; arithmetic is
done by the core, in its precision.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.common.arguments import checked
from tokenfst.errors import FstArgError, FstBadWeightError, FstOpError


class ArcType(NamedTuple):
    """A semiring in a precision: OpenFst's names of its arcs and weights, the core's class, numpy's dtype."""

    name: str
    weight_type: str
    core: Any
    dtype: npt.DTypeLike
    """The dtype of weights in arrays."""

    @property
    def lazy(self) -> Any:
        """The core's class for lazy machines."""
        return getattr(_native, f"Lazy_{self.name}")


_NAMES = {
    "standard": ("tropical", np.float32),
    "tropical64": ("tropical64", np.float64),
    "log": ("log", np.float32),
    "log64": ("log64", np.float64),
    "real": ("real", np.float32),
    "real64": ("real64", np.float64),
    "minmax": ("minmax", np.float32),
    "minmax64": ("minmax64", np.float64),
    "boolean": ("boolean", np.uint8),
}
ARC_TYPES: dict[str, ArcType] = {
    name: ArcType(name, weight, getattr(_native, f"Fst_{name}"), dtype)
    for name, (weight, dtype) in _NAMES.items()
}
"""All arc types by name."""
WEIGHT_TYPES = {each.weight_type: each for each in ARC_TYPES.values()}
"""All arc types by the names of their weights."""
_TEXTS = {"Infinity": math.inf, "-Infinity": -math.inf}


def arc_type_named(name: object) -> ArcType:
    """The arc type with a name; raises ``FstArgError``, which lists the known names."""
    found = ARC_TYPES.get(name) if isinstance(name, str) else None
    if found is None:
        raise FstArgError(f"there is no arc type {name!r}: there are {', '.join(ARC_TYPES)}")
    return found


def number(weight: object, kind: ArcType, what: str = "a weight") -> float:
    """The value of a weight argument of type ``kind``: a ``Weight`` of that type, a number, or its text.

    Raises ``FstBadWeightError`` for NaN and values outside the semiring; ``FstOpError`` for a weight of another
    semiring; ``FstArgError`` for anything else.
    """
    if isinstance(weight, Weight):
        if weight.type() != kind.weight_type:
            raise FstOpError(f"{what} is of the semiring {weight.type()!r}, and {kind.weight_type!r} is due")
        value = float(weight)
    elif isinstance(weight, str):
        try:
            value = _TEXTS.get(weight)  # type: ignore[assignment]
            value = float(weight) if value is None else value
        except ValueError:
            raise FstBadWeightError(f"{what}: {weight!r} is not a number") from None
    elif isinstance(weight, int | float | np.number):
        try:
            value = float(weight)
        except OverflowError:
            raise FstBadWeightError(f"{what}: an integer of this size is no weight of any semiring") from None
    else:
        raise FstArgError(
            f"{what} must be a Weight, a number or its text, not {type(weight).__name__} {weight!r:.60}"
        )
    try:
        return float(kind.core.checked_weight(value))
    except FstBadWeightError:
        raise FstBadWeightError(
            f"{what}: {value!r} is no weight of the semiring {kind.weight_type!r}"
        ) from None


def written(value: float, dtype: npt.DTypeLike) -> str:
    """A value as text that reads back exactly."""
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    if dtype is np.float32:
        return str(np.float32(value)).removesuffix(".0")
    return str(int(value)) if value == int(value) and abs(value) < 1e15 else repr(value)


class Weight:
    """A value of a semiring. ``weight_type``: "tropical", "log", "log64", "real", "minmax", ... (docs/fst/index.md)."""

    __slots__ = ("_kind", "_value")

    def __init__(self, weight_type: str, weight: Weight | str | float) -> None:
        kind = WEIGHT_TYPES.get(weight_type) if isinstance(weight_type, str) else None
        if kind is None:
            raise FstArgError(f"there is no weight type {weight_type!r}: there are {', '.join(WEIGHT_TYPES)}")
        self._kind = kind
        self._value = number(weight, kind)

    @classmethod
    def of(cls, kind: ArcType, value: float) -> Weight:
        """A weight from a value of the core."""
        made = cls.__new__(cls)
        object.__setattr__(made, "_kind", kind)
        object.__setattr__(made, "_value", value)
        return made

    @classmethod
    def zero(cls, weight_type: str) -> Weight:
        """The identity of addition: the final weight of states that are not final."""
        return cls(weight_type, WEIGHT_TYPES[weight_type].core.zero() if weight_type in WEIGHT_TYPES else 0)

    @classmethod
    def one(cls, weight_type: str) -> Weight:
        """The identity of multiplication."""
        return cls(weight_type, WEIGHT_TYPES[weight_type].core.one() if weight_type in WEIGHT_TYPES else 0)

    def type(self) -> str:
        """The name of the semiring."""
        return self._kind.weight_type

    def to_string(self) -> str:
        """The value as text."""
        return written(self._value, self._kind.dtype)

    def copy(self) -> Weight:
        """The same weight."""
        return self

    def __float__(self) -> float:
        return self._value

    def __str__(self) -> str:
        return self.to_string()

    def __repr__(self) -> str:
        return f"<{self.type()} Weight {self}>"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Weight):
            return NotImplemented
        return self._kind is other._kind and self._value == other._value

    def __hash__(self) -> int:
        return hash((self._kind.name, self._value))

    def _with(self, other: object, operation: str) -> Weight:
        value = number(other, self._kind)
        return Weight.of(self._kind, getattr(self._kind.core, operation)(self._value, value))

    def __add__(self, other: object) -> Weight:
        return self._with(other, "plus")

    def __mul__(self, other: object) -> Weight:
        return self._with(other, "times")

    def __truediv__(self, other: object) -> Weight:
        return self._with(other, "divide")


@checked
def plus(one: Weight, other: Weight) -> Weight:
    """The semiring's sum. Raises ``FstOpError`` for weights of different semirings."""
    return one + other


@checked
def times(one: Weight, other: Weight) -> Weight:
    """The semiring's product."""
    return one * other


@checked
def divide(one: Weight, other: Weight) -> Weight:
    """The quotient of ``one`` by ``other``; raises ``FstBadWeightError`` if there is none."""
    return one / other


@checked
def power(weight: Weight, n: int) -> Weight:
    """The product of ``n`` copies of the weight."""
    if n < 0:
        raise FstArgError(f"power: n must be an integer that is not negative, not {n!r}")
    result, base = Weight.one(weight.type()), weight
    while n:
        if n & 1:
            result = result * base
        base, n = base * base, n >> 1
    return result
