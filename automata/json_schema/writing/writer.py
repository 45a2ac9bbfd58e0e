"""Translation of value sets to rules: the JSON texts of a formula's values.

A formula whose values have no parts becomes an expression; one with arrays or objects becomes a rule that calls those
of its parts, so recursion through ``$ref`` is recursion of rules. A rule is written when it is first called, from a
worklist, so nesting does not use Python's stack. Formulas with equal value sets share a rule.

A ``Layout`` defines the spelling and the white space between tokens. If these depend on the nesting depth (``indent``),
each level has separate rules, as far as the schema reaches it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import ClassVar

from tokenfst._native import MemberNodes, PlainLevel
from tokenfst.automata.expressions.exclusion_marks import fresh_value, opened
from tokenfst.automata.expressions.expression import (
    EMPTY,
    Expr,
    Op,
    call,
    concat,
    literal,
    optional,
    union,
)
from tokenfst.automata.json_schema.documents.source import Place
from tokenfst.automata.json_schema.reading.meaning import Meaning, Relaxed
from tokenfst.automata.json_schema.sets.arrays import Array
from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula
from tokenfst.automata.json_schema.sets.objects import Object
from tokenfst.automata.json_schema.sets.strings import EVERY_STRING, any_string, name_texts, spelled
from tokenfst.automata.json_schema.sets.value_sets import EVERY, EVERY_NUMBER, INTEGERS, ValueSet
from tokenfst.automata.json_schema.writing.distinct import fresh_text
from tokenfst.automata.json_schema.writing.items import Items
from tokenfst.automata.json_schema.writing.layout import Differs, Layout
from tokenfst.automata.json_schema.writing.members import Members
from tokenfst.automata.json_schema.writing.numbers import number_texts
from tokenfst.automata.json_schema.writing.plain import PlainSchemas, plain_key
from tokenfst.errors import BudgetExceeded, UnsupportedSchemaError

START = "value"
"""The name of the rule of the whole text."""
ANY_RULE = "any"
"""The name of the rule of any JSON value."""
_ANY_HERE = "anything"
"""The name of the rule of any JSON value at one level, if each level has its own rules."""


_ANY: dict[tuple[Layout, bool, bool], Expr] = {}
_MOST_LAYOUTS = 16


@dataclass(frozen=True, slots=True)
class SchemaRules:
    """The rules of a schema. ``start`` is the expression of the whole text; ``bodies`` are the rules' expressions, by
    name.

    ``states``: the rules that stand for the rest of an array or object, not for a value, so they may have the empty
    word. An expression without calls is EMPTY or has a word.
    """

    start: Expr
    bodies: dict[str, Expr]
    states: frozenset[str]


class Level:
    """The texts written for the values at one depth, or for all values if the depth makes no difference."""

    def __init__(self, layout: Layout) -> None:
        self.layout = layout
        self.known: dict[Formula, Expr] = {NONE: EMPTY}
        self.shared: dict[Hashable, Expr] = {}
        """Calls of rules, by the keys of what the rules express."""
        self.names: dict[str, Expr] = {}
        """The texts of names with their colons, by name."""
        self.members: dict[tuple[str, int], Expr] = {}
        """The texts of members, by their names and the ids of their formulas."""
        self.later: tuple[dict[Expr, Expr], dict[Expr, Expr]] = {}, {}
        """For each member, its text after a comma: first the table for optional members, then that for required ones.
        """
        self.plain = PlainLevel(
            *(self.known, self.shared, self.names, self.members, *self.later),
            (layout.comma, layout.colon, layout.empty, layout.opened, layout.closing),
            *(_nodes(layout), partial(_named, layout), name_texts(layout.spelling), layout.inner is None),
        )
        """The same tables, for the native core."""
        self._below: Level | None = None

    def below(self) -> Level:
        """The level of the values inside of an array or object at this level."""
        if self.layout.inner is None:
            return self
        if self._below is None:
            self._below = Level(self.layout.inner)
        return self._below


class Writer:
    """Writes the rules of one schema."""

    of_objects: ClassVar[type[Members]] = Members
    """The class that writes the members of an object."""

    def __init__(
        self,
        meaning: Meaning,
        layout: Layout,
        *,
        fractions: bool,
        any_order: bool,
        distinct: bool,
    ) -> None:
        """``fractions``: whether 1.0 may be written for 1, which a Python type does not accept. ``any_order``: whether
        members come in any order. ``distinct``: whether names that no schema lists must differ.
        """
        self.meaning, self.layout, self.work = meaning, layout, meaning.formulas.work
        self.spelling = layout.spelling
        self.fractions, self.any_order, self.distinct = fractions, any_order, distinct
        self._bodies: dict[str, Expr] = {}
        self._level = Level(layout)
        """The level of the array or object that is being written; ``layout`` is its layout."""
        self._scalars: dict[int, tuple[ValueSet, Expr]] = {}
        """The texts of value sets without parts, by their id."""
        self._plain = None if meaning.relaxes else PlainSchemas()
        self._waiting: list[tuple[str, Callable[[], Expr], Writer, Level]] = []
        """Rules to be written: a name, a function that makes the body, the caller, and the level."""
        self._names: set[str] = {START}
        self._taken: dict[str, int] = {}
        """For names that are taken, the last number that was appended."""
        self._states: set[str] = set()

    def share_rules(self, other: Writer) -> None:
        """From now on, write rules among those of another writer."""
        self._bodies, self._waiting, self._names = other._bodies, other._waiting, other._names  # of its class
        self._taken, self._states = other._taken, other._states  # of its class

    def write(self, root: Formula) -> SchemaRules:
        """The rules of a formula. Raises UnsupportedSchemaError, BudgetExceeded."""
        around = self.layout.around
        return self.finish(lambda: concat(around, self._value(root, self._level), around))

    def finish(self, make_start: Callable[[], Expr]) -> SchemaRules:
        """The rules of a start expression, which ``make_start`` returns, and of everything that it calls."""
        work = self.work
        try:
            start = make_start()
            while self._waiting:
                name, make, writer, level = self._waiting.pop()
                writer._level, writer.layout = level, level.layout  # noqa: SLF001  # another of this class
                work.place = f"the rule {name!r}"
                work.tick()
                if len(self._bodies) >= work.budget.states:
                    raise work.exceeded("states")
                self._bodies[name] = make()
        finally:
            self._waiting.clear()  # each of them refers to this writer
        return SchemaRules(start, self._bodies, frozenset(self._states))

    def value(self, formula: Formula) -> Expr:
        """The texts of a formula's values inside of an array or object: an expression, or a call."""
        level = self._level if self.layout.inner is None else self._level.below()
        found = level.known.get(formula)
        if found is None:
            found = level.known[formula] = self._value(formula, level)
        return found

    def members(self, names: list[str], formulas: dict[str, Formula]) -> dict[str, Expr]:
        """The texts of members with listed names, by name. Large schemas use a name in the same way in many places, so
        each text is made once.
        """
        layout = self.layout
        inner = self._level if layout.inner is None else self._level.below()
        return _nodes(layout).members(
            names,
            formulas,
            self._level.names,
            self._level.members,
            inner.known,
            self.value,
            partial(_named, layout),
        )

    def later(self, member: Expr, needed: bool) -> Expr:
        """A member after a comma. Unless it is ``needed``, both may be missing."""
        known = self._level.later[needed]
        found = known.get(member)
        if found is None:
            found = concat(self.layout.comma, member)
            found = known[member] = found if needed else optional(found)
        return found

    def rule(self, name: str, make: Callable[[], Expr]) -> Expr:
        """A call of a new rule for the rest of an array or object. ``make`` returns the rule's body and is called
        later.
        """
        unique = self._new(name, make, self._level)
        self._states.add(unique)
        return call(unique)

    def unique(self, name: str) -> str:
        """A name that no rule has, reserved by this call: ``name``, perhaps with a number appended."""
        unique = name
        while unique in self._names:
            self._taken[name] = number = self._taken.get(name, 1) + 1
            unique = f"{name}~{number}"
        self._names.add(unique)
        return unique

    def _new(self, name: str, make: Callable[[], Expr], level: Level) -> str:
        unique = self.unique(name)
        self._waiting.append((unique, make, self, level))
        return unique

    def bracketed(
        self,
        left: bytes,
        filled: Expr,
        right: bytes,
        *,
        empty: bool,
        distinct: bool = False,
        differs: Differs = "",
    ) -> Expr:
        """``filled`` between brackets; with ``empty``, also empty brackets. ``filled`` does not contain the empty word.

        ``distinct``: whether parts directly inside must differ from each other. ``differs``: whether the value itself
        must differ from others.
        """
        before, after = literal(left), literal(right)
        if differs:
            after = fresh_value(after, alone=differs == "alone")
        if distinct:
            before = opened(before)
        bare = concat(before, self.layout.empty, after) if empty else EMPTY
        return union(bare, concat(before, self.layout.opened, filled, self.layout.closing, after))

    def _value(self, formula: Formula, level: Level) -> Expr:
        plain = None if self._plain is None else self._plain.text(self, level, formula)
        return self.general(formula, level) if plain is None else plain

    def general(self, formula: Formula, level: Level) -> Expr:
        """The texts of a formula's values, for any schema (not only a plain one): an expression, or a call."""
        if formula is not ANY:
            return self.of_value_set(self.meaning.value_set(formula), formula, level)
        if level.layout.inner is None:
            return self._call(ANY_RULE, lambda: ANY_RULE, self._any, level)
        return self._call(ANY_RULE, lambda: _ANY_HERE, lambda: self._body(EVERY, "#"), level)

    def different(self, formula: Formula, differs: Differs = "one of several") -> Expr:
        """The texts of a formula's values, each of which must differ from all items before it in the same array."""
        alone = differs == "alone"
        value_set = self.meaning.value_set(formula)
        level = self._level if self.layout.inner is None else self._level.below()
        parts = [fresh_value(text, alone=alone) for text in _constants(value_set)]
        if value_set.has_numbers():
            parts.append(fresh_value(self._numbers(value_set, place_of(formula)), alone=alone))
        if value_set.strings:
            parts.append(fresh_text(value_set.strings, self.spelling, self.work))
        if value_set.arrays or value_set.objects:
            parts.append(
                self._call(
                    ("different", differs, value_set.arrays, value_set.objects),
                    lambda: f"{name_of(formula)} (different)",
                    lambda: self._parts(value_set, differs=differs),
                    level,
                )
            )
        return union(*parts)

    def of_value_set(self, value_set: ValueSet, formula: Formula, level: Level | None = None) -> Expr:
        """The texts of a value set, which has all or some values of a formula: an expression, or a call."""
        level = self._level if level is None else level
        if value_set is EVERY or value_set == EVERY:
            return self._value(ANY, level)
        if not value_set.arrays and not value_set.objects:
            known = self._scalars.get(id(value_set))
            if known is None:
                known = self._scalars[id(value_set)] = value_set, self.scalars(value_set, place_of(formula))
            return known[1]
        return self._call(
            plain_key(value_set) or value_set,
            lambda: name_of(formula),
            lambda: self._body(value_set, place_of(formula)),
            level,
        )

    def _call(self, key: Hashable, name: Callable[[], str], make: Callable[[], Expr], level: Level) -> Expr:
        """A call of the rule with this key, which is made if it is new."""
        found = level.shared.get(key)
        if found is None:
            found = level.shared[key] = call(self._new(name(), make, level))
        return found

    def scalars(self, value_set: ValueSet, where: str) -> Expr:
        """The texts of the values of a value set that have no parts. ``where`` is the schema that allows them."""
        parts = _constants(value_set)
        if value_set.has_numbers():
            parts.append(self._numbers(value_set, where))
        if value_set.strings == EVERY_STRING:
            parts.append(any_string(self.spelling))
        else:
            parts += [cell.json(self.spelling, self.work) for cell in value_set.strings]
        return union(*parts)

    def _numbers(self, value_set: ValueSet, where: str) -> Expr:
        """The texts of numbers. If they are too large and may be relaxed, the texts of all numbers."""
        numbers, bare = value_set.numbers, value_set.bare
        try:
            return number_texts(numbers, value_set.whole, bare, self.spelling, self.fractions)
        except BudgetExceeded as error:
            if error.resource == "seconds":
                raise
            refused = UnsupportedSchemaError(f"{where}/multipleOf", str(error))
        if not self.meaning.relaxes:
            raise refused
        self.meaning.relaxed[Relaxed(refused.pointer, refused.reason)] = None
        wider = INTEGERS if (numbers - INTEGERS).is_empty() else EVERY_NUMBER
        return number_texts(wider, None, bare, self.spelling, self.fractions)

    def _any(self) -> Expr:
        """The body of ``ANY_RULE``, one object for all schemas."""
        key = self.layout, self.fractions, self.distinct
        found = _ANY.get(key)
        if found is None:
            if len(_ANY) >= _MOST_LAYOUTS:
                _ANY.clear()
            found = _ANY[key] = self._body(EVERY, "#")
        return found

    def _body(self, value_set: ValueSet, where: str) -> Expr:
        return union(self.scalars(value_set, where), self._parts(value_set))

    def _parts(self, value_set: ValueSet, *, differs: Differs = "") -> Expr:
        """The texts of arrays and objects; ``differs``: as for ``bracketed``."""
        arrays = [self._cell(cell, differs) for cell in value_set.arrays]
        return union(*arrays, *(self._cell(cell, differs) for cell in value_set.objects))

    def _cell(self, cell: Array | Object, differs: Differs) -> Expr:
        """The texts of a cell. If it is too large and may be relaxed, the texts of all arrays or objects."""
        try:
            return self._written(cell, differs)
        except UnsupportedSchemaError as error:
            every = Array() if isinstance(cell, Array) else Object()
            if not self.meaning.relaxes or cell == every:
                raise
            self.meaning.relaxed[Relaxed(error.pointer, error.reason)] = None
            return self._written(every, differs)

    def _written(self, cell: Array | Object, differs: Differs) -> Expr:
        if isinstance(cell, Array):
            return Items(self, cell, differs=differs).texts()
        return self.of_objects(self, cell, differs=differs).texts()


