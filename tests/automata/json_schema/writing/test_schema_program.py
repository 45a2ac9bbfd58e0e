"""The one-walk program of a schema against ``Grammar.program``, and ``emptiness`` against the native search."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.json_schema import SchemaGrammar, json_schema
from tokenfst.automata.json_schema.writing import program
from tokenfst.automata.json_schema.writing.writer import START
from tokenfst.automata.languages import emptiness as known_words
from tokenfst.automata.languages.emptiness import has_empty_word, has_word, is_known_to_have_word, record_word
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError, EmptyLanguageError

TREE = {"properties": {"left": {"$ref": "#"}, "right": {"$ref": "#"}}, "additionalProperties": False}
LIST = {
    "$defs": {
        "list": {"type": "array", "items": {"$ref": "#/$defs/list"}},
        "endless": {"required": ["next"]},
    },
    "properties": {"a": {"$ref": "#/$defs/list"}, "b": {"$ref": "#/$defs/list"}},
    "required": ["a"],
}
ENDLESS = {
    "$defs": {
        "endless": {
            "type": "object",
            "properties": {"next": {"$ref": "#/$defs/endless"}},
            "required": ["next"],
        }
    },
    "properties": {"a": {"type": "integer"}, "b": {"$ref": "#/$defs/endless"}},
    "additionalProperties": False,
}
SCHEMAS: dict[str, Any] = {
    "any": True,
    "tree": TREE,
    "list": LIST,
    "never ending, but optional": ENDLESS,
    "free members": {
        "properties": {"a": {"enum": [1, "x"]}},
        "required": ["a"],
        "patternProperties": {"^x": {"type": "null"}},
    },
    "counted": {"type": "array", "items": TREE, "minItems": 1, "maxItems": 3},
    "contains": {"type": "array", "contains": {"type": "array", "items": {"type": "null"}}, "maxContains": 1},
    "pattern": {"type": "object", "additionalProperties": {"type": "string", "pattern": "^(?!b)[a-c]{2}$"}},
    "no word in a part": {
        "properties": {"a": {"type": "string", "pattern": "^a(?=b)c"}, "b": {"type": "array"}},
        "additionalProperties": False,
    },
}
TEXTS = [
    "{}",
    "[]",
    "[[]]",
    "[[], [null]]",
    "[null, [[]]]",
    "[1, [], []]",
    "null",
    "1",
    '"ab"',
    '{"a":[]}',
    '{"a":[[[]]], "b":[]}',
    '{"a":1}',
    '{"a":1, "b":{}}',
    '{"b":{"next":{}}}',
    '{"left":{}}',
    '{"left":{"right":{"left":{}}}, "right":{}}',
    '{"a":"x", "x1":null}',
    '{"a":"x", "x1":1}',
    '{"a":1, "y":{"z":[1.5e3, {"k":"\\u00e4"}]}}',
    '[{"left":{}}, {}]',
    "[{},{},{},{}]",
    '{"k":"ab"}',
    '{"k":"ba"}',
    '{"k":"aca"}',
    '{"a":"abc"}',
    '{"b":[1, {"c":"d"}]}',
]


@pytest.mark.parametrize("large", [4_000, 1])
@pytest.mark.parametrize("name", SCHEMAS)
def test_same_words_as_the_grammar(name: str, large: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tokenfst.automata.json_schema.writing.program._LARGE", large)
    made = json_schema(SCHEMAS[name])
    assert isinstance(made, SchemaGrammar)
    plain = Grammar(dict(made.rules), START)
    agreed = [text for text in TEXTS if made.accepts(text)]
    assert agreed == [text for text in TEXTS if plain.accepts(text)]
    assert agreed, "the test would show nothing"
    for text in TEXTS:
        data = text.encode()
        for end in range(len(data)):
            assert made.viable_prefix(data[:end]) == plain.viable_prefix(data[:end])


def test_rules_that_only_lead_to_themselves_are_empty() -> None:
    endless = {"$ref": "#/$defs/endless", "$defs": ENDLESS["$defs"]}
    with pytest.raises(EmptyLanguageError):
        json_schema(endless)
    assert not json_schema(ENDLESS).accepts('{"b":{"next":{"next":{}}}}')


def test_a_recursion_found_to_have_no_word_is_empty() -> None:
    """An array of such arrays that holds a null; it is called before it is known to have no value."""
    with pytest.raises(EmptyLanguageError):
        json_schema({"type": "array", "items": {"$ref": "#"}, "contains": {"type": "null"}, "maxItems": 1})


def test_positions_are_bounded() -> None:
    schema = {"type": "array", "items": {"type": "array", "items": TREE, "minItems": 900}, "minItems": 900}
    with pytest.raises(BudgetExceeded) as caught:
        json_schema(schema, budget=Budget(positions=500))
    assert caught.value.resource == "positions"
    assert json_schema(schema, budget=Budget(positions=5_000_000))


def test_the_rule_of_any_value_is_one_object() -> None:
    first, second = json_schema({"type": "object"}), json_schema({"items": {"required": ["a"]}})
    assert first.rules["any"] is second.rules["any"]
    compact = json_schema({"type": "object"}, whitespace="compact")
    assert compact.rules["any"] is not first.rules["any"]
    assert first.accepts('{"a": [1, 2]}') and not compact.accepts('{"a": [1, 2]}')


def test_white_space_that_matches_nothing_is_refused() -> None:
    with pytest.raises(ConstraintError, match="matches no text"):
        json_schema(True, whitespace=" (?= )")
    with pytest.raises(ConstraintError, match="matches no text"):
        json_schema({"type": "integer"}, whitespace="(?! *)")


def test_values_may_be_any_json_and_nothing_else() -> None:
    with pytest.raises(Exception, match="is not a JSON value"):
        json_schema({"const": {1, 2}})
    big = {"enum": [json.loads("1" + "0" * 30)]}
    assert json_schema({"properties": {"a": big, "b": big}}).accepts('{"a": 1' + "0" * 30 + "}")


WORDS = st.sampled_from([b"a", b"b", b"ab", b"ba"])
EXPRESSIONS = st.recursive(
    st.one_of(st.just(ex.EMPTY), st.just(ex.EPSILON), WORDS.map(ex.literal), st.just(ex.byte_range(97, 98))),
    lambda inner: st.one_of(
        st.tuples(inner, inner).map(lambda parts: ex.concat(*parts)),
        st.tuples(inner, inner).map(lambda parts: ex.union(*parts)),
        st.tuples(inner, inner).map(lambda parts: ex.intersect(*parts)),
        inner.map(ex.complement),
        st.tuples(inner, st.integers(0, 2)).map(lambda given: ex.repeat(given[0], given[1], 3)),
        inner.map(
            lambda part: ex.recursive(lambda again: ex.union(part, ex.concat(ex.literal(b"a"), again)))
        ),
    ),
    max_leaves=8,
)


@settings(max_examples=300, deadline=None)
@given(EXPRESSIONS)
def test_known_words(expr: ex.Expr) -> None:
    language = Language(expr)
    assert has_word(expr, None) is not language.is_empty()
    assert has_word(expr, None) is not language.is_empty(), "as remembered"
    assert has_empty_word(expr, None) is language.accepts(b"")
    for node in expr.walk():
        if is_known_to_have_word(node):
            assert not Language(node).is_empty()


def test_a_search_is_made_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    search = known_words.make_automaton
    monkeypatch.setattr(
        known_words, "make_automaton", lambda expr, budget: calls.append(expr) or search(expr, budget)
    )
    core = ex.intersect(ex.repeat(ex.literal(b"ab")), ex.complement(ex.EPSILON))
    text = ex.concat(ex.literal(b'"'), core, ex.literal(b'"'))
    assert has_word(text, None) and has_word(text, None) and has_word(core, None)
    assert len(calls) == 1
    given = ex.intersect(ex.literal(b"x"), ex.byte_range(0, 255))
    record_word(given)
    assert has_word(ex.concat(given, given), None) and len(calls) == 1


def test_members_with_words_are_not_searched_for_one_behind_each_other() -> None:
    # The texts of `tags` are a union none of whose parts is known to have a word: the union is.
    schema = {
        "type": "object",
        "required": ["a", "b", "c", "tags"],
        "additionalProperties": False,
        "properties": {
            "a": {"type": "string", "minLength": 10},
            "b": {"type": "string", "pattern": "^.*@x$"},
            "c": {"enum": ["one", "two", "three"]},
            "tags": {"type": "string", "pattern": "^([^,]+(,|$)){3,}$"},
        },
    }
    automaton = json_schema(schema, property_order="any").automaton
    assert automaton.viable_prefix(b'{"a": "aaaaaaaaaaaa", "') >= 0
    assert automaton.num_states < 100  # 1,023 with a search of all that must still come


def test_mutually_recursive_definitions_take_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    count, looks = 1500, 0
    depends = program._Walk.depends  # what is counted

    def counted(self: Any, node: Any, operands: list[int]) -> bool:
        nonlocal looks
        looks += 1
        return depends(self, node, operands)

    monkeypatch.setattr(program._Walk, "depends", counted)  # what is counted
    definitions = {
        f"d{k}": {
            "type": "object",
            "properties": {
                "x": {"$ref": f"#/$defs/d{(k * 7 + 1) % count}"},
                "y": {"$ref": f"#/$defs/d{(k * 13 + 5) % count}"},
            },
        }
        for k in range(count)
    }
    made = json_schema({"$defs": definitions, "$ref": "#/$defs/d0"})
    assert made.accepts('{"x": {"y": {}}, "y": {}}') and not made.accepts('{"x": {"y": []}}')
    assert count < looks < 30 * count
