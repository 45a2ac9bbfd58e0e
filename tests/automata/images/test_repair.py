"""The nearest text of a language: against all its texts and their weighted distances."""

from __future__ import annotations

import math
import random

import pytest

from tokenfst import Budget, Language, json_schema, regex, repair
from tokenfst.errors import BudgetExceeded, ConstraintError, EmptyLanguageError


def distance(one: str, other: str, insert: float, delete: float, replace: float) -> float:
    """What the edits from one text to another cost (Wagner and Fischer)."""
    row = [k * insert if k else 0.0 for k in range(len(other) + 1)]
    for i, a in enumerate(one, 1):
        above, row = row, [i * delete]
        for j, b in enumerate(other, 1):
            row.append(min(above[j] + delete, row[j - 1] + insert, above[j - 1] + (0 if a == b else replace)))
    return row[-1]


@pytest.mark.parametrize("costs", [(1, 1, 1), (1, 2, 3), (0.5, 0.25, 10), (2, 1, 0.5), (0, 1, 1)])
def test_nothing_is_nearer(costs: tuple[float, float, float]) -> None:
    rng = random.Random(0)
    for _ in range(40):
        words = {"".join(rng.choices("abö", k=rng.randint(0, 5))) for _ in range(4)}
        text = "".join(rng.choices("abcö", k=rng.randint(0, 6)))
        found = repair(
            text,
            Language.union_of(map(Language.literal, words)),
            dict(zip(("insert", "delete", "replace"), costs, strict=True)),
        )
        wanted = min(distance(text, word, *costs) for word in words)
        assert found.cost == pytest.approx(wanted)
        assert found.text in words
        assert distance(text, found.text, *costs) == pytest.approx(wanted)


def test_the_edits_make_the_text() -> None:
    rng = random.Random(1)
    language = regex(r"(ab|c[0-9]{2})*x")
    for _ in range(50):
        text = "".join(rng.choices("abc1x", k=rng.randint(0, 8)))
        found = repair(text, language)
        assert language.accepts(found.text)
        assert found.cost == len(found.edits)
        made, at = "", 0
        for edit in found.edits:
            made += text[at : edit.at] + edit.new
            assert text[edit.at : edit.at + len(edit.old)] == edit.old
            at = edit.at + len(edit.old)
        assert made + text[at:] == found.text
        assert repair(found.text, language) == repair(found.text, language)
        assert repair(found.text, language).edits == ()


def test_broken_json() -> None:
    schema = {
        "type": "object",
        "properties": {"name": {"type": "string"}, "age": {"type": "integer"}},
        "required": ["name", "age"],
        "additionalProperties": False,
    }
    constraint = json_schema(schema)
    found = repair('{"name": "Ada, "age": 36', constraint)
    assert constraint.accepts(found.text)
    assert (found.cost, len(found.edits)) == (2, 2)
    assert repair('{"name": "Ada", "age": "36"}', constraint).text == '{"name": "Ada", "age": 36}'


def test_what_cannot_be_repaired() -> None:
    with pytest.raises(EmptyLanguageError, match="no text"):
        repair("a", regex("a") & regex("b"))
    with pytest.raises(ConstraintError, match="make no text"):
        repair("a", regex("bb"), {"insert": math.inf})
    with pytest.raises(ConstraintError, match="'swap'"):
        repair("a", regex("b"), {"swap": 1})
    with pytest.raises(ConstraintError, match="not negative, not -1"):
        repair("a", regex("b"), {"insert": -1})
    with pytest.raises(TypeError, match="text must be text"):
        repair(1, regex("b"))  # type: ignore[arg-type]
    with pytest.raises(BudgetExceeded):
        repair("a" * 5000, regex("b{3000}c"), budget=Budget(bytes=1_000_000))
