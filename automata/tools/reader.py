"""Texts back to calls: by the automaton of the structural tag with signs, piece by piece.

The idea: a text goes through the automaton until it cannot go on; then a sign stands there, or the text is none of the
constraint's. A sign says which tag begins or ends; what stood between two signs is what the tag around is for.
So a call is what the mask means by one, and where a text is cut into pieces makes no difference.

Invariant: signs are taken as soon as text cannot go on and not before, at the end of the text too. Cost: linear; a byte
is one step of the automaton, a sign some calls of Python.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tokenfst._native import ByteAutomaton, SignedText
from tokenfst.automata.languages.constraint import encode
from tokenfst.automata.languages.explanation import Following, following
from tokenfst.automata.structural_tags.signs import Begun, Closed, Ended, Opened, Sign
from tokenfst.automata.structural_tags.xml_styles import STYLES
from tokenfst.automata.tools.definitions import Tool
from tokenfst.automata.tools.elements import Elements
from tokenfst.automata.tools.formats import CallFormat
from tokenfst.automata.tools.python_arguments import read_arguments
from tokenfst.automata.tools.sketches import Role
from tokenfst.errors import ConstraintError, ParseError

_SHOWN = 40
_AROUND = 80
"""Bytes of a text that a message shows before a place."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a text holds. ``arguments``: by their names; of a custom tool ``{"input": text}``. ``raw``: the
    call as it is written, from its beginning to its end."""

    name: str
    arguments: dict[str, Any]
    raw: str


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What a text says: ``content`` and ``reasoning`` are text, without calls and marks."""

    content: str
    reasoning: str
    calls: tuple[ToolCall, ...]


@dataclass(frozen=True, slots=True)
class Signed:
    """A structural tag with signs. ``source``: what it was made from, for messages."""

    automaton: ByteAutomaton
    meanings: Mapping[bytes, Sign]
    roles: Mapping[str, Role]
    tools: tuple[Tool, ...]
    row: CallFormat
    source: str


