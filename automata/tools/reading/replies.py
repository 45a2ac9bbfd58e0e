"""``ToolCall`` and ``ToolReply``: the results of parsing a text with tool calls; and the automaton that parses it."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tokenfst._native import ByteAutomaton
from tokenfst.automata.structural_tags.sentinels import Kinds, Sentinel, TagBegin
from tokenfst.automata.tools.definitions.definitions import Tool
from tokenfst.automata.tools.definitions.formats import CallFormat
from tokenfst.automata.tools.definitions.sketches import Role
from tokenfst.common.notebook import card
from tokenfst.errors import ConstraintError


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call in a text.

    ``name``: the tool's name. ``arguments``: values by name; for a custom tool ``{"input": text}``. ``raw``: the text
    of the call, from its beginning to its end. ``tool``: the called tool.
    """

    name: str
    arguments: dict[str, Any]
    raw: str
    tool: Tool | None = field(default=None, repr=False, compare=False)

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function or pydantic model that the tool was made from; ``None`` if it was made from a definition."""
        return None if self.tool is None else self.tool.target

    def call(self) -> Any:
        """Call the tool's function with these arguments, validated by its annotations, and return its result.

        For a pydantic model, return the instance. Raises ConstraintError for a tool that was made from a definition,
        and the errors of the types' validators.
        """
        if self.tool is None or self.tool.target is None or self.tool.read is None:
            raise ConstraintError(
                f"the tool {self.name!r} was made from a definition without a function: call your function with "
                "**call.arguments"
            )
        read = self.tool.read(json.dumps(self.arguments, ensure_ascii=False))
        if isinstance(read, inspect.BoundArguments):
            return self.tool.target(*read.args, **read.kwargs)
        return read

    def _repr_html_(self) -> str:
        """The display in notebooks: the name, and an argument in each row."""
        written = ((name, json.dumps(value, ensure_ascii=False)) for name, value in self.arguments.items())
        return card("ToolCall", [("tool", self.name), *written])


@dataclass(frozen=True, slots=True)
class ToolReply:
    """The contents of a text. ``content`` and ``reasoning``: text without calls and delimiters. ``calls``: the calls in
    order.
    """

    content: str
    reasoning: str
    calls: tuple[ToolCall, ...]

    def _repr_html_(self) -> str:
        """The display in notebooks: the text beside the calls, and a card for each call."""
        texts = [(name, text) for name in ("content", "reasoning") if (text := getattr(self, name))]
        cards = "".join(call._repr_html_() for call in self.calls)
        return f"<div>{card('ToolReply', [*texts, ('calls', len(self.calls))])}{cards}</div>"


@dataclass(slots=True)
class TagWithSentinels:
    """A structural tag with sentinels: the automaton that parses texts, and what its sentinels mean.

    ``source``: its origin, for messages. ``kinds``: for each tool, by its index, the value types of its parameters.
    """

    automaton: ByteAutomaton
    meanings: Mapping[bytes, Sentinel]
    roles: Mapping[str, Role]
    tools: tuple[Tool, ...]
    row: CallFormat
    source: str
    kinds: Mapping[int, Kinds]
    steps: dict[bytes, Role | Sentinel] = field(init=False)
    """The meaning of each sentinel: for a begin sentinel, the role of its tag."""
    begins: tuple[bytes, ...] = field(init=False)
    """All different texts with which tags begin."""
    openings: tuple[re.Pattern[bytes], int, frozenset[bytes]] = field(init=False)
    """Of the texts with which tags begin: a pattern of their first bytes, the greatest length, and all non-empty
    prefixes.
    """
    ahead: dict[int, tuple[int, int] | None] = field(init=False, default_factory=dict)
    """A cache by state: the index of the tool whose call comes next, and 1 if the call has already begun there,
    otherwise 0; ``None`` if the tool is not determined.
    """
    leading: dict[tuple[int, bytes], bool] = field(init=False, default_factory=dict)
    """A cache by state and the last bytes before it, which begin a tag's beginning: whether some text continues with
    the rest of that beginning.
    """

    def __post_init__(self) -> None:
        self.steps = {
            code: self.roles[sentinel.pointer] if isinstance(sentinel, TagBegin) else sentinel
            for code, sentinel in self.meanings.items()
        }
        self.begins = tuple({role.begin for role in self.roles.values() if role.begin})
        first = re.escape(b"".join({each[:1] for each in self.begins}))
        self.openings = (
            re.compile(b"[" + first + b"]" if first else rb"[^\s\S]"),
            max(map(len, self.begins), default=0),
            frozenset(each[:size] for each in self.begins for size in range(1, len(each) + 1)),
        )
