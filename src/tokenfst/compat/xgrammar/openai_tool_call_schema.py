"""Tools and the tool choice of OpenAI's Chat Completions, as plain objects instead of pydantic models.

The classes, their fields and defaults are those of xgrammar. ``read_tool`` and ``read_choice`` read the dicts of a
request. They raise ToolError, a ValueError as in xgrammar, for anything else. Fields that no class has are ignored.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import MISSING, asdict, dataclass, fields
from typing import Any, Literal, TypeAlias, TypeVar

from tokenfst.common.arguments import shown
from tokenfst.errors import ToolError

_T = TypeVar("_T", bound="_Said")


@dataclass
class _Said:
    """The fields of a request."""

    def model_dump(self) -> dict[str, Any]:
        """The fields as a dict, including nested objects."""
        return asdict(self)


@dataclass
class FunctionDefinition(_Said):
    """A function, whose arguments a JSON Schema describes."""

    name: str
    description: str | None = None
    parameters: dict[str, Any] | None = None
    strict: bool | None = None


@dataclass
class FunctionToolParam(_Said):
    """A function as a tool."""

    function: FunctionDefinition
    type: Literal["function"] = "function"


@dataclass
class BuiltinToolParam(_Said):
    """A tool of the server: its type, and the name and schema that the model's texts use for it."""

    type: str
    name: str | None = None
    parameters: dict[str, Any] | None = None


ToolParam: TypeAlias = FunctionToolParam | BuiltinToolParam


@dataclass
class NamedToolChoiceFunction(_Said):
    """The name of a function."""

    name: str


@dataclass
class NamedToolChoiceParam(_Said):
    """The one function to call."""

    function: NamedToolChoiceFunction
    type: Literal["function"] = "function"


@dataclass
class BuiltinToolChoiceParam(_Said):
    """The one tool of the server to call, given by its type."""

    type: str
    name: str | None = None


@dataclass
class AllowedToolRef(_Said):
    """One of the tools that may be called."""

    type: str
    function: NamedToolChoiceFunction | None = None
    name: str | None = None


@dataclass
class AllowedToolsParam(_Said):
    """The tools that may be called, and whether one must be."""

    mode: Literal["auto", "required"]
    tools: list[AllowedToolRef]


@dataclass
class AllowedToolChoiceParam(_Said):
    """A choice among some of the tools."""

    allowed_tools: AllowedToolsParam
    type: Literal["allowed_tools"] = "allowed_tools"


ToolChoiceOptionParam: TypeAlias = (
    Literal["none", "auto", "required"]
    | NamedToolChoiceParam
    | AllowedToolChoiceParam
    | BuiltinToolChoiceParam
)


def read_tool(tool: Any, place: str) -> ToolParam:
    """A tool of a request. An object of one of the classes is returned unchanged."""
    if isinstance(tool, (FunctionToolParam, BuiltinToolParam)):
        return tool
    given = _object(tool, place)
    if given.get("type", "function") == "function" and given.get("function") is not None:
        return FunctionToolParam(_function(given["function"], f"{place}/function"))
    made = _read(BuiltinToolParam, given, place)
    if made.parameters is not None:
        _object(made.parameters, f"{place}/parameters")
    return made


def read_choice(choice: Any) -> ToolChoiceOptionParam:
    """The tool choice of a request; None means "auto"."""
    if choice is None:
        return "auto"
    if isinstance(choice, (NamedToolChoiceParam, AllowedToolChoiceParam, BuiltinToolChoiceParam)):
        return choice
    if isinstance(choice, str):
        if choice not in ("none", "auto", "required"):
            raise ToolError("tool_choice", f"must be 'none', 'auto' or 'required', not {choice!r}")
        word: Literal["none", "auto", "required"] = choice  # type: ignore[assignment]  # just looked
        return word
    given = _object(choice, "tool_choice")
    if given.get("type", "function") == "function" and given.get("function") is not None:
        return NamedToolChoiceParam(_name(given["function"], "tool_choice/function"))
    if given.get("type", "allowed_tools") == "allowed_tools" and given.get("allowed_tools") is not None:
        return AllowedToolChoiceParam(_allowed(given["allowed_tools"]))
    return _read(BuiltinToolChoiceParam, given, "tool_choice")


def _allowed(said: Any) -> AllowedToolsParam:
    place = "tool_choice/allowed_tools"
    made = _read(AllowedToolsParam, _object(said, place), place)
    if made.mode not in ("auto", "required"):
        raise ToolError(f"{place}/mode", f"must be 'auto' or 'required', not {shown(made.mode)}")
    if not isinstance(made.tools, list):
        raise ToolError(f"{place}/tools", f"must be a list, not {shown(made.tools)}")
    made.tools = [_reference(each, f"{place}/tools/{k}") for k, each in enumerate(made.tools)]
    return made


def _reference(said: Any, place: str) -> AllowedToolRef:
    if isinstance(said, AllowedToolRef):
        return said
    made = _read(AllowedToolRef, _object(said, place), place)
    if made.function is not None:
        made.function = _name(made.function, f"{place}/function")
    return made


def _function(said: Any, place: str) -> FunctionDefinition:
    if isinstance(said, FunctionDefinition):
        return said
    made = _read(FunctionDefinition, _object(said, place), place)
    if made.parameters is not None:
        _object(made.parameters, f"{place}/parameters")
    return made


def _name(said: Any, place: str) -> NamedToolChoiceFunction:
    return (
        said
        if isinstance(said, NamedToolChoiceFunction)
        else _read(NamedToolChoiceFunction, _object(said, place), place)
    )


def _object(said: Any, place: str) -> dict[str, Any]:
    if hasattr(said, "model_dump"):
        said = said.model_dump()  # models of pydantic
    if not isinstance(said, Mapping):
        raise ToolError(place, f"must be an object, not {shown(said)}")
    return dict(said)


def _read(kind: type[_T], given: dict[str, Any], place: str) -> _T:
    known = {each.name: given[each.name] for each in fields(kind) if each.name in given}
    for each in fields(kind):
        if each.default is MISSING and each.name not in known:
            raise ToolError(place, f"needs the field {each.name!r}")
    for name in ("name", "type", "description"):
        if name in known and not (
            isinstance(known[name], str) or (known[name] is None and kind is not NamedToolChoiceFunction)
        ):
            raise ToolError(f"{place}/{name}", f"must be a text, not {shown(known[name])}")
    return kind(**known)
