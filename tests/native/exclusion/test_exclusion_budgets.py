"""Budgets of tokens where strings must differ: what a mask lets pass can be completed within them."""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np
import pytest
from support.worlds.exclusion import END, STRINGS, TOKENS, TYPED, VOCABULARY, allowed, text_of

from tokenfst import Vocabulary, allocate_token_bitmask, compile
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.errors import TokenLimitError


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object"},
        {"type": "object", "minProperties": 3},
        {**STRINGS, "uniqueItems": True, "minItems": 4},
        {
            "minProperties": 2,
            "additionalProperties": {"minProperties": 2, "additionalProperties": {"const": 1}},
        },
    ],
)
@pytest.mark.parametrize("expanded", [False, True])
def test_a_budget_of_tokens_always_suffices(schema: Any, *, expanded: bool) -> None:
    constraint = json_schema({"type": "object", **schema}, whitespace="compact")
    automaton = compile(constraint, VOCABULARY)
    if expanded:
        automaton = automaton.expand()
    least = automaton.matcher().distance()
    with pytest.raises(TokenLimitError):
        automaton.matcher(max_new_tokens=0)
    rng = random.Random(3)
    for _ in range(25):
        matcher = automaton.matcher(max_new_tokens=least + rng.randrange(9))
        while not matcher.is_terminated():
            ways = sorted(allowed(matcher))
            if not ways:
                break
            few = [token for token in ways if token in TYPED or token == END]
            assert matcher.accept_token(rng.choice(few or ways))
        text = b"".join(TOKENS[token] for token in matcher.tokens if token != END)
        assert constraint.accepts(text), text


def test_budgets_of_names_of_few_letters(tekken: Vocabulary) -> None:
    """Bounds on completions differ from step to step: what a token was let pass for must stay allowed."""
    names = {"type": "object", "patternProperties": {"^[ab]+$": {"type": "null"}}, "minProperties": 3}
    automaton = compile(json_schema({**names, "additionalProperties": False}), tekken)
    assert automaton.distance() == automaton.matcher().distance() == 13
    bitmask = allocate_token_bitmask(1, len(tekken))
    short = [token for text in (b'"', b"a", b"b", b",", b":", b"}") for token in tekken.ids(text)]
    for seed in range(30):
        rng = random.Random(seed)
        matcher = automaton.matcher(max_new_tokens=rng.choice([13, 14, 16, 18]))
        while not matcher.is_terminated() and matcher.max_tokens_left:
            matcher.fill_next_token_bitmask(bitmask, 0)
            mask = np.unpackbits(bitmask[0].view(np.uint8), bitorder="little")
            some = [token for token in short if mask[token]] if rng.random() < 0.7 else []
            assert matcher.accept_token(int(rng.choice(some or np.flatnonzero(mask).tolist())))
        assert matcher.is_accepting()
        found = json.loads(tekken.decode(matcher.tokens), object_pairs_hook=list)
        assert len({name for name, _ in found}) == len(found) >= 3


@pytest.mark.parametrize("pattern", ["^[ab]{1,3}$", "^[0-9]{2}$"])
def test_a_budget_with_names_of_a_small_set(tekken: Vocabulary, pattern: str) -> None:
    """The sets of names that may have been used are no states."""
    schema = {"type": "object", "patternProperties": {pattern: {"const": 0}}, "additionalProperties": False}
    automaton = compile(json_schema({**schema, "minProperties": 3}, whitespace="compact"), tekken)
    matcher = automaton.matcher(max_new_tokens=automaton.distance() + 2)
    assert matcher.max_tokens_left


LONG = ["x|[qxz]{40}", "international|[ab]{20,}", "a{1,30}", "[ab]{2}|c{30}", "ab|ac|a{20}(bc)*"]


def named(pattern: str, low: int, *, other: bool) -> dict[str, Any]:
    """Objects of members with names out of a pattern; with ``other``, also of members that take longer."""
    long = {"^(x|a+)y$": {"const": "a value that takes a while"}} if other else {}
    patterns = {f"^({pattern})$": {"type": "null"}, **long}
    return {
        "type": "object",
        "patternProperties": patterns,
        "additionalProperties": False,
        "minProperties": low,
    }


def items(pattern: str, low: int) -> dict[str, Any]:
    """Arrays of different strings out of a pattern."""
    each = {"type": "string", "pattern": f"^({pattern})$"}
    return {"type": "array", "items": each, "uniqueItems": True, "minItems": low}


@pytest.mark.parametrize("pattern", LONG)
def test_no_mask_is_empty_where_strings_are_long(pattern: str) -> None:
    """Where the shortest strings are used up, others take many more tokens; a budget that was taken on is kept."""
    for seed in range(4):
        rng = random.Random(seed)
        low = rng.randrange(4)
        schema = items(pattern, low) if seed == 0 else named(pattern, low, other=seed == 1)
        constraint = json_schema(schema, whitespace="compact")
        automaton = compile(constraint, VOCABULARY)
        least = automaton.matcher().distance()
        for more in (0, 1, 3, 8, 20, 40):
            matcher = automaton.matcher(max_new_tokens=least + more)
            while not matcher.is_terminated() and matcher.max_tokens_left:
                ways = sorted(allowed(matcher))
                assert ways, (schema, text_of(matcher), least, more)
                old = [token for token in ways if token in matcher.tokens]
                assert matcher.accept_token(rng.choice(old if old and rng.random() < 0.5 else ways))
            text = text_of(matcher)
            assert matcher.is_accepting() and constraint.accepts(text), text


