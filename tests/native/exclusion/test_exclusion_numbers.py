"""Numbers in arrays whose items must differ, with exponents of any length: equal are those of one value."""

from __future__ import annotations

import random

import tokenfst
from tokenfst import Vocabulary

BYTES = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], 256)
FAR = [0, 1, -1, 10**17, 10**18, -(10**18), 10**25]
"""Exponents, some of which no machine's word holds."""


def value(text: str) -> tuple[bool, str, int] | None:
    """A number as its sign, its digits without zeros at either end, and a power of ten; ``None`` is zero."""
    mantissa, _, exponent = text.lower().lstrip("-").partition("e")
    whole, _, fraction = mantissa.partition(".")
    digits = (whole + fraction).lstrip("0")
    shift = int(exponent) - len(fraction) + len(digits) - len(digits.rstrip("0"))
    return (text.startswith("-"), digits.rstrip("0"), shift) if digits else None


def number(rng: random.Random) -> str:
    mantissa = rng.choice(["1", "10", "100", "0.1", "0.01", "1.0", "12", "1.2", "0", "-1", "-10", "0.0"])
    exponent = rng.choice(FAR) + rng.randint(-2, 2)
    sign = "-" if exponent < 0 else rng.choice(["", "+"])
    return f"{mantissa}{rng.choice('eE')}{sign}{rng.choice(['', '0', '00'])}{abs(exponent)}"


def test_numbers_are_equal_if_their_values_are() -> None:
    schema = {"type": "array", "uniqueItems": True, "items": {"type": "number"}}
    automaton = tokenfst.compile(tokenfst.json_schema(schema, spelling="any"), BYTES)
    rng = random.Random(5)
    equal = 0
    for _ in range(5000):
        one, other = number(rng), number(rng)
        matcher = automaton.matcher()
        taken = all(matcher.accept_token(byte) for byte in f"[{one},{other}]".encode())
        differ = value(one) != value(other)
        assert (taken and matcher.is_accepting()) == differ, (one, other)
        equal += not differ
    assert equal > 100
