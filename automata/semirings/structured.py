"""Structured semirings: counterparts of OpenFst's ``StringWeight``, ``GallicWeight``, ``LexicographicWeight``,
``ExpectationWeight``, ``ProductWeight`` and ``PowerWeight``.

Values are plain Python objects: a string is a tuple of labels, with ``None`` for Zero (the infinite string); all others
are tuples.
"""

from __future__ import annotations

from typing import Any

from tokenfst.automata.semirings.protocol import Semiring
from tokenfst.common.arguments import checked
from tokenfst.errors import FstArgError, FstOpError


class String(Semiring):
    """The string semiring over labels. The product is concatenation.

    The sum is the longest common prefix ("left") or suffix ("right"), or the string itself if both are equal
    ("restrict", ``FstOpError`` if they differ).
    """

    zero, one = None, ()
    commutative = False

    @checked
    def __init__(self, kind: str = "left") -> None:
        if kind not in ("left", "right", "restrict"):
            raise FstArgError(f"String: kind is 'left', 'right' or 'restrict', not {kind!r}")
        self.kind, self.name = kind, f"{kind}_string"
        self.left_semiring, self.right_semiring = kind != "right", kind != "left"

    def plus(self, one: Any, other: Any) -> Any:
        """The longest common prefix or suffix."""
        if one is None or other is None:
            return other if one is None else one
        if self.kind == "restrict":
            if one != other:
                raise FstOpError(f"the strings {one} and {other} differ: the transducer is not functional")
            return one
        if self.kind == "right":
            return self._common(one[::-1], other[::-1])[::-1]
        return self._common(one, other)

    @staticmethod
    def _common(one: tuple[int, ...], other: tuple[int, ...]) -> tuple[int, ...]:
        count = 0
        while count < min(len(one), len(other)) and one[count] == other[count]:
            count += 1
        return one[:count]

    def times(self, one: Any, other: Any) -> Any:
        """The concatenation."""
        return None if one is None or other is None else one + other

    def divide_left(self, product: Any, factor: Any) -> Any:
        """``product`` without its prefix ``factor``."""
        if product is None:
            return None
        if factor is None or product[: len(factor)] != factor:
            raise FstOpError(f"{product} does not begin with {factor}")
        return product[len(factor) :]

    def divide_right(self, product: Any, factor: Any) -> Any:
        """``product`` without its suffix ``factor``."""
        if product is None:
            return None
        if factor is None or product[len(product) - len(factor) :] != factor:
            raise FstOpError(f"{product} does not end with {factor}")
        return product[: len(product) - len(factor)]

    def star(self, value: Any) -> Any:
        """The empty string: the longest common prefix of it and all others."""
        return (
            self.plus((), () if self.kind == "restrict" and not value else value) if value is not None else ()
        )

    def reverse(self, value: Any) -> Any:
        """The reversed string."""
        return None if value is None else value[::-1]

    def reversed_semiring(self) -> Semiring:
        """Prefixes become suffixes."""
        return String({"left": "right", "right": "left"}.get(self.kind, self.kind))

    def member(self, value: Any) -> bool:
        """Whether it is a tuple of labels, or None."""
        return value is None or (
            isinstance(value, tuple) and all(isinstance(x, int) and 0 < x < 2**31 for x in value)
        )


