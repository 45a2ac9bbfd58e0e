"""The JSON objects that llguidance allows after ``%regex``: the substrings of a text, by characters, words or chunks.

Each becomes a pattern with a named group of ``regex``.
"""

from __future__ import annotations

import re
from typing import Any

from tokenfst.errors import ConstraintError

_KINDS = {"substring_chars": "SUBSTRING_OF", "substring_words": "WORDS_OF", "substring_chunks": "CHUNKS_OF"}


def pattern_of(value: Any) -> str:
    """The pattern of such an object. Raises ConstraintError for any other value."""
    kind = next(iter(value), None) if isinstance(value, dict) and len(value) == 1 else None
    if kind not in _KINDS:
        raise ConstraintError(f"%regex needs an object with exactly one member, one of {', '.join(_KINDS)}")
    given = value[kind]
    if kind == "substring_chunks":
        if not isinstance(given, list) or not all(isinstance(chunk, str) for chunk in given):
            raise ConstraintError("substring_chunks must be a list of strings")
        written = "|".join(re.escape(chunk) for chunk in given if chunk)
    elif isinstance(given, str):
        written = re.escape(given)
    else:
        raise ConstraintError(f"{kind} must be a string")
    return f"(?P<{_KINDS[kind]}>{written})" if written else ""
