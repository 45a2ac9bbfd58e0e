"""Masks of random objects, in any order and in the schema's: those of trying each token on an automaton that is new.

Names share beginnings, members are optional or required, and counts are bounded, so that some of the options that begin
alike may come and others may not. A last byte of a token makes no state where it surely leads on.
"""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from tokenfst import (
    EmptyLanguageError,
    TokenAutomaton,
    Vocabulary,
    allocate_token_bitmask,
    compile,
    json_schema,
    regex,
)

NAMES = ["a", "ab", "abc", "abd", "b", "ba", "c d", "name", "name_1", "names"]
PIECES = [
    b'{"',
    b'": ',
    b'":',
    b'": "',
    b', "',
    b'", "',
    b'"}',
    b"}, ",
    b"ab",
    b"abc",
    b'b": ',
    b'name"',
    b"name_",
    b"na",
    b"nul",
]
PIECES += [
    b"null",
    b"l}",
    b"true",
    b"12",
    b"1, ",
    b'1, "a',
    b"[1",
    b"]}",
    b'"a"',
    b'a": n',
    b"}}",
    b', "a',
    b', "na',
    b"es",
    b'", ',
]
VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), *PIECES, b""], 256 + len(PIECES))
TRIED = [*range(32, 127), *range(256, 256 + len(PIECES))]
"""What is tried: printable bytes, and all pieces."""


def random_value(chance: random.Random, depth: int) -> Any:
    kinds = ["null", "boolean", "integer", "enum", "string", "pattern"] + ["object", "array", "any"] * (
        depth > 0
    )
    kind = chance.choice(kinds)
    if kind == "object":
        return random_object(chance, depth - 1)
    if kind == "array":
        return {"type": "array", "items": random_value(chance, depth - 1), "maxItems": chance.randint(0, 3)}
    if kind == "any":
        return {"anyOf": [random_value(chance, depth - 1) for _ in range(2)]}
    if kind == "enum":
        return {"enum": chance.sample([*NAMES, 1, 12, None, True], 3)}
    if kind == "pattern":
        return {"type": "string", "pattern": chance.choice(["^a+b$", "^[a-c]{2,3}$", "^name(_1|s)?$"])}
    return {"type": kind}


def random_object(chance: random.Random, depth: int) -> Any:
    names = chance.sample(NAMES, chance.randint(1, 5))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: random_value(chance, depth) for name in names},
        "required": [name for name in names if chance.random() < 0.3],
        "additionalProperties": chance.choice([False, False, True, {"type": "null"}]),
    }
    if chance.random() < 0.3:
        schema["maxProperties"] = max(len(schema["required"]), chance.randint(1, 3))
    if chance.random() < 0.3:
        schema["minProperties"] = min(len(names), chance.randint(1, 2))
    if chance.random() < 0.2:
        schema["dependencies"] = {names[0]: [names[-1]]}
    return schema


def check(seed: int) -> None:
    chance = random.Random(seed)
    order: Any = chance.choice(["any", "schema"])
    constraint = None
    while constraint is None:
        with suppress(EmptyLanguageError):  # dependencies may ask for more members than may come
            constraint = json_schema(random_object(chance, 2), property_order=order)
    automaton = compile(constraint, VOCABULARY)
    bitmask = allocate_token_bitmask(1, len(VOCABULARY))
    matcher = automaton.matcher()
    for _ in range(14):
        matcher.fill_next_token_bitmask(bitmask, 0)
        tried = compile(constraint, VOCABULARY).matcher()  # which knows no mask, and no state
        assert tried.accept_tokens(matcher.tokens)
        allowed = [token for token in TRIED if bitmask[0, token // 32] >> (token % 32) & 1]
        for token in TRIED:
            accepted = tried.accept_token(token)
            assert accepted is (token in allowed), (seed, matcher.tokens, token)
            if accepted:
                tried.rollback(1)
        if not allowed:
            break
        long = [token for token in allowed if token >= 256]
        matcher.accept_token(chance.choice(long if long and chance.random() < 0.7 else allowed))


@pytest.mark.parametrize("seed", range(40))
def test_random_objects(seed: int) -> None:
    check(seed)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(40, 600))
def test_more_random_objects(seed: int) -> None:
    check(seed)


def states_made_by_a_mask(automaton: TokenAutomaton, text: bytes) -> int:
    matcher = automaton.matcher()
    matcher.accept_tokens(list(text))
    before = automaton.stats().states
    matcher.fill_next_token_bitmask(allocate_token_bitmask(1, len(VOCABULARY)), 0)
    return automaton.stats().states - before


def test_a_last_byte_that_surely_leads_on_makes_no_state() -> None:
    """After a value, a comma and white space lead to states that longer tokens go through, and the bracket to none.
    5 states were made when all last bytes were looked at.
    """
    automaton = compile(json_schema({"type": "array", "items": {"type": "boolean"}}), VOCABULARY)
    assert states_made_by_a_mask(automaton, b"[true") <= 3


def test_a_last_byte_whose_rest_may_have_no_word_is_looked_at() -> None:
    """After 1 the intersection has no word."""
    automaton = compile(regex("x(?:1y|2z)(?:ab)*") & regex("x(?:1b|2z)(?:ab|c)*"), VOCABULARY)
    matcher = automaton.matcher()
    matcher.accept_token(ord("x"))
    bitmask = allocate_token_bitmask(1, len(VOCABULARY))
    matcher.fill_next_token_bitmask(bitmask, 0)
    allowed = [token for token in range(256) if bitmask[0, token // 32] >> (token % 32) & 1]
    assert allowed == [ord("2")]
