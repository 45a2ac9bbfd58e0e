"""The native look at the forms of keywords says yes only where the walk in Python finds nothing wrong."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tokenfst._native import PlainForms
from tokenfst.automata.json_schema.documents import forms
from tokenfst.automata.json_schema.documents.keywords import KEYWORDS
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.errors import SchemaError

VALUES: list[Any] = [
    *(None, True, 0, 3, -1, 2.5, float("nan"), float("inf"), 10**30, "x", "string", "integer"),
    *([], {}, [1], ["a"], ["a", "a"], ["string", "null"], ["null", "null"], [{}], [True, {}], [None]),
    *({"a": 1}, {"a": {}}, {"a": True}, {1: {}}, {"$schema": "http://json-schema.org/draft-04/schema#"}),
]


def is_right(schema: Any, draft: int, monkeypatch: pytest.MonkeyPatch) -> bool:
    """What the walk in Python finds."""

    class Unsure:
        def hold(self, document: object, numbers: object) -> bool:
            return False

    with monkeypatch.context() as patched:
        patched.setattr(forms, "PlainForms", Unsure)
        try:
            forms.Forms(Work()).check(schema, draft, "#", True)
        except SchemaError:
            return False
    return True


@pytest.mark.parametrize("draft", [4, 6, 7, 2019, 2020])
def test_each_keyword_with_each_value(draft: int, monkeypatch: pytest.MonkeyPatch) -> None:
    sure = 0
    for name in (*KEYWORDS, "title", "$id", "id", "$schema", "definitions", "examples", "other"):
        for value in VALUES:
            for schema in ({name: value}, {"properties": {"a": {name: value}}}):
                held = PlainForms().hold(schema, forms._NUMBERS[draft])
                sure += held
                assert not held or is_right(schema, draft, monkeypatch), schema
    assert sure > 300


def test_random_schemas(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn = random.Random(8)

    def schema(depth: int) -> Any:
        if depth == 0:
            return drawn.choice(VALUES)
        inner = [schema(depth - 1) for _ in range(2)]
        return {
            drawn.choice(list(KEYWORDS)): drawn.choice(
                (*inner, inner, {"a": inner[0], "b": inner[1]}, *VALUES)
            )
            for _ in range(2)
        }

    for _ in range(3000):
        made, draft = schema(drawn.randrange(4)), drawn.choice((4, 7, 2020))
        if isinstance(made, dict) and PlainForms().hold(made, forms._NUMBERS[draft]):
            assert is_right(made, draft, monkeypatch), made


def test_what_leads_back_to_itself_ends() -> None:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema, "b": {"$ref": "#"}}
    assert PlainForms().hold(schema, forms._NUMBERS[7])


def test_wrong_forms_are_named() -> None:
    with pytest.raises(SchemaError, match="#/properties/a/type"):
        forms.Forms(Work()).check({"properties": {"a": {"type": "text"}}}, 7, "#", True)
