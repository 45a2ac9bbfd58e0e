"""Strings that pydantic reads and writes: dates, decimals, bytes and addresses, as patterns.

Each is an anchored pattern of ECMA-262, so that a JSON Schema can contain it; if no pattern can express it (bounds
of decimals, lengths in bytes) it is a ``TextPattern``. Two invariants: pydantic reads every match, and everything
that pydantic writes matches.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from tokenfst.automata.json_schema.sets.strings import TextPattern
from tokenfst.automata.json_values.numbers import NumberSet
from tokenfst.automata.json_values.texts import number_language
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex

# --- dates and times ------------------------------------------------------------------------------------

DAY = (
    r"(?!0000)(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|02-(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26])"
    r"|(?:[02468][048]|[13579][26])00)-02-29)"
)
_HOUR = r"(?:[01]\d|2[0-3])"
CLOCK = rf"{_HOUR}:[0-5]\d:[0-5]\d(?:\.\d{{1,6}})?"
OFFSET = rf"(?:Z|[+-]{_HOUR}:[0-5]\d)"
_SIXTY = r"[1-5]?\d"
_TIME = rf"(?:(?:1?\d|2[0-3])H)?(?:{_SIXTY}M)?(?:{_SIXTY}(?:\.\d{{1,6}})?S)?"
_IN_A_DAY = rf"(?:T(?=.){_TIME})?"
_IN_A_YEAR = r"(?:[1-9]?\d|[12]\d\d|3[0-5]\d|36[0-4])"
_LAST_YEAR = 2_739_726
"""The longest timedelta has 999,999,999 days: this number of years of 365 days, and 9 days."""
_YEARS = r"(?:1\d{6}|2[0-6]\d{5}|27[0-2]\d{4}|273[0-8]\d{3}|2739[0-6]\d\d|27397[01]\d|273972[0-5])"
DURATION = (
    rf"-?P(?=.)(?:\d{{1,6}}Y)?(?:\d{{1,8}}D)?{_IN_A_DAY}|-?P{_YEARS}Y(?:{_IN_A_YEAR}D)?{_IN_A_DAY}"
    rf"|-?P{_LAST_YEAR}Y(?:[0-8]D)?{_IN_A_DAY}|-?P{_LAST_YEAR}Y9D|P{_LAST_YEAR}Y9D{_IN_A_DAY}"
)

# --- decimals -------------------------------------------------------------------------------------------

_MANTISSA = 28
"""The number of digits after the point that a text with an exponent may have if digits are limited: the usual precision
of a decimal.
"""
_EXPONENT = r"[1-9]\d{0,16}"
_NO_FINITE = {"upper": "Infinity", "lower": "-Infinity"}


def decimal(schema: Mapping[str, Any], allow_inf_nan: bool) -> dict[str, Any]:
    """The JSON Schema of the strings that ``str`` writes for decimals, under the keywords of pydantic's core schema."""
    whole, places = schema.get("max_digits"), schema.get("decimal_places")
    bounded = {name: schema[name] for name in ("gt", "ge", "lt", "le") if schema.get(name) is not None}
    multiple = schema.get("multiple_of")
    pattern = _digits(whole, places)
    if allow_inf_nan and multiple is None and whole is None and places is None:
        if not bounded.keys() & {"lt", "le"}:
            pattern += "|Infinity"
        if not bounded.keys() & {"gt", "ge"}:
            pattern += "|-Infinity"
        if not bounded:
            pattern += r"|-?NaN\d{0,9}"
    made: dict[str, Any] = {"type": "string", "pattern": f"^(?:{pattern})$"}
    if bounded or multiple is not None:
        made["allOf"] = [{"pattern": _within(bounded, multiple)}]
    return made


