"""Budgets of time hold in every native call, and calls that work at length let other threads go on."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import random
import re
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from support.worlds.exclusion import TOKENS, VOCABULARY

import tokenfst
from tokenfst import Budget, Vocabulary, allocate_token_bitmask, fill_bitmasks, json_schema, regex
from tokenfst.errors import ArgumentTypeError, ArgumentValueError, BudgetExceeded, TokenfstError
from tokenfst.server.limits import Limits

BYTES = Vocabulary([bytes([b]) for b in range(256)] + [b""], eos_token_id=256)
SECONDS = 0.5
SLACK = 0.5
"""Of CPU time, beyond the budget: what a call may take to begin, to unwind, and on a machine with other work."""
PATTERNS = {
    "type": "string",
    "allOf": [{"pattern": f"{chr(97 + i % 16)}.{{{i}}}x"} for i in range(30)],
}
"""Each letter that is read makes another state: their number is without any bound that matters."""


def random_words() -> Vocabulary:
    draw = random.Random(0)
    words = dict.fromkeys(bytes(draw.choices(b"abcdefghijklmnop", k=12)) for _ in range(3_000))
    return Vocabulary([*(bytes([b]) for b in range(256)), *words, b""], eos_token_id=256 + len(words))


def stopped_in_time(call: Callable[[], object]) -> None:
    begun = time.process_time()
    with pytest.raises(BudgetExceeded) as caught:
        call()
    assert caught.value.resource == "seconds"
    assert time.process_time() - begun < SECONDS + SLACK


def nested_integers(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "integer"}
    for _ in range(levels):
        schema = {"type": "object", "properties": {"a": schema, "b": schema}, "required": ["a", "b"]}
    return schema


# --- seconds ------------------------------------------------------------------------------------------


def test_the_states_of_one_mask_share_a_clock() -> None:
    vocabulary = random_words()
    automaton = tokenfst.compile(json_schema(PATTERNS), vocabulary, Budget(seconds=SECONDS))
    matcher = automaton.matcher()
    bitmask = allocate_token_bitmask(1, len(vocabulary))
    matcher.fill_next_token_bitmask(bitmask, 0)
    known, first = np.array(bitmask), matcher.state
    assert matcher.accept_token(ord('"'))
    stopped_in_time(lambda: matcher.fill_next_token_bitmask(bitmask, 0))
    # What was known before still is, and so is where the matcher stands.
    assert matcher.tokens == [ord('"')] and matcher.accept_token(ord("a"))
    matcher.rollback(2)
    assert matcher.state == first
    matcher.fill_next_token_bitmask(bitmask, 0)
    assert (np.array(bitmask) == known).all()


def test_threads_that_help_share_the_clock() -> None:
    vocabulary = random_words()
    automaton = tokenfst.compile(json_schema(PATTERNS), vocabulary, Budget(seconds=SECONDS))
    matchers = [automaton.matcher() for _ in range(2)]
    for matcher in matchers:
        matcher.accept_tokens([ord('"'), ord("a")])
    rows = allocate_token_bitmask(2, len(vocabulary))
    begun = time.process_time()
    with pytest.raises(BudgetExceeded, match="seconds"):
        fill_bitmasks(matchers, rows, threads=2)
    assert time.process_time() - begun < 2 * (SECONDS + SLACK)


def test_automata_that_multiply() -> None:
    language = regex(b"(?s:.*)a(?s:.{24})") & regex(b"(?s:.*)b(?s:.{23})") & regex(b"(?s:(..){9,})")
    draw = random.Random(1)
    words = dict.fromkeys(bytes(draw.choices(b"abcd", k=20)) for _ in range(20_000))
    vocabulary = Vocabulary([*(bytes([b]) for b in range(256)), *words, b""], eos_token_id=256 + len(words))
    stopped_in_time(lambda: tokenfst.compile(language, vocabulary, Budget(seconds=SECONDS)).expand())


def test_distances() -> None:
    matcher = tokenfst.compile(json_schema(PATTERNS), BYTES, Budget(seconds=SECONDS)).matcher()
    assert matcher.accept_token(ord('"'))
    stopped_in_time(matcher.distance)
    assert matcher.accept_token(ord("a")) and matcher.num_tokens == 2


@pytest.mark.parametrize("depth", [0, 1, 100, 8_000])
def test_completions_take_time_linear_in_their_length(depth: int) -> None:
    """10,000 brackets took 12 s when each byte that was tried ran the text before it anew."""
    matcher = tokenfst.compile(tokenfst.json_value(), BYTES).matcher()
    assert matcher.accept_tokens([ord("[")] * depth)
    begun = time.process_time()
    assert matcher.distance() == max(depth, 1)
    assert time.process_time() - begun < 3
    assert matcher.num_tokens == depth


def test_a_budget_of_tokens_that_nothing_fits_is_refused_soon() -> None:
    automaton = tokenfst.compile(json_schema(nested_integers(13)), BYTES)
    begun = time.process_time()
    with pytest.raises(TokenfstError):
        automaton.matcher(max_new_tokens=500)
    assert time.process_time() - begun < 6


# --- other threads ------------------------------------------------------------------------------------


def steps_of_another_thread(call: Callable[[], object]) -> tuple[int, float]:
    """How many times another thread woke up while a call ran, and the CPU time of the call."""
    steps, over = 0, threading.Event()

    def count() -> None:
        nonlocal steps
        while not over.wait(0.001):
            steps += 1

    thread = threading.Thread(target=count)
    thread.start()
    begun, before = time.thread_time(), steps
    with contextlib.suppress(TokenfstError):
        call()
    during, took = steps - before, time.thread_time() - begun
    over.set()
    thread.join()
    return during, took


def forced() -> Callable[[], object]:
    matcher = tokenfst.compile(regex("a?x{400000}y"), BYTES).matcher()
    matcher.accept_token(ord("x"))
    return matcher.forced_bytes


def jump_forward() -> Callable[[], object]:
    matcher = tokenfst.compile(regex("a?x{400000}y"), BYTES).matcher()
    matcher.accept_token(ord("x"))
    return matcher.find_jump_forward_string


def next_bytes() -> Callable[[], object]:
    language = json_schema(PATTERNS)
    return lambda: language.next_bytes(b'"abcxdaxbcdefghijklmnopabxcdaxxbcdefghijabcdaxxbbcxdaxbcdefghijkl')


def budget_of_tokens() -> Callable[[], object]:
    matcher = tokenfst.compile(json_schema(nested_integers(13)), BYTES).matcher()
    return lambda: setattr(matcher, "max_tokens_left", 500)


def budget_of_patterns() -> Callable[[], object]:
    matcher = tokenfst.compile(json_schema(PATTERNS), BYTES, Budget(seconds=1)).matcher()
    matcher.accept_token(ord('"'))
    return lambda: setattr(matcher, "max_tokens_left", 5_000)


def one_token() -> Callable[[], object]:
    long = bytes(random.Random(2).choices(b"abcdefghijklmnop", k=30_000))
    vocabulary = Vocabulary([*(bytes([b]) for b in range(256)), long, b""], eos_token_id=257)
    matcher = tokenfst.compile(json_schema(PATTERNS), vocabulary, Budget(seconds=1)).matcher()
    matcher.accept_token(ord('"'))
    return lambda: matcher.accept_token(256)


@pytest.mark.parametrize(
    "made", [forced, jump_forward, next_bytes, budget_of_tokens, budget_of_patterns, one_token]
)
def test_others_go_on(made: Callable[[], Callable[[], object]]) -> None:
    steps, took = steps_of_another_thread(made())
    # At least one for each 50 ms: a thread that keeps the lock lets none go on.
    assert took > 0.02 and steps > took / 0.05, (steps, took)


# --- masks under budgets of tokens --------------------------------------------------------------------


@pytest.mark.parametrize("longest", [3, 40])
def test_masks_with_room_to_spare_are_those_without_a_budget(longest: int) -> None:
    """Strings of bounded length that must differ, and begin alike: only those that stop in such one are looked at."""
    items = {"type": "string", "maxLength": longest, "pattern": "^[ab]*$"}
    automaton = tokenfst.compile(
        json_schema({"type": "array", "items": items, "uniqueItems": True, "maxItems": 12}), VOCABULARY
    )
    free, bound = allocate_token_bitmask(1, len(VOCABULARY)), allocate_token_bitmask(1, len(VOCABULARY))
    draw = random.Random(longest)
    typed = [TOKENS.index(token) for token in (b'"', b"a", b"b", b",", b"[", b"aa", b'","', b'"a"')]
    for _ in range(12):
        one, other = automaton.matcher(), automaton.matcher(max_new_tokens=100_000)
        for _ in range(60):
            one.fill_next_token_bitmask(free, 0)
            other.fill_next_token_bitmask(bound, 0)
            assert (np.asarray(free) == np.asarray(bound)).all(), one.tokens
            ways = [token for token in typed if np.asarray(free)[0, token >> 5] >> (token & 31) & 1]
            if not ways:
                break
            token = draw.choice(ways)
            assert one.accept_token(token) and other.accept_token(token)


def test_masks_of_strings_that_begin_alike_are_cheap(tekken: Vocabulary) -> None:
    items = {"type": "string", "maxLength": 2000}
    automaton = tokenfst.compile(json_schema({"type": "array", "items": items, "uniqueItems": True}), tekken)
    text = ",".join(f'"lorem ipsum dolor sit amet lorem ipsum {number}"' for number in range(6))
    tokens = tekken.encode_greedy(f"[{text}".encode())
    bitmask = allocate_token_bitmask(1, len(tekken))
    for _ in range(2):
        matcher, spent = automaton.matcher(max_new_tokens=12_000), 0.0
        for token in tokens:
            begun = time.process_time()
            matcher.fill_next_token_bitmask(bitmask, 0)
            spent += time.process_time() - begun
            assert matcher.accept_token(token)
    assert spent / len(tokens) < 0.004


# --- contradictions -----------------------------------------------------------------------------------

NAMES = ["NEW", "ON_APPROVAL", "ON_SIGNING", "ON_MODIFICATION", "EXECUTED", "DEPRECATED", "REJECTED"]


def test_patterns_that_exclude_each_other_make_few_states() -> None:
    """One mask went through 130,000 states to find six dead ends: the product of all seven patterns' automata."""
    schema = {"type": "string", "oneOf": [{"pattern": name} for name in NAMES]}
    automaton = tokenfst.compile(json_schema(schema), BYTES)
    bitmask = allocate_token_bitmask(1, len(BYTES))
    matcher = automaton.matcher()
    assert matcher.accept_tokens(list(b'"a NEW'))
    matcher.fill_next_token_bitmask(bitmask, 0)
    assert automaton._native.stats["states"] < 20_000
    draw = random.Random(4)
    for _ in range(10):
        matcher, text = automaton.matcher(), ""
        assert matcher.accept_token(ord('"'))
        for _ in range(30):
            piece = draw.choice([*NAMES, "N", "ON_", "x", "E"])
            over = False
            for k in range(len(piece)):
                found = sum(re.search(name, text + piece[: k + 1]) is not None for name in NAMES)
                assert matcher.accept_token(ord(piece[k])) == (found <= 1), text + piece
                over = over or found > 1
                if over:
                    break
            if over:
                break
            text += piece
            matcher.fill_next_token_bitmask(bitmask, 0)
            closes = bool(np.asarray(bitmask)[0, ord('"') >> 5] >> (ord('"') & 31) & 1)
            assert closes == (sum(name in text for name in NAMES) == 1), text


