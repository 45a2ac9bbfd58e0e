r"""Incremental JSON parsing (RFC 8259): the events of a document, however its text is divided into chunks.

There is a state for each kind of position, and regular expressions consume as much of a chunk as possible. A character
is reported when it is complete: bytes of UTF-8, ``\n``, ``\u00e9``, and both halves of a surrogate pair. A number is
reported when something else follows, or the text ends.

Invariant: the events are those of the complete text; only the division of strings and numbers into pieces depends on
the chunks. Cost: linear in the text; a few steps for a chunk inside a string.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, NoReturn

from tokenfst.automata.events.event import Event, event
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
    """The parser of one document.

    ``feed`` and ``close`` raise ConstraintError, with the position, for invalid JSON; the parser is unusable after an
    error. Not thread-safe. ``path``: the path of the document itself; ``followed``: ignore text after the document.
    ``read_float``: converts numbers with a fraction or an exponent.
    """

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
        """Input that cannot be reported yet: an incomplete escape, and the characters of a number or constant."""
        self._string: list[str] = []
        self._is_key = False
        self._begun_byte = b""
        self._read = 0

    def feed(self, data: str | bytes) -> list[Event]:
        """The events that the next part of the text determines."""
        found: list[Event] = []
        self.read(data, found)
        return found

    def read(self, data: str | bytes, found: list[Event]) -> None:
        """Append the events that the next part of the text determines to ``found``."""
        state = self._state
        if state is _nothing and self._followed:
            return
        if isinstance(data, str):
            if self._begun_byte:
                self.fail("a character is not whole", 0)
            text = data
        else:
            text = self._decoded(data)
        at, end = 0, len(text)
        if state is _string and '"' not in text and "\\" not in text and text.isprintable() and end:
            self._string.append(text)
            if not self._is_key:
                found.append(event(Event, ("piece", self._path, text)))
            self._read += end
            return
        while at < end:
            at = state(self, text, at, found)
            state = self._state
            if state is _nothing and self._followed:
                break
        self._read += end

    def close(self) -> list[Event]:
        """The events that the end of the text determines."""
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
        """Whether the document is complete; a top-level number may continue until ``close``."""
        return self._state is _nothing

    def _decoded(self, data: bytes) -> str:
        if self._begun_byte:
            data, self._begun_byte = self._begun_byte + data, b""
        try:
            return data.decode()
        except UnicodeDecodeError as error:
            if error.reason != "unexpected end of data":
                self.fail("this is no UTF-8", 0)
            self._begun_byte = data[error.start :]
            return data[: error.start].decode()

    def fail(self, what: str, at: int) -> NoReturn:
        """Raise for a position in the current part."""
        raise ConstraintError(f"this is no JSON: at character {self._read + at}, {what}")

    # --- what states do -------------------------------------------------------------------------------

    def begin(self, kind: str, found: list[Event]) -> None:
        """A value begins."""
        found.append(event(Event, ("start", self._path, kind)))

    def open(self, index: int, found: list[Event]) -> None:
        """An object (index -1) or an array begins."""
        self.begin("array" if index >= 0 else "object", found)
        self._above.append(index)
        self._state = _first_item if index >= 0 else _first_key

    def ended(self, value: Any, found: list[Event]) -> None:
        """A value ends."""
        found.append(event(Event, ("end", self._path, value)))
        if not self._above:
            self._state = _nothing
            return
        self._path = self._path[:-1]
        self._state = _after_document

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
        """The stored input is a number."""
        match = _NUMBER.fullmatch(self._held)
        if match is None:
            self.fail(f"{self._held[:40]!r} is not a number", at)
        try:
            value = self._read_float(self._held) if match[1] or match[2] else int(self._held)
        except ValueError as error:  # beyond what Python reads
            self.fail(str(error), at)
        self._held = ""
        self.ended(value, found)

    def string_ends(self, found: list[Event]) -> None:
        """A quotation mark closes a string."""
        pieces = self._string
        text = pieces[0] if len(pieces) == 1 else "".join(pieces)
        pieces.clear()
        if self._is_key:
            self._is_key = False
            found.append(event(Event, ("key", self._path, text)))
            self._path += (text,)
            self._state = _colon
        else:
            self.ended(text, found)

    def piece(self, text: str, found: list[Event]) -> None:
        """Continue a string."""
        self._string.append(text)
        if not self._is_key:
            found.append(event(Event, ("piece", self._path, text)))


def _skip(text: str, at: int) -> int:
    """After optional white space."""
    return _BLANKS.match(text, at).end() if text[at] in " \t\r\n" else at  # type: ignore[union-attr]  # which matches


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
            self.fail(f"after a key must come a colon, not {text[at]!r}", at)
        if text.startswith(' "', at + 1):
            self.begin("string", found)
            self._state = _string
            return at + 3
        self._state = _value
        return at + 1
    return at


def _after_document(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    """After a value, in an object or array."""
    at = _skip(text, at)
    if at == len(text):
        return at
    in_array = self._above[-1] >= 0
    if text[at] == ",":
        if in_array:
            self.item()
        elif text.startswith(' "', at + 1):
            self._is_key, self._state = True, _string
            return at + 3
        else:
            self._state = _key
    elif text[at] == ("]" if in_array else "}"):
        self.shut(found)
    else:
        self.fail(f"after a value must come ',' or {']' if in_array else '}'!r}, not {text[at]!r}", at)
    return at + 1


def _nothing(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    at = _skip(text, at)
    if at < len(text):
        self.fail(f"{text[at]!r} comes after the document", at)
    return at


def _string(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    letter = text[at]
    if letter != '"':
        match = _PLAIN.match(text, at)
        if match is not None:
            self.piece(match[0], found)
            at = match.end()
            if at == len(text):
                return at
            letter = text[at]
    if letter == '"':
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
    """After the first half of a surrogate pair, which is stored."""
    if text[at] == "\\":
        self._held += "\\"
        self._state = _escape
        return at + 1
    self.piece(_unpaired(self._held), found)
    self._held, self._state = "", _string
    return at


def _unpaired(escape: str) -> str:
    """The character for the first half of a surrogate pair without the second one, as ``json.loads`` has it."""
    return chr(int(escape[2:], 16)) if escape else ""


def _number(self: JsonEvents, text: str, at: int, found: list[Event]) -> int:
    match = _NUMERAL.match(text, at)
    if match is not None:
        self._held += match[0]
        found.append(event(Event, ("piece", self._path, match[0])))
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
