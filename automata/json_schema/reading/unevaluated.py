"""``unevaluatedProperties`` and ``unevaluatedItems``: the parts of a value that other keywords have evaluated.

The evaluated parts depend on which in-place sub-schemas hold (core, section 11), and finitely many of them may fail. So
a schema is split into cases, each a formula and the parts that are evaluated if it holds: a branch of ``anyOf`` holds
or not, ``if`` holds or not, a name of ``dependentSchemas`` is present or not. Branches that evaluate nothing are not
split. In each case the keyword is an ``additionalProperties``, or an ``items``.

Cost: cases multiply; more than ``_MOST`` are rejected. Each sub-schema is followed once.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tokenfst.automata.json_schema.documents.keywords import known
from tokenfst.automata.json_schema.documents.source import Place
from tokenfst.automata.json_schema.sets.formula import ANY, Formula, Formulas
from tokenfst.errors import UnsupportedSchemaError

_MOST = 256
_DEEPEST = 60


@dataclass(frozen=True, slots=True)
class Evaluated:
    """The evaluated parts of a value.

    ``everything``: all parts. ``names``, ``patterns``: members with these names, or whose names match. ``prefix``: the
    number of first items. ``matching``: items that satisfy one of these formulas. ``listed``: some schema has a list of
    members, even if it is empty (for ``closing``).
    """

    everything: bool = False
    names: frozenset[str] = frozenset()
    patterns: tuple[str, ...] = ()
    prefix: int = 0
    matching: tuple[Formula, ...] = ()
    listed: bool = False

    def __or__(self, other: Evaluated) -> Evaluated:
        if self.everything or other.everything:
            return Evaluated(everything=True)
        return Evaluated(
            False,
            self.names | other.names,
            tuple(dict.fromkeys((*self.patterns, *other.patterns))),
            max(self.prefix, other.prefix),
            tuple(dict.fromkeys((*self.matching, *other.matching))),
            self.listed or other.listed,
        )


_NOTHING = Evaluated()
Cases = list[tuple[Formula, Evaluated]]
"""Pairs of a formula and the parts that are evaluated if it holds. In every value at least one of the formulas holds.
"""


@dataclass(frozen=True, slots=True)
class Follower:
    """Finds what in-place applicators evaluate: members (``unevaluatedProperties``) or items (``unevaluatedItems``).

    ``formula`` returns the formula of a sub-schema, ``target`` the target of a reference.
    """

    members: bool
    formulas: Formulas
    formula: Callable[[Place], Formula]
    target: Callable[[Place, str, str], Place]
    where: str
    _known: dict[Hashable, Cases] = field(default_factory=dict)

    def cases(self, place: Place, *, top: bool, depth: int = 0) -> Cases:
        """The cases of a schema that holds. At the ``top``, the unevaluated keyword itself is ignored."""
        if isinstance(place.value, bool):
            return [(ANY, _NOTHING)]
        key = id(place.value), place.resource.uri, place.scope, place.closed, top
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._cases(place, top=top, depth=depth)
        return found

    def _cases(self, place: Place, *, top: bool, depth: int) -> Cases:
        if depth > _DEEPEST:
            raise UnsupportedSchemaError(
                self.where, "sub-schemas are nested too deeply to see what they evaluate"
            )
        self.formulas.work.tick()
        keywords = known(place)
        found: Cases = [(ANY, (self._members if self.members else self._items)(place, keywords, top))]
        for name, value in keywords.items():
            for part in self._applied(place, name, value, keywords, depth + 1):
                found = self._both(found, part)
        return found

    def _applied(
        self, place: Place, name: str, value: Any, keywords: Mapping[str, Any], depth: int
    ) -> list[Cases]:
        if name in ("$ref", "$dynamicRef", "$recursiveRef"):
            return [self.cases(self.target(place, value, name), top=False, depth=depth)]
        if name == "allOf":
            return [
                self.cases(place.below(each, name, k), top=False, depth=depth) for k, each in enumerate(value)
            ]
        if name in ("anyOf", "oneOf"):
            return [self._perhaps(place.below(each, name, k), depth) for k, each in enumerate(value)]
        if name == "if":
            return [self._condition(place, keywords, depth)]
        if name in ("dependentSchemas", "dependencies"):
            return [
                self._dependent(place, name, key, each, depth)
                for key, each in value.items()
                if not isinstance(each, list)
            ]
        return []

    def _perhaps(self, place: Place, depth: int) -> Cases:
        """The cases of a branch that may fail."""
        inner = self.cases(place, top=False, depth=depth)
        if all(each == _NOTHING for _, each in inner):
            return [(ANY, _NOTHING)]
        holds = self.formula(place)
        return [*self._both([(holds, _NOTHING)], inner), (self.formulas.negate(holds), _NOTHING)]

    def _condition(self, place: Place, keywords: Mapping[str, Any], depth: int) -> Cases:
        branches = {
            name: self.cases(place.below(keywords[name], name), top=False, depth=depth)
            for name in ("if", "then", "else")
            if name in keywords
        }
        holds = self.formula(place.below(keywords["if"], "if"))
        nothing: Cases = [(ANY, _NOTHING)]
        then = self._both(branches["if"], branches.get("then", nothing))
        other = branches.get("else", nothing)
        if all(each == _NOTHING for _, each in (*then, *other)):
            return nothing
        return [
            *self._both([(holds, _NOTHING)], then),
            *self._both([(self.formulas.negate(holds), _NOTHING)], other),
        ]

    def _dependent(self, place: Place, name: str, key: str, schema: Any, depth: int) -> Cases:
        inner = self.cases(place.below(schema, name, key), top=False, depth=depth)
        if all(each == _NOTHING for _, each in inner):
            return [(ANY, _NOTHING)]
        there = self.formula(place.below({"type": "object", "required": [key]}, name, key))
        return [*self._both([(there, _NOTHING)], inner), (self.formulas.negate(there), _NOTHING)]

    def _both(self, left: Cases, right: Cases) -> Cases:
        if len(left) * len(right) > _MOST:
            raise UnsupportedSchemaError(self.where, f"what is evaluated depends on more than {_MOST} cases")
        return [
            (self.formulas.all_of((one, other)), first | second)
            for one, first in left
            for other, second in right
        ]

    def _members(self, place: Place, keywords: Mapping[str, Any], top: bool) -> Evaluated:
        if "additionalProperties" in keywords or (not top and "unevaluatedProperties" in keywords):
            return Evaluated(everything=True)
        names = frozenset(keywords.get("properties", ()))
        return Evaluated(names=names, patterns=tuple(keywords.get("patternProperties", ())))

    def _items(self, place: Place, keywords: Mapping[str, Any], top: bool) -> Evaluated:
        items = keywords.get("items")
        listed = isinstance(items, list)
        if (items is not None and not listed) or (listed and "additionalItems" in keywords):
            return Evaluated(everything=True)
        if not top and "unevaluatedItems" in keywords:
            return Evaluated(everything=True)
        prefix = len(items) if isinstance(items, list) else len(keywords.get("prefixItems", ()))
        if "contains" not in keywords or place.draft < 2020:
            return Evaluated(prefix=prefix)
        return Evaluated(
            prefix=prefix, matching=(self.formula(place.below(keywords["contains"], "contains")),)
        )