class _Parts(Semiring):
    """Tuples whose parts are values of other semirings, added and multiplied part by part."""

    def __init__(self, name: str, *parts: Semiring) -> None:
        if not parts or not all(isinstance(each, Semiring) for each in parts):
            raise FstArgError(f"{name}: it is made of semirings, and {parts!r:.60} are none")
        self.name, self.parts = name, parts
        self.zero = tuple(each.zero for each in parts)
        self.one = tuple(each.one for each in parts)
        self.commutative = all(each.commutative for each in parts)
        self.left_semiring = all(each.left_semiring for each in parts)
        self.right_semiring = all(each.right_semiring for each in parts)
        self.cancellative = all(each.cancellative for each in parts)

    def _each(self, method: str, *values: Any) -> Any:
        return tuple(getattr(each, method)(*row) for each, *row in zip(self.parts, *values, strict=True))

    def plus(self, one: Any, other: Any) -> Any:
        """The sum of each component."""
        return self._each("plus", one, other)

    def times(self, one: Any, other: Any) -> Any:
        """The product of each component."""
        return self._each("times", one, other)

    def divide_left(self, product: Any, factor: Any) -> Any:
        """The quotient of each component."""
        return self._each("divide_left", product, factor)

    def divide_right(self, product: Any, factor: Any) -> Any:
        """The quotient of each component."""
        return self._each("divide_right", product, factor)

    def star(self, value: Any) -> Any:
        """The star of each component."""
        return self._each("star", value)

    def has_star(self) -> bool:
        """Whether the semirings of all components have a star."""
        return all(each.has_star() for each in self.parts)

    def reverse(self, value: Any) -> Any:
        """The reverse of each component."""
        return self._each("reverse", value)

    def near(self, one: Any, other: Any, delta: float) -> bool:
        """Whether all components are equal up to ``delta``."""
        return all(s.near(a, b, delta) for s, a, b in zip(self.parts, one, other, strict=True))

    def key(self, value: Any, delta: float) -> Any:
        """The keys of the components."""
        return tuple(s.key(v, delta) for s, v in zip(self.parts, value, strict=True))

    def member(self, value: Any) -> bool:
        """Whether it is a tuple of members."""
        if not isinstance(value, tuple) or len(value) != len(self.parts):
            return False
        for each, part in zip(self.parts, value, strict=True):
            each.checked(part)
        return True


class Power(_Parts):
    """``n``-tuples of values of one semiring, with component-wise operations."""

    @checked
    def __init__(self, base: Semiring, n: int) -> None:
        if n < 1:
            raise FstArgError(f"Power: n must be at least 1, not {n}")
        super().__init__(f"{base.name}_^{n}", *[base] * n)

    def reversed_semiring(self) -> Semiring:
        """The power of the reversed semiring."""
        return Power(self.parts[0].reversed_semiring(), len(self.parts))


class Product(_Parts):
    """Pairs over two semirings, with component-wise operations."""

    @checked
    @checked
    def __init__(self, first: Semiring, second: Semiring) -> None:
        super().__init__(f"{first.name}_X_{second.name}", first, second)

    def reversed_semiring(self) -> Semiring:
        """The pair of the reverses."""
        return Product(*(each.reversed_semiring() for each in self.parts))


class Lexicographic(_Parts):
    """Pairs over two semirings with the path property, ordered by the first component, then by the second.

    Products distribute over sums only if the first semiring is ``cancellative``.
    """

    path = True

    @checked
    @checked
    def __init__(self, first: Semiring, second: Semiring) -> None:
        super().__init__(f"{first.name}_LT_{second.name}", first, second)
        if not all(each.path for each in self.parts):
            raise FstArgError("Lexicographic: both semirings must be such whose sum is one of its terms")
        if not first.cancellative:
            self.left_semiring = self.right_semiring = False

    def plus(self, one: Any, other: Any) -> Any:
        """The better of both."""
        for semiring, a, b in zip(self.parts, one, other, strict=True):
            if a != b:
                return one if semiring.plus(a, b) == a else other
        return one

    def star(self, value: Any) -> Any:
        """One. Raises ``FstOpError`` for a value that is better than One."""
        if self.plus(self.one, value) != self.one:
            raise FstOpError(f"{value} is better than One, so a cycle of it has no sum")
        return self.one

    def member(self, value: Any) -> bool:
        """Whether it is a pair of members, of which none or both are Zero."""
        return super().member(value) and (value[0] == self.zero[0]) == (value[1] == self.zero[1])

    def reversed_semiring(self) -> Semiring:
        """The pair of the reverses."""
        return Lexicographic(*(each.reversed_semiring() for each in self.parts))


