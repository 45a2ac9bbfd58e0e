"""The options that xgrammar writes in square brackets after a rule's name: ``word[lazy, max_chars=20, capture="name"]
::= ...``.

``lazy``: the rule ends as early as possible, so no word is a proper prefix of another word. ``max_chars``: the greatest
number of characters. ``max_tokens``: the greatest number of tokens that have bytes of it. These three are for rules
that call no other rule, whose words are a regular language. ``capture``: the name under which ``captures`` reports the
text. ``temperature``: the value that ``matcher.temperature`` reports.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import NoReturn

from tokenfst.automata.characters.classes import character_set
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    UNIVERSE,
    Expr,
    complement,
    concat,
    few_tokens,
    intersect,
    repeat,
)
from tokenfst.automata.notations.parsing.reading import Token
from tokenfst.automata.rules.graph import called
from tokenfst.errors import UnsupportedPatternError

_OPTION = re.compile(r'\s*([A-Za-z_]+)(?:\s*=\s*("[^"\]]*"|[^\s,\]]+))?\s*(?:,|$)')
_KNOWN = {
    "lazy": "no value",
    "max_chars": "a number of characters",
    "capture": "a name in quotation marks, or nothing",
    "max_tokens": "a number of tokens, 1 at least",
    "temperature": "a number that is not negative",
}
_DECIMAL = r"[0-9]{1,9}(\.[0-9]{1,30})?([eE][-+]?[0-9]{1,2})?"


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """The options of a rule. ``at``: their position, which follows the rule's name."""

    at: int
    lazy: bool = False
    max_chars: int | None = None
    capture: str | None = None
    max_tokens: int | None = None
    temperature: float | None = None

    def applied(self, body: Expr, head: str, fail: Callable[..., NoReturn]) -> Expr:
        """The words of the rule with its options."""
        if not self.lazy and self.max_chars is None and self.max_tokens is None:
            return body
        if called(body):
            message = (
                f"lazy, max_chars and max_tokens are for rules that call no other, and {head!r} does: write its rules "
                "out"
            )
            fail(message, self.at, UnsupportedPatternError)
        if self.lazy:
            body = intersect(body, complement(concat(body, ANY_BYTE, UNIVERSE)))
        if self.max_chars is not None:
            character = character_set(((0, MAX_CODE_POINT),), True)
            body = intersect(body, repeat(character, 0, self.max_chars, f"max_chars={self.max_chars}"))
        return body if self.max_tokens is None else few_tokens(body, self.max_tokens)


def read_options(head: str, token: Token, fail: Callable[..., NoReturn]) -> RuleOptions:
    """Parse the brackets after ``head``. ``fail`` raises the error for a position."""
    text, place = str(token)[1:-1], 0
    given: dict[str, str | None] = {}
    while place < len(text):
        at = token.start_pos + 1 + place
        match = _OPTION.match(text, place)
        if match is None:
            fail("options of a rule must be NAME or NAME=VALUE, separated by commas", at)
        name, value = match[1], match[2]
        if name not in _KNOWN:
            fail(f"unknown option {name!r}; expected one of {', '.join(_KNOWN)}", at, UnsupportedPatternError)
        if name in given:
            fail(f"the option {name!r} is given twice", at)
        fits = {
            "lazy": value is None,
            "max_chars": value is not None and re.fullmatch("[0-9]{1,9}", value) is not None,
            "capture": value is None or value.startswith('"'),
            "max_tokens": value is not None and re.fullmatch("[1-9][0-9]{0,6}", value) is not None,
            "temperature": value is not None and re.fullmatch(_DECIMAL, value) is not None,
        }
        if not fits[name]:
            fail(f"{name} takes {_KNOWN[name]}", at)
        given[name] = value
        place = match.end()
    capture = None
    if "capture" in given:
        capture = head if given["capture"] is None else given["capture"].strip('"')
    most, tokens, temperature = given.get("max_chars"), given.get("max_tokens"), given.get("temperature")
    return RuleOptions(
        token.start_pos,
        "lazy" in given,
        None if most is None else int(most),
        capture,
        None if tokens is None else int(tokens),
        None if temperature is None else float(temperature),
    )
