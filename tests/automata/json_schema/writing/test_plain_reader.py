"""What the native core reads of plain schemas, against the Python of the general way: the same formulas and nodes."""

from __future__ import annotations

from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenfst._native import MemberNodes, NameTexts
from tokenfst.automata.expressions.expression import EMPTY, Expr, concat, literal
from tokenfst.automata.json_schema.documents.keywords import KEYWORDS
from tokenfst.automata.json_schema.documents.source import NESTED, Place, Source
from tokenfst.automata.json_schema.json_schema import SchemaGrammar, json_schema
from tokenfst.automata.json_schema.reading.meaning import Meaning
from tokenfst.automata.json_schema.reading.plain_parts import READER
from tokenfst.automata.json_schema.reading.typed_keywords import TypedKeywords
from tokenfst.automata.json_schema.reading.unevaluated import Evaluated
from tokenfst.automata.json_schema.sets.formula import ANY, NONE, Formula
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.automata.json_schema.writing.layout import layout
from tokenfst.automata.json_schema.writing.plain import PlainSchemas
from tokenfst.automata.json_schema.writing.writer import _named, _nodes
from tokenfst.errors import SchemaError, TokenfstError

LONG = "l" * 990
NAMES = st.sampled_from(["a", "b", "x/y", "~", "é", "\ud800", "", '"', "\\", "\x7f", "\n", LONG])
VALUES = st.sampled_from([None, True, 1, 1.5, Decimal("1.5"), "a", [], ["a"], {"a": 1}, object, 1 << 70])
TYPES = st.sampled_from(
    ["string", "null", "object", "text", ["string"], ["null", "integer"], ["object", "null"], [], [1], 3]
)
REFERENCES = [
    *(
        f"#/definitions/{name}"
        for name in ("a", "b", "c", "d", "e", "f", "g", "none", "a/b", "x~1y", "%61", "")
    ),
    *("#/definitions", "#/$defs/a", "#/$defs/h", "#/other/a", "#/properties/a", "#a", "definitions/a"),
]
DEFINITIONS: dict[str, Any] = {
    "a": {"type": "object"},
    "b": {"$ref": "#/definitions/a"},
    "c": {"$ref": "#/definitions/d"},
    "d": {"$ref": "#/definitions/c"},
    "e": {"title": "e"},
    "f": True,
    "g": {"$ref": "#/definitions/a", "type": "string"},
    "x/y": {"type": "string"},
}
DOCUMENT = {
    "definitions": DEFINITIONS,
    "$defs": {"a": {"minimum": 1}, "h": {"$ref": "#/$defs/a"}},
    "type": "object",
}
SCHEMAS = st.one_of(
    st.booleans(),
    st.sampled_from([{}, {"title": "a"}, None, [], "a", {1: 2}]),
    st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES,
            "description": VALUES,
            "enum": VALUES,
            "default": VALUES,
            "$schema": VALUES,
            "id": VALUES,
            "$id": st.sampled_from(["http://x/y", "#a", 1]),
        },
    ),
    st.fixed_dictionaries({"type": TYPES}, optional={"description": VALUES}),
    st.fixed_dictionaries({"$ref": st.sampled_from(["#", *REFERENCES, 1])}, optional={"type": TYPES}),
)
CLOSED = st.sampled_from([None, NESTED, Evaluated()])


def meaning_of(document: Any, draft: str) -> tuple[Meaning, Place]:
    work = Work()
    source = Source(document, draft, None, work)
    return Meaning(source, TypedKeywords(None, "assert"), work, relax=False), source.root


def by_python(meaning: Meaning, place: Place, schema: Any, *tokens: str) -> Formula:
    return meaning.entered(place.below(schema, *tokens))


def fields(formula: Formula) -> tuple[Any, ...]:
    """What a formula of one meaning has in common with that of another."""
    atom = formula.atom
    if not isinstance(atom, Place):
        return formula.kind, formula.parts, atom
    return formula.kind, atom.value, atom.pointer, atom.resource.uri, atom.scope, atom.closed


def settled(place: Place) -> tuple[Any, ...]:
    return place.resource, None if place.closed is None else Evaluated(), place.pointer


