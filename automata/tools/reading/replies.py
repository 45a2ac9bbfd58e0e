"""What a text with calls says, and what it is read by."""

from __future__ import annotations

import inspect
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tokenfst._native import ByteAutomaton
from tokenfst.automata.structural_tags.sentinels import Kinds, Opened, Sign
from tokenfst.automata.tools.definitions.definitions import Tool
from tokenfst.automata.tools.definitions.formats import CallFormat
from tokenfst.automata.tools.definitions.sketches import Role
from tokenfst.errors import ConstraintError


@dataclass(frozen=True, slots=True)
class ToolCall:
    """One call that a text holds. ``arguments``: by their names; of a custom tool ``{"input": text}``. ``raw``: the
    call as it is written, from its beginning to its end. ``tool``: what is called."""

    name: str
    arguments: dict[str, Any]
    raw: str
    tool: Tool | None = field(default=None, repr=False, compare=False)

    @property
    def function(self) -> Callable[..., Any] | None:
        """The function or pydantic model that the tool was made from; ``None`` of a definition."""
        return None if self.tool is None else self.tool.target

    def call(self) -> Any:
        """What the function returns for these arguments, read as its annotations have them; of a pydantic model, the
        instance. ConstraintError for a tool that was made from a definition; what the types' validators raise."""
        if self.tool is None or self.tool.target is None or self.tool.read is None:
            raise ConstraintError(
                f"the tool {self.name!r} was made from a definition, which names no function: call yours with "
                "**call.arguments"
            )
        read = self.tool.read(json.dumps(self.arguments, ensure_ascii=False))
        if isinstance(read, inspect.BoundArguments):
            return self.tool.target(*read.args, **read.kwargs)
        return read


@dataclass(frozen=True, slots=True)
class ToolReply:
    """What a text says: ``content`` and ``reasoning`` are text, without calls and marks."""

    content: str
    reasoning: str
    calls: tuple[ToolCall, ...]


@dataclass(slots=True)
class Signed:
    """A structural tag with signs. ``source``: what it was made from, for messages; ``kinds``: of the parameters of
    each tool, which values they have."""

    automaton: ByteAutomaton
    meanings: Mapping[bytes, Sign]
    roles: Mapping[str, Role]
    tools: tuple[Tool, ...]
    row: CallFormat
    source: str
    kinds: Mapping[int, Kinds]
    steps: dict[bytes, Role | Sign] = field(init=False)
    """What each sign means: that of a beginning, what its tag is for."""
    begins: tuple[bytes, ...] = field(init=False)
    """All that tags begin with."""
    openings: tuple[re.Pattern[bytes], int, frozenset[bytes]] = field(init=False)
    """Of what tags begin with: first bytes, the greatest length, and all prefixes but the empty one."""
    ahead: dict[int, tuple[int, int] | None] = field(init=False, default_factory=dict)
    """Of states that were looked at: the tool whose call comes next, and how many bytes before it; ``None``: open."""
    leading: dict[tuple[int, bytes], bool] = field(init=False, default_factory=dict)
    """Of states and the bytes of a tag's beginning in front of them: whether some text goes on with the rest of it."""

    def __post_init__(self) -> None:
        self.steps = {
            code: self.roles[sign.pointer] if isinstance(sign, Opened) else sign
            for code, sign in self.meanings.items()
        }
        self.begins = tuple({role.begin for role in self.roles.values() if role.begin})
        first = re.escape(b"".join({each[:1] for each in self.begins}))
        self.openings = (
            re.compile(b"[" + first + b"]" if first else rb"[^\s\S]"),
            max(map(len, self.begins), default=0),
            frozenset(each[:size] for each in self.begins for size in range(1, len(each) + 1)),
        )
