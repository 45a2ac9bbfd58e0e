"""Constraints, vocabularies, automata and matchers go to other processes and come back as what they were."""

from __future__ import annotations

import copy
import functools
import multiprocessing
import pickle
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import pydantic
import pytest

import tokenfst
from tokenfst import Budget, Language, Vocabulary, allocate_token_bitmask, compile, gbnf, json_schema, regex
from tokenfst.automata.expressions.expression import EMPTY, EPSILON
from tokenfst.automata.json_schema.recipes import flattened, nested
from tokenfst.decoding.matchers.reach_matcher import start_matcher

BYTES = [bytes([byte]) for byte in range(256)]


class Person(pydantic.BaseModel):
    name: Annotated[str, pydantic.Field(max_length=5)]
    friends: list[Person] = []


def book(hotel: Literal["a", "b"], nights: int = 1) -> str:
    return hotel * nights


def small() -> Vocabulary:
    pairs = [b"ab", b"aab", b"((", b"))", b'{"', b'":']
    return Vocabulary([*BYTES, *pairs, b"", b""], 263, {"<tool>": 262}, split_pattern=r"[a-z]+|[^a-z]")


SHUT = 'root ::= "(" root ")" | "x"'
CONSTRAINTS: dict[str, tuple[Any, list[str]]] = {
    "regex": (regex("a+b|c{2,5}"), ["ab", "ccc", "c", ""]),
    "look-around": (regex("(?=.*b)(?!.*bb)[abc]{2,8}"), ["ab", "abb", "cc"]),
    "algebra": (regex("[a-c]*") & ~regex(".*b.*") - Language.literal("a"), ["a", "ac", "b"]),
    "nothing but the empty word": (regex(""), ["", "a"]),
    "tables": (Language.from_dfa(regex("ab|c").determinize()), ["ab", "c", "a"]),
    "substrings": (tokenfst.substring_of("hello world"), ["lo w", "x"]),
    "choices": (tokenfst.choices(["one", "two"]), ["one", "three"]),
    "several choices": (tokenfst.multi_choice(["a", "b"]), ["a, b", "a, a"]),
    "any order": (tokenfst.unordered([regex("a"), regex("b")]), ["ab", "ba", "aa"]),
    "edits": (tokenfst.within_edits(regex("hello"), 1), ["hllo", "hell", "he"]),
    "folding": (tokenfst.case_insensitive(regex("größe")), ["GRÖßE", "grose"]),
    "grammar": (gbnf(SHUT), ["((x))", "(x"]),
    "left recursion": (tokenfst.ebnf('root ::= root "," "a" | "a"'), ["a,a", "a,"]),
    "grammar and language": (gbnf(SHUT) & regex(".{3}"), ["(x)", "x"]),
    "schema": (json_schema({"type": "object", "required": ["a"]}), ['{"a": 1}', "{}"]),
    "schema of a number": (json_schema({"type": "integer", "minimum": 3}), ["3", "2"]),
    "model": (json_schema(Person), ['{"name": "x", "friends": [{"name": "y"}]}', "{}"]),
    "function": (json_schema(book), ['{"hotel": "a"}', '{"hotel": "c"}']),
    "annotation": (json_schema(list[Literal[1, 2]]), ["[1, 2]", "[3]"]),
    "python object": (tokenfst.python_object(list[int]), ["[1, 2]", "[1,2]"]),
    "template": (tokenfst.template("a {x} b", x=regex("[0-9]")), ["a 1 b", "a b"]),
}


