"""Single JSON values, listed by ``const`` and ``enum``, compared as JSON Schema compares them.

Numbers are equal if their values are equal (1, 1.0 and 1e0), booleans are not numbers, and the order of an object's
members does not matter.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tokenfst.automata.json_schema.sets import strings as schema_strings
from tokenfst.automata.json_schema.sets.arrays import of_items
from tokenfst.automata.json_schema.sets.formula import Formula
from tokenfst.automata.json_schema.sets.objects import of_members
from tokenfst.automata.json_schema.sets.value_sets import INTEGERS, NO_NUMBER, ValueSet
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.automata.json_values.bounds import exact, is_finite
from tokenfst.automata.json_values.numbers import NumberSet

_DEEPEST = 200
_PLAIN = 1 << 53


class NotJsonError(ValueError):
    """A constant is not a JSON value."""


class Whole(int):
    """An integer that is written without a fraction and without an exponent (``ValueSet.whole``)."""


class Constant:
    """One JSON value. ``key`` is the same for equal values that may be spelled in the same ways."""

    __slots__ = ("key", "value")

    def __init__(self, value: Any, work: Work) -> None:
        self.value = value
        self.key = ("constant", freeze(value, work))


def freeze(value: Any, work: Work, depth: int = 0) -> Hashable:
    """A hashable form that equal JSON values share, except that an integer given as 1.0 or 1e0 differs from 1.

    Raises NotJsonError for anything that is not a JSON value, ValueError for a number or a nesting that is too large,
    BudgetExceeded("seconds").
    """
    if value is None or isinstance(value, bool):
        return repr(value)
    if value.__class__ is int and -_PLAIN < value < _PLAIN:
        return value  # equal to the fraction of the same value, and has the same hash
    if isinstance(value, Whole):
        return "whole", int(value)
    if isinstance(value, int | float | Decimal | Fraction):
        if not is_finite(value):
            raise NotJsonError(f"{value} is not a JSON number")
        number = exact(value)
        return number if is_bare(value) or number.denominator > 1 else ("number", number)
    if isinstance(value, str):
        return ("string", value)
    if depth > _DEEPEST:
        raise ValueError(f"a constant is nested more than {_DEEPEST} deep")
    work.look()
    if isinstance(value, list | tuple):
        return ("array", tuple(freeze(each, work, depth + 1) for each in value))
    if isinstance(value, Mapping):
        if not all(isinstance(name, str) for name in value):
            unnamed = next(name for name in value if not isinstance(name, str))
            raise NotJsonError(f"the name {unnamed!r} of a member is not a string: write {str(unnamed)!r}")
        return ("object", frozenset((name, freeze(each, work, depth + 1)) for name, each in value.items()))
    raise NotJsonError(f"{value!r} is not a JSON value")


def constant_value_set(value: Any, constant: Callable[[Any], Formula], work: Work) -> ValueSet:
    """The set with exactly this value. ``constant`` makes the formulas of its parts."""
    return constants_value_set([value], constant, work)


def constants_value_set(values: Iterable[Any], constant: Callable[[Any], Formula], work: Work) -> ValueSet:
    """The set with exactly these values. ``constant`` makes the formulas of their parts. Raises the errors of
    ``freeze``.
    """
    known = list(values)
    numbers = [
        each
        for each in known
        if isinstance(each, int | float | Decimal | Fraction) and not isinstance(each, bool | Whole)
    ]
    whole = [each for each in known if isinstance(each, Whole)]
    for number in numbers:
        freeze(number, work)
    arrays = {freeze(each, work): each for each in known if isinstance(each, list | tuple)}
    objects = {freeze(each, work): each for each in known if isinstance(each, Mapping)}
    return ValueSet(
        null=any(each is None for each in known),
        true=any(each is True for each in known),
        false=any(each is False for each in known),
        numbers=NumberSet.of(numbers) if numbers else NO_NUMBER,
        strings=schema_strings.words(each for each in known if isinstance(each, str)),
        arrays=tuple(of_items([constant(item) for item in each]) for each in arrays.values()),
        objects=tuple(
            of_members({name: constant(member) for name, member in each.items()}) for each in objects.values()
        ),
        whole=NumberSet.of([*whole, *numbers]) & INTEGERS if whole else None,
        bare=_bare(numbers),
    )


def _bare(numbers: list[int | float | Decimal | Fraction]) -> NumberSet:
    """``ValueSet.bare`` of constants: those that are not given with a fraction or an exponent."""
    others = [each for each in numbers if not is_bare(each)]
    if not numbers:
        return NO_NUMBER
    return INTEGERS - NumberSet.of(others) if others else INTEGERS


def is_bare(number: int | float | Decimal | Fraction) -> bool:
    """Whether a constant is given by digits only."""
    return isinstance(number, int)


def listed_values(value_set: ValueSet) -> list[Any] | None:
    """The values of a value set without arrays and objects if its strings and numbers are listed; otherwise ``None``.

    Bare numbers (``ValueSet.bare``) are ints, other numbers are fractions.
    """
    words = schema_strings.subset_of_words(value_set.strings)
    numbers = [cut for cut, there in zip(value_set.numbers.cuts, value_set.numbers.at, strict=True) if there]
    if value_set.arrays or value_set.objects or words is None or value_set.numbers.count() != len(numbers):
        return None
    whole: list[Whole] = []
    if value_set.whole is not None:
        members = [cut for cut, there in zip(value_set.whole.cuts, value_set.whole.at, strict=True) if there]
        if value_set.whole.count() != len(members):
            return None
        if any(number.denominator == 1 and number not in members for number in numbers):
            return None
        whole = [Whole(number) for number in members if number not in numbers]
    found: list[Any] = [
        value
        for value, there in ((None, value_set.null), (True, value_set.true), (False, value_set.false))
        if there
    ]
    given = [
        int(each) if each.denominator == 1 and value_set.bare.contains(each) else each for each in numbers
    ]
    return [*found, *given, *whole, *sorted(words)]
