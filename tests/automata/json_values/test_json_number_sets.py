"""Sets of JSON numbers as values: their algebra against predicates, what they say, and what they refuse."""

from __future__ import annotations

import random
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.running.parts import in_parts

from reference.json import json_numbers as slow
from reference.json.json_numbers import Pair, both, either, interval, multiples, no, values
from tokenfst.automata.json_values.numbers import NumberSet, conflict
from tokenfst.automata.json_values.texts import number_language
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError

few = settings(max_examples=60, deadline=None)

# --- algebra ------------------------------------------------------------------------------------------

decimals = st.builds(
    lambda digits, places: f"{digits}e-{places}", st.integers(-1200, 1200), st.sampled_from([0, 0, 1, 2])
)
moduli = st.sampled_from(["1", "1", "2", "3", "4", "6", "10", "0.1", "0.25", "1.5", "0.7", "20", "100"])
atoms = st.one_of(
    st.builds(interval, st.none() | decimals, st.none() | decimals, st.booleans(), st.booleans()),
    st.builds(multiples, moduli),
    st.builds(lambda texts: values(*texts), st.lists(decimals, max_size=4)),
)
pairs = st.recursive(
    atoms,
    lambda inner: st.one_of(
        st.builds(both, inner, inner), st.builds(either, inner, inner), st.builds(no, inner)
    ),
    max_leaves=6,
)


def numbers_of_interest(*sets: NumberSet) -> set[Fraction]:
    """Ends of intervals, what lies next to them, and some multiples."""
    found = {
        Fraction(k, 60) * sign for k in (0, 1, 6, 15, 20, 60, 90, 120, 180, 600, 1200) for sign in (1, -1)
    }
    for numbers in sets:
        for cut in numbers.cuts:
            found |= {v for places in (0, 1, 3) for v in slow.near(cut, places)}
    return {v for v in found if 10**30 % v.denominator == 0}


def laws(a: Pair, b: Pair) -> None:
    (x, slow_x), (y, slow_y) = a, b
    for v in numbers_of_interest(x, y):
        assert x.contains(v) == (v in slow_x)
        assert (x & y).contains(v) == (v in slow_x and v in slow_y)
        assert (x | y).contains(v) == (v in slow_x or v in slow_y)
        assert (~x).contains(v) == (v not in slow_x)
        assert (x - y).contains(v) == (v in slow_x and v not in slow_y)
    assert ~~x == x
    assert (~(x & y)).equivalent(~x | ~y)
    assert (~(x | y)).equivalent(~x & ~y)
    assert (x & (x | y)).equivalent(x)
    assert x & y == y & x
    assert (x & ~x).is_empty()
    assert x | ~x == NumberSet.every()
    assert x.equivalent(y) == ((x - y) | (y - x)).is_empty()


def laws_of_languages(a: Pair, b: Pair) -> None:
    x, y = (number_language(numbers, exponents=False) for numbers, _ in (a, b))
    everything = number_language(NumberSet.every(), exponents=False)
    assert number_language(a[0] & b[0], exponents=False).equivalent(x & y)
    assert number_language(a[0] | b[0], exponents=False).equivalent(x | y)
    assert number_language(~a[0], exponents=False).equivalent(everything - x)
    assert x.is_empty() == a[0].is_empty()
    witness = x.witness()
    assert witness is None or slow.value(witness.decode()) in a[1]
    for numbers, members in (a, b, both(a, b)):
        language = number_language(numbers, exponents=True)
        assert language.includes(number_language(numbers, exponents=False))
        assert language.is_empty() == numbers.is_empty()
        if not numbers.is_empty():
            drawn = language.sample(random.Random(3), 60).decode()
            assert slow.value(drawn) in members, drawn


@few
@given(pairs, pairs)
def test_laws(a: Pair, b: Pair) -> None:
    laws(a, b)


@settings(max_examples=25, deadline=None)
@given(pairs, pairs)
def test_laws_of_languages(a: Pair, b: Pair) -> None:
    laws_of_languages(a, b)


