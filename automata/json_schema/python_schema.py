"""JSON Schemas of Python types that allow only what pydantic accepts.

Pydantic's own schemas describe a type for people and other programs; a text that satisfies one may still be rejected
when pydantic parses it (``Decimal`` as any string, integer keys as any names, the year 0, a number that rounds to its
excluded bound). But a text that was generated under a constraint must be parsable. So this generator narrows schemas
where keywords of JSON Schema can express the difference, and marks the rest with ``REFUSED`` and a reason, for
``python_types`` to report.

A set is an array whose items may repeat, as in pydantic, unless its minimum length is more than 1; items with at most
``MOST_DISTINCT`` listed values never repeat. Needs pydantic; ``python_types`` imports this module when it first reads a
type.
"""

from __future__ import annotations

import inspect
import json
import math
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from fractions import Fraction
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import PydanticSerializationError, SchemaValidator, ValidationError, core_schema, to_json

from tokenfst.automata.json_schema import python_texts as texts
from tokenfst.automata.json_schema import python_urls as urls

REFUSED = "$refused"
"""A keyword that marks a schema that pydantic narrows in a way that JSON Schema cannot express. Its value is the
reason.
"""
MOST_DISTINCT = 7

_HEX = "[0-9A-Fa-f]"
_AS_NUMBERS = "pydantic writes it as a number; leave ser_json_temporal and ser_json_timedelta out"
_LARGEST = 1.7976931348623157e308
_ROUNDED = 2**23
"""The bound of multiples of a step that is itself rounded: below it, pydantic's tolerance of 1e-9 covers the error."""


_BESIDE = "it cannot say this condition beside this type; put it on the type inside, as in list[Annotated[int, Gt(0)]]"
_CHECKS = {
    **dict.fromkeys(
        (
            *("greater_than_validator", "greater_than_or_equal_validator", "less_than_validator"),
            *("less_than_or_equal_validator", "multiple_of_validator", "min_length_validator"),
            *(
                "max_length_validator",
                "max_digits_validator",
                "decimal_places_validator",
                "forbid_inf_nan_check",
            ),
        ),
        _BESIDE,
    ),
    **dict.fromkeys(
        ("pattern_either_validator", "pattern_str_validator", "pattern_bytes_validator"),
        "it cannot say which texts are regular expressions of Python; take a str",
    ),
    "import_string": "it cannot say what can be imported; take a str",
}
"""Pydantic's validation functions that narrow a type, by name, and why JSON Schema cannot express them."""


