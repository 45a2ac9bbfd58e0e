"""From shapes to rules: the JSON texts of what a formula allows.

The idea: a formula whose values have no parts is an expression; one with arrays or objects is a rule, and its parts'
formulas are called, so recursion through ``$ref`` is recursion of rules. A rule is written when it is first called,
from a list of those to come, so depth costs no Python stack. Formulas with equal shapes share a rule.

Numbers are spelled by ``json_numbers``: integers without exponent, with or without a fraction of zeros; other numbers
also with exponents, by the rule there.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache

from tokenfst.automata.expressions.exclusion_marks import opened
from tokenfst.automata.expressions.expression import (
    EMPTY,
    Expr,
    call,
    complement,
    concat,
    intersect,
    literal,
    optional,
    union,
)
from tokenfst.automata.json_schema.reading.meaning import Meaning, Relaxed
from tokenfst.automata.json_schema.reading.source import Place
from tokenfst.automata.json_schema.sets.arrays import Array
from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula
from tokenfst.automata.json_schema.sets.objects import Object
from tokenfst.automata.json_schema.sets.shape import EVERY, EVERY_NUMBER, INTEGERS, NO_NUMBER, Shape
from tokenfst.automata.json_schema.sets.strings import EVERY_STRING, any_string, spelled
from tokenfst.automata.json_schema.writing.items import Items
from tokenfst.automata.json_schema.writing.members import Members
from tokenfst.automata.json_schema.writing.plain import PlainSchemas, plain_key
from tokenfst.automata.json_schema.writing.whitespace import Layout
from tokenfst.automata.json_values.numbers import NumberSet, number_language
from tokenfst.automata.languages.emptiness import has_a_word
from tokenfst.errors import BudgetExceeded, UnsupportedSchemaError

START = "value"
"""The rule of the whole text."""
ANY_RULE = "any"
"""The rule of any JSON value."""


_ANY: dict[tuple[Layout, bool, bool], Expr] = {}
_MOST_LAYOUTS = 16


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules of a schema; ``start`` is the expression of the whole. ``states`` are the rules that are no values but
    what is left of an array or object, so that they may have the empty word. An expression without calls is EMPTY or
    has a word."""

    start: Expr
    bodies: dict[str, Expr]
    states: frozenset[str]


