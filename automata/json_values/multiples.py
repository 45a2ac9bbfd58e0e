"""Which numbers are multiples of which moduli: an algebra of moduli, and the digit automata of its sets.

The idea: let ``[m]`` be the indicator function of the multiples of m, and ``[0]`` that of all numbers. A boolean
combination of such sets has the indicator function ``Σ c_m [m]`` with whole coefficients, because ``[a][b] = [lcm(a,
b)]`` and "not" is ``[0] - f``. The coefficients are unique: for two different sums take the least m at which they
differ, and (for m > 0) consider the number m itself, which is a multiple of no larger modulus. So this is a normal
form: equal sets have equal terms, the empty set has none, and the members in a bounded interval are counted by counting
multiples (inclusion and exclusion).

Cost: a product of functions with s and t terms takes s·t least common multiples; k independent moduli give 2^k terms,
within ``Budget.positions``. Rejected: a disjunctive normal form of divisible / not divisible, which is not unique, and
in which emptiness needs a search.

The automaton reads a number digit by digit. If m is ``unit`` times a power of ten and 10 does not divide ``unit``, it
keeps the remainder modulo ``unit``. A factor 2 or 5 is decided by the last digits alone, so remainders that later
digits make equal share a state. The state of a remainder is its first *hit*: the least number n of further digits that
can complete a multiple, with their required value modulo ``unit``. This gives the minimal automaton of integers
(Alexeev, "Minimal DFAs for testing divisibility", JCSS 2004): m states if m and 10 are coprime, n + 6 for 10^n. After
the point, as many digits remain as m has decimals, and a state is their required value.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import floor, gcd, lcm
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.expression import Dfa, Expr, complement, intersect, machine, union
from tokenfst.automata.expressions.tables import frozen_dfa
from tokenfst.automata.json_values.bounds import NUMBERS, WHOLE, decimal_places, show, valuation
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

_POSITIONS = 64
"""The number of ``Budget.positions`` that a product of two terms counts as: it takes about 10 µs."""
_ANY = Fraction(0)


@dataclass(frozen=True, slots=True)
class Multiples:
    """A boolean combination of sets of multiples, in normal form (module docstring).

    ``terms``: pairs (m, c_m), with m ascending and c_m not 0; m = 0 stands for all numbers. Equal sets have equal
    values.
    """

    terms: tuple[tuple[Fraction, int], ...]

    @classmethod
    def of(cls, modulus: Fraction) -> Multiples:
        """The multiples of a modulus > 0."""
        return cls(((modulus, 1),))

    def __contains__(self, value: Fraction) -> bool:
        if not self.terms or self.terms == EVERY.terms:
            return self.terms != ()
        return sum(c for m, c in self.terms if m == 0 or (value / m).denominator == 1) == 1

    @property
    def is_dense(self) -> bool:
        """Whether every interval with more than one point has infinitely many members."""
        return bool(self.terms) and self.terms[0][0] == 0

    def count(self, low: Fraction, high: Fraction) -> int:
        """The number of members strictly between two numbers. The set must not be dense."""
        return sum(c * (-floor(-high / m) - floor(low / m) - 1) for m, c in self.terms)

    @property
    def modulus(self) -> Fraction | None:
        """The m such that this is the set of all multiples of m; ``None`` if there is none."""
        return self.terms[0][0] if len(self.terms) == 1 and self.terms[0][0] != 0 else None

    def meet(self, other: Multiples, budget: Budget) -> Multiples:
        """The numbers in both sets. Raises BudgetExceeded("positions")."""
        if self is other or self.terms == EVERY.terms or not other.terms:
            return other
        if other.terms == EVERY.terms or not self.terms:
            return self
        return _sum(self._products(other, budget))

    def join(self, other: Multiples, budget: Budget) -> Multiples:
        """The numbers in at least one of the sets. Raises BudgetExceeded("positions")."""
        if self is other or self.terms == EVERY.terms or not other.terms:
            return self
        if other.terms == EVERY.terms or not self.terms:
            return other
        both = self._products(other, budget)
        return _sum([*self.terms, *other.terms, *((m, -c) for m, c in both)])

    def inverse(self) -> Multiples:
        """All other numbers."""
        if not self.terms or self.terms == EVERY.terms:
            return NONE if self.terms else EVERY
        return _sum([(_ANY, 1), *((m, -c) for m, c in self.terms)])

    def _products(self, other: Multiples, budget: Budget) -> list[tuple[Fraction, int]]:
        if len(self.terms) * len(other.terms) * _POSITIONS > budget.positions:
            raise BudgetExceeded("positions", budget.positions, "combinations of multipleOf")
        return [(_common(m, n), c * d) for m, c in self.terms for n, d in other.terms]

    def __str__(self) -> str:
        if self == EVERY:
            return "numbers"
        if self == INTEGERS:
            return "integers"
        if self.modulus is not None:
            return f"multiples of {show(self.modulus)}"
        if self.is_dense and (other := self.inverse().modulus) is not None:
            return f"numbers other than multiples of {show(other)}"
        shown = ", ".join(show(m) for m, _ in self.terms[:4] if m != 0)
        return f"a combination of multiples of {shown}" + (", ..." if len(self.terms) > 4 else "")


EVERY = Multiples(((_ANY, 1),))
NONE = Multiples(())
INTEGERS = Multiples.of(Fraction(1))


def _sum(terms: list[tuple[Fraction, int]]) -> Multiples:
    total: dict[Fraction, int] = {}
    for m, c in terms:
        total[m] = total.get(m, 0) + c
    return Multiples(tuple(sorted((m, c) for m, c in total.items() if c != 0)))


def _common(a: Fraction, b: Fraction) -> Fraction:
    """The modulus of the numbers that are multiples of both."""
    if a == 0 or b == 0:
        return a or b
    return Fraction(lcm(a.numerator, b.numerator), gcd(a.denominator, b.denominator))


# --- expressions --------------------------------------------------------------------------------------


def spellings_of_multiples(members: Multiples, *, fraction: bool, budget: Budget) -> Expr:
    """The texts, without a sign and without an exponent, of the members >= 0.

    ``fraction=False``: also without a fraction (then the members must be integers). There is one automaton for each
    modulus; the engine evaluates their combination when it walks them. Raises ``BudgetExceeded``, which names the
    ``multipleOf`` that is too large.
    """
    moduli = {_ANY}
    for m, _ in members.terms:
        moduli |= {_common(m, n) for n in moduli}
        if len(moduli) ** 3 > budget.positions:
            raise BudgetExceeded("positions", budget.positions, "combinations of multipleOf")
    # In whole numbers: the finest of these moduli that divides a number decides whether the number is a member.
    scale = lcm(*(m.denominator for m in moduli))
    sizes = sorted(int(m * scale) for m in moduli)
    inside = {size: int(Fraction(size, scale) in members) for size in sizes}
    inside[0] = int(members.is_dense)
    found: dict[tuple[int, int], Expr] = {}
    for size in reversed(sizes):
        finer = [other for other in sizes if other > size and (size == 0 or other % size == 0)]
        for side in (0, 1):
            # Its multiples on this side: those of the coarsest finer moduli that change sides, or all but those.
            beyond = side if inside[size] != side else 1 - side
            turned = [other for other in finer if inside[other] == beyond]
            coarsest = [other for other in turned if not any(other % k == 0 for k in turned if k < other)]
            part = union(*(found[other, beyond] for other in coarsest))
            if inside[size] == side:
                leaf = _leaf(Fraction(size, scale), fraction, budget)
                part = intersect(leaf, complement(part)) if coarsest else leaf
            found[size, side] = part
    return found[0, 1]


def _leaf(modulus: Fraction, fraction: bool, budget: Budget) -> Expr:
    if modulus == 0:
        return NUMBERS if fraction else WHOLE
    return _automaton(modulus, fraction, budget)


@lru_cache(maxsize=8)
def _automaton(modulus: Fraction, fraction: bool, budget: Budget) -> Expr:
    label = f"multipleOf {show(modulus)}"
    return machine(_Remainders(modulus, fraction, budget, label).table(), label)


# --- automata -----------------------------------------------------------------------------------------

Array = npt.NDArray[Any]
_DIGITS = np.arange(10)
_POINT, _FIRST_DIGIT, _CLASSES = 1, 2, 12
_LISTED = 1 << 22
"""Up to this ``unit`` all remainders are classified at once; beyond it, only those that are reached."""


class _Scale(NamedTuple):
    """A modulus as unit · 10^power / 10^places; 10 does not divide unit, and power or places is 0."""

    unit: int
    places: int
    power: int


def split(modulus: Fraction) -> _Scale:
    """A modulus > 0 with a finite decimal form as a whole number and a power of ten."""
    places = decimal_places(modulus)
    unit = int(modulus * 10**places)
    power = min(valuation(unit, 2), valuation(unit, 5))
    return _Scale(unit // 10**power, places, power)


def decimal_power(modulus: Fraction) -> int | None:
    """The n such that a modulus is 10^-n; ``None`` if there is none."""
    scale = split(modulus)
    return scale.places - scale.power if scale.unit == 1 else None


class _Remainders:
    """The automaton of one modulus. ``hits`` maps an array of remainders to codes of states: two remainders have the
    same code exactly if the same digits complete them.
    """

    def __init__(self, modulus: Fraction, fraction: bool, budget: Budget, label: str) -> None:
        self.unit, self.places, self.power = split(modulus)
        self.fraction, self.budget, self.label = fraction, budget, label
        self.stable = max(self.places, valuation(self.unit, 2), valuation(self.unit, 5))
        # The required values of n further digits: at least this number of states is needed.
        endings = [-(-min(self.unit, 10**n) // gcd(self.unit, 10**n)) for n in range(self.stable + 1)]
        kept = self.unit // gcd(self.unit, 10**self.stable)
        self.check(max(kept, *endings[self.places :], sum(endings[: self.places]) if fraction else 0))
        self.kind: Any = np.int64 if self.unit < 2**31 else object
        self.shift = pow(10, self.places, self.unit)

    def check(self, states: int) -> None:
        if states > self.budget.states or states * _CLASSES * 4 > self.budget.bytes:
            resource = "states" if states > self.budget.states else "bytes"
            raise BudgetExceeded(resource, getattr(self.budget, resource), self.label)

    def needed(self, remainders: Array) -> Array:
        """The value modulo the unit that the digits of a full fraction must have."""
        return -remainders * self.shift % self.unit

    def hits(self, remainders: Array) -> Array:
        """The code of each remainder: (n - places) · unit + w, where n digits that make w are its first hit.

        At n = ``stable`` everything hits. O(stable - places) array operations.
        """
        needed = self.needed(remainders)
        codes = np.zeros_like(needed)
        open_ = np.ones(needed.shape, np.bool_)
        for level in range(self.stable - self.places):
            hit = open_ & (needed < min(10 ** (level + self.places), self.unit))
            codes = np.where(hit, needed + level * self.unit, codes)
            open_ &= ~hit
            needed = needed * 10 % self.unit
        return np.where(open_, needed + (self.stable - self.places) * self.unit, codes)

    def classes(self) -> tuple[Array, Callable[[Array], Array]]:
        """One remainder of each class, in the order of the codes, and the map from remainders to class numbers."""
        if self.unit <= _LISTED:
            _, first, numbers = np.unique(
                self.hits(np.arange(self.unit)), return_index=True, return_inverse=True
            )
            self.check(len(first))
            return first, lambda remainders: numbers[remainders]
        codes = remainders = np.zeros(0, self.kind)
        fresh = np.arange(10).astype(self.kind)
        while len(fresh):
            found, first = np.unique(self.hits(fresh), return_index=True)
            new = ~np.isin(found, codes)
            codes, remainders = np.append(codes, found[new]), np.append(remainders, fresh[first][new])
            self.check(len(codes))
            fresh = (fresh[first][new][:, None] * 10 + _DIGITS).ravel() % self.unit
        order = np.argsort(codes)
        ordered = codes[order]
        return remainders[order], lambda remainders: np.searchsorted(ordered, self.hits(remainders))

    def table(self) -> Dfa:
        """The states: DEAD, the start, a single zero, the classes, zeros after a multiple (``power``), fractions."""
        remainders, number = self.classes()
        start, zero, base = 1, 2, 3
        count = len(remainders)
        whole = np.zeros((base + count + self.power, _CLASSES), np.int64)
        whole[start, _FIRST_DIGIT:] = base + number(_DIGITS.astype(self.kind) % self.unit)
        whole[start, _FIRST_DIGIT] = zero
        following = (remainders[:, None] * 10 + _DIGITS) % self.unit
        whole[base : base + count, _FIRST_DIGIT:] = base + number(following)
        multiple = base + int(number(np.zeros(1, self.kind))[0])
        accepting = np.zeros(len(whole), np.bool_)
        accepting[zero] = True
        accepting[base : base + count] = self.needed(remainders) == 0
        if self.power:
            # Zeros that follow a multiple of the unit are counted.
            chain = np.array([multiple, *range(base + count, len(whole))])
            accepting[base : base + count] = False
            accepting[chain[-1]] = True
            whole[chain] = whole[multiple]
            whole[chain, _FIRST_DIGIT] = np.append(chain[1:], chain[-1])
        if self.fraction:
            entries = np.zeros(len(whole), self.kind)
            entries[base : base + count] = self.needed(remainders)
            parts, rows, below = self.fractions(np.unique(entries), len(whole))
            allowed = entries < 10**self.places if self.places else accepting.copy()
            allowed[[0, start]] = False
            whole[allowed, _POINT] = len(whole) + np.searchsorted(parts, entries[allowed])
            whole = np.concatenate((whole, rows))
            accepting = np.concatenate((accepting, below))
        classes = np.zeros(256, np.uint8)
        classes[ord(".")] = _POINT
        classes[ord("0") : ord("9") + 1] = _DIGITS + _FIRST_DIGIT
        return frozen_dfa(classes, whole.astype(np.uint32), accepting, start)

    def fractions(self, needed: Array, base: int) -> tuple[Array, Array, npt.NDArray[np.bool_]]:
        """The states after the point: what the rest of the fraction has to be, modulo the unit.

        Numbered from ``base``: first those right after the point, one for each of the returned values (out of
        ``needed``), which accept only after a digit; at last, one where nothing but zeros may follow.
        """
        level = needed[needed < 10**self.places]
        first, rows, below = level, [], []
        number = base
        for left in range(self.places, 0, -1):
            after = (
                level[:, None] - (_DIGITS.astype(self.kind) * (10 ** (left - 1) % self.unit))
            ) % self.unit
            alive = after < 10 ** (left - 1)
            following = np.unique(after[alive])
            number += len(level)
            self.check(number)
            row = np.zeros((len(level), _CLASSES), np.int64)
            row[:, _FIRST_DIGIT:] = np.where(alive, number + np.searchsorted(following, after), 0)
            rows.append(row)
            below.append((level == 0) & (left < self.places))
            level = following
        # The end: zeros. Right after the point, as long as no digit was read, it does not accept.
        zeros = np.zeros((1 if self.places else 2, _CLASSES), np.int64)
        zeros[:, _FIRST_DIGIT] = number + len(zeros) - 1
        rows.append(zeros)
        below.append(np.arange(len(zeros)) == len(zeros) - 1)
        return first, np.concatenate(rows), np.concatenate(below).astype(np.bool_)
