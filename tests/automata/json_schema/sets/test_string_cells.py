"""What is asked of many words at once is what is asked of each."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenfst import json_schema
from tokenfst.automata.json_schema.sets.strings import Part, Strings, join, meet
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.automata.regex.ecma import ecma_pattern

WORDS = ["", "a", "b", "ab", "ba", "abc", "é", "éa"]
PARTS = [Part(ecma_pattern("a")), Part(ecma_pattern("^[ab]*$")), Part(ecma_pattern("^b"), False)]

some_words = st.frozensets(st.sampled_from(WORDS))
listed = st.builds(Strings, values=some_words)
described = st.builds(
    Strings,
    parts=st.lists(st.sampled_from(PARTS), max_size=2, unique_by=id).map(tuple),
    low=st.integers(0, 2),
    high=st.none() | st.integers(2, 3),
    excluded=some_words,
)


@given(listed | described, some_words)
def test_words_among_a_cell(cell: Strings, texts: frozenset[str]) -> None:
    assert cell.among(texts) == {text for text in texts if cell.holds(text)}


@given(st.lists(listed | described, max_size=3), st.lists(listed | described, max_size=3))
def test_cells_together(left: list[Strings], right: list[Strings]) -> None:
    def holds(cells: tuple[Strings, ...], text: str) -> bool:
        return any(cell.holds(text) for cell in cells)

    both, either = meet(tuple(left), tuple(right), Work()), join((tuple(left), tuple(right)), Work())
    for text in WORDS:
        sides = [holds(tuple(side), text) for side in (left, right)]
        assert (holds(both, text), holds(either, text)) == (all(sides), any(sides))


@pytest.mark.parametrize("options", [{}, {"spelling": "any"}, {"property_order": "any"}])
@pytest.mark.parametrize(
    ("schema", "same"),
    [
        ({"properties": {"\ud800": {}}}, {}),
        ({"properties": {"\ud800": {}, "a": {"type": "null"}}}, {"properties": {"a": {"type": "null"}}}),
        ({"properties": dict.fromkeys(map(chr, range(0xD800, 0xD900)), False)}, {}),
        ({"dependentRequired": {"\ud800": ["a"]}}, {}),
        ({"not": {"required": ["\ud800"]}}, {"type": "object"}),
        ({"required": ["\ud800"]}, {"not": {"type": "object"}}),
        (
            {"properties": {"\ud800": {}}, "patternProperties": {"a": {"type": "integer"}}},
            {"patternProperties": {"a": {"type": "integer"}}},
        ),
        ({"items": {"type": "string", "not": {"const": "\ud800"}}}, {"items": {"type": "string"}}),
    ],
)
def test_no_text_has_a_lone_surrogate(schema: Any, same: Any, options: dict[str, Any]) -> None:
    """So a name or a word with one changes nothing, unless it is required."""
    found, wanted = json_schema(schema, **options), json_schema(same, **options)
    texts = ["{}", '{"a": 1}', '{"a": null}', '{"b": 1}', '{"b": "x", "a": 2}', "2", '["a"]', "[1]"]
    assert [found.accepts(text) for text in texts] == [wanted.accepts(text) for text in texts]
