"""Members that distinguish the branches of a ``oneOf`` but that no branch requires.

Where such a member is missing, an object must still satisfy exactly one branch, and branches must be compared as
wholes. Often a schema around the ``oneOf`` requires the member: then the comparison is made among its values only.
Otherwise the authors probably forgot ``required``, and an error says so.

Cost: linear in the branches as they are written, to a small depth.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from tokenfst.automata.json_schema.documents.source import Place
from tokenfst.automata.json_schema.sets.formula import Formula
from tokenfst.automata.json_schema.sets.value_sets import ValueSet
from tokenfst.errors import UnsupportedSchemaError

_CONSTANTS = frozenset(("const", "enum"))
_IN_PLACE = ("allOf", "anyOf", "oneOf")
_DEEPEST = 3
_ADVISED = "The branches of this `oneOf` differ in"


def optional_discriminators(branches: Iterable[Formula]) -> list[str]:
    """The members that at least two branches restrict to listed values and do not require; the most frequent first."""
    found = Counter(
        name
        for branch in branches
        if isinstance(branch.atom, Place)
        for name in dict.fromkeys(_optional_constants(branch.atom.value, _DEEPEST))
    )
    return [name for name, count in found.most_common() if count > 1]


def is_required(names: Sequence[str], around: Iterable[ValueSet]) -> bool:
    """Whether all objects of one of the value sets have one of the members."""
    return any(
        each.objects and all(name in cell.required for cell in each.objects)
        for each in around
        for name in names
    )


def advice(branches: Iterable[Formula]) -> str:
    """A sentence that advises to require the member that distinguishes the branches; empty if there is none."""
    names = optional_discriminators(branches)
    if not names:
        return ""
    return f"{_ADVISED} {names[0]!r}, but do not require it: add it to the `required` of each"


def advised(error: UnsupportedSchemaError, branches: Iterable[Formula]) -> UnsupportedSchemaError:
    """The error with the advice, unless it has one."""
    said = "" if _ADVISED in error.reason else advice(branches)
    return UnsupportedSchemaError(error.pointer, f"{error.reason}. {said}") if said else error


def _optional_constants(schema: Any, depth: int) -> Iterator[str]:
    """The members that a schema, or a part that applies to the same object, restricts to listed values."""
    if not isinstance(schema, dict):
        return
    properties, required = schema.get("properties"), schema.get("required")
    for name, value in properties.items() if isinstance(properties, dict) else ():
        is_required = isinstance(required, list) and name in required
        if isinstance(value, dict) and not _CONSTANTS.isdisjoint(value) and not is_required:
            yield name
    for keyword in _IN_PLACE if depth > 0 else ():
        parts = schema.get(keyword)
        for part in parts if isinstance(parts, list) else ():
            yield from _optional_constants(part, depth - 1)
