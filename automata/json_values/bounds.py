"""Intervals of decimal numbers as expressions over their JSON spellings, compared digit by digit.

The idea: of two numbers without an exponent, the one with more digits before the point is the larger one. Among equally
long ones the first digit that differs decides, and what follows it is free. So "at least 472" among three digits is
``[5-9]dd | 4(?:[8-9]d | 7[2-9])``: a node and a state for each digit of the bound, however large it is. An interval
shares the digits that both bounds begin with. Nothing is intersected, so no state is dead.

Spelling (RFC 8259, section 6) is independent of this: a fraction may end in any number of zeros, and ``0`` is the only
whole part that begins with 0. ``places`` limits the decimals before such zeros: 0 makes integers, 2 hundredths.

Exponents: the set of all spellings with an exponent of the numbers in an interval is not regular if the interval ends
at a number other than 0. Take 1 as the upper bound: of the texts ``1 0^k e-n`` exactly those with n >= k are in the
language, so an automaton would have to remember k. If the end is another number c > 0, the digits of c followed by
zeros show the same. Nor is the set of all spellings of integers regular (the same texts show it), or that of other
multiples. What is regular is the spelling with one digit, not 0, before the point, which is what printf and JSON
writers make (``1.25e-3``): the exponents of number and bound decide, and the digits only where these are equal. Even
so, ``1.d..d e n`` is an integer exactly if there are at most n decimals, again a number to remember: ``scientific``
describes the limit. The plain spelling (``plain_scientific``) has only the exponents and mantissas that JSON writers
make.

Rejected: an intersection of two one-sided automata (twice the states, each of which then needs a search that it is
alive), and regular expressions that list the ranges (quadratic in the digits).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import MAX_EMAX, MIN_EMIN, Context, Decimal
from fractions import Fraction
from functools import lru_cache
from math import ceil, floor
from typing import NamedTuple

from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    Expr,
    byte_range,
    concat,
    intersect,
    literal,
    optional,
    repeat,
    union,
)
from tokenfst.automata.languages.emptiness import record_word
from tokenfst.errors import ConstraintError

Number = int | float | Decimal | Fraction
_SHORT = Context(prec=7, Emax=MAX_EMAX, Emin=MIN_EMIN)
MAX_DIGITS = 500
"""The maximum number of digits before the point, and after it, of a number without an exponent.