# --- fragments ----------------------------------------------------------------------------------------


def test_fragments_go_one_by_one() -> None:
    draw = random.Random(5)
    letters = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
    words = dict.fromkeys("".join(draw.choices(letters, k=draw.randint(2, 5))).encode() for _ in range(5_000))
    tokens = [*(bytes([b]) for b in range(256)), *words, b""]
    vocabulary, fresh = (Vocabulary(tokens, eos_token_id=len(tokens) - 1) for _ in range(2))
    bitmask, twin = (allocate_token_bitmask(1, len(tokens)) for _ in range(2))
    limit = vocabulary.native.memory + 60_000
    vocabulary.native.limit_fragments(60_000)
    held, kept, least_kept = vocabulary.native.memory, 0, 0
    for round_ in range(150):
        pattern = f"[{''.join(sorted(draw.sample(letters, 45)))}]*;"
        for each, mask in ((vocabulary, bitmask), (fresh, twin)):
            tokenfst.compile(regex(pattern), each).matcher().fill_next_token_bitmask(mask, 0)
        assert (np.asarray(bitmask) == np.asarray(twin)).all()
        before, kept = kept, vocabulary.native.num_fragments
        assert kept >= before - 15
        held = max(held, vocabulary.native.memory)
        least_kept = kept if round_ == 50 else min(least_kept, kept) if round_ > 50 else 0
    assert fresh.native.num_fragments > 2 * kept and least_kept > 5
    assert held < limit + vocabulary.native.trie_nodes * 200 + 100_000