class Writer:
    """Writes the rules of one schema."""

    def __init__(
        self,
        meaning: Meaning,
        layout: Layout,
        *,
        fractions: bool,
        any_order: bool,
        distinct: bool,
    ) -> None:
        """``fractions``: whether 1.0 may stand for 1, which a Python type does not take. ``any_order``: whether members
        come in any order. ``distinct``: whether names that no schema lists must differ."""
        self.meaning, self.layout, self.work = meaning, layout, meaning.formulas.work
        self.fractions, self.any_order, self.distinct = fractions, any_order, distinct
        self._bodies: dict[str, Expr] = {}
        self._known: dict[Formula, Expr] = {NONE: EMPTY}
        self._shared: dict[Hashable, Expr] = {}
        """Calls of rules, by what they are written from."""
        self._scalars: dict[int, tuple[Shape, Expr]] = {}
        """Of shapes without parts, by their id."""
        self._members: dict[tuple[str, int], Expr] = {}
        """By names and the ids of formulas."""
        self._later: tuple[dict[Expr, Expr], dict[Expr, Expr]] = {}, {}
        """Of members, how they stand after a comma: where they need not be there, and where they must."""
        self._plain = None if meaning.relaxes or any_order else PlainSchemas()
        self._waiting: list[tuple[str, Callable[[], Expr]]] = []
        self._names: set[str] = {START}
        self._taken: dict[str, int] = {}
        """Of names that were taken, the last number behind one."""
        self._states: set[str] = set()

    def write(self, root: Formula) -> Rules:
        """The rules of a formula. UnsupportedSchemaError; BudgetExceeded."""
        return self.finish(lambda: self.value(root))

    def finish(self, make_start: Callable[[], Expr]) -> Rules:
        """The rules of a start, and all that it calls."""
        work = self.work
        try:
            start = make_start()
            while self._waiting:
                name, make = self._waiting.pop()
                work.place = f"the rule {name!r}"
                work.tick()
                if len(self._bodies) >= work.budget.states:
                    raise work.exceeded("states")
                self._bodies[name] = make()
        finally:
            self._waiting.clear()  # each of them holds this writer
        return Rules(start, self._bodies, frozenset(self._states))

    def value(self, formula: Formula) -> Expr:
        """The texts of a formula's values: an expression, or a call."""
        found = self._known.get(formula)
        if found is None:
            found = self._known[formula] = self._value(formula)
        return found

    def member(self, name: str, formula: Formula) -> Expr:
        """A member with a listed name. Large schemas say the same of a name in many places: it is written once."""
        key = name, id(formula)
        found = self._members.get(key)
        if found is None:
            found = self._members[key] = concat(spelled(name), self.layout.colon, self.value(formula))
        return found

    def later(self, member: Expr, needed: bool) -> Expr:
        """A member after a comma; or nothing, if it is not needed."""
        known = self._later[needed]
        found = known.get(member)
        if found is None:
            found = concat(self.layout.comma, member)
            found = known[member] = found if needed else optional(found)
        return found

    def rule(self, name: str, make: Callable[[], Expr]) -> Expr:
        """A call of a new rule named after ``name``, whose body is made later: what is left of an array or object."""
        unique = self._new(name, make)
        self._states.add(unique)
        return call(unique)

    def _new(self, name: str, make: Callable[[], Expr]) -> str:
        unique = name
        while unique in self._names:
            self._taken[name] = number = self._taken.get(name, 1) + 1
            unique = f"{name}~{number}"
        self._names.add(unique)
        self._waiting.append((unique, make))
        return unique

    def bracketed(
        self, left: bytes, filled: Expr, right: bytes, *, empty: bool, distinct: bool = False
    ) -> Expr:
        """``filled``, which has no empty word, between brackets; with ``empty``, also brackets that hold nothing.
        ``distinct``: there are strings right inside that must differ."""
        before, behind = literal(left), literal(right)
        if distinct:
            before = opened(before)
        bare = concat(before, self.layout.empty, behind) if empty else EMPTY
        return union(bare, concat(before, self.layout.opened, filled, self.layout.closing, behind))

    def _value(self, formula: Formula) -> Expr:
        if formula is ANY:
            return self._call(ANY_RULE, lambda: ANY_RULE, self._any)
        if self._plain is not None and isinstance(formula.atom, Place):
            plain = self._plain.text(self, formula.atom)
            if isinstance(plain, Expr):
                return plain
            if plain is not None:
                key, make = plain
                return self._call(key, formula.atom.where, make)
        return self.of_shape(self.meaning.shape(formula), formula)

    def of_shape(self, shape: Shape, formula: Formula) -> Expr:
        """The texts of a shape, all or a part of a formula's values: an expression, or a call."""
        if shape is EVERY or shape == EVERY:
            return self.value(ANY)
        if not shape.arrays and not shape.objects:
            known = self._scalars.get(id(shape))
            if known is None:
                known = self._scalars[id(shape)] = shape, self.scalars(shape, place_of(formula))
            return known[1]
        return self._call(
            plain_key(shape) or shape,
            lambda: name_of(formula),
            lambda: self._body(shape, place_of(formula)),
        )

    def _call(self, key: Hashable, name: Callable[[], str], make: Callable[[], Expr]) -> Expr:
        """A call of the rule with this key, which is made if it is new."""
        found = self._shared.get(key)
        if found is None:
            found = self._shared[key] = call(self._new(name(), make))
        return found

    def scalars(self, shape: Shape, where: str) -> Expr:
        """The texts of what has no parts; ``where`` is the schema that says so."""
        parts = [
            literal(text)
            for text, there in ((b"null", shape.null), (b"true", shape.true), (b"false", shape.false))
            if there
        ]
        if shape.has_numbers():
            parts.append(self._numbers(shape.numbers, shape.whole, where))
        parts += [
            any_string() if shape.strings == EVERY_STRING else cell.json(self.work) for cell in shape.strings
        ]
        return union(*parts)

    def _numbers(self, numbers: NumberSet, whole: NumberSet | None, where: str) -> Expr:
        """The texts of numbers; of all numbers, where these are out of reach and may be relaxed."""
        try:
            return number(numbers, whole, self.fractions)
        except BudgetExceeded as error:
            if error.resource == "seconds":
                raise
            refused = UnsupportedSchemaError(f"{where}/multipleOf", str(error))
        if not self.meaning.relaxes:
            raise refused
        self.meaning.relaxed[Relaxed(refused.pointer, refused.reason)] = None
        integral = (numbers - INTEGERS).is_empty()
        return number(INTEGERS if integral else EVERY_NUMBER, None, self.fractions)

    def _any(self) -> Expr:
        """The body of ``ANY_RULE``, one object for all schemas."""
        key = self.layout, self.fractions, self.distinct
        found = _ANY.get(key)
        if found is None:
            if len(_ANY) >= _MOST_LAYOUTS:
                _ANY.clear()
            found = _ANY[key] = self._body(EVERY, "#")
        return found

    def _body(self, shape: Shape, where: str) -> Expr:
        arrays = [self._cell(cell, Items(self, cell).texts, Array()) for cell in shape.arrays]
        objects = [self._cell(cell, Members(self, cell).texts, Object()) for cell in shape.objects]
        return union(self.scalars(shape, where), *arrays, *objects)

    def _cell(self, cell: Array | Object, make: Callable[[], Expr], every: Array | Object) -> Expr:
        """The texts of a cell; of all arrays or objects, where it is out of reach and may be relaxed."""
        try:
            return make()
        except UnsupportedSchemaError as error:
            if not self.meaning.relaxes or cell == every:
                raise
            self.meaning.relaxed[Relaxed(error.pointer, error.reason)] = None
            kind = Items(self, Array()) if isinstance(cell, Array) else Members(self, Object())
            return kind.texts()


