"""Masks within a budget of tokens, near its end, against matchers that try each token."""

from __future__ import annotations

import random
from typing import Any

import pytest
from support.worlds.exclusion import END, TOKENS, TYPED, VOCABULARY, allowed, text_of

from tokenfst import compile, regex
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import TokenLimitError

NULL: dict[str, Any] = {"type": "null"}
OBJECTS: list[dict[str, Any]] = [
    {"properties": {"a": NULL}, "required": ["a"], "additionalProperties": NULL},
    {"properties": {"a": {"type": "string"}}, "additionalProperties": {"type": "string"}},
    {"properties": {"a": {"type": "object", "additionalProperties": {"const": 0}}}, "required": ["a"]},
    {"patternProperties": {"^[ab]{1,2}$": {"const": 0}}, "additionalProperties": False, "minProperties": 1},
    {"additionalProperties": {"type": "array", "items": {"type": "string"}, "uniqueItems": True}},
    {"additionalProperties": {"additionalProperties": {"const": 0}}, "minProperties": 2},
    {"propertyNames": {"maxLength": 2}, "additionalProperties": {"enum": [0, "a"]}},
]


@pytest.mark.parametrize("schema", OBJECTS, ids=range(len(OBJECTS)))
@pytest.mark.parametrize("expanded", [False, True], ids=["derived", "expanded"])
def test_each_token_that_a_budget_leaves_is_accepted_and_leads_on(schema, expanded):
    """Most tokens are allowed because a completion that no known string restricts is short enough. The walks repeat
    strings, and end, open and repeat several of them within one token.
    """
    constraint = json_schema({"type": "object", **schema}, whitespace="compact")
    automaton = compile(constraint, VOCABULARY)
    if expanded:
        automaton = automaton.expand()
    least = automaton.matcher().distance()
    rng = random.Random(7)
    refused = 0
    for more in (0, 1, 2, 4, 7, 12):
        matcher = automaton.matcher(max_new_tokens=least + more)
        while not matcher.is_terminated() and matcher.max_tokens_left:
            ways = sorted(allowed(matcher))
            assert ways, text_of(matcher)
            for token in ways if len(ways) < 40 else {*TYPED} & {*ways} | {*rng.sample(ways, 20)}:
                fork = matcher.fork()
                assert fork.accept_token(token), (text_of(matcher), TOKENS[token])
                assert fork.is_terminated() or not fork.max_tokens_left or allowed(fork), (
                    text_of(matcher),
                    TOKENS[token],
                )
            for token in {*TYPED} - {*ways}:
                refused += 1
                assert not matcher.fork().accept_token(token), (text_of(matcher), TOKENS[token])
            few = [token for token in ways if token in TYPED]
            assert matcher.accept_token(rng.choice(few if few and rng.random() < 0.8 else ways))
        text = b"".join(TOKENS[token] for token in matcher.tokens if token != END)
        assert matcher.is_terminated() or matcher.is_accepting()
        assert constraint.accepts(text), text
    assert refused


@pytest.mark.parametrize("pattern", ["a{3}b*(aa|b)", "(a|bb)*0{2}", '("a":0,)*"a"', "a?(aa)*b{4}|0"])
def test_masks_are_the_tokens_after_which_the_end_is_near_enough(pattern):
    automaton = compile(regex(pattern), VOCABULARY)
    rng = random.Random(3)
    for budget in range(1, 12):
        try:
            matcher = automaton.matcher(max_new_tokens=budget)
        except TokenLimitError:
            continue
        while not matcher.is_terminated() and matcher.max_tokens_left:
            free, left = automaton.matcher(), matcher.max_tokens_left
            assert free.accept_tokens(matcher.tokens)
            near = set()
            for token in range(len(TOKENS)):
                fork = free.fork()
                if fork.accept_token(token) and (token == END or fork.distance() < left):
                    near.add(token)
            assert allowed(matcher) == near, (pattern, matcher.tokens, left)
            assert matcher.accept_token(rng.choice(sorted(near)))
