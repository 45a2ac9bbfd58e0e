"""Events of a text with calls while it arrives: pieces of content and reasoning, calls, and their arguments.

The reader reports text and sentinels in order. Text is reported once it cannot become a part of a delimiter: last bytes
that begin a delimiter are held back if some word continues with the rest of it. A call is reported as begun, with its
name, when the automaton leads only to sentinels of one tool, each after fewer bytes than its tag's beginning has.

Invariant: every event is true of all texts of the constraint that continue the text so far. The division of the text
into pieces changes only how strings are divided into events. Cost: linear; one look-ahead for each position inside of a
call's beginning, cached by the automaton's state.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

from tokenfst._native import TextWithSentinels
from tokenfst.automata.events.event import Event
from tokenfst.automata.events.json_events import JsonEvents
from tokenfst.automata.structural_tags.sentinels import ElementEnd, squeezed
from tokenfst.automata.tools.definitions.sketches import Role
from tokenfst.automata.tools.reading.elements import Elements
from tokenfst.automata.tools.reading.growing_text import ArgumentsText, Delimiters, GrowingText, Held
from tokenfst.automata.tools.reading.replies import TagWithSentinels, ToolCall

_LEADS = {"json string": b'{"input": "', "python string": b"input="}
_ENDS = {"json string": b"}", "python string": b")"}
"""The bytes before the content of a string (``_LEADS``) and after it that make it an object of arguments."""
_MOST_SENTINELS = 8
"""Maximum number of different beginnings of one tool's calls that a look-ahead considers; no format has more than
three.
"""


class CallEvents:
    """The events of one text. The reader calls a method for each piece of text and each sentinel.

    ``found``: the events that were not taken yet.
    """

    def __init__(self, tag: TagWithSentinels, walk: TextWithSentinels) -> None:
        self._tag, self._walk = tag, walk
        self.found: list[Event] = []
        self._roles: list[Role] = []
        self._index = 0
        self._is_told = False
        """Whether the begin event of the open or next call was reported."""
        self._delimiters = Delimiters(tag, walk)
        self._first = tag.openings[0]
        self._plain: GrowingText = self._content()
        """The content outside of tags."""
        self._text: GrowingText | ArgumentsText | None = self._plain
        """What further text is fed to; ``None`` if it is not reported."""
        self.document: Callable[[bytes, list[Event]], None] | None = None
        """Reports the events of a piece of text without sentinels (arguments in JSON). It gets the piece and the list
        of events. If it raises ConstraintError, ``over`` is called."""
        self._run = b""
        """In a frame: the last bytes since the last sentinel, as far as they may begin a tag."""
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
        """Read further text without reporting it yet; ``settle`` reports what is decided."""
        if self._text is not None:
            self._text.feed(data)
        elif not self._is_told:
            self._run += data

    def more(self, data: bytes) -> None:
        """Read a complete piece without a sentinel, and report what is decided: ``text`` and ``settle`` in one step."""
        text = self._text
        if isinstance(text, ArgumentsText):
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
        """Report nothing more of the open arguments."""
        self.document = None
        if isinstance(self._text, ArgumentsText):
            self._text.is_over = True

    def settle(self) -> None:
        """Report what is decided at the end of a piece."""
        text = self._text
        if not self._roles and self._is_told:
            return  # the text ends inside of the call's beginning
        held = text.settle() if text is not None and text.__class__ is GrowingText else 0
        if not self._is_told and (self._may_begin() if self._roles else held):
            tool = self._next_tool()
            if tool is not None:
                self._begin_call(tool)

    def tag_begins(self, role: Role) -> None:
        """Process the sentinel after the beginning of a tag with this role."""
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
        """Process the sentinel after the end of a tag.

        ``inner``: the text between the last sentinel and the tag's end. ``call``: the call that ends here, if any.
        """
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
        """Process the end of the text."""
        if not self._roles:
            self._end_text(b"")

    # --- text -----------------------------------------------------------------------------------------

    def _tell(self, kind: Any, path: tuple[Any, ...], value: Any) -> None:
        self.found.append(Event(kind, path, value))

    def _growing(
        self, kind: Any, path: tuple[Any, ...], delimiters: Held, *, newlines: bool = False
    ) -> GrowingText:
        return GrowingText(self.found, kind, path, delimiters, newlines=newlines)

    def _content(self) -> GrowingText:
        return self._growing("content", (), self._delimiters.openings)

    def _end_text(self, delimiter: bytes) -> None:
        if isinstance(self._text, GrowingText):
            self._text.end(delimiter)

    def _ends_with(self, delimiter: bytes) -> bool:
        return isinstance(self._text, GrowingText) and self._text.held.endswith(delimiter)

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
            self._text = ArgumentsText(self.found, place, python=role.form in ("python", "python string"))
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
            assert isinstance(self._text, ArgumentsText)
            self._text.feed(_ENDS.get(role.form or "", b""))
            return
        if role.form == "text":
            self._end_text(next((end for end in role.ends if end and self._ends_with(end)), b""))
            self._tell("end", (*place, "input"), inner.decode())
        self._tell("end", place, None)

    # --- elements -------------------------------------------------------------------------------------

    def element_begins(self, elements: Elements) -> None:
        """Process the sentinel before an element's value."""
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
            self._text = ArgumentsText(self.found, path)
        elif kind == "string":
            self._tell("start", path, kind)
            style = elements.style
            delimiter = (style.stop + style.close.format(element.written)).encode()
            delimiters = self._delimiters.stopping(delimiter)
            self._text = self._growing("piece", path, delimiters, newlines=elements.newlines)
            ended.delimiter = delimiter

    def element_ends(self, sentinel: ElementEnd, value: Any) -> None:
        """Process the sentinel after an element with this value."""
        ended = self._values.pop()
        if ended.kind == "string":
            assert isinstance(self._text, GrowingText)
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


def _whole(path: tuple[Any, ...], value: Any) -> list[Event]:
    """The events of a value that is reported as a whole."""
    events = JsonEvents(path)
    return events.feed(json.dumps(value)) + events.close()
