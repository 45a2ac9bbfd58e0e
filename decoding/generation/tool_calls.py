"""One call of one of several tools, in a model's own format: ``Generator.tools``.

``tokenfst.tools`` defines what a call is, how it is written and how it is parsed. A server gets the calls as a JSON
Schema, and may use any layout.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

from tokenfst.automata.json_schema.documents.source import LISTS, ONE, TABLES
from tokenfst.automata.tools.constraints import ToolConstraint
from tokenfst.automata.tools.reading.replies import ToolCall
from tokenfst.automata.tools.tools import tools
from tokenfst.decoding.generation.server_targets import ServerConstraint, any_spelling
from tokenfst.decoding.generation.targets import Target
from tokenfst.errors import ParseError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_OWN = "#/$defs/"


def tool_target(functions: Iterable[Any], format: str, vocabulary: Vocabulary | None) -> Target:
    """One call of any of the tools. Raises what ``tools`` raises."""
    constraint = tools(functions, format=format, choice="required", parallel=False, vocabulary=vocabulary)
    if format != "json" or any(tool.input is not None for tool in constraint.tools):
        return Target(constraint, lambda text: constraint.parse(text).calls[0])
    schema = _schema_of({tool.name: tool.schema for tool in constraint.tools})
    for_server = ServerConstraint("json", schema, lambda: any_spelling(schema))
    return Target(constraint, lambda text: _read(constraint, text), for_server)


def _read(constraint: ToolConstraint, text: bytes) -> ToolCall:
    """The call in a text, in any layout of a server."""
    try:
        return constraint.parse(text).calls[0]
    except ParseError:
        call = json.loads(text)
        tool = next(tool for tool in constraint.tools if tool.name == call["name"])
        return ToolCall(tool.name, call["arguments"], text.decode(), tool)


def _schema_of(arguments: dict[str, Any]) -> dict[str, Any]:
    """The schema of the calls of all tools, for a server. The names of a tool's definitions get the tool's number."""
    calls, definitions = [], {}
    for number, (name, schema) in enumerate(arguments.items()):
        moved = _moved(schema, f"#/$defs/{number}.", f"#/anyOf/{number}/properties/arguments")
        moved.pop("$id", None)  # below it, references would begin at the arguments
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


def _moved(schema: Any, definitions: str, root: str) -> Any:
    """A schema that stands at ``root`` of another document, which has its definitions at ``definitions``. Only
    references are changed, and nothing in constants, defaults and examples, which are no schemas.
    """
    if not isinstance(schema, dict):
        return schema
    found = dict(schema)
    for key, value in schema.items():
        if key == "$ref" and isinstance(value, str):
            if value.startswith(_OWN):
                found[key] = definitions + value.removeprefix(_OWN)
            elif value == "#" or value.startswith("#/"):
                found[key] = root + value.removeprefix("#")
        elif key in TABLES and isinstance(value, dict):
            found[key] = {name: _moved(each, definitions, root) for name, each in value.items()}
        elif key in LISTS and isinstance(value, list):
            found[key] = [_moved(each, definitions, root) for each in value]
        elif key in ONE:
            found[key] = _moved(value, definitions, root)
    return found
