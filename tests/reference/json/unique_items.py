"""Items that must differ: of all texts of a finite schema, those that the ``jsonschema`` library allows."""

from __future__ import annotations

import json
from typing import Any

from jsonschema import Draft202012Validator


def without_unique(schema: Any) -> Any:
    """A schema without its ``uniqueItems``."""
    if isinstance(schema, dict):
        return {name: without_unique(value) for name, value in schema.items() if name != "uniqueItems"}
    return [without_unique(each) for each in schema] if isinstance(schema, list) else schema


def texts(constraint: Any) -> list[bytes]:
    """All texts of a constraint that has finitely many, byte by byte."""
    found: list[bytes] = []
    pending = [b""]
    while pending:
        text = pending.pop()
        following, ends = constraint.next_bytes(text)
        if ends:
            found.append(text)
        pending += (text + bytes((byte,)) for byte in following)
    return found


def valid(schema: Any, every: list[bytes]) -> list[bytes]:
    """Those texts whose values a schema allows."""
    validator = Draft202012Validator(schema)
    return [text for text in every if validator.is_valid(json.loads(text))]


def prefixes(found: list[bytes]) -> set[bytes]:
    """What these texts begin with."""
    return {text[:length] for text in found for length in range(len(text) + 1)}
