"""Events of a text with calls while it arrives: pieces of content and reasoning, calls, and their arguments.

The reader reports text and sentinels in order. Text is reported once it cannot become a part of a marker: last bytes
that begin a marker are held back if some word continues with the rest of it. A call is reported as begun, with its
name, when the automaton leads only to sentinels of one tool, each after fewer bytes than its tag's beginning has.

Invariant: every event is true of all texts of the constraint that continue the text so far. The division of the text
into pieces changes only how strings are divided into events. Cost: linear; one look-ahead for each position inside of a
call's beginning, cached by the automaton's state.
"""

from __future__ import annotations

import json
from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable
from typing import Any

from tokenfst._native import TextWithSentinels
from tokenfst.automata.events.event import Event, event
from tokenfst.automata.events.json_events import JsonEvents
from tokenfst.automata.structural_tags.sentinels import ElementEnd, Sentinel, TagEnd, squeezed
from tokenfst.automata.tools.definitions.sketches import Role
from tokenfst.automata.tools.reading.elements import Elements
from tokenfst.automata.tools.reading.replies import TagWithSentinels, ToolCall
from tokenfst.automata.tools.reading.values import PythonText, finite
from tokenfst.errors import ConstraintError

_decoder = getincrementaldecoder("utf-8")
_LEADS = {"json string": b'{"input": "', "python string": b"input="}
_ENDS = {"json string": b"}", "python string": b")"}
"""The bytes that complete an object after the content of a string."""
_MOST_SENTINELS = 8
"""Maximum number of different beginnings of one tool's calls; no format has more than three."""


