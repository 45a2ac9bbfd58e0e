"""``Tool``: definitions of tools, from both forms of OpenAI's definitions, Python functions, and pydantic models.

A definition is validated completely: an unknown field is rejected, with its JSON pointer in the list of tools.
"""

from __future__ import annotations

import difflib
import inspect
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from tokenfst.automata.json_schema.python_types import read_type
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.automata.regex.translate import regex
from tokenfst.automata.tools.definitions.places import placed
from tokenfst.budget import Budget
from tokenfst.common.arguments import shown
from tokenfst.errors import EmptyLanguageError, PatternError, ToolError, UnsupportedSchemaError

_NAME = re.compile(r"[A-Za-z0-9_.\-]{1,256}")
_OPEN = {"type": "object", "additionalProperties": True}
_MORE = frozenset(
    {
        "additionalProperties",
        "unevaluatedProperties",
        "patternProperties",
        "required",
        "$ref",
        "allOf",
        "anyOf",
        "oneOf",
    }
)
"""Keywords that constrain members. A schema with empty ``properties`` and without these keywords allows no members
here.
"""
_EMPTY: dict[str, Any] = {"type": "object", "properties": {}, "additionalProperties": False}


@dataclass(frozen=True, slots=True)
class Tool:
    """One tool.

    ``place``: the position of its name, for errors (for a function or model, its own position). ``schema``: the schema
    of its arguments, which are an object; ``pointer``: the position of that schema. A custom tool has one text as its
    argument, and ``input`` is the constraint of that text. ``target``: the function or model that the tool was made
    from, if any; ``read``: converts the JSON text of arguments to the values that the target takes.
    """

    name: str
    place: str
    description: str
    schema: dict[str, Any]
    pointer: str
    input: Constraint | None = None
    target: Callable[..., Any] | None = None
    read: Callable[[str | bytes], Any] | None = None


def read_tools(given: Iterable[Any], root: str, budget: Budget | None) -> tuple[Tool, ...]:
    """The tools of a list of definitions, functions and models. ``root``: the list's position, for errors. Raises
    ToolError.
    """
    found: list[Tool] = []
    places: dict[str, str] = {}
    for number, each in enumerate(given):
        pointer = f"{root}/{number}"
        tool = _read(each, pointer, budget)
        if tool.name in places:
            raise ToolError(
                pointer,
                f"the name {tool.name!r} is also the name of the tool at {places[tool.name]}: rename one",
            )
        places[tool.name] = pointer
        found.append(tool)
    return tuple(found)


def _read(each: Any, pointer: str, budget: Budget | None) -> Tool:
    if hasattr(each, "model_dump") and not isinstance(each, type):
        each = each.model_dump(exclude_none=True)
    if isinstance(each, Mapping):
        return _definition(dict(each), pointer, budget)
    if callable(each) and isinstance(getattr(each, "__name__", None), str):
        return _python(each, pointer)
    raise ToolError(
        pointer, f"a tool must be a definition (a dict), a function or a pydantic model, not {shown(each)}"
    )


def _python(target: Any, pointer: str) -> Tool:
    """The tool of a function or a model."""
    with placed(pointer):
        typed = read_type(target)
        if typed.refused:
            raise UnsupportedSchemaError(*typed.refused[0])
    schema = _of_objects(typed.schema, pointer)
    name = _name(target.__name__, pointer)
    doc = inspect.getdoc(target) or ""
    return Tool(name, pointer, doc, schema, pointer, target=target, read=typed.parse)


def _definition(fields: dict[Any, Any], pointer: str, budget: Budget | None) -> Tool:
    kind = fields.pop("type", None)
    if kind not in ("function", "custom"):
        if kind is None:
            raise ToolError(pointer, "the field 'type' is missing: write 'function' or 'custom'")
        raise ToolError(
            f"{pointer}/type",
            f"must be 'function' or 'custom', not {shown(kind)}; the model's text does not call tools that a provider "
            "runs itself: remove it",
        )
    if kind in fields:  # Chat Completions; the Responses API has all fields in one object
        inner, rest = fields.pop(kind), fields
        if not isinstance(inner, Mapping):
            raise ToolError(f"{pointer}/{kind}", f"must be an object, not {shown(inner)}")
        refuse_others(rest, (), pointer, kind)
        fields, pointer = dict(inner), f"{pointer}/{kind}"
    if "name" not in fields:
        raise ToolError(pointer, "the field 'name' is missing")
    named = f"{pointer}/name"
    name = _name(fields.pop("name"), named)
    description = fields.pop("description", None) or ""
    if not isinstance(description, str):
        raise ToolError(f"{pointer}/description", f"must be a string, not {shown(description)}")
    if kind == "custom":
        input = _custom(fields.pop("format", None), f"{pointer}/format", budget)
        refuse_others(fields, ("name", "description", "format"), pointer, kind)
        return Tool(name, named, description, {}, f"{pointer}/format", input)
    place = f"{pointer}/parameters"
    schema = fields.pop("parameters", None)
    strict = fields.pop("strict", None)
    check_flag(strict, f"{pointer}/strict")
    refuse_others(fields, ("name", "description", "parameters", "strict"), pointer, kind)
    if strict is False:
        return Tool(name, named, description, dict(_OPEN), place)
    schema = dict(_EMPTY) if schema is None else _of_objects(schema, place)
    return Tool(name, named, description, schema, place)