@settings(max_examples=300, deadline=None)
@given(
    st.dictionaries(NAMES, SCHEMAS, max_size=4),
    st.sampled_from(["2020-12", "draft-07", "draft-04"]),
    CLOSED,
    st.booleans(),
)
def test_formulas_are_those_of_the_general_way(
    properties: dict[str, Any], draft: str, closed: object, is_second: bool
) -> None:
    """Each formula is the object that Python finds for it, and made in another meaning has the same fields. What is
    left open or refused there is here, too.
    """
    meaning, root = meaning_of(DOCUMENT, draft)
    twin, twin_root = meaning_of(DOCUMENT, draft)
    place, twin_place = root.closing(closed), twin_root.closing(closed)
    for name, schema in properties.items():
        try:
            wanted = by_python(twin, twin_place, schema, "properties", name)
        except SchemaError as error:
            with pytest.raises(type(error)):
                by_python(meaning, place, schema, "properties", name)
            continue
        if is_second:
            by_python(meaning, place, schema, "properties", name)
        left: list[str] = []

        def otherwise(schema: Any, name: str, left: list[str] = left) -> Formula:
            left.append(name)
            return by_python(meaning, place, schema, "properties", name)

        found = READER.formulas(
            {name: schema}, meaning.formulas.atoms, meaning.targets, *settled(place), otherwise
        )
        assert list(found) == [name]
        assert found[name] is by_python(meaning, place, schema, "properties", name)
        assert fields(found[name]) == fields(wanted)
    for schema in properties.values():
        one = READER.formula(
            schema, meaning.formulas.atoms, meaning.targets, *settled(place), "additionalProperties"
        )
        assert one is None or one is by_python(meaning, place, schema, "additionalProperties")


def test_what_is_left_open() -> None:
    """Which sub-schemas the core does not read."""
    meaning, root = meaning_of({"definitions": {"a": {"type": "object"}}}, "2020-12")
    arguments = meaning.formulas.atoms, meaning.targets, root.resource, None, "#"

    def is_open(schema: Any, name: str = "a") -> bool:
        return READER.formula(schema, *arguments, name) is None

    assert READER.formula(True, *arguments, "a") is ANY
    assert READER.formula(False, *arguments, "a") is NONE
    assert READER.formula({"title": "b"}, *arguments, "a") is ANY
    assert not is_open({"type": "string"})
    assert not is_open({"type": "string", "enum": ["a"]})
    assert is_open({"type": "string", "$id": "http://x/y"})
    assert is_open({"enum": [Decimal(1)]})
    assert is_open({"enum": [1]}, "a/b")
    assert is_open({"enum": [1]}, "~")
    assert is_open({"enum": [1]}, "l" * 1000)
    assert is_open([])
    assert is_open({"$ref": "#/definitions/a", "type": "object"})


@pytest.mark.parametrize("draft", ["2020-12", "draft-07"])
def test_references_that_the_core_follows(draft: str) -> None:
    """The name of a definition, and of one that only refers to another. All other references are left open until they
    were followed once.
    """
    followed = {
        reference
        for reference in REFERENCES
        for meaning, root in [meaning_of(DOCUMENT, draft)]
        if READER.formula(
            {"$ref": reference}, meaning.formulas.atoms, meaning.targets, root.resource, None, "#", "a"
        )
    }
    wanted = {f"#/definitions/{name}" for name in "abef"}
    assert followed == (wanted | {"#/$defs/a", "#/$defs/h"} if draft == "2020-12" else wanted)
    meaning, root = meaning_of(DOCUMENT, draft)
    by_python(meaning, root, {"$ref": "#"}, "b")
    arguments = meaning.formulas.atoms, meaning.targets, root.resource, None, "#", "a"
    assert READER.formula({"$ref": "#"}, *arguments) is meaning.formula(root)


def test_references_of_parts_with_identifiers() -> None:
    """They are relative to the part."""
    inner = {"$id": "http://x/y", "definitions": {"a": {"type": "null"}}, "$ref": "#/definitions/a"}
    _, root = meaning_of({**DOCUMENT, "properties": {"a": inner}}, "2020-12")
    place = root.below(inner, "properties", "a")
    assert (
        READER.formula({"$ref": "#/definitions/a"}, {}, {}, place.resource, None, place.pointer, "b") is None
    )
    placed = {"definitions": {"a": {"$id": "http://x/y", "type": "null"}}}
    _, root = meaning_of(placed, "2020-12")
    assert READER.formula({"$ref": "#/definitions/a"}, {}, {}, root.resource, None, "#", "b") is None


@given(st.dictionaries(st.sampled_from([*KEYWORDS, "title", "id", "$id", ""]), VALUES))
def test_keywords_are_bits(schema: dict[str, Any]) -> None:
    names = [name for number, name in enumerate(KEYWORDS) if READER.said(schema) >> number & 1]
    assert set(names) == KEYWORDS.keys() & schema.keys()
    assert READER.said(schema) < 1 << len(KEYWORDS)


def said(node: Expr) -> Any:
    return int(node.op), node.value, node.size, node.nullable, [said(each) for each in node.args]


LAYOUTS = [
    layout(),
    layout("compact"),
    layout("pretty", spelling="ascii"),
    layout(r"[ \n]?"),
    layout(spelling="any"),
    layout(separators=(", ", " : ")),
    layout(indent=2),
]


