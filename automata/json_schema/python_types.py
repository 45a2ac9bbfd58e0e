r"""Python types as JSON Schemas, and parsing of generated text to Python objects.

Pydantic's ``TypeAdapter`` provides the schema of models, dataclasses, typed dicts, enums and all annotations, and
parses JSON text. The schema is the one for validation, with aliases and in the order of the fields, narrowed by
``python_schema`` to what pydantic accepts. A function is treated as the model of its parameters.

Types without JSON (callables, classes) are rejected, and so are conditions that JSON Schema cannot express and pydantic
would check later (bounds of dates, unknown formats). Some conditions are not visible in the schema, and only ``parse``
checks them: validators written in Python, integers of more than 4,300 digits, patterns where pydantic's dialect (Rust's
``regex``) matches less than ECMA-262 (``\W``, ``\D``, ``\S``: there they exclude all of Unicode's letters and digits).

Pydantic is imported on first use: ``MissingDependencyError`` without it.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import inspect
import types
import typing
from collections.abc import Callable, Iterator
from typing import Any

from tokenfst.automata.formats.registry import find_format
from tokenfst.automata.json_schema.documents.schema_texts import escape
from tokenfst.errors import ConstraintError, MissingDependencyError, UnsupportedSchemaError

_FUNCTIONS = (types.FunctionType, types.MethodType, types.BuiltinFunctionType, functools.partial)
_HARMLESS = ("binary", "password", "path", *(f"uuid{version}" for version in range(1, 9)))
"""Formats of pydantic that allow every string, or that ``python_schema`` expresses as patterns."""
_QUALIFIERS = (typing.Required, typing.NotRequired)
_LISTS = ("allOf", "anyOf", "oneOf", "prefixItems")
_TABLES = ("properties", "patternProperties", "$defs")
_ONE = ("items", "additionalProperties", "propertyNames", "not")


@dataclasses.dataclass(frozen=True, slots=True)
class TypeReader:
    """What ``json_schema`` needs of a Python type.

    ``name``: the name in messages. ``schema``: the JSON Schema. ``parse``: a function from JSON text to an instance.
    ``refused``: pairs of the JSON pointer of a condition that the schema does not express, and the reason.
    """

    name: str
    schema: dict[str, Any]
    parse: Callable[[str | bytes], Any]
    refused: tuple[tuple[str, str], ...]


def read_type(kind: Any) -> TypeReader:
    """The reader of a type, an annotation, a ``TypeAdapter``, or a function, whose instances are
    ``inspect.BoundArguments``.

    Raises MissingDependencyError, UnsupportedSchemaError with the pointer of a part without JSON, and ConstraintError
    for a function whose parameters cannot be read. Linear in the schema.
    """
    try:
        import pydantic

        from tokenfst.automata.json_schema.python_schema import TypeSchema
    except ImportError as error:
        raise MissingDependencyError(
            'Python types are read by pydantic: pip install "tokenfst[pydantic]"'
        ) from error
    parse: Callable[[str | bytes], Any]
    if isinstance(kind, _FUNCTIONS):
        adapter, parse = _function(kind)
    else:
        adapter = kind if isinstance(kind, pydantic.TypeAdapter) else _adapter(kind, "#")
        parse = adapter.validate_json
    schema = adapter.json_schema(schema_generator=TypeSchema, mode="validation", by_alias=True)
    return TypeReader(_shown(kind), schema, Parse(kind, parse), tuple(_refusals(schema)))


class Parse:
    """A function from JSON text to an instance of ``kind``. A pickle contains the type, which is read again."""

    __slots__ = ("_kind", "_parse")

    def __init__(self, kind: Any, parse: Callable[[str | bytes], Any]) -> None:
        self._kind, self._parse = kind, parse

    def __call__(self, text: str | bytes) -> Any:
        """The value that a text represents."""
        return self._parse(text)

    def __reduce__(self) -> tuple[Callable[[Any], Callable[[str | bytes], Any]], tuple[Any]]:
        return _parse_of, (self._kind,)


def _parse_of(kind: Any) -> Callable[[str | bytes], Any]:
    return read_type(kind).parse


def _adapter(kind: Any, pointer: str) -> Any:
    """Pydantic's adapter. If pydantic cannot read a type, the cause is searched for among the members' annotations."""
    import pydantic
    from pydantic.errors import PydanticUserError
    from pydantic_core import SchemaError

    try:
        adapter: Any = pydantic.TypeAdapter(kind)
        adapter.rebuild(raise_errors=True)
        return adapter
    except (PydanticUserError, SchemaError, NameError, TypeError, ImportError, AttributeError) as error:
        for name, hint in _hints(kind).items():
            if hint is not kind:
                _adapter(hint, f"{pointer}/properties/{escape(name)}")
        if isinstance(kind, pydantic.BaseModel | enum.Enum) or (
            dataclasses.is_dataclass(kind) and not isinstance(kind, type)
        ):
            owner = _shown(type(kind))
            message = f"{kind!r:.60} is a value, not a type: pass its class, {owner}"
            raise UnsupportedSchemaError(pointer, message) from error
        said = str(error)
        reason = " ".join(said.split()) if isinstance(error, SchemaError) else said.splitlines()[0]
        raise UnsupportedSchemaError(pointer, f"{_shown(kind)} cannot be read: {reason}") from error


def _hints(kind: Any) -> dict[str, Any]:
    try:
        hints = typing.get_type_hints(kind, include_extras=True) if isinstance(kind, type) else {}
    except (NameError, TypeError):
        return {}
    return {
        name: hint.__args__[0] if typing.get_origin(hint) in _QUALIFIERS else hint
        for name, hint in hints.items()
    }


def _function(function: Any) -> tuple[Any, Callable[[str | bytes], inspect.BoundArguments]]:
    """The adapter of the model whose fields are the parameters, and from its text to what they are bound to."""
    import pydantic

    try:
        signature = inspect.signature(function)
        told = function.func if isinstance(function, functools.partial) else function
        hints = typing.get_type_hints(told, include_extras=True)
    except (ValueError, TypeError, NameError) as error:
        raise ConstraintError(f"the parameters of {_shown(function)} cannot be read: {error}") from error
    fields: dict[str, Any] = {}
    for number, (name, parameter) in enumerate(signature.parameters.items()):
        pointer = f"#/properties/{escape(name)}"
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UnsupportedSchemaError(
                pointer, f"{parameter} of {_shown(function)} has no name and type for each argument"
            )
        hint = hints.get(name, Any)
        _adapter(hint, pointer)
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[f"p{number}"] = (hint, pydantic.Field(default, validation_alias=name, title=name))
    config = pydantic.ConfigDict(extra="forbid")
    model: Any = pydantic.create_model("Arguments", __config__=config, **fields)

    def bind(text: str | bytes) -> inspect.BoundArguments:
        made = model.model_validate_json(text)
        arguments = {
            name: getattr(made, field)
            for field, name in zip(fields, signature.parameters, strict=True)
            if field in made.model_fields_set
        }
        return inspect.BoundArguments(signature, arguments)

    return pydantic.TypeAdapter(model), bind


def _refusals(schema: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """The places at which pydantic accepts less than the schema says; takes the marks off."""
    from tokenfst.automata.json_schema.python_schema import REFUSED

    stack: list[tuple[str, Any]] = [("#", schema)]
    while stack:
        pointer, value = stack.pop()
        if not isinstance(value, dict):
            continue
        if (reason := value.pop(REFUSED, None)) is not None:
            yield pointer, reason
        name = value.get("format")
        if isinstance(name, str) and name not in _HARMLESS and find_format(name) is None:
            yield f"{pointer}/format", f"the format {name!r} is not known here"
        for keyword in _LISTS:
            stack += [(f"{pointer}/{keyword}/{k}", each) for k, each in enumerate(value.get(keyword, ()))]
        for keyword in _TABLES:
            table = value.get(keyword, {})
            stack += [(f"{pointer}/{keyword}/{escape(each)}", table[each]) for each in table]
        stack += [(f"{pointer}/{keyword}", value[keyword]) for keyword in _ONE if keyword in value]


def _shown(kind: Any) -> str:
    return getattr(kind, "__qualname__", None) or repr(kind)
