"""How the numbers of a schema are written.

``"any"``: what a schema declares or gives as an integer has no exponent, and a fraction of zeros or none; other numbers
may have an exponent, by the rule of ``json_values.texts``. Plain spellings: a number that a schema declares as an
integer has digits only, and so has a constant that is given as an integer; all other numbers are written as
``json.dumps`` or ``JSON.stringify`` write them.
"""

from __future__ import annotations

from functools import lru_cache

from tokenfst.automata.expressions.expression import EMPTY, Expr, complement, intersect, union
from tokenfst.automata.json_schema.sets.value_sets import INTEGERS, NO_NUMBER
from tokenfst.automata.json_values.numbers import NumberSet
from tokenfst.automata.json_values.strings import Spelling
from tokenfst.automata.json_values.texts import number_language, plain_numbers
from tokenfst.automata.languages.emptiness import record_word


@lru_cache(maxsize=512)
def number_texts(
    numbers: NumberSet, whole: NumberSet | None, bare: NumberSet, spelling: Spelling, fractions: bool
) -> Expr:
    """The texts of numbers. ``whole`` and ``bare``: as in ``ValueSet``.

    ``fractions``: whether the ``"any"`` spelling may write 1.0 for an integer. It always may if non-integers surround
    the integer in the set: the 7 of ``{"minimum": 0}``, but not that of ``{"enum": [7, 2.5]}``.
    """
    if spelling == "any":
        return _every(numbers, bare, fractions) if whole is None else _apart(numbers, whole)
    if whole is not None:
        # A number that must not be written with digits only has its other texts, even if it is declared as an integer.
        others = _not_bare(plain_numbers(numbers - (bare & whole)))
        return union(plain_numbers(whole, fraction=False), others)
    if bare.is_empty():
        return plain_numbers(numbers)
    return union(plain_numbers(numbers & bare, fraction=False), plain_numbers(numbers - bare))


def _every(numbers: NumberSet, bare: NumberSet, fractions: bool) -> Expr:
    integral = (numbers - INTEGERS).is_empty()
    if integral and not (others := numbers - bare).is_empty():
        declared = number_language(numbers & bare, exponents=False, integer_fraction=fractions).expr
        return union(declared, number_language(others, exponents=True).expr)
    lone = NO_NUMBER if fractions or integral else numbers.lone_integers() & bare
    if lone.is_empty():
        return number_language(numbers, exponents=not integral, integer_fraction=fractions).expr
    spelled_alone = number_language(lone, exponents=False, integer_fraction=False).expr
    return union(spelled_alone, number_language(numbers - lone, exponents=True).expr)


def _apart(numbers: NumberSet, whole: NumberSet) -> Expr:
    """The texts of integers without fraction and exponent, and those of numbers that have one of them."""
    integers = (
        EMPTY if whole.is_empty() else number_language(whole, exponents=False, integer_fraction=False).expr
    )
    if numbers.is_empty():
        return integers
    others = _every(numbers, NO_NUMBER, True)
    if not ((numbers & INTEGERS) - whole).is_empty():
        others = _not_bare(others)
    return union(integers, others)


def _not_bare(texts: Expr) -> Expr:
    """Those of these texts that have a fraction or an exponent. There are some, because every number has such a
    text.
    """
    if texts is EMPTY:
        return EMPTY
    made = intersect(
        texts, complement(number_language(INTEGERS, exponents=False, integer_fraction=False).expr)
    )
    record_word(made)
    return made
