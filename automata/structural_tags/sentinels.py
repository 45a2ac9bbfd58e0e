"""Signs: strings of bytes that no UTF-8 text has, put into the texts of a tag where a reader wants to know what begins.

The idea: the same builder makes the texts of the same formats, once without and once with signs. A text is read by the
automaton of those with signs (``_native.SignedText``), which takes a sign where one can stand: so what is read is what
the tag means, and nothing else parses it.

Signs stand behind the beginning and behind the end of each tag; in parameters in a style, behind the name of an element
and behind the element. There text could not go on instead, unless a tag's beginning is that of another.

Invariant (native/exclusion/signed_text.hpp): bytes of signs are from 0xF8 on, the last from 0xFC on, the others below.
Of two signs at one place the least is read: a value that is no string before a string.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from tokenfst.automata.expressions.expression import Expr, literal
from tokenfst.automata.json_schema.sets.strings import StringSet

_VALUE, _OPENED, _STRING = 0xF8, 0xF9, 0xFA
_CLOSED, _BEGUN = b"\xfc", b"\xfd"


@dataclass(frozen=True, slots=True)
class Opened:
    """Behind the beginning of the tag at ``pointer``."""

    pointer: str


@dataclass(frozen=True, slots=True)
class Closed:
    """Behind the end of the tag that was opened last."""


@dataclass(frozen=True, slots=True)
class Begun:
    """In front of an element's value."""


@dataclass(frozen=True, slots=True)
class Ended:
    """Behind an element. ``kind``: ``"string"``, ``"array"`` and ``"object"`` made of elements, or ``"json"``.
    ``strings``: those that may stand there; ``None``: any."""

    kind: str
    strings: StringSet | None = None

    def allows(self, text: str) -> bool:
        """Whether this string may stand there."""
        return self.strings is None or any(cell.holds(text) for cell in self.strings)


Sign = Opened | Closed | Begun | Ended
Kinds = dict[tuple[str, str], set[Ended]]
"""Which values the parameters of a schema have: by a name, as it is written, and what stands behind it without white
space. A name that is not listed is the empty one."""


class Signs:
    """The signs of one tag, and what each means."""

    def __init__(self) -> None:
        self.meanings: dict[bytes, Sign] = {_CLOSED: Closed(), _BEGUN: Begun()}
        self._known: dict[Hashable, Expr] = {}
        self.closed, self.begun = literal(_CLOSED), literal(_BEGUN)
        self.kinds: dict[int, Kinds] = {}
        """By the ids of schemas."""
        self._noted: Kinds = {}

    def within(self, schema: object) -> Signs:
        """The same signs, for the parameters of one schema, whose kinds are noted."""
        self._noted = self.kinds.setdefault(id(schema), {})
        return self

    def begins(self, name: str, after: tuple[str, ...], ways: list[Ended]) -> Expr:
        """The sign in front of an element's value. ``name``: as it is written; ``ways``: how elements of the name
        end."""
        self._noted.setdefault((name, squeezed("".join(after))), set()).update(ways)
        return self.begun

    def opened(self, pointer: str) -> Expr:
        """The sign of a tag's beginning."""
        return self._new(_OPENED, Opened(pointer))

    def ended(self, end: Ended) -> Expr:
        """The sign of an element's end."""
        return self._new(_STRING if end.kind == "string" else _VALUE, end)

    def _new(self, lead: int, meaning: Sign) -> Expr:
        found = self._known.get(meaning)
        if found is None:
            code = bytes([lead]) + _digits(len(self.meanings))
            self.meanings[code] = meaning
            found = self._known[meaning] = literal(code)
        return found


def squeezed(text: str) -> str:
    """A text without white space."""
    return "".join(text.split())


def _digits(number: int) -> bytes:
    """A number in digits of two bits, the last of which ends a sign."""
    found = [0xFC | number & 3]
    while number := number >> 2:
        found.append(0xF8 | number & 3)
    return bytes(reversed(found))
