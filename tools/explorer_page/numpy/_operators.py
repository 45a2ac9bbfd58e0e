"""Operations of two arrays or numbers, and the operators of arrays."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from ._arrays import asarray, broadcast_shape, made, ndarray, spread
from ._types import OF_NAME, OF_TYPE, bool_, dtype, of_scalar, promoted


def operation(
    of: Callable[[Any, Any], Any], result: dtype | None = None, least: dtype = OF_TYPE[bool]
) -> Callable[[Any, Any], Any]:
    """Of two arrays or numbers. ``result``: the type of what comes of it. ``least``: the type of what comes of truth
    values, and of whole numbers that are divided.
    """

    def apply(one: Any, other: Any) -> Any:
        plain = not isinstance(one, ndarray | list | tuple), not isinstance(other, ndarray | list | tuple)
        first, second = asarray(one), asarray(other)
        if result is not None:
            kind = result
        elif plain[0] != plain[1]:
            kind = of_scalar(one, second.dtype) if plain[0] else of_scalar(other, first.dtype)
        else:
            kind = promoted(first.dtype, second.dtype)
        if kind.kind == "b" or least.kind == "f" != kind.kind:
            kind = least if result is None else kind
        shape = broadcast_shape([first.shape, second.shape])
        if first.shape == shape and len(second._flat) == 1:
            alone = second._flat[0]
            values = [of(value, alone) for value in first._flat.tolist()]
        else:
            values = [of(a, b) for a, b in zip(spread(first, shape), spread(second, shape), strict=True)]
        if shape == () and all(plain):
            return kind.fit(values)[0]
        return made(values, kind, shape)

    return apply


def _shift(one: int, by: int) -> int:
    return one << by


_BOTH = {
    "add": operator.add, "sub": operator.sub, "mul": operator.mul, "floordiv": operator.floordiv, "mod": operator.mod,
    "and": operator.and_, "or": operator.or_, "xor": operator.xor, "lshift": _shift, "rshift": operator.rshift,
    "pow": operator.pow,
}  # fmt: skip
for _name, _of in _BOTH.items():
    _apply = operation(
        _of, least=OF_NAME["i1" if _name in ("floordiv", "mod", "lshift", "rshift", "pow") else "b1"]
    )
    setattr(ndarray, f"__{_name}__", _apply)
    setattr(ndarray, f"__r{_name}__", lambda self, other, apply=_apply: apply(other, self))

    def _in_place(self: ndarray, other: Any, apply: Callable[[Any, Any], ndarray] = _apply) -> ndarray:
        self._flat[:] = apply(self, other).astype(self.dtype, copy=False)._flat
        return self

    setattr(ndarray, f"__i{_name}__", _in_place)
ndarray.__truediv__ = operation(operator.truediv, least=OF_TYPE[float])  # type: ignore[attr-defined]
ndarray.__rtruediv__ = lambda self, other: ndarray.__truediv__(asarray(other), self)  # type: ignore[attr-defined]
for _name in ("eq", "ne", "lt", "le", "gt", "ge"):
    setattr(ndarray, f"__{_name}__", operation(getattr(operator, _name), dtype(bool_)))
