"""What JSON numbers mean, by the standard library: texts are parsed with ``decimal``, sets are predicates."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from functools import cache

from tokenfst.automata.json_values.numbers import NumberSet
from tokenfst.automata.languages.language import Language

ALPHABET = "-+.019eE"
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")
_SCIENTIFIC = re.compile(r"-?(?:[1-9](?:\.[0-9]+)?|0(?:\.0+)?)[eE][+-]?[0-9]+")


def value(text: str) -> Fraction | None:
    """The number that a text means, if it is a JSON number (RFC 8259, section 6)."""
    return Fraction(Decimal(text)) if _NUMBER.fullmatch(text) else None


def has_exponent(text: str) -> bool:
    """Whether a number has an exponent."""
    return "e" in text.lower()


def is_scientific(text: str) -> bool:
    """Whether a number has an exponent, and one digit before the point that is 0 for 0 only."""
    return _SCIENTIFIC.fullmatch(text) is not None


@cache
def small_numbers(length: int) -> dict[str, Fraction]:
    """Every JSON number of at most so many characters out of ``ALPHABET``."""
    texts = ("".join(word) for n in range(1, length + 1) for word in itertools.product(ALPHABET, repeat=n))
    return {text: number for text in texts if (number := value(text)) is not None}


def small_words(language: Language, length: int) -> set[str]:
    """Every word of at most so many characters out of ``ALPHABET``, read off the finished automaton."""
    dfa = language.determinize()
    steps = [(letter, dfa.table[:, dfa.classes[ord(letter)]].tolist()) for letter in ALPHABET]
    found: set[str] = set()
    frontier = [("", dfa.start)]
    for _ in range(length):
        frontier = [(word + c, to[state]) for word, state in frontier for c, to in steps if to[state]]
        found.update(word for word, state in frontier if dfa.accepting[state])
    return found


def letters(language: Language) -> set[str]:
    """The bytes on the transitions of the finished automaton, as characters."""
    dfa = language.determinize()
    used = (dfa.table != 0).any(axis=0)
    return {chr(byte) for byte in range(256) if used[dfa.classes[byte]]}


@dataclass(frozen=True)
class Slow:
    """A set of numbers as a predicate."""

    holds: Callable[[Fraction], bool]

    def __contains__(self, number: Fraction) -> bool:
        return self.holds(number)

    def __and__(self, other: Slow) -> Slow:
        return Slow(lambda v: self.holds(v) and other.holds(v))

    def __or__(self, other: Slow) -> Slow:
        return Slow(lambda v: self.holds(v) or other.holds(v))

    def __invert__(self) -> Slow:
        return Slow(lambda v: not self.holds(v))


def within(low: Fraction | None, high: Fraction | None, low_open: bool, high_open: bool) -> Slow:
    """An interval."""

    def holds(v: Fraction) -> bool:
        above = low is None or (v > low if low_open else v >= low)
        below = high is None or (v < high if high_open else v <= high)
        return above and below

    return Slow(holds)


def near(number: Fraction, places: int) -> Iterator[Fraction]:
    """A number and its neighbours in the last of so many decimals."""
    step = Fraction(1, 10**places)
    yield from (number, number - step, number + step)


def plain(number: Fraction, zeros: int = 0) -> str:
    """A text of a decimal number without an exponent, with so many zeros more than needed."""
    text = f"{Decimal(number.numerator) / Decimal(number.denominator):f}"
    if zeros:
        text += ("" if "." in text else ".") + "0" * zeros
    return text


# --- a set in both forms ---

Pair = tuple[NumberSet, Slow]


def interval(low: str | None, high: str | None, low_open: bool = False, high_open: bool = False) -> Pair:
    """An interval; ``None``: no end."""
    bounds = {
        "exclusive_minimum" if low_open else "minimum": None if low is None else Decimal(low),
        "exclusive_maximum" if high_open else "maximum": None if high is None else Decimal(high),
    }
    ends = [None if end is None else Fraction(end) for end in (low, high)]
    return NumberSet.between(**bounds), within(ends[0], ends[1], low_open, high_open)


def multiples(modulus: str) -> Pair:
    """k · modulus for integers k."""
    return NumberSet.multiples_of(Decimal(modulus)), Slow(lambda v: v % Fraction(modulus) == 0)


def values(*texts: str) -> Pair:
    """A finite set."""
    return NumberSet.of(map(Decimal, texts)), Slow(lambda v: v in set(map(Fraction, texts)))


def both(a: Pair, b: Pair) -> Pair:
    """Intersection."""
    return a[0] & b[0], a[1] & b[1]


def either(a: Pair, b: Pair) -> Pair:
    """Union."""
    return a[0] | b[0], a[1] | b[1]


def no(a: Pair) -> Pair:
    """Complement."""
    return ~a[0], ~a[1]