def _digits(whole: int | None, places: int | None) -> str:
    """Decimals with a given number of digits, and of digits after the point; zeros at the end do not count."""
    if whole is None and places is None:
        return rf"-?(?:(?:0|[1-9]\d*)(?:\.\d+)?|0E[+-]{_EXPONENT}|[1-9](?:\.\d+)?E[+-]{_EXPONENT})"
    least = whole if places is None else places if whole is None else min(whole, places)
    assert least is not None
    before = None if whole is None else whole - (0 if places is None else least)
    if before == 0:  # no zero before the point counts then, but a single one does
        forms = [rf"0\.\d{{1,{least}}}0*", rf"0E-{_EXPONENT}"]
    else:
        forms = [f"0{_fraction(least)}", rf"0E[+-]{_EXPONENT}"]
    if before is None:
        forms.append(rf"[1-9]\d*{_fraction(least)}")
        forms += [rf"[1-9]{_fraction(k + least)}E\+{k}" for k in range(1, _MANTISSA)]
        forms.append(rf"[1-9]{_fraction(_MANTISSA)}E\+(?:[3-9]\d|2[89]|[1-9]\d{{2,16}})")
    elif places is None:
        forms += [rf"[1-9]\d{{{n - 1}}}{_fraction(before - n)}" for n in range(1, before + 1)]
        forms += [rf"[1-9]{_fraction(before - 1)}E\+{k}" for k in range(1, before)]
    elif before:
        forms.append(rf"[1-9]\d{{0,{before - 1}}}{_fraction(least)}")
        forms += [rf"[1-9]{_fraction(k + least)}E\+{k}" for k in range(1, before)]
    forms += [rf"[1-9]{_fraction(least - k)}E-{k}" for k in range(1, least + 1)]
    return f"-?(?:{'|'.join(forms)})"


def _fraction(most: int) -> str:
    return rf"(?:\.\d{{1,{most}}}0*)?" if most else r"(?:\.0+)?"


def _within(bounded: Mapping[str, Any], multiple: Any) -> TextPattern:
    """The decimals between bounds that are multiples of a number: that many times the decimals of fewer than 28
    digits.
    """
    names = {"gt": "exclusive_minimum", "ge": "minimum", "lt": "exclusive_maximum", "le": "maximum"}
    numbers = NumberSet.between(**{names[name]: Fraction(Decimal(value)) for name, value in bounded.items()})
    if multiple is not None:
        step = Fraction(Decimal(multiple))
        most = abs(step) * (10**27 - 1)
        numbers = numbers & NumberSet.multiples_of(abs(step)) & NumberSet.between(minimum=-most, maximum=most)
    name = ", ".join(
        f"{key}={value}" for key, value in {**bounded, "multiple_of": multiple}.items() if value is not None
    )
    language = number_language(numbers, exponents=True)
    words = [_NO_FINITE["upper"]] * (not bounded.keys() & {"lt", "le"})
    words += [_NO_FINITE["lower"]] * (not bounded.keys() & {"gt", "ge"})
    return TextPattern.of(f"a decimal, {name}", Language.union_of([language, *map(Language.literal, words)]))


# --- bytes ----------------------------------------------------------------------------------------------


