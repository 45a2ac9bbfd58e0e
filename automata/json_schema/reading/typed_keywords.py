"""Translation of the keywords of one type to value sets: ``type``, ``enum``, ``minimum``, ``pattern``, ``items``,
``properties`` and similar.

In-place applicators are translated by ``meaning``. Patterns are compiled once for a schema, so that equal ones are one
``Language``, and a cell with a pattern and its complement is recognized as empty.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

from tokenfst.automata.formats.registry import find_format, format_language, outer_language
from tokenfst.automata.json_schema.documents.keywords import bounds
from tokenfst.automata.json_schema.documents.source import Place
from tokenfst.automata.json_schema.sets import strings as schema_strings
from tokenfst.automata.json_schema.sets.arrays import Array, Contains
from tokenfst.automata.json_schema.sets.arrays import cell as array_cell
from tokenfst.automata.json_schema.sets.constants import NotJsonError, constants_value_set
from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula
from tokenfst.automata.json_schema.sets.objects import Named, Object
from tokenfst.automata.json_schema.sets.objects import cell as object_cell
from tokenfst.automata.json_schema.sets.strings import (
    EVERY_STRING,
    NO_STRING,
    Part,
    Strings,
    StringSet,
    TextPattern,
)
from tokenfst.automata.json_schema.sets.value_sets import EVERY, EVERY_NUMBER, INTEGERS, NO_NUMBER, ValueSet
from tokenfst.automata.json_values.numbers import NumberSet
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.ecma import ecma_pattern
from tokenfst.budget import Budget
from tokenfst.common.plurals import counted
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    PatternSyntaxError,
    SchemaError,
    UnsupportedPatternError,
    UnsupportedSchemaError,
)

if TYPE_CHECKING:
    from tokenfst.automata.json_schema.reading.meaning import Meaning

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_OF_NUMBERS = frozenset(_NUMBERS)
_OF_LENGTHS = frozenset(("minLength", "maxLength"))
_OF_ARRAYS = frozenset(
    ("items", "prefixItems", "additionalItems", "contains", "minItems", "maxItems", "uniqueItems")
)
_OF_OBJECTS = frozenset(
    (
        *("properties", "patternProperties", "additionalProperties", "propertyNames"),
        *("required", "minProperties", "maxProperties"),
    )
)

_LONGEST_PATTERN = 20_000
LONGEST_CONSTANTS = 500_000
"""Maximum total number of characters of the strings of one ``enum``, because each becomes a part of an expression."""


class TypedKeywords:
    """Translation of keywords to value sets, with a cache of one schema's patterns."""

    def __init__(self, budget: Budget | None, formats: Literal["assert", "annotate"]) -> None:
        self._budget, self._formats = budget, formats
        self.shares = formats if budget is None else None
        """What value sets without parts depend on besides their keywords; ``None`` for the user's own budget."""
        self._patterns: dict[str, Language] = {}

    def value_set(self, place: Place, keywords: Mapping[str, Any], meaning: Meaning) -> ValueSet:
        """The value set of all keywords of ``place`` that are not in-place applicators."""
        result = EVERY
        if "type" in keywords:
            named = keywords["type"]
            result = typed(named if isinstance(named, str) else tuple(named), place.draft == 4)
        steps: list[Callable[[], ValueSet]] = []
        if "enum" in keywords:
            steps.append(lambda: _listed(place, "enum", keywords["enum"], meaning))
        if "const" in keywords:
            steps.append(lambda: _listed(place, "const", [keywords["const"]], meaning))
        if not _OF_NUMBERS.isdisjoint(keywords):
            steps.append(lambda: ValueSet(numbers=_numbers(place, keywords, self._budget)))
        if not _OF_LENGTHS.isdisjoint(keywords):
            steps.append(lambda: ValueSet(strings=_lengths(place, keywords)))
        if "pattern" in keywords:
            steps.append(
                lambda: ValueSet(strings=schema_strings.within(self.pattern(place, keywords["pattern"])))
            )
        if "format" in keywords and (self._formats == "assert" or place.resource.dialect.asserts):
            steps.append(lambda: ValueSet(strings=_format(place, keywords["format"])))
        if not _OF_ARRAYS.isdisjoint(keywords):
            steps.append(lambda: ValueSet(arrays=array_cell(_array(place, keywords, meaning))))
        if not _OF_OBJECTS.isdisjoint(keywords):
            steps.append(
                lambda: ValueSet(
                    objects=object_cell(self._object(place, keywords, meaning), meaning.formulas)
                )
            )
        for step in steps:
            result = meaning.algebra.meet(result, meaning.tried(step), place.where())
        return result

    def pattern(self, place: Place, pattern: str, *tokens: str) -> Language:
        """The texts in which ``pattern`` matches somewhere. ``tokens`` lead from ``place`` to the pattern, for
        messages.
        """
        if isinstance(pattern, TextPattern):
            return pattern.language
        found = self._patterns.get(pattern)
        if found is None:
            where = place.where(*(tokens or ("pattern",)))
            if len(pattern) > _LONGEST_PATTERN:
                raise UnsupportedSchemaError(where, f"a pattern of more than {_LONGEST_PATTERN:,} characters")
            try:
                found = self._patterns[pattern] = _pattern(pattern, self._budget)
            except PatternSyntaxError as error:
                raise SchemaError(where, f"is no ECMA-262 pattern: {error}") from None
            except (UnsupportedPatternError, BudgetExceeded) as error:
                if isinstance(error, BudgetExceeded) and error.resource == "seconds":
                    raise  # omissions must not depend on the clock
                raise UnsupportedSchemaError(where, str(error)) from None
        return found

    def _object(self, place: Place, keywords: Mapping[str, Any], meaning: Meaning) -> Object:
        formula = meaning.entered
        properties = keywords.get("properties", {})
        listed = meaning.members(place, properties)
        demands: list[Named] = []
        parts: list[Part] = []
        for pattern, schema in keywords.get("patternProperties", {}).items():
            language = self.pattern(place, pattern, "patternProperties", pattern)
            held = formula(place.below(schema, "patternProperties", pattern))
            demands.append(Named(Strings(parts=(Part(language),)), held))
            parts.append(Part(language, False))
        if "additionalProperties" in keywords:
            held = formula(place.below(keywords["additionalProperties"], "additionalProperties"))
            names = Strings(parts=tuple(parts), excluded=frozenset(properties))
            demands.append(Named(names, held))
        if "propertyNames" in keywords:
            demands += self._names(place, keywords["propertyNames"], meaning)
        low, high = bounds(place, keywords, "minProperties", "maxProperties")
        required = frozenset(keywords.get("required", ()))
        return Object(tuple(listed.items()), required, tuple(demands), (), low, high, place.where())

    def _names(self, place: Place, schema: Any, meaning: Meaning) -> list[Named]:
        value_set = meaning.value_set(meaning.formula(place.below(schema, "propertyNames")))
        if not value_set.exact:
            raise UnsupportedSchemaError(place.where("propertyNames"), "what it says of names was relaxed")
        return [Named(cell, NONE) for cell in schema_strings.invert(value_set.strings, meaning.formulas.work)]


