"""What xgrammar writes in square brackets behind a rule's name: ``word[lazy, max_chars=20, capture="name"] ::= ...``.

``lazy``: the rule ends as soon as it can, so no word begins with another one; ``max_chars``: it has at most so many
characters. Both are for rules that call no other, whose words are a regular language. ``capture`` names what
``captures`` tells. Others say how tokens are drawn or counted, and not which texts there are: they are refused.
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
    intersect,
    repeat,
)
from tokenfst.automata.notations.reading import Token
from tokenfst.automata.rules.graph import called
from tokenfst.errors import UnsupportedPatternError

_OPTION = re.compile(r'\s*([A-Za-z_]+)(?:\s*=\s*("[^"\]]*"|[^\s,\]]+))?\s*(?:,|$)')
_KNOWN = {
    "lazy": "no value",
    "max_chars": "a number of characters",
    "capture": "a name in quotation marks, or nothing",
}
_REFUSED = "says how tokens are drawn or counted, and not which texts there are: leave it out"


@dataclass(frozen=True, slots=True)
class RuleOptions:
    """``lazy``, ``max_chars`` and ``capture`` of a rule; its name in front of ``at``, where they stand."""

    at: int
    lazy: bool = False
    max_chars: int | None = None
    capture: str | None = None

    def applied(self, body: Expr, head: str, fail: Callable[..., NoReturn]) -> Expr:
        """The words of the rule under its options."""
        if not self.lazy and self.max_chars is None:
            return body
        if called(body):
            message = (
                f"lazy and max_chars are for rules that call no other, and {head!r} does: write its rules out"
            )
            fail(message, self.at, UnsupportedPatternError)
        if self.lazy:
            body = intersect(body, complement(concat(body, ANY_BYTE, UNIVERSE)))
        if self.max_chars is not None:
            character = character_set(((0, MAX_CODE_POINT),), True)
            body = intersect(body, repeat(character, 0, self.max_chars, f"max_chars={self.max_chars}"))
        return body


def read_options(head: str, token: Token, fail: Callable[..., NoReturn]) -> RuleOptions:
    """What stands in the brackets behind ``head``. ``fail`` raises for a place."""
    text, place = str(token)[1:-1], 0
    given: dict[str, str | None] = {}
    while place < len(text):
        at = token.start_pos + 1 + place
        match = _OPTION.match(text, place)
        if match is None:
            fail("options of a rule are name or name=value, with a comma between two", at)
        name, value = match[1], match[2]
        if name not in _KNOWN:
            fail(
                f"the option {name!r} {_REFUSED}; there are {', '.join(_KNOWN)}", at, UnsupportedPatternError
            )
        if name in given:
            fail(f"the option {name!r} stands twice", at)
        fits = {
            "lazy": value is None,
            "max_chars": value is not None and re.fullmatch("[0-9]{1,9}", value) is not None,
            "capture": value is None or value.startswith('"'),
        }
        if not fits[name]:
            fail(f"{name} takes {_KNOWN[name]}", at)
        given[name] = value
        place = match.end()
    capture = None
    if "capture" in given:
        capture = head if given["capture"] is None else given["capture"].strip('"')
    most = given.get("max_chars")
    return RuleOptions(token.start_pos, "lazy" in given, None if most is None else int(most), capture)
