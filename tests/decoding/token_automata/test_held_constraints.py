"""Automata hold a schema's constraint by its schema: messages are the same, and the expressions are freed."""

from __future__ import annotations

import gc
import pickle
import tracemalloc
import weakref
from collections import OrderedDict
from pathlib import Path
from typing import Any

import pydantic
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis.strategies import sampled_from
from support.worlds.json_tokens import TOKENS, VOCABULARY

from reference.json.json_schema_documents import schemas
from tokenfst import (
    Constraint,
    TokenAutomaton,
    Vocabulary,
    compile,
    json_schema,
    load,
    regex,
)
from tokenfst.automata.expressions.program import Program
from tokenfst.decoding.token_automata.explaining import rule_temperature
from tokenfst.decoding.token_automata.held_constraints import HeldProgram, held_by
from tokenfst.errors import BudgetExceeded, TokenfstError, UnspellableWarning

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "minLength": 1}, "age": {"type": "integer", "maximum": 130}},
    "required": ["age"],
}
LISTS = {"a": {"type": "array", "items": {"$ref": "#/$defs/a"}}}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"spelling": "any", "whitespace": "compact"},
    {"separators": (",", ":"), "surrounding": "flexible"},
    {"indent": 2, "repeated_names": "allow"},
    {"property_order": "any"},
    {"additional_properties": "forbid", "spelling": "ascii"},
    {"on_unsupported": "relax", "formats": "annotate", "draft": "draft-07", "source": "a name"},
]


def same(one: Constraint, other: Constraint) -> None:
    """Equal programs: the same language, with the same labels."""
    first, second = one.program(), other.program()
    assert first.code.tobytes() == second.code.tobytes()
    assert first.sets.tobytes() == second.sets.tobytes()
    assert (first.blob, first.labels, first.rules) == (second.blob, second.labels, second.rules)
    assert (one.source, one.given_budget) == (other.source, other.given_budget)


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(schemas(), sampled_from(OPTIONS))
def test_recipes_of_random_schemas(schema: Any, options: dict[str, Any]) -> None:
    try:
        made = json_schema(schema, **options)
    except TokenfstError:
        return
    recipe = made.recipe()
    assert recipe is not None
    again: Any = recipe()
    same(made, again)
    assert made.relaxed == again.relaxed and again.document.schema == schema
    same(made, pickle.loads(pickle.dumps(recipe))())


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "none")
def test_messages_are_the_same(options: dict[str, Any]) -> None:
    constraint = json_schema(PERSON, **options)
    held, alone = compile(constraint, VOCABULARY), compile(json_schema(PERSON, **options), VOCABULARY)
    gone = weakref.ref(compile_and_watch(PERSON, options))
    gc.collect()
    assert gone() is None
    wanted, found = held.matcher(), alone.matcher()
    assert repr(wanted) == repr(found)
    for token in range(len(TOKENS)):
        assert wanted.explain(token) == found.explain(token)
    assert repr(wanted.captures()) == repr(found.captures()) and found.temperature is None


def compile_and_watch(schema: Any, options: dict[str, Any]) -> Constraint:
    """The constraint of an automaton that lives on."""
    constraint = json_schema(schema, **options)
    KEPT.append(compile(constraint, VOCABULARY))
    return constraint


KEPT: list[TokenAutomaton] = []


def constraint_of(automaton: TokenAutomaton) -> Constraint:
    held = held_by(automaton.native)
    assert held is not None
    return held.get()


def test_a_constraint_that_lives_answers_itself() -> None:
    constraint = json_schema(PERSON)
    automaton = compile(constraint, VOCABULARY)
    assert constraint_of(automaton) is constraint
    del constraint
    gc.collect()
    again = constraint_of(automaton)
    assert constraint_of(automaton) is again  # it is kept for a while
    same(again, json_schema(PERSON))


@pytest.mark.parametrize(
    "schema", [PERSON, {"type": "integer", "minimum": 3}, {"$ref": "#/$defs/a", "$defs": LISTS}]
)
def test_programs_are_made_again(schema: Any, tmp_path: Path) -> None:
    """Whatever asks for the program gives what it gives while the constraint lives."""
    constraint = json_schema(schema)
    held, alone = compile(constraint, VOCABULARY), compile(json_schema(schema), VOCABULARY)
    for each in range(5):  # the last few programs are kept for other reasons
        compile(json_schema({"const": each}), VOCABULARY)
    gc.collect()
    assert isinstance(alone._program, HeldProgram) and alone._program.seen() is None
    assert held.serialize(expand=False) == alone.serialize(expand=False)
    assert held.serialize(learned=True) == alone.serialize(learned=True)
    if not held.is_pushdown:
        assert held.serialize() == alone.serialize()
    assert pickle.loads(pickle.dumps(alone)).serialize(expand=False) == held.serialize(expand=False)
    held.save(tmp_path / "held", learned=True)
    alone.update(tmp_path / "held")


