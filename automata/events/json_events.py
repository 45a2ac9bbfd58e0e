r"""JSON as it arrives (RFC 8259): the events of a document, however its text is cut.

The idea: a state for each kind of place, and regular expressions that take all of a chunk that belongs together. A
character is told when all of it is there: bytes of UTF-8, ``\n``, ``\u00e9``, and both halves of a surrogate pair. A
number is told when something else follows, or the text ends.

Invariant: the events are those of the whole text; only where a string or number is cut into pieces depends on the
chunks. Cost: linear in the text; a few steps for a chunk inside of a string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

from tokenfst.automata.events.event import Event
from tokenfst.errors import ConstraintError

_PLAIN = re.compile(r'[^"\\\x00-\x1f]+')
_BLANKS = re.compile(r"[ \t\r\n]*")
_NUMERAL = re.compile(r"[-+.0-9eE]+")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(\.[0-9]+)?([eE][-+]?[0-9]+)?")
_ESCAPES = {
    "b": "\b",
    "f": "\f",
    "n": "\n",
    "r": "\r",
    "t": "\t",
    '"': '"',
    "\\": "\\",
    "/": "/",
}
_HEX = re.compile(r"[0-9a-fA-F]*")
_CONSTANTS = {"t": ("true", True), "f": ("false", False), "n": ("null", None)}
_State = Callable[["JsonEvents", str, int, list[Event]], int]


class JsonEvents:
    """One document. ``feed`` and ``close`` raise ConstraintError, with the place, for a text that is no JSON. Not for
    several threads at once; of no use after an error. ``path``: where the document stands; ``followed``: what follows
    it is not read. ``read_float``: what a number with a fraction or an exponent is."""

    def __init__(
        self,
        path: tuple[Any, ...] = (),
        *,
        followed: bool = False,
        read_float: Callable[[str], float] = float,
    ) -> None:
        self._state: _State = _value
        self._path, self._followed, self._read_float = path, followed, read_float
        self._above: list[int] = []
        """For each object and array around the place: the next index, -1 of an object."""
        self._held = ""
        """What came and cannot be told yet: an escape that is not whole, and the letters of a number or constant."""
        self._string: list[str] = []
        self._is_key = False
        self._begun_byte = b""
        self._read = 0

    def feed(self, data: str | bytes) -> list[Event]:
        """What the next part of the text decides."""
        if isinstance(data, str) and self._begun_byte:
            self.fail("a character is not whole", 0)
        text = data if isinstance(data, str) else self._decoded(data)
        found: list[Event] = []
        at, end = 0, len(text)
        while at < end:
            at = self._state(self, text, at, found)
            if self._followed and self._state is _nothing:
                break
        self._read += end
        return found

    def close(self) -> list[Event]:
        """What the end of the text decides."""
        found: list[Event] = []
        if self._begun_byte:
            self.fail("a character is not whole", 0)
        if self._state is _number:
            self.number_ends(found, 0)
        if self._state is not _nothing:
            self.fail("the text ends before the document does", 0)
        return found

    @property
    def is_done(self) -> bool:
        """Whether the document is whole; a number alone may go on until ``close``."""
        return self._state is _nothing

    def _decoded(self, data: bytes) -> str:
        data = self._begun_byte + data if self._begun_byte else data
        self._begun_byte = b""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                self.fail("this is no UTF-8", 0)
            self._begun_byte = data[error.start :]
            return data[: error.start].decode()

    def fail(self, what: str, at: int) -> NoReturn:
        """Raise for a place in the part that is being read."""
        raise ConstraintError(f"this is no JSON: at character {self._read + at}, {what}")

    # --- what states do -------------------------------------------------------------------------------

    def begin(self, kind: str, found: list[Event]) -> None:
        """A value begins."""
        found.append(Event("start", self._path, kind))

    def open(self, index: int, found: list[Event]) -> None:
        """An object (index -1) or an array begins."""
        self.begin("array" if index >= 0 else "object", found)
        self._above.append(index)
        self._state = _first_item if index >= 0 else _first_key

    def ended(self, value: Any, found: list[Event]) -> None:
        """A value ends."""
        found.append(Event("end", self._path, value))
        if not self._above:
            self._state = _nothing
            return
        self._path = self._path[:-1]
        self._state = _behind

    def item(self) -> None:
        """An item of an array comes next."""
        index = self._above[-1]
        self._above[-1] = index + 1
        self._path += (index,)
        self._state = _value

    def shut(self, found: list[Event]) -> None:
        """An object or array ends."""
        self._above.pop()
        self.ended(None, found)

    def number_ends(self, found: list[Event], at: int) -> None:
        """What was held is a number."""
        match = _NUMBER.fullmatch(self._held)
        if match is None:
            self.fail(f"{self._held[:40]!r} is no number", at)
        try:
            value = self._read_float(self._held) if match[1] or match[2] else int(self._held)
        except ValueError as error:  # beyond what Python reads
            self.fail(str(error), at)
        self._held = ""
        self.ended(value, found)

    def string_ends(self, found: list[Event]) -> None:
        """A quotation mark closes a string."""
        text = "".join(self._string)
        self._string = []
        if not self._is_key:
            self.ended(text, found)
            return
        self._is_key = False
        found.append(Event("key", self._path, text))
        self._path += (text,)
        self._state = _colon

    def piece(self, text: str, found: list[Event]) -> None:
        """A string goes on."""
        self._string.append(text)
        if not self._is_key:
            found.append(Event("piece", self._path, text))


def _skip(text: str, at: int) -> int:
    return _BLANKS.match(text, at).end()  # type: ignore[union-attr]  # which matches everywhere


def _value(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    at = _skip(text, at)
    if at == len(text):
        return at
    letter = text[at]
    if letter == '"':
        self.begin("string", found)
        self._state = _string
    elif letter == "{":
        self.open(-1, found)
    elif letter == "[":
        self.open(0, found)
    elif letter in _CONSTANTS:
        self.begin("constant", found)
        self._held, self._state = letter, _constant
    elif letter in "-0123456789":
        self.begin("number", found)
        self._state = _number
        return at
    else:
        self.fail(f"{letter!r} begins no value", at)
    return at + 1


def _first_item(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    at = _skip(text, at)
    if at < len(text):
        if text[at] == "]":
            self.shut(found)
            return at + 1
        self.item()
    return at


def _first_key(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    at = _skip(text, at)
    if at < len(text):
        if text[at] == "}":
            self.shut(found)
            return at + 1
        self._state = _key
    return at


def _key(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    at = _skip(text, at)
    if at < len(text):
        if text[at] != '"':
            self.fail(f"{text[at]!r} begins no key", at)
        self._is_key, self._state = True, _string
        return at + 1
    return at


def _colon(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    at = _skip(text, at)
    if at < len(text):
        if text[at] != ":":
            self.fail(f"behind a key stands a colon, not {text[at]!r}", at)
        self._state = _value
        return at + 1
    return at


def _behind(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    """Behind a value, in an object or array."""
    at = _skip(text, at)
    if at == len(text):
        return at
    in_array = self._above[-1] >= 0
    if text[at] == ",":
        if in_array:
            self.item()
        else:
            self._state = _key
    elif text[at] == ("]" if in_array else "}"):
        self.shut(found)
    else:
        self.fail(f"behind a value stands ',' or {']' if in_array else '}'!r}, not {text[at]!r}", at)
    return at + 1


def _nothing(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    at = _skip(text, at)
    if at < len(text):
        self.fail(f"{text[at]!r} stands behind the document", at)
    return at


def _string(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    match = _PLAIN.match(text, at)
    if match is not None:
        self.piece(match[0], found)
        at = match.end()
        if at == len(text):
            return at
    letter = text[at]
    if letter == '"':
        self._state = _string  # unless what follows says otherwise
        self.string_ends(found)
    elif letter == "\\":
        self._held, self._state = "\\", _escape
    else:
        self.fail(f"the control character {letter!r} must be escaped", at)
    return at + 1


def _escape(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    r"""Inside of an escape; ``_held`` has what of it is there, and before it the first half of a surrogate pair."""
    cut = self._held.rfind("\\")
    half, own = self._held[:cut], self._held[cut:]
    if own == "\\":
        if text[at] != "u":
            if text[at] not in _ESCAPES:
                self.fail(f"there is no escape \\{text[at]}", at)
            self.piece(_unpaired(half) + _ESCAPES[text[at]], found)
            self._held, self._state = "", _string
            return at + 1
        self._held += "u"
        return at + 1
    end = min(_HEX.match(text, at).end(), at + 6 - len(own))  # type: ignore[union-attr]  # which matches everywhere
    self._held, own = self._held + text[at:end], own + text[at:end]
    if len(own) < 6:
        if end < len(text):
            self.fail("\\u takes four hexadecimal digits", end)
        return end
    code = int(own[2:], 16)
    if half and 0xDC00 <= code <= 0xDFFF:
        pair = 0x10000 + ((int(half[2:], 16) - 0xD800) << 10) + code - 0xDC00
        self.piece(chr(pair), found)
    elif 0xD800 <= code <= 0xDBFF:
        if half:
            self.piece(_unpaired(half), found)
        self._held, self._state = own, _half
        return end
    else:
        self.piece(_unpaired(half) + chr(code), found)
    self._held, self._state = "", _string
    return end


def _half(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    """Behind the first half of a surrogate pair, which is held."""
    if text[at] == "\\":
        self._held += "\\"
        self._state = _escape
        return at + 1
    self.piece(_unpaired(self._held), found)
    self._held, self._state = "", _string
    return at


def _unpaired(escape: str) -> str:
    """What the first half of a surrogate pair is without the second one, as ``json.loads`` has it."""
    return chr(int(escape[2:], 16)) if escape else ""


def _number(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    match = _NUMERAL.match(text, at)
    if match is not None:
        self._held += match[0]
        found.append(Event("piece", self._path, match[0]))
        at = match.end()
    if at < len(text):
        self.number_ends(found, at)
    return at


def _constant(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    word, value = _CONSTANTS[self._held[0]]
    self._held += text[at]
    if not word.startswith(self._held):
        self.fail(f"{self._held!r} begins no constant", at)
    if self._held == word:
        self._held = ""
        self.ended(value, found)
    return at + 1
