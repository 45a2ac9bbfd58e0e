"""``tokenfst diff old.json new.json``: the differences between two versions of a JSON Schema."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenfst.budget import Budget
from tokenfst.cli.constraints.grammars import read_text
from tokenfst.cli.output.terminal import Exit, say, say_json
from tokenfst.errors import ConstraintError, EmptyLanguageError, SchemaError

if TYPE_CHECKING:
    from tokenfst.automata.json_schema.changes import SchemaChanges
    from tokenfst.automata.json_schema.comparing import ComparedSchema, SchemaAnswer


def is_schema(argument: str) -> bool:
    """Whether an argument is the name of a schema file."""
    return argument.endswith(".json") and Path(argument).is_file()


def diff_schemas(old: Path, new: Path, both_ways: bool, budget: Budget, json: bool) -> int:
    """Print the differences. ``both_ways``: values that only the new schema allows count as incompatible too."""
    from tokenfst.automata.json_schema.changes import schema_changes

    try:
        found = schema_changes(_read(old, budget), _read(new, budget))
    except SchemaError as error:
        pointer = error.pointer.replace("urn:left", str(old)).replace("urn:right", str(new))
        raise ConstraintError(f"{pointer}: {error.reason}") from error
    holds = found.backward_compatible and (found.forward_compatible or not both_ways)
    if json:
        say_json({"command": "diff", "a": str(old), "b": str(new)} | as_json(found))
    else:
        say(str(found))
    return Exit.YES if holds else Exit.NO


def _read(path: Path, budget: Budget) -> ComparedSchema:
    from tokenfst.automata.json_schema.json_schema import json_schema

    text = read_text(path, "the schema")
    try:
        return json_schema(text, source=f"json_schema({path.name!r})", budget=budget)
    except EmptyLanguageError as error:
        raise EmptyLanguageError(f"{path}: {error}") from error
    except SchemaError as error:
        raise ConstraintError(f"{path}: {error}") from error


def as_json(found: SchemaChanges) -> dict[str, Any]:
    """The differences in JSON."""
    return {
        "backward_compatible": found.backward_compatible,
        "forward_compatible": found.forward_compatible,
        "no_longer_allowed": _value(found.lost),
        "allowed_now": _value(found.gained),
        "changes": [
            {
                "pointer": each.pointer,
                "kind": each.kind,
                "keywords": list(each.keywords),
                "no_longer_allowed": _value(each.lost),
                "allowed_now": _value(each.gained),
                "unknown": each.unknown,
            }
            for each in found.changes
        ],
    }


def _value(answer: SchemaAnswer | None) -> str | None:
    """The JSON text of a value that shows the difference."""
    return None if answer is None else answer.text
