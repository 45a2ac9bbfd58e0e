"""Sets of numbers as values with exact algebra.

The idea: numeric keywords cut the line into points and the open intervals between them. For each interval, a set says
which of its numbers are members: all, none, the multiples of something, or the numbers that are not multiples
(``multiples.Multiples``, a normal form). An operation uses the cuts of both sets and combines interval by interval, so
a complement costs no more than a union and nothing multiplies. An interval without members is marked as empty when it
is made (its members can be counted), so a set is empty exactly if its normal form is that of the empty set.

Values are compared, never texts: 1, 1.0 and 1e0 are one number, an integer, and -0 is 0 (JSON Schema 2020-12,
validation, sections 6.1 and 6.2; core, section 4.2.2). A float is the number of its shortest decimal form.

``texts`` decides which texts spell the members.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction

from tokenfst.automata.json_values.bounds import End, Number, exact, show
from tokenfst.automata.json_values.multiples import EVERY, INTEGERS, NONE, Multiples
from tokenfst.automata.languages.operands import widest
from tokenfst.budget import Budget
from tokenfst.errors import ConstraintError

_SHOWN = 6
_DEFAULT = Budget()


@dataclass(frozen=True, slots=True)
class NumberSet:
    """A set of numbers in normal form.

    Make one with ``every``, ``none``, ``integers``, ``multiples_of``, ``between`` or ``of``, and combine them with
    ``&``, ``|``, ``~`` and ``-``.

    ``cuts`` are in ascending order. ``at[k]`` says whether ``cuts[k]`` is a member, and ``inside[k]`` which numbers
    strictly between ``cuts[k - 1]`` and ``cuts[k]`` are members. If all numbers of an interval are members, or none,
    ``inside`` says exactly this; and a cut that changes nothing is left out. So the empty set and the set of all
    numbers have one form each. ``==`` compares forms. Two sets with different moduli can have the same members in a
    bounded interval; ``equivalent`` decides that.

    Cost of operations: linear in the number of cuts. They raise ``BudgetExceeded`` if combined moduli outgrow the
    budget.
    """

    cuts: tuple[Fraction, ...]
    at: tuple[bool, ...]
    inside: tuple[Multiples, ...]
    budget: Budget | None = field(default=None, compare=False)

    # --- constructors ---------------------------------------------------------------------------------

    @classmethod
    def every(cls) -> NumberSet:
        """All numbers."""
        return cls((), (), (EVERY,))

    @classmethod
    def none(cls) -> NumberSet:
        """The empty set."""
        return cls((), (), (NONE,))

    @classmethod
    def integers(cls) -> NumberSet:
        """The set of integers; 1.0 is one of them."""
        return cls((), (), (INTEGERS,))

    @classmethod
    def multiples_of(cls, modulus: Number) -> NumberSet:
        """The numbers k · modulus for integers k. Raises ``ConstraintError`` unless the modulus is > 0."""
        step = exact(modulus)
        if step <= 0:
            raise ConstraintError(f"multipleOf must be greater than 0, not {show(step)}")
        return cls((), (), (Multiples.of(step),))

    @classmethod
    def of(cls, values: Iterable[Number]) -> NumberSet:
        """The finite set of these values. O(n log n)."""
        cuts = tuple(sorted({exact(value) for value in values}))
        return cls(cuts, (True,) * len(cuts), (NONE,) * (len(cuts) + 1))

    @classmethod
    def between(
        cls,
        minimum: Number | None = None,
        maximum: Number | None = None,
        *,
        exclusive_minimum: Number | None = None,
        exclusive_maximum: Number | None = None,
    ) -> NumberSet:
        """The numbers within all given bounds, each of which means what JSON Schema's keyword of that name means."""
        result = cls.every()
        for bound, closed, inside in (
            (minimum, True, (NONE, EVERY)),
            (exclusive_minimum, False, (NONE, EVERY)),
            (maximum, True, (EVERY, NONE)),
            (exclusive_maximum, False, (EVERY, NONE)),
        ):
            if bound is not None:
                result = result & cls((exact(bound),), (closed,), inside)
        return result

    def with_budget(self, budget: Budget) -> NumberSet:
        """The same set with another budget for its operations and its language."""
        return NumberSet(self.cuts, self.at, self.inside, budget)

    # --- algebra --------------------------------------------------------------------------------------

    def __and__(self, other: NumberSet) -> NumberSet:
        """The intersection."""
        return self._combined(other, bool.__and__, Multiples.meet)

    def __or__(self, other: NumberSet) -> NumberSet:
        """The union."""
        return self._combined(other, bool.__or__, Multiples.join)

    def __sub__(self, other: NumberSet) -> NumberSet:
        """The members of this set that are not in the other."""
        return self & ~other

    def __invert__(self) -> NumberSet:
        """The complement."""
        inverses = {id(part): part.inverse() for part in {id(part): part for part in self.inside}.values()}
        inside = [inverses[id(part)] for part in self.inside]
        return _normal(self.cuts, [not there for there in self.at], inside, self.budget)

    # --- questions ------------------------------------------------------------------------------------

    def is_empty(self) -> bool:
        """Whether there is no member. O(1)."""
        return self.cuts == () and self.inside == (NONE,)

    def equivalent(self, other: NumberSet) -> bool:
        """Whether both sets have the same members."""
        return (self - other).is_empty() and (other - self).is_empty()

    def contains(self, value: Number) -> bool:
        """Whether a number is a member. O(log n)."""
        number = exact(value)
        place = bisect_left(self.cuts, number)
        if place < len(self.cuts) and self.cuts[place] == number:
            return self.at[place]
        return number in self.inside[place]

    def count(self) -> int | None:
        """The number of members; ``None`` for infinitely many."""
        total = sum(self.at)
        for low, high, part in zip((None, *self.cuts), (*self.cuts, None), self.inside, strict=True):
            if part == NONE:
                continue
            if part.is_dense or low is None or high is None:
                return None
            total += part.count(low, high)
        return total

    def lone_integers(self) -> NumberSet:
        """The integer members that no interval with non-integer members contains or has as an end."""
        only = [part.meet(INTEGERS, self.budget or Budget()) == part for part in self.inside]
        around = zip(self.cuts, self.at, only, only[1:], strict=False)
        at = [there and cut.denominator == 1 and low and high for cut, there, low, high in around]
        inside = [part if integral else NONE for part, integral in zip(self.inside, only, strict=True)]
        return _normal(self.cuts, at, inside, self.budget)

    def __str__(self) -> str:
        intervals, points = self.intervals(), self.points()
        shown = []
        for low, high, part in intervals[:_SHOWN]:
            left = "(-∞" if low is None else f"{'[' if low.closed else '('}{show(low.value)}"
            right = "∞)" if high is None else f"{show(high.value)}{']' if high.closed else ')'}"
            shown.append(str(part) if low is high else f"{part} in {left}, {right}")
        shown += map(show, points[:_SHOWN])
        rest = len(intervals) + len(points) - len(shown)
        return " | ".join([*shown, f"{rest} more"] if rest else shown) or "no number"

    # --- parts ----------------------------------------------------------------------------------------

    def intervals(self) -> list[tuple[End | None, End | None, Multiples]]:
        """The intervals that have members: the lower end, the upper end, and which of its numbers are members.

        An end is ``None`` at infinity. An end is closed if it is a member and fits the interval's multiples.
        """

        def end(place: int, part: Multiples) -> End | None:
            if not 0 <= place < len(self.cuts):
                return None
            return End(self.cuts[place], self.at[place] and self.cuts[place] in part)

        return [(end(k - 1, part), end(k, part), part) for k, part in enumerate(self.inside) if part != NONE]

    def points(self) -> list[Fraction]:
        """The members that are single points: those that are not closed ends of an interval in ``intervals``."""
        around = zip(self.cuts, self.at, self.inside, self.inside[1:], strict=False)
        return [cut for cut, there, low, high in around if there and cut not in low and cut not in high]

    def magnitudes(self) -> NumberSet:
        """The members that are not negative."""
        above = bisect_right(self.cuts, 0)
        cuts, at = (Fraction(0), *self.cuts[above:]), (self.contains(0), *self.at[above:])
        return _normal(cuts, at, (NONE, *self.inside[above:]), self.budget)

    def mirrored(self) -> NumberSet:
        """The numbers whose negatives are members."""
        cuts = tuple(-cut for cut in reversed(self.cuts))
        return NumberSet(cuts, self.at[::-1], self.inside[::-1], self.budget)

    # --- details --------------------------------------------------------------------------------------

    def _combined(
        self,
        other: NumberSet,
        flags: Callable[[bool, bool], bool],
        parts: Callable[[Multiples, Multiples, Budget], Multiples],
    ) -> NumberSet:
        if not isinstance(other, NumberSet):
            return NotImplemented
        budget = widest(self.budget, other.budget)
        cuts = self.cuts or other.cuts
        if self.cuts and other.cuts:
            cuts = tuple(sorted({*self.cuts, *other.cuts}))
        at, inside = self._cut(cuts)
        others_at, others_inside = other._cut(cuts)
        # Compared by identity, because hashing fractions costs more than combining equal parts again.
        known: dict[tuple[int, int], Multiples] = {}
        combined = []
        for one, two in zip(inside, others_inside, strict=True):
            key = id(one), id(two)
            if key not in known:
                known[key] = parts(one, two, budget or _DEFAULT)
            combined.append(known[key])
        return _normal(cuts, list(map(flags, at, others_at)), combined, budget)

    def _cut(self, cuts: Sequence[Fraction]) -> tuple[list[bool], list[Multiples]]:
        """The same set, described with more cuts than its own."""
        at: list[bool] = []
        inside = [self.inside[0]]
        place = 0
        for cut in cuts:
            own = place < len(self.cuts) and self.cuts[place] == cut
            at.append(self.at[place] if own else cut in self.inside[place])
            place += own
            inside.append(self.inside[place])
        return at, inside


