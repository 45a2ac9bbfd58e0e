"""Grammar & Language on real grammars: JSON and those that come with the package, against documents."""

from __future__ import annotations

import random

import pytest
from support.worlds.products import at_most, contains, has

from tokenfst import Language, regex
from tokenfst.automata.notations.bundled import bundled_grammar

DOCUMENTS = [
    "1",
    "[]",
    ' {"a": [1, 2, {"b": null}]}',
    '{"foo": 1}',
    '["foo", "f\\u006fo", "fo", "o"]',
    "[[[[[[1]]]]]]",
    '{"a": {"b": {"c": [true, false, null, -1.5e10]}}}\n',
    "[1, 2",
    '["a" "b"]',
    '{"id": 7, "name": "x"}',
    '{"name": "x",\n "id": 7}',
]


@pytest.mark.parametrize(
    "language",
    [
        ~contains("foo"),
        contains('"id"'),
        regex(r"[^\n]*"),
        regex(r"(?s)\s*\{.*"),
        regex(r"[^\[]*(\[[^\[]*){0,5}"),
        contains("[") | regex(r"(?s).*: *-?[0-9](?![0-9]).*"),
        at_most(12),
    ],
    ids=lambda language: language.source[:20],
)
def test_json(language: Language) -> None:
    json = bundled_grammar("json")
    product = (json & language).truncate(6)
    whole = json.truncate(6)
    found = [product.accepts(text) for text in DOCUMENTS]
    assert found == [whole.accepts(text) and language.accepts(text) for text in DOCUMENTS]
    assert True in found and False in found


def test_short_json_exactly() -> None:
    """Texts of 7 bytes nest three times at most, so truncation is exact."""
    json = bundled_grammar("json")
    assert (json & at_most(7)).truncate(4).equivalent(json.truncate(4) & at_most(7))


@pytest.mark.parametrize("name", ["arithmetic", "sexpr", "c_expression", "graphql_query", "sql_select"])
def test_bundled(name: str) -> None:
    """Words of a truncation lie in the product just if they lie in the language."""
    grammar = bundled_grammar(name)
    whole = grammar.truncate(1)
    language = ~contains("a") & ~contains("11")
    product = grammar & language
    rng = random.Random(1)
    for kept in (whole & language, whole - language):
        for _ in range(5):
            word = kept.sample(rng, max_length=60)
            assert has(product, word) == language.accepts(word), word
