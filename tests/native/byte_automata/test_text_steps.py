"""Steps over whole texts lead to the state that single bytes lead to: listed names, free names, and choices of texts.

Objects in a list have random listed names, and free ones beside them. A text is read in pieces, then byte by byte by
the same automaton: after each piece the mask is the same, and it is not computed again, since the state is the same.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import tokenfst
from tokenfst import Vocabulary

WORDS = ["name", "names", "nam", "id", "idea", "kind", "na-me", "n", "title", "tit", "é", "naïve", "a b"]
PIECES = sorted(
    {word.encode() for word in WORDS}
    | {b"na", b"me", b"ame", b'id"', b'name"', b'names":', b'title"', b"zz", b"ide"}
)
VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), *PIECES, b""], 256 + len(PIECES))


def random_schema(rng: random.Random) -> dict[str, Any]:
    names = rng.sample(WORDS, rng.randint(1, len(WORDS)))
    values: list[Any] = [{"enum": rng.sample(WORDS, rng.randint(1, 6))}, {"type": "null"}, {"const": 7}]
    listed = {
        "type": "object",
        "properties": {name: rng.choice(values) for name in names},
        "required": rng.sample(names, rng.randint(0, len(names))),
    }
    extra: list[dict[str, Any]] = [
        {},
        {"additionalProperties": False},
        {"additionalProperties": rng.choice(values)},
        {"patternProperties": {"^n": rng.choice(values)}},
    ]
    schema = {**listed, **rng.choice(extra)}
    if rng.random() < 0.3:
        schema = {
            "anyOf": [
                schema,
                {"type": "object", "properties": {"id": {"const": 7}, "kind": {}}, "required": ["id"]},
            ]
        }
    return {"type": "array", "items": schema}


class Walked:
    """One matcher that notes each mask, and whether it was computed there."""

    def __init__(self, automaton: Any) -> None:
        self.automaton, self.matcher = automaton, automaton.matcher()
        self.bitmask = tokenfst.allocate_token_bitmask(1, len(VOCABULARY))

    def mask(self) -> tuple[list[int], bool]:
        before = self.automaton.stats().masks_composed
        self.matcher.fill_next_token_bitmask(self.bitmask, 0)
        bits = np.unpackbits(np.asarray(self.bitmask).view(np.uint8), bitorder="little")
        return np.flatnonzero(
            bits[: len(VOCABULARY)]
        ).tolist(), self.automaton.stats().masks_composed > before


@pytest.mark.parametrize("seed", range(60))
def test_pieces_lead_to_the_states_of_single_bytes(seed: int) -> None:
    rng = random.Random(seed)
    schema = tokenfst.json_schema(random_schema(rng), property_order=rng.choice(["any", "schema"]))
    automaton = tokenfst.compile(schema, VOCABULARY)
    for _ in range(6):
        by_pieces, by_bytes = Walked(automaton), Walked(automaton)
        tokens: list[int] = []
        masks = [by_pieces.mask()[0]]
        while len(tokens) < 60 and (allowed := [token for token in masks[-1] if token < 256 + len(PIECES)]):
            long = [token for token in allowed if token >= 256]
            plain = [token for token in allowed if token < 128] or allowed
            tokens.append(rng.choice(long if long and rng.random() < 0.8 else plain))
            assert by_pieces.matcher.accept_token(tokens[-1])
            masks.append(by_pieces.mask()[0])
        for token, mask in zip(tokens, masks[1:], strict=True):
            for byte in VOCABULARY.tokens[token]:
                assert by_bytes.matcher.accept_token(byte)
            assert by_bytes.mask() == (mask, False), (tokens, token)
