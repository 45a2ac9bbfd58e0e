"""``read``: a schema document, given as a text or as Python objects, as Python values whose numbers are exact.

Whatever is not JSON is rejected here, so that the other modules of this room see only JSON values. Cost: linear in the
text.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from decimal import Decimal
from typing import Any

from tokenfst._native import plain_parts
from tokenfst.automata.json_schema.sets.work import Work, text_parts
from tokenfst.common.json_objects import unique_names
from tokenfst.common.remedies import READ_FILE, looks_like_a_file
from tokenfst.errors import BudgetExceeded, SchemaError

MAPPINGS = (dict, Mapping)
"""The classes of JSON objects, for ``isinstance``. The check of ``dict``, which comes first, is faster than that of an
abstract class.
"""

_LONG_INTEGER = 1000
"""Integers of at least this number of digits are read as decimals."""


def read(schema: Mapping[str, Any] | bool | str, where: str, work: Work) -> Any:
    """A schema document as Python values; numbers in text stay exact.

    Raises SchemaError for text that is not JSON or that repeats a name in one object, and for Python objects that JSON
    does not have; BudgetExceeded("positions") if the document's JSON text would have more values than that, which may
    happen if objects are shared.
    """
    if isinstance(schema, str):
        problem = ""
        try:
            return json.loads(
                schema,
                parse_float=Decimal,
                parse_int=_integer,
                parse_constant=_no_number,
                object_pairs_hook=unique_names,
            )
        except RecursionError:
            problem = "the schema is nested too deeply"
        except (ValueError, ArithmeticError) as error:
            found = f"it looks like the name of a file; {READ_FILE}" if looks_like_a_file(schema) else error
            problem = f"the schema is not a JSON text: {found}"
        raise SchemaError(where, problem)
    if not isinstance(schema, (dict, bool, Mapping)):
        raise SchemaError(where, f"a schema is an object or a boolean, not {json_type(schema)}")
    if not _IS_LOCKED():
        schema = own_copy(schema)
    parts = plain_parts(schema)
    if (parts or text_parts(schema, work)) > work.budget.positions:
        raise BudgetExceeded("positions", work.budget.positions, f"{where} (the values of its JSON text)")
    if parts:
        return schema
    try:
        with suppress(RecursionError):  # deeper nesting is rejected when it is read
            _ENCODER.encode(schema)
    except (ValueError, TypeError) as error:
        pointer, value = _first_other(schema, where) or (where, None)
        if value is None:
            raise SchemaError(pointer, f"no JSON value: {error}") from None
        raise SchemaError(pointer, f"{_shown(value)} is not a JSON value{_instead(pointer, value)}") from None
    return schema


_NAMES = {
    str: "string", int: "integer", float: "number", bool: "boolean", list: "array", tuple: "array", dict: "object",
    type(None): "null",
}  # fmt: skip
"""Python types, and JSON Schema's names for them."""


def _first_other(document: Any, where: str) -> tuple[str, Any] | None:
    """The first value of a document that is no value of JSON, with its place. Linear."""
    waiting: list[tuple[str, Any]] = [(where, document)]
    seen = set[int]()
    while waiting:
        pointer, value = waiting.pop()
        if isinstance(value, (*MAPPINGS, list, tuple)):
            if id(value) in seen:
                continue
            seen.add(id(value))
            parts = value.items() if isinstance(value, MAPPINGS) else enumerate(value)
            waiting += reversed([(f"{pointer}/{escape(token)}", each) for token, each in parts])
        elif value is not None and not isinstance(value, (str, int, float, Decimal)):
            return pointer, value
    return None


def _shown(value: Any) -> str:
    return f"the Python type {value.__name__}" if isinstance(value, type) else f"{value!r:.100}"


def _instead(pointer: str, value: Any) -> str:
    """What to write in place of a Python type."""
    if not isinstance(value, type):
        return ""
    name = _NAMES.get(value)
    if name is None:
        return (
            ": put in what makes its schema, such as model_json_schema() of a pydantic model, or pass the type itself "
            "in place of the whole schema"
        )
    return f': write "{name}"' if pointer.endswith("/type") else f': write {{"type": "{name}"}}'


_HOLDERS = {
    "schema": "a response format",
    "json_schema": "a response format",
    "parameters": "a function",
    "function": "a tool",
    "input_schema": "a tool",
}
"""The fields of requests to models that contain a schema, and what the object with such a field is."""
_AROUND = {"name", "type", "strict"}
"""The fields beside those of ``_HOLDERS``: such an object has at least one of them, and perhaps a description."""


def refuse_holder(schema: Any) -> None:
    """Raise SchemaError for an object of a request that contains a schema and was passed instead of that schema.

    Read as a schema, it would allow every value, since none of its fields is a keyword (and its ``type``, if it has
    one, is not one of JSON's).
    """
    if not isinstance(schema, MAPPINGS) or schema.get("type") not in (None, "json_schema", "function"):
        return
    for name, what in _HOLDERS.items():
        if not isinstance(schema.get(name), MAPPINGS):
            continue
        others = set(schema) - {name, "description"}
        if others and others <= _AROUND:
            raise SchemaError(
                f"#/{name}",
                f"the schema is inside of this field, and around it is {what} of a request: pass the schema alone, or "
                "the request to from_openai",
            )


_IS_LOCKED: Callable[[], bool] = getattr(sys, "_is_gil_enabled", lambda: True)
"""Whether Python's global interpreter lock is on. If it is off, another thread can change a dict while the core reads
it.
"""


def own_copy(document: Any) -> Any:
    """A copy of the dicts and lists of a document, which no other thread can change.

    An object that occurs at several places is copied once. Linear in the number of objects.
    """
    copies: dict[int, tuple[Any, Any]] = {}
    waiting: list[Any] = []

    def copied(value: Any) -> Any:
        if type(value) is not dict and type(value) is not list:
            return value
        known = copies.get(id(value))
        if known is None:
            known = value.copy(), value  # the original is kept, so that no other object gets its id
            copies[id(value)] = known
            waiting.append(known[0])
        return known[0]

    made = copied(document)
    while waiting:
        each = waiting.pop()
        if isinstance(each, list):
            each[:] = map(copied, each)
        else:
            for name, value in each.items():
                each[name] = copied(value)
    return made


def _number(value: Any) -> str:
    """A Decimal is JSON; anything else that ``json`` does not know is not."""
    if isinstance(value, Decimal):
        return str(value)
    raise TypeError(f"{value!r} is not a JSON value")


_ENCODER = json.JSONEncoder(default=_number)


def _integer(digits: str) -> int | Decimal:
    """Python refuses to read very long integers, because that takes time quadratic in their length."""
    return int(digits) if len(digits) < _LONG_INTEGER else Decimal(digits)


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def escape(token: str | int) -> str:
    """A member's name or an index, escaped as a part of a JSON pointer."""
    part = str(token)
    return part.replace("~", "~0").replace("/", "~1") if "~" in part or "/" in part else part


def json_type(value: Any) -> str:
    """JSON's name for the type of a value, with an indefinite article, for messages."""
    if value is None:
        return "null"
    kinds = {bool: "a boolean", str: "a string", list: "an array", dict: "an object"}
    named = {**dict.fromkeys((int, float, Decimal), "a number"), **kinds}
    return named.get(type(value), f"a Python {type(value).__name__}")
