"""Strings that must differ: names of objects, unique items. Against texts that are read again from the beginning."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worlds.exclusion import (
    STRINGS,
    TOKENS,
    TYPED,
    VOCABULARY,
    WORLDS,
    allowed,
    compact,
    listed,
    text_of,
)

from reference.json.distinct import repeats, scan
from tokenfst import Vocabulary, allocate_token_bitmask, compile
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.json_schema.json_schema import json_object, json_schema
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex
from tokenfst.errors import UnsupportedSchemaError


@pytest.mark.parametrize("number", range(len(WORLDS)))
def test_masks_are_those_of_texts_read_again(number: int) -> None:
    schema, plain, kinds = WORLDS[number]
    matcher = compile(compact(schema), VOCABULARY).matcher()
    free = compile(compact(plain, repeated_names="allow"), VOCABULARY).matcher()
    rng = random.Random(number)
    looked_at = differing = 0

    def visit(depth: int) -> None:
        nonlocal looked_at, differing
        before = text_of(matcher)
        anyway = allowed(free)
        wanted = {
            token for token in anyway if token not in TYPED or not repeats(before + TOKENS[token], kinds)
        }
        found = allowed(matcher)
        assert found == wanted, (before, [TOKENS[token] for token in found ^ wanted])
        looked_at += 1
        differing += wanted != anyway
        typed = [token for token in TYPED if token in found]
        for token in typed if depth < 2 else rng.sample(typed, min(len(typed), 2 if depth < 6 else 1)):
            if depth < 9:
                assert matcher.accept_token(token) and free.accept_token(token)
                visit(depth + 1)
                matcher.rollback(1)
                free.rollback(1)

    visit(0)
    assert looked_at > 80 and differing > 20, (looked_at, differing)


NARROW = ["a|b[ab]*", "(a|aa|ab)b*|c{2}"]


@pytest.mark.parametrize("content", [*NARROW, "[ab]{0,2}[ab]*|aab", "(ab?){1,3}|[bc]+"])
def test_a_prefix_that_could_only_end_as_a_known_string_is_left_out(content: str) -> None:
    """Some prefixes have one end only: when it is used, no token may lead there."""
    inside = regex(content)
    tokens = [
        *(bytes((byte,)) for byte in range(256)),
        b"ab",
        b'"a',
        b'","',
        b'a","a',
        b'b"',
        b'","a"',
        b'b","',
        b"cc",
        b"",
    ]
    vocabulary = Vocabulary(tokens, len(tokens) - 1)
    matcher = compile(listed(content), vocabulary).matcher()
    typed = [*(tokens.index(sign.encode()) for sign in '[]",abc'), *range(256, len(tokens) - 1)]

    def viable(text: bytes) -> bool:
        if listed_without.viable_prefix(text) < len(text) or repeats(text, "["):
            return False
        containers, written = scan(text)
        if written is None:
            return True
        used = containers[0][1]
        ends = (inside & regex(f"{written.decode()}[abc]{{0,9}}")) - Language.union_of(
            map(Language.literal, used)
        )
        return not ends.is_empty()

    quote = ex.literal(b'"')
    plain = ex.concat(quote, inside.expr, quote)
    more = ex.repeat(ex.concat(ex.literal(b","), plain))
    listed_without = Language(
        ex.concat(ex.literal(b"["), ex.optional(ex.concat(plain, more)), ex.literal(b"]"))
    )
    rng = random.Random(content)
    mask = allocate_token_bitmask(1, len(vocabulary))
    narrowed = 0
    for _ in range(60):
        matcher.reset()
        for _ in range(12):
            before = b"".join(tokens[token] for token in matcher.tokens)
            matcher.fill_next_token_bitmask(mask, 0)
            bits = np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")
            found = [token for token in typed if bits[token]]
            assert found == [token for token in typed if viable(before + tokens[token])], before
            narrowed += any(
                token not in found and not repeats(before + tokens[token], "[")
                for token in typed
                if listed_without.viable_prefix(before + tokens[token]) == len(before + tokens[token])
            )
            if not found:
                break
            assert matcher.accept_token(rng.choice(found))
    assert narrowed or content not in NARROW


def test_what_has_one_way_to_go_on_is_forced() -> None:
    vocabulary = Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], 256)
    matcher = compile(listed("a|b[ab]*"), vocabulary).matcher()
    assert matcher.accept_tokens(list(b'["a","'))
    assert matcher.forced_tokens() == [ord("b")]
    assert bytes(matcher.tokens) == b'["a","'


@settings(max_examples=80, deadline=None)
@given(st.lists(st.text('ab"\\\n/é😀\x7f', max_size=3), max_size=6), st.randoms(use_true_random=False))
def test_names_are_compared_by_value(names: list[str], rng: random.Random) -> None:
    def spelled(name: str) -> str:
        parts = []
        for letter in name:
            units = letter.encode("utf-16-be")
            escapes = "".join(f"\\u{units[k : k + 2].hex()}" for k in range(0, len(units), 2))
            short = json.dumps(letter, ensure_ascii=False)[1:-1]
            upper = escapes.upper().replace("\\U", "\\u")
            parts.append(rng.choice([short, escapes, upper, "\\/" if letter == "/" else short]))
        return f'"{"".join(parts)}"'

    text = "{" + ",".join(f"{spelled(name)}:0" for name in names) + "}"
    distinct = len(set(names)) == len(names)
    anything = json_object(spelling="any")
    assert anything.accepts(text) is distinct
    listed_text = text.replace(":0", "").replace("{", "[").replace("}", "]")
    if not any(sign in name for name in names for sign in "{}[]:"):
        assert json_schema({**STRINGS, "uniqueItems": True}, spelling="any").accepts(listed_text) is distinct
    matcher = compile(anything, VOCABULARY).matcher()
    assert matcher.accept_tokens(VOCABULARY.encode_greedy(text.encode())) is distinct


@pytest.mark.parametrize(
    ("schema", "accepted", "refused"),
    [
        (
            True,
            ['{"a":{"a":[{"a":1}]}}', '[{"a":1},{"a":1}]'],
            ['{"a":1,"\\u0061":1}', '[[{"a":{},"a":{}}]]'],
        ),
        ({"minProperties": 3}, ['{"a":1,"b":1,"c":1}'], ['{"a":1,"b":1}', '{"a":1,"b":1,"b":1}']),
        ({"minProperties": 2, "properties": {"a": {}}}, ['{"x":1,"y":1}', '{"a":1,"y":1}'], ['{"y":1}']),
        ({"maxProperties": 2}, ['{"a":1,"b":1}'], ['{"a":1,"b":1,"c":1}', '{"a":1,"a":1}']),
        (
            {
                "patternProperties": {"^[ab]$": {"const": 1}},
                "additionalProperties": False,
                "minProperties": 2,
            },
            ['{"a":1,"b":1}', '{"b":1,"a":1}'],
            ['{"a":1}', '{"a":1,"a":1}', '{"c":1,"a":1}'],
        ),
        (
            {"patternProperties": {"^[a-z]{5}$": {"const": 1}}, "additionalProperties": False},
            ['{"aaaaa":1,"aaaab":1}'],
            ['{"aaaaa":1,"aaaaa":1}'],
        ),
        (
            {"patternProperties": {"^x": {"const": 1}}, "required": ["b"], "properties": {"c": {}}},
            ['{"c":1,"x":1,"b":2,"y":3}'],
            ['{"x":1,"b":2,"x":1}', '{"b":2,"b":2}', '{"b":2,"x":2}'],
        ),
        (
            {"not": {"patternProperties": {"^[ab]$": {"type": "integer"}}}},
            ['{"a":""}', '{"c":1,"b":"","a":1}'],
            ['{"a":1}', '{"a":1,"a":""}', '{"a":"","a":1}', '{"a":"","c":1,"c":1}'],
        ),
        ({**STRINGS, "uniqueItems": True, "minItems": 2}, ['["","a"]'], ['[""]', '["",""]', '["a","b","a"]']),
        (
            {"items": {"type": ["string", "null", "boolean"]}, "uniqueItems": True, "maxItems": 3},
            ['[null,"a",true]', '["null",null]'],
            ["[null,null]", '["a","a"]', '[true,"a",true]', '[null,"a",true,false]'],
        ),
        (
            {
                "prefixItems": [{"pattern": "^a"}],
                "items": {"type": "string"},
                "uniqueItems": True,
                "type": "array",
            },
            ['["a","b"]', '[1,"b"]', '[{"a":1,"b":2},"b"]'],
            ['["b","a"]', '["a","a"]', "[1,1]"],
        ),
        (
            {
                "prefixItems": [{"type": "string", "pattern": "^a"}],
                "items": {"type": "string"},
                "uniqueItems": True,
            },
            ['["a","b"]', '["aa","a"]'],
            ['["a","a"]', '["b"]', '["a","b","b"]'],
        ),
        (
            {"items": {"type": "string"}, "prefixItems": [{"enum": ["a", "b"]}], "uniqueItems": True},
            ['["a","b"]', '["b","c","a"]'],
            ['["c"]', '["a","c","a"]', '["a","b","b"]'],
        ),
        (
            {"items": {"enum": ["a", "b", 1]}, "uniqueItems": True},
            ['["a",1,"b"]'],
            ['["a","a"]', '["c"]'],
        ),
        (
            {"anyOf": [{**STRINGS, "uniqueItems": True}, {"items": {"maxLength": 1, "type": "string"}}]},
            ['["a","a","b"]', '["aa","a"]'],
            ['["a","a","bb"]', '["bb","a","a"]', '["bb","bb"]'],
        ),
        ({"items": {"type": "integer"}, "uniqueItems": True}, ["[1,12,2]"], ["[1,12,1]", "[10,10]"]),
        (
            {"items": {"type": "object"}, "uniqueItems": True},
            ['[{},{"a":1}]'],
            ["[{},{}]", '[{"a":1},{"a":1}]'],
        ),
        (
            {"items": {"type": "string"}, "contains": {"const": "a"}, "uniqueItems": True},
            ['["a"]', '["b","a","c"]'],
            ['["b"]', '["a","a"]', '["b","b","a"]'],
        ),
        (
            {
                "items": {"type": "boolean"},
                "contains": {"const": True},
                "minContains": 2,
                "uniqueItems": True,
            },
            None,
            None,
        ),
    ],
)
def test_schemas(schema: Any, accepted: list[str] | None, refused: list[str] | None) -> None:
    for options in ({}, {"property_order": "any"}):
        if accepted is None or refused is None:
            with pytest.raises(UnsupportedSchemaError) as error:
                json_schema({"type": "array", **schema}, **options)
            assert error.value.pointer == "#/uniqueItems"
            continue
        if isinstance(schema, dict):
            kind = "array" if any("tems" in str(key) or key == "anyOf" for key in schema) else "object"
            schema = {"type": kind, **schema}
        constraint = json_schema(schema, **options)
        automaton = compile(constraint, VOCABULARY)
        for text in (*accepted, *refused):
            assert constraint.accepts(text) is (text in accepted), (schema, text)
            matcher = automaton.matcher()
            end = matcher.accept_tokens(VOCABULARY.encode_greedy(text.encode())) and matcher.is_accepting()
            assert end is (text in accepted), (schema, text)
        witness = constraint.witness()
        assert witness is not None and constraint.accepts(witness)
