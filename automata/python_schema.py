"""The JSON Schema of a Python type, no wider than what pydantic accepts.

Pydantic's own schemas describe a type for people and other programs; a text that satisfies one may still be refused
when it is read (``Decimal`` as any string, integer keys as any names, the year 0, a number that rounds to its excluded
bound). A text that was generated under a constraint must be readable, so this generator narrows what can be narrowed
with keywords of JSON Schema, and marks the rest with ``REFUSED`` and a reason, for ``python_types`` to report.

Sets are lists here whose items may repeat, as pydantic reads them, unless their length counts; items of at most
``MOST_DISTINCT`` listed values do not repeat. Needs pydantic: imported by ``python_types`` when a type is met.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from decimal import Decimal
from fractions import Fraction
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

REFUSED = "$refused"
"""The keyword whose value says why pydantic accepts less than what a JSON Schema says there."""
MOST_DISTINCT = 7

_DAY = (
    r"(?!0000)(?:\d{4}-(?:(?:0[13578]|1[02])-(?:0[1-9]|[12]\d|3[01])|(?:0[469]|11)-(?:0[1-9]|[12]\d|30)"
    r"|02-(?:0[1-9]|1\d|2[0-8]))|(?:\d\d(?:0[48]|[2468][048]|[13579][26])"
    r"|(?:[02468][048]|[13579][26])00)-02-29)"
)
_HOUR = r"(?:[01]\d|2[0-3])"
_CLOCK = rf"{_HOUR}:[0-5]\d:[0-5]\d(?:\.\d{{1,6}})?"
_OFFSET = rf"(?:Z|[+-]{_HOUR}:[0-5]\d)"
_SIXTY = r"[1-5]?\d"
_TIME = rf"(?:(?:1?\d|2[0-3])H)?(?:{_SIXTY}M)?(?:{_SIXTY}(?:\.\d{{1,6}})?S)?"
_DURATION = rf"-?P(?=.)(?:\d{{1,6}}Y)?(?:\d{{1,8}}D)?(?:T(?=.){_TIME})?"
_OCTET = r"(?:25[0-5]|2[0-4]\d|1\d\d|[1-9]?\d)"
_LABEL = r"(?!xn--)[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?"
_HOST = rf"(?:(?:{_LABEL}\.)*(?=[a-z]){_LABEL}|{_OCTET}(?:\.{_OCTET}){{3}})"
_PATH = r"(?:[A-Za-z0-9._~!$&'()*+,;=:@-]|%[0-9A-Fa-f]{2})*"
_REST = rf"(?::[1-9]\d{{0,3}})?(?:/{_PATH})*(?:\?{_PATH})?(?:#{_PATH})?"
_SPECIAL = "|".join(
    "".join(f"[{letter}{letter.upper()}]" for letter in name)
    for name in ("http", "https", "ws", "wss", "ftp", "file")
)
_HEX = "[0-9A-Fa-f]"
_LARGEST = 1.7976931348623157e308
_ROUNDED = 2**23
"""Below this pydantic's tolerance of 1e-9 covers the rounding of a multiple of a number that is itself rounded."""


