"""Random calls from several threads over one automaton, made inside the core: Python's own lock would keep them apart.

Only a core built for ``make sanitize`` has the calls (native/bindings/matching/stress.hpp). Threads 2k and 2k + 1 make
the same ones, and a fresh automaton in one thread makes them again: all three must see the same masks and answers.
"""

from __future__ import annotations

import random

import pytest

from reference.grammars.random_grammars import random_grammar
from reference.tokens.small_automata import small_automaton, small_vocabulary
from tokenfst import Budget, Vocabulary, _native, bundled_grammar, compile, json_schema, regex
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import EmptyLanguageError

pytestmark = [
    pytest.mark.skipif(not hasattr(_native, "stress"), reason="the core is not built for `make sanitize`"),
    pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning"),
]
THREADS = 4
PIECES = [
    *(bytes([byte]) for byte in range(256)),
    b'{"',
    b'":',
    b'", "',
    b"true",
    b"null",
    b"12",
    b"\\u00",
    b"ab",
    b"aba",
]
VOCABULARY = Vocabulary([*PIECES, b""], len(PIECES))
ITEMS = {"type": "array", "items": {"type": "string", "maxLength": 3}, "uniqueItems": True}
MEMBERS = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"enum": ["x", 1, None]}},
    "required": ["b"],
}
MADE = {
    "regex": lambda: compile(regex(r"(?:a|b)*abb|\d{2,9}"), VOCABULARY),
    "schema": lambda: compile(json_schema(MEMBERS), VOCABULARY),
    "members in any order": lambda: compile(json_schema(MEMBERS, property_order="any"), VOCABULARY),
    "unique items": lambda: compile(json_schema(ITEMS), VOCABULARY),
    "lark": lambda: compile(bundled_grammar("python_expression"), VOCABULARY),
    "a small budget": lambda: compile(regex(r"[ab]*a[ab]{9}"), VOCABULARY, budget=Budget(states=300)),
}


def agree(make: object, steps: int, seed: int) -> None:
    stress, automaton, twin = _native.stress, make(), make()
    seen = stress(automaton._native, THREADS, steps, seed)
    for pair in range(THREADS // 2):
        first, second = seen[2 * pair : 2 * pair + 2]
        (alone,) = stress(twin._native, 1, steps, seed + pair)
        # 0: a budget ran out, which depends on what others asked for.
        assert len({first, second, alone} - {0}) <= 1


@pytest.mark.parametrize("name", MADE)
def test_threads_see_what_one_thread_sees(name: str) -> None:
    agree(MADE[name], steps=60, seed=1)


@pytest.mark.parametrize("seed", range(12))
def test_threads_over_small_random_automata(seed: int) -> None:
    def made() -> TokenAutomaton:
        rng = random.Random(seed)
        return small_automaton(rng)

    try:
        agree(made, steps=100, seed=seed)
    except EmptyLanguageError:
        pytest.skip("no text can be spelled")


@pytest.mark.parametrize("seed", range(12))
def test_threads_over_small_random_grammars(seed: int) -> None:
    def made() -> TokenAutomaton:
        rng = random.Random(seed)
        return compile(random_grammar(rng), small_vocabulary(rng))

    try:
        agree(made, steps=100, seed=seed)
    except EmptyLanguageError:
        pytest.skip("no text can be spelled")
