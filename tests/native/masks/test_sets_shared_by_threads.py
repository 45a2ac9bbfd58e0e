"""Members in any order and words without repetition, derived by several threads at the same time.

What is left of such members is a set with a number, which all threads share. Masks must be what one thread finds, and
what accepting each token finds.
"""

from __future__ import annotations

import random

from support.running.seeds import few_and_many_seeds, in_ranges

from reference.expressions.random_expressions import random_selection
from tests.automata.pieces.test_unordered import BODIES, random_members
from tests.decoding.token_automata.test_shared_by_threads import a_way, in_threads, masks
from tokenfst import TokenAutomaton, Vocabulary, allocate_token_bitmask, compile, json_schema
from tokenfst.automata.expressions.expression import Expr, concat, literal, repeat, union
from tokenfst.automata.languages.language import Language
from tokenfst.errors import EmptyLanguageError

TOKENS = [b"a", b"b", b",", b"ab", b"ba", b"a,", b",a", b"aab", b",b", b"b,a", b"c", b"aa", b""]
VOCABULARY = Vocabulary(TOKENS, len(TOKENS) - 1)
THREADS = 3
WAYS = 5


def random_part(rng: random.Random, depth: int = 1) -> Expr:
    """Members or a selection, in some a second one around them or beside them."""
    part = random_members(rng, list(BODIES)) if rng.random() < 0.6 else random_selection(rng)
    if depth == 0 or rng.random() < 0.3:
        return part
    other = random_part(rng, depth - 1)
    return rng.choice(
        [
            lambda: concat(part, literal(b","), other),
            lambda: union(part, concat(literal(b"a"), other)),
            lambda: repeat(concat(part, literal(b",")), 0, rng.choice([None, 2])),
        ]
    )()


def accepted(language: Language, way: list[int]) -> list[set[int]]:
    """The slow twin: at each place of a way, every token is tried by an automaton that made no mask."""
    found = []
    matcher = compile(language, VOCABULARY).matcher()
    for place in range(len(way) + 1):
        allowed = set()
        for token in range(len(VOCABULARY)):
            if matcher.accept_token(token):
                allowed.add(token)
                matcher.rollback(1)
        found.append(allowed)
        assert place == len(way) or matcher.accept_token(way[place])
    return found


def as_masks(rows: list[set[int]]) -> bytes:
    bitmask = allocate_token_bitmask(len(rows), len(VOCABULARY))
    bitmask[:] = 0
    for row, allowed in zip(bitmask, rows, strict=True):
        for token in allowed:
            row[token // 32] |= 1 << token % 32
    return bitmask.tobytes()


def agree(automaton: TokenAutomaton, ways: list[list[int]], wanted: list[bytes], seed: int) -> None:
    def work(number: int) -> None:
        for k in range(len(ways)):
            way = (k + number // 2) % len(ways)  # two threads go the same way at once
            assert masks(automaton, ways[way]) == wanted[way], (seed, ways[way])

    in_threads([lambda number=number: work(number) for number in range(THREADS)])  # type: ignore[misc]


def check(seed: int) -> None:
    rng = random.Random(seed)
    language = Language(random_part(rng))
    try:
        alone, shared = compile(language, VOCABULARY), compile(language, VOCABULARY)
        alone.matcher()
    except EmptyLanguageError:
        return
    assert shared._native.share()
    ways = [a_way(alone, rng, 8) for _ in range(WAYS)]
    wanted = [as_masks(accepted(language, way)) for way in ways]
    assert [masks(alone, way) for way in ways] == wanted, seed
    agree(shared, ways, wanted, seed)


@few_and_many_seeds(in_ranges(range(60), 1), in_ranges(range(1000, 11_000), 500))
def test_random_sets(seeds: range) -> None:
    for seed in seeds:
        check(seed)


def test_sets_of_many_members() -> None:
    """More members than one word of bits has, and more sets than a table has room for when it is shared."""
    names = [f"{k:02d}" for k in range(70)]
    pieces = [f'"{name}": 1, ' for name in names]
    vocabulary = Vocabulary(
        [*(bytes([byte]) for byte in range(256)), *map(str.encode, pieces), b""], 256 + len(pieces)
    )
    schema = {
        "type": "object",
        "properties": {name: {"const": 1} for name in names},
        "required": names[:3],
        "additionalProperties": False,
    }

    def made() -> TokenAutomaton:
        return compile(json_schema(schema, property_order="any"), vocabulary)

    alone, shared, rng = made(), made(), random.Random(5)
    assert shared._native.share()
    ways = [a_way(alone, rng, 150) for _ in range(8)]
    agree(shared, ways, [masks(alone, way) for way in ways], 0)
