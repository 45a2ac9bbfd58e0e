"""One automaton under many threads: what is found is shared, and is what one thread finds."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Barrier, Thread
from typing import Any

import numpy as np
import pytest

from reference.grammars.random_grammars import random_grammar
from reference.tokens.small_automata import small_automaton, small_vocabulary
from tests.decoding.artifacts.test_program_artifacts import CLASSES, CONSTRAINTS, SMALL
from tokenfst import (
    Budget,
    TokenAutomaton,
    Vocabulary,
    _native,
    allocate_token_bitmask,
    compile,
    fill_bitmasks,
    regex,
)
from tokenfst.errors import BudgetExceeded, EmptyLanguageError

pytestmark = pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")
THREADS = 4


def in_threads(jobs: Sequence[Callable[[], None]]) -> None:
    """All at once; raises what one of them raised."""
    barrier, raised = Barrier(len(jobs)), list[BaseException]()

    def run(job: Callable[[], None]) -> None:
        barrier.wait()
        try:
            job()
        except BaseException as error:
            raised.append(error)

    threads = [Thread(target=run, args=(job,)) for job in jobs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if raised:
        raise raised[0]


def a_way(automaton: TokenAutomaton, rng: random.Random, length: int) -> list[int]:
    """Tokens that may follow each other, the end token left out."""
    matcher, row, tokens = (
        automaton.matcher(),
        allocate_token_bitmask(1, len(automaton.vocabulary)),
        list[int](),
    )
    while len(tokens) < length:
        matcher.fill_next_token_bitmask(row)
        bits = np.unpackbits(row.view(np.uint8), bitorder="little").nonzero()[0]
        allowed = [int(token) for token in bits if int(token) not in automaton.vocabulary.eos_token_ids]
        if not allowed:
            break
        tokens.append(rng.choice(allowed))
        assert matcher.accept_token(tokens[-1])
    return tokens


def masks(automaton: TokenAutomaton, way: Sequence[int]) -> bytes:
    """Of each place on a way, by one call, which lets other threads go on."""
    nodes = len(way) + 1
    bitmask = allocate_token_bitmask(nodes, len(automaton.vocabulary))
    children = np.array([*range(1, nodes), -1])
    automaton.matcher().traverse_draft_tree(children, np.full(nodes, -1), np.array([0, *way]), bitmask)
    return bitmask.tobytes()


def agree(
    made: Callable[[], TokenAutomaton], seed: int, ways: int = 6, length: int = 12, *, share: bool = False
) -> None:
    """``share``: several threads may derive at the same time from the first on, and not only once they have met."""
    try:
        made().matcher()
    except EmptyLanguageError:
        pytest.skip("no text can be spelled")
    alone, shared, rng = made(), made(), random.Random(seed)
    if share:
        shared._native.share()
    found = [a_way(alone, rng, length) for _ in range(ways)]
    wanted = [masks(alone, way) for way in found]

    def work(number: int) -> None:
        for k in range(ways):
            way = (k + number // 2) % ways  # two threads go the same way at once
            assert masks(shared, found[way]) == wanted[way]

    in_threads([lambda number=number: work(number) for number in range(THREADS)])  # type: ignore[misc]


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_threads_find_what_one_finds(name: str, share: bool) -> None:
    classes = CLASSES if name == "token class" else None
    agree(lambda: compile(CONSTRAINTS[name], SMALL, token_classes=classes), seed=1, share=share)


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_threads_over_random_automata(seed: int, share: bool) -> None:
    agree(lambda: small_automaton(random.Random(seed)), seed, share=share)


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("seed", range(8))
def test_threads_over_random_grammars(seed: int, share: bool) -> None:
    def made() -> TokenAutomaton:
        rng = random.Random(seed)
        return compile(random_grammar(rng), small_vocabulary(rng))

    agree(made, seed, share=share)


@pytest.mark.parametrize("name", CONSTRAINTS)
def test_what_threads_derived_at_the_same_time_is_saved_as_one_thread_would(
    name: str, tmp_path: Path
) -> None:
    """Numbers of states depend on which thread came first; artifacts, with what was learned, do not."""
    classes = CLASSES if name == "token class" else None
    alone, shared = (compile(CONSTRAINTS[name], SMALL, token_classes=classes) for _ in range(2))
    assert shared._native.share()
    ways = [a_way(alone, random.Random(seed), 8) for seed in range(4)]
    for way in ways:
        masks(alone, way)
    in_threads([lambda way=way: masks(shared, way) for way in ways + ways[::-1]])  # type: ignore[misc]
    saved = []
    for automaton, file in ((alone, "alone"), (shared, "shared")):
        path = tmp_path / f"{file}.safetensors"
        automaton.save(path, expand=False, learned=True)
        again = TokenAutomaton.load(path, SMALL)
        assert [masks(again, way) for way in ways] == [masks(alone, way) for way in ways]
        assert again._native.stats["masks_composed"] == 0
        automaton.save(path, expand=False)
        saved.append(path.read_bytes())
    assert saved[0] == saved[1]


def test_threads_on_one_way_agree_on_every_state() -> None:
    """All derive the same thousands of rows, entries and states at the same time: each is the first one's for all."""
    text = "".join(f"{word}{k % 7}," for k in range(300) for word in ("ab", "ba"))
    way = SMALL.encode_greedy(text.encode())
    alone, shared = (compile(regex(r"((ab|ba)[0-6],){1,700}"), SMALL) for _ in range(2))
    assert shared._native.share()
    wanted, found = masks(alone, way), list[bytes]()
    assert alone._native.stats["states"] > 2_000
    in_threads([lambda: found.append(masks(shared, way))] * THREADS)
    assert found == [wanted] * THREADS


