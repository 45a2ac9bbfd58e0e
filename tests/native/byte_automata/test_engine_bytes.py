"""The lazily determinized byte automaton against the meaning of expressions."""

from __future__ import annotations

import itertools
import random

import numpy as np
import pytest

from reference.expressions.expressions import matches
from reference.expressions.random_expressions import LETTERS, random_expression
from tokenfst import _native
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.program import linearize
from tokenfst.errors import BudgetExceeded

WORDS = [bytes(word) for n in range(6) for word in itertools.product(LETTERS, repeat=n)]


def automaton(
    expr: ex.Expr, states: int = 100_000, size: int = 1 << 30, seconds: float = 20.0
) -> _native.ByteAutomaton:
    return _native.ByteAutomaton(linearize(expr).native(), states, size, seconds)


def check(seed: int, count: int) -> None:
    rng = random.Random(seed)
    for _ in range(count):
        expr = random_expression(rng, rng.randint(1, 4))
        built = automaton(expr)
        language = {word for word in WORDS if matches(expr, word)}
        assert {word for word in WORDS if built.accepts(word)} == language
        shortest = built.shortest()
        assert (shortest is None) == (built.viable_prefix(b"") == -1)
        if shortest is None:
            assert not language
        else:
            assert matches(expr, shortest)
            assert len(shortest) <= min(map(len, language), default=len(shortest))


@pytest.mark.parametrize("seed", range(6))
def test_random_expressions_mean_what_they_say(seed: int) -> None:
    check(seed, 80)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(1000, 1100))
def test_many_random_expressions(seed: int) -> None:
    check(seed, 300)


@pytest.mark.parametrize("seed", range(4))
def test_every_state_is_live_and_tables_agree_with_walks(seed: int) -> None:
    rng = random.Random(seed)
    for _ in range(60):
        expr = random_expression(rng, 3)
        built = automaton(expr)
        classes, table, accepting, start = built.determinize()
        assert not table[0].any() and not accepting[0]
        live = set(np.flatnonzero(accepting).tolist())
        while True:
            more = {q for q in range(1, len(table)) if q not in live and live & set(table[q].tolist())}
            if not more:
                break
            live |= more
        assert live == set(range(1, len(table)))
        for word in WORDS:
            state = start
            for byte in word:
                state = table[state, classes[byte]]
            assert bool(accepting[state]) == built.accepts(word)


def test_machines_are_trimmed_on_the_way_in() -> None:
    # 1 -a-> 2 (accepting), 1 -b-> 3, 3 -b-> 3: state 3 never accepts.
    classes = np.zeros(256, np.uint8)
    classes[97], classes[98] = 1, 2
    table = np.array([[0, 0, 0], [0, 2, 3], [0, 0, 0], [0, 0, 3]], np.uint32)
    built = automaton(ex.machine(ex.Dfa(classes, table, np.array([False, False, True, False]), 1)))
    assert built.accepts(b"a")
    assert built.viable_prefix(b"b") == 0
    assert built.next_bytes(b"") == (b"a", False)


def test_tempered_dot() -> None:
    dot = ex.byte_set(ex.ALL_BYTES & ~(1 << 10))
    not_foo = ex.complement(ex.concat(ex.literal(b"foo"), ex.UNIVERSE))
    built = automaton(ex.recursive(lambda x: ex.union(ex.EPSILON, ex.intersect(not_foo, ex.concat(dot, x)))))
    assert built.accepts(b"xfofo") and built.accepts(b"")
    assert not built.accepts(b"xfoox") and not built.accepts(b"a\nb")


def test_contradictions_are_empty_though_no_part_is() -> None:
    ab, ba = ex.repeat(ex.literal(b"ab")), ex.repeat(ex.literal(b"ba"))
    assert automaton(ex.intersect(ab, ex.concat(ex.literal(b"a"), ba))).shortest() is None


def test_state_budget_names_the_counted_part() -> None:
    part = ex.repeat(ex.union(ex.literal(b"a"), ex.literal(b"ab")), 5, 2_000_000, source="(a|ab){5,2000000}")
    with pytest.raises(BudgetExceeded, match=r"10,000 states; it grew in \(a\|ab\)\{5,2000000\}") as caught:
        automaton(ex.concat(ex.literal(b"x"), part), states=10_000).determinize()
    assert caught.value.resource == "states"


def test_byte_and_time_budgets() -> None:
    part = ex.repeat(ex.union(ex.literal(b"a"), ex.literal(b"ab")), 5, 2_000_000)
    with pytest.raises(BudgetExceeded, match="bytes"):
        automaton(part, size=1 << 20).determinize()
    with pytest.raises(BudgetExceeded, match="seconds"):
        automaton(part, states=10**9, size=1 << 40, seconds=0.2).determinize()


@pytest.mark.parametrize("size", [int(2**20 * 1.13**k) for k in range(16)])
def test_tables_double_within_the_budget(size: int) -> None:
    """Expressions, their index, states and moves grow by doubling: what that takes is counted before it is taken."""
    any_byte, some = ex.repeat(ex.ANY_BYTE), ex.repeat(ex.ANY_BYTE, 15, 15)
    last = ex.union(*(ex.concat(any_byte, ex.literal(letter), some) for letter in (b"a", b"b")))
    built = automaton(last, states=10**7, size=size, seconds=600)
    with pytest.raises(BudgetExceeded, match="bytes"):
        built.determinize()
    assert size / 2 < built.memory <= size


def test_an_automaton_is_usable_after_its_budget_ran_out() -> None:
    built = automaton(ex.repeat(ex.byte_range(97, 99), 5, 2_000_000), states=100)
    with pytest.raises(BudgetExceeded):
        built.determinize()
    assert built.accepts(b"abcabc") and not built.accepts(b"abc")


def test_deep_nesting_is_refused_not_overflowed() -> None:
    expr = ex.literal(b"a")
    for _ in range(5_000):
        expr = ex.union(ex.concat(ex.complement(expr), ex.literal(b"b")), ex.literal(b"c"))
    with pytest.raises(BudgetExceeded, match="nesting") as refused:
        automaton(expr)
    assert "raise Budget(" not in str(refused.value)


def test_long_common_prefixes_need_no_recursion() -> None:
    word = b"ab" * 20_000
    built = automaton(ex.union(ex.literal(word + b"x"), ex.literal(word + b"y")))
    assert built.accepts(word + b"x") and built.accepts(word + b"y") and not built.accepts(word)