class CallEvents:
    """The events of one text; ``found`` has those that were not taken yet."""

    def __init__(self, tag: TagWithSentinels, walk: TextWithSentinels) -> None:
        self._tag, self._walk = tag, walk
        self.found: list[Event] = []
        self._roles: list[Role] = []
        self._index = 0
        self._is_told = False
        """Whether the begin event of the open or next call was reported."""
        self._delimiters = _Delimiters(tag, walk)
        self._first = tag.openings[0]
        self._plain: _Growing = self._content()
        """The content outside of tags."""
        self._text: _Text | None = self._plain
        """The kind of event for further text."""
        self.document: Callable[[bytes, list[Event]], None] | None = None
        """Reports the events of a piece of text without sentinels (arguments in JSON). It gets the piece and the list
        of events. If it raises ConstraintError, ``over`` is called."""
        self._run = b""
        """In a frame: the last bytes since the last sentinel that may begin a tag."""
        self._values: list[_Value] = []
        """The open elements, and the object around them."""

    def take(self) -> list[Event]:
        """Return the events that were not taken yet, and forget them."""
        if not self.found:
            return []
        found = [*self.found]
        self.found.clear()
        return found

    # --- what the reader comes to -----------------------------------------------------------------------

    def text(self, data: bytes) -> None:
        """Take further text; ``settle`` then reports what is decided."""
        if self._text is not None:
            self._text.feed(data)
        elif not self._is_told:
            self._run += data

    def more(self, data: bytes) -> None:
        """Further text without a sentinel: ``text`` and ``settle``."""
        text = self._text
        if isinstance(text, _Document):
            text.feed(data)
            if self._is_told:
                return
        elif text is self._plain and not text.held and self._first.search(data) is None and not self._is_told:
            text.tell(data)  # it contains no beginning of a marker
            return
        elif text is not None:
            text.held += data
        elif not self._is_told:
            self._run += data
        self.settle()

    def over(self) -> None:
        """End the events of the open arguments: nothing more of them is reported."""
        self.document = None
        if isinstance(self._text, _Document):
            self._text.is_over = True

    def settle(self) -> None:
        """The end of a piece of the text: report what is decided."""
        text = self._text
        if not self._roles and self._is_told:
            return  # the text ends inside of the call's beginning
        held = text.settle() if text is not None and text.__class__ is _Growing else 0
        if not self._is_told and (self._may_begin() if self._roles else held):
            tool = self._next_tool()
            if tool is not None:
                self._begin_call(tool)

    def tag_begins(self, role: Role) -> None:
        """The beginning of a tag was read."""
        self.document = None
        if not self._roles:
            self._end_text(role.begin)
        self._roles.append(role)
        self._run, self._text = b"", None
        if role.kind == "call" and role.tool is not None and not self._is_told:
            self._begin_call(role.tool)
        if role.kind in ("content", "reasoning"):
            self._text = self._growing(role.kind, (), self._delimiters.closings(role.ends))
        elif role.form is not None:
            self._begin_arguments(role)

    def tag_ends(self, role: Role, inner: bytes, call: ToolCall | None) -> None:
        """The end of a tag was read. ``inner``: the text before it, since the last sentinel."""
        self.document = None
        self._roles.pop()
        if role.kind in ("content", "reasoning"):
            self._end_text(next((end for end in role.ends if end and self._ends_with(end)), b""))
        elif role.form is not None:
            self._end_arguments(role, inner)
        if call is not None:
            self._tell("tool call ended", (self._index,), call)
            self._index += 1
            self._is_told = False
        self._run = b""
        self._text = None
        if not self._roles:
            self._text = self._plain = self._content()

    def close(self) -> None:
        """The end of the text."""
        if not self._roles:
            self._end_text(b"")

    # --- text -----------------------------------------------------------------------------------------

    def _tell(self, kind: Any, path: tuple[Any, ...], value: Any) -> None:
        self.found.append(Event(kind, path, value))

    def _growing(
        self, kind: Any, path: tuple[Any, ...], delimiters: _Held, *, newlines: bool = False
    ) -> _Growing:
        return _Growing(self.found, kind, path, delimiters, newlines=newlines)

    def _content(self) -> _Growing:
        return self._growing("content", (), self._delimiters.openings)

    def _end_text(self, delimiter: bytes) -> None:
        if isinstance(self._text, _Growing):
            self._text.end(delimiter)

    def _ends_with(self, delimiter: bytes) -> bool:
        return isinstance(self._text, _Growing) and self._text.held.endswith(delimiter)

    # --- calls ----------------------------------------------------------------------------------------

    def _may_begin(self) -> bool:
        """Whether a call could have begun: one is open, or the text ends with the first bytes of a tag."""
        kind = self._roles[-1].kind
        if kind == "frame":
            self._run = self._run[len(self._run) - self._delimiters.begun(self._run) :]
        return kind == "call" or (kind == "frame" and self._run != b"")

    def _next_tool(self) -> int | None:
        """The tool of the call that has begun, if it is decided."""
        state, known = self._walk.state, self._tag.ahead
        found = known.get(state, ()) if state >= 0 else ()
        if found == ():
            found = self._look_ahead()
            if state >= 0:
                known[state] = found
        if not found:
            return None
        tool, inside = found
        return tool if inside or (self._roles and self._roles[-1].kind == "call") else None

    def _look_ahead(self) -> tuple[int, int] | None:
        """The tool that all possible next sentinels belong to, and whether its call began before this position on every
        path.
        """
        sentinels, fixed, only = self._walk.ahead(_MOST_SENTINELS)
        roles = [(self._tag.steps[code], distance) for code, distance in sentinels]
        tools = {role.tool if isinstance(role, Role) else None for role, _ in roles}
        if not only or len(tools) != 1 or None in tools:
            return None
        inside = fixed and all(
            isinstance(role, Role) and distance < len(role.begin) - role.lead for role, distance in roles
        )
        (tool,) = tools
        assert tool is not None
        return tool, int(inside)

    def _begin_call(self, tool: int) -> None:
        self._is_told = True
        self._tell("tool call begun", (self._index,), self._tag.tools[tool].name)

    # --- arguments ------------------------------------------------------------------------------------

    def _begin_arguments(self, role: Role) -> None:
        assert role.tool is not None, "arguments are those of a tool"
        if not self._is_told:
            self._begin_call(role.tool)
        place = (self._index,)
        if role.form not in ("elements", "text"):
            self._text = _Document(self.found, place, python=role.form in ("python", "python string"))
            self._text.feed(_LEADS.get(role.form or "", b""))
            if role.form == "python string":
                self._text.feed(role.ends[0])
            self.document = self._text.read
            return
        self._tell("start", place, "object")
        self._values = [_Value(place, "object")]
        if role.form == "text":
            self._tell("key", place, "input")
            self._tell("start", (*place, "input"), "string")
            self._text = self._growing("piece", (*place, "input"), self._delimiters.closings(role.ends))

    def _end_arguments(self, role: Role, inner: bytes) -> None:
        place = (self._index,)
        if role.form not in ("elements", "text"):
            assert isinstance(self._text, _Document)
            self._text.feed(_ENDS.get(role.form or "", b""))
            return
        if role.form == "text":
            self._end_text(next((end for end in role.ends if end and self._ends_with(end)), b""))
            self._tell("end", (*place, "input"), inner.decode())
        self._tell("end", place, None)

    # --- elements -------------------------------------------------------------------------------------

    def element_begins(self, elements: Elements) -> None:
        """The beginning of an element's value."""
        around, element = self._values[-1], elements.last
        self._text = None
        if around.kind is None:
            self._values.append(_Value((), None))
            return
        if around.kind == "array":
            path = (*around.path, around.count)
            around.count += 1
        else:
            path = (*around.path, element.name)
            self._tell("key", around.path, element.name)
        kind = self._kind(elements, element.written, element.after)
        self._values.append(ended := _Value(path, kind))
        if kind in ("array", "object"):
            self._tell("start", path, kind)
        elif kind == "json":
            self._text = _Document(self.found, path)
        elif kind == "string":
            self._tell("start", path, kind)
            style = elements.style
            delimiter = (style.stop + style.close.format(element.written)).encode()
            delimiters = self._delimiters.stopping(delimiter)
            self._text = self._growing("piece", path, delimiters, newlines=elements.newlines)
            ended.delimiter = delimiter

    def element_ends(self, sentinel: ElementEnd, value: Any) -> None:
        """The end of an element."""
        ended = self._values.pop()
        if ended.kind == "string":
            assert isinstance(self._text, _Growing)
            self._text.end(ended.delimiter)
            self._tell("end", ended.path, value)
        elif ended.kind in ("array", "object"):
            self._tell("end", ended.path, None)
        elif ended.kind is None and ended.path:
            self.found += _whole(ended.path, value)
        self._text = None

    def _kind(self, elements: Elements, written: str, after: str) -> str | None:
        """The type of an element's value, if the schema allows only one; otherwise the end decides it."""
        tool = self._roles[-1].tool
        assert tool is not None
        noted, closing = self._tag.kinds[tool], squeezed(after)
        ends = noted.get((written, closing), set()) | noted.get(("", closing), set())
        kinds = {end.kind for end in ends}
        if len(kinds) != 1:
            return None
        (kind,) = kinds
        padded = elements.style.padded and any(end.strings is not None for end in ends)
        return None if kind == "string" and padded else kind


