"""Names and listed strings are read letter by letter beside the vocabulary, and a token leaps over them.

Masks, and where tokens lead, are what their bytes make one by one: one-byte tokens never leap, and an automaton that is
given them alone is the twin.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

from tokenfst import Vocabulary, allocate_token_bitmask, compile, json_schema
from tokenfst.errors import ConstraintError

NAMES = ["a", "b", "ab", "aba", "abb", "bé", "a/b", "é", "ba", "bab"]
PARTS = [
    "a",
    "b",
    "ab",
    "ba",
    "é",
    "a/",
    "\\/",
    "\\u0061",
    "\\u",
    "00",
    "61",
    '"',
    '":',
    '": ',
    '":1',
    '",',
    ', "',
    ', "a',
    '{"',
    '{"ab',
    '"a',
    'b"',
    '"}',
    "1}",
]
END = 256


def vocabulary_of(rng: random.Random) -> Vocabulary:
    texts = {"".join(rng.choice(PARTS) for _ in range(rng.randint(1, 3))).encode() for _ in range(60)}
    texts = {text for text in texts | {part.encode() for part in PARTS} if len(text) > 1}
    return Vocabulary([*(bytes((byte,)) for byte in range(256)), b"", *sorted(texts)], END)


def schema_of(rng: random.Random, depth: int = 2) -> Any:
    kind = rng.randrange(5 if depth else 3)
    if kind == 0:
        return {"enum": rng.sample([*NAMES, 1, None], rng.randint(1, 6))}
    if kind == 1:
        return {"type": rng.choice(["integer", "string", "null"])}
    if kind == 2:
        return {"pattern": rng.choice(["^ab", "^(ab|a/)*$", "b$"]), "type": "string"}
    names = rng.sample(NAMES, rng.randint(1, 6))
    schema: dict[str, Any] = {
        "type": "object",
        "properties": {name: schema_of(rng, depth - 1) for name in names},
    }
    schema["required"] = rng.sample(names, rng.randint(0, len(names)))
    schema["additionalProperties"] = rng.choice([False, True, {"type": "integer"}])
    if rng.random() < 0.3:
        schema["properties"][names[0]] = {"$ref": "#"}
        schema["required"] = [name for name in schema["required"] if name != names[0]]
    return schema


def tokens_of(matcher: Any, size: int) -> set[int]:
    mask = allocate_token_bitmask(1, size)
    matcher.fill_next_token_bitmask(mask, 0)
    return set(np.flatnonzero(np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")).tolist())


def check(rng: random.Random) -> int:
    """Walks at random; returns how many tokens of several bytes were taken."""
    vocabulary = vocabulary_of(rng)
    schema = schema_of(rng)
    options = {
        "whitespace": rng.choice(["flexible", "compact"]),
        "property_order": rng.choice(["schema", "any"]),
    }
    try:
        leaping = compile(json_schema(schema, **options), vocabulary).matcher()
        stepping = compile(json_schema(schema, **options), vocabulary).matcher()
    except ConstraintError:
        return 0
    leapt = 0
    for _ in range(12):
        allowed = tokens_of(leaping, len(vocabulary))
        for token, text in enumerate(vocabulary.tokens):
            if token == END:
                continue
            taken = 0
            for byte in text:
                if not stepping.accept_token(byte):
                    break
                taken += 1
            assert (taken == len(text)) == (token in allowed), (schema, options, leaping.tokens, text)
            stepping.rollback(taken)
        assert (END in allowed) == stepping.is_accepting()
        several = [token for token in allowed if token > END]
        token = rng.choice(several or sorted(allowed - {END}) or [END])
        if token == END:
            break
        assert leaping.accept_token(token)
        for byte in vocabulary.tokens[token]:
            assert stepping.accept_token(byte)
        leapt += token > END
    return leapt


@pytest.mark.parametrize("seed", range(4))
def test_tokens_lead_where_their_bytes_do(seed: int) -> None:
    rng = random.Random(seed)
    assert sum(check(rng) for _ in range(40)) > 100


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1020))
def test_tokens_always_lead_where_their_bytes_do(seed: int) -> None:
    rng = random.Random(seed)
    assert sum(check(rng) for _ in range(400)) > 1000