def check_flag(value: Any, place: str) -> None:
    """Raise ToolError unless a value is true, false or null. The numbers 0 and 1 are not accepted."""
    if value is not None and not isinstance(value, bool):
        raise ToolError(place, f"must be true, false or null, not {shown(value)}")


def refuse_others(
    left: Mapping[Any, Any], known: tuple[str, ...], pointer: str, kind: str, what: str = "a tool"
) -> None:
    """Raise ToolError for the first unknown field of ``what``."""
    for name in left:
        near = difflib.get_close_matches(str(name), known, 1)
        there = ", ".join(map(repr, known or ("type", kind)))
        hint = f"did you mean {near[0]!r}?" if near else f"there are {there}"
        raise ToolError(f"{pointer}/{name}", f"unknown field of {what} of type {kind!r}: {hint}")


def _name(name: Any, pointer: str) -> str:
    if not isinstance(name, str):
        raise ToolError(pointer, f"a name must be a string, not {shown(name)}")
    if not _NAME.fullmatch(name):
        raise ToolError(
            pointer,
            f"the name {name[:60]!r} is not valid: it must have 1 to 256 ASCII letters, digits, '_', '-' and '.'",
        )
    return name


def _of_objects(schema: Any, pointer: str) -> dict[str, Any]:
    """The schema, restricted to objects: arguments have names."""
    if schema is True:
        return dict(_OPEN)
    if not isinstance(schema, Mapping):
        raise ToolError(pointer, f"the schema of arguments must be an object, not {shown(schema)}")
    kinds = schema.get("type", "object")
    if kinds != "object" and not (isinstance(kinds, list) and "object" in kinds):
        _refuse_type(kinds, pointer)
    closed = (
        {"additionalProperties": False}
        if schema.get("properties") == {} and not _MORE & schema.keys()
        else {}
    )
    return {**schema, "type": "object", **closed}


def _refuse_type(kinds: Any, pointer: str) -> NoReturn:
    raise ToolError(
        f"{pointer}/type",
        f"must be 'object', not {shown(kinds)}, since arguments have names: write 'object', and the "
        "arguments as its properties",
    )


def _custom(given: Any, pointer: str, budget: Budget | None) -> Constraint:
    """The constraint of a custom tool's input."""
    if given is None:
        return Language.any_text()
    if not isinstance(given, Mapping):
        raise ToolError(pointer, f"must be an object, not {shown(given)}")
    fields = dict(given)
    kind = fields.pop("type", None)
    if kind == "text":
        refuse_others(fields, ("type",), pointer, "text")
        return Language.any_text()
    if kind != "grammar":
        raise ToolError(f"{pointer}/type", f"must be 'text' or 'grammar', not {shown(kind)}")
    if isinstance(fields.get("grammar"), Mapping):  # Chat Completions
        fields, pointer = dict(fields["grammar"]), f"{pointer}/grammar"
    syntax, definition = fields.pop("syntax", None), fields.pop("definition", None)
    refuse_others(fields, ("syntax", "definition"), pointer, "grammar")
    if not isinstance(definition, str):
        raise ToolError(f"{pointer}/definition", f"must be a string, not {shown(definition)}")
    try:
        if syntax == "lark":
            return lark_grammar(definition, budget=budget)
        if syntax == "regex":
            return regex(definition, budget=budget)
    except PatternError as error:
        raise ToolError(f"{pointer}/definition", str(error)) from error
    except EmptyLanguageError as error:
        raise EmptyLanguageError(f"{pointer}/definition: {error}") from error
    raise ToolError(f"{pointer}/syntax", f"must be 'lark' or 'regex', not {shown(syntax)}")
