"""Limits of tokens where strings must differ: the mask has every token with which a known completion begins."""

from __future__ import annotations

import random
from typing import Any

import pytest
from support.worlds.exclusion import TOKENS, VOCABULARY, allowed, text_of

from tokenfst import compile, json_schema

WORDS = ["[ab]{1,2}", "a{1,9}", "ab|ac|a{20}(bc)*", "x|[qxz]{9}", "international|[ab]{7,}"]


def random_schema(chance: random.Random) -> dict[str, Any]:
    """Strings that must differ, most of them long, as items or as names."""
    pattern, least = f"^({chance.choice(WORDS)})$", chance.randrange(4)
    if chance.random() < 0.5:
        item = {"type": "string", "pattern": pattern}
        return {"type": "array", "items": item, "uniqueItems": True, "minItems": least}
    members = {"patternProperties": {pattern: {"type": "null"}}, "additionalProperties": False}
    return {"type": "object", **members, "minProperties": least}


@pytest.mark.parametrize("seed", [0, 1, 2, 3, 385, 591, 1332])
def test_masks_are_what_is_accepted(seed: int) -> None:
    chance = random.Random(seed)
    constraint = json_schema(
        random_schema(chance), whitespace="compact", property_order=chance.choice(["any", "schema"])
    )
    automaton = compile(constraint, VOCABULARY)
    matcher = automaton.matcher(max_new_tokens=automaton.matcher().distance() + chance.choice([0, 1, 3, 8]))
    while not matcher.is_over():
        ways = allowed(matcher)
        accepted = {token for token in range(len(VOCABULARY)) if matcher.fork().accept_token(token)}
        assert accepted == set(ways), (
            seed,
            text_of(matcher),
            [TOKENS[token] for token in accepted ^ set(ways)],
        )
        assert matcher.accept_token(chance.choice(sorted(ways)))
    assert constraint.accepts(text_of(matcher))
