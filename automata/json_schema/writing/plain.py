"""Plain schemas, as most sub-schemas are: their texts without the algebra of shapes.

The idea: a schema that says only what its type is, which members it lists, or what its items are, is a cell of the
normal form as it stands. Nothing has to be met, joined or complemented, so its rule is written from the keywords at
once, by what writes cells (``members``, ``items``). Whatever else is said, of whatever form, goes the
general way: plain schemas are never refused, and never plainly empty.

Invariant: the texts are those of the general way (tests/automata/json_schema/writing/test_schema_plain.py).
"""

from __future__ import annotations

import marshal
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from tokenfst._native import PlainReader, are_members
from tokenfst.automata.expressions.expression import Expr, union
from tokenfst.automata.json_schema.reading.keys import FAR_DOWN, key_of
from tokenfst.automata.json_schema.reading.keywords import KEYWORDS, bounds
from tokenfst.automata.json_schema.reading.leaves import LONGEST_CONSTANTS, typed
from tokenfst.automata.json_schema.reading.meaning import TYPE_KEY
from tokenfst.automata.json_schema.reading.source import NESTED, SCALARS, Place
from tokenfst.automata.json_schema.reading.unevaluated import Evaluated
from tokenfst.automata.json_schema.sets.arrays import Array
from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula, Kind
from tokenfst.automata.json_schema.sets.objects import Object
from tokenfst.automata.json_schema.sets.shape import EVERY, Shape
from tokenfst.automata.json_schema.sets.strings import has_surrogate, words
from tokenfst.automata.json_schema.writing.items import Items
from tokenfst.automata.json_schema.writing.members import Members
from tokenfst.clock_cache import Recent

if TYPE_CHECKING:
    from tokenfst.automata.json_schema.writing.writer import Writer

_BITS = {name: 1 << number for number, name in enumerate(KEYWORDS)}
"""Of each keyword a bit, so that all keywords of a schema are one number."""


def _bits(*names: str) -> int:
    return sum(_BITS[name] for name in names)


