"""Words and concatenations that get no nodes of their own (native/programs/sequences.hpp), against sets of words.

An expression is a graph, and its parts are shared. Each is a finite set of words as well, computed part by part.
"""

from __future__ import annotations

import random
import time

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenfst
from tokenfst import Vocabulary, _native
from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    Expr,
    call,
    concat,
    intersect,
    literal,
    optional,
    repeat,
    union,
)
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.language import Language

_LONGEST = 9
_WORDS = 300


def graph(rng: random.Random) -> tuple[Expr, frozenset[bytes]]:
    """A random expression over "ab" whose parts are used again and again, and its words."""
    known: list[tuple[Expr, frozenset[bytes]]] = [(EPSILON, frozenset([b""])), (EMPTY, frozenset())]
    for _ in range(3):
        word = bytes(rng.choices(b"ab", k=rng.randint(1, 3)))
        known.append((literal(word), frozenset([word])))
    for _ in range(rng.randint(3, 14)):
        parts = rng.choices(known[rng.choice((0, 2)) :], k=rng.randint(2, 4))
        kind = rng.random()
        if kind < 0.6:
            words = frozenset([b""])
            for _, each in parts:
                words = frozenset(one + other for one in words for other in each)
            made = concat(*(expr for expr, _ in parts))
        elif kind < 0.85:
            words = frozenset().union(*(each for _, each in parts))
            made = union(*(expr for expr, _ in parts))
        elif kind < 0.95:
            made, words = optional(parts[0][0]), parts[0][1] | {b""}
        else:
            made, words = intersect(parts[0][0], parts[1][0]), parts[0][1] & parts[1][1]
        if len(words) <= _WORDS and max(map(len, words), default=0) <= _LONGEST:
            known.append((made, words))
    return known[-1]


def near(rng: random.Random, words: frozenset[bytes]) -> set[bytes]:
    """Some of the words, and texts that are nearly words."""
    chosen = sorted(words)
    found = set(rng.sample(chosen, min(len(chosen), 20))) | {b"", b"a", b"b"}
    for word in list(found):
        at = rng.randint(0, len(word))
        found |= {word[:at] + b"a" + word[at:], word[:at], word[at:] + b"b"}
    return found


@settings(deadline=None, max_examples=200)
@given(st.integers(0, 2**32))
def test_words_are_those_of_the_parts(seed: int) -> None:
    rng = random.Random(seed)
    made, words = graph(rng)
    language = Language(made)
    for text in near(rng, words):
        assert language.accepts(text) == (text in words), (text, sorted(words))
    assert language.is_empty() == (not words)


@settings(deadline=None, max_examples=60)
@given(st.integers(0, 2**32))
def test_masks_lead_to_the_words(seed: int) -> None:
    rng = random.Random(seed)
    made, words = graph(rng)
    if not words:
        return
    tokens = [b"a", b"b", b"ab", b"ba", b"aab", b"bb", b""]
    automaton = tokenfst.compile(Language(made), Vocabulary(tokens, [6]))
    bitmask = tokenfst.allocate_token_bitmask(1, len(tokens))
    waiting = [((), b"")]
    while waiting:
        path, text = waiting.pop()
        matcher = automaton.matcher()
        assert all(matcher.accept_token(token) for token in path)
        matcher.fill_next_token_bitmask(bitmask, 0)
        allowed = {token for token in range(7) if int(np.asarray(bitmask)[0, 0]) >> token & 1}
        wanted = {k for k in range(6) if any(word.startswith(text + tokens[k]) for word in words)}
        assert allowed == wanted | ({6} if text in words else set())
        if len(path) < 3:
            waiting += [((*path, token), text + tokens[token]) for token in wanted]


def test_rules_that_call_each_other() -> None:
    """Words before calls, and bodies that are words."""
    name = literal(b"ab")
    rules = {
        "start": concat(name, call("inner"), name),
        "inner": union(concat(name, literal(b"("), call("inner"), literal(b")")), literal(b"x")),
    }
    grammar = Grammar.from_rules(rules, "start")
    assert grammar.accepts(b"abxab")
    assert grammar.accepts(b"abab(ab(x))ab")
    assert not grammar.accepts(b"abab(x)b")


@pytest.mark.skipif(
    hasattr(_native, "stress"), reason="it has five seconds, which a core for sanitizers does not keep"
)
@pytest.mark.parametrize("first", [repeat(literal(b"a")), optional(literal(b"ab"))])
def test_doubled_parts_are_not_written_out(first: Expr) -> None:
    """A part that is doubled 24 times: written out it has 16 million parts."""
    made = first
    for _ in range(24 if first.op.name == "REPEAT" else 10):
        made = concat(made, made)
    begin = time.process_time()
    assert Language(made).accepts(b"ab" * 3) == (first.op.name != "REPEAT")
    assert Language(made).accepts(b"aaa") == (first.op.name == "REPEAT")
    assert time.process_time() - begin < 5
