"""The types of numbers: how they lie in memory, what fits into them, and what comes of two."""

from __future__ import annotations

import ctypes
from array import array as _array
from collections.abc import Callable, Iterable
from typing import Any


class NotHereError(AttributeError, ValueError):
    """Something of numpy that is not in this part of it."""


class generic:  # numpy's names are kept
    """A type of numbers; called, it makes a plain number of Python's."""

    def __class_getitem__(cls, item: Any) -> type:
        return cls


class number(generic): ...


class void(generic):
    """So many bytes: rows of a table, which are compared as a whole."""


class integer(number): ...


class floating(number): ...


CTYPES = {
    "?": ctypes.c_bool, "b": ctypes.c_int8, "B": ctypes.c_uint8, "h": ctypes.c_int16, "H": ctypes.c_uint16,
    "i": ctypes.c_int32, "I": ctypes.c_uint32, "q": ctypes.c_int64, "Q": ctypes.c_uint64, "f": ctypes.c_float,
    "d": ctypes.c_double,
}  # fmt: skip


class dtype:
    """The type of an array's numbers: a letter of ``struct``."""

    def __new__(cls, of: Any) -> dtype:
        if isinstance(of, dtype):
            return of
        if isinstance(of, type) and of in OF_TYPE:
            return OF_TYPE[of]
        if isinstance(of, tuple) and of[0] is void:
            return dtype._made("", "void", "V", of[1], void)
        if isinstance(of, str) and of.lstrip("<=") in OF_NAME:
            return OF_NAME[of.lstrip("<=")]
        raise NotHereError(f"the page without a server has no arrays of {of!r}: use `tokenfst explore`")

    @classmethod
    def _made(cls, code: str, name: str, kind: str, size: int, of: type) -> dtype:
        made = object.__new__(cls)
        made.code, made.name, made.kind, made.itemsize, made.type = code, name, kind, size, of
        made.low = -(1 << 8 * size - 1) if kind == "i" else 0
        made.high = (1 << 8 * size - 1) - 1 if kind == "i" else (1 << 8 * size) - 1
        return made

    code: str
    name: str
    kind: str
    itemsize: int
    type: type
    low: int
    high: int

    def fit(self, values: list[Any]) -> list[Any]:
        """The numbers as this type has them: cut, and wrapped around."""
        if self.kind == "b":
            return [bool(value) for value in values]
        if self.kind == "f":
            return [float(value) for value in values]
        values = [int(value) for value in values]
        if values and (min(values) < self.low or max(values) > self.high):
            low, span = self.low, self.high - self.low + 1
            values = [(value - low) % span + low for value in values]
        return values

    def __eq__(self, other: object) -> bool:
        try:
            return self is dtype(other)
        except NotHereError:
            return False

    def __hash__(self) -> int:
        return hash(self.name)

    def __repr__(self) -> str:
        return f"dtype('{self.name}')"


OF_TYPE: dict[type, dtype] = {}
OF_NAME: dict[str, dtype] = {}


def _scalar(
    name: str, code: str, kind: str, size: int, base: type, plain: Callable[[Any], Any], *names: str
) -> type:
    def new(cls: type, value: Any = 0) -> Any:
        return OF_TYPE[cls].fit([plain(value)])[0]

    made = type(name, (base,), {"__new__": new})
    found = dtype._made(code, name.rstrip("_"), kind, size, made)
    OF_TYPE[made] = found
    for each in (name.rstrip("_"), code, *names):
        OF_NAME[each] = found
    return made


bool_ = _scalar("bool_", "?", "b", 1, generic, bool, "b1")
int8 = _scalar("int8", "b", "i", 1, integer, int, "i1")
uint8 = _scalar("uint8", "B", "u", 1, integer, int, "u1")
int16 = _scalar("int16", "h", "i", 2, integer, int, "i2")
uint16 = _scalar("uint16", "H", "u", 2, integer, int, "u2")
int32 = _scalar("int32", "i", "i", 4, integer, int, "i4", "l")
uint32 = _scalar("uint32", "I", "u", 4, integer, int, "u4", "L")
int64 = intp = _scalar("int64", "q", "i", 8, integer, int, "i8")
uint64 = _scalar("uint64", "Q", "u", 8, integer, int, "u8")
float16 = _scalar("float16", "e", "f", 2, floating, float, "f2")
float32 = single = _scalar("float32", "f", "f", 4, floating, float, "f4")
float64 = double = _scalar("float64", "d", "f", 8, floating, float, "f8")
OF_TYPE.update({bool: dtype(bool_), int: dtype(int64), float: dtype(float64)})


def promoted(one: dtype, other: dtype) -> dtype:
    """The type of what comes of numbers of two types."""
    if one is other or other.kind == "b":
        return one
    if one.kind == "b":
        return other
    if "f" in (one.kind, other.kind):
        small = all((each.kind == "f" and each.itemsize <= 4) or each.itemsize <= 2 for each in (one, other))
        return dtype(float32 if small else float64)
    if one.kind == other.kind:
        return max(one, other, key=lambda each: each.itemsize)
    signed, unsigned = (one, other) if one.kind == "i" else (other, one)
    if signed.itemsize > unsigned.itemsize:
        return signed
    if unsigned.itemsize == 8:
        return dtype(float64)
    return OF_NAME[f"i{2 * unsigned.itemsize}"]


def of_scalar(value: Any, beside: dtype) -> dtype:
    """The type of what comes of an array and a number of Python's."""
    if isinstance(value, bool) or (isinstance(value, int) and beside.kind != "b"):
        return beside
    if isinstance(value, int):
        return dtype(int64)
    return beside if beside.kind == "f" else dtype(float64)


def memory(values: Iterable[Any], of: dtype) -> memoryview:
    """Numbers that fit, one after the other."""
    if of.code == "?":
        return memoryview(bytearray(values)).cast("?")
    return memoryview(_array(of.code, values))