_TYPE, _ENUM = _bits("type"), _bits("enum")
_OF_OBJECTS = _bits("type", "properties", "required", "additionalProperties")
_OF_ARRAYS = _bits("type", "items", "minItems", "maxItems")
_OF_WORDS = _TYPE | _ENUM
_OF_SCALARS = _bits(
    *("type", "enum", "const", "pattern", "format", "minLength", "maxLength"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
)
_READER = PlainReader(
    {**_BITS, "$id": 1 << 63, "id": 1 << 63},
    SCALARS,
    TYPE_KEY,
    Place,
    Formula,
    Kind.ATOM,
    ANY,
    NONE,
    marshal.dumps,
    FAR_DOWN,
)
"""Reads sub-schemas in the native core."""
_LONG_KEY = 2_000
"""Bytes: what is longer is seldom said twice."""
_SCHEMA = (dict, bool)
_TYPED: Recent[Hashable, Expr] = Recent(256)
"""Texts of types, by these and how texts are written."""

_ENTERED = Evaluated()
"""``Place.closed`` of a schema whose members are forbidden that nothing names (``closing``)."""
_CLOSED = (None, NESTED, _ENTERED)

_Types = tuple[str, ...] | None
Plain = Expr | tuple[Hashable, Callable[[], Expr]]
"""Texts; or of values with parts, a key that equal ones share and what makes the body of a rule."""


class PlainSchemas:
    """Finds and writes the plain schemas of one ``Writer``, which it is told each time: held, it would be a cycle."""

    def text(self, writer: Writer, place: Place) -> Plain | None:
        """What a sub-schema allows; ``None`` if it is not plain."""
        value = place.value
        if (
            place.closed not in _CLOSED
            or place.scope
            or place.resource.dialect.vocabularies is not None
            or value.__class__ is not dict
        ):
            return None
        said = _READER.said(value)
        if not said & _TYPE:
            if said == _ENUM:
                return self._scalar(writer, place, said, ("string",))
            if not said & ~_OF_OBJECTS:
                return self._object(writer, place, None, value)
            return None if said & ~_OF_ARRAYS else self._array(writer, place, None, value)
        types: Any = value["type"]
        if types.__class__ is str:
            types = (types,)
        elif types.__class__ is list:
            types = tuple(types)
        else:
            return None
        parts = [each for each in types if each not in SCALARS]
        if not parts:
            return self._scalar(writer, place, said, types)
        if parts == ["object"] and not said & ~_OF_OBJECTS:
            return self._object(writer, place, types, value)
        if parts == ["array"] and not said & ~_OF_ARRAYS:
            return self._array(writer, place, types, value)
        return None

    def _scalar(self, writer: Writer, place: Place, said: int, types: tuple[str, ...]) -> Plain | None:
        if said == _TYPE:
            return _typed_texts(writer, types, place)
        if said & ~_OF_WORDS or "string" not in types:
            return None
        listed = place.value["enum"]
        if listed.__class__ is not list or any(each.__class__ is not str for each in listed):
            return None
        cells = words(listed) if sum(map(len, listed)) <= LONGEST_CONSTANTS else ()
        return cells[0].json(writer.spelling, writer.work) if cells else None

    def _object(self, writer: Writer, place: Place, types: _Types, value: Mapping[str, Any]) -> Plain | None:
        properties, names = value.get("properties", {}), value.get("required", [])
        others = value.get("additionalProperties", place.closed != _ENTERED or not properties)
        if others.__class__ not in _SCHEMA or not are_members(properties, names):
            return None
        meaning = writer.meaning
        listed = _READER.formulas(
            properties,
            meaning.formulas.atoms,
            meaning.targets,
            place.resource,
            None if place.closed is None else _ENTERED,
            place.pointer,
            lambda schema, name: meaning.entered(place.below(schema, "properties", name)),
        )
        held = self._entered(writer, place, others, "additionalProperties")
        required = frozenset(names)
        if any(listed.get(name, held) is NONE or has_surrogate(name) for name in required):
            return None
        if types is None and held is ANY and not listed and not required:
            return None
        key = _object_key(listed, required, held), _key(types, place)

        return key, partial(_object_text, writer, place, types, listed, required, held)

    def _array(self, writer: Writer, place: Place, types: _Types, value: Mapping[str, Any]) -> Plain | None:
        for name in ("items", "minItems", "maxItems"):
            if name in value and not KEYWORDS[name][2][0](value[name], place.draft):
                return None
        items = value.get("items", True)
        if items.__class__ not in _SCHEMA:
            return None
        rest = self._entered(writer, place, items, "items")
        low, high = bounds(place, value, "minItems", "maxItems")
        if rest is NONE or high == 0 or (high is not None and low > high):
            return None
        if types is None and rest is ANY and not low and high is None:
            return None

        make = partial(_array_text, writer, place, types, Array((), rest, low, high))
        return (id(rest), low, high, _key(types, place)), make

    def _entered(self, writer: Writer, place: Place, schema: Any, keyword: str) -> Formula:
        """``Meaning.entered`` of what stands under a keyword."""
        meaning = writer.meaning
        closed = None if place.closed is None else _ENTERED
        found = _READER.formula(
            schema, meaning.formulas.atoms, meaning.targets, place.resource, closed, place.pointer, keyword
        )
        return meaning.entered(place.below(schema, keyword)) if found is None else found


def _object_text(
    writer: Writer,
    place: Place,
    types: _Types,
    listed: dict[str, Formula],
    required: frozenset[str],
    held: Formula,
) -> Expr:
    text = Members(writer, Object(where=place.where())).plain(listed, required, held)
    return _among(writer, place, types, text)


def _array_text(writer: Writer, place: Place, types: _Types, cell: Array) -> Expr:
    return _among(writer, place, types, Items(writer, cell).texts(), arrays=True)


def _among(writer: Writer, place: Place, types: _Types, text: Expr, *, arrays: bool = False) -> Expr:
    """``text``, of arrays or else objects, beside the texts of all other values of these types."""
    if types is not None:
        return text if len(types) == 1 else union(_typed_texts(writer, types, place), text)
    scalars = writer.scalars(EVERY, "")
    if arrays:
        return union(scalars, text, Members(writer, Object()).texts())
    return union(scalars, Items(writer, Array()).texts(), text)


def _typed_texts(writer: Writer, types: tuple[str, ...], place: Place) -> Expr:
    """The texts of all values without parts of these types."""
    strict = place.draft == 4
    key = types, strict, writer.spelling, writer.fractions
    return _TYPED.get(key, lambda: writer.scalars(typed(types, strict), place.where()))


def _key(types: _Types, place: Place) -> Hashable:
    """A key of what types mean: integers are others in draft-04."""
    return (types, 4) if types is not None and place.draft == 4 and "integer" in types else types


def _object_key(listed: dict[str, Formula], required: frozenset[str], held: Formula) -> Hashable:
    """A key of members, of numbers and names: the collector would go through pairs of names and formulas. A schema's
    formulas live as long as its writer."""
    return tuple(listed), tuple(map(id, listed.values())), required, id(held)


def scalar_key(writer: Writer, place: Place) -> Hashable | None:
    """What the texts depend on of a sub-schema whose values have no parts, which schemas share; ``None`` where that is
    more than its keywords and how texts are written: the user's own budget, or another dialect."""
    value, shares = place.value, writer.meaning.shares
    if shares is None or value.__class__ is not dict or place.resource.dialect.vocabularies is not None:
        return None
    types = value.get("type")
    if not (
        types in SCALARS if types.__class__ is str else types.__class__ is list and SCALARS.issuperset(types)
    ):
        return None
    if _READER.said(value) & ~_OF_SCALARS:
        return None
    key = key_of(place, KEYWORDS.keys() & value.keys())
    if key.__class__ is not bytes or len(key) > _LONG_KEY:
        return None
    return key, place.draft, writer.spelling, writer.fractions, shares


def plain_key(shape: Shape) -> Hashable | None:
    """The key of the plain schema with the objects that a shape has; ``None`` if there is none."""
    if len(shape.objects) != 1 or shape.null or shape.true or shape.false or shape.strings or shape.arrays:
        return None
    cell = shape.objects[0]
    if cell.some or cell.high is not None or cell.low > len(cell.required) or shape.has_numbers():
        return None
    held = cell.held()
    return None if held is None else (_object_key(dict(cell.listed), cell.required, held), ("object",))