class TypeSchema(GenerateJsonSchema):
    """Pydantic's generator of schemas, narrowed."""

    # --- numbers --------------------------------------------------------------------------------------

    def float_schema(self, schema: core_schema.FloatSchema) -> JsonSchemaValue:
        """A bound that is excluded is the next number beyond it: a text in between would be read as the bound.
        Multiples too far from zero are left out: pydantic takes their rounding for a remainder."""
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
        return made

    def decimal_schema(self, schema: core_schema.DecimalSchema) -> JsonSchemaValue:
        """A string of digits, as pydantic writes it; a number instead where bounds are given."""
        names = ("gt", "ge", "lt", "le")
        bounds: dict[str, Any] = {name: float(schema[name]) for name in names if schema.get(name) is not None}  # type: ignore[literal-required]
        multiple = schema.get("multiple_of")
        whole, places = schema.get("max_digits"), schema.get("decimal_places")
        if whole is not None and places is not None:
            places = min(whole, places)
        if not bounds and multiple is None:
            before = None if whole is None else whole - (places or 0)
            digits = "*" if before is None else f"{{0,{before - 1}}}"
            begin = "0" if before == 0 else rf"(?:0|[1-9]\d{digits})"
            after = r"\.\d+" if places is None and whole is None else rf"\.\d{{1,{places}}}" if places else ""
            fraction = after if before == 0 else f"(?:{after})?"
            return {"type": "string", "pattern": f"^-?{begin}{fraction}$"}
        made = self.float_schema(core_schema.float_schema(**bounds, allow_inf_nan=False))
        if multiple is not None:
            finest = min(int(multiple.as_tuple().exponent), 0)
            most = float(Decimal(10) ** (15 + finest))  # a float keeps 15 digits
            made["multipleOf"] = float(multiple)
            made["minimum"], made["maximum"] = max(made["minimum"], -most), min(made["maximum"], most)
        if whole is not None or places is not None:
            made[REFUSED] = "it cannot say the digits and the bounds of a Decimal together"
        return made

    # --- strings --------------------------------------------------------------------------------------

    def str_schema(self, schema: core_schema.StringSchema) -> JsonSchemaValue:
        """Text that is stripped has nothing to strip, so that its length is the one that counts."""
        made = super().str_schema(schema)
        if schema.get("strip_whitespace", self._config.str_strip_whitespace):
            made["allOf"] = [
                {"pattern": r"^(?![\s\x1c-\x1f\x85])[^]*$"},
                {"pattern": r"^(?:[^]*[^\s\x1c-\x1f\x85])?$"},
            ]
        return made

    def date_schema(self, schema: core_schema.DateSchema) -> JsonSchemaValue:
        """RFC 3339's full-date in the years 1 to 9999."""
        return _bounded({"type": "string", "pattern": f"^{_DAY}$"}, schema)

    def time_schema(self, schema: core_schema.TimeSchema) -> JsonSchemaValue:
        """ISO 8601, up to microseconds, with an offset from UTC or without; no leap second."""
        return _bounded({"type": "string", "pattern": f"^{_CLOCK}{_zone(schema)}$"}, schema)

    def datetime_schema(self, schema: core_schema.DatetimeSchema) -> JsonSchemaValue:
        """A date, ``T``, a time."""
        return _bounded({"type": "string", "pattern": f"^{_DAY}T{_CLOCK}{_zone(schema)}$"}, schema)

    def timedelta_schema(self, schema: core_schema.TimedeltaSchema) -> JsonSchemaValue:
        """ISO 8601 in days, hours, minutes and seconds, each within its larger unit."""
        return _bounded({"type": "string", "pattern": f"^{_DURATION}$"}, schema)

    def uuid_schema(self, schema: core_schema.UuidSchema) -> JsonSchemaValue:
        """The hyphenated form, of the version that is asked for."""
        version = schema.get("version")
        if version is None:
            return super().uuid_schema(schema)
        pattern = f"^{_HEX}{{8}}-{_HEX}{{4}}-{version:x}{_HEX}{{3}}-[89ABab]{_HEX}{{3}}-{_HEX}{{12}}$"
        return {"type": "string", "pattern": pattern}

    def url_schema(self, schema: core_schema.UrlSchema) -> JsonSchemaValue:
        """Of schemes that the WHATWG's URL standard reads in its own way, those with a plain host and port."""
        made = super().url_schema(schema)
        schemes = schema.get("allowed_schemes")
        plain = {"pattern": f"^(?:{'|'.join(schemes) if schemes else _SPECIAL})://{_HOST}{_REST}$"}
        if schemes is not None:
            return {**{name: made[name] for name in made if name != "format"}, **plain}
        return {**made, "anyOf": [{"not": {"pattern": f"^(?:{_SPECIAL}):"}}, plain]}

    def complex_schema(self, schema: core_schema.ComplexSchema) -> JsonSchemaValue:
        """Refused."""
        return {**super().complex_schema(schema), REFUSED: "it cannot say how complex numbers are written"}

    def json_schema(self, schema: core_schema.JsonSchema) -> JsonSchemaValue:
        """Refused."""
        return {**super().json_schema(schema), REFUSED: "it cannot say that a string holds JSON"}

    # --- containers -----------------------------------------------------------------------------------

    def set_schema(self, schema: core_schema.SetSchema) -> JsonSchemaValue:
        """See the module's docstring."""
        return _repeating(super().set_schema(schema))

    def frozenset_schema(self, schema: core_schema.FrozenSetSchema) -> JsonSchemaValue:
        """As ``set_schema``."""
        return _repeating(super().frozenset_schema(schema))

    def dict_schema(self, schema: core_schema.DictSchema) -> JsonSchemaValue:
        """Names that can be read as the keys that they stand for."""
        made = super().dict_schema(schema)
        keys = self.generate_inner(schema["keys_schema"]) if "keys_schema" in schema else {}
        if keys.get("type") == "integer" and keys.keys() <= {"type", "title"}:
            made["propertyNames"] = {"pattern": r"^(?:0|-?[1-9]\d{0,99})$"}
        elif keys.get("type") == "string" or "$ref" in keys or "enum" in keys or "const" in keys:
            made["propertyNames"] = keys
        elif keys.keys() - {"title", "description"}:
            made[REFUSED] = "it cannot say keys that are neither strings nor plain integers"
        return made

    def model_fields_schema(self, schema: core_schema.ModelFieldsSchema) -> JsonSchemaValue:
        """A field's other names are no free members: pydantic may read them as the field."""
        return self._without_other_names(super().model_fields_schema(schema), schema["fields"])

    def typed_dict_schema(self, schema: core_schema.TypedDictSchema) -> JsonSchemaValue:
        """As ``model_fields_schema``."""
        return self._without_other_names(super().typed_dict_schema(schema), schema["fields"])

    def dataclass_args_schema(self, schema: core_schema.DataclassArgsSchema) -> JsonSchemaValue:
        """As ``model_fields_schema``."""
        fields = {field["name"]: field for field in schema["fields"]}
        return self._without_other_names(super().dataclass_args_schema(schema), fields)

    def _without_other_names(self, made: JsonSchemaValue, fields: Mapping[str, Any]) -> JsonSchemaValue:
        named = self.resolve_ref_schema(made).setdefault("properties", {})
        for name, field in fields.items():
            alias = field.get("validation_alias", name)
            paths = alias if isinstance(alias, list) and isinstance(alias[0], list) else [alias]
            paths = [path if isinstance(path, list) else [path] for path in paths]
            if any(len(path) > 1 for path in paths):
                made[REFUSED] = f"the field {name!r} is read from a path, which it cannot say"
            for other in (name, *(str(path[0]) for path in paths)):
                named.setdefault(other, False)
        return made

    # --- the rest -------------------------------------------------------------------------------------

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> JsonSchemaValue:
        """What has no JSON at all is refused at its place; nothing stands there where that is relaxed."""
        return {REFUSED: f"there is no JSON for {error_info}", "not": {}}


def _zone(schema: Any) -> str:
    constraint = schema.get("tz_constraint")
    if constraint is None:
        return f"{_OFFSET}?"
    return "" if constraint == "naive" else _OFFSET


def _bounded(made: JsonSchemaValue, schema: Any) -> JsonSchemaValue:
    """Bounds of dates and times are refused: JSON Schema has none for strings."""
    if schema.get("now_op") is not None or any(
        schema.get(name) is not None for name in ("gt", "ge", "lt", "le")
    ):
        made[REFUSED] = "it cannot say bounds of dates and times"
    if isinstance(schema.get("tz_constraint"), int):
        made[REFUSED] = "it cannot say one certain offset from UTC"
    return made


def _repeating(made: JsonSchemaValue) -> JsonSchemaValue:
    items = made["items"]
    listed = "const" in items or len(items.get("enum", "*" * 99)) <= MOST_DISTINCT
    if not listed and items.get("type") not in ("boolean", "null") and made.get("minItems", 0) <= 1:
        del made["uniqueItems"]
    return made