class Gallic(_Parts):
    """An output string and a weight, as used in determinization and pushing of transducers.

    ``kind``: "left", "right" or "restrict" (as in ``String``), or "min": the sum is the pair with the better weight.
    """

    @checked
    def __init__(self, base: Semiring, kind: str = "left") -> None:
        super().__init__(f"{kind}_gallic_{base.name}", String("restrict" if kind == "min" else kind), base)
        self.kind = kind
        if kind == "min":
            if not base.path:
                raise FstArgError("Gallic: kind 'min' needs a semiring whose sum is one of its terms")
            self.path = True

    def plus(self, one: Any, other: Any) -> Any:
        """The sum of each component; for "min" the pair with the better weight."""
        if self.kind != "min":
            return super().plus(one, other)
        return one if self.parts[1].plus(one[1], other[1]) == one[1] else other

    def star(self, value: Any) -> Any:
        """The star of each component; for "min" One, or ``FstOpError`` for a value that is better."""
        if self.kind != "min":
            return super().star(value)
        return self.plus(self.one, ((), self.parts[1].star(value[1])))

    def reversed_semiring(self) -> Semiring:
        """Prefixes become suffixes."""
        kind = {"left": "right", "right": "left"}.get(self.kind, self.kind)
        return Gallic(self.parts[1].reversed_semiring(), kind)


class Expectation(Semiring):
    """Pairs (p, r) of a probability and an expectation: component-wise sums, (p, r)(q, s) = (pq, ps + rq).

    ``weight``: the semiring of p. ``value``: that of r, by default the same. It also multiplies values by weights, so
    Zero and One must be the same in both. ``Reals`` allows negative numbers beside ``Number("real64")``; for
    logarithms, use ``SignedLog`` for both. With ``r = p * x`` on each arc, the total is the pair of the probability and
    the expectation of the sum of all x, times that probability.
    """

    @checked
    def __init__(self, weight: Semiring, value: Semiring | None = None) -> None:
        value = weight if value is None else value
        if (weight.zero, weight.one) != (value.zero, value.one):
            raise FstArgError(
                f"Expectation: values are multiplied by weights, and those of {weight.name!r} are no values of "
                f"{value.name!r}: Zero and One are {weight.zero!r} and {weight.one!r} there, {value.zero!r} and "
                f"{value.one!r} here. Use Number('real64') with Reals(), or SignedLog() for both"
            )
        self.parts = (weight, value)
        self.name = f"expectation_{weight.name}_{value.name}"
        self.zero, self.one = (weight.zero, value.zero), (weight.one, value.zero)
        self.commutative = weight.commutative and value.commutative

    def plus(self, one: Any, other: Any) -> Any:
        """The sum of each component."""
        return self.parts[0].plus(one[0], other[0]), self.parts[1].plus(one[1], other[1])

    def times(self, one: Any, other: Any) -> Any:
        """The product of (p, r) and (q, s): (pq, ps + rq)."""
        weight, value = self.parts
        mixed = value.plus(value.times(one[0], other[1]), value.times(one[1], other[0]))
        return weight.times(one[0], other[0]), mixed

    def star(self, value: Any) -> Any:
        """The star of (p, r): (p*, p* r p*)."""
        total = self.parts[0].star(value[0])
        return total, self.parts[1].times(self.parts[1].times(total, value[1]), total)

    def has_star(self) -> bool:
        """Whether the semiring of the probability has a star."""
        return self.parts[0].has_star()

    def near(self, one: Any, other: Any, delta: float) -> bool:
        """Whether both components are equal up to ``delta``."""
        return all(s.near(a, b, delta) for s, a, b in zip(self.parts, one, other, strict=True))

    def member(self, value: Any) -> bool:
        """Whether it is a pair of members."""
        if not isinstance(value, tuple) or len(value) != 2:
            return False
        self.parts[0].checked(value[0])
        self.parts[1].checked(value[1])
        return True
