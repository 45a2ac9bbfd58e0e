"""Translation of schemas to value sets, one nesting level of a value at a time.

The ``value_set`` of a formula inspects only its atoms' keywords; sub-schemas of parts (``properties``, ``items``)
become formulas that are not inspected yet. In-place applicators (``allOf``, ``$ref``, ``not``, ...) are combined at
once. So ``$ref`` may recurse through parts without limit, and a ``$ref`` cycle in place is an error.

Invariant: a value set has exactly the values that the schema allows; with ``relax``, unsupported keywords are omitted
and reported, and their value sets are marked inexact.

Cost: each formula once. A ``oneOf`` of n branches compares the pairs that no constant separates (``overlaps``), n² at
most. It complements only the branches that still overlap with another one after the other keywords are applied.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any

from tokenfst.automata.json_schema.documents.keywords import KEYWORDS, known, scalar_types
from tokenfst.automata.json_schema.documents.schema_texts import MAPPINGS, json_type
from tokenfst.automata.json_schema.documents.source import Place, Resource, Source
from tokenfst.automata.json_schema.reading.applicators import (
    conditional,
    dependencies,
    other_names,
    unevaluated,
)
from tokenfst.automata.json_schema.reading.closing import Closing, closing
from tokenfst.automata.json_schema.reading.discriminators import is_required, optional_discriminators
from tokenfst.automata.json_schema.reading.keys import key_of
from tokenfst.automata.json_schema.reading.one_of import one_of
from tokenfst.automata.json_schema.reading.plain_parts import READER, TYPE_KEY
from tokenfst.automata.json_schema.reading.typed_keywords import TypedKeywords
from tokenfst.automata.json_schema.reading.unevaluated import Evaluated
from tokenfst.automata.json_schema.sets.arrays import Array
from tokenfst.automata.json_schema.sets.constants import Constant, constant_value_set
from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula, Formulas, Kind
from tokenfst.automata.json_schema.sets.objects import Named, Object
from tokenfst.automata.json_schema.sets.objects import cell as object_cell
from tokenfst.automata.json_schema.sets.value_sets import EVERY, EVERY_SCALAR, NOTHING, Algebra, ValueSet
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.errors import SchemaError, UnsupportedSchemaError

_DEEPEST = 60
"""Maximum nesting of applicators in one place."""
_LOOK = 3
"""Levels of parts that are inspected to find out whether a cell is empty."""
_FIRST_ITEMS = 8
_FEW_PARTS = 2
_APPLICATORS = frozenset(
    (
        *("$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "not", "if"),
        *(
            "dependentSchemas",
            "dependentRequired",
            "dependencies",
            "unevaluatedItems",
            "unevaluatedProperties",
        ),
    )
)
_Link = tuple[Resource, str, tuple[str, ...], object]
"""What the target of a reference depends on: the resource, the reference, ``Place.scope`` and ``Place.closed``."""


class _Circular(SchemaError):
    """A schema that depends on itself for the same value."""


@dataclass(frozen=True, slots=True)
class Relaxed:
    """A keyword that was omitted because it is not supported: its JSON pointer, and the reason."""

    pointer: str
    reason: str

    def __str__(self) -> str:
        return f"{self.pointer}: {self.reason}"


class Meaning:
    """The formulas and value sets of one schema and its sub-schemas."""

    def __init__(self, source: Source, typed: TypedKeywords, work: Work, *, relax: bool) -> None:
        self.formulas = Formulas(work)
        own = weakref.ref(self)  # no cycle, so everything that a schema needs is freed when it is done

        def alive(cell: Array | Object) -> bool:
            meaning = own()
            return meaning is None or meaning.alive(cell)

        def is_empty(formula: Formula) -> bool:
            meaning = own()
            return formula is NONE or (meaning is not None and meaning.is_empty(formula))

        self.algebra = Algebra(self.formulas, alive, is_empty)
        self.relaxed: dict[Relaxed, None] = {}
        self.relaxes, self.shares = relax, typed.shares
        self._source, self.typed = source, typed
        self._value_sets: dict[Formula, ValueSet] = {ANY: EVERY, NONE: NOTHING}
        self.targets: dict[_Link, Formula] = {}
        """For each reference that was followed, the formula of its target."""
        self._active: dict[Formula, None] = {}
        self._empty: dict[tuple[Formula, int], bool] = {}
        self._look = _LOOK

    # --- formulas -------------------------------------------------------------------------------------

    def formula(self, place: Place) -> Formula:
        """The formula of a sub-schema. A sub-schema that is only a reference has the formula of its target."""
        passed: dict[int, _Link] = {}
        made: Formula | None = None
        while made is None:
            value = place.value
            if value.__class__ is not dict and (value.__class__ is bool or not isinstance(value, MAPPINGS)):
                if not isinstance(value, bool):
                    raise SchemaError(
                        place.where(), f"a schema is an object or a boolean, not {json_type(value)}"
                    )
                made = ANY if value else NONE
                break
            keywords = KEYWORDS.keys() & value.keys()
            if not keywords:
                made = ANY
            elif "$ref" not in keywords or (place.draft >= 2019 and len(keywords) > 1):
                made = self._atom(place, keywords)
            else:
                if id(value) in passed:
                    raise SchemaError(
                        place.where("$ref"), "this reference leads back to itself and to nothing else"
                    )
                reference = known(place)["$ref"]
                link = passed[id(value)] = place.resource, reference, place.scope, place.closed
                made = self.targets.get(link)
                if made is None:
                    place = self._source.resolve(place, reference, "$ref")
        for link in passed.values():
            self.targets[link] = made
        return made

    def _atom(self, place: Place, keywords: Set[str]) -> Formula:
        """The atom of a schema with these constraining keywords."""
        if keywords == TYPE_KEY and place.resource.dialect.vocabularies is None:
            named = scalar_types(place.value["type"])
            if named is not None:  # then other keywords have no effect
                return self.formulas.atom((TYPE_KEY, named, place.draft == 4), place)
        if place.scope:
            place = self._source.scoped(place)
        resource = place.resource  # several documents may use one name for a part
        key = (
            resource.document,
            resource.uri,
            resource.draft,
            place.scope,
            place.closed,
            key_of(place, keywords),
        )
        return self.formulas.atom(key, place)

    def entered(self, place: Place) -> Formula:
        """The formula of a sub-schema that applies to a part of the value, not to the value of its parent."""
        return self.formula(place if place.closed is None else place.closing(Evaluated()))

    def members(self, place: Place, properties: Mapping[str, Any]) -> dict[str, Formula]:
        """For each name in ``properties`` of the schema at a place, the formula of its sub-schema (``entered``)."""

        def otherwise(schema: Any, name: str) -> Formula:
            return self.entered(place.below(schema, "properties", name))

        if properties.__class__ is not dict or place.scope or place.resource.dialect.vocabularies is not None:
            return {name: otherwise(schema, name) for name, schema in properties.items()}
        return READER.formulas(
            properties,
            self.formulas.atoms,
            self.targets,
            place.resource,
            None if place.closed is None else Evaluated(),
            place.pointer,
            otherwise,
        )

    def branches(self, place: Place) -> list[Formula]:
        """The formulas of the branches of the ``oneOf`` at a place."""
        return self._members(place, "oneOf", known(place)["oneOf"], closing(place, self.target))

    def opened(self, place: Place) -> Formula:
        """The formula of a sub-schema as written, without the names that ``closing`` forbids."""
        return self.formula(place.closing(None))

    def constant(self, value: Any) -> Formula:
        """The formula of one JSON value."""
        self.formulas.work.tick(2)
        made = Constant(value, self.formulas.work)
        return self.formulas.atom(made.key, made)

    # --- value sets ---------------------------------------------------------------------------------------

    def value_set(self, formula: Formula) -> ValueSet:
        """The values that satisfy a formula. Raises SchemaError, UnsupportedSchemaError."""
        found = self._value_sets.get(formula)
        if found is None:
            found = self._value_sets[formula] = self._entered(formula, partial(self._value_set, formula))
        return found

    def is_known(self, formula: Formula) -> bool:
        """Whether the value set of a formula has been computed."""
        return formula in self._value_sets

    def value_set_among(self, formula: Formula, around: Sequence[ValueSet]) -> ValueSet:
        """The values that satisfy a formula, exact only among those in all sets ``around``.

        It differs from ``value_set`` only if these sets require the member that distinguishes the branches of the
        formula's own ``oneOf``: then the branches need not be compared without it. Not kept.
        """
        place = formula.atom
        if self.is_known(formula) or not isinstance(place, Place) or "oneOf" not in known(place):
            return self.value_set(formula)
        branches = self.branches(place)
        if not is_required(optional_discriminators(branches), around):
            return self.value_set(formula)
        return self._entered(formula, partial(self._schema, place, around))

    def _entered(self, formula: Formula, make: Callable[[], ValueSet]) -> ValueSet:
        """What ``make`` returns for a formula, which must not need itself."""
        if formula in self._active:
            raise _Circular(
                _where(formula), "this schema needs itself for the same value; no value is ever reached"
            )
        if len(self._active) > _DEEPEST:
            raise UnsupportedSchemaError(
                _where(formula), f"more than {_DEEPEST} applicators inside of each other"
            )
        self._active[formula] = None
        work = self.formulas.work
        before = work.place
        if isinstance(formula.atom, Place):
            work.place = formula.atom
        work.tick()
        try:
            found = make()
            work.place = before
        finally:
            del self._active[formula]
        return found

    def _value_set(self, formula: Formula) -> ValueSet:
        if formula.kind is Kind.ATOM:
            if isinstance(formula.atom, Constant):
                return constant_value_set(formula.atom.value, self.constant, self.formulas.work)
            assert isinstance(formula.atom, Place)
            return self._schema(formula.atom)
        where = _where(formula)
        if formula.kind is Kind.NOT:
            inner = self.value_set(formula.parts[0])
            return self.tried(lambda: self.algebra.invert(inner, where))
        if formula.kind is Kind.OR:
            value_sets = [self.value_set(part) for part in formula.parts]
            return self.algebra.join(value_sets, where)
        result, parts = EVERY, formula.parts
        # Conjunctions grow by one part at a time, so that of all parts but the last is often known.
        shorter = self.formulas.without_last(formula)
        if shorter in self._value_sets:
            result, parts = self._value_sets[shorter], parts[-1:]
        for part in parts:
            result = self.algebra.meet(result, self.value_set_among(part, [result]), where)
        return result

    def tried(self, make: Callable[[], ValueSet], otherwise: ValueSet = EVERY) -> ValueSet:
        """The value set that ``make`` returns; if it is unsupported and may be relaxed, ``relaxed_to(otherwise)``."""
        try:
            return make()
        except UnsupportedSchemaError as error:
            if not self.relaxes:
                raise
            return self.relaxed_to(otherwise, error)

    def relaxed_to(self, value_set: ValueSet, error: UnsupportedSchemaError) -> ValueSet:
        """``value_set``, marked as inexact, in place of what is unsupported."""
        self.relaxed[Relaxed(error.pointer, error.reason)] = None
        return replace(value_set, exact=False)

    # --- schemas --------------------------------------------------------------------------------------

    def _schema(self, place: Place, around: Sequence[ValueSet] = ()) -> ValueSet:
        """The values of a schema, exact only among those in all sets ``around``."""
        keywords = known(place)
        closed = closing(place, self.target)
        if closed.named is None and _APPLICATORS.isdisjoint(keywords):
            return self.tried(partial(self.typed.value_set, place, keywords, self))
        # Its own keywords first, because its own members come first in the texts.
        own = self.tried(partial(self.typed.value_set, place, keywords, self))
        value_sets, among = {"": own}, [own, *around]
        for name in keywords:
            step = self._applicator(place, name, keywords, closed, among)
            if step is not None:
                value_sets[name] = self.tried(step)
            elif name == "oneOf":
                value_sets[name] = EVERY  # its place among the others; it is decided with all of them
        if "oneOf" in keywords:
            beside = [*value_sets.values(), *around]
            value_sets["oneOf"] = self.tried(partial(one_of, place, self.branches(place), beside, self))
        if closed.named is not None:
            names = other_names(place, closed.named, "properties", self)
            value_sets["closed"] = ValueSet(
                objects=object_cell(Object(demands=(Named(names, NONE),), where=place.where()), self.formulas)
            )
        result = EVERY
        for value_set in value_sets.values():
            met = partial(self.algebra.meet, result, value_set, place.where())
            result = self.tried(met, result)
        return result

    def _applicator(
        self,
        place: Place,
        name: str,
        keywords: Mapping[str, Any],
        closed: Closing,
        among: Sequence[ValueSet],
    ) -> Callable[[], ValueSet] | None:
        """The meaning of an in-place applicator except ``oneOf``, which is decided with the result of all others; exact
        only among the values in all sets ``among``.
        """
        value = keywords[name]
        if name in ("$ref", "$dynamicRef", "$recursiveRef"):
            return lambda: self.value_set_among(
                self.formula(self.target(place, value, name).closing(closed.of(name))), among
            )
        if name == "allOf":
            return lambda: self.value_set_among(
                self.formulas.all_of(self._members(place, name, value, closed)), among
            )
        if name == "anyOf":
            return lambda: self.value_set(self.formulas.any_of(self._members(place, name, value, closed)))
        if name == "not":
            return lambda: self.value_set(self.formulas.negate(self.opened(place.below(value, name))))
        if name == "if" and ("then" in keywords or "else" in keywords):
            return lambda: conditional(place, keywords, self)
        if name in ("dependentSchemas", "dependentRequired", "dependencies"):
            return lambda: dependencies(place, name, value, self)
        if name in ("unevaluatedItems", "unevaluatedProperties"):
            return lambda: unevaluated(place, name, value, self)
        return None

    def _members(self, place: Place, name: str, schemas: list[Any], closed: Closing) -> list[Formula]:
        if place.closed is None and not place.scope and place.resource.dialect.vocabularies is None:
            atoms, targets, pointer = self.formulas.atoms, self.targets, f"{place.pointer}/{name}"
            return [
                READER.formula(schema, atoms, targets, place.resource, None, pointer, str(k))
                or self.formula(place.below(schema, name, k))
                for k, schema in enumerate(schemas)
            ]
        return [
            self.formula(place.below(schema, name, k).closing(closed.of(name, k)))
            for k, schema in enumerate(schemas)
        ]

    def target(self, place: Place, reference: str, name: str) -> Place:
        """The target of a reference of any kind."""
        if name == "$ref":
            return self._source.resolve(place, reference, name)
        return self._source.resolve_dynamically(place, reference, name)

    # --- emptiness ------------------------------------------------------------------------------------

    def alive(self, cell: Array | Object) -> bool:
        """Whether a cell may have an element, by a bounded check; false if it certainly has none."""
        if self._look == 0:
            return True
        if isinstance(cell, Array):
            needed = [cell.at(place) for place in range(min(cell.low, _FIRST_ITEMS, len(cell.prefix) + 1))]
        else:
            listed = dict(cell.listed)
            needed = []
            for name in sorted(cell.required):
                formula = listed.get(name, ANY)
                for demand in cell.demands:
                    if demand.names.holds(name):
                        formula = self.formulas.both(formula, demand.formula)
                needed.append(formula)
        return not any(self._surely_empty(formula) for formula in needed)

    def is_empty(self, formula: Formula) -> bool:
        """Whether a formula certainly has no values, by a bounded check.

        A conjunction of many parts is checked pair by pair, without the pairs of two complements.
        """
        if self._look == 0:
            return False
        if formula.kind is not Kind.AND or len(formula.parts) <= _FEW_PARTS:
            return self._surely_empty(formula)
        value_sets = [self.glance(part) for part in formula.parts]
        scalars = EVERY_SCALAR
        for value_set in value_sets:
            if value_set is None:
                return False
            scalars = self.algebra.meet(scalars, value_set.without_parts(), "")
        if not scalars.is_plainly_empty():
            return False
        arrays = all(value_set is not None and value_set.arrays for value_set in value_sets)
        objects = all(value_set is not None and value_set.objects for value_set in value_sets)
        for one, other in combinations(formula.parts, 2):
            if (arrays or objects) and (one.kind, other.kind) != (Kind.NOT, Kind.NOT):
                both = self._looked_into(self.formulas.both(one, other))
                arrays = arrays and (both is None or both.arrays != ())
                objects = objects and (both is None or both.objects != ())
        return not arrays and not objects

    def _looked_into(self, formula: Formula) -> ValueSet | None:
        """The value set of a part, with a smaller limit for its own parts; ``None`` if it is out of range."""
        self._look -= 1
        value_set = self.glance(formula)
        self._look += 1
        return value_set

    def _surely_empty(self, formula: Formula) -> bool:
        if formula is ANY or formula is NONE:
            return formula is NONE
        key = formula, self._look
        found = self._empty.get(key)
        if found is None:
            value_set = self._looked_into(formula)
            found = self._empty[key] = value_set is not None and value_set.is_plainly_empty()
        return found

    def glance(self, formula: Formula) -> ValueSet | None:
        """The value set of a part, unless it is out of range."""
        try:
            return self.value_set(formula)
        except (UnsupportedSchemaError, _Circular):
            return None


def _where(formula: Formula) -> str:
    """The place of the first schema in a formula, for messages."""
    while formula.parts:
        formula = formula.parts[0]
    return formula.atom.where() if isinstance(formula.atom, Place) else "#"
