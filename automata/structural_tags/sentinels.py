"""Sentinels: byte strings that cannot occur in UTF-8, inserted into the texts of a tag where a parser needs to know
which part begins.

The same builder makes the texts of the same formats, once without and once with sentinels. The automaton with sentinels
(``_native.TextWithSentinels``) parses a text: it reads a sentinel wherever one is possible. So the parsed structure is
that of the tag, and there is no separate parser.

A sentinel follows the beginning and the end of each tag. In parameters in a model's style, a sentinel also follows the
name of an element and the whole element. At these positions the text could not continue otherwise, unless a tag's
beginning is a prefix of another's.

Invariant (native/exclusion/text_with_sentinels.hpp): the bytes of a sentinel are 0xF8 or more; the last is 0xFC or
more, the others are less. If two sentinels are possible at one position, the lesser one is read: so the sentinel of a
value that is not a string precedes that of a string.
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

from tokenfst.automata.expressions.expression import Expr, literal
from tokenfst.automata.json_schema.sets.strings import StringSet

_VALUE, _OPENED, _STRING = 0xF8, 0xF9, 0xFA
_CLOSED, _BEGUN = b"\xfc", b"\xfd"


@dataclass(frozen=True, slots=True)
class TagBegin:
    """The sentinel after the beginning of the tag at ``pointer``."""

    pointer: str


@dataclass(frozen=True, slots=True)
class TagEnd:
    """The sentinel after the end of the tag that was opened last."""


@dataclass(frozen=True, slots=True)
class ElementBegin:
    """The sentinel before an element's value."""


@dataclass(frozen=True, slots=True)
class ElementEnd:
    """The sentinel after an element.

    ``kind``: ``"string"``; ``"array"`` or ``"object"`` if the value is made of elements; or ``"json"``. ``strings``:
    for a string, those that the schema allows; ``None``: any.
    """

    kind: str
    strings: StringSet | None = None

    def allows(self, text: str) -> bool:
        """Whether the schema allows the string."""
        return self.strings is None or any(cell.holds(text) for cell in self.strings)


Sentinel = TagBegin | TagEnd | ElementBegin | ElementEnd
Kinds = dict[tuple[str, str], set[ElementEnd]]
"""The possible values of a schema's parameters, as the sentinels after their elements. The key is the written name and
the text after it without white space; the name is empty for parameters that the schema does not list.
"""


class Sentinels:
    """The sentinels of one tag, and what each of them means."""

    def __init__(self) -> None:
        self.meanings: dict[bytes, Sentinel] = {_CLOSED: TagEnd(), _BEGUN: ElementBegin()}
        self._known: dict[Hashable, Expr] = {}
        self.closed, self.begun = literal(_CLOSED), literal(_BEGUN)
        self.kinds: dict[int, Kinds] = {}
        """The value types of parameters, by the ids of schemas."""
        self._noted: Kinds = {}

    def within(self, schema: object) -> Sentinels:
        """These sentinels. From now on ``begins`` records the values of parameters of ``schema``."""
        self._noted = self.kinds.setdefault(id(schema), {})
        return self

    def begins(self, name: str, after: tuple[str, ...], ways: list[ElementEnd]) -> Expr:
        """The sentinel before an element's value.

        ``name``: the name as it is written. ``after``: the parts of the text after it. ``ways``: the sentinels that may
        follow elements with this name.
        """
        self._noted.setdefault((name, squeezed("".join(after))), set()).update(ways)
        return self.begun

    def opened(self, pointer: str) -> Expr:
        """The sentinel after the beginning of the tag at ``pointer``."""
        return self._new(_OPENED, TagBegin(pointer))

    def ended(self, end: ElementEnd) -> Expr:
        """The sentinel after an element."""
        return self._new(_STRING if end.kind == "string" else _VALUE, end)

    def _new(self, lead: int, meaning: Sentinel) -> Expr:
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
    """A number in digits of two bits; the last digit is marked, so it ends the sentinel."""
    found = [0xFC | number & 3]
    while number := number >> 2:
        found.append(0xF8 | number & 3)
    return bytes(reversed(found))
