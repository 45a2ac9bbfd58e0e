"""The JSON spellings of sets of numbers against ``decimal``, ``fractions`` and all short texts."""

from __future__ import annotations

import json
import random
from decimal import Decimal, localcontext
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.json import json_numbers as slow
from reference.json.json_numbers import Pair, both, either, interval, multiples, no, values
from tokenfst.automata.json_values.numbers import NumberSet
from tokenfst.automata.json_values.texts import number_language

few = settings(max_examples=60, deadline=None)


INTERVALS = [
    interval(None, None),
    interval("0", None),
    interval("0", None, True),
    interval("1", None),
    interval(None, "0"),
    interval(None, "0", False, True),
    interval("-1", None, True),
    interval("0", "100"),
    interval("0", "100", True, True),
    interval("-10", "9"),
    interval("0.1", None, True),
    interval("0.1", "0.11", True, True),
    interval("0.09", "0.1"),
    interval("0.9", "1.1", True),
    interval("9", "10", False, True),
    interval("9.9", "91.01"),
    interval("10.01", "10.1"),
    interval("-1.001", "-1"),
    interval("99", "101"),
    interval("1e-3", "1e3"),
    interval("-0.0", "0"),
    no(interval("0.1", "9", True)),
    no(values("0")),
    no(values("1", "-1.1")),
]
INTEGERS = multiples("1")
DECIMAL_GRIDS = [
    INTEGERS,
    multiples("0.01"),
    multiples("10"),
    *(both(INTEGERS, part) for part in INTERVALS[1:16]),
    both(multiples("0.1"), interval("0.11", "1.99")),
    both(multiples("0.01"), interval("-0.911", "10", False, True)),
    both(multiples("100"), interval("100", "9100", True)),
    both(INTEGERS, no(values("0", "9", "10"))),
]
SINGLE = [
    values("0"),
    values("1", "1.0", "1e0"),
    values("0", "-1", "10", "0.1", "-9.09", "1e-4", "1e5"),
    both(multiples("3"), interval("-9", "99")),
    both(no(multiples("3")), both(INTEGERS, interval("-9", "19"))),
]
OTHERS = [
    *(
        multiples(text)
        for text in ("2", "3", "4", "7", "9", "11", "12", "25", "40", "2.5", "0.3", "1.1", "0.125")
    ),
    *(no(multiples(text)) for text in ("1", "3", "0.1", "10", "2.5")),
    both(multiples("3"), interval("-9000", None, True)),
    both(multiples("0.3"), interval("0.9", "999")),
    both(multiples("7"), interval("1", "1e5")),
    both(multiples("9"), multiples("1.1")),
    either(multiples("9"), multiples("0.11")),
    both(no(multiples("9")), multiples("1.1")),
    either(both(INTEGERS, no(multiples("3"))), no(multiples("0.5"))),
    either(both(INTEGERS, interval(None, "0")), interval("9.1", None)),
    either(multiples("3"), either(multiples("5"), multiples("7"))),
    both(interval("3", "2"), INTEGERS),
    both(multiples("0.1"), no(either(multiples("0.3"), multiples("0.5")))),
]
ALL = [*INTERVALS, *DECIMAL_GRIDS, *SINGLE, *OTHERS]
SAMPLE = ALL[::7]
LENGTH = 6


def named(pairs: list[Pair]) -> list[object]:
    return [pytest.param(pair, id=f"{place}: {pair[0]}") for place, pair in enumerate(pairs)]


# --- all short texts ----------------------------------------------------------------------------------


@pytest.mark.parametrize("pair", named(ALL))
def test_every_text_without_exponent(pair: Pair) -> None:
    numbers, expected = pair
    found = slow.small_words(number_language(numbers, exponents=False), LENGTH)
    texts = slow.small_numbers(LENGTH).items()
    assert found == {text for text, v in texts if v in expected and not slow.has_exponent(text)}