class ToolParser:
    """Reads a text that comes in pieces: ``feed`` each, then ``finish``. ``constraint.parser()`` makes one; for one
    thread at a time."""

    def __init__(self, signed: Signed) -> None:
        self._signed = signed
        self._walk = SignedText(signed.automaton)
        self._open: list[tuple[Role, Elements | None]] = []
        self._run: list[bytes] = []
        """What was read since the last sign."""
        self._call: list[bytes] | None = None
        """The text of the call that is open, up to the last sign."""
        self._named: tuple[str, dict[str, Any]] | None = None
        self._content: list[bytes] = []
        self._reasoning: list[bytes] = []
        self._calls: list[ToolCall] = []
        self._pieces: list[bytes] = []
        """All that was fed, where an end may be missing."""
        self._tail = b""
        """The last bytes before the piece that is read."""
        self._length = self._taken = 0
        """Bytes before the piece that is read, and before the last sign."""
        self._reply: ToolReply | None = None
        self._failure: tuple[str, int, str] | None = None
        """The first error."""

    def feed(self, piece: str | bytes) -> None:
        """Read on. ParseError where no text of the constraint goes on so; nothing more is read then."""
        data = encode(piece)
        if self._reply is not None:
            raise ConstraintError("this text is finished: make a new parser for another one")
        if data is None:
            raise ConstraintError("the text holds a lone surrogate, which has no UTF-8 encoding")
        self._refuse_again()
        if self._signed.row.stops:
            self._pieces.append(data)
        at = self._read(data)
        if at < len(data):
            raise self._refused(data, at)
        self._length += len(data)
        self._tail = (self._tail + data[-_AROUND:])[-_AROUND:]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that are complete so far."""
        while self._open and self._failure is None and self._walk.next_bytes(b"") == (b"", False):
            self._take(self._walk.sign())
        return tuple(self._calls)

    def finish(self) -> ToolReply:
        """What the whole text says. ParseError if it stops too early."""
        if self._reply is None:
            self._refuse_again()
            self._take_all()
            self._reply = self._said() if self._walk.accepting else self._completed()
        return self._reply

    def _said(self) -> ToolReply:
        content, reasoning = b"".join([*self._content, *self._run]), b"".join(self._reasoning)
        return ToolReply(content.decode(), reasoning.decode(), tuple(self._calls))

    def _completed(self) -> ToolReply:
        """The same with an end that is an end token, and so may be missing."""
        for stop in self._signed.row.stops:
            text = b"".join([*self._pieces, stop.encode()])
            other = ToolParser(self._signed)
            if other._read(text) == len(text):
                other._take_all()
                if other._walk.accepting:
                    return other._said()
        raise self._refused(b"", 0)

    # --- the walk -------------------------------------------------------------------------------------

    def _read(self, data: bytes) -> int:
        """Reads as much as some text goes on with; how much that is."""
        at = 0
        while self._walk.alive:
            end = self._walk.read(data, at)
            if end > at:
                self._run.append(data[at:end])
            at = end
            if at == len(data):
                break
            code = self._walk.sign()
            if not code:
                break
            self._taken = self._length + at
            self._take(code)
        return at

    def _take_all(self) -> None:
        self._taken = self._length
        while code := self._walk.sign():
            self._take(code)

    def _take(self, code: bytes) -> None:
        """What a sign says."""
        sign = self._signed.meanings[code]
        text = b"".join(self._run)
        self._run.clear()
        if self._call is not None:
            self._call.append(text)
        if isinstance(sign, Opened):
            self._begin(self._signed.roles[sign.pointer], text)
        elif isinstance(sign, Closed):
            self._end(text)
        else:
            elements = self._open[-1][1]
            assert elements is not None, "an element stands in the arguments of a call"
            if isinstance(sign, Begun):
                elements.begin(text.decode())
            else:
                self._read_element(elements, text, sign)

    def _begin(self, role: Role, text: bytes) -> None:
        if not self._open:
            self._content.append(text.removesuffix(role.begin))
        if role.kind == "call":
            self._call = [role.begin]
        elements = None
        row = self._signed.row
        if role.tool is not None and row.style in STYLES and not self._is_bare(role.tool):
            elements = Elements(STYLES[row.style], newlines=row.newlines)
        self._open.append((role, elements))

    def _end(self, text: bytes) -> None:
        role, elements = self._open.pop()
        inner = text
        for end in role.ends:
            if end and text.endswith(end):
                inner = text.removesuffix(end)
                break
        if role.kind == "content":
            self._content.append(inner)
        elif role.kind == "reasoning":
            self._reasoning.append(inner)
        if role.tool is not None:
            tool = self._signed.tools[role.tool]
            self._named = tool.name, self._arguments(role.tool, elements, inner)
        if role.kind == "call":
            assert self._call is not None and self._named is not None, "a call has arguments"
            self._calls.append(ToolCall(*self._named, b"".join(self._call).decode()))
            self._call = self._named = None

    # --- arguments ------------------------------------------------------------------------------------

    def _is_bare(self, number: int) -> bool:
        """Whether a tool's input stands as it is."""
        return self._signed.row.bare and self._signed.tools[number].input is not None

    def _arguments(self, number: int, elements: Elements | None, inner: bytes) -> dict[str, Any]:
        if elements is not None:
            return elements.values()
        text = inner.decode()
        if self._is_bare(number):
            return {"input": text}
        read: Callable[[str], Any] = read_arguments if self._signed.row.style == "python" else json.loads
        try:
            found: dict[str, Any] = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError) as error:
            raise self._unreadable(text, error) from error
        return found

    def _read_element(self, elements: Elements, text: bytes, sign: Ended) -> None:
        try:
            elements.end(text.decode(), sign)
        except (ValueError, RecursionError) as error:
            raise self._unreadable(text.decode(), error) from error

    # --- errors ---------------------------------------------------------------------------------------

    def _refuse_again(self) -> None:
        """Raise the first error once more: nothing is read behind it."""
        if self._failure is not None:
            raise ParseError(*self._failure)

    def _refused(self, data: bytes, at: int) -> ParseError:
        """The error of a text that cannot go on with ``data`` at ``at``."""
        before, position = (self._tail + data[:at])[-_AROUND:], self._length + at
        live, ends = self._walk.next_bytes(b"") if self._walk.alive else (b"", False)
        inside = _is_inside(before)
        found = Following(ends, (), live) if inside or not live else following(self._walk.next_bytes)
        what = "leaves it" if at < len(data) else "stops too early,"
        lead = _line(before)
        return self._failed(
            f"not in {self._signed.source}: the text {what} at byte {position:,}: expected {found}\n"
            f"  {lead}{_line(data[at : at + _AROUND])}\n  {' ' * len(lead)}^",
            position,
            str(found),
        )

    def _failed(self, message: str, position: int, expected: str) -> ParseError:
        self._failure = message, position, expected
        return ParseError(message, position, expected)

    def _unreadable(self, text: str, error: Exception) -> ParseError:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        return self._failed(
            f"the arguments {shown!r} are of the constraint, and Python does not read them: {error}",
            self._taken,
            "fewer digits or brackets",
        )


def _is_inside(before: bytes) -> bool:
    """Whether a text ends inside of a character."""
    for size, byte in enumerate(before[:-5:-1], 1):
        if byte >= 0xC0:
            return size < (2 if byte < 0xE0 else 3 if byte < 0xF0 else 4)
        if byte < 0x80:
            break
    return False


def _line(text: bytes) -> str:
    """A piece of text in one line."""
    return text.decode(errors="backslashreplace").replace("\n", "\\n").replace("\r", "\\r")