@pytest.mark.parametrize(
    "schema",
    [
        {**STRINGS, "uniqueItems": True, "minItems": 3},
        items("[ab]{1,2}", 3),
        named("[ab]+", 3, other=False),
        named("a?b?", 2, other=True),
        {"type": "object", "minProperties": 2, "additionalProperties": {"type": "string"}},
    ],
)
def test_each_token_of_a_mask_is_accepted_and_leads_on(schema: Any) -> None:
    """Tokens are judged in groups; those that would spell a string of the group's completion are looked at alone."""
    automaton = compile(json_schema(schema, whitespace="compact"), VOCABULARY)
    least = automaton.matcher().distance()
    rng = random.Random(5)
    looked_at = 0
    for more in (0, 0, 1, 2, 4):
        matcher = automaton.matcher(max_new_tokens=least + more)
        while not matcher.is_terminated() and matcher.max_tokens_left:
            ways = sorted(allowed(matcher))
            for token in ways:
                after = matcher.fork()
                assert after.accept_token(token), (text_of(matcher), TOKENS[token])
                assert after.is_terminated() or after.is_accepting() or allowed(after)
                looked_at += 1
            few = [token for token in ways if token in TYPED]
            assert matcher.accept_token(rng.choice(few or ways))
    assert looked_at > 50


BRANCH = {
    "type": "object",
    "properties": {"n": {"type": "string"}, "c": {"type": "boolean"}},
    "required": ["n", "c"],
    "additionalProperties": False,
}
OF_ANY_KIND: list[dict[str, Any]] = [
    {"items": {"anyOf": [{"type": "string"}, BRANCH]}},
    {"items": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"type": "boolean"}}]}},
    {"items": BRANCH, "minItems": 2},
    {"items": {"type": "array", "items": BRANCH, "uniqueItems": True}, "minItems": 1},
    {"prefixItems": [BRANCH], "items": {"type": ["number", "null"]}, "minItems": 2},
    {"items": {"type": "object", "additionalProperties": {"type": "null"}, "minProperties": 1}},
]
SAID = [
    '[{"n":"a","c":true}',
    '["a"',
    "[1,[true]",
    '[{"n":"","c":false},{"n":"a","c":true}',
    '[{"a":null}',
    "[[1]",
    "[",
]


@pytest.mark.parametrize("schema", OF_ANY_KIND)
def test_a_budget_suffices_where_items_of_any_kind_must_differ(schema: Any) -> None:
    """Also where what is written begins as what was written before, and where few tokens are left in its midst."""
    constraint = json_schema({"type": "array", "uniqueItems": True, **schema}, whitespace="compact")
    automaton = compile(constraint, VOCABULARY)
    least = automaton.matcher().distance()
    for seed in range(30):
        rng = random.Random(seed)
        matcher = automaton.matcher(max_new_tokens=least + rng.choice([3, 11, 23, 40, 60]))
        for byte in rng.choice(SAID).encode():
            if byte not in allowed(matcher) or not matcher.accept_token(byte):
                break
        copied: list[int] = []
        while not matcher.is_terminated():
            ways = sorted(allowed(matcher))
            if not ways:
                break
            if not copied and rng.random() < 0.2:
                copied = list(matcher.tokens[1:])  # an item that was written, once more
            token = copied.pop(0) if copied else -1
            if token not in ways:
                copied = []
                few = [each for each in ways if each in TYPED or each == END]
                token = rng.choice(few or ways)
            assert matcher.accept_token(token)
        text = b"".join(TOKENS[token] for token in matcher.tokens if token != END)
        assert constraint.accepts(text), text


@pytest.mark.parametrize("schema", OF_ANY_KIND)
@pytest.mark.parametrize("said", SAID)
def test_within_a_budget_each_token_has_a_completion_and_far_from_it_all_have(schema: Any, said: str) -> None:
    """Masks are made without a search where much is left: each token is looked at here by one."""
    constraint = json_schema({"type": "array", "uniqueItems": True, **schema}, whitespace="compact")
    automaton = compile(constraint, VOCABULARY)
    free, draw = automaton.matcher(), random.Random(said)
    before = list(said.encode())
    if not free.accept_tokens(before):
        return
    for more in ([], [ord(",")], list(b',{"n":"a'), list(b',{"n":"b","c":true'), list(b",[tr")):
        if more and not free.fork().accept_tokens(more):
            continue
        text, plain = [*before, *more], free.fork()
        plain.accept_tokens(more)
        least = plain.distance()
        for room in (least, least + 4, least + 40, 4_000):
            matcher = automaton.matcher(max_new_tokens=len(text) + room)
            assert matcher.accept_tokens(text)
            ways = allowed(matcher)
            assert room < 4_000 or ways == allowed(plain)
            for token in sorted(ways & set(TYPED) if room < 4_000 else ()):
                after = matcher.fork()
                assert after.accept_token(token), (text, token)
                while not after.is_terminated() and after.max_tokens_left:
                    onward = sorted(allowed(after))
                    assert onward, (after.tokens, room)
                    assert after.accept_token(END if END in onward else draw.choice(onward))
                assert after.is_accepting() or after.is_terminated(), (after.tokens, room)
