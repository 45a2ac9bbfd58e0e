"""Dates, times and durations of RFC 3339 as languages.

A calendar is finite, so it is enumerated: the three lengths of months, February 29 in Gregorian leap years, and leap
seconds as a relation between the local time and the offset. That relation is the intersection of a relation over hours
and one over minutes. So it takes about 100 short alternatives to write, and its states (one for each local minute) are
built only where a leap second is read.

Leap seconds (RFC 3339, section 5.7): second 60 is allowed only in the last minute of a UTC day, so ``time`` accepts
``23:59:60Z`` and ``01:29:60+01:30``; ``date-time`` accepts it only at the end of June and December UTC, where leap
seconds are announced. Whether the year had one is not checked, because future leap seconds are not known.

Rejected: a leap second in any minute (not a valid time), and no leap seconds (instants that exist would be refused).
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache

from tokenfst.automata.expressions.expression import Expr, concat, literal, union
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import expression, regex

_YEAR = r"[0-9]{4}"
_FOURTH = r"(?:0[48]|[2468][048]|[13579][26])"
"""Two digits divisible by 4, but not 00."""
_LEAP_YEAR = rf"(?:[0-9]{{2}}{_FOURTH}|(?:00|{_FOURTH})00)"
_TO_28 = r"(?:0[1-9]|1[0-9]|2[0-8])"
_DAY = rf"(?:(?:0[1-9]|1[0-2])-{_TO_28}|(?:0[13-9]|1[0-2])-(?:29|30)|(?:0[13578]|1[02])-31)"
_DATE = rf"(?:{_YEAR}-{_DAY}|{_LEAP_YEAR}-02-29)"

_HOUR = r"(?:[01][0-9]|2[0-3])"
_MINUTE = r"[0-5][0-9]"
_FRACTION = r"(?:\.[0-9]+)?"
_TIME = rf"{_HOUR}:{_MINUTE}:{_MINUTE}{_FRACTION}(?:[Zz]|[+-]{_HOUR}:{_MINUTE})"


def date() -> Language:
    """RFC 3339 ``full-date``, years 0000 to 9999 of the proleptic Gregorian calendar."""
    return regex(_DATE)


def time() -> Language:
    """RFC 3339 ``full-time``, with the leap seconds that end a UTC day."""
    return regex(_TIME) | _leap_same_day() | _leap_next_day()


def date_time() -> Language:
    """RFC 3339 ``date-time``, with the leap seconds that end June or December in UTC."""
    last_day = regex(rf"{_YEAR}-(?:06-30|12-31)[Tt]") + _leap_same_day()
    first_day = regex(rf"{_YEAR}-(?:07-01|01-01)[Tt]") + _leap_next_day()
    return regex(rf"{_DATE}[Tt]{_TIME}") | last_day | first_day


def duration() -> Language:
    """RFC 3339 appendix A ``duration``. Its letters are ABNF strings, so either case is meant (RFC 5234, 2.3)."""
    second = r"[0-9]+[Ss]"
    minute = rf"[0-9]+[Mm](?:{second})?"
    clock = rf"[Tt](?:[0-9]+[Hh](?:{minute})?|{minute}|{second})"
    day = r"[0-9]+[Dd]"
    month = rf"[0-9]+[Mm](?:{day})?"
    calendar = rf"(?:[0-9]+[Yy](?:{month})?|{month}|{day})"
    return regex(rf"[Pp](?:{calendar}(?:{clock})?|{clock}|[0-9]+[Ww])")


def _leap_same_day() -> Language:
    """23:59:60 UTC as a local time on the same day: no offset, or the negative one that adds up to 23:59."""
    hours = _leap_hours("-", ((hour, 23 - hour) for hour in range(24)))
    tens = _leap_tens("-", ((digit, 5 - digit) for digit in range(6)))
    ones = _leap_ones("-", ((digit, 9 - digit) for digit in range(10)))
    return regex(rf"23:59:60{_FRACTION}(?:[Zz]|\+00:00)") | hours & tens & ones


def _leap_next_day() -> Language:
    """23:59:60 UTC as a local time on the next day: the positive offset one minute ahead of that time."""
    same_hour = _leap_hours("+", ((hour, hour) for hour in range(24)))
    next_hour = _leap_hours("+", ((hour, hour + 1) for hour in range(23)))
    same_tens = _leap_tens("+", ((digit, digit) for digit in range(6)))
    next_tens = _leap_tens("+", ((digit, digit + 1) for digit in range(5)))
    next_ones = _leap_ones("+", ((digit, digit + 1) for digit in range(9)))
    carry = _leap_ones("+", [(9, 0)])
    on_the_hour = regex(rf"[0-9]{{2}}:59:60{_FRACTION}\+[0-9]{{2}}:00")
    return same_hour & (same_tens & next_ones | next_tens & carry) | next_hour & on_the_hour


# Relations between a time ``HH:MM:60`` and its offset ``hh:mm``: the possible pairs of digits.


def _leap_hours(sign: str, pairs: Iterable[tuple[int, int]]) -> Language:
    return _related("", 2, pairs, rf":[0-9]{{2}}:60{_FRACTION}[{sign}]", ":[0-9]{2}")


def _leap_tens(sign: str, pairs: Iterable[tuple[int, int]]) -> Language:
    return _related("[0-9]{2}:", 1, pairs, rf"[0-9]:60{_FRACTION}[{sign}][0-9]{{2}}:", "[0-9]")


def _leap_ones(sign: str, pairs: Iterable[tuple[int, int]]) -> Language:
    return _related("[0-9]{2}:[0-9]", 1, pairs, rf":60{_FRACTION}[{sign}][0-9]{{2}}:[0-9]", "")


def _related(
    before: str, digits: int, pairs: Iterable[tuple[int, int]], between: str, after: str
) -> Language:
    """The possible pairs of two numbers with this many digits, at their positions."""
    middle = _part(between)
    parts = [concat(_number(left, digits), middle, _number(right, digits)) for left, right in pairs]
    return Language(concat(_part(before), union(*parts), _part(after)))


@cache
def _part(pattern: str) -> Expr:
    return expression(pattern)


@cache
def _number(value: int, digits: int) -> Expr:
    return literal(b"%0*d" % (digits, value))
