r"""The regular expressions that the benchmarks compile: one text for every library.

They use only syntax that Python's ``re``, Rust's ``regex`` and xgrammar's own parser read alike: explicit
classes, groups, alternation, bounded repeats; no look-around, no ``\d``, no anchors.
"""

from __future__ import annotations

DIGITS = r"[0-9]+"

CHARACTER = r'([^"\\\x00-\x1f]|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})'
"""One character of a JSON string, escaped or not."""

STRING = rf'"{CHARACTER}*"'

_INTEGER = r"-?(0|[1-9][0-9]{0,9})"
_NUMBER = r"-?(0|[1-9][0-9]{0,7})(\.[0-9]{1,6})?([eE][+\-]?[0-9]{1,3})?"
_BOOLEAN = r"(true|false)"
_DAY = r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
_DATE = rf'"{_DAY}"'
_TIME = rf'"{_DAY}T([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](Z|[+\-][0-9]{{2}}:[0-9]{{2}})"'


def _string(least: int, most: int) -> str:
    return rf'"{CHARACTER}{{{least},{most}}}"'


def _enum(*words: str) -> str:
    return '"(' + "|".join(words) + ')"'


def object_with_20_properties() -> str:
    """A pattern of JSON objects with 20 required properties of all scalar kinds; strings have bounded lengths."""
    properties = {
        "id": _INTEGER,
        "name": _string(1, 12),
        "email": r'"[a-z0-9._+\-]{1,24}@[a-z0-9\-]{1,16}\.[a-z]{2,6}"',
        "age": r"(0|[1-9][0-9]?|1[0-4][0-9])",
        "active": _BOOLEAN,
        "role": _enum("admin", "editor", "author", "viewer", "guest"),
        "title": _string(0, 8),
        "score": _NUMBER,
        "created": _TIME,
        "updated": rf"({_TIME}|null)",
        "birthday": _DATE,
        "country": r'"[A-Z]{2}"',
        "language": _enum("en", "de", "fr", "es", "it", "ja", "zh", "pt", "nl", "pl"),
        "price": r"(0|[1-9][0-9]{0,5})\.[0-9]{2}",
        "currency": _enum("EUR", "USD", "GBP", "JPY", "CHF"),
        "note": rf"({_string(0, 10)}|null)",
        "latitude": r"-?[0-9]{1,2}\.[0-9]{1,6}",
        "longitude": r"-?[0-9]{1,3}\.[0-9]{1,6}",
        "status": _enum("new", "open", "waiting", "resolved", "closed"),
        "verified": _BOOLEAN,
    }
    return r"\{" + ", ?".join(rf'"{name}": ?{value}' for name, value in properties.items()) + r"\}"


def strings_in_different_contexts(count: int) -> str:
    """A pattern of objects with ``count`` strings: the same string in ``count`` contexts, each with states of its
    own.
    """
    return r"\{" + ",".join(rf'"k{i:03}":{STRING}' for i in range(count)) + r"\}"