@in_parts(30, 100, pairs, pairs)
def test_laws_soak(a: Pair, b: Pair) -> None:
    laws(a, b)
    laws_of_languages(a, b)


@few
@given(pairs, st.integers(-40, 40), st.integers(0, 40))
def test_count(pair: Pair, low: int, width: int) -> None:
    window = both(interval(f"{low}e-1", f"{low + width}e-1"), multiples("0.05"))
    numbers, expected = both(pair, window)
    members = {v for k in range(20 * width + 1) if (v := Fraction(2 * low + k, 20)) in expected}
    assert numbers.count() == len(members)
    assert numbers.is_empty() == (not members)
    assert numbers.equivalent(NumberSet.of(members))
    assert (no(pair)[0] & window[0]).count() == 2 * width + 1 - len(members)


def test_counts() -> None:
    assert NumberSet.none().count() == 0
    assert values("1", "2.5")[0].count() == 2
    assert (NumberSet.integers() & NumberSet.between(-3, 3.5)).count() == 7
    assert (NumberSet.multiples_of(3) & NumberSet.between(1, 10**300)).count() == (10**300) // 3
    for endless in (
        NumberSet.every(),
        NumberSet.integers(),
        NumberSet.between(0, 1),
        NumberSet.integers() & NumberSet.between(0),
    ):
        assert endless.count() is None


def test_values_are_compared() -> None:
    assert NumberSet.of([1]) == NumberSet.of([1.0]) == NumberSet.of([Decimal("1e0"), Fraction(1)])
    assert NumberSet.of([-0.0]) == NumberSet.of([0])
    assert NumberSet.between(0.1).contains(Decimal("0.1"))
    assert not NumberSet.between(exclusive_minimum=0.1).contains(0.1)
    assert NumberSet.multiples_of(0.01).contains(0.07)
    assert NumberSet.multiples_of(1e-8).contains(12391239123)
    assert not NumberSet.multiples_of(0.123456789).contains(1e308)
    assert NumberSet.integers() & NumberSet.multiples_of(0.5) == NumberSet.integers()
    assert NumberSet.multiples_of(4) & NumberSet.multiples_of(Decimal("0.6")) == NumberSet.multiples_of(12)
    assert NumberSet.multiples_of(2) | NumberSet.multiples_of(6) == NumberSet.multiples_of(2)


def test_what_contradicts() -> None:
    integer, five = ("type", NumberSet.integers()), ("multipleOf", NumberSet.multiples_of(5))
    low, high = ("minimum", NumberSet.between(3)), ("maximum", NumberSet.between(None, 2))
    assert conflict([integer, low, high]) == ("minimum", "maximum")
    assert conflict([integer, five, low]) is None
    open_low = ("exclusiveMinimum", NumberSet.between(exclusive_minimum=1))
    open_high = ("exclusiveMaximum", NumberSet.between(exclusive_maximum=4))
    assert conflict([integer, open_low, five, open_high]) == (
        "exclusiveMinimum",
        "multipleOf",
        "exclusiveMaximum",
    )
    assert conflict([integer, ("const", NumberSet.of([1.5]))]) == ("type", "const")
    assert conflict([("enum", NumberSet.none())]) == ("enum",)
    assert number_language(low[1] & high[1], exponents=True).is_empty()


def test_shown() -> None:
    for numbers, text in (
        (NumberSet.none(), "no number"),
        (NumberSet.every(), "numbers"),
        (NumberSet.integers() & NumberSet.between(0), "integers in [0, ∞)"),
        (NumberSet.multiples_of(5) & NumberSet.between(0, 12.5), "multiples of 5 in [0, 12.5)"),
        (~NumberSet.of([1, 2]), "numbers in (-∞, 1) | numbers in (1, 2) | numbers in (2, ∞)"),
        (NumberSet.of([-1, 1e-3]), "-1 | 0.001"),
        (NumberSet.of(range(9)), "0 | 1 | 2 | 3 | 4 | 5 | 3 more"),
        (~NumberSet.multiples_of(0.5), "numbers other than multiples of 0.5"),
        (NumberSet.between(1e100), "numbers in [1.000000e+100, ∞)"),
        (NumberSet.multiples_of(2) | NumberSet.multiples_of(3), "a combination of multiples of 2, 3, 6"),
    ):
        assert str(numbers) == text
        assert number_language(numbers, exponents=False).source == text


