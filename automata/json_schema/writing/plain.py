"""Plain schemas, which most sub-schemas are: their texts without the algebra of value sets.

The idea: a schema that has only a type, listed members, or items is directly a cell of the normal form. No set
operation is needed, so the native core writes its rule from the keywords at once (``PlainWriter``), and calls ``Ways``
for rare cases. Schemas with any other keyword, or a keyword of any other form, are handled in the general way: plain
schemas are never rejected, and never clearly empty.

Invariant: the texts are those of the general way (tests/automata/json_schema/writing/test_schema_plain.py).
"""

from __future__ import annotations

from collections.abc import Hashable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tokenfst._native import PlainWriter
from tokenfst.automata.expressions.expression import Differing, Expr, Unordered, union
from tokenfst.automata.json_schema.documents.keywords import KEYWORDS, bounds
from tokenfst.automata.json_schema.documents.source import NESTED, Place
from tokenfst.automata.json_schema.reading.plain_parts import BITS, READER
from tokenfst.automata.json_schema.reading.typed_keywords import LONGEST_CONSTANTS, typed
from tokenfst.automata.json_schema.reading.unevaluated import Evaluated
from tokenfst.automata.json_schema.sets.arrays import Array
from tokenfst.automata.json_schema.sets.formula import Formula
from tokenfst.automata.json_schema.sets.objects import Object
from tokenfst.automata.json_schema.sets.strings import words
from tokenfst.automata.json_schema.sets.value_sets import EVERY, ValueSet
from tokenfst.automata.json_schema.writing.distinct import endless
from tokenfst.automata.json_schema.writing.items import Items
from tokenfst.automata.json_schema.writing.members import Members
from tokenfst.common.clock_cache import Recent

if TYPE_CHECKING:
    from tokenfst.automata.json_schema.writing.writer import Level, Writer


def _bits(*names: str) -> int:
    return sum(BITS[name] for name in names)


_OF_OBJECTS = _bits("type", "properties", "required", "additionalProperties")
_OF_ARRAYS = _bits("type", "items", "minItems", "maxItems")
_OF_SCALARS = _bits(
    *("type", "enum", "const", "pattern", "format", "minLength", "maxLength"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
)
_TYPED: Recent[Hashable, Expr] = Recent(256)
"""Cache: the texts of all values of some types, by the types and the spelling."""
_SCALARS: Recent[Hashable, Expr] = Recent(1024)
"""Cache: the texts of sub-schemas whose values have no parts, by their keywords and the layout. Many schemas describe a
number in the same way.
"""


class Ways:
    """The functions that the native core calls when it writes plain schemas (``PlainWriter``)."""

    @staticmethod
    def words(writer: Writer, types: tuple[str, ...] | None, listed: Any) -> Expr | None:
        """The texts of listed strings; ``None`` if other values or too many characters are listed, or strings are not
        allowed.
        """
        if types is not None and "string" not in types:
            return None
        if listed.__class__ is not list or any(each.__class__ is not str for each in listed):
            return None
        cells = words(listed) if sum(map(len, listed)) <= LONGEST_CONSTANTS else ()
        return cells[0].json(writer.spelling, writer.work) if cells else None

    @staticmethod
    def typed(writer: Writer, types: tuple[str, ...], place: Place) -> Expr:
        """The texts of all values without parts of these types."""
        strict = place.draft == 4
        key = types, strict, writer.spelling, writer.fractions
        return _TYPED.get(key, lambda: writer.scalars(typed(types, strict), place.where()))

    @staticmethod
    def scalar(writer: Writer, level: Level, formula: Formula, key: Hashable) -> Expr:
        """The texts of a sub-schema whose values have no parts. Schemas with the same ``key`` share them."""
        return _SCALARS.get(key, lambda: writer.general(formula, level))

    @staticmethod
    def bounds(place: Place) -> tuple[int, int | None] | None:
        """The bounds of the number of items; ``None`` if their form is wrong."""
        value = place.value
        for name in ("minItems", "maxItems"):
            if name in value and not KEYWORDS[name][2][0](value[name], place.draft):
                return None
        return bounds(place, value, "minItems", "maxItems")

    @staticmethod
    def among(writer: Writer, place: Place, types: tuple[str, ...] | None, text: Expr, arrays: bool) -> Expr:
        """The union of ``text`` and the texts of all other values of these types.

        ``text`` is that of arrays if ``arrays`` is set, otherwise of objects. ``types``: ``None`` for all types.
        """
        if types is not None:
            return union(Ways.typed(writer, types, place), text)
        scalars = writer.scalars(EVERY, "")
        if arrays:
            return union(scalars, text, Members(writer, Object()).texts())
        return union(scalars, Items(writer, Array()).texts(), text)

    @staticmethod
    @lru_cache(maxsize=512)
    def room(excluded: int) -> Differing:
        """The data of a FRESH node for all names except for a number of ``excluded`` ones."""
        found = endless(0, excluded)
        return Differing(few_endings=False, few_bytes=found.few_bytes, many_bytes=found.many_bytes)

    order = staticmethod(lru_cache(maxsize=512)(Unordered))
    """The data of an UNORDERED node. Equal ones are one object."""


_WRITER = PlainWriter(
    READER,
    (_bits("type", "enum"), _OF_OBJECTS, _OF_ARRAYS, _OF_SCALARS),
    NESTED,
    Evaluated(),
    _TYPED.known,
    _SCALARS.known,
    Ways,
)
"""The native core's writer of plain schemas."""


class PlainSchemas:
    """Finds and writes the plain schemas of one ``Writer``.

    The writer is passed to each call, because a reference to it here would be a cycle.
    """

    def text(self, writer: Writer, level: Level, formula: Formula) -> Expr | None:
        """The texts of a formula; ``None`` if the formula is not that of a plain schema."""
        return _WRITER.text(writer, level, formula)


def _object_key(listed: dict[str, Formula], required: frozenset[str], held: Formula) -> Hashable:
    """A key for members that consists of numbers and names, because the garbage collector would traverse pairs of
    names and formulas. A schema's formulas live as long as its writer.
    """
    return tuple(listed), tuple(map(id, listed.values())), required, id(held)


def plain_key(value_set: ValueSet) -> Hashable | None:
    """The key of a plain schema whose objects are those of a value set; ``None`` if no plain schema has them."""
    if (
        len(value_set.objects) != 1
        or value_set.null
        or value_set.true
        or value_set.false
        or value_set.strings
        or value_set.arrays
    ):
        return None
    cell = value_set.objects[0]
    if cell.some or cell.high is not None or cell.low > len(cell.required) or value_set.has_numbers():
        return None
    held = cell.held()
    return None if held is None else (_object_key(dict(cell.listed), cell.required, held), ("object",))
