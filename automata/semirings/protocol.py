"""What a semiring says of itself.

Subclass ``Semiring`` and write ``zero``, ``one``, ``plus`` and ``times``; all else has a default that says "not known",
and an operation that needs it ends with ``FstOpError``. Values are compared by ``==`` and must be hashable.
``checked`` is asked about every weight that comes in, so it is the place to refuse what is no value.
"""

from __future__ import annotations

from typing import Any

from tokenfst.errors import FstBadWeightError, FstOpError


class Semiring:
    """A semiring. ``zero`` adds nothing and makes each product ``zero``; ``one`` changes nothing as a factor."""

    name: str = "semiring"
    zero: Any = None
    one: Any = None
    commutative: bool = True
    """Whether factors may be exchanged; ``compose`` and ``intersect`` need it."""
    left_semiring: bool = True
    """Whether a(b + c) = ab + ac: what sums to acceptance, pushing to the start and determinization need."""
    right_semiring: bool = True
    """Whether (a + b)c = ac + bc: what sums from the start and removal of epsilons need."""
    path: bool = False
    """Whether a sum is always one of its two terms."""

    def plus(self, one: Any, other: Any) -> Any:
        """The sum: what two paths weigh together."""
        raise FstOpError(f"the semiring {self.name!r} does not say what a sum is: write plus(one, other)")

    def times(self, one: Any, other: Any) -> Any:
        """The product: what one path weighs behind another."""
        raise FstOpError(
            f"the semiring {self.name!r} does not say what a product is: write times(one, other)"
        )

    def divide_left(self, product: Any, factor: Any) -> Any:
        """The value that ``factor`` times it is ``product``."""
        raise FstOpError(f"the semiring {self.name!r} does not divide")

    def divide_right(self, product: Any, factor: Any) -> Any:
        """The value that times ``factor`` is ``product``."""
        if self.commutative:
            return self.divide_left(product, factor)
        raise FstOpError(f"the semiring {self.name!r} does not divide")

    def star(self, value: Any) -> Any:
        """1 + a + aa + ...; ``FstOpError`` where that has no sum. Without it cycles are added up until ``near``."""
        raise FstOpError(
            f"the semiring {self.name!r} does not say what 1 + a + aa + ... is: write star(value)"
        )

    def reverse(self, value: Any) -> Any:
        """The value in the semiring whose products are turned round (``reversed_semiring``)."""
        return value

    def reversed_semiring(self) -> Semiring:
        """Where ``reverse`` leads: itself, if products may be exchanged."""
        if self.commutative:
            return self
        raise FstOpError(f"the semiring {self.name!r} does not say what its reverse is")

    def near(self, one: Any, other: Any, delta: float) -> bool:
        """Whether two values count as equal."""
        return bool(one == other)

    def key(self, value: Any, delta: float) -> Any:
        """What values that count as equal have in common."""
        return value

    def member(self, value: Any) -> bool:
        """Whether it is a value of the semiring."""
        return True

    def checked(self, value: Any) -> Any:
        """The value if it is one; else ``FstBadWeightError``."""
        try:
            fits = self.member(value)
        except (TypeError, ValueError, AttributeError, IndexError):
            fits = False
        if not fits:
            raise FstBadWeightError(f"{value!r:.60} is no weight of the semiring {self.name!r}")
        return value

    def has_star(self) -> bool:
        """Whether ``star`` is written."""
        return type(self).star is not Semiring.star

    def __repr__(self) -> str:
        return f"<semiring {self.name}>"
