"""Plain texts of numbers against a slow acceptor, ``json.dumps`` and ``JSON.stringify``: short texts, and floats."""

from __future__ import annotations

import json
import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from reference.json import json_numbers as slow
from reference.json.json_numbers import Pair, both, either, interval, multiples, no, values
from reference.json.json_spelling import constant_texts, is_plain_number, number_to_string
from tokenfst.automata.json_values.bounds import plain_texts
from tokenfst.automata.json_values.numbers import NumberSet
from tokenfst.automata.json_values.texts import plain_numbers
from tokenfst.automata.languages.language import Language
from tokenfst.errors import BudgetExceeded

LENGTH = 6
INTEGERS = multiples("1")
WITH_EXPONENTS = [
    interval(None, None),
    interval("0", None),
    interval("0", None, True),
    interval(None, "0", False, True),
    interval("1", None),
    interval("-1", None, True),
    interval("0", "100"),
    interval("-10", "9"),
    interval("9.9e15", None),
    interval("1e16", "1e19", True),
    interval("1e16", "9e19", True, True),
    interval("1.1e16", "1.9e19"),
    interval("1e-9", "1e-5"),
    interval("1.1e-9", "9.9e-5", True),
    interval("-9e-5", "1e-5"),
    interval("1e-4", "1"),
    interval("0", "1e-11"),
    no(interval("0.1", "1e19", True)),
    no(values("0")),
    either(interval("5", None), interval(None, "-5")),
    INTEGERS,
    multiples("0.01"),
    multiples("10"),
    multiples("1e-6"),
    multiples("1e-9"),
    multiples("1e-11"),
    multiples("1e19"),
    both(INTEGERS, interval("-9", "1e19")),
    both(multiples("1e-9"), interval("0", "1e-5")),
    both(INTEGERS, no(values("0", "9", "10"))),
    both(multiples("4e-9"), interval("0", "4e-8")),
]
WITHOUT = [
    multiples("3"),
    multiples("2.5"),
    multiples("3e-9"),
    no(multiples("1")),
    both(multiples("3"), interval("-9000", None, True)),
    either(multiples("3"), multiples("0.5")),
]
ALONE = [
    values("0"),
    values("1", "-1.1", "1e-5", "1e19", "1e-9", "-1e-11"),
    values("0", "0.1", "10", "1e-4"),
    interval("-0.0", "0"),
    interval("9.9", "9.9"),
    either(values("0.1"), INTEGERS),
    either(values("-0.1", "1e-9"), interval("1", "10")),
]


def named(pairs: list[Pair]) -> list[object]:
    return [pytest.param(pair, id=f"{place}: {pair[0]}") for place, pair in enumerate(pairs)]


def words(numbers: NumberSet, *, fraction: bool = True) -> set[str]:
    return slow.small_words(Language(plain_numbers(numbers, fraction=fraction)), LENGTH)


@pytest.mark.parametrize("pair", named([*WITH_EXPONENTS, *ALONE]))
def test_every_short_text(pair: Pair) -> None:
    numbers, expected = pair
    alone = numbers.points()
    wanted = set()
    for text, value in slow.small_numbers(LENGTH).items():
        if value not in expected:
            continue
        if text in constant_texts(float(value)) if value in alone else is_plain_number(text):
            wanted.add(text)
    assert words(numbers) == wanted


@pytest.mark.parametrize("pair", named(WITHOUT))
def test_multiples_have_no_exponent(pair: Pair) -> None:
    numbers, expected = pair
    wanted = {
        text
        for text, value in slow.small_numbers(LENGTH).items()
        if value in expected and "e" not in text.lower() and is_plain_number(text)
    }
    assert words(numbers) == wanted


@pytest.mark.parametrize(
    "pair",
    named(
        [
            INTEGERS,
            both(INTEGERS, interval("0", None)),
            both(INTEGERS, interval("-9", "11")),
            both(multiples("3"), interval("-9000", None, True)),
            both(multiples("9"), interval("-99", "990")),
            values("0", "-9", "11"),
            both(INTEGERS, no(values("0", "9"))),
        ]
    ),
)
def test_integers_have_digits_only(pair: Pair) -> None:
    numbers, expected = pair
    wanted = {
        text
        for text, value in slow.small_numbers(LENGTH).items()
        if value in expected and is_plain_number(text, integer=True)
    }
    assert words(numbers, fraction=False) == wanted


