"""Text between sentinels, reported in pieces as soon as it cannot become a part of a delimiter.

``Delimiters`` computes how many of the last bytes may begin a delimiter: only bytes after which some text of the
constraint continues with the rest of the delimiter. ``GrowingText`` holds these back, and the bytes of an incomplete
character. ``ArgumentsText`` reports the parts of arguments instead of their text.
"""

from __future__ import annotations

from codecs import getincrementaldecoder
from collections.abc import Callable, Iterable
from typing import Any

from tokenfst._native import TextWithSentinels
from tokenfst.automata.events.event import Event, event
from tokenfst.automata.events.json_events import JsonEvents
from tokenfst.automata.structural_tags.sentinels import ElementEnd, Sentinel, TagEnd
from tokenfst.automata.tools.definitions.sketches import Role
from tokenfst.automata.tools.reading.replies import TagWithSentinels
from tokenfst.automata.tools.reading.values import PythonText, finite
from tokenfst.errors import ConstraintError

_decoder = getincrementaldecoder("utf-8")
Held = Callable[[bytes], int]
"""A function from a text to the number of its last bytes that may be the beginning of a delimiter."""


class Delimiters:
    """Computes how many of the last bytes of a text may be the beginning of a delimiter, at the current state of
    ``walk``.
    """

    def __init__(self, tag: TagWithSentinels, walk: TextWithSentinels) -> None:
        self._tag, self._walk = tag, walk

    def openings(self, text: bytes) -> int:
        """The number of last bytes that may be the beginning of a tag's beginning."""
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
        """The number of last bytes that are a prefix of some tag's beginning, whether a tag may begin there or not."""
        first, longest, prefixes = self._tag.openings
        found = (len(text) - match.start() for match in first.finditer(text, max(0, len(text) - longest)))
        return next((size for size in found if text[len(text) - size :] in prefixes), 0)

    def _leads(self, rest: bytes, begin: bytes) -> bool:
        sentinel = self._tag.steps.get(self._walk.sentinel_after(rest))
        return isinstance(sentinel, Role) and sentinel.begin == begin

    def closings(self, ends: Iterable[bytes]) -> Held:
        """The function (``Held``) for the ends of a tag."""
        return self._ending([*filter(None, ends)], TagEnd)

    def stopping(self, delimiter: bytes) -> Held:
        """The function (``Held``) for the end of an element."""
        return self._ending([delimiter], ElementEnd)

    def _ending(self, ends: list[bytes], kind: type[Sentinel]) -> Held:
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


class GrowingText:
    """A text that is reported in pieces. ``newlines``: without a line break at its beginning and at its end."""

    def __init__(
        self,
        found: list[Event],
        kind: Any,
        path: tuple[Any, ...],
        delimiters: Held,
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
        """Read further text without reporting it yet."""
        self.held += data

    def settle(self) -> int:
        """Report the text that cannot be a part of a delimiter. Returns the number of last bytes that may be."""
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
        """Report the rest of the text, which ends with ``delimiter``, without the delimiter."""
        assert self.held.endswith(delimiter), "a delimiter is held back"
        self.held = self.held[: len(self.held) - len(delimiter)]
        self._told(len(self.held) - (self._newlines and self.held.endswith(b"\n")))

    def _told(self, size: int) -> None:
        data, self.held = self.held[:size], self.held[size:]
        if self._newlines and self._is_first and data:
            data, self._is_first = data.removeprefix(b"\n"), False
        self.tell(data)

    def tell(self, data: bytes) -> None:
        """Report whole characters, and hold back the bytes of an incomplete one."""
        if self._begun:
            data = self._begun + data
        try:
            text, self._begun = data.decode(), b""
        except UnicodeDecodeError as error:  # at the end: the automaton reads only UTF-8
            text, self._begun = data[: error.start].decode(), data[error.start :]
        if text:
            self._found.append(event(Event, (self._kind, self._path, text)))


class ArgumentsText:
    """The text of arguments in JSON or as Python literals, of which events are reported; text after them is ignored."""

    def __init__(self, found: list[Event], path: tuple[Any, ...], *, python: bool = False) -> None:
        events = JsonEvents(path, followed=True, read_float=finite)
        self._read = events.read
        self.read = None if python else events.read
        """The function that reads a piece of JSON; ``None`` if pieces are converted from Python first."""
        self._python = PythonText() if python else None
        self._decoder = _decoder()
        self._found = found
        self.is_over = False

    def feed(self, data: bytes) -> None:
        """Read further text, and report its events."""
        if self.is_over:
            return
        try:
            self._read(
                data if self._python is None else self._python.feed(self._decoder.decode(data)), self._found
            )
        except ConstraintError:  # a number that Python cannot read; the reader reports the error
            self.is_over = True