@pytest.mark.parametrize("pair", named(ALL))
def test_alphabet(pair: Pair) -> None:
    assert slow.letters(number_language(pair[0], exponents=False)) <= set("-.0123456789")
    assert slow.letters(number_language(pair[0], exponents=True)) <= set("-+.0123456789eE")


@pytest.mark.parametrize("pair", named([*INTERVALS, *DECIMAL_GRIDS, *SINGLE]))
def test_every_text_with_exponents(pair: Pair) -> None:
    numbers, expected = pair
    found = slow.small_words(number_language(numbers, exponents=True), LENGTH)
    signed = {
        sign: [v in expected for v in slow.small_numbers(LENGTH).values() if v * sign > 0] for sign in (1, -1)
    }
    free = {sign: all(members) or not any(members) for sign, members in signed.items()}
    wanted = set()
    for text, v in slow.small_numbers(LENGTH).items():
        scientific = slow.is_scientific(text) or not slow.has_exponent(text)
        if v in expected and (scientific or free[-1 if text[0] == "-" else 1]):
            wanted.add(text)
    assert found == wanted


@pytest.mark.parametrize("pair", named(OTHERS))
def test_texts_with_exponents_mean_members(pair: Pair) -> None:
    numbers, expected = pair
    found = slow.small_words(number_language(numbers, exponents=True), LENGTH)
    texts = slow.small_numbers(LENGTH)
    assert all(texts[text] in expected for text in found)
    assert {text for text, v in texts.items() if v in expected and not slow.has_exponent(text)} <= found


def test_integers_without_fraction() -> None:
    texts = slow.small_numbers(LENGTH).items()
    for numbers, expected in (INTEGERS, *DECIMAL_GRIDS[3:10], multiples("3"), SINGLE[0], SINGLE[4]):
        found = slow.small_words(number_language(numbers, exponents=False, integer_fraction=False), LENGTH)
        assert found == {t for t, v in texts if v in expected and not set(t) & set(".eE")}
    mixed = values("1", "2.5")[0]
    assert number_language(mixed, exponents=False, integer_fraction=False).accepts("1.0")
    signless = number_language(values("0")[0], exponents=True, integer_fraction=False)
    assert [signless.accepts(text) for text in ("0", "-0", "0e5", "0.0")] == [True, True, True, False]


# --- longer texts -------------------------------------------------------------------------------------


def random_number(rng: random.Random) -> Fraction:
    digits = rng.choice([1, 2, 3, 5, 12, 30])
    return Fraction(rng.randint(-(10**digits), 10**digits), 10 ** rng.choice([0, 0, 1, 2, 3, 9, 25]))


@pytest.mark.parametrize("pair", named([*SAMPLE, *OTHERS]))
def test_random_digits(pair: Pair) -> None:
    numbers, expected = pair
    rng = random.Random(5)
    language = number_language(numbers, exponents=False)
    with localcontext(prec=100):
        for _ in range(100):
            for v in slow.near(random_number(rng), rng.choice([0, 1, 2, 25])):
                text = slow.plain(v, rng.choice([0, 0, 1, 3]))
                assert language.accepts(text) == (v in expected) == numbers.contains(v), text


