"""How JSON is written, the slow way: as Python's ``json.dumps``, JavaScript's ``JSON.stringify`` and pydantic do, and
which texts are spelled plainly, token by token. Pydantic writes floats as Python does, but for ``e-6`` to ``e-9``.
"""

from __future__ import annotations

import json
import re
from decimal import Decimal
from typing import Any

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[-+.0-9eE]+|[a-z]+|[\[\]{},:]|[ \t\n\r]+', re.DOTALL)
_FIXED = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?")


def number_to_string(value: float) -> str:
    """``Number::toString`` of ECMA-262, section 6.1.6.1.20, for radix 10: step by step, with its names."""
    if value == 0:
        return "0"
    if value < 0:
        return "-" + number_to_string(-value)
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    assert sign == 0 and isinstance(exponent, int)
    s = "".join(map(str, digits))
    k, n = len(s), exponent + len(s)
    if k <= n <= 21:
        return s + "0" * (n - k)
    if 0 < n <= 21:
        return s[:n] + "." + s[n:]
    if -6 < n <= 0:
        return "0." + "0" * -n + s
    power = ("+" if n > 0 else "-") + str(abs(n - 1))
    return s + "e" + power if k == 1 else s[0] + "." + s[1:] + "e" + power


def stringify(value: Any) -> str:
    """``JSON.stringify`` of ECMA-262, section 25.5.2: an integer beyond 2^53 is the float next to it."""
    if isinstance(value, str):
        return "".join(['"', *map(_quoted, value), '"'])
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    if isinstance(value, int | float):
        return number_to_string(float(value))
    if isinstance(value, list):
        return "[" + ",".join(map(stringify, value)) + "]"
    return "{" + ",".join(f"{stringify(name)}:{stringify(each)}" for name, each in value.items()) + "}"


def _quoted(character: str) -> str:
    short = {"\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r", '"': '\\"', "\\": "\\\\"}
    if character in short:
        return short[character]
    return f"\\u{ord(character):04x}" if character < " " else character


def constant_texts(value: int | float) -> set[str]:
    """How the three write a number that a schema gives; 0.0 and -0.0 are one number."""
    if isinstance(value, int):
        return {str(value)}
    if value == 0:
        return {"0", "0.0", "-0.0"}
    return {json.dumps(value), number_to_string(value), json.dumps(value).replace("e-06", "e-6")}


def is_plain_number(text: str, *, integer: bool = False) -> bool:
    """Whether a number is spelled plainly: without an exponent in any way of JSON, but for ``-0``; or with the exponent
    that one of the three writes for a number of these digits. ``integer``: digits only.
    """
    if not _NUMBER.fullmatch(text) or text == "-0":
        return False
    if integer:
        return text.lstrip("-").isdigit()
    return _FIXED.fullmatch(text) is not None or text in _with_exponent(text)


def _with_exponent(text: str) -> set[str]:
    """How the three write a number where they write an exponent."""
    # By hand: Decimal rounds long mantissas, and refuses long exponents.
    number, _, exponent = text.lower().removeprefix("-").partition("e")
    whole, _, decimals = number.partition(".")
    shown = (whole + decimals).lstrip("0")
    if not shown:
        return set()
    power = int(exponent) - len(decimals) + len(shown) - 1
    first, rest = shown[0], shown[1:].rstrip("0")
    mantissa = "-" * text.startswith("-") + first + ("." + rest if rest else "")
    found = set()
    if power >= 16 or power < -4:
        found.add(f"{mantissa}e{power:+03d}")
    if power >= 21 or power < -5:
        found.add(f"{mantissa}e{power:+d}")
    return found


def is_spelled(text: str, spelling: str) -> bool:
    """Whether all strings and numbers of a JSON text are spelled so."""
    if spelling == "any":
        return True
    for token in _TOKEN.findall(text):
        if token[0] == '"' and json.dumps(json.loads(token), ensure_ascii=spelling == "ascii") != token:
            return False
        if token[0] in "-0123456789" and not is_plain_number(token):
            return False
    return True


def without_fractions(value: Any) -> Any:
    """The same JSON value with integers for floats of zeros."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        return [without_fractions(each) for each in value]
    if isinstance(value, dict):
        return {name: without_fractions(each) for name, each in value.items()}
    return value
