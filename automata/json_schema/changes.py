"""``schema_changes``: the differences between two versions of a schema, place by place, with a witness for each.

The two documents are traversed in parallel. If both have a sub-schema at the same place, the two sub-schemas are
compared as sets of values, in both directions (``comparing``). A place is reported if its values changed and no place
below it explains the change. So a changed type of a member is reported at that member, and a new required name at the
object.

Invariant: the complete schemas are compared exactly, whatever is found at single places. A place that cannot be
compared is reported with the reason. Cost: two differences for each pair of sub-schemas with different texts.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tokenfst.automata.json_schema.comparing import ComparedSchema, Document, SchemaAnswer, compare
from tokenfst.automata.json_schema.documents.schema_texts import escape
from tokenfst.automata.json_schema.documents.source import LISTS, ONE, TABLES
from tokenfst.common.arguments import checked
from tokenfst.errors import BudgetExceeded, ConstraintError


@dataclass(frozen=True, slots=True)
class Change:
    """A place of a schema at which the set of allowed values changed.

    ``pointer``: its JSON pointer. ``keywords``: the keywords that differ there. ``lost``: a true answer if the new
    version allows all values of the old one; otherwise it has a shortest value that is no longer allowed. ``gained``:
    the same for values that only the new version allows. Both are ``None`` if this could not be decided; ``unknown``
    then says why.
    """

    pointer: str
    keywords: tuple[str, ...]
    lost: SchemaAnswer | None
    gained: SchemaAnswer | None
    unknown: str = ""

    @property
    def kind(self) -> str:
        """``"narrower"`` (values were lost), ``"wider"`` (values were gained), ``"other"`` (both) or ``"unknown"``."""
        if self.lost is None or self.gained is None:
            return "unknown"
        return "other" if not self.lost and not self.gained else "wider" if self.lost else "narrower"


@dataclass(frozen=True, slots=True)
class SchemaChanges:
    """How a new version of a schema differs from the old one. ``str`` of it is a report.

    ``lost`` and ``gained``: as in ``Change``, for the complete schemas. ``changes``: the places that changed; empty if
    both versions allow the same values.
    """

    lost: SchemaAnswer
    gained: SchemaAnswer
    changes: tuple[Change, ...]

    @property
    def backward_compatible(self) -> bool:
        """Whether the new version allows every value that the old version allows."""
        return bool(self.lost)

    @property
    def forward_compatible(self) -> bool:
        """Whether the old version allows every value that the new version allows."""
        return bool(self.gained)

    def __str__(self) -> str:
        lines = [_RELATIONS[bool(self.lost), bool(self.gained)]]
        whole = Change("#", (), self.lost, self.gained)
        lines += [f"  {line}" for line in _examples(whole)]
        for change in self.changes:
            keywords = f" ({', '.join(change.keywords)})" if change.keywords else ""
            lines.append(f"{change.pointer}: {_KINDS[change.kind]}{keywords}")
            if change.pointer != "#":
                lines += [f"  {line}" for line in _examples(change)]
        return "\n".join(lines)


_RELATIONS = {
    (True, True): "equivalent: both versions allow the same values",
    (True, False): "backward compatible: every value of the old version is allowed, and others are",
    (False, True): "not backward compatible: the new version refuses values that the old one allows",
    (
        False,
        False,
    ): "not backward compatible: the new version refuses values of the old one, and allows others",
}
_KINDS = {
    "narrower": "allows fewer values",
    "wider": "allows more values",
    "other": "allows other values",
    "unknown": "not known",
}


@checked
def schema_changes(old: ComparedSchema, new: ComparedSchema) -> SchemaChanges:
    """The differences between two versions of a schema, both of which are results of ``json_schema``.

    Raises UnsupportedSchemaError if the negation of a complete schema has no exact automaton, AlgebraError for schemas
    that were made with ``additional_properties="forbid"``, BudgetExceeded.
    """
    lost, gained = compare(old.document, new.document)
    found: list[Change] = []
    if not (lost and gained):
        _Walk(old.document, new.document, found).visit("", _read(old.document), _read(new.document))
    return SchemaChanges(lost, gained, tuple(found))


class _Walk:
    """Traverses two documents in parallel, and appends the changes to ``found``."""

    def __init__(self, old: Document, new: Document, found: list[Change]) -> None:
        self.old, self.new, self.found = old, new, found

    def visit(self, place: str, old: Any, new: Any) -> bool:
        """Whether the values at a place changed, or this is not known."""
        pairs = list(_children(old, new))
        own = _differing(old, new, {keyword for keyword, *_ in pairs})
        try:
            lost, gained = compare(replace(self.old, place=place), replace(self.new, place=place))
        except (ConstraintError, BudgetExceeded) as error:
            here = Change(f"#{place}", own, None, None, str(error).splitlines()[0])
        else:
            if lost and gained and place:
                return False
            here = Change(f"#{place}", own, lost, gained)
        at = len(self.found)
        if not self._below(place, pairs) or own:
            self.found.insert(at, here)
        return True

    def _below(self, place: str, pairs: list[tuple[str, str, Any, Any]]) -> bool:
        """Whether some place below changed."""
        changed = False
        for _, tokens, old, new in pairs:
            changed = self.visit(place + tokens, old, new) or changed
        return changed


def _read(document: Document) -> Any:
    return json.loads(document.schema) if isinstance(document.schema, str) else document.schema


def _children(old: Any, new: Any) -> Iterator[tuple[str, str, Any, Any]]:
    """Sub-schemas at the same place of both documents with different texts, with the keyword and the path."""
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return
    for keyword in old:
        left, right = old[keyword], new.get(keyword)
        pairs: list[tuple[str, Any, Any]] = []
        if keyword in TABLES and isinstance(left, Mapping) and isinstance(right, Mapping):
            pairs = [
                (f"/{keyword}/{escape(name)}", left[name], right[name]) for name in left if name in right
            ]
        elif keyword in LISTS and isinstance(left, list) and isinstance(right, list):
            pairs = [(f"/{keyword}/{k}", *pair) for k, pair in enumerate(zip(left, right, strict=False))]
        elif keyword in ONE:
            pairs = [(f"/{keyword}", left, right)]
        for tokens, one, other in pairs:
            schemas = isinstance(one, Mapping | bool) and isinstance(other, Mapping | bool)
            if schemas and (one != other or type(one) is not type(other)):
                yield keyword, tokens, one, other


def _differing(old: Any, new: Any, below: set[str]) -> tuple[str, ...]:
    """The keywords that differ at a place itself, including those whose parts are compared one by one if parts were
    added or removed.
    """
    if not isinstance(old, Mapping) or not isinstance(new, Mapping):
        return ()
    found = []
    for keyword in dict.fromkeys((*old, *new)):
        if keyword in _ANNOTATIONS or old.get(keyword, _MISSING) == new.get(keyword, _MISSING):
            continue
        left, right = old.get(keyword), new.get(keyword)
        if keyword in below:
            if isinstance(left, Mapping) and isinstance(right, Mapping) and keyword in TABLES:
                if left.keys() == right.keys():
                    continue
            elif not (isinstance(left, list) and isinstance(right, list)) or len(left) == len(right):
                continue
        elif keyword in ("$defs", "definitions"):
            continue
        found.append(keyword)
    return tuple(found)


_MISSING = object()
_ANNOTATIONS = frozenset(
    (
        "title",
        "description",
        "$comment",
        "default",
        "examples",
        "deprecated",
        "readOnly",
        "writeOnly",
        "$id",
        "$schema",
    )
)


def _examples(change: Change) -> list[str]:
    lines = []
    if change.lost is not None and not change.lost:
        lines.append(f"no longer allowed: {change.lost.text}")
    if change.gained is not None and not change.gained:
        lines.append(f"allowed now: {change.gained.text}")
    if change.unknown:
        lines.append(change.unknown)
    return lines