class _Value:
    """An open value. ``kind``: its type, ``None`` while undecided. ``count``: the number of items of an array.
    ``delimiter``: the end of a string.
    """

    __slots__ = ("count", "delimiter", "kind", "path")

    def __init__(self, path: tuple[Any, ...], kind: str | None) -> None:
        self.path, self.kind, self.count, self.delimiter = path, kind, 0, b""


class _Delimiters:
    """Computes how many of the last bytes of a text may be the beginning of a marker."""

    def __init__(self, tag: TagWithSentinels, walk: TextWithSentinels) -> None:
        self._tag, self._walk = tag, walk

    def openings(self, text: bytes) -> int:
        """For the beginnings of tags."""
        first, longest, prefixes = self._tag.openings
        match = first.search(text, max(0, len(text) - longest))
        while match is not None:
            rest = text[match.start() :]
            if rest in prefixes and self._begins_tag(rest):
                return len(rest)
            match = first.search(text, match.start() + 1)
        return 0

    def _begins_tag(self, rest: bytes) -> bool:
        """Whether some text continues with the rest of a tag's beginning after these bytes."""
        state, known = self._walk.state, self._tag.leading
        found = known.get((state, rest)) if state >= 0 else None
        if found is None:
            found = any(
                begin.startswith(rest) and self._leads(begin[len(rest) :], begin)
                for begin in self._tag.begins
            )
            if state >= 0:
                known[state, rest] = found
        return found

    def begun(self, text: bytes) -> int:
        """For the beginnings of tags, at any position of the text."""
        first, longest, prefixes = self._tag.openings
        found = (len(text) - match.start() for match in first.finditer(text, max(0, len(text) - longest)))
        return next((size for size in found if text[len(text) - size :] in prefixes), 0)

    def _leads(self, rest: bytes, begin: bytes) -> bool:
        sentinel = self._tag.steps.get(self._walk.sentinel_after(rest))
        return isinstance(sentinel, Role) and sentinel.begin == begin

    def closings(self, ends: Iterable[bytes]) -> _Held:
        """For the ends of a tag."""
        return self._ending([*filter(None, ends)], TagEnd)

    def stopping(self, delimiter: bytes) -> _Held:
        """For the end of an element."""
        return self._ending([delimiter], ElementEnd)

    def _ending(self, ends: list[bytes], kind: type[Sentinel]) -> _Held:
        def held(text: bytes) -> int:
            for size in range(min(max(map(len, ends), default=0), len(text)), 0, -1):
                last = text[-size:]
                for end in ends:
                    if end.startswith(last):
                        sentinel = self._tag.steps.get(self._walk.sentinel_after(end[size:]))
                        if isinstance(sentinel, kind):
                            return size
            return 0

        return held


