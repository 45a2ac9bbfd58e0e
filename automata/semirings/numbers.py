"""The numeric semirings of ``tokenfst.fst`` as components of structured semirings, and the signed reals."""

from __future__ import annotations

import math
from typing import Any

from tokenfst.automata.semirings.protocol import Semiring
from tokenfst.automata.transducers.weights import arc_type_named
from tokenfst.errors import FstOpError

_COSTS = ("standard", "tropical64", "log", "log64")


class Number(Semiring):
    """A semiring of ``tokenfst.fst``, by the name of its arc type: "standard", "log64", "real", "minmax", ..."""

    def __init__(self, arc_type: str) -> None:
        self.kind = arc_type_named(arc_type)
        self.name = self.kind.weight_type
        core = self.kind.core
        self.zero, self.one = core.zero(), core.one()
        self.path = not arc_type.startswith(("log", "real"))

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