def of_bytes(encoding: str, low: int, high: int | None) -> dict[str, Any]:
    """The JSON Schema of the strings that encode ``low`` to ``high`` bytes.

    ``encoding``: pydantic's ``val_json_bytes``: ``"utf8"``, ``"hex"`` or ``"base64"``. ``high``: ``None`` for no bound.
    """
    if encoding == "utf8":
        made: dict[str, Any] = {"type": "string"}
        if low or high is not None:
            name = f"{low} to {'any number of' if high is None else high} bytes of UTF-8"
            counted = regex(rf"(?s:.{{{low},{'' if high is None else high}}})".encode())
            made["pattern"] = TextPattern.of(name, counted)
        return made
    most = "" if high is None else str(high)
    if encoding == "hex":
        return {"type": "string", "pattern": f"^(?:[0-9A-Fa-f]{{2}}){{{low},{most}}}$"}
    letter = "[A-Za-z0-9_-]"
    ends = ("", f"{letter}[AQgw]==", f"{letter}{{2}}[AEIMQUYcgkosw048]=")
    forms = []
    for rest, end in enumerate(ends):
        least, greatest = max(-(-(low - rest) // 3), 0), None if high is None else (high - rest) // 3
        if greatest is None or greatest >= least:
            forms.append(f"(?:{letter}{{4}}){{{least},{'' if greatest is None else greatest}}}{end}")
    return {"type": "string", "pattern": f"^(?:{'|'.join(forms)})$"}


def python_pattern(pattern: str | re.Pattern[str]) -> TextPattern:
    """The texts that begin with a match of a pattern of Python's ``re``, as pydantic checks them."""
    text, flags = (pattern, 0) if isinstance(pattern, str) else (pattern.pattern, pattern.flags)
    words = regex(f"(?:{text})(?s:.*)", flags)
    return TextPattern.of(f"{text!r} as re reads it, with flags {flags}", words)


# --- addresses ------------------------------------------------------------------------------------------

_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
IPV4 = rf"{_OCTET}(?:\.{_OCTET}){{3}}"
_GROUP = "[0-9A-Fa-f]{1,4}"


def _ipv6() -> str:
    """Eight groups, or at most six around ``::``, which replaces two or more."""
    forms = [rf"(?:{_GROUP}:){{7}}{_GROUP}"]
    for before in range(7):
        head = rf"{_GROUP}(?::{_GROUP}){{{before - 1}}}" if before else ""
        tail = rf"(?:{_GROUP}(?::{_GROUP}){{0,{5 - before}}})?" if before < 6 else ""
        forms.append(f"{head}::{tail}")
    return f"(?:{'|'.join(forms)})"


IPV6 = _ipv6()
_SCOPE = r"(?:%[^%/\x00-\x1f]+)?"
_OF_32, _OF_128 = r"(?:3[0-2]|[12]?\d)", r"(?:12[0-8]|1[01]\d|[1-9]?\d)"


def _ipv4_networks() -> str:
    """An address whose last bits are 0, and the number of the other bits."""
    forms = []
    for bits in range(33):
        full, rest = divmod(bits, 8)
        parts = [_OCTET] * full
        if full < 4:
            step = 2 ** (8 - rest)
            parts += [f"(?:{'|'.join(map(str, range(0, 256, step)))})", *["0"] * (3 - full)]
        forms.append(r"\.".join(parts) + f"/{bits}")
    return "|".join(forms)


ADDRESSES = {
    "ipv4": IPV4,
    "ipv6": f"{IPV6}{_SCOPE}",
    "ipvanyaddress": f"{IPV4}|{IPV6}{_SCOPE}",
    "ipv4interface": f"{IPV4}/{_OF_32}",
    "ipv6interface": f"{IPV6}{_SCOPE}/{_OF_128}",
    "ipvanyinterface": f"{IPV4}/{_OF_32}|{IPV6}{_SCOPE}/{_OF_128}",
    "ipv4network": _ipv4_networks(),
}
"""Patterns by pydantic's format. IPv6 networks are missing: which bits must be 0 depends on the position of ``::``."""

_ATOM = r"[A-Za-z0-9!#$%&'*+/=?^_`{|}~-]"
_MAIL_LABEL = r"(?!.{2}--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_RESERVED = r"(?:arpa|invalid|local|localhost|onion|test)"
EMAIL = (
    rf"(?=[^@]{{1,64}}@){_ATOM}+(?:\.{_ATOM}+)*@(?=.{{1,253}}$)(?!(?:.*\.)?{_RESERVED}$)"
    rf"(?:{_MAIL_LABEL}\.)+(?=.*[a-z]$){_MAIL_LABEL}"
)
"""E-mail addresses in ASCII, as the package email-validator reads and writes them."""
