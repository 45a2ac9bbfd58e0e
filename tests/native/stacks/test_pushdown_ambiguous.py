"""Ambiguous, cyclic and nullable grammars: masks against Earley's chart, and what they cost, counted and not timed.

The grammars are the worst for shared stacks: every rule is a few alternatives of very few symbols, so that rules derive
themselves, vanish, and read a text in exponentially many ways.
"""

from __future__ import annotations

import random
import time
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from reference.grammars.pushdown import START, TokenModel
from reference.grammars.random_grammars_wide import Patience
from tests.support.worlds.pushdown_worlds import step
from tests.support.worlds.token_worlds import allowed
from tokenfst import Budget, TokenAutomaton, Vocabulary, compile
from tokenfst.automata.expressions.expression import EPSILON, Expr, call, concat, literal, union
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.errors import BudgetExceeded

EVERY_BYTE = [bytes([byte]) for byte in range(256)]
VOCABULARY = Vocabulary([*EVERY_BYTE, b""], 256)
LONGER = Vocabulary([*EVERY_BYTE, b"aa", b"ab", b"ba", b"bbb", b"abab", b"aaaaa", b""], 262)


def ambiguous_grammar(rng: random.Random) -> Grammar:
    """One to three rules of two to four alternatives, each of up to three symbols; one of them at least is a letter."""
    names = ["s", "t", "u"][: rng.randint(1, 3)]

    def alternative() -> Expr:
        symbols = [call(name) for name in names] * 2 + [literal(b"a"), literal(b"b")]
        return concat(EPSILON, *rng.choices(symbols, k=rng.choice([0, 1, 1, 2, 2, 2, 3])))

    rules = {
        name: union(*(alternative() for _ in range(rng.randint(1, 3))), literal(rng.choice([b"a", b"b"])))
        for name in names
    }
    return Grammar.from_rules(rules, "s")


def check(rng: random.Random, vocabulary: Vocabulary, steps: int) -> None:
    grammar, size = ambiguous_grammar(rng), len(vocabulary)
    model = TokenModel(grammar, vocabulary)
    matcher, place = compile(grammar, vocabulary, Budget(states=30_000, seconds=20)).matcher(), START
    for _ in range(steps):
        wanted = model.allowed(place)
        assert allowed(matcher, size) == wanted, (grammar.rules, place)
        following = step(rng, matcher, model, place, wanted)
        if following is None:
            break
        place = following


@given(st.integers(0, 2**32))
@settings(max_examples=60, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_masks_of_ambiguous_grammars(seed: int) -> None:
    with Patience(1)():
        rng = random.Random(seed)
        check(rng, rng.choice([VOCABULARY, LONGER]), 12)


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(100))
def test_masks_of_ambiguous_grammars_at_length(seed: int) -> None:
    rng, patience = random.Random(9000 + seed), Patience(2)
    for _ in range(40):
        with patience():
            check(rng, rng.choice([VOCABULARY, LONGER]), 40)


# --- costs --------------------------------------------------------------------------------------------

VERY_AMBIGUOUS = {
    "counted": 'root ::= y y\ny ::= "a" | root{1,3}',
    "threes": 'root ::= root root root | root root | "a"',
    "nullable": 'root ::= "a" root? root?',
    "cyclic": 'root ::= x\nx ::= x* | "a" x "d" | "a" x',
    "nested": 'root ::= "a" root root root? | "a"',
}


@pytest.mark.parametrize("name", VERY_AMBIGUOUS)
def test_costs_of_ambiguity(name: str) -> None:
    """States, frames and masks are as many as the grammar makes, however long the text; stacks grow with its square."""
    automaton = compile(gbnf(VERY_AMBIGUOUS[name]), VOCABULARY)
    matcher, made, memory = automaton.matcher(), [], []
    for letter in range(1, 121):
        assert 97 in allowed(matcher, 257)
        assert matcher.accept_token(97)
        if letter in (30, 60, 120):
            stats = automaton.stats()
            made.append((stats.states, stats.frames, stats.leaves))
            memory.append(matcher.memory)
    assert made[0] == made[1] == made[2]
    assert made[0][0] < 100 and made[0][1] < 100
    assert memory[2] < 5 * memory[1] + 4096


