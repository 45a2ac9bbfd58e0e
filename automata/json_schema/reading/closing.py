"""``additional_properties="forbid"``: objects without members that their schema does not name.

A schema *names* the members in its ``properties`` and ``patternProperties``, and in those of all schemas that it
applies to the same object. Where a value is entered (the root, a member, an item), all names that are given in place
are collected, and other names are forbidden. Of alternatives (``anyOf``, ``oneOf``) only the one that holds counts:
names given around them are passed down, and each branch forbids the rest itself. If there are several groups of
alternatives, the names of all of their branches count.

Invariant: forbidding only removes values. So nothing is forbidden under ``not``, ``if`` and ``contains``, and ``oneOf``
counts the branches as they are written. A schema stays unchanged if it has no list of members (an empty list forbids
them all), or if it constrains other members itself (``additionalProperties``, ``unevaluatedProperties``).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tokenfst.automata.json_schema.documents.keywords import known
from tokenfst.automata.json_schema.documents.source import NESTED, Place
from tokenfst.automata.json_schema.reading.unevaluated import Evaluated

_ALTERNATIVES = ("anyOf", "oneOf")
_LISTS = ("allOf", *_ALTERNATIVES)
_REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")

_Target = Callable[[Place, str, str], Place]
_Step = tuple[str, int | None]
"""A keyword, and the index of a sub-schema in its list; ``None`` for all of its sub-schemas."""


@dataclass(frozen=True, slots=True)
class Closing:
    """What is forbidden at one schema, and at the sub-schemas that it applies in place.

    ``named``: only these names are allowed here; ``None``: nothing is forbidden here. ``step``: the keyword that leads
    to alternatives, whose sub-schemas get ``Place.closed`` ``limit`` and forbid the rest themselves; the other
    sub-schemas only forbid names in the values below them. Without ``step``, all sub-schemas get ``limit``.
    """

    named: Evaluated | None
    limit: object = None
    step: _Step | None = None

    def of(self, name: str, place: int | None = None) -> object:
        """The ``Place.closed`` of the sub-schema that keyword ``name`` applies in place, with its index in a list."""
        if self.step is None:
            return self.limit
        alternatives = self.step[0] in _ALTERNATIVES and name == self.step[0]
        return self.limit if alternatives or self.step == (name, place) else NESTED


_NOTHING = Closing(None)


def closing(place: Place, target: _Target) -> Closing:
    """What is forbidden at ``place``. ``target`` resolves references."""
    outer = place.closed
    if outer is None:
        return _NOTHING
    if not isinstance(outer, Evaluated):
        return Closing(None, outer)
    steps = [step for step, _ in zip(_alternatives(place, target, set()), range(2), strict=False)]
    if len(steps) == 1:
        return Closing(None, outer | _named(place, target, set(), steps[0]), steps[0])
    named = outer | _named(place, target, set())
    return Closing(None if named.everything or named == Evaluated() else named, NESTED)


def _alternatives(place: Place, target: _Target, seen: set[int]) -> Iterator[_Step]:
    """The steps that lead to alternatives; one as often as it leads to some."""
    if isinstance(place.value, bool) or id(place.value) in seen:
        return
    seen.add(id(place.value))
    for name, value in known(place).items():
        if name in _ALTERNATIVES:
            yield name, None
        elif name == "allOf":
            for k, each in enumerate(value):
                for _ in _alternatives(place.below(each, name, k), target, seen):
                    yield name, k
        elif name in _REFERENCES:
            for _ in _alternatives(target(place, value, name), target, seen):
                yield name, None


def _named(place: Place, target: _Target, seen: set[int], but: _Step | None = None) -> Evaluated:
    """All names that a schema gives in place, without those of one step."""
    found = Evaluated()
    if isinstance(place.value, bool) or id(place.value) in seen:
        return found
    seen.add(id(place.value))
    keywords = known(place)
    if "additionalProperties" in keywords or "unevaluatedProperties" in keywords:
        return Evaluated(everything=True)
    found |= Evaluated(
        names=frozenset(keywords.get("properties", ())),
        patterns=tuple(keywords.get("patternProperties", ())),
        listed="properties" in keywords or "patternProperties" in keywords,
    )
    inner: list[Place] = []
    for name, value in keywords.items():
        if name in _LISTS and (name, None) != but:
            inner += [place.below(each, name, k) for k, each in enumerate(value) if (name, k) != but]
        elif name in ("if", "then", "else"):
            inner.append(place.below(value, name))
        elif name in _REFERENCES and (name, None) != but:
            inner.append(target(place, value, name))
        elif name in ("dependentSchemas", "dependencies"):
            schemas = ((key, each) for key, each in value.items() if not isinstance(each, list))
            inner += [place.below(each, name, key) for key, each in schemas]
    for each in inner:
        found |= _named(each, target, seen)
    return found