BOUNDS = [
    Fraction(2**63 - 1),
    Fraction(-(2**63)),
    Fraction(Decimal("99999999999.99")),
    Fraction(Decimal("1.7976931348623157e308")),
    Fraction(Decimal("5e-324")),
    Fraction(7 * (10**400 - 1) // 9),
    Fraction(Decimal("0." + "123456789" * 40)),
]


@pytest.mark.parametrize("bound", BOUNDS)
@pytest.mark.parametrize("whole", [False, True])
def test_bounds_of_any_size(bound: Fraction, whole: bool) -> None:
    with localcontext(prec=2000):
        digits = len(slow.plain(abs(bound)))
        for name, slow_set in (
            ("minimum", slow.within(bound, None, False, False)),
            ("maximum", slow.within(None, bound, False, False)),
            ("exclusive_minimum", slow.within(bound, None, True, False)),
            ("exclusive_maximum", slow.within(None, bound, False, True)),
        ):
            numbers = NumberSet.between(**{name: bound})
            numbers = numbers & NumberSet.integers() if whole else numbers
            language = number_language(numbers, exponents=False)
            places = 0 if whole else 330
            for v in (
                *slow.near(bound, places),
                *slow.near(bound / 10, places),
                bound * 10,
                -bound,
                Fraction(0),
            ):
                text = slow.plain(v)
                assert language.accepts(text) == (v in slow_set and not (whole and v % 1)), text
            assert language.size().states <= 3 * digits + 12


def test_states_grow_with_the_digits() -> None:
    for numbers, states in (
        (NumberSet.every(), 7),
        (NumberSet.between(0), 9),
        (NumberSet.integers() & NumberSet.between(0), 6),
        (NumberSet.between(0, 100), 11),
        (NumberSet.integers() & NumberSet.between(-(2**63), 2**63 - 1), 60),
        (NumberSet.between(-(2**63), 2**63 - 1), 63),
        (NumberSet.multiples_of(0.01), 8),
        (NumberSet.multiples_of(10**6), 13),
        (NumberSet.multiples_of(1e308), 315),
        (NumberSet.multiples_of(1e-7), 13),
        (NumberSet.multiples_of(2**-10), 288),
    ):
        assert number_language(numbers, exponents=False).size().states <= states


@pytest.mark.parametrize("places", [0, 1, 2, 4, 6])
@pytest.mark.parametrize("unit", [1, 2, 3, 7, 8, 12, 16, 25, 64, 80, 125, 3600])
def test_automata_of_multiples_are_least(unit: int, places: int) -> None:
    language = number_language(NumberSet.multiples_of(Fraction(unit, 10**places)), exponents=False)
    states, least = language.size().states, language.minimize().size().states
    # In a fraction, digits that have to be 250 and later 25 are two states.
    assert states == least if places == 0 else states <= 1.5 * least


# --- exponents ----------------------------------------------------------------------------------------


@few
@given(st.floats(allow_nan=False, allow_infinity=False), st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_floats_as_json_writes_them(x: float, a: float, b: float) -> None:
    low, high = sorted((a, b))
    inside = low <= x <= high
    language = number_language(NumberSet.between(low, high), exponents=True)
    assert language.accepts(json.dumps(x)) == inside
    assert number_language(NumberSet.integers(), exponents=True).accepts(json.dumps(x)) == (
        Fraction(Decimal(repr(x))).denominator == 1
    )


@few
@given(st.integers(-400, 400), st.integers(0, 10**18), st.integers(-20, 20), st.integers(-5, 5))
def test_scientific_texts(exponent: int, digits: int, power: int, places: int) -> None:
    mantissa = f"{str(digits)[0]}.{str(digits)[1:] or '0'}"
    text = f"{mantissa}e{exponent:+03d}"
    v = slow.value(text)
    assert v is not None
    for numbers, expected in (
        both(interval(f"1e{power}", f"9.9e{power + 3}"), no(values("0"))),
        both(multiples(f"1e{places}"), interval(None, f"1e{power}")),
    ):
        accepted = number_language(numbers, exponents=True).accepts(text)
        if len(str(digits).rstrip("0")) <= 17:
            assert accepted == (v in expected), text
        assert not accepted or v in expected


def test_where_every_spelling_is_regular() -> None:
    odd = "1000000e-6", "0.00001E+0007", "123.450e0"
    zeros = "0e99", "0.00E-1"
    for numbers, accepted in (
        (NumberSet.every(), True),
        (NumberSet.between(0), True),
        (NumberSet.between(exclusive_minimum=0), True),
        (NumberSet.between(-5), True),
        (NumberSet.between(0.5), False),
    ):
        language = number_language(numbers, exponents=True)
        assert all(language.accepts(text) == accepted for text in odd)
        assert all(language.accepts(text) == numbers.contains(0) for text in zeros)
    assert not any(
        number_language(NumberSet.every(), exponents=False).accepts(text) for text in (*odd, *zeros)
    )