class OwnMembers(Writer, ABC):
    """A writer with its own way to write members, one by one (``_member``). It treats no schema as plain."""

    def __init__(
        self, meaning: Meaning, layout: Layout, *, fractions: bool, any_order: bool, distinct: bool
    ) -> None:
        """The arguments are those of ``Writer``."""
        super().__init__(meaning, layout, fractions=fractions, any_order=any_order, distinct=distinct)
        self._plain = None

    @abstractmethod
    def _member(self, name: str, formula: Formula) -> Expr:
        """The text of a member with a listed name."""

    def member(self, name: str, formula: Formula) -> Expr:
        """The text of a member with a listed name, which is made once at each level."""
        key = name, id(formula)
        found = self._level.members.get(key)
        if found is None:
            found = self._level.members[key] = self._member(name, formula)
        return found

    def _any(self) -> Expr:
        return self._body(EVERY, "#")  # not the body that all plain writers share

    def members(self, names: list[str], formulas: dict[str, Formula]) -> dict[str, Expr]:
        """The texts of members with listed names, by name."""
        return {name: self.member(name, formulas[name]) for name in names}


def _constants(value_set: ValueSet) -> list[Expr]:
    """The texts of null, true and false, as far as a value set has them."""
    found = (b"null", value_set.null), (b"true", value_set.true), (b"false", value_set.false)
    return [literal(text) for text, there in found if there]


@lru_cache(maxsize=64)
def _nodes(layout: Layout) -> MemberNodes:
    """Makes the members of a layout in the native core."""
    return MemberNodes(layout.colon, layout.spelling != "any")


@lru_cache(maxsize=4096)
def _named(layout: Layout, name: str) -> Expr:
    """A name with its colon: one word, if both have only one spelling."""
    text, colon = spelled(name, layout.spelling), layout.colon
    first, *rest = colon.args if colon.op is Op.CONCAT else (colon,)
    if isinstance(text.value, bytes) and isinstance(first.value, bytes):
        return concat(literal(text.value + first.value), *rest)
    return concat(text, colon)


def place_of(formula: Formula) -> str:
    """The address of the first schema in a formula, for messages."""
    if isinstance(formula.atom, Place):
        return formula.atom.where()
    places = [part.atom.where() for part in _atoms(formula) if isinstance(part.atom, Place)]
    return places[0] if places else "#"


def name_of(formula: Formula) -> str:
    """The name for a formula's rule: the position of its schema."""
    if isinstance(formula.atom, Place):
        return formula.atom.where()
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
