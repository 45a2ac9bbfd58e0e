"""One call of a function out of several, as JSON: ``{"name": "book", "arguments": {"hotel": "Sea View"}}``.

The text is laid out as ``json.dumps`` lays it out; the arguments are those of ``json_schema(function)``, so a call that
was read back can be made.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from tokenfst.arguments import shown
from tokenfst.automata.expressions.expression import concat, literal, union
from tokenfst.automata.grammars.assembly import Assembly
from tokenfst.automata.json_schema.door import SchemaGrammar, SchemaLanguage, json_schema
from tokenfst.decoding.generation.said import Said, any_spelling
from tokenfst.decoding.generation.targets import Target
from tokenfst.errors import ArgumentTypeError, ArgumentValueError

_END = b"}"
_OWN = "#/$defs/"


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call that the model wrote: the function and its bound arguments. ``call()`` makes it."""

    function: Callable[..., Any]
    arguments: inspect.BoundArguments

    @property
    def name(self) -> str:
        """The function's name, as in the text."""
        return self.function.__name__

    def call(self) -> Any:
        """What the function returns for these arguments."""
        return self.function(*self.arguments.args, **self.arguments.kwargs)


def tool_target(functions: Iterable[Callable[..., Any]]) -> Target:
    """One call of any of the functions. Raises ArgumentValueError for none, and for two of one name, and what
    ``json_schema`` raises for parameters that have no JSON."""
    tools: dict[str, tuple[Callable[..., Any], SchemaLanguage | SchemaGrammar]] = {}
    for place, function in enumerate(functions):
        name = getattr(function, "__name__", None)
        if not callable(function) or isinstance(function, type) or not isinstance(name, str):
            raise ArgumentTypeError(f"tools[{place}] must be a function with a name, not {shown(function)}")
        if name in tools:
            raise ArgumentValueError(
                f"tools[{place}] has the name {name!r} of another tool: a call could mean either"
            )
        tools[name] = function, json_schema(function)
    if not tools:
        raise ArgumentValueError("tools is empty: give at least one function")
    assembly = Assembly()
    calls = [
        concat(literal(_beginning(name)), assembly.expr(made), literal(_END))
        for name, (_, made) in tools.items()
    ]
    constraint = assembly.finish(union(*calls), f"a call of {', '.join(tools)}")

    def parse(text: bytes) -> ToolCall:
        text = text.strip()
        call = json.loads(text)
        function, made = tools[call["name"]]
        beginning = _beginning(call["name"])
        laid_out = text.startswith(beginning)  # else a server has laid it out
        inside = text[len(beginning) : -len(_END)] if laid_out else json.dumps(call["arguments"]).encode()
        return ToolCall(function, made.parse(inside))

    schema = _schema_of({name: made.document.schema for name, (_, made) in tools.items()})
    return Target(constraint, parse, Said("json", schema, lambda: any_spelling(schema)))


def _schema_of(arguments: dict[str, Any]) -> dict[str, Any]:
    """The calls of all tools, for a server. What a tool's schema defines has the tool's number in its name."""
    calls, definitions = [], {}
    for number, (name, schema) in enumerate(arguments.items()):
        moved = _moved(schema, f"#/$defs/{number}.")
        for key, value in moved.pop("$defs", {}).items():
            definitions[f"{number}.{key}"] = value
        calls.append(
            {
                "type": "object",
                "properties": {"name": {"const": name}, "arguments": moved},
                "required": ["name", "arguments"],
                "additionalProperties": False,
            }
        )
    return {"anyOf": calls, **({"$defs": definitions} if definitions else {})}


def _moved(schema: Any, to: str) -> Any:
    """A schema whose references into its own definitions lead elsewhere."""
    if isinstance(schema, list):
        return [_moved(each, to) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: to + value.removeprefix(_OWN)
        if key == "$ref" and isinstance(value, str) and value.startswith(_OWN)
        else _moved(value, to)
        for key, value in schema.items()
    }


def _beginning(name: str) -> bytes:
    return f'{{"name": {json.dumps(name, ensure_ascii=False)}, "arguments": '.encode()