def kinds_of_blocks(kinds: int) -> Grammar:
    """Nested blocks whose kind is told at their end."""
    rules = [f'r{k} ::= "(" r{k} ")k{k};" | "k{k};"' for k in range(kinds)]
    return gbnf("\n".join(["root ::= " + " | ".join(f"r{k}" for k in range(kinds)), *rules]))


def test_stacks_at_once_have_no_limit() -> None:
    matcher = compile(kinds_of_blocks(300), VOCABULARY).matcher()
    assert matcher.accept_tokens(list(b"(((k27"))
    assert allowed(matcher, 257) == set(b"0123456789;")
    assert matcher.accept_tokens(list(b"0;)k270;)k270;)")) and allowed(matcher, 257) == set(b"k")
    assert matcher.accept_tokens(list(b"k270;")) and matcher.is_accepting()
    assert not matcher.accept_token(ord(")"))


@pytest.mark.parametrize(
    "text", ['root ::= "a" | root "+" root | "(" root ")"', 'root ::= "cc" | "ab" | root "c" root | "a"']
)
def test_what_only_the_stack_can_tell_is_expanded(text: str, tmp_path: Path) -> None:
    """A step there puts a frame on the stack or on nothing, and which it is depends on what lies below."""
    grammar = gbnf(text)
    assert grammar.is_deterministic()
    lazy = compile(grammar, LONGER, deterministic=True)
    lazy.save(tmp_path / "saved")
    loaded, rng = TokenAutomaton.load(tmp_path / "saved", LONGER), random.Random(text)
    for _ in range(30):
        first, second = lazy.matcher(), loaded.matcher()
        for _ in range(30):
            choices = allowed(first, len(LONGER))
            assert choices == allowed(second, len(LONGER))
            token = rng.choice(sorted(choices))
            assert first.accept_token(token) and second.accept_token(token)
            if first.is_terminated():
                break


@pytest.mark.parametrize("seed", range(2))
def test_deterministic_is_expandable(seed: int) -> None:
    rng, patience, found = random.Random(600 + seed), Patience(2), 0
    for _ in range(60):
        grammar = ambiguous_grammar(rng).with_budget(Budget(states=5_000, seconds=10))
        with patience():
            if grammar.is_deterministic() and not grammar.is_regular():
                compile(grammar, VOCABULARY, Budget(states=5_000, seconds=10), deterministic=True).expand()
                found += 1
    assert found


def test_seconds_are_seen_while_stacks_are_gone_through() -> None:
    """A step over a long ambiguous text looks at as many edges as the square of its length."""
    matcher = compile(gbnf(VERY_AMBIGUOUS["threes"]), VOCABULARY, Budget(seconds=0.3)).matcher()
    assert matcher.accept_tokens([97] * 10)
    begun = time.process_time()
    with pytest.raises(BudgetExceeded):
        matcher.accept_tokens([97] * 4_000)
    assert time.process_time() - begun < 3
    assert matcher.num_tokens == 10 and matcher.accept_tokens([97] * 10)
    assert allowed(matcher, 257) == {97, 256}


@pytest.mark.parametrize("levels", [30, 300])
def test_rules_that_double_each_other_stay_calls(levels: int) -> None:
    """Inlined, they are the product of their copies, and a letter of the text goes through all of them."""
    doubling = "\n".join(f"r{k} ::= r{k + 1} r{k + 1} | r{k + 1}" for k in range(levels))
    automaton = compile(gbnf(f'root ::= r0\n{doubling}\nr{levels} ::= "a"'), VOCABULARY)
    matcher = automaton.matcher()
    for _ in range(6):
        assert matcher.accept_token(97) and matcher.is_accepting()
    assert allowed(matcher, 257) == {97, 256}
    assert automaton.stats().frames <= levels + 1 and automaton.stats().states < 50


def test_words_of_rules_that_double_each_other() -> None:
    levels = [f'r{k} ::= r{k + 1} (r{k + 1} | "c" | r{k + 1} "b") | r{k + 1}' for k in range(9)]
    grammar = gbnf("\n".join(["root ::= r0", *levels, 'r9 ::= "a"']))
    model, rng = TokenModel(grammar, VOCABULARY), random.Random(1)
    for _ in range(5):
        matcher, place = compile(grammar, VOCABULARY).matcher(), START
        for _ in range(8):
            wanted = model.allowed(place)
            assert allowed(matcher, 257) == wanted
            token = rng.choice(sorted(wanted - {256}))
            target = model.after(place, token)
            assert matcher.accept_token(token) and target is not None
            place = target