@lru_cache(maxsize=512)
def _pattern(pattern: str, budget: Budget | None) -> Language:
    """One language for each pattern, so that schemas share the known facts about it."""
    return ecma_pattern(pattern, budget)


@lru_cache(maxsize=256)
def typed(value: str | tuple[str, ...], strict: bool) -> ValueSet:
    """The values of one or several types. ``strict``: in draft-04, an integer has no fraction and no exponent."""
    types = {value} if isinstance(value, str) else set(value)
    integers = INTEGERS if "integer" in types else NO_NUMBER
    if strict and "integer" in types and "number" not in types:
        rest = typed(tuple(types - {"integer"}), False)
        return replace(rest, whole=INTEGERS)
    return ValueSet(
        "null" in types,
        "boolean" in types,
        "boolean" in types,
        EVERY_NUMBER if "number" in types else integers,
        EVERY_STRING if "string" in types else NO_STRING,
        EVERY.arrays if "array" in types else (),
        EVERY.objects if "object" in types else (),
        bare=INTEGERS if "integer" in types and "number" not in types else NO_NUMBER,
    )


def _listed(place: Place, keyword: str, values: list[Any], meaning: Meaning) -> ValueSet:
    where = place.where(keyword)
    length = sum(len(value) for value in values if isinstance(value, str))
    if length > LONGEST_CONSTANTS:
        raise UnsupportedSchemaError(
            where, f"its strings have {counted(length, 'character')}, more than {LONGEST_CONSTANTS:,}"
        )
    if place.draft == 4 and any(isinstance(value, float | Decimal) and value % 1 == 0 for value in values):
        # One of them writes an integer with a fraction, which is of another type there: then each may be written so.
        values = [Fraction(value) if type(value) is int else value for value in values]
    work = meaning.formulas.work
    before, work.place = work.place, where
    work.tick(1 + len(values) // 8)
    try:
        value_set = constants_value_set(values, meaning.constant, work)
        work.place = before
        return value_set
    except NotJsonError as error:
        raise SchemaError(where, str(error)) from None
    except ValueError as error:
        raise UnsupportedSchemaError(where, str(error)) from None


def _numbers(place: Place, keywords: Mapping[str, Any], budget: Budget | None) -> NumberSet:
    given = tuple([(name, type(keywords[name]), keywords[name]) for name in _NUMBERS if name in keywords])
    try:
        return _number_set(given, budget)
    except UnsupportedSchemaError as error:
        raise UnsupportedSchemaError(place.where(error.pointer), error.reason) from None


@lru_cache(maxsize=512)
def _number_set(given: tuple[tuple[str, type, Any], ...], budget: Budget | None) -> NumberSet:
    """The set of numbers of keywords, given with the types of their values and these.

    Raises UnsupportedSchemaError with the name of a keyword that is out of range.
    """
    bounds = {name: value for name, _, value in given}
    for name, plain in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if isinstance(bounds.get(name), bool) and bounds.pop(name) and plain in bounds:
            bounds[name] = bounds.pop(plain)
    result = EVERY_NUMBER if budget is None else EVERY_NUMBER.with_budget(budget)
    names = {"minimum": "minimum", "maximum": "maximum"}
    names |= {"exclusiveMinimum": "exclusive_minimum", "exclusiveMaximum": "exclusive_maximum"}
    for name in _NUMBERS:
        try:
            if name in names and name in bounds:
                result = result & NumberSet.between(**{names[name]: bounds[name]})
            elif name == "multipleOf" and name in bounds:
                result = result & NumberSet.multiples_of(bounds[name])
        except (ConstraintError, BudgetExceeded) as error:
            raise UnsupportedSchemaError(name, str(error)) from None
    return result


def _lengths(place: Place, keywords: Mapping[str, Any]) -> StringSet:
    low, high = bounds(place, keywords, "minLength", "maxLength")
    return schema_strings.lengths(low, high)


def _format(place: Place, name: str) -> StringSet:
    known = find_format(name)
    if known is None:
        return EVERY_STRING
    language = format_language(name)
    if language is None:
        raise UnsupportedSchemaError(place.where("format"), f"{name!r} has no automaton: {known.refused}")
    return schema_strings.within(language, known.missing, outer_language(name))


def _array(place: Place, keywords: Mapping[str, Any], meaning: Meaning) -> Array:
    formula = meaning.entered
    prefix: list[Formula] = []
    rest = ANY
    items = keywords.get("items")
    if isinstance(items, list):
        prefix = [formula(place.below(schema, "items", k)) for k, schema in enumerate(items)]
        if "additionalItems" in keywords:
            rest = formula(place.below(keywords["additionalItems"], "additionalItems"))
    else:
        schemas = keywords.get("prefixItems", [])
        prefix = [formula(place.below(schema, "prefixItems", k)) for k, schema in enumerate(schemas)]
        if items is not None:
            rest = formula(place.below(items, "items"))
    low, high = bounds(place, keywords, "minItems", "maxItems")
    contains: tuple[Contains, ...] = ()
    if "contains" in keywords:
        least, most = bounds(place, {"minContains": 1, **keywords}, "minContains", "maxContains")
        held = meaning.opened(place.below(keywords["contains"], "contains"))
        contains = (Contains(held, least, most, 0, place.where("contains")),)
    unique = place.where("uniqueItems") if keywords.get("uniqueItems") else ""
    return Array(tuple(prefix), rest, low, high, contains, unique)