# --- the budget itself --------------------------------------------------------------------------------


def test_defaults() -> None:
    assert Budget() == Budget(states=1_000_000, bytes=1 << 30, seconds=30, positions=10_000_000)
    assert Budget(seconds=5) == dataclasses.replace(Budget(), seconds=5)


def test_no_bounds() -> None:
    budget = Budget.unlimited()
    assert budget.seconds == math.inf and budget.states == 2**31 - 2
    language = regex("[a-c]{1,200}(ab|c)*").with_budget(budget)
    assert language.accepts("abc" * 20) and language.determinize().num_states > 200
    automaton = tokenfst.compile(language, BYTES, budget).expand()
    assert automaton.matcher(max_new_tokens=3).accept_tokens([ord("a"), ord("b")])
    grammar = tokenfst.gbnf('root ::= "(" root ")" | "a"{1,70}', budget)
    assert tokenfst.compile(grammar, BYTES, budget).matcher().distance() == 1
    assert json_schema({"type": "string", "pattern": "^a+$"}, budget=budget).accepts(b'"aaa"')


def test_bounds_that_are_none_are_errors_of_this_package() -> None:
    for kind in (Budget, Limits):
        for seconds in (0, -1.0, math.nan):
            with pytest.raises(ArgumentValueError, match=f"{kind.__name__}: seconds must be"):
                kind(seconds=seconds)
        with pytest.raises(ArgumentValueError, match=f"{kind.__name__}: states must be"):
            kind(states=0)
        with pytest.raises(ArgumentTypeError, match=f"{kind.__name__}: seconds must be"):
            kind(seconds="1")
