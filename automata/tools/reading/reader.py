"""``ToolParser``: incremental parsing of texts to tool calls, by the automaton of the structural tag with sentinels.

The parser runs the text through the automaton until no transition matches. Then a sentinel must follow, or the text
does not satisfy the constraint. A sentinel says which tag begins or ends, and the text between two sentinels is parsed
according to the role of the enclosing tag. So the parser and the mask agree on what a call is, and it makes no
difference how a text is cut into pieces.

Invariant: a sentinel is taken as soon as the text cannot continue and not before, or at the end of a piece if nothing
else can follow. Cost: linear; one automaton step for each byte, and a few Python calls for each sentinel.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NoReturn

from tokenfst._native import TextWithSentinels
from tokenfst.automata.languages.display.explanation import Following, following
from tokenfst.automata.languages.operands import encode
from tokenfst.automata.structural_tags.documents.xml_styles import STYLES
from tokenfst.automata.structural_tags.sentinels import ElementBegin, ElementEnd, TagEnd
from tokenfst.automata.tools.definitions.definitions import Tool
from tokenfst.automata.tools.definitions.sketches import Role
from tokenfst.automata.tools.reading.call_events import CallEvents
from tokenfst.automata.tools.reading.elements import Elements
from tokenfst.automata.tools.reading.replies import TagWithSentinels, ToolCall, ToolReply
from tokenfst.automata.tools.reading.values import read_json, read_python
from tokenfst.errors import ConstraintError, ParseError

_SHOWN = 40
_AROUND = 80
"""The number of bytes of context that a message shows before a position, and after it."""


class ToolParser:
    """An incremental parser: call ``feed`` with each piece of the text, then ``finish``.

    ``constraint.parser()`` creates it. Not thread-safe. ``events``: the recorded events; ``None`` unless ``tells`` is
    set.
    """

    def __init__(self, tag: TagWithSentinels, *, tells: bool = False) -> None:
        self._tag = tag
        self._walk = TextWithSentinels(tag.automaton)
        self._read_on = self._walk.read_on
        self._keeps = bool(tag.row.stops)
        self.events = CallEvents(tag, self._walk) if tells else None
        self._open: list[tuple[Role, Elements | None]] = []
        self._run: list[bytes] = []
        """The text since the last sentinel."""
        self._call: list[bytes] | None = None
        """The text of the open call, up to the last sentinel."""
        self._named: tuple[Tool, dict[str, Any]] | None = None
        self._content: list[bytes] = []
        self._reasoning: list[bytes] = []
        self._calls: list[ToolCall] = []
        self._pieces: list[bytes] = []
        """All pieces, kept only if an end may be missing at the end of the text."""
        self._before = b""
        """The last bytes of the text up to the end of the last piece that had a sentinel."""
        self._fresh = 0
        """The number of pieces at the beginning of ``_run`` that ``_before`` covers; those after them came later."""
        self._length = self._taken = 0
        """The number of bytes before the current piece, and before the last sentinel."""
        self._reply: ToolReply | None = None
        self._failure: tuple[str, int, str] | None = None
        """The first error."""
        self._is_over = False
        """Whether reading has ended: the text is finished, or there was an error."""

    def feed(self, piece: str | bytes) -> None:
        """Parse the next piece of the text.

        Raises ParseError if no text of the constraint continues in this way, or if a complete call has arguments that
        Python cannot represent. After an error every call raises the same error again. Raises ConstraintError for a
        lone surrogate, and after ``finish``.
        """
        data = piece if piece.__class__ is bytes else encode(piece, "reading calls", "the text")
        if data is None or self._is_over:
            self._refuse_to_read(data)
        if self._keeps:
            self._pieces.append(data)
        events, size = self.events, len(data)
        read = self._read_on(data)
        if read is None:
            self._run.append(data)
            self._length += size
            if events is not None:
                document = events.document
                if document is None:
                    events.more(data)
                else:
                    try:
                        document(data, events.found)
                    except ConstraintError:  # a number that Python cannot read has its own error
                        events.over()
            return
        sentinels, length = read
        before = self._tail
        self._take_sentinels(sentinels, data, length)
        if length < size:
            raise self._refused(data, length, before)
        self._length += length
        self._before, self._fresh = (before + data)[-_AROUND:], len(self._run)
        if events is not None:
            events.settle()

    def _refuse_to_read(self, data: bytes | None) -> NoReturn:
        """Raise the error for a piece that cannot be read."""
        if self._reply is not None:
            raise ConstraintError("this text is finished: make a new parser for another text")
        self._refuse_again()
        assert data is None, "one of three reasons"
        raise ConstraintError("the text contains a lone surrogate, which UTF-8 cannot encode")

    @property
    def _tail(self) -> bytes:
        """The last bytes before the current piece."""
        last: list[bytes] = []
        missing = _AROUND
        for piece in reversed(self._run[self._fresh :]):
            if missing <= 0:
                break
            last.append(piece[-missing:])
            missing -= len(piece)
        return b"".join([self._before, *reversed(last)])[-_AROUND:]

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        """The calls that are complete so far. Raises no errors: ``feed`` has already parsed every complete call."""
        return tuple(self._calls)

    def finish(self) -> ToolReply:
        """The contents of the complete text. Raises ParseError if the text ends too early."""
        if self._reply is None:
            self._refuse_again()
            self._take_all()
            if not self._walk.accepting:
                self._complete()
            self._reply = self._said()
            self._is_over = True
            if self.events is not None:
                self.events.close()
        return self._reply

    def _said(self) -> ToolReply:
        content, reasoning = b"".join([*self._content, *self._run]), b"".join(self._reasoning)
        return ToolReply(content.decode(), reasoning.decode(), tuple(self._calls))

    def _complete(self) -> None:
        """Read an end that may be missing, since it is an end token."""
        for stop in map(str.encode, self._tag.row.stops):
            other = ToolParser(self._tag)
            text = b"".join([*self._pieces, stop])
            if other._read(text) == len(text):
                other._take_all()
                if other._walk.accepting:
                    self._read(stop)
                    self._take_all()
                    return
        raise self._refused(b"", 0, self._tail)

    # --- the walk -------------------------------------------------------------------------------------

    def _read(self, data: bytes) -> int:
        """Read as many bytes as some text continues with; return their number."""
        sentinels, length = self._walk.read_on(data) or ([], len(data))
        self._take_sentinels(sentinels, data, length)
        return length

    def _take_sentinels(self, sentinels: Sequence[tuple[int, bytes]], data: bytes, length: int) -> None:
        """Process sentinels and the text between them."""
        at = 0
        for place, code in sentinels:
            self._taken = self._length + place
            self._take(code, data[at:place])
            at = place
        if at < length:
            rest = data[at:length]
            self._run.append(rest)
            if self.events is not None:
                self.events.text(rest)

    def _take_all(self) -> None:
        self._taken = self._length
        while code := self._walk.take_sentinel():
            self._take(code, b"")

    def _take(self, code: bytes, text: bytes) -> None:
        """Process one sentinel. ``text``: the text since the last one that is not in ``_run``."""
        events = self.events
        if events is not None and text:
            events.text(text)
        if self._run:
            text = b"".join([*self._run, text])
            self._run.clear()
        if self._call is not None:
            self._call.append(text)
        sentinel = self._tag.steps[code]
        if isinstance(sentinel, Role):
            self._begin(sentinel, text)
        elif isinstance(sentinel, TagEnd):
            self._end(text)
        else:
            elements = self._open[-1][1]
            assert elements is not None, "an element stands in the arguments of a call"
            if isinstance(sentinel, ElementBegin):
                elements.begin(text.decode())
                if events is not None:
                    events.element_begins(elements)
            else:
                assert isinstance(sentinel, ElementEnd)
                self._read_element(elements, text, sentinel)

    def _begin(self, role: Role, text: bytes) -> None:
        if not self._open:
            self._content.append(text.removesuffix(role.begin))
        if role.kind == "call":
            self._call = [role.begin]
        elements = None
        if role.form == "elements":
            row = self._tag.row
            elements = Elements(STYLES[row.style], newlines=row.newlines)
        if self.events is not None:
            self.events.tag_begins(role)
        self._open.append((role, elements))

    def _end(self, text: bytes) -> None:
        role, elements = self._open.pop()
        inner = text
        for end in role.ends:
            if end and text.endswith(end):
                inner = text[: -len(end)]
                break
        if role.kind == "content":
            self._content.append(inner)
        elif role.kind == "reasoning":
            self._reasoning.append(inner)
        if role.form is not None:
            assert role.tool is not None, "arguments are those of a tool"
            arguments = self._arguments(role, inner) if elements is None else elements.values()
            self._named = self._tag.tools[role.tool], arguments
        call = None
        if role.kind == "call":
            assert self._call is not None and self._named is not None, "a call has arguments"
            tool, arguments = self._named
            call = ToolCall(tool.name, arguments, b"".join(self._call).decode(), tool)
            self._calls.append(call)
            self._call = self._named = None
        if self.events is not None:
            self.events.tag_ends(role, inner, call)

    # --- arguments ------------------------------------------------------------------------------------

    def _arguments(self, role: Role, inner: bytes) -> dict[str, Any]:
        """The arguments of a call, parsed from their text."""
        text = inner.decode()
        try:
            match role.form:
                case "json":
                    found: dict[str, Any] = read_json(text)
                    return found
                case "python":
                    return read_python(text)
                case "json string":
                    return {"input": read_json(f'"{text}"')}
                case "python string":
                    quote = role.ends[0].decode()
                    return read_python(f"input={quote}{text}{quote}")
        except (ValueError, RecursionError) as error:
            raise self._unreadable(text, error) from error
        return {"input": text}

    def _read_element(self, elements: Elements, text: bytes, sentinel: ElementEnd) -> None:
        try:
            value = elements.end(text.decode(), sentinel)
        except (ValueError, RecursionError) as error:
            raise self._unreadable(text.decode(), error) from error
        if self.events is not None:
            self.events.element_ends(sentinel, value)

    # --- errors ---------------------------------------------------------------------------------------

    def _refuse_again(self) -> None:
        """Raise the first error again, if there was one."""
        if self._failure is not None:
            raise ParseError(*self._failure)

    def _refused(self, data: bytes, at: int, tail: bytes) -> ParseError:
        """The error of a text that cannot continue with ``data``, after ``tail``, at ``at``."""
        before, position = (tail + data[:at])[-_AROUND:], self._length + at
        live, ends = self._walk.next_bytes(b"") if self._walk.alive else (b"", False)
        inside = _is_inside(before)
        found = Following(ends, (), live) if inside or not live else following(self._walk.next_bytes)
        what = "leaves it" if at < len(data) else "stops too early,"
        lead = _line(before)
        return self._failed(
            f"not in {self._tag.source}: the text {what} at byte {position:,}: expected {found}\n"
            f"  {lead}{_line(data[at : at + _AROUND])}\n  {' ' * len(lead)}^",
            position,
            str(found),
        )

    def _failed(self, message: str, position: int, expected: str) -> ParseError:
        self._failure, self._is_over = (message, position, expected), True
        return ParseError(message, position, expected)

    def _unreadable(self, text: str, error: Exception) -> ParseError:
        shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…"
        return self._failed(
            f"the arguments {shown!r} are of the constraint, and Python does not read them: {error}",
            self._taken,
            "fewer digits or brackets, and numbers in the range of a float",
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
    """A piece of text on one line."""
    return text.decode(errors="backslashreplace").replace("\n", "\\n").replace("\r", "\\r")
