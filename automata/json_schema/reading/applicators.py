"""The applicators of conditions, dependencies and unevaluated parts: ``if``, ``dependentSchemas``,
``unevaluatedProperties`` and similar.

They apply to the same value as their schema, so ``meaning`` meets the results with the value sets of its other
keywords.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tokenfst.automata.json_schema.documents.source import Place
from tokenfst.automata.json_schema.reading.unevaluated import Evaluated, Follower
from tokenfst.automata.json_schema.sets.arrays import Array
from tokenfst.automata.json_schema.sets.arrays import cell as array_cell
from tokenfst.automata.json_schema.sets.formula import ANY, NONE
from tokenfst.automata.json_schema.sets.objects import Named, Object
from tokenfst.automata.json_schema.sets.objects import cell as object_cell
from tokenfst.automata.json_schema.sets.strings import Part, Strings
from tokenfst.automata.json_schema.sets.value_sets import EVERY, NOTHING, ValueSet

if TYPE_CHECKING:
    from tokenfst.automata.json_schema.reading.meaning import Meaning


def conditional(place: Place, keywords: Mapping[str, Any], meaning: Meaning) -> ValueSet:
    """The values for which ``if`` implies ``then``, and its complement ``else``."""
    condition = meaning.opened(place.below(keywords["if"], "if"))
    then, other = (
        meaning.formula(place.below(keywords[name], name)) if name in keywords else ANY
        for name in ("then", "else")
    )
    negation = meaning.formulas.negate(condition)
    parts = [meaning.formulas.all_of((condition, then)), meaning.formulas.all_of((negation, other))]
    return meaning.value_set(meaning.formulas.any_of(parts))


def dependencies(place: Place, name: str, table: Mapping[str, Any], meaning: Meaning) -> ValueSet:
    """The values that satisfy ``dependentSchemas``, ``dependentRequired`` or ``dependencies``."""
    result = EVERY
    for key, value in table.items():
        absent = ValueSet(objects=(Object(((key, NONE),), where=place.where()),))
        names = value if isinstance(value, list) else []
        low = len({key, *names})
        member = Object((), frozenset({key, *names}), low=low, where=place.where())
        present = ValueSet(False, False, False, NOTHING.numbers, (), (), (member,))
        if not isinstance(value, list):
            inner = meaning.value_set(meaning.formula(place.below(value, name, key)))
            present = meaning.algebra.meet(present, inner, place.where(name, key))
        both = meaning.algebra.join([absent, present], place.where(name, key))
        result = meaning.algebra.meet(result, both, place.where(name))
    return result


def unevaluated(place: Place, name: str, value: Any, meaning: Meaning) -> ValueSet:
    """The values that satisfy ``unevaluatedItems`` or ``unevaluatedProperties`` beside the other keywords."""
    held = meaning.entered(place.below(value, name))
    if held is ANY:
        return EVERY
    members = name == "unevaluatedProperties"
    follower = Follower(members, meaning.formulas, meaning.formula, meaning.target, place.where(name))
    found = []
    for formula, evaluated in follower.cases(place.closing(None), top=True):
        value_set = EVERY
        if members and not evaluated.everything:
            names = other_names(place, evaluated, name, meaning)
            value_set = ValueSet(
                objects=object_cell(
                    Object(demands=(Named(names, held),), where=place.where()), meaning.formulas
                )
            )
        elif not evaluated.everything:
            rest = meaning.formulas.any_of((held, *evaluated.matching))
            value_set = ValueSet(arrays=array_cell(Array((ANY,) * evaluated.prefix, rest)))
        found.append(meaning.algebra.meet(meaning.value_set(formula), value_set, place.where(name)))
    return meaning.algebra.join(found, place.where(name))


def other_names(place: Place, evaluated: Evaluated, name: str, meaning: Meaning) -> Strings:
    """The names of members that were not evaluated."""
    parts = tuple(Part(meaning.typed.pattern(place, each, name), False) for each in evaluated.patterns)
    return Strings(parts=parts, excluded=evaluated.names)
