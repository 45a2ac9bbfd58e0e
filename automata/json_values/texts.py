"""Sets of numbers as languages of their JSON texts.

There are two spellings, which differ only in texts with an exponent. Both contain all texts without an exponent that
RFC 8259, section 6, allows for a member, with any number of zeros at the end of the fraction.

``plain_numbers``: numbers with an exponent are written as ``json.dumps``, JavaScript's ``JSON.stringify`` or pydantic
writes them, and only if one of these uses an exponent: from 1e16 on and below 1e-4. They have one digit, not 0, before
the point, no zeros at the end of the mantissa, ``e`` and a sign. The exponents -5 to -9 are padded as in Python
(``e-05`` to ``e-09``), and -6 to -9 also unpadded as in pydantic and, from -7 on, in JavaScript (``e-6`` to ``e-9``). 0
has a sign only before a fraction (Python's ``-0.0``). A single number, which is a constant or the only one within the
bounds, has only the texts that these writers give it.

``number_language``: every spelling. Without exponents all of them are included. With exponents the set of all spellings
is not regular if there is a bound other than 0, or divisibility (``bounds`` shows why). So ``exponents=True`` follows a
rule, for the negative and for the other members separately:

1. if all numbers, or none, or only 0 are members: every JSON spelling; 2. if an interval of numbers, an interval of the
multiples of a power of ten (integers, hundredths), or a single number belongs to the set: its spellings without an
exponent, and those with one digit, not 0, before the point, and an exponent (0 with any exponent); 3. if an interval of
other multiples, or of numbers that are not multiples, belongs to it: the spellings without an exponent. (An interval
with few multiples is treated as single numbers.)

Plain texts with exponents follow 2 and 3 as well. For multiples, mantissas with more than 16 decimals, not counting
zeros at the end, are left out; no 64-bit float needs more.

In all cases every text in the language denotes a member, and every member has a text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from fractions import Fraction
from math import ceil, floor

from tokenfst.automata.expressions.expression import (
    Expr,
    complement,
    concat,
    intersect,
    literal,
    optional,
    union,
)
from tokenfst.automata.json_values.bounds import (
    EXPONENT,
    End,
    magnitudes,
    plain_scientific,
    plain_texts,
    scientific,
    scientific_spellings,
    spellings,
)
from tokenfst.automata.json_values.multiples import (
    EVERY,
    NONE,
    Multiples,
    decimal_power,
    spellings_of_multiples,
)
from tokenfst.automata.json_values.numbers import NumberSet
from tokenfst.automata.languages.emptiness import record_word
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget

_ZERO = End(Fraction(0), True)
_MINUS = literal(b"-")
_NOT_ZERO = complement(literal(b"0"))
_NEGATIVE = NumberSet.between(exclusive_maximum=0)
_FEW = 64
"""An interval with at most this number of multiples lists them one by one; a larger one uses an automaton of
remainders.
"""


def number_language(numbers: NumberSet, *, exponents: bool, integer_fraction: bool = True) -> Language:
    """The JSON texts (RFC 8259, section 6) that spell members of a set.

    ``exponents``: include texts with an exponent, by the rule in the module's docstring; otherwise every member has all
    its texts without one. ``integer_fraction=False``: if all members are integers, the texts without an exponent have
    no fraction either (no ``1.0``); otherwise this changes nothing.

    Building takes O(digits of the bounds) if all moduli are powers of ten; otherwise it uses automata of about as many
    states as the moduli have remainders. Raises ``BudgetExceeded``, which names the ``multipleOf`` that is too large.
    """
    fraction = integer_fraction or not (numbers - NumberSet.integers()).is_empty()
    spelling = _EverySpelling(exponents, fraction, numbers.budget or Budget())
    positive, negative = numbers.magnitudes(), numbers.mirrored().magnitudes()
    if positive == negative:
        expr = concat(optional(_MINUS), spelling.texts(positive))
    else:
        expr = union(spelling.texts(positive), concat(_MINUS, spelling.texts(negative)))
    return Language(expr, str(numbers), numbers.budget)


def plain_numbers(numbers: NumberSet, *, fraction: bool = True) -> Expr:
    """The plain texts of the members. ``fraction=False``, for a set of integers only: digits and a sign only.

    Cost and BudgetExceeded as for ``number_language``.
    """
    plain = _PlainSpelling(fraction, numbers.budget or Budget(), frozenset(numbers.points()))
    negative = plain.texts((numbers if fraction else numbers & _NEGATIVE).mirrored().magnitudes(), -1)
    if fraction and numbers.contains(0) and 0 not in plain.lone:
        negative = intersect(negative, _NOT_ZERO)
        record_word(negative)
    return union(plain.texts(numbers.magnitudes(), 1), concat(_MINUS, negative))


@dataclass(frozen=True, slots=True)
class _EverySpelling:
    """The texts of members >= 0 in every spelling."""

    exponents: bool
    fraction: bool
    budget: Budget

    def texts(self, numbers: NumberSet) -> Expr:
        """All the texts of a set without negative members."""
        free = numbers.cuts in ((), (0,)) and all(part in (NONE, EVERY) for part in numbers.inside)
        if self.exponents and self.fraction and free:
            return concat(_EverySpelling(False, True, self.budget).texts(numbers), optional(EXPONENT))
        parts, few = _intervals(numbers, self.fraction, scientific if self.exponents else None, self.budget)
        if self.exponents and numbers.contains(0):
            parts.append(concat(magnitudes(_ZERO, _ZERO), EXPONENT))
        return union(*parts, *self.points(numbers.points() + few))

    def points(self, values: Iterable[Fraction]) -> list[Expr]:
        """The texts of single numbers."""
        found = sorted(set(values))
        return [
            spellings(found, fraction=self.fraction),
            *([scientific_spellings(found)] if self.exponents else []),
        ]


@dataclass(frozen=True, slots=True)
class _PlainSpelling:
    """The texts of members >= 0 in plain spelling. ``lone``: the single numbers, of either sign."""

    fraction: bool
    budget: Budget
    lone: frozenset[Fraction]

    def texts(self, numbers: NumberSet, sign: int) -> Expr:
        """All the texts of a set without negative members; ``sign`` is the sign that precedes them."""
        exponents = plain_scientific if self.fraction else None
        parts, few = _intervals(numbers, self.fraction, exponents, self.budget)
        listed = [point for point in numbers.points() if point * sign not in self.lone] + few
        parts.append(spellings(sorted(set(listed)), fraction=self.fraction))
        words = {text for each in listed for text in self.constant(each) if "e" in text}
        for each in self.lone:
            if each * sign > 0 or (each == 0 and sign > 0):
                words.update(self.constant(abs(each)))
            elif each == 0 and self.fraction:
                words.add("0.0")  # -0.0 is the number 0
        return union(*parts, *(literal(word.encode()) for word in sorted(words)))

    def constant(self, value: Fraction) -> tuple[str, ...]:
        """The texts of a single number."""
        return plain_texts(value) if self.fraction else (str(value),)


def _intervals(
    numbers: NumberSet,
    fraction: bool,
    exponents: Callable[[End, End | None, int | None], Expr] | None,
    budget: Budget,
) -> tuple[list[Expr], list[Fraction]]:
    """The texts of the intervals that have many members, and the members of the others.

    ``exponents``: makes the texts with an exponent of an interval; None: there are none.
    """
    parts: list[Expr] = []
    listed: list[Fraction] = []
    for low, high, members in numbers.intervals():
        assert low is not None, "0 bounds the set from below"
        few = _few_members(low, high, members)
        if few is not None:
            listed += few
            continue
        parts.append(_fixed(low, high, members, fraction, budget))
        if exponents is not None and _has_exponents(members):
            parts.append(exponents(low, high, _places(members)))
    return parts, listed


def _fixed(low: End, high: End | None, members: Multiples, fraction: bool, budget: Budget) -> Expr:
    """The texts without an exponent of the members in an interval that begins at 0 or later."""
    places = _places(members)
    if members == EVERY or (places is not None and places >= 0):
        return magnitudes(low, high, places=places, fraction=fraction)
    texts = spellings_of_multiples(members, fraction=fraction, budget=budget)
    if low != _ZERO or high is not None:
        within = magnitudes(low, high, places=None if fraction else 0, fraction=fraction)
        texts = intersect(within, texts)
    return texts


def _places(members: Multiples) -> int | None:
    """The n for which the members are the multiples of 10^-n, if there is one."""
    return None if members.modulus is None else decimal_power(members.modulus)


def _has_exponents(members: Multiples) -> bool:
    return members == EVERY or _places(members) is not None


def _few_members(low: End, high: End | None, members: Multiples) -> list[Fraction] | None:
    """All members of an interval, if they are few and the interval does not hold the multiples of a power of ten."""
    if high is None or members.is_dense or (members.modulus and decimal_power(members.modulus) is not None):
        return None
    values: set[Fraction] = set()
    for m, _ in members.terms:
        first, last = ceil(low.value / m), floor(high.value / m)
        if last - first >= _FEW:
            return None
        values |= {k * m for k in range(first, last + 1)}
    inner = (value for value in values if low.value < value < high.value and value in members)
    return [*inner, *(end.value for end in (low, high) if end.closed)]