def _normal(
    cuts: Sequence[Fraction], at: Sequence[bool], inside: Sequence[Multiples], budget: Budget | None
) -> NumberSet:
    """The set in normal form: without cuts that change nothing.

    An interval of which all numbers, or none, are members has no modulus.
    """
    kept: list[tuple[Fraction, bool]] = []
    parts: list[Multiples] = []
    for place, part in enumerate(inside):
        if 0 < place < len(cuts) and part not in (NONE, EVERY):
            rare = part.inverse() if part.is_dense else part
            if rare.count(cuts[place - 1], cuts[place]) == 0:
                part = EVERY if part.is_dense else NONE
        if place > 0:
            cut, there = cuts[place - 1], at[place - 1]
            if parts[-1] == part and (cut in part) == there:
                continue
            kept.append((cut, there))
        parts.append(part)
    return NumberSet(tuple(cut for cut, _ in kept), tuple(there for _, there in kept), tuple(parts), budget)


def conflict(named: Sequence[tuple[str, NumberSet]]) -> tuple[str, ...] | None:
    """The names of a minimal subset of the constraints that no number satisfies together.

    ``None`` if a number satisfies all of them. Needs n² intersections.
    """
    if not _all_of(named).is_empty():
        return None
    needed = list(named)
    for constraint in named:
        others = [other for other in needed if other is not constraint]
        if _all_of(others).is_empty():
            needed = others
    return tuple(name for name, _ in needed)


def _all_of(named: Sequence[tuple[str, NumberSet]]) -> NumberSet:
    result = NumberSet.every()
    for _, numbers in named:
        result = result & numbers
    return result
