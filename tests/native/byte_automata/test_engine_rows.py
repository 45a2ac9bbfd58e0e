"""Rows of the byte automaton are made entry by entry, as walks come to them: whatever was walked before, and by how
many threads at once, the automaton is the same.
"""

from __future__ import annotations

import random
import threading

import numpy as np
import pytest

from reference.expressions.expressions import matches
from reference.expressions.random_expressions import LETTERS, random_expression
from reference.expressions.random_expressions_wide import Generator
from tokenfst import _native
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.expressions.program import linearize
from tokenfst.errors import BudgetExceeded


def automaton(expr: Expr, states: int = 100_000) -> _native.ByteAutomaton:
    return _native.ByteAutomaton(linearize(expr).native(), states, 1 << 30, 20.0)


def random_words(rng: random.Random, letters: bytes, count: int) -> list[bytes]:
    return [bytes(rng.choice(letters) for _ in range(rng.randint(0, 5))) for _ in range(count)]


def expression_of(rng: random.Random) -> tuple[Expr, bytes]:
    if rng.random() < 0.5:
        return random_expression(rng, rng.randint(2, 3)), LETTERS
    generator = Generator(rng)
    return generator.expression(rng.randint(2, 3)), generator.letters


def check_walked_first(rng: random.Random) -> bool:
    expr, letters = expression_of(rng)
    try:
        walked, fresh = automaton(expr, 300), automaton(expr, 300)
        classes, table, accepting, start = fresh.determinize()
    except BudgetExceeded:
        return False
    words = random_words(rng, letters + b"\x00q\xc3\xff", 20)
    accepted = [walked.accepts(word) for word in words]
    assert accepted == [matches(expr, word) for word in words]
    found_classes, found_table, found_accepting, found_start = walked.determinize()
    assert np.array_equal(classes, found_classes) and np.array_equal(table, found_table)
    assert np.array_equal(accepting, found_accepting) and start == found_start
    assert accepted == [walked.accepts(word) for word in words]
    return True


@pytest.mark.parametrize("seed", range(4))
def test_what_was_walked_first_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    assert sum(check_walked_first(rng) for _ in range(40)) > 25


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1050))
def test_whatever_was_walked_first_changes_nothing(seed: int) -> None:
    rng = random.Random(seed)
    assert sum(check_walked_first(rng) for _ in range(400)) > 300


def test_only_states_that_are_walked_are_made() -> None:
    """Each of 200 bytes leads to a state of its own, under a union, an intersection and a complement."""
    ways = [ex.literal(bytes([first, 1, first])) for first in range(200)]
    other = ex.complement(ex.literal(bytes([7, 1, 7])))
    for expr in (
        ex.union(*ways[:16]),
        ex.intersect(ex.union(*ways), other),
        ex.concat(ex.optional(ways[9]), ways[3]),
    ):
        built = automaton(expr)
        before = built.num_states
        assert built.accepts(bytes([3, 1, 3]))
        assert built.num_states <= before + 3
    assert not automaton(ex.intersect(ex.union(*ways), other)).accepts(bytes([7, 1, 7]))


def test_an_entry_that_leads_nowhere_is_dead_before_anyone_steps_on_it() -> None:
    """After ``a`` the intersection is empty, which only a search tells."""
    even, odd = ex.repeat(ex.literal(b"xx")), ex.concat(ex.literal(b"x"), ex.repeat(ex.literal(b"xx")))
    expr = ex.union(ex.concat(ex.literal(b"a"), ex.intersect(even, odd)), ex.literal(b"bx"))
    built = automaton(expr)
    assert built.viable_prefix(b"ax") == 0 and built.viable_prefix(b"bx") == 2
    assert built.next_bytes(b"") == (b"b", False)


def test_threads_that_walk_at_once_find_the_same() -> None:
    rng = random.Random(5)
    for _ in range(12):
        expr, letters = expression_of(rng)
        shared = automaton(expr)
        words = random_words(rng, letters, 60)
        expected = [matches(expr, word) for word in words]
        results: list[list[bool]] = [[] for _ in range(4)]
        barrier = threading.Barrier(len(results))

        def work(
            number: int,
            shared: _native.ByteAutomaton = shared,
            words: list[bytes] = words,
            results: list[list[bool]] = results,
            barrier: threading.Barrier = barrier,
        ) -> None:
            order = list(range(len(words)))
            random.Random(number).shuffle(order)
            barrier.wait()
            found = {k: shared.accepts(words[k]) for k in order}
            results[number] = [found[k] for k in range(len(words))]

        threads = [threading.Thread(target=work, args=(n,)) for n in range(len(results))]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert results == [expected] * len(results)
