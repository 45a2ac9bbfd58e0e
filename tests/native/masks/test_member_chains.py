"""Names of members in any order are read beside the vocabulary: the masks of trying each token, and hardly a state."""

from __future__ import annotations

import random
from typing import Any

import pytest

from tokenfst import Vocabulary, allocate_token_bitmask, compile, json_schema

WORDS = ["alpha", "name", "number", "note", "street", "state", "station"]
NAMES = [f"{word}_{kind}" for word in WORDS for kind in ("one", "two", "three")]
TOKENS = list(
    dict.fromkeys(
        [*(bytes([byte]) for byte in range(256))]
        + [part.encode() for word in WORDS for part in (word, word[:3], word[2:])]
        + [
            b"_one",
            b"_t",
            b'two"',
            b'":',
            b'": ',
            b'": 1',
            b'{"',
            b', "',
            b', "na',
            b'{"state_',
            b"}",
            b"1, ",
            b"true",
        ]
    )
)
VOCABULARY = Vocabulary([*TOKENS, b""], len(TOKENS))
INTEGER = {"type": "integer"}


def members(**keywords: Any) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": dict.fromkeys(NAMES, INTEGER),
        "additionalProperties": False,
        **keywords,
    }


SCHEMAS: list[Any] = [
    members(),
    members(required=NAMES[:2], maxProperties=3),
    members(minProperties=2, additionalProperties=True),
    members(additionalProperties=INTEGER, patternProperties={"^name": {"type": "boolean"}}),
    {
        "type": "object",
        "properties": {"state": members(), "station": {"$ref": "#"}, "name": {"enum": ["name", "note"]}},
    },
    {
        "anyOf": [
            members(),
            {"type": "object", "properties": {"name_on": {"type": "null"}}, "additionalProperties": False},
        ]
    },
    members(dependencies={"name_one": ["note_one"], "note_two": ["street_one", "street_two"]}),
    members(dependencies={"name_one": ["note_one"]}, additionalProperties={"enum": ["name", "note"]}),
    {"anyOf": [members(required=NAMES[:1]), {"type": "array", "items": {"enum": NAMES}}, {"enum": NAMES}]},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=range(len(SCHEMAS)))
@pytest.mark.parametrize("spelling", ["plain", "any"])
def test_masks_are_those_of_trying_each_token(schema: Any, spelling: Any) -> None:
    constraint = json_schema(schema, property_order="any", spelling=spelling)
    automaton, chance = compile(constraint, VOCABULARY), random.Random(0)
    bitmask = allocate_token_bitmask(1, len(VOCABULARY))
    for _ in range(2):
        matcher = automaton.matcher()
        for _ in range(12):
            matcher.fill_next_token_bitmask(bitmask, 0)
            tried = compile(constraint, VOCABULARY).matcher()  # which knows no mask, and no state
            for token in matcher.tokens:
                assert tried.accept_token(token)
            allowed = [token for token in range(len(TOKENS)) if bitmask[0, token // 32] >> (token % 32) & 1]
            for token in range(len(TOKENS)):
                accepted = tried.accept_token(token)
                assert accepted is (token in allowed), (matcher.tokens, TOKENS[token])
                if accepted:
                    tried.rollback(1)
            if not allowed:
                break
            long = [token for token in allowed if len(TOKENS[token]) > 1]
            matcher.accept_token(chance.choice(long or allowed))


@pytest.mark.parametrize(
    "keywords", [{}, {"dependencies": {"name_one": ["note_one"]}}], ids=["one", "alternatives"]
)
def test_a_mask_of_names_makes_no_state_for_their_letters(keywords: Any) -> None:
    automaton = compile(json_schema(members(**keywords), property_order="any"), VOCABULARY)
    matcher = automaton.matcher()
    matcher.accept_tokens(VOCABULARY.encode_greedy(b'{"'))
    before = automaton.stats().states
    matcher.fill_next_token_bitmask(allocate_token_bitmask(1, len(VOCABULARY)), 0)
    assert automaton.stats().states - before < 5
