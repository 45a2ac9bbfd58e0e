"""Instances written in the order that a schema's ``properties`` have, the slow way: by walking both side by side.

The rule of ``json_schema``: names that the schema's own ``properties`` list come first, then those of its in-place
applicators in the order of the document, then all others. Which applicator's branch holds is not asked: all that list
names are read.
"""

from __future__ import annotations

from typing import Any

_IN_PLACE_LISTS = ("allOf", "anyOf", "oneOf")
_IN_PLACE = ("if", "then", "else", "not")


def ordered(instance: Any, schemas: list[Any], root: Any, depth: int = 0, *, branches: bool = True) -> Any:
    """``instance`` with the members of its objects in the order of ``schemas``, all of which are about it.

    Without ``branches`` the names that only ``anyOf``, ``oneOf``, ``if``, ``then``, ``else`` and ``not`` list are not
    listed: what holds where none of the branches that list a name does.
    """
    schemas = _in_place(schemas, root, branches)
    if isinstance(instance, list):
        made = []
        for place, item in enumerate(instance):
            below = []
            for schema in schemas:
                prefix = schema.get("prefixItems", [])
                if place < len(prefix):
                    below.append(prefix[place])
                elif "items" in schema:
                    below.append(schema["items"])
                below += [schema[name] for name in ("contains", "unevaluatedItems") if name in schema]
            made.append(ordered(item, below, root, depth + 1, branches=branches))
        return made
    if isinstance(instance, dict):
        names: dict[str, None] = {}
        for schema in schemas:
            names.update(dict.fromkeys(schema.get("properties", {})))
        sequence = [name for name in names if name in instance] + [
            name for name in instance if name not in names
        ]
        made_object = {}
        for name in sequence:
            below = []
            for schema in schemas:
                if name in schema.get("properties", {}):
                    below.append(schema["properties"][name])
                below += schema.get("patternProperties", {}).values()
                below += [
                    schema[each]
                    for each in ("additionalProperties", "unevaluatedProperties")
                    if each in schema
                ]
            made_object[name] = ordered(instance[name], below, root, depth + 1, branches=branches)
        return made_object
    return instance


def _in_place(schemas: list[Any], root: Any, branches: bool) -> list[dict[str, Any]]:
    """The schemas, each before those that it applies to the same instance, in the order of the document."""
    found: list[dict[str, Any]] = []

    def visit(schema: Any, depth: int) -> None:
        if not isinstance(schema, dict) or depth > 20 or any(schema is known for known in found):
            return
        found.append(schema)
        for name, value in schema.items():
            if not branches and name in (*_IN_PLACE, "anyOf", "oneOf"):
                continue
            if name in _IN_PLACE_LISTS:
                for each in value:
                    visit(each, depth + 1)
            elif name in _IN_PLACE:
                visit(value, depth + 1)
            elif name == "dependentSchemas":
                for each in value.values():
                    visit(each, depth + 1)
            elif name in ("$ref", "$dynamicRef") and isinstance(value, str) and value.startswith("#"):
                visit(_target(value, root), depth + 1)

    for schema in schemas:
        visit(schema, 0)
    return found


def _target(reference: str, root: Any) -> Any:
    value = root
    for token in reference[1:].split("/")[1:]:
        token = token.replace("~1", "/").replace("~0", "~")
        value = value[int(token)] if isinstance(value, list) else value.get(token, {})
    return value