class TypeSchema(GenerateJsonSchema):
    """Pydantic's generator of JSON Schemas, with narrower schemas: each method describes what its schema adds."""

    # --- numbers --------------------------------------------------------------------------------------

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        """An excluded bound becomes the next float beyond it, because pydantic reads a number in between as the bound.

        Multiples too far from zero are left out, because pydantic takes their rounding for a remainder.
        """
        made = super().float_schema(schema)
        if (low := made.pop("exclusiveMinimum", None)) is not None:
            made["minimum"] = max(math.nextafter(low, math.inf), made.get("minimum", -math.inf))
        if (high := made.pop("exclusiveMaximum", None)) is not None:
            made["maximum"] = min(math.nextafter(high, -math.inf), made.get("maximum", math.inf))
        most = math.inf if schema.get("allow_inf_nan", self._config.allow_inf_nan) else _LARGEST
        if "multipleOf" in made:
            step = Fraction(made["multipleOf"])
            exact = step == Fraction(str(made["multipleOf"]))
            most = float(2**53 / step.denominator if exact else _ROUNDED)
        if most < math.inf:
            made["minimum"] = max(made.get("minimum", -most), -most)
            made["maximum"] = min(made.get("maximum", most), most)
        return self._with_infinity(made, schema)

    def _with_infinity(self, made: JsonSchemaValue, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        """Infinity and NaN are written as strings, or in a form that is not JSON, if the configuration requires it."""
        written = self._config.config_dict.get("ser_json_inf_nan", "null")
        if written == "null" or schema.get("allow_inf_nan", self._config.allow_inf_nan) is False:
            return made
        if written == "constants":
            reason = "NaN and Infinity are no JSON; say allow_inf_nan=False, or ser_json_inf_nan='strings'"
            return {**made, REFUSED: reason}
        if self._strict(schema) or "multipleOf" in made:
            return made
        words = ["Infinity"] * ("maximum" not in made) + ["-Infinity"] * ("minimum" not in made)
        words += ["NaN"] * (len(words) == 2)
        return {"anyOf": [made, {"enum": words}]} if words else made

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """A string, as pydantic writes a decimal."""
        allowed = schema.get("allow_inf_nan")
        config = self._config.config_dict.get("allow_inf_nan", False)
        return texts.decimal(schema, bool(config if allowed is None else allowed))

    # --- strings --------------------------------------------------------------------------------------

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        """A text that pydantic strips has no white space at its ends here, so that it has its final length."""
        made = super().str_schema(schema)
        if (pattern := schema.get("pattern")) is not None:
            engine = schema.get("regex_engine", self._config.config_dict.get("regex_engine"))
            if engine == "python-re" or not isinstance(pattern, str):
                made["pattern"] = texts.python_pattern(pattern)
        if schema.get("ascii_only"):
            made.setdefault("allOf", []).append({"pattern": r"^[\x00-\x7f]*$"})
        if schema.get("strip_whitespace", self._config.str_strip_whitespace):
            made.setdefault("allOf", []).extend(
                [
                    {"pattern": r"^(?![\s\x1c-\x1f\x85])[^]*$"},
                    {"pattern": r"^(?:[^]*[^\s\x1c-\x1f\x85])?$"},
                ]
            )
        return made

    def bytes_schema(self, schema: core_schema.BytesSchema) -> JsonSchemaValue:
        """Strings that encode the required number of bytes, as pydantic decodes them."""
        encoding = self._config.config_dict.get("val_json_bytes", "utf8")
        return texts.of_bytes(encoding, schema.get("min_length") or 0, schema.get("max_length"))

    def date_schema(self, schema: core_schema.DateSchema) -> JsonSchemaValue:
        """RFC 3339's full-date in the years 1 to 9999."""
        return self._temporal(texts.DAY, schema)

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonSchemaValue:
        """ISO 8601, up to microseconds, with an offset from UTC or without; no leap second."""
        return self._temporal(f"{texts.CLOCK}{_zone(schema)}", schema)

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        """A date, ``T`` and a time, as in ``date_schema`` and ``time_schema``."""
        return self._temporal(f"{texts.DAY}T{texts.CLOCK}{_zone(schema)}", schema)

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        """ISO 8601 in years of 365 days, days, hours, minutes and seconds, each within its larger unit."""
        made = self._temporal(texts.DURATION, schema)
        config = self._config.config_dict
        if "ser_json_temporal" not in config and config.get("ser_json_timedelta") == "float":
            made.setdefault(REFUSED, _AS_NUMBERS)
        return made

    def _temporal(self, pattern: str, schema: Any) -> JsonSchemaValue:
        made = _bounded({"type": "string", "pattern": f"^(?:{pattern})$"}, schema)
        if self._config.config_dict.get("ser_json_temporal", "iso8601") != "iso8601":
            made.setdefault(REFUSED, _AS_NUMBERS)
        return made

    def uuid_schema(self, schema: core_schema.UuidSchema) -> JsonSchemaValue:
        """The hyphenated form, of the required version."""
        version = schema.get("version")
        if version is None:
            return super().uuid_schema(schema)
        pattern = f"^{_HEX}{{8}}-{_HEX}{{4}}-{version:x}{_HEX}{{3}}-[89ABab]{_HEX}{{3}}-{_HEX}{{12}}$"
        return {"type": "string", "pattern": pattern}

    def url_schema(self, schema: core_schema.UrlSchema) -> JsonSchemaValue:
        """The pattern of ``python_urls``. Pydantic completes a URL of a host without a path with ``/``, which counts in
        its length.
        """
        return _url(urls.url(schema, several=False, strict=self._strict(schema)), schema.get("max_length"))

    def multi_host_url_schema(self, schema: core_schema.MultiHostUrlSchema) -> JsonSchemaValue:
        """As ``url_schema``."""
        return _url(urls.url(schema, several=True, strict=self._strict(schema)), schema.get("max_length"))

    def _strict(self, schema: Any) -> bool:
        found = schema.get("strict")
        return bool(self._config.config_dict.get("strict") if found is None else found)

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonSchemaValue:
        """Refused: JSON Schema cannot express how complex numbers are written."""
        return {**super().complex_schema(schema), REFUSED: "it cannot say how complex numbers are written"}

    def json_schema(self, schema: core_schema.JsonSchema) -> JsonSchemaValue:
        """Refused: JSON Schema cannot express that a string contains JSON."""
        return {**super().json_schema(schema), REFUSED: "it cannot say that a string holds JSON"}

    # --- listed values ----------------------------------------------------------------------------------

    def literal_schema(self, schema: core_schema.LiteralSchema) -> JsonSchemaValue:
        """The listed values that pydantic reads back from JSON; marked as refused if there are others."""
        readers = SchemaValidator(core_schema.literal_schema(schema["expected"]))
        return _read_back(super().literal_schema(schema), schema["expected"], readers)

    def enum_schema(self, schema: core_schema.EnumSchema) -> JsonSchemaValue:
        """As ``literal_schema``; an enum without members is refused."""
        if not schema["members"]:
            return {REFUSED: "it has no members"}
        alone: Any = {name: value for name, value in schema.items() if name not in ("ref", "metadata")}
        return _read_back(super().enum_schema(schema), schema["members"], SchemaValidator(alone))

    # --- containers -----------------------------------------------------------------------------------

    def set_schema(self, schema: core_schema.SetSchema) -> JsonSchemaValue:
        """An array; the module's docstring says when its items may repeat."""
        return self._set(super().set_schema(schema), schema)

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonSchemaValue:
        """As ``set_schema``."""
        return self._set(super().frozenset_schema(schema), schema)

    def _set(self, made: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        items = _inside(schema.get("items_schema", {"type": "any"}))
        listed = self._resolved(made["items"])
        if (
            "const" in listed
            or len(listed.get("enum", "*" * 99)) <= MOST_DISTINCT
            or listed.get("type") in ("boolean", "null")
        ):
            values = listed.get("enum", [])
            if made.get("minItems", 0) > 1 and len(set(map(_plain, values))) < len(values):
                made[REFUSED] = "true and 1 are one item of a set; list one of them, or take a list"
            return made
        if made.get("minItems", 0) <= 1:
            del made["uniqueItems"]
        elif not _told_apart(items) and "enum" not in listed:
            made[REFUSED] = (
                "it cannot say which items are equal when they are read; leave min_length out, or take a list"
            )
        if not _hashable(items):
            made[REFUSED] = "a set holds no lists, objects or models; take a list"
        return made

    def _resolved(self, made: JsonSchemaValue) -> JsonSchemaValue:
        """The schema that a reference refers to; the reference itself, if that is not known yet."""
        try:
            return self.resolve_ref_schema(made)
        except RuntimeError:
            return made

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """An object whose names pydantic can read as keys of the type."""
        return self._named(super().dict_schema(schema), schema)

    def frozendict_schema(self, schema: Any) -> JsonSchemaValue:
        """As ``dict_schema``."""
        return self._named(super().frozendict_schema(schema), schema)

    def ordered_dict_schema(self, schema: Any) -> JsonSchemaValue:
        """As ``dict_schema``."""
        return self._named(super().ordered_dict_schema(schema), schema)

    def counter_schema(self, schema: Any) -> JsonSchemaValue:
        """As ``dict_schema``."""
        return self._named(super().counter_schema(schema), schema)

    def _named(self, made: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
        keys = self.generate_inner(schema["keys_schema"]) if "keys_schema" in schema else {}
        listed = self._resolved(keys)
        values = listed.get("enum", [listed["const"]] if "const" in listed else None)
        if values is not None:
            if all(isinstance(each, str) for each in values):
                made["propertyNames"] = keys
            else:
                made[REFUSED] = "it cannot say how keys that are listed and no strings are read; list strings"
        elif keys.get("type") == "integer" and keys.keys() <= {"type", "title"}:
            made["propertyNames"] = {"pattern": r"^(?:0|-?[1-9]\d{0,4299})$"}
        elif keys.get("type") == "boolean":
            made["propertyNames"] = {"enum": ["true", "false"]}
        elif keys.get("type") == "string":
            made["propertyNames"] = keys
        elif keys.keys() - {"title", "description"}:
            made[REFUSED] = "it cannot say keys that are neither strings nor plain integers"
        if made.get("minProperties", 0) > 1 and not _told_apart(
            _inside(schema.get("keys_schema", {"type": "str"}))
        ):
            made[REFUSED] = "it cannot say which keys are equal when they are read; leave min_length out"
        return made

    # --- unions ---------------------------------------------------------------------------------------

    def tagged_union_schema(self, schema: core_schema.TaggedUnionSchema) -> JsonSchemaValue:
        """For each choice, its instances that contain the tag, even if the tag is a default.

        Of an aliased field pydantic looks for the tag under the field's name first, which is then no free member.
        """
        discriminator = schema["discriminator"]
        if callable(discriminator):
            reason = "a function says which type is meant; give the name of a field as discriminator"
            return {**super().tagged_union_schema(schema), REFUSED: reason}
        paths: Any = discriminator if isinstance(discriminator, list) else [discriminator]
        paths = paths if isinstance(paths[0], list) else [paths]
        if any(len(path) > 1 for path in paths):
            reason = "the tag is read from a path, which it cannot say; let a field hold it"
            return {**super().tagged_union_schema(schema), REFUSED: reason}
        tags: dict[str, tuple[JsonSchemaValue, list[Any]]] = {}
        for tag, choice in schema["choices"].items():
            made = self.generate_inner(choice)
            value = tag.value if isinstance(tag, Enum) else tag
            tags.setdefault(json.dumps(made, default=repr), (made, []))[1].append(value)
        choices: list[JsonSchemaValue] = []
        for made, values in tags.values():
            fields = self._resolved(made).get("properties", {})
            names = [path[0] for path in paths]
            place = next((k for k, name in enumerate(names) if fields.get(name) not in (None, False)), 0)
            read: JsonSchemaValue = {**dict.fromkeys(names[:place], False), names[place]: {"enum": values}}
            choices.append({"allOf": [made], "properties": read, "required": [names[place]]})
        return {"anyOf": choices}

    # --- classes and fields ---------------------------------------------------------------------------

    _converters = 0  # functions of Python around the type that is being read: they may make its instance

    def model_schema(self, schema: core_schema.ModelSchema) -> JsonSchemaValue:
        """Refused: a class without instances, which are ``BaseModel`` itself and abstract classes."""
        return self._refused_class(schema["cls"]) or super().model_schema(schema)

    def dataclass_schema(self, schema: core_schema.DataclassSchema) -> JsonSchemaValue:
        """As ``model_schema``."""
        return self._refused_class(schema["cls"]) or super().dataclass_schema(schema)

    def _refused_class(self, kind: type) -> JsonSchemaValue:
        if self._converters or not (kind is BaseModel or inspect.isabstract(kind)):
            return {}
        return {REFUSED: f"{kind.__name__} has no instances: name a class that inherits from it", "not": {}}

    def model_fields_schema(self, schema: core_schema.ModelFieldsSchema) -> JsonSchemaValue:
        """A field's other names are not allowed as free members, because pydantic may read them as the field."""
        return self._with_names(
            super().model_fields_schema, schema, schema["fields"], self._config.config_dict
        )

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        """As ``model_fields_schema``."""
        return self._with_names(super().typed_dict_schema, schema, schema["fields"], schema.get("config", {}))

    def dataclass_args_schema(self, schema: core_schema.DataclassArgsSchema) -> JsonSchemaValue:
        """As ``model_fields_schema``."""
        fields = {field["name"]: field for field in schema["fields"]}
        return self._with_names(super().dataclass_args_schema, schema, fields, self._config.config_dict)

    def _with_names(
        self,
        make: Callable[[Any], JsonSchemaValue],
        schema: Any,
        fields: Mapping[str, Any],
        config: Mapping[str, Any],
    ) -> JsonSchemaValue:
        outer, self.by_alias = self.by_alias, config.get("validate_by_alias") is not False
        try:
            made = make(schema)
        finally:
            by_alias, self.by_alias = self.by_alias, outer
        whole = self.resolve_ref_schema(made)
        named = whole.setdefault("properties", {})
        if "required" in whole:
            whole["required"] = list(dict.fromkeys(whole["required"]))
        readers: dict[str, str] = {}
        reads_names = bool(config.get("validate_by_name") or config.get("populate_by_name"))
        for name, field in fields.items():
            alias = field.get("validation_alias", name)
            paths = alias if isinstance(alias, list) and isinstance(alias[0], list) else [alias]
            paths = [path if isinstance(path, list) else [path] for path in paths]
            if by_alias and any(len(path) > 1 for path in paths):
                made[REFUSED] = f"the field {name!r} is read from a path, which it cannot say"
            by_name = "validation_alias" not in field or not by_alias or reads_names
            for other in (*([name] if by_name else []), *(str(path[0]) for path in paths if by_alias)):
                named.setdefault(other, False)
                if readers.setdefault(other, name) != name:
                    made[REFUSED] = f"the fields {readers[other]!r} and {name!r} are both read from {other!r}"
        return made

    # --- the rest -------------------------------------------------------------------------------------

    def generate_inner(self, schema: Any) -> JsonSchemaValue:
        """Expresses or refuses the types that pydantic checks with its own functions."""
        self._converters += (converts := schema.get("type") in ("function-before", "function-wrap"))
        made = super().generate_inner(schema)
        self._converters -= converts
        found = made.get("format")
        if isinstance(found, str) and found in texts.ADDRESSES:
            return {"type": "string", "pattern": f"^(?:{texts.ADDRESSES[found]})$"}
        if not str(schema.get("type")).startswith("function-"):
            return made
        function = schema["function"]["function"]
        function = getattr(function, "func", function)  # of a functools.partial
        if not str(getattr(function, "__module__", "")).startswith("pydantic."):
            return made
        name = getattr(function, "__qualname__", "")
        if name == "EmailStr._validate":
            return {"type": "string", "pattern": f"^(?:{texts.EMAIL})$", "maxLength": 254}
        if name == "ByteSize._validate":
            return {"type": "integer", "minimum": 0}
        return {**made, REFUSED: _CHECKS[name]} if name in _CHECKS else made

    def is_subclass_schema(self, schema: core_schema.IsSubclassSchema) -> JsonSchemaValue:
        """Refused: a class has no JSON."""
        return self.handle_invalid_for_json_schema(schema, "a class")

    def chain_schema(self, schema: core_schema.ChainSchema) -> JsonSchemaValue:
        """A first step that is followed by Python functions, which ``parse`` runs; other steps after the first are
        refused.
        """
        made = super().chain_schema(schema)
        if any(
            step["type"] != "any" and not step["type"].startswith("function-") for step in schema["steps"][1:]
        ):
            return {**made, REFUSED: "it cannot say what is checked after the text was read"}
        return made

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        """A type without JSON is refused at its place. If the refusal is relaxed, the place allows no value."""
        return {REFUSED: f"there is no JSON for {error_info}", "not": {}}


def _url(pattern: str | None, longest: int | None) -> JsonSchemaValue:
    if pattern is None:
        return {
            "type": "string",
            REFUSED: "it cannot say the length of a URL that pydantic completes; leave max_length out",
        }
    made: JsonSchemaValue = {"type": "string", "pattern": f"^(?:{pattern})$"}
    if longest is not None:
        made["maxLength"] = longest
        made["allOf"] = [{"anyOf": [{"maxLength": max(longest - 1, 0)}, {"pattern": "://[^/?#]*/"}]}]
    return made


def _zone(schema: Any) -> str:
    constraint = schema.get("tz_constraint")
    if constraint is None:
        return f"{texts.OFFSET}?"
    return "" if constraint == "naive" else texts.OFFSET


def _bounded(made: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
    """Bounds of dates and times are refused: JSON Schema has none for strings."""
    if schema.get("now_op") is not None or any(
        schema.get(name) is not None for name in ("gt", "ge", "lt", "le")
    ):
        made[REFUSED] = "it cannot say bounds of dates and times"
    if isinstance(schema.get("tz_constraint"), int):
        made[REFUSED] = "it cannot say one certain offset from UTC"
    return made


def _inside(schema: Any) -> Any:
    """The core schema by which a text is read, without its wrappers."""
    inner = {
        "default": "schema",
        "nullable": "schema",
        "json-or-python": "json_schema",
        "lax-or-strict": "lax_schema",
    }
    while schema["type"] in inner:
        schema = schema[inner[schema["type"]]]
    return schema


def _plain(value: Any) -> Any:
    """A value that can be compared with others; lists are equal to nothing here."""
    return id(value) if isinstance(value, list | dict) else value


def _told_apart(schema: Any) -> bool:
    """Whether different texts are different values."""
    if schema["type"] == "str":
        return not any(schema.get(name) for name in ("strip_whitespace", "to_lower", "to_upper"))
    return schema["type"] in ("int", "bool", "none", "date", "literal", "enum")


def _hashable(schema: Any) -> bool:
    """Whether instances can be in a set."""
    kind = schema["type"]
    if kind == "union":
        choices = (each[0] if isinstance(each, tuple) else each for each in schema["choices"])
        return all(_hashable(_inside(each)) for each in choices)
    if kind.startswith("tuple"):
        return all(_hashable(_inside(each)) for each in schema["items_schema"])
    if kind in ("model", "dataclass"):
        return schema["cls"].__hash__ is not None
    return kind not in (
        "any",
        "list",
        "deque",
        "dict",
        "set",
        "typed-dict",
        "tagged-union",
        "generator",
        "counter",
        "ordered-dict",
    )


def _read_back(made: JsonSchemaValue, members: Iterable[Any], reader: SchemaValidator) -> JsonSchemaValue:
    """The listed values that pydantic can read back; refused, if there are others."""
    kept: list[Any] = []
    lost: list[str] = []
    for member in members:
        try:
            text = to_json(member)
            reader.validate_json(text)
            kept.append(json.loads(text))
        except (ValidationError, PydanticSerializationError, UnicodeDecodeError):
            lost.append(str(member) if isinstance(member, Enum) else repr(member))
    if lost:
        made = {name: made[name] for name in made if name not in ("const", "type")}
        made["enum"] = kept
        shown = ", ".join(lost[:3])
        made[REFUSED] = (
            f"pydantic does not read {shown} back from JSON; leave it out, or let it be a string or a number"
        )
    return made