# --- bad input and budgets ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "message"),
    [
        (True, "True is not a number"),
        ("1", "'1' is not a number"),
        (float("inf"), "not a JSON number"),
        (Decimal("nan"), "not a JSON number"),
        (Fraction(1, 3), "no finite decimal form"),
        (Decimal("1e999999999"), "more than 500 digits"),
        (Decimal("-1e-999999999"), "more than 500 digits"),
        pytest.param(10**5000, "more than 500 digits", id="10**5000"),
        (Decimal("1." + "1" * 501), "more than 500 digits"),
    ],
)
def test_numbers_that_are_refused(value: object, message: str) -> None:
    with pytest.raises(ConstraintError, match=message):
        NumberSet.of([value])  # type: ignore[list-item]


def test_wrong_arguments() -> None:
    for modulus in (0, -1, Decimal("-0.5")):
        with pytest.raises(ConstraintError, match="multipleOf must be greater than 0"):
            NumberSet.multiples_of(modulus)
    with pytest.raises(TypeError):
        _ = NumberSet.every() & "x"  # type: ignore[operator]
    assert NumberSet.of([Decimal("0e999999999")]) == NumberSet.of([0])


@pytest.mark.parametrize("modulus", [10**9 + 7, 0.123456789, 2**60, Decimal(2) ** -60, 3**40])
def test_large_moduli_are_refused_at_once(modulus: int) -> None:
    numbers = NumberSet.multiples_of(modulus)
    assert numbers.contains(0)
    assert not numbers.contains(1)
    with pytest.raises(BudgetExceeded, match="multipleOf") as caught:
        number_language(numbers, exponents=False)
    assert caught.value.resource == "states"
    # Few members need no remainders.
    step = Fraction(str(modulus)) if isinstance(modulus, float) else Fraction(modulus)
    assert number_language(numbers & NumberSet.between(0, 5 * step), exponents=False).accepts("0.0")


def test_budgets() -> None:
    small = Budget(states=100)
    numbers = NumberSet.multiples_of(101).with_budget(small)
    with pytest.raises(BudgetExceeded, match="multipleOf 101"):
        number_language(numbers, exponents=False)
    assert (
        number_language(
            NumberSet.multiples_of(97).with_budget(Budget(states=200)), exponents=False
        ).budget.states
        == 200
    )
    with pytest.raises(BudgetExceeded, match="bytes; it grew in multipleOf 997"):
        number_language(NumberSet.multiples_of(997).with_budget(Budget(bytes=10_000)), exponents=False)
    combined = NumberSet.none()
    with pytest.raises(BudgetExceeded, match="combinations of multipleOf"):
        for prime in (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47, 53, 59, 61, 67, 71, 73):
            combined = combined | NumberSet.multiples_of(prime)
    nine = NumberSet.none()
    for prime in (2, 3, 5, 7, 11, 13, 17, 19, 23):
        nine = nine | NumberSet.multiples_of(prime)
    assert not nine.contains(29 * 31)
    with pytest.raises(BudgetExceeded, match="combinations of multipleOf"):
        number_language(nine, exponents=False)


def test_ten_thousand_values() -> None:
    numbers = NumberSet.of(range(0, 70_000, 7)) | NumberSet.of([0.5])
    for exponents in (False, True):
        language = number_language(numbers, exponents=exponents)
        assert language.accepts("69993")
        assert language.accepts("0.50")
        assert not language.accepts("69994")
        assert language.accepts("6.9993e4") == exponents
    assert (numbers & NumberSet.multiples_of(11)).count() == 910