@pytest.mark.parametrize("written", LAYOUTS, ids=range(len(LAYOUTS)))
def test_members_are_nodes_of_a_name_and_a_value(written: Any) -> None:
    names = ["a", "", "x y", '"', "\\", "\x7f", "\x1f", "\n", "é", "/", "~", "a" * 300, "€\x00"]
    formulas = dict.fromkeys(names, ANY) | {"a": NONE}
    known: dict[tuple[str, int], Expr] = {}
    named: dict[str, Expr] = {}
    asked: list[Formula] = []

    def value_of(formula: Formula) -> Expr:
        asked.append(formula)
        return literal(b"value")

    texts = {NONE: EMPTY}
    made = _nodes(written).members(
        names, formulas, named, known, texts, value_of, lambda name: _named(written, name)
    )
    assert list(made) == names
    assert asked == [ANY] * (len(names) - 1)
    for name in names:
        value = texts.get(formulas[name], literal(b"value"))
        assert said(made[name]) == said(concat(_named(written, name), value))
        assert known[name, id(formulas[name])] is made[name]
    again = _nodes(written).members(
        names, formulas, named, known, texts, value_of, lambda name: _named(written, name)
    )
    assert all(again[name] is made[name] for name in names)
    assert len(asked) == len(names) - 1


def test_errors_pass() -> None:
    def fails(*given: object) -> Any:
        raise KeyError("mine")

    nodes = MemberNodes(literal(b":"), True)
    with pytest.raises(KeyError, match="mine"):
        nodes.members(["a"], {"a": ANY}, {}, {}, {}, fails, fails)
    with pytest.raises(KeyError, match="mine"):
        nodes.members(["é"], {"é": ANY}, {}, {}, {ANY: EMPTY}, fails, fails)
    with pytest.raises(KeyError):
        nodes.members(["a"], {}, {}, {}, {}, fails, fails)
    meaning, root = meaning_of({}, "2020-12")
    with pytest.raises(KeyError, match="mine"):
        READER.formulas({"a": []}, meaning.formulas.atoms, meaning.targets, *settled(root), fails)


# --- bodies of rules --------------------------------------------------------------------------------------


def plain_schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    members = {
        "properties": st.dictionaries(st.sampled_from(["a", "b", "é", '"', "\ud800"]), inner, max_size=3),
        "required": st.lists(st.sampled_from(["a", "b", "z", "y"]), max_size=3, unique=True),
        "additionalProperties": inner,
    }
    items = {"items": inner, "minItems": st.integers(0, 3), "maxItems": st.integers(1, 4)}
    return st.one_of(
        st.fixed_dictionaries({"type": st.just("object")}, optional=members),
        st.fixed_dictionaries({"type": st.just("array")}, optional=items),
    )


PLAIN = st.recursive(
    st.sampled_from([True, False, {"type": "string"}, {"type": "null"}, {"enum": ["a", "b"]}]),
    plain_schemas,
    max_leaves=8,
)
SETTINGS: dict[str, list[Any]] = {
    "property_order": ["any", "schema"],
    "repeated_names": ["forbid", "allow"],
    "spelling": ["plain", "ascii", "any"],
    "indent": [None, 2, 0],
}


@settings(max_examples=300, deadline=None)
@given(
    plain_schemas(PLAIN), st.fixed_dictionaries({n: st.sampled_from(each) for n, each in SETTINGS.items()})
)
def test_bodies_of_rules_are_those_of_the_general_way(schema: Any, options: dict[str, Any]) -> None:
    """The rules of the native core have the names, the order and the nodes of those that Python writes."""

    def rules_of() -> Any:
        try:
            made = json_schema(schema, **options)
        except TokenfstError as error:
            return type(error), str(error)
        if isinstance(made, SchemaGrammar):
            return [(name, said(body)) for name, body in made.rules.items()]
        return said(made.expr)

    written = rules_of()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlainSchemas, "text", lambda self, writer, level, formula: None)
        assert written == rules_of()


def test_texts_of_names_are_shared_and_bounded() -> None:
    texts = NameTexts(literal(b"every"), True, lambda name: literal(name.encode()), lambda _: EMPTY, 2)
    assert texts.of("a").value == b'"a"' and texts.of("é").value == "é".encode()
    assert texts.of("a") is texts.of("a")
    assert texts.without(frozenset()).value == b"every"
    found = texts.without(frozenset("ab"))
    assert found is texts.without(frozenset("ba"))
    text, barred = found.args
    assert text.value == b"every" and [each.value for each in barred.args[0].args] == [b'"a"', b'"b"']
    assert texts.without(frozenset("abc")).args[1].args[0] is EMPTY
    first = texts.of("0")
    for number in range(5000):
        texts.of(str(number))
    assert texts.of("0") is not first and said(texts.of("0")) == said(first)
    with pytest.raises(ZeroDivisionError):
        NameTexts(EMPTY, False, lambda name: 1 // 0, lambda names: EMPTY, 2).without(frozenset("a"))