def test_no_member_is_left_without_a_text() -> None:
    for numbers, expected in (*WITH_EXPONENTS, *WITHOUT, *ALONE):
        found = {slow.value(text) for text in words(numbers)}
        texts = slow.small_numbers(LENGTH)
        fixed = {value for text, value in texts.items() if value in expected and "e" not in text.lower()}
        assert fixed - found == set()


FLOATS = st.floats(allow_nan=False, allow_infinity=False)
EVERY = Language(plain_numbers(NumberSet.every()))


@given(FLOATS | st.builds(lambda m, e: m * 10.0**e, st.integers(-99999, 99999), st.integers(-30, 30)))
@settings(max_examples=400, deadline=None)
@example(1e16)
@example(9999999999999998.0)
@example(1e21)
@example(1e-4)
@example(9.999e-05)
@example(1e-6)
@example(1e-7)
@example(-0.0)
@example(5e-324)
def test_floats_as_the_two_write_them(x: float) -> None:
    for text in (json.dumps(x), number_to_string(x)):
        assert EVERY.accepts(text) and is_plain_number(text), text
    if x:
        texts = {text.removeprefix("-") for text in constant_texts(x)}
        assert set(plain_texts(abs(Fraction(repr(x))))) == texts
        alone = Language(plain_numbers(NumberSet.of([x])))
        assert {text.decode() for text in _words(alone)} == constant_texts(x)


def _words(language: Language) -> set[bytes]:
    """All words of a finite language."""
    found, open_words = set(), [b""]
    while open_words:
        word = open_words.pop()
        following, ends = language.next_bytes(word)
        if ends:
            found.add(word)
        open_words += [word + bytes((byte,)) for byte in following]
    return found


@given(FLOATS, FLOATS, st.sampled_from([None, 1, Decimal("0.01"), Decimal("1e-7"), 1000]))
@settings(max_examples=150, deadline=None)
def test_floats_within_bounds(a: float, b: float, modulus: int | Decimal | None) -> None:
    low, high = sorted((a, b))
    numbers = NumberSet.between(low, high)
    if modulus is not None:
        numbers = numbers & NumberSet.multiples_of(modulus)
    language = Language(plain_numbers(numbers))
    for x in (a, b, 0.0, (a + b) / 2, math.nextafter(a, 0), float(int(a)), a * 1e-7):
        if not math.isfinite(x) or Fraction(repr(x)) in numbers.points():
            continue
        for text in (json.dumps(x), number_to_string(x)):
            assert language.accepts(text) == numbers.contains(x), text


@given(st.integers(-60, 60), st.integers(0, 10**12), st.sampled_from(["e", "E"]), st.sampled_from(["", "+"]))
@settings(max_examples=300, deadline=None)
def test_nothing_else_has_an_exponent(power: int, digits: int, letter: str, plus: str) -> None:
    shown = str(digits)
    for mantissa in (shown, f"{shown[0]}.{shown[1:] or 0}", f"0.{shown}"):
        for exponent in (str(power), f"{power:03d}", f"{power:+d}", f"{plus}{abs(power)}"):
            text = f"{mantissa}{letter}{exponent}"
            assert EVERY.accepts(text) == is_plain_number(text), text


def test_sizes() -> None:
    """Few states: what every schema with a number has."""
    for numbers, fraction, states in (
        (NumberSet.every(), True, 20),
        (NumberSet.between(0), True, 22),
        (NumberSet.between(0, 100), True, 21),
        (NumberSet.integers(), False, 4),
        (NumberSet.integers() & NumberSet.between(0), False, 3),
        (NumberSet.integers(), True, 61),
        (NumberSet.multiples_of(0.01), True, 60),
    ):
        assert Language(plain_numbers(numbers, fraction=fraction)).size().states <= states


def test_budgets() -> None:
    with pytest.raises(BudgetExceeded, match="multipleOf 123456789"):
        plain_numbers(NumberSet.multiples_of(123456789))
