"""The numeric semirings of ``tokenfst.fst`` as components of structured semirings, and numbers with a sign, as they are
and as logarithms.
"""

from __future__ import annotations

import math
from typing import Any

from tokenfst.automata.semirings.protocol import Semiring
from tokenfst.automata.transducers.weights import arc_type_named
from tokenfst.errors import FstArgError, FstOpError

_COSTS = ("standard", "tropical64", "log", "log64")


class Number(Semiring):
    """A semiring of ``tokenfst.fst``, by the name of its arc type: "standard", "log64", "real", "minmax", ..."""

    def __init__(self, arc_type: str) -> None:
        self.kind = arc_type_named(arc_type)
        self.name = self.kind.weight_type
        core = self.kind.core
        self.zero, self.one = core.zero(), core.one()
        self.path = not arc_type.startswith(("log", "real"))
        self.cancellative = not arc_type.startswith("minmax")

    def plus(self, one: Any, other: Any) -> Any:
        """The core's sum."""
        return self.kind.core.plus(one, other)

    def times(self, one: Any, other: Any) -> Any:
        """The core's product."""
        return self.kind.core.times(one, other)

    def divide_left(self, product: Any, factor: Any) -> Any:
        """The core's quotient."""
        return self.kind.core.divide(product, factor)

    def star(self, value: Any) -> Any:
        """1 + a + aa + ..."""
        if self.path:
            if self.plus(value, self.one) != self.one:
                raise FstOpError(f"{value} is better than One, so a cycle of it has no sum")
            return self.one
        share = math.exp(-value) if self.kind.name in _COSTS else value
        if not share < 1 - 1e-13:
            raise FstOpError(f"a cycle that weighs {value} has no sum")
        return math.log1p(-share) if self.kind.name in _COSTS else 1 / (1 - share)

    def near(self, one: Any, other: Any, delta: float) -> bool:
        """Whether they differ by at most ``delta``."""
        return bool(one == other or abs(one - other) <= delta)

    def key(self, value: Any, delta: float) -> Any:
        """The nearest point of a grid with spacing ``delta``."""
        return math.floor(value / delta + 0.5) if math.isfinite(value) else value

    def member(self, value: Any) -> bool:
        """Whether the core accepts the value."""
        return isinstance(value, int | float) and self.kind.core.checked_weight(float(value)) is not None


class SignedLog(Semiring):
    """Numbers with a sign, as pairs of the sign and a negative logarithm: (1.0, -log x) for x > 0, (-1.0, -log x) for
    -x.

    Use it for sums of numbers of very different sizes. ``size``: the arc type of the logarithms, "log" or "log64". Zero
    is (1.0, infinity).
    """

    def __init__(self, size: str = "log64") -> None:
        if size not in ("log", "log64"):
            raise FstArgError(f"SignedLog: size is 'log' or 'log64', not {size!r}")
        self.size = arc_type_named(size)
        self.parts = (Number("standard"), Number(size))
        self.name = f"signed_log_{size}"
        self.zero, self.one = (1.0, math.inf), (1.0, 0.0)

    def plain(self, value: tuple[float, float]) -> tuple[float, float]:
        """The value with its sign as 1.0 or -1.0; the sign of Zero is 1.0."""
        sign, size = value
        return 1.0 if sign > 0 or size == math.inf else -1.0, size

    def plus(self, one: Any, other: Any) -> Any:
        """The sum: of the sizes if the signs are equal, else their difference with the larger one's sign."""
        (sign, less), (other_sign, more) = sorted((one, other), key=lambda value: value[1])
        if more == math.inf:
            return sign, less
        if sign == other_sign:
            return sign, self.parts[1].plus(less, more)
        if less == more:
            return self.zero
        return self.plain((sign, less - math.log(-math.expm1(less - more))))

    def times(self, one: Any, other: Any) -> Any:
        """The product."""
        return self.plain((one[0] * other[0], self.parts[1].times(one[1], other[1])))

    def divide_left(self, product: Any, factor: Any) -> Any:
        """The quotient; ``FstOpError`` by Zero."""
        if factor[1] == math.inf:
            raise FstOpError("nothing is divided by Zero")
        return self.plain((product[0] * factor[0], self.parts[1].divide_left(product[1], factor[1])))

    def star(self, value: Any) -> Any:
        """1 / (1 - a), for a between -1 and 1."""
        if not value[1] > 1e-13:
            raise FstOpError(f"a cycle that weighs {value} has no sum")
        return self.divide_left(self.one, self.plus(self.one, (-value[0], value[1])))

    def near(self, one: Any, other: Any, delta: float) -> bool:
        """Whether signs are equal and sizes differ by at most ``delta``."""
        return bool(one[0] == other[0] and self.parts[1].near(one[1], other[1], delta))

    def key(self, value: Any, delta: float) -> Any:
        """The sign, and the nearest point of a grid with spacing ``delta``."""
        return value[0], self.parts[1].key(value[1], delta)

    def member(self, value: Any) -> bool:
        """Whether it is a pair of a sign, 1 or -1, and a negative logarithm; the sign of Zero must be 1."""
        sign, size = value
        return (
            isinstance(value, tuple)
            and self.parts[1].member(size)
            and (sign == 1 or (sign == -1 and size < math.inf))
        )


class Reals(Semiring):
    """The real numbers with addition and multiplication: the second component of ``Expectation``."""

    name, zero, one = "reals", 0.0, 1.0

    def plus(self, one: Any, other: Any) -> Any:
        """The sum."""
        return one + other

    def times(self, one: Any, other: Any) -> Any:
        """The product."""
        return one * other

    def divide_left(self, product: Any, factor: Any) -> Any:
        """The quotient; ``FstOpError`` by 0."""
        if factor == 0:
            raise FstOpError("nothing is divided by 0")
        return product / factor

    def star(self, value: Any) -> Any:
        """1 / (1 - a), for a between -1 and 1."""
        if not abs(value) < 1 - 1e-13:
            raise FstOpError(f"a cycle that weighs {value} has no sum")
        return 1 / (1 - value)

    def near(self, one: Any, other: Any, delta: float) -> bool:
        """Whether they differ by at most ``delta``."""
        return bool(abs(one - other) <= delta)

    def key(self, value: Any, delta: float) -> Any:
        """The nearest point of a grid with spacing ``delta``."""
        return math.floor(value / delta + 0.5)

    def member(self, value: Any) -> bool:
        """Whether it is a finite number."""
        return isinstance(value, int | float) and math.isfinite(value)
