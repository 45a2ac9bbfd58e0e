"""Names that are any string but the listed ones: masks by fragments are those of walks, and of trying each token.

What such a fragment loses, and how its expression splits, is kept by each thread for further masks. So two automata are
walked by turns, and their listed names and values differ.
"""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.support.worlds.token_worlds import allowed
from tokenfst import Matcher, Vocabulary, _native, json_schema

NAMES = ["", "a", "ab", "b", "ba", "abab", "a b"]
PIECES = [
    b'{"',
    b'":',
    b'": ',
    b'": "',
    b', "',
    b'", "',
    b'"}',
    b'"a',
    b'"ab"',
    b'b":',
    b'a": n',
    b'b"',
    b"ab",
    b"ba",
]
PIECES += [b"null", b"nul", b'l, "', b'"",', b'"b":', b'": {', b'": {"', b"}}", b'":{}', b"[]", b'a","']
VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), *PIECES, b""], 256 + len(PIECES))
TRIED = [*range(32, 127), *range(256, 257 + len(PIECES))]
BUDGET = (100_000, 1 << 30, 60.0)
NO_FRAGMENTS = 0xFFFFFFFE


def random_object(rng: random.Random, depth: int) -> dict[str, Any]:
    values: list[Any] = [
        {"type": "null"},
        {"enum": ["a", "ab"]},
        {"type": "string", "pattern": "^[ab]*$"},
        True,
    ]
    if depth > 0:
        values += [random_object(rng, depth - 1) for _ in range(2)]
    return {
        "type": "object",
        "properties": {name: rng.choice(values) for name in rng.sample(NAMES, rng.randint(1, 4))},
        "additionalProperties": rng.choice(values),
        **({"propertyNames": {"pattern": "^[ab ]*$"}} if rng.random() < 0.3 else {}),
        **({"minProperties": 2} if rng.random() < 0.3 else {}),
    }


class Walked:
    """One schema, walked with fragments and without them."""

    def __init__(self, rng: random.Random, shared: bool) -> None:
        order: Any = rng.choice(["any", "schema"])
        schema = {
            "type": "object",
            "properties": {"a": random_object(rng, 1)},
            "additionalProperties": random_object(rng, 1),
        }
        program = json_schema(schema, property_order=order).program().native()
        automata = [
            _native.TokenAutomaton.compose(program, VOCABULARY.native, *BUDGET, narrow)
            for narrow in (NO_FRAGMENTS, 0, 4)
        ]
        self.fragments = automata[1]
        if shared:
            automata[1].share()
        self.matchers = [Matcher(automaton) for automaton in automata]
        self.rng = rng

    def step(self) -> bool:
        """Compare the masks, and take a token by chance. Whether there is one."""
        masks = [allowed(matcher, len(VOCABULARY)) for matcher in self.matchers]
        assert masks[0] == masks[1] == masks[2], self.matchers[0].tokens
        tried = self.matchers[2]
        for token in TRIED:
            accepted = tried.accept_token(token)
            assert accepted is (token in masks[0]), (self.matchers[0].tokens, token)
            if accepted:
                tried.rollback(1)
        long = [token for token in sorted(masks[0]) if 256 <= token < 256 + len(PIECES)]
        choices = long if long and self.rng.random() < 0.7 else sorted(masks[0] & set(b'ab"{}:, n[]'))
        if not choices:
            return False
        token = self.rng.choice(choices)
        assert all(matcher.accept_token(token) for matcher in self.matchers)
        return True


def check(seed: int, shared: bool = False) -> int:
    """Walk two automata by turns. Returns how many fragments they have."""
    rng = random.Random(seed)
    walked = [Walked(rng, shared) for _ in range(2)]
    for _ in range(14):
        taken = [each.step() for each in walked]
        if not all(taken):
            break
    return sum(int(each.fragments.stats["fragments"]) for each in walked)


@pytest.mark.parametrize("first", range(0, 60, 10))
def test_two_automata_by_turns(first: int) -> None:
    fragments = [check(seed) for seed in range(first, first + 10)]
    assert sum(made > 4 for made in fragments) > 7


def test_automata_that_threads_share() -> None:
    with ThreadPoolExecutor(4) as threads:
        assert all(made > 0 for made in threads.map(lambda seed: check(seed, shared=True), range(500, 520)))


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 6000, 250))
def test_many(seed: int) -> None:
    for each in range(seed, seed + 250):
        check(each)