def test_programs_of_vocabularies_without_all_bytes_are_held() -> None:
    """They are not the constraint's own: words that need a missing byte are left out."""
    some = Vocabulary([b"[", b"]", b"1", b"11", b""], 4)
    with pytest.warns(UnspellableWarning):
        automaton = compile(json_schema({"$ref": "#/$defs/a", "$defs": LISTS}), some)
    gc.collect()
    assert isinstance(automaton._program, Program)
    assert pickle.loads(pickle.dumps(automaton)).matcher().explain(0).allowed


def test_a_schema_that_is_changed_afterwards() -> None:
    schema: dict[str, Any] = {"enum": ["a", "b"]}
    constraint = json_schema(schema)
    schema["enum"].append("c")
    automaton = compile(constraint, VOCABULARY)
    del constraint
    gc.collect()
    assert constraint_of(automaton).accepts('"a"') and not constraint_of(automaton).accepts('"c"')


class Person(pydantic.BaseModel):
    age: int


@pytest.mark.parametrize(
    "make",
    [
        lambda: json_schema(Person),
        lambda: json_schema(OrderedDict(type="integer")),
        lambda: json_schema({"$ref": "urn:x"}, resolver={"urn:x": {"type": "integer"}}.__getitem__),
        lambda: json_schema({"type": "integer"}) & regex("[0-9]+"),
        lambda: json_schema({"type": "integer"}).with_budget(json_schema(True).budget),
        lambda: regex("a|b"),
    ],
)
def test_what_cannot_be_made_again_is_held(make: Any) -> None:
    constraint = make()
    assert constraint.recipe() is None
    automaton = compile(constraint, VOCABULARY)
    watched = weakref.ref(constraint)
    del constraint
    gc.collect()
    assert watched() is constraint_of(automaton)


def test_texts_of_schemas() -> None:
    """Their numbers are exact, which they would not be as floats."""
    text = '{"type": "number", "minimum": 0.1000000000000000000001, "maximum": 0.2}'
    made = json_schema(text)
    recipe = made.recipe()
    assert recipe is not None
    again = recipe()
    same(made, again)
    assert not again.accepts("0.1") and again.accepts("0.11")


def test_large_schemas() -> None:
    """They are compressed."""
    made = json_schema({"enum": [f"value {k}" for k in range(2_000)]})
    recipe = made.recipe()
    assert recipe is not None and recipe.is_compressed and len(recipe.written) < 16_000
    same(made, recipe())
    same(made, pickle.loads(pickle.dumps(recipe))())


def test_pickled_automata_make_it_again(tmp_path: Path) -> None:
    automaton = compile(json_schema(PERSON), VOCABULARY)
    other = pickle.loads(pickle.dumps(automaton))
    same(constraint_of(other), json_schema(PERSON))
    assert repr(other.matcher()) == repr(automaton.matcher())
    automaton.save(tmp_path / "person")
    loaded = pickle.loads(pickle.dumps(load(tmp_path / "person", VOCABULARY)))
    assert held_by(loaded.native) is None and rule_temperature(loaded.matcher()) is None


def test_a_budget_that_is_exceeded_when_it_is_made_again() -> None:
    automaton = compile(json_schema(PERSON), VOCABULARY)
    held = held_by(automaton.native)
    assert held is not None

    def too_slow() -> Constraint:
        raise BudgetExceeded("seconds", 0.1, "the schema")

    held.recipe = too_slow
    token = TOKENS.index(b"x") if b"x" in TOKENS else 0
    with pytest.raises(BudgetExceeded):
        automaton.matcher().explain(token)


def test_memory() -> None:
    """An automaton takes less than half of the memory of Python that its constraint takes."""
    members = {f"name{k}": {"type": "string", "minLength": k} for k in range(100)}

    def schema(k: int) -> dict[str, Any]:
        return {"type": "object", "properties": {**members, f"other{k}": {"type": "integer"}}}

    compile(json_schema(schema(0)), VOCABULARY)
    gc.collect()
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        constraints = [json_schema(schema(k)) for k in range(10)]
        between = tracemalloc.get_traced_memory()[0]
        automata = [compile(each, VOCABULARY) for each in constraints]
        del constraints
        gc.collect()
        after = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(automata) == 10
    assert after - before < (between - before) / 2