def test_memory_of_what_several_threads_derive_is_bounded() -> None:
    """Each thread goes other ways, until all of them together have used the budget up."""
    automaton = compile(regex(r"(a|b)*a(a|b){30}"), SMALL, budget=Budget(bytes=2_000_000))
    assert automaton._native.share()
    raised = []

    def work(seed: int) -> None:
        matcher, rng = automaton.matcher(), random.Random(seed)
        row = allocate_token_bitmask(1, len(SMALL))
        try:
            for _ in range(20_000):
                assert matcher.accept_tokens([SMALL.encode_greedy(rng.choice([b"a", b"b"]))[0]])
                matcher.fill_next_token_bitmask(row)
        except BudgetExceeded as error:
            raised.append(error.resource)

    in_threads([lambda seed=seed: work(seed) for seed in range(THREADS)])  # type: ignore[misc]
    assert raised == ["bytes"] * THREADS
    assert automaton._native.memory < 4_000_000


def test_a_mask_that_all_want_is_composed_once() -> None:
    automaton = compile(regex(r"[a-z]+(, [a-z ]{3,40})*"), SMALL)
    jobs: list[Callable[[], None]] = [automaton.matcher().forced_tokens for _ in range(8)]
    in_threads(jobs)
    assert automaton._native.stats["masks_composed"] == 1


def test_a_budget_that_runs_out_leaves_the_others_whole() -> None:
    """Whoever exceeds it raises, whoever asks next raises again, and what is known stays."""
    automaton = compile(regex(r"(a|b)*a(a|b){12}"), SMALL, budget=Budget(states=60))
    row = allocate_token_bitmask(1, len(SMALL))
    automaton.matcher().fill_next_token_bitmask(row)
    raised = []

    def work() -> None:
        matcher, rng = automaton.matcher(), random.Random(len(raised))
        try:
            for _ in range(200):
                assert matcher.accept_tokens([SMALL.encode_greedy(rng.choice([b"a", b"b"]))[0]])
                matcher.fill_next_token_bitmask(row.copy())
        except BudgetExceeded as error:
            raised.append(error.resource)

    in_threads([work] * THREADS)
    assert raised == ["states"] * THREADS
    again = allocate_token_bitmask(1, len(SMALL))
    automaton.matcher().fill_next_token_bitmask(again)
    assert np.array_equal(row, again)


def test_one_thread_never_waits() -> None:
    _native.lock_waits()
    automaton = compile(CONSTRAINTS["schema"], SMALL)
    masks(automaton, a_way(automaton, random.Random(1), 20))
    assert _native.lock_waits() == (0, 0.0, 0.0)


def test_batches_of_one_state_and_of_many_threads() -> None:
    automaton = compile(regex(r"[a-z]{1,30}"), SMALL)
    matchers: list[Any] = [automaton.matcher() for _ in range(40)]
    bitmask = allocate_token_bitmask(40, len(SMALL))
    fill_bitmasks(matchers, bitmask, threads=4)
    assert (bitmask == bitmask[0]).all() and bitmask[0].any()
    assert automaton._native.stats["masks_composed"] == 1


def test_an_automaton_of_few_states_takes_little_memory(tekken: Vocabulary) -> None:
    """A process may hold ten thousand."""
    fragments = compile(regex('"[^"]*"'), tekken)
    masks(fragments, tekken.encode_greedy(b'"a'))
    for k in range(3):
        automaton = compile(regex(f'"[^"]*"x{k}'), tekken)
        assert automaton._native.memory < 20_000
        masks(automaton, tekken.encode_greedy(b'"a"'))