@lru_cache(maxsize=256)
def number(numbers: NumberSet, whole: NumberSet | None, fractions: bool) -> Expr:
    """The texts of numbers; with ``fractions``, integers may have one of zeros. Without, those may that are among
    numbers which are none: the 7 of ``{"minimum": 0}``, and not that of ``{"enum": [7, 2.5]}``. ``whole``: as of
    ``Shape``."""
    if whole is not None:
        return _number_or_whole(numbers, whole)
    integral = (numbers - INTEGERS).is_empty()
    lone = NO_NUMBER if fractions or integral else numbers.lone_integers()
    if lone.is_empty():
        return number_language(numbers, exponents=not integral, integer_fraction=fractions).expr
    spelled_alone = number_language(lone, exponents=False, integer_fraction=False).expr
    return union(spelled_alone, number_language(numbers - lone, exponents=True).expr)


def _number_or_whole(numbers: NumberSet, whole: NumberSet) -> Expr:
    """The texts of integers without fraction and exponent, and those of numbers that have one of them."""
    integers = (
        EMPTY if whole.is_empty() else number_language(whole, exponents=False, integer_fraction=False).expr
    )
    if numbers.is_empty():
        return integers
    others = number(numbers, None, True)
    if not ((numbers & INTEGERS) - whole).is_empty():
        others = intersect(others, complement(number(INTEGERS, None, False)))
        has_a_word(others)  # every number may have a fraction
    return union(integers, others)


def place_of(formula: Formula) -> str:
    """The first schema in a formula, for messages."""
    places = [part.atom.where() for part in _atoms(formula) if isinstance(part.atom, Place)]
    return places[0] if places else "#"


def name_of(formula: Formula) -> str:
    places = [part for part in _atoms(formula) if isinstance(part.atom, Place)]
    return (
        " & ".join(place.atom.where() for place in places[:2] if isinstance(place.atom, Place)) or "constant"
    )


def _atoms(formula: Formula) -> list[Formula]:
    found: list[Formula] = []
    stack = [formula]
    while stack and len(found) < 3:
        each = stack.pop()
        stack.extend(reversed(each.parts))
        if not each.parts:
            found.append(each)
    return found
