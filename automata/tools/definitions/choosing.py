"""``Chosen``: the tools that may be called, and whether one must be, from both forms of OpenAI's ``tool_choice``."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

from tokenfst.automata.tools.definitions.definitions import Tool
from tokenfst.common.arguments import shown
from tokenfst.errors import ToolError


class Chosen(NamedTuple):
    """What a tool choice means.

    ``mode``: ``"none"``: no call; ``"auto"``: calls are optional; ``"required"``: at least one call; ``"forced"``:
    exactly one call, of the one tool in ``tools``.
    """

    mode: Literal["none", "auto", "required", "forced"]
    tools: tuple[int, ...]
    """Indices of the tools that may be called."""


def read_choice(choice: Any, tools: tuple[Tool, ...], place: str) -> Chosen:
    """The meaning of ``choice`` among ``tools``. ``place``: its position, for errors. Raises ToolError."""
    numbers = tuple(range(len(tools)))
    if hasattr(choice, "model_dump"):
        choice = choice.model_dump(exclude_none=True)
    if choice == "none":
        return Chosen("none", ())
    if choice is None or choice == "auto":
        return Chosen("auto" if tools else "none", numbers)
    if choice == "required":
        return _required(numbers, place)
    if isinstance(choice, str):
        return Chosen("forced", (_number(choice, tools, place, "auto, none, required"),))
    if not isinstance(choice, Mapping):
        raise ToolError(
            place,
            f"must be 'auto', 'none', 'required', the name of a tool, or an object such as "
            f"{{'type': 'function', 'name': ...}}, not {shown(choice)}",
        )
    kind = choice.get("type")
    if kind == "allowed_tools":
        return _allowed(choice, tools, place)
    if kind not in ("function", "custom"):
        raise ToolError(
            f"{place}/type", f"must be 'function', 'custom' or 'allowed_tools', not {shown(kind)}"
        )
    return Chosen("forced", (_referred(choice, tools, place),))


def _required(numbers: tuple[int, ...], place: str) -> Chosen:
    if not numbers:
        raise ToolError(place, "a call is required, but there is no tool: give a tool, or choose 'auto'")
    return Chosen("required", numbers)


def _allowed(choice: Mapping[str, Any], tools: tuple[Tool, ...], place: str) -> Chosen:
    if isinstance(choice.get("allowed_tools"), Mapping):  # Chat Completions
        choice, place = choice["allowed_tools"], f"{place}/allowed_tools"
    mode, listed = choice.get("mode", "auto"), choice.get("tools")
    if mode not in ("auto", "required"):
        raise ToolError(f"{place}/mode", f"must be 'auto' or 'required', not {shown(mode)}")
    if not isinstance(listed, list | tuple):
        raise ToolError(f"{place}/tools", f"must be a list of references to tools, not {shown(listed)}")
    found = {_referred(each, tools, f"{place}/tools/{number}") for number, each in enumerate(listed)}
    numbers = tuple(sorted(found))
    if mode == "required":
        return _required(numbers, f"{place}/tools")
    return Chosen("auto" if numbers else "none", numbers)


def _referred(reference: Any, tools: tuple[Tool, ...], place: str) -> int:
    """The tool of a reference ``{"type": "function", "name": ...}``; the name may also be in a nested object."""
    if not isinstance(reference, Mapping):
        raise ToolError(place, f"must be an object, not {shown(reference)}")
    inner = reference.get(str(reference.get("type")))
    if isinstance(inner, Mapping):
        reference, place = inner, f"{place}/{reference['type']}"
    if "name" not in reference:
        raise ToolError(place, "the field 'name' is missing: name the tool")
    return _number(reference["name"], tools, f"{place}/name", "")


def _number(name: Any, tools: tuple[Tool, ...], place: str, others: str) -> int:
    names = [tool.name for tool in tools]
    if name in names:
        return names.index(name)
    near = difflib.get_close_matches(str(name), names, 3)
    there = ", ".join(filter(None, (others, ", ".join(map(repr, names)))))
    hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {there or 'none'}"
    raise ToolError(place, f"unknown tool {shown(name)}: {hint}")
