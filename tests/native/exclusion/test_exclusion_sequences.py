"""Sequences with strings that must differ: rollback, forks, artifacts, other texts around, and what is refused."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
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

from tokenfst import Vocabulary, allocate_token_bitmask, compile
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.json_schema import json_object, json_schema, json_value
from tokenfst.automata.languages.language import Language
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ConstraintError


@pytest.mark.parametrize(
    "schema", [{"type": "object"}, {**STRINGS, "uniqueItems": True}, {"additionalProperties": {"const": 0}}]
)
def test_going_back_and_forth(schema: Any) -> None:
    """rollback, fork, reset, validate_tokens and draft trees: always as a matcher that read the tokens once."""
    automaton = compile(compact(schema), VOCABULARY)
    rng = random.Random(7)
    matcher = automaton.matcher()
    for _ in range(40):
        while len(matcher.tokens) < 14 and (ways := sorted(allowed(matcher) & set(TYPED))):
            if matcher.num_tokens and rng.random() < 0.3:
                matcher.rollback(rng.randrange(1, min(matcher.num_tokens, 5) + 1))
            else:
                assert matcher.accept_token(rng.choice(ways))
            again = automaton.matcher()
            assert again.accept_tokens(matcher.tokens)
            assert allowed(again) == allowed(matcher)
            copy = matcher.fork()
            drafts = [rng.choice(TYPED) for _ in range(3)]
            count = copy.validate_tokens(drafts)
            assert allowed(copy) == allowed(matcher)
            for number, token in enumerate(drafts):
                assert copy.accept_token(token) is (number < count)
                if number >= count:
                    break
            assert allowed(again) == allowed(matcher)
        rows = allocate_token_bitmask(4, len(VOCABULARY))
        drafts = [0, *(rng.choice(TYPED) for _ in range(3))]
        matcher.traverse_draft_tree(
            np.array([1, 2, -1, -1]), np.array([-1, 3, -1, -1]), np.array(drafts), rows
        )
        for path, row in (([], 0), ([1], 1), ([1, 2], 2), ([3], 3)):
            copy = matcher.fork()
            fits = copy.accept_tokens([drafts[node] for node in path])
            bits = np.unpackbits(np.asarray(rows[row]).view(np.uint8), bitorder="little")
            assert set(np.flatnonzero(bits).tolist()) == (allowed(copy) if fits else set())
        matcher.reset()


def test_going_far_back() -> None:
    automaton = compile(json_object(whitespace="compact"), VOCABULARY)
    names = [f"{first}{second}" for first in "abcde" for second in "abcde"]
    text = "{" + ",".join(f'"{name}":{{"x":1,"y":2}}' for name in names)
    tokens = [TOKENS.index(bytes((byte,))) for byte in text.encode()]
    matcher = automaton.matcher()
    assert matcher.accept_tokens(tokens)
    states = {}
    for length in (len(tokens), 300, 150, 31, 33, 17, 16, 15, 1, 0):
        if length < matcher.num_tokens:
            matcher.rollback(matcher.num_tokens - length)
        else:
            assert matcher.accept_tokens(tokens[matcher.num_tokens : length])
        again = automaton.matcher()
        assert again.accept_tokens(tokens[:length])
        assert allowed(again) == allowed(matcher)
        states[length] = matcher.state
    assert len(set(states.values())) == len(states)
    assert matcher.accept_tokens(tokens)
    assert matcher.fork().accept_tokens(list(b',"f":0}'))
    assert not matcher.fork().accept_tokens(list(b',"cc":0}'))


@pytest.mark.parametrize("number", range(len(WORLDS)))
def test_artifacts_hold_the_marks(number: int, tmp_path: Any) -> None:
    schema, _, _ = WORLDS[number]
    lazy = compile(compact(schema), VOCABULARY)
    lazy.expand().save(tmp_path / "schema.safetensors")
    loaded = TokenAutomaton.load(tmp_path / "schema.safetensors", VOCABULARY)
    rng = random.Random(number)
    for _ in range(40):
        ours, theirs = lazy.matcher(), loaded.matcher()
        for _ in range(12):
            ways = allowed(ours)
            assert allowed(theirs) == ways, text_of(ours)
            typed = sorted(ways & set(TYPED))
            if not typed:
                break
            token = rng.choice(typed)
            assert ours.accept_token(token) and theirs.accept_token(token)


def test_inside_of_a_larger_text() -> None:
    """Brackets and quotation marks before the JSON text do not confuse its reader."""
    inner = json_schema({"type": "object", "additionalProperties": {"const": 0}}, whitespace="compact")
    rules = {
        "start": ex.concat(ex.literal(b'say "{[ '), ex.call("call"), ex.literal(b' " and '), ex.call("call")),
        "call": inner.expr if isinstance(inner, Language) else ex.call("value"),
    }
    if isinstance(inner, Grammar):
        rules |= inner.rules
    grammar = Grammar.from_rules(rules, "start")
    for first, second, fine in (
        ('{"a":0}', '{"a":0}', True),
        ('{"a":0,"b":0}', "{}", True),
        ('{"a":0,"a":0}', "{}", False),
        ("{}", '{"a":0,"a":0}', False),
    ):
        assert grammar.accepts(f'say "{{[ {first} " and {second}') is fine


WORDPIECES = [b"", *(sign.encode() for sign in '[]{}",:ab0'), b"ab"]


def test_finite_machines_are_refused_and_say_what_helps() -> None:
    language = listed("[ab]*")
    for question in (
        lambda: language.determinize(),
        lambda: (~language).is_empty(),
        lambda: language.equivalent(language),
        lambda: json_value() & Language.any_text(),
        lambda: compile(json_value(), Vocabulary(WORDPIECES, 0)),
        lambda: compile(language, Vocabulary(WORDPIECES, 0)),
    ):
        with pytest.raises(ConstraintError, match='repeated_names="allow"'):
            question()
    allowing = json_schema({"additionalProperties": {"const": 0}, "type": "object"}, repeated_names="allow")
    assert allowing.accepts('{"a":0,"a":0}')
    with pytest.raises(ConstraintError, match="repeated_names"):
        json_schema(True, repeated_names="maybe")  # type: ignore[arg-type]


def test_any_value_at_a_depth() -> None:
    for constraint in (json_value(2), json_object(2), json_value().truncate(2)):
        assert constraint.accepts('{"a":{"b":1},"b":2}')
        assert not constraint.accepts('{"a":{"b":1,"b":1}}')
        assert not constraint.accepts('{"a":1,"a":{"b":1}}')