@pytest.fixture(scope="module")
def worker():
    """One process that was spawned, and shares nothing with this one."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        yield functools.partial(pool.apply, kwds={})


def accepts(constraint: Any, texts: list[str]) -> list[bool]:
    return [bool(constraint.accepts(text)) for text in texts]


def parsed(constraint: Any, text: str) -> Any:
    return constraint.parse(text)


def masks(automaton: Any, texts: list[str]) -> list[bytes]:
    """The masks along each text, as far as it is allowed."""
    found = []
    row = allocate_token_bitmask(1, len(automaton.vocabulary))
    for text in texts:
        matcher = automaton.matcher()
        for token in text.encode():
            matcher.fill_next_token_bitmask(row, 0)
            found.append(row.tobytes())
            if not matcher.accept_token(token):
                break
    return found


def go_on(matcher: Any) -> tuple[list[int], int | None, bool, bytes, int | None]:
    """What a matcher knows, where it was two tokens before, and the mask there."""
    known = matcher.tokens, matcher.max_tokens_left, matcher.is_terminated()
    matcher.rollback(min(2, matcher.num_tokens))
    row = allocate_token_bitmask(1, 264)
    matcher.fill_next_token_bitmask(row, 0)
    return *known, row.tobytes(), matcher.max_tokens_left


@pytest.mark.parametrize("name", CONSTRAINTS)
@pytest.mark.parametrize("used", [False, True])
def test_a_constraint_is_the_same_over_there(worker, name, used):
    constraint, texts = CONSTRAINTS[name]
    if used:
        constraint.accepts(texts[0])
        constraint.is_empty()
    wanted = accepts(constraint, texts)
    assert any(wanted) and not all(wanted)
    assert worker(accepts, (constraint, texts)) == wanted
    again = pickle.loads(pickle.dumps(constraint))
    assert type(again) is type(constraint) and again.source == constraint.source
    assert again.is_empty() == constraint.is_empty()
    assert copy.deepcopy(constraint) is constraint and copy.copy(constraint) is constraint


def test_what_reads_back_travels_with_the_constraint(worker):
    text, _ = CONSTRAINTS["model"][1]
    assert worker(parsed, (CONSTRAINTS["model"][0], text)) == Person.model_validate_json(text)
    bound = pickle.loads(pickle.dumps(CONSTRAINTS["function"][0])).parse('{"hotel": "b"}')
    assert bound.arguments == {"hotel": "b"}
    assert worker(parsed, (CONSTRAINTS["python object"][0], "[1, 2]")) == [1, 2]


def test_there_is_one_empty_expression():
    assert pickle.loads(pickle.dumps(EMPTY)) is EMPTY and pickle.loads(pickle.dumps([EPSILON]))[0] is EPSILON
    grammar = gbnf(SHUT)
    assert dict(pickle.loads(pickle.dumps(grammar)).positions) == dict(grammar.positions)


@pytest.mark.parametrize("name", ["regex", "look-around", "substrings", "grammar", "schema", "any order"])
def test_an_automaton_is_the_same_over_there(worker, name):
    vocabulary = small()
    constraint, texts = CONSTRAINTS[name]
    for automaton in (compile(constraint, vocabulary), compile(gbnf(SHUT), vocabulary).expand()):
        assert worker(masks, (automaton, texts)) == masks(automaton, texts)
        again = pickle.loads(pickle.dumps(automaton))
        assert again.is_expanded == automaton.is_expanded and again.budget == automaton.budget
        assert pickle.loads(pickle.dumps(again)).vocabulary == vocabulary
        assert copy.deepcopy(automaton) is automaton and copy.copy(automaton) is automaton


def test_expanded_loaded_canonical_and_token_classes(worker, tmp_path: Path):
    vocabulary, texts = small(), ["aab", "ab", "b"]
    lazy = compile(regex("a+b"), vocabulary)
    path = tmp_path / "x.safetensors"
    lazy.save(path)
    canonical = compile(regex("a+b"), vocabulary, tokenization="canonical")
    classes = compile(regex("(?P<LETTER>)b"), vocabulary, token_classes={"LETTER": [97, 98]})
    for automaton in (lazy.expand(), tokenfst.load(path, vocabulary), canonical, canonical.expand(), classes):
        assert worker(masks, (automaton, texts)) == masks(automaton, texts)
    by_path = functools.partial(tokenfst.load, path)
    assert worker(load_and_mask, (by_path, vocabulary, texts)) == masks(lazy, texts)


def load_and_mask(load: Any, vocabulary: Vocabulary, texts: list[str]) -> list[bytes]:
    return masks(load(vocabulary), texts)


def test_vocabularies_that_come_twice_are_one_object():
    vocabulary = small()
    one, other = (pickle.loads(pickle.dumps(compile(regex("a"), vocabulary))) for _ in range(2))
    assert one.vocabulary is other.vocabulary == vocabulary
    named = Vocabulary(vocabulary.tokens, 263, name="another")
    assert pickle.loads(pickle.dumps(named)).name == "another"
    assert copy.deepcopy(vocabulary) is vocabulary


@pytest.mark.parametrize("left", [None, 0, 3])
@pytest.mark.parametrize("name", ["finite", "pushdown", "budgeted pushdown", "canonical", "distinct"])
def test_a_matcher_travels_with_its_history(worker, name, left):
    vocabulary = small()
    text = {"finite": "aab", "canonical": "aab", "distinct": '{"a": 1'}.get(name, "((x))")
    constraint = {
        "finite": regex("a+b?"),
        "canonical": regex("a+b?"),
        "distinct": json_schema({"additionalProperties": {"const": 1}, "type": "object"}),
    }.get(name, gbnf(SHUT))
    automaton: Any = compile(
        constraint, vocabulary, tokenization="canonical" if name == "canonical" else "all"
    )
    matcher = start_matcher(automaton, 40) if name == "budgeted pushdown" else automaton.matcher(40)
    if name == "canonical":
        assert matcher.accept_tokens([257])
    else:
        assert matcher.accept_tokens(list(text.encode()))
    if left is not None and not matcher.is_accepting():
        left += 2
    matcher.max_tokens_left = left
    wanted = go_on(matcher.fork())
    assert worker(go_on, (matcher,)) == wanted
    again = pickle.loads(pickle.dumps(matcher))
    assert type(again) is type(matcher) and go_on(again) == wanted
    for made in (copy.deepcopy(matcher), copy.copy(matcher)):
        assert made is not matcher and go_on(made) == wanted
    assert matcher.tokens == wanted[0], "a copy moved the original"


def test_an_ended_matcher_and_matchers_of_one_automaton():
    automaton = compile(regex("a+b?"), small())
    ended = automaton.matcher()
    assert ended.accept_tokens([97, 98]) and ended.accept_token(263)
    again, other = pickle.loads(pickle.dumps((ended, automaton.matcher(5))))
    assert again.is_terminated() and again.tokens == [97, 98, 263]
    again.rollback(1)
    assert again.is_accepting() and other.max_tokens_left == 5
    assert again.automaton is other.automaton


def test_a_budget_travels():
    limited = regex("a{3}").with_budget(Budget(states=5, seconds=1.0))
    assert pickle.loads(pickle.dumps(limited)).budget == Budget(states=5, seconds=1.0)
    automaton = compile(regex("a"), small(), Budget(states=7))
    assert pickle.loads(pickle.dumps(automaton)).budget.states == 7


def test_a_type_that_nobody_can_import_says_so():
    class Local(pydantic.BaseModel):
        a: int

    with pytest.raises((AttributeError, pickle.PicklingError), match="Local"):
        pickle.dumps(json_schema(Local))


def test_a_real_vocabulary_and_its_masks(worker, tekken):
    automaton = compile(json_schema({"type": "object"}), tekken)
    matcher = automaton.matcher()
    matcher.accept_tokens(tekken.encode_greedy(b'{"a": ['))
    row = allocate_token_bitmask(1, len(tekken))
    matcher.fill_next_token_bitmask(row, 0)
    there = pickle.loads(pickle.dumps(matcher))
    found = np.zeros_like(row)
    there.fill_next_token_bitmask(found, 0)
    assert np.array_equal(row, found)


@pytest.mark.parametrize("depth", [10, 900, 2_500])
def test_deep_schemas(depth):
    """``pickle`` calls itself for each level of a dict."""
    schema = {"type": "array", "maxItems": 0}
    for _ in range(depth):
        schema = {"items": schema, "enum": ["a", [], {"b": [1, 1.0, True]}], "minItems": 0}
    constraint = json_schema(schema)
    automaton = compile(constraint, small())
    there = pickle.loads(pickle.dumps(constraint))
    assert flattened(there.document.schema) == flattened(schema)
    del constraint
    assert pickle.loads(pickle.dumps(automaton)).serialize(expand=False) == automaton.serialize(expand=False)
    assert pickle.loads(pickle.dumps(automaton.matcher())).accept_tokens([*b"[]"])


@pytest.mark.parametrize(
    "value", [None, "a", [], {}, [[]], [{}, [], [1]], {"a": {}, "": [{"b": 0}, True]}, [[[1], 2], 3]]
)
def test_values_without_nesting(value):
    parts = flattened(value)
    assert nested(parts) == value and all(isinstance(part, (tuple, int)) or len(part) == 1 for part in parts)