Each digit of a bound nests an expression once more, and the native core limits the nesting.
"""
SCIENTIFIC_PLACES = 16
"""The maximum number of decimals of a mantissa in ``scientific`` if ``places`` is given: 17 digits in all, as a 64-bit
float needs.
"""
_LARGE, _SMALL = 16, -5
"""``json.dumps`` writes an exponent from this power of ten upwards, and from this one downwards. ``JSON.stringify``
does so from 21 upwards and from -7 downwards, pydantic from 16 upwards and from -6 downwards.
"""
_UNPADDED = -6
"""From this power of ten downwards, some writer does not pad the exponent to two digits."""


def is_finite(value: float | Decimal | Fraction) -> bool:
    """Whether a Python number is neither an infinity nor NaN, as every number of JSON."""
    return (
        value.is_finite()
        if isinstance(value, Decimal)
        else not isinstance(value, float) or math.isfinite(value)
    )


class End(NamedTuple):
    """An end of an interval. ``closed``: whether the interval contains ``value``."""

    value: Fraction
    closed: bool


_ONE, _TEN = End(Fraction(1), True), End(Fraction(10), False)


# --- numbers ------------------------------------------------------------------------------------------


def exact(value: Number) -> Fraction:
    """The exact value of a number. A float has the value of its shortest decimal form, so 0.1 is 1/10.

    Raises ``ConstraintError`` for booleans, infinities, NaN, numbers without a finite decimal form, and those with more
    than ``MAX_DIGITS`` digits before or after the point.
    """
    if isinstance(value, bool) or not isinstance(value, int | float | Decimal | Fraction):
        raise ConstraintError(f"{value!r} is not a number")
    if isinstance(value, float):
        value = Decimal(repr(value))
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ConstraintError(f"{value} is not a JSON number: it must be finite")
        size = value.adjusted() if value else 0
        if not -MAX_DIGITS <= size < MAX_DIGITS or len(value.as_tuple().digits) > 4 * MAX_DIGITS:
            raise _too_long(f"{value:.6e}")
    number = Fraction(value) if value else Fraction(0)
    if not is_decimal(number):
        raise ConstraintError(f"{value} has no finite decimal form, so no JSON text spells it")
    if abs(number) >= 10**MAX_DIGITS or decimal_places(number) > MAX_DIGITS:
        raise _too_long(show(number))
    return number


def _too_long(value: str) -> ConstraintError:
    return ConstraintError(
        f"the number {value} has more than {MAX_DIGITS} digits before or after the point; round it"
    )


def valuation(number: int, prime: int) -> int:
    """The exponent of a prime in the factorization of a number other than 0."""
    exponent = 0
    while number % prime == 0:
        number //= prime
        exponent += 1
    return exponent


def is_decimal(value: Fraction) -> bool:
    """Whether a number has a finite decimal form."""
    return bool(10 ** decimal_places(value) % value.denominator == 0)


def decimal_places(value: Fraction) -> int:
    """The number of decimals of a number with a finite decimal form."""
    return max(valuation(value.denominator, 2), valuation(value.denominator, 5))


def written(value: Fraction) -> tuple[str, str]:
    """The digits before the point of a decimal number >= 0, and the digits after it without zeros at the end."""
    whole, rest = divmod(value.numerator, value.denominator)
    places = decimal_places(value)
    return str(whole), str(rest * 10**places // value.denominator).zfill(places) if rest else ""


def show(value: Fraction) -> str:
    """A decimal number as text for messages; long numbers are rounded."""
    if abs(value) < 10**20 and decimal_places(value) <= 20:
        whole, decimals = written(abs(value))
        return "-" * (value < 0) + whole + ("." + decimals if decimals else "")
    return f"{_SHORT.divide(Decimal(value.numerator), Decimal(value.denominator)):e}"


# --- without an exponent ------------------------------------------------------------------------------

_DIGIT = byte_range(ord("0"), ord("9"))
_NOT_ZERO = byte_range(ord("1"), ord("9"))
_ZERO = literal(b"0")
_ZEROS = repeat(_ZERO)
_POINT = literal(b".")
_ZERO_FRACTION = optional(concat(_POINT, _ZERO, _ZEROS))


def magnitudes(
    low: End, high: End | None = None, *, places: int | None = None, fraction: bool = True
) -> Expr:
    """The spellings, without sign and exponent, of the numbers between two ends >= 0 (``None``: no upper end).

    ``places``: only multiples of 10^-places. ``fraction=False`` (with ``places=0``): also without a point. Linear in
    the digits of the ends and in ``places``.
    """
    if places is not None:
        low, high = _snap(low, places, up=True), high and _snap(high, places, up=False)
    bottom = written(low.value)
    form, digits, length = _Form(len(bottom[0]), places, fraction), "".join(bottom), len(bottom[0])
    top = written(high.value) if high else None
    if high is not None and top is not None:
        if low.value > high.value or (low.value == high.value and not (low.closed and high.closed)):
            return EMPTY
        if length == len(top[0]):
            return form.between(digits, low.closed, "".join(top), high.closed)
    if bottom[0] == "0":
        shortest = concat(_ZERO, form.at_least(digits, low.closed, 1))
    elif low.closed and low.value == 10 ** (length - 1):
        shortest = EMPTY
    else:
        shortest = form.at_least(digits, low.closed)
        length += 1
    if high is None or top is None:
        return union(shortest, form.longer(length, None))
    longest = _Form(len(top[0]), places, fraction).at_most("".join(top), high.closed)
    return union(shortest, form.longer(length, len(top[0]) - 1), longest)


def _snap(end: End, places: int, *, up: bool) -> End:
    """The outermost multiple of 10^-places inside a lower (``up``) or an upper end."""
    scaled = end.value * 10**places
    inner = ceil(scaled) if up else floor(scaled)
    if inner == scaled and not end.closed:
        inner += 1 if up else -1
    return End(Fraction(inner, 10**places), True)


class _Form:
    """Texts with a fixed number ``whole`` of digits before the point. Digits are counted across the point."""

    def __init__(self, whole: int, places: int | None, fraction: bool) -> None:
        self.whole = whole
        self.decimals = _decimals(places)
        self.zero_fraction = _ZERO_FRACTION if fraction else EPSILON
        self.any_fraction = self.zero_fraction
        if places != 0:
            self.any_fraction = optional(concat(_POINT, _DIGIT, self.free(whole + 1)))

    def free(self, read: int) -> Expr:
        """The continuations after this number of digits."""
        if read <= self.whole:
            return concat(repeat(_DIGIT, self.whole - read, self.whole - read), self.any_fraction)
        return self.decimals[min(read - self.whole, len(self.decimals) - 1)]

    def longer(self, low: int, high: int | None) -> Expr:
        """Any number >= 1 with ``low`` to ``high`` digits before the point."""
        if high is not None and low > high:
            return EMPTY
        return concat(_NOT_ZERO, repeat(_DIGIT, low - 1, high and high - 1), self.any_fraction)

    def exactly(self, read: int) -> Expr:
        """The continuations after the last of this number of digits that do not change the value."""
        return self.zero_fraction if read == self.whole else _ZEROS

    def step(self, read: int, more: Expr, may_end: bool) -> Expr:
        """Digits out of ``more`` after this number of digits, or the end of the text if it is allowed."""
        if read == self.whole:
            more = concat(_POINT, more)
        return optional(more) if may_end and read >= self.whole else more

    def at_least(self, digits: str, closed: bool, begin: int = 0) -> Expr:
        """The possible continuations of the first ``begin`` of these digits in a number that is not less."""
        end = max(self._significant(digits), begin)
        part = self.free(end)
        if not closed:
            part = self.step(end, concat(_ZEROS, _NOT_ZERO, self.free(end + 1)), False)
        for read in reversed(range(begin, end)):
            larger = concat(_digit(digits[read], "9", above=1), self.free(read + 1))
            part = self.step(read, union(larger, concat(_digit(digits[read]), part)), False)
        return part

    def at_most(self, digits: str, closed: bool, begin: int = 0) -> Expr:
        """The possible continuations of the first ``begin`` of these digits in a number that is not greater."""
        part = self.exactly(len(digits)) if closed else EMPTY
        for read in reversed(range(begin, len(digits))):
            least = "1" if read == 0 and self.whole > 1 else "0"
            less = concat(_digit(least, digits[read], below=1), self.free(read + 1))
            part = self.step(read, union(less, concat(_digit(digits[read]), part)), True)
        return part

    def between(self, low: str, low_closed: bool, high: str, high_closed: bool) -> Expr:
        """The numbers between ``low`` and ``high``, where ``low`` is not greater than ``high``."""
        width = max(len(low), len(high))
        reached = self._significant(low)
        low = low.ljust(width, "0")
        apart = next((read for read, digit in enumerate(high) if low[read] != digit), width)
        part = self.exactly(width)
        if apart < width:
            lower = concat(_digit(low[apart]), self.at_least(low, low_closed, apart + 1))
            inner = concat(_digit(low[apart], high[apart], above=1, below=1), self.free(apart + 1))
            upper = concat(_digit(high[apart]), self.at_most(high, high_closed, apart + 1))
            part = self.step(apart, union(lower, inner, upper), low_closed and apart >= reached)
        for read in reversed(range(apart)):
            part = self.step(read, concat(_digit(low[read]), part), low_closed and read >= reached)
        return part

    def _significant(self, digits: str) -> int:
        """The number of digits without the trailing zeros of a fraction."""
        return self.whole + len(digits[self.whole :].rstrip("0"))


def _decimals(places: int | None) -> tuple[Expr, ...]:
    """The continuations after 0, 1, 2, ... decimals; the last entry is also for more decimals."""
    if places is None:
        return (repeat(_DIGIT),)
    return _chain(max(places, 2 * SCIENTIFIC_PLACES))[-places - 1 :]


@lru_cache(maxsize=4)
def _chain(length: int) -> tuple[Expr, ...]:
    """The continuation for each number of remaining decimals, from ``length`` to 0. After the last one only zeros
    follow.
    """
    parts = [_ZEROS]
    for _ in range(length):
        parts.append(optional(concat(_DIGIT, parts[-1])))
    return tuple(reversed(parts))


@lru_cache(maxsize=512)
def _digit(low: str, high: str | None = None, *, above: int = 0, below: int = 0) -> Expr:
    """A digit from ``above`` more than ``low`` to ``below`` less than ``high`` (without: as ``low``)."""
    return byte_range(ord(low) + above, ord(high or low) - below)


def spellings(values: Sequence[Fraction], *, fraction: bool = True) -> Expr:
    """The spellings, without sign and exponent, of single numbers >= 0; ``fraction`` as in ``magnitudes``."""
    texts = [written(value) for value in values]
    whole = union(*(literal(digits.encode()) for digits, decimals in texts if not decimals))
    decimal = union(*(literal(f"{digits}.{decimals}".encode()) for digits, decimals in texts if decimals))
    return union(concat(whole, _ZERO_FRACTION if fraction else EPSILON), concat(decimal, _ZEROS))


# --- with an exponent ---------------------------------------------------------------------------------


def scientific(low: End, high: End | None, places: int | None, *, plain: bool = False) -> Expr:
    """The spellings with an exponent of the positive numbers between two ends >= 0, with one digit, not 0, before the
    point.

    ``plain``: only those that JSON writers make. ``places``: only multiples of 10^-places (it may be negative). Then a
    mantissa has at most as many decimals as the exponent allows, and in any case at most ``SCIENTIFIC_PLACES``, not
    counting zeros at the end. Without this limit, "no more decimals than the exponent moves" would not be regular.
    """
    if places is None:
        return _powers(low, high, None, None, None, plain)
    shift = SCIENTIFIC_PLACES - places
    few = [
        _powers(low, high, shift - k, shift - k, SCIENTIFIC_PLACES - k, plain)
        for k in range(1, SCIENTIFIC_PLACES + 1)
    ]
    return union(*few, _powers(low, high, shift, None, SCIENTIFIC_PLACES, plain))


def plain_scientific(low: End, high: End | None, places: int | None) -> Expr:
    """The spellings with an exponent that ``json.dumps``, ``JSON.stringify`` or pydantic write for numbers between two
    ends.

    Only numbers for which one of them writes an exponent. The parameters are those of ``scientific``.
    """
    large = End(max(low.value, Fraction(10**_LARGE)), low.closed or low.value < 10**_LARGE)
    small = End(Fraction(1, 10 ** (-_SMALL - 1)), False)
    if high is not None and high.value < small.value:
        small = high
    found = [
        scientific(bottom, top, places, plain=True)
        for bottom, top in ((low, small), (large, high))
        if top is None or bottom.value < top.value or (bottom == top and top.closed)
    ]
    return union(*found)


def plain_texts(value: Fraction) -> tuple[str, ...]:
    """The different texts of a number >= 0 that ``json.dumps`` (as a float), ``JSON.stringify`` and pydantic write.

    All digits are written, also if there are more than a 64-bit float has.
    """
    whole, decimals = written(value)
    power = _exponent(value) if value else 0
    digits = f"{whole}{decimals}".strip("0")
    mantissa = digits[:1] + ("." + digits[1:] if digits[1:] else "")
    sign = "+" if power > 0 else "-"
    python = f"{mantissa}e{sign}{abs(power):02d}"
    bare = script = f"{mantissa}e{sign}{abs(power)}"
    if _SMALL < power < _LARGE:
        python = f"{whole}.{decimals or 0}"
    if -7 < power < 21:
        script = f"{whole}.{decimals}" if decimals else whole
    return tuple(dict.fromkeys((python, script, bare if power == _UNPADDED else python)))


def _powers(
    low: End, high: End | None, least: int | None, most: int | None, places: int | None, plain: bool
) -> Expr:
    """``scientific`` for exponents from ``least`` to ``most`` and mantissas with this number of decimals."""
    bottom = _exponent(low.value) if low.value else None
    top = _exponent(high.value) if high else None
    parts: list[Expr] = []

    def add(begin: int | None, end: int | None, mantissa: tuple[End, End]) -> None:
        begin = least if begin is None else begin if least is None else max(begin, least)
        end = most if end is None else end if most is None else min(end, most)
        if begin is None or end is None or begin <= end:
            parts.append(concat(_mantissas(*mantissa, places, plain), _exponents(begin, end, plain)))

    first = _ONE if bottom is None else End(low.value / Fraction(10) ** bottom, low.closed)
    last = _TEN if top is None or high is None else End(high.value / Fraction(10) ** top, high.closed)
    if bottom is not None and bottom == top:
        add(bottom, top, (first, last))
        return union(*parts)
    if bottom is not None and first == _ONE:
        bottom -= 1
    elif bottom is not None:
        add(bottom, bottom, (first, _TEN))
    if top is not None:
        add(top, top, (_ONE, last))
    add(None if bottom is None else bottom + 1, None if top is None else top - 1, (_ONE, _TEN))
    return union(*parts)


def scientific_spellings(values: Sequence[Fraction]) -> Expr:
    """The spellings of ``scientific`` for single numbers >= 0 instead of an interval. The number 0 has none."""
    mantissas: dict[int, list[Fraction]] = {}
    for value in values:
        if value:
            power = _exponent(value)
            mantissas.setdefault(power, []).append(value / Fraction(10) ** power)
    return union(
        *(concat(spellings(group), _exponents(power, power, False)) for power, group in mantissas.items())
    )


@lru_cache(maxsize=64)
def _mantissas(low: End, high: End, places: int | None, plain: bool) -> Expr:
    """Numbers from 1 to below 10 with a digit before the point; ``plain``: without zeros at the end."""
    if not plain:
        return magnitudes(low, high, places=places)
    decimals = EMPTY if places == 0 else concat(repeat(_DIGIT, 0, places and places - 1), _NOT_ZERO)
    every = concat(_NOT_ZERO, optional(concat(_POINT, decimals)))
    if (low, high) == (_ONE, _TEN):
        return every
    within = magnitudes(low, high, places=places)
    if within is EMPTY:
        return EMPTY
    made = intersect(within, every)
    record_word(made)
    return made


def _exponent(value: Fraction) -> int:
    """The power of ten of the first digit of a number > 0."""
    whole, decimals = written(value)
    return len(whole) - 1 if whole != "0" else len(decimals.lstrip("0")) - len(decimals) - 1


@lru_cache(maxsize=128)
def _exponents(low: int | None, high: int | None, plain: bool) -> Expr:
    """``e`` and an integer between two, with an optional sign, after any number of zeros; ``plain``: as JSON writers
    write it.
    """

    def amounts(least: int, most: int | None) -> Expr:
        end = None if most is None else End(Fraction(most), True)
        return magnitudes(End(Fraction(least), True), end, places=0, fraction=False)

    if plain:
        last = None if low is None else -low
        least = -_SMALL if high is None else max(-_SMALL, -high)
        padded = range(least, 10 if last is None else min(10, last + 1))
        small = [
            *(f"0{number}" for number in padded),
            *(str(number) for number in padded if number >= -_UNPADDED),
        ]
        minus = union(*(literal(text.encode()) for text in small), amounts(max(least, 10), last))
        plus = amounts(_LARGE if low is None else max(_LARGE, low), high)
        return concat(literal(b"e"), union(concat(literal(b"-"), minus), concat(literal(b"+"), plus)))
    parts = []
    if high is None or high >= 0:
        parts.append(concat(optional(literal(b"+")), _ZEROS, amounts(max(low or 0, 0), high)))
    if low is None or low <= 0:
        least = max(-(high or 0), 0) if high is not None else 0
        parts.append(concat(literal(b"-"), _ZEROS, amounts(least, low and -low)))
    return concat(union(literal(b"e"), literal(b"E")), union(*parts))


NUMBERS = magnitudes(End(Fraction(0), True))
"""The texts of every number >= 0 without an exponent."""
WHOLE = magnitudes(End(Fraction(0), True), places=0, fraction=False)
"""The texts of every whole number >= 0 without point and exponent."""
EXPONENT = _exponents(None, None, False)
"""The texts of any exponent, with ``e`` or ``E``."""
