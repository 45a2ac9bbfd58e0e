"""Comparison of two schemas as sets of values: inclusion, equivalence and difference, with a witness value.

The values that schema a allows and schema b does not are given by a schema too, ``{"allOf": [a, {"not": b}]}``, because
sets of values are closed under intersection and complement (``sets``). So b includes a if this difference is empty,
which is decided as for every schema, also for recursive ones; and the shortest text of the difference is a shortest
witness. The difference refers to a and b as separate documents, so each keeps its references and its draft.

Limitation: both schemas are read with the same ``formats`` and by one resolver. So schemas with different ``formats``
are refused, and so are resolvers that return different documents for one URI.

Values are compared: white space, the order of members, and the spelling of strings and numbers make no difference. A
keyword whose negation has no exact automaton is rejected with its pointer.

Cost: that of the combined schema; combinations of arrays and objects multiply their cases.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from dataclasses import fields as dataclass_fields
from decimal import Decimal
from typing import TYPE_CHECKING, Any, Literal, overload
from urllib.parse import quote, urldefrag, urljoin

from tokenfst.automata.json_schema.documents.schema_texts import read
from tokenfst.automata.json_schema.documents.source import DRAFTS, Resolver, draft_of
from tokenfst.automata.json_schema.recipes import flattened, nested
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.automata.languages.answer import Answer, Side
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked
from tokenfst.errors import AlgebraError, EmptyLanguageError, UnsupportedSchemaError

if TYPE_CHECKING:
    from tokenfst.automata.json_schema.json_schema import SchemaGrammar, SchemaLanguage

LEFT, RIGHT = "urn:left", "urn:right"
"""The URIs of the two documents, as the pointers of errors show them."""


@dataclass(frozen=True, slots=True)
class Document:
    """A schema, and the options with which it is read.

    ``place``: the JSON pointer of the relevant part, without ``#``. ``closed``: the schema was made with
    ``additional_properties="forbid"``. ``made_of``: for a difference, the schemas that it combines, which its resolver
    returns; ``depth``: the number of nested differences.
    """

    schema: Any
    draft: str | None = None
    formats: Literal["assert", "annotate"] = "assert"
    resolver: Resolver | None = None
    budget: Budget | None = None
    closed: bool = False
    place: str = ""
    made_of: tuple[Any, ...] = ()
    depth: int = 0

    def __reduce__(self) -> tuple[Any, ...]:
        fields = {each.name: getattr(self, each.name) for each in dataclass_fields(self)}
        flat = fields | {"schema": flattened(self.schema), "made_of": [*map(flattened, self.made_of)]}
        return _document, (flat,)

    @property
    def schemas(self) -> tuple[Any, ...]:
        """The schemas that the user gave: those that a difference combines, or else the schema itself."""
        return self.made_of or (self.schema,)


def _document(flat: dict[str, Any]) -> Document:
    return Document(
        **flat | {"schema": nested(flat["schema"]), "made_of": tuple(map(nested, flat["made_of"]))}
    )


@dataclass(frozen=True, slots=True)
class SchemaAnswer(Answer):
    """An answer about values. If it is false, ``value`` is a shortest value that only one of the two schemas allows,
    and ``witness`` is its JSON text in UTF-8.
    """

    value: Any = None

    def __str__(self) -> str:
        if self.side is None:
            return "yes"
        return f"no: the {self.side.value} schema alone allows {self.text}"


class ComparedSchema(Constraint):
    """A schema's constraint, which is compared with other schemas by values, not by their spellings.

    Both schemas must have the same ``formats``. If both have a resolver, it must return the same document for a URI
    that either of them refers to.
    """

    __slots__ = ()
    speaks_json = True

    document: Document
    """The schema and its options. The schema must not be modified while it is compared."""

    @overload
    def includes(self, other: ComparedSchema) -> SchemaAnswer: ...
    @overload
    def includes(self, other: Constraint) -> Answer: ...
    @checked
    def includes(self, other: Constraint) -> Answer:
        """Whether this schema allows every value that ``other`` allows. A false answer has a shortest value that it
        rejects.

        If ``other`` is not a schema, texts are compared instead of values. Raises UnsupportedSchemaError if the
        negation of this schema has no exact automaton or a URI stands for two documents, AlgebraError for schemas that
        were made with ``additional_properties="forbid"`` or with different ``formats``, BudgetExceeded.
        """
        if not isinstance(other, ComparedSchema):
            return super().includes(other)
        return _answer(_shortest(other.document, self.document), Side.RIGHT)

    @overload
    def equivalent(self, other: ComparedSchema) -> SchemaAnswer: ...
    @overload
    def equivalent(self, other: Constraint) -> Answer: ...
    @checked
    def equivalent(self, other: Constraint) -> Answer:
        """Whether both schemas allow the same values. A false answer has a shortest value that only one of them allows.

        Otherwise like ``includes``, but the negations of both schemas are needed.
        """
        if not isinstance(other, ComparedSchema):
            return super().equivalent(other)
        wrong = [each for each in compare(self.document, other.document) if not each]
        return min(wrong, key=lambda each: len(each.witness or b""), default=SchemaAnswer(True))

    @checked
    def difference(self, other: Constraint) -> SchemaLanguage | SchemaGrammar:
        """The constraint of the values that this schema allows and another schema does not.

        Raises EmptyLanguageError if there are no such values, AlgebraError if ``other`` is not a schema; otherwise like
        ``includes``, but the negation of ``other`` is needed.
        """
        if not isinstance(other, ComparedSchema):
            raise AlgebraError(
                "difference: the other one is not a schema; a - b is the difference of their texts"
            )
        return difference(self.document, other.document)


def difference(left: Document, right: Document) -> SchemaLanguage | SchemaGrammar:
    """The constraint of the values that ``left`` allows and ``right`` does not.

    Raises EmptyLanguageError if there are no such values, AlgebraError, UnsupportedSchemaError, BudgetExceeded.
    """
    from tokenfst.automata.json_schema.json_schema import json_schema  # which makes the compared constraints

    if left.closed or right.closed:
        raise AlgebraError(
            'additional_properties="forbid" changes what a schema says: compare schemas that say additionalProperties '
            "themselves"
        )
    if left.formats != right.formats:
        raise AlgebraError(
            f"one of the schemas was made with formats={left.formats!r}, the other one with {right.formats!r}: make "
            "both with the same"
        )
    _check_names([*left.schemas, *right.schemas])
    depth = max(left.depth, right.depth)
    names = [each + str(depth) if depth else each for each in (LEFT, RIGHT)]

    def resolve(uri: str) -> Any:
        if uri in names:
            return _with_draft(left if uri == names[0] else right)
        return _resolved(uri, left, right)

    both = {
        "allOf": [
            {"$ref": f"{names[0]}#{quote(left.place)}"},
            {"not": {"$ref": f"{names[1]}#{quote(right.place)}"}},
        ]
    }
    made = json_schema(
        both,
        whitespace="compact",
        formats=left.formats,
        resolver=resolve,
        source="the difference of two schemas",
        budget=left.budget or right.budget,
    )
    made.document = replace(made.document, made_of=(*left.schemas, *right.schemas), depth=depth + 1)
    return made


def _with_draft(document: Document) -> Any:
    """The schema of a document, whose ``$schema`` names the draft with which it was made."""
    if document.draft is None:
        return document.schema
    schema = read(document.schema, "#", Work(document.budget))
    if isinstance(schema, bool):
        return schema
    part = document.draft if document.draft.startswith("draft") else f"draft/{document.draft}"
    return {**schema, "$schema": f"http://json-schema.org/{part}/schema"}


def _resolved(uri: str, left: Document, right: Document) -> Any:
    """The document that the resolvers of two schemas return for a URI.

    Raises UnsupportedSchemaError if they return different ones, or one that would have another draft in each schema.
    """
    documents, texts, drafts = [], set(), set()
    for each in (left, right):
        document = None if each.resolver is None else each.resolver(uri)
        if document is not None:
            documents.append(read(document, uri, Work(each.budget)))
            texts.add(json.dumps(documents[-1], sort_keys=True, default=repr))
            drafts.add(draft_of(documents[-1], _draft(each)))
    if len(texts) > 1:
        raise _ambiguous(f"the resolvers of both schemas return different documents for {uri!r}: rename one")
    if len(drafts) > 1:
        raise _ambiguous(
            f"{uri!r} has no $schema, and the schemas that refer to it have different drafts: add a $schema"
        )
    return documents[0] if documents else None


def _ambiguous(message: str) -> UnsupportedSchemaError:
    return UnsupportedSchemaError(f"{RIGHT}#", message)


def _draft(document: Document) -> int:
    """The draft of a document, which those that it refers to have too unless they name another."""
    if document.draft is not None:
        return DRAFTS[document.draft]
    return draft_of(read(document.schema, "#", Work(document.budget)), DRAFTS["2020-12"]) or DRAFTS["2020-12"]


def compare(left: Document, right: Document) -> tuple[SchemaAnswer, SchemaAnswer]:
    """Whether ``right`` allows all values of ``left``, and whether ``left`` allows all values of ``right``."""
    return _answer(_shortest(left, right), Side.LEFT), _answer(_shortest(right, left), Side.RIGHT)


def _shortest(left: Document, right: Document) -> bytes | None:
    """A shortest text of a value that ``left`` allows and ``right`` does not."""
    try:
        return difference(left, right).witness()
    except EmptyLanguageError:
        return None


def _answer(witness: bytes | None, side: Side) -> SchemaAnswer:
    if witness is None:
        return SchemaAnswer(True)
    return SchemaAnswer(False, witness, side, json.loads(witness))


def _check_names(schemas: list[Any]) -> None:
    """Raise UnsupportedSchemaError if a reference is ambiguous between several documents.

    That is the case if they have different parts with the same name, and something outside of the part refers to
    that name.
    """
    schemas = [json.loads(each, parse_float=Decimal) if isinstance(each, str) else each for each in schemas]
    for keyword in ("$id", "id"):
        known: dict[str, str] = {}
        shared: set[str] = set()
        meant: set[str] = set()
        for schema in schemas:
            for name, part in _named_parts(schema, keyword, meant).items():
                text = json.dumps(part, sort_keys=True, default=repr)
                if known.setdefault(name, text) != text:
                    shared.add(name)
        if shared & meant or (shared and _DYNAMIC in meant):
            name = min(shared & meant or shared)
            raise _ambiguous(
                f"both schemas have a part that is called {name!r}, and a reference could mean either: leave {keyword} "
                "out of one of them"
            )


_DYNAMIC = "$dynamicRef"
"""Stands for the target of every dynamic reference, in the set of URIs that something refers to."""


def _named_parts(schema: Any, keyword: str, meant: set[str]) -> dict[str, Any]:
    """The parts of a schema that have a URI, by the URI. If data looks like a schema, it is included.

    The URIs that something outside of the parts refers to are added to ``meant``.
    """
    found: dict[str, Any] = {}
    stack: list[tuple[Any, str]] = [(schema, "")]
    while stack:
        value, base = stack.pop()
        if isinstance(value, Mapping):
            if isinstance(name := value.get(keyword), str) and not name.startswith("#"):
                base = urldefrag(urljoin(base, name))[0]
                found[base] = value
            if isinstance(reference := value.get("$ref"), str):
                uri = urldefrag(urljoin(base, reference))[0]
                if uri != base:
                    meant.add(uri)
            if "$dynamicRef" in value or "$recursiveRef" in value:
                meant.add(_DYNAMIC)
            stack += [(each, base) for each in value.values()]
        elif isinstance(value, list):
            stack += [(each, base) for each in value]
    return found