_Held = Callable[[bytes], int]


class _Growing:
    """A text that is reported in pieces. ``newlines``: without a line break at its beginning and end."""

    def __init__(
        self,
        found: list[Event],
        kind: Any,
        path: tuple[Any, ...],
        delimiters: _Held,
        *,
        newlines: bool = False,
    ) -> None:
        self._found, self._kind, self._path = found, kind, path
        self._delimiters, self._newlines = delimiters, newlines
        self._begun = b""
        """The bytes of an incomplete character."""
        self._is_first = True
        self.held = b""

    def feed(self, data: bytes) -> None:
        """Further text."""
        self.held += data

    def settle(self) -> int:
        """Report the text that cannot be a part of a marker; return the number of bytes that may be."""
        if not self.held:
            return 0
        held = self._delimiters(self.held)
        size = len(self.held) - held
        if not held and not self._newlines and not self._begun:
            data, self.held = self.held, b""
            self.tell(data)
            return 0
        if self._newlines and self.held[:size].endswith(b"\n") and not (self._is_first and size == 1):
            size -= 1
        if size:
            self._told(size)
        return held

    def end(self, delimiter: bytes) -> None:
        """The text ended with this marker."""
        assert self.held.endswith(delimiter), "a delimiter is held back"
        self.held = self.held[: len(self.held) - len(delimiter)]
        self._told(len(self.held) - (self._newlines and self.held.endswith(b"\n")))

    def _told(self, size: int) -> None:
        data, self.held = self.held[:size], self.held[size:]
        if self._newlines and self._is_first and data:
            data, self._is_first = data.removeprefix(b"\n"), False
        self.tell(data)

    def tell(self, data: bytes) -> None:
        """Report whole characters; the bytes of an incomplete one are held back."""
        if self._begun:
            data = self._begun + data
        try:
            text, self._begun = data.decode(), b""
        except UnicodeDecodeError as error:  # at the end: the automaton reads only UTF-8
            text, self._begun = data[: error.start].decode(), data[error.start :]
        if text:
            self._found.append(event(Event, (self._kind, self._path, text)))


class _Document:
    """Arguments in JSON or as Python literals; the text after them is not reported."""

    def __init__(self, found: list[Event], path: tuple[Any, ...], *, python: bool = False) -> None:
        events = JsonEvents(path, followed=True, read_float=finite)
        self._read = events.read
        self.read = None if python else events.read
        """The reader of a piece, if no conversion is needed."""
        self._python = PythonText() if python else None
        self._decoder = _decoder()
        self._found = found
        self.is_over = False

    def feed(self, data: bytes) -> None:
        """Further text."""
        if self.is_over:
            return
        try:
            self._read(
                data if self._python is None else self._python.feed(self._decoder.decode(data)), self._found
            )
        except ConstraintError:  # a number that Python cannot read; the reader reports the error
            self.is_over = True


_Text = _Growing | _Document


def _whole(path: tuple[Any, ...], value: Any) -> list[Event]:
    """The events of a value that is reported as a whole."""
    events = JsonEvents(path)
    return events.feed(json.dumps(value)) + events.close()
