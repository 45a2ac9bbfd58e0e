"""Strings that must differ, over vocabularies whose tokens have other forms at the start of a text.

Random walks: no mask leads to a dead end, with a limit of tokens or without, and what is written is valid.
"""

from __future__ import annotations

import json
import random
from typing import Any

from support.running.seeds import few_and_many_seeds, in_ranges
from support.worlds.token_worlds import allowed

import tokenfst
from tokenfst import TokenAutomaton, Vocabulary
from tokenfst.errors import EmptyLanguageError, TokenLimitError

EVERY_BYTE = [bytes([byte]) for byte in range(256)]
SCHEMAS: list[Any] = [
    {"type": "array", "items": {"enum": ["a", "ab", "b", "ba"]}, "uniqueItems": True, "minItems": 2},
    {
        "type": "array",
        "items": {"type": "string", "pattern": "^[ab]{1,3}$"},
        "uniqueItems": True,
        "minItems": 2,
    },
    {"type": "object", "additionalProperties": {"type": "null"}, "minProperties": 1},
    {
        "type": "array",
        "items": {"type": "object", "properties": {"a": {"type": "boolean"}}, "required": ["a"]},
        "uniqueItems": True,
        "minItems": 1,
    },
]


class World:
    """A vocabulary of all bytes and some texts, with random forms at the start; the automaton of a random schema."""

    def __init__(self, rng: random.Random) -> None:
        more = [bytes(rng.choices(b'ab[]",: {}', k=rng.randint(2, 4))) for _ in range(12)]
        self.tokens = [*EVERY_BYTE, *more, b""]
        self.end = len(self.tokens) - 1
        self.initial = [
            rng.choice([text[1:], text[1:], text, text, text, rng.choice(more), rng.choice(more) + text])
            if text
            else b""
            for text in self.tokens
        ]
        self.absorbs = rng.random() < 0.6
        vocabulary = Vocabulary(
            self.tokens, self.end, initial_tokens=self.initial, start_absorbs=self.absorbs
        )
        schema = tokenfst.json_schema(
            rng.choice(SCHEMAS),
            whitespace=rng.choice(["compact", "flexible"]),
            surrounding=rng.choice(["none", "flexible"]),
        )
        self.automaton: TokenAutomaton = tokenfst.compile(schema, vocabulary)

    def text(self, path: list[int]) -> bytes:
        """What tokens spell, by the definition of a vocabulary's forms."""
        written = b""
        for place, token in enumerate(path):
            at_start = not written if self.absorbs else place == 0
            written += (self.initial if at_start else self.tokens)[token]
        return written

    def walk(self, rng: random.Random, limit: int | None, most: int = 40) -> None:
        matcher = self.automaton.matcher(limit)
        path: list[int] = []
        while len(path) < most:
            choices = sorted(allowed(matcher, len(self.tokens)))
            assert choices or matcher.is_accepting(), self.text(path)
            if self.end in choices and (len(choices) == 1 or rng.random() < 0.3):
                check_members(self.text(path))
                return
            choices = [token for token in choices if token != self.end]
            if not choices:
                return  # the limit is reached
            if len(path) < 2 and rng.random() < 0.5:
                choices = [token for token in choices if not self.initial[token]] or choices
            path.append(rng.choice(choices))
            assert matcher.accept_token(path[-1])


def check_members(text: bytes) -> None:
    """No name comes twice in an object, no item in the array."""

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        assert len(dict(pairs)) == len(pairs), text
        return dict(pairs)

    value = json.loads(text, object_pairs_hook=members)
    items = [json.dumps(item) for item in value] if isinstance(value, list) else []
    assert len(set(items)) == len(items), text


def check_world(seed: int) -> None:
    rng = random.Random(seed)
    try:
        world = World(rng)
        least = world.automaton.matcher().distance()
    except EmptyLanguageError:  # no token may come first
        return
    for _ in range(3):
        world.walk(rng, None)
    if least >= 1 << 30:
        return  # none is found
    for limit in range(max(1, least - 1), least + 5):
        try:
            world.automaton.matcher(limit)
        except TokenLimitError:  # too few
            continue
        for _ in range(3):
            world.walk(rng, limit, most=limit)


@few_and_many_seeds(in_ranges(range(200), 50), in_ranges(range(1000, 21_000), 1000))
def test_random_worlds(seeds: range) -> None:
    for seed in seeds:
        check_world(seed)
