"""Parameters of calls in the styles of models, against texts written by ``reference.tools.xml_parameters``."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from support.worlds.json_tokens import END, TOKENS, VOCABULARY

from reference.tools.xml_parameters import STOPS, Obj, is_valid, random_schema, random_value, written
from tokenfst import (
    EmptyLanguageError,
    Grammar,
    UnsupportedSchemaError,
    allocate_token_bitmask,
    compile,
    structural_tag,
)
from tokenfst.automata.json_schema.writing.written import WrittenGrammar
from tokenfst.automata.structural_tags.documents.xml_styles import STYLES
from tokenfst.errors import SchemaError, StructuralTagError

TYPED = {"deepseek_xml", "deepseek_v4_1_xml", "cohere_xml", "kimi_k3_xml"}
"""Styles that say of what type a value is; in the others a text may be a string or a value of another type."""


def style_of(style: str, schema: Any, **more: Any) -> Any:
    return structural_tag({"type": "json_schema", "json_schema": schema, "style": style, **more})


def an_object(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


def test_every_style_has_a_twin() -> None:
    assert {name: style.stop for name, style in STYLES.items()} == STOPS


@pytest.mark.parametrize("style", STYLES)
def test_texts_are_those_of_valid_values(style: str) -> None:
    valid = invalid = 0
    for seed in range(40):
        rng = random.Random(seed)
        schema, any_order = random_schema(rng, 2), rng.random() < 0.5
        found = style_of(style, schema, any_order=any_order)
        for _ in range(12):
            value = random_value(rng, schema)
            if not isinstance(value, Obj):
                continue
            wanted = is_valid(schema, value, any_order)
            valid, invalid = valid + wanted, invalid + (not wanted)
            for gap in ("", "\n"):
                text = written(style, value.pairs, gap)
                if wanted or style in TYPED:
                    assert found.accepts(text) == wanted, (text, schema)
    assert valid > 100 and invalid > 50


@pytest.mark.parametrize("style", STYLES)
def test_the_first_stop_ends_a_string(style: str) -> None:
    found = style_of(style, an_object(a={"type": "string"}))
    stop = STOPS[style]
    for text in ("", stop[:-1], stop[:2], "<" + stop[0], "\n\n", "é\u4e2d", '"quoted"'):
        assert found.accepts(written(style, [("a", text)])), text
    for text in (stop, f"x{stop}y", stop * 2):
        assert not found.accepts(written(style, [("a", text)])), text
    limited = style_of(style, an_object(a={"type": "string", "maxLength": len(stop) + 1}))
    listed = style_of(style, an_object(a={"enum": [stop, "x" + stop, stop[:-1]]}))
    for each in (limited, listed):
        assert each.accepts(written(style, [("a", stop[:-1])]))
        assert not each.accepts(written(style, [("a", stop)]))
        assert not each.accepts(written(style, [("a", "x" + stop)]))


@pytest.mark.parametrize("style", STYLES)
def test_required_and_listed_parameters_in_any_order_come_once(style: str) -> None:
    schema = {
        **an_object(a={"type": "string"}, b={"type": "null"}, c={"type": "integer"}),
        "required": ["a", "b"],
    }
    found = style_of(style, schema, any_order=True)
    values = {"a": "x", "b": None, "c": 1}
    for names in ("ab", "ba", "cba", "bca", "acb"):
        assert found.accepts(written(style, [(name, values[name]) for name in names]))
    for names in ("", "a", "b", "ac", "aab", "abb", "abca", "cabc"):
        assert not found.accepts(written(style, [(name, values[name]) for name in names])), names
    ordered = style_of(style, schema)
    assert ordered.accepts(written(style, [(name, values[name]) for name in "abc"]))
    assert not ordered.accepts(written(style, [(name, values[name]) for name in "ba"]))


@pytest.mark.parametrize("style", sorted(set(STYLES) - {"minimax_m3_xml"}))
def test_parameters_that_are_not_listed(style: str) -> None:
    schema = {**an_object(a={"type": "string"}), "additionalProperties": {"type": "integer"}}
    found = style_of(style, schema)
    assert found.accepts(written(style, [("a", "x"), ("other-name", 1)]))
    assert not found.accepts(written(style, [("a", "x"), ("other", None)]))
    assert not found.accepts(written(style, [("a", "x"), ("a", 1)]))
    assert not style_of(style, an_object(a={"type": "string"})).accepts(written(style, [("b", "x")]))


@pytest.mark.parametrize("style", ["cohere_xml", "kimi_k3_xml"])
def test_signs_in_names_are_escaped(style: str) -> None:
    found = style_of(style, an_object(**{'a"&b': {"type": "string"}}))
    assert found.accepts(written(style, [('a"&b', "x")]))
    assert "&quot;&amp;" in written(style, [('a"&b', "x")])


@pytest.mark.parametrize(
    ("style", "name"), [("qwen_xml", "a>b"), ("minimax_xml", 'a"b'), ("minimax_m3_xml", "/a")]
)
def test_names_that_a_style_cannot_write_are_refused(style: str, name: str) -> None:
    with pytest.raises(UnsupportedSchemaError, match="cannot be written") as refused:
        style_of(style, an_object(**{name: {"type": "string"}}))
    assert refused.value.pointer.startswith("#/json_schema/properties/")


def test_names_that_are_not_listed_are_refused_where_they_stand_twice() -> None:
    with pytest.raises(UnsupportedSchemaError, match="cannot be compared") as refused:
        style_of("minimax_m3_xml", {"type": "object", "additionalProperties": True})
    assert refused.value.pointer == "#/json_schema"


def test_recursive_values_nest() -> None:
    schema = {
        "$ref": "#/$defs/node",
        "$defs": {
            "node": {
                "type": "object",
                "properties": {"v": {"type": "integer"}, "n": {"$ref": "#/$defs/node"}},
                "required": ["v"],
            }
        },
    }
    inner = Obj([("v", 1), ("n", Obj([("v", 2), ("n", Obj([("v", 3)]))]))])
    for style in STYLES:
        found = style_of(style, schema)
        assert found.accepts(written(style, inner.pairs))
        assert not found.accepts(written(style, [("v", 1), ("n", Obj([]))]))


@pytest.mark.parametrize("style", STYLES)
def test_many_parameters_none_of_which_is_required(style: str) -> None:
    """So large that the rule stays a call."""
    schema = an_object(**{f"p{number}": {"type": "string", "maxLength": 200} for number in range(12)})
    for end in ("</f>", ["</f>", "</g>"]):
        content = {"type": "json_schema", "json_schema": schema, "style": style}
        found = structural_tag({"type": "tag", "begin": "<f>", "content": content, "end": end})
        assert found.accepts("<f></f>") and found.accepts(f"<f>{written(style, [('p3', 'x')])}</f>")
        assert not found.accepts(f"<f>{written(style, [('p3', 'x' * 201)])}</f>")


def test_what_is_no_object_is_refused() -> None:
    with pytest.raises(EmptyLanguageError, match="#/json_schema: no object"):
        style_of("qwen_xml", {"type": "string"})
    with pytest.raises(SchemaError) as refused:
        style_of("glm_xml", an_object(a={"type": "strin"}))
    assert refused.value.pointer == "#/json_schema/properties/a/type"
    with pytest.raises(StructuralTagError) as wrong:
        style_of("glm_xlm", {})
    assert wrong.value.pointer == "#/style" and "'glm_xml'" in wrong.value.reason


@pytest.mark.parametrize("style", STYLES)
def test_excluded_texts_stand_in_no_string(style: str) -> None:
    schema = an_object(
        a={"type": "string"},
        b={"enum": ["xx", "y"]},
        c={"type": "array", "items": {"type": "string", "maxLength": 5}},
        xxd={"type": "integer"},
        e={"type": "string", "maxLength": 5},
    )
    found = style_of(style, schema, excludes=["xx", "<|close|>"])
    for pairs in ([("a", "x")], [("b", "y")], [("c", ["x", "axb"])], [("e", "axax")], []):
        assert found.accepts(written(style, pairs)), pairs
    for pairs in (
        [("a", "axxb")],
        [("b", "xx")],
        [("c", ["x", "xxb"])],
        [("xxd", 1)],
        [("e", "axx")],
        [("a", "<|close|>")],
    ):
        assert not found.accepts(written(style, pairs)), pairs
    with pytest.raises(EmptyLanguageError, match="without what is excluded"):
        style_of(style, {**schema, "required": ["xxd"]}, excludes=["xx"])


def test_what_is_excluded_is_looked_for_in_names_as_they_are_written() -> None:
    schema = {"type": "object", "properties": {'a"b': {"enum": ["x"]}}}
    for excluded, taken in (('"', True), ("&quot", False)):
        found = structural_tag(
            {"type": "json_schema", "json_schema": schema, "style": "kimi_k3_xml", "excludes": [excluded]}
        )
        text = '<|open|>argument key="a&quot;b" type="string"<|sep|>x<|close|>argument<|sep|>'
        assert found.accepts(text) == taken and found.accepts("")


@pytest.mark.parametrize("part", range(2))
def test_the_walk_to_a_program_gives_the_masks_of_grammars(part: int) -> None:
    """A tag becomes a program in one walk; as any grammar, it has the same masks."""
    walked = 0
    for seed in range(10 * part, 10 * (part + 1)):
        rng = random.Random(seed)
        tags = [
            {
                "type": "tag",
                "begin": f"<{name}",
                "content": {
                    "type": "json_schema",
                    "json_schema": random_schema(rng, 2),
                    "style": rng.choice(["json", "json", *STYLES]),
                },
                "end": rng.choice([">", "", "</f>"]),
            }
            for name in ("a", "b", "c")
        ]
        least = rng.random() < 0.5
        found = structural_tag(
            {"type": "triggered_tags", "triggers": ["<"], "tags": tags, "at_least_one": least}
        )
        if not isinstance(found, WrittenGrammar):
            continue
        walked += 1
        both = [found, Grammar(found.rules, found.start)]
        walks = [compile(each, VOCABULARY).matcher() for each in both]
        rows = [allocate_token_bitmask(1, len(VOCABULARY)) for _ in walks]
        for _ in range(60):
            for walk, row in zip(walks, rows, strict=True):
                walk.fill_next_token_bitmask(row, 0)
            assert np.array_equal(*rows), tags
            allowed = np.flatnonzero(np.unpackbits(rows[0].view(np.uint8), bitorder="little")).tolist()
            signs = [token for token in allowed if TOKENS[token][:1] in (b"<", b">", b"}", b"]", b"{")]
            token = rng.choice(signs if signs and rng.random() < 0.6 else allowed)
            if token == END:
                break
            for walk in walks:
                assert walk.accept_token(token)
    assert walked > 5
