"""``Semiring``: the base class of semirings written in Python.

Subclass it and define ``zero``, ``one``, ``plus`` and ``times``. All other methods have defaults that mean "not known",
and an operation that needs one raises ``FstOpError``. Values are compared by ``==`` and must be hashable. ``checked``
is called for every incoming weight, so it is the place to reject invalid values.
"""

from __future__ import annotations

from typing import Any

from tokenfst.errors import FstBadWeightError, FstOpError


class Semiring:
    """A semiring. ``zero`` is the identity of addition and annihilates products; ``one`` is the identity of
    multiplication.
    """

    name: str = "semiring"
    zero: Any = None
    one: Any = None
    commutative: bool = True
    """Whether multiplication is commutative; required by ``compose`` and ``intersect``."""
    left_semiring: bool = True
    """Whether a(b + c) = ab + ac; required by sums to acceptance, pushing to the start and determinization."""
    right_semiring: bool = True
    """Whether (a + b)c = ac + bc; required by sums from the start and epsilon removal."""
    cancellative: bool = True
    """Whether ab = ac and a ≠ Zero imply b = c; required of the first component of ``Lexicographic``."""
    path: bool = False
    """Whether a sum is always one of its two terms (path property)."""

    def plus(self, one: Any, other: Any) -> Any:
        """The sum: the weight of two parallel paths."""
        raise FstOpError(f"the semiring {self.name!r} does not say what a sum is: write plus(one, other)")

    def times(self, one: Any, other: Any) -> Any:
        """The product: the weight of two consecutive paths."""
        raise FstOpError(
            f"the semiring {self.name!r} does not say what a product is: write times(one, other)"
        )

    def divide_left(self, product: Any, factor: Any) -> Any:
        """The x with ``factor`` · x = ``product``."""
        raise FstOpError(f"the semiring {self.name!r} does not divide")

    def divide_right(self, product: Any, factor: Any) -> Any:
        """The x with x · ``factor`` = ``product``."""
        if self.commutative:
            return self.divide_left(product, factor)
        raise FstOpError(f"the semiring {self.name!r} does not divide")

    def star(self, value: Any) -> Any:
        """The closure 1 + a + aa + ...; raises ``FstOpError`` if it diverges. If a semiring does not define it,
        ``distances`` adds up the rounds of a cycle until two sums are ``near``.
        """
        raise FstOpError(
            f"the semiring {self.name!r} does not say what 1 + a + aa + ... is: write star(value)"
        )

    def reverse(self, value: Any) -> Any:
        """The corresponding value of the reversed semiring (``reversed_semiring``)."""
        return value

    def reversed_semiring(self) -> Semiring:
        """The semiring with the factors of products exchanged: itself, if it is commutative."""
        if self.commutative:
            return self
        raise FstOpError(f"the semiring {self.name!r} does not say what its reverse is")

    def near(self, one: Any, other: Any, delta: float) -> bool:
        """Whether two values are equal up to ``delta``."""
        return bool(one == other)

    def key(self, value: Any, delta: float) -> Any:
        """A hashable key that is equal for values that are equal up to ``delta``."""
        return value

    def member(self, value: Any) -> bool:
        """Whether it is a value of the semiring."""
        return True

    def checked(self, value: Any) -> Any:
        """The value, if it is valid; raises ``FstBadWeightError`` otherwise."""
        try:
            fits = self.member(value)
        except (TypeError, ValueError, AttributeError, IndexError):
            fits = False
        if not fits:
            raise FstBadWeightError(f"{value!r:.60} is no weight of the semiring {self.name!r}")
        return value

    def has_star(self) -> bool:
        """Whether ``star`` is defined."""
        return type(self).star is not Semiring.star

    def __repr__(self) -> str:
        return f"<semiring {self.name}>"
