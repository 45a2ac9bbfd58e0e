"""Processes that are forked while other threads work: parent and child both go on, whatever was locked."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import random
import signal
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from tokenfst import (
    TokenAutomaton,
    Vocabulary,
    allocate_token_bitmask,
    compile,
    fill_bitmasks,
    json_schema,
    regex,
)
from tokenfst.common import locks

BYTES = [bytes([byte]) for byte in range(256)]
pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning"),
]


def words(count: int) -> Vocabulary:
    rng = random.Random(count)
    tokens = dict.fromkeys(bytes(rng.choices(b'abcdefgh "', k=rng.randint(2, 12))) for _ in range(count))
    return Vocabulary([*BYTES, *tokens, b""], 256 + len(tokens))


def mask(automaton: TokenAutomaton, text: bytes = b"") -> bytes:
    matcher = automaton.matcher()
    assert matcher.accept_tokens(list(text))
    row = allocate_token_bitmask(1, len(automaton.vocabulary))
    matcher.fill_next_token_bitmask(row, 0)
    return row.tobytes()


def in_child(call: Callable[[], bytes], seconds: float = 60.0) -> bytes:
    """What a call gives in a forked process; fails where that does not end."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.write(write, call()[:4096])
        finally:
            os._exit(0)
    os.close(write)
    end = time.monotonic() + seconds
    try:
        while not os.waitpid(child, os.WNOHANG)[0]:
            if time.monotonic() > end:
                os.kill(child, signal.SIGKILL)
                os.waitpid(child, 0)
                pytest.fail("the child waits for a lock that nobody holds")
            time.sleep(0.005)
        return os.read(read, 4096)
    finally:
        os.close(read)


def test_while_another_thread_makes_the_first_mask() -> None:
    # The first mask makes the trie of the vocabulary, too. Every turn forks in another moment of it.
    right = mask(compile(regex("[a-h ]*x"), words(30_000)))
    for turn in range(6):
        vocabulary = words(30_000)
        automaton = compile(regex("[a-h ]*x"), vocabulary)
        other = threading.Thread(target=mask, args=(automaton,))
        other.start()
        time.sleep(0.004 * turn)
        assert in_child(lambda made=automaton: mask(made)) == right[:4096]
        other.join()
        assert mask(automaton) == right


def test_while_threads_go_on_and_on() -> None:
    vocabulary = words(3_000)
    over = threading.Event()

    def work(seed: int) -> None:
        rng = random.Random(seed)
        while not over.is_set():
            automaton = compile(json_schema({"enum": [rng.randrange(10**6) for _ in range(9)]}), vocabulary)
            mask(automaton)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    try:
        shared = compile(json_schema({"type": "array", "items": {"type": "string"}}), vocabulary)
        right = mask(shared, b'["a')
        for _ in range(15):
            assert in_child(lambda: mask(shared, b'["a')) == right[:4096]
            fresh = in_child(lambda: mask(compile(regex('[a-d]{3,9}"'), vocabulary)))
            assert fresh == mask(compile(regex('[a-d]{3,9}"'), vocabulary))[:4096]
    finally:
        over.set()
        for thread in threads:
            thread.join()


def test_a_child_may_fork_again() -> None:
    automaton = compile(regex("a+b"), Vocabulary([*BYTES, b""], 256))
    right = mask(automaton)
    assert in_child(lambda: in_child(lambda: mask(automaton))) == right


def test_threads_that_share_a_batch() -> None:
    """They go home before a fork, so that a process has no more threads than it began; parent and child make others."""
    automaton = compile(regex("[a-h]{0,40}x?"), Vocabulary([*BYTES, b"ab", b""], 257))

    def batch(length: int) -> bytes:
        matchers = [automaton.matcher() for _ in range(40)]
        for row, matcher in enumerate(matchers):
            assert matcher.accept_tokens(list(b"abcdefgh" * 5)[: length + row % 2])
        rows = allocate_token_bitmask(40, len(automaton.vocabulary))
        fill_bitmasks(matchers, rows, 4)
        return rows.tobytes()

    tasks = Path("/proc/self/task")
    before = {each.name for each in tasks.iterdir()} if tasks.is_dir() else set()
    for length in range(0, 20, 2):
        right = batch(length)
        assert in_child(lambda length=length: batch(length)) == right[:4096]
        while before and not {each.name for each in tasks.iterdir()} <= before:
            time.sleep(0.001)  # they have ended, and the system may still list them
        assert in_child(lambda length=length: in_child(lambda: batch(length))) == right[:4096]
        assert batch(length + 10) == batch(length + 10)


def test_locks_of_python_that_another_thread_holds() -> None:
    lock, held, over = locks.fork_safe_lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            over.wait(0.2)

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert in_child(lambda: b"free" if lock.acquire(timeout=5) else b"held") == b"free"
    over.set()
    thread.join()
    assert lock.acquire(timeout=5)


def test_a_lock_that_is_never_given_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(locks, "LONGEST", 0.05)
    lock, held, over = locks.fork_safe_lock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            over.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    assert in_child(lambda: b"free" if lock.acquire(timeout=5) else b"held") == b"free"
    assert not lock.acquire(blocking=False), "in the parent it is still held"
    over.set()
    thread.join()


def _mask_of(vocabulary: Vocabulary, pattern: str) -> bytes:
    return mask(compile(regex(pattern), vocabulary))


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_processes_of_multiprocessing(method: str) -> None:
    vocabulary = words(500)
    right = _mask_of(vocabulary, "[a-h ]+x")
    with multiprocessing.get_context(method).Pool(2) as pool:
        results = [pool.apply_async(_mask_of, (vocabulary, "[a-h ]+x")) for _ in range(4)]
        assert [result.get(timeout=120) for result in results] == [right] * 4


def test_what_can_be_pickled_and_what_cannot() -> None:
    vocabulary = words(50)
    assert pickle.loads(pickle.dumps(vocabulary)) == vocabulary
    language = regex("a+")
    assert pickle.loads(pickle.dumps(language)).accepts(b"aa")
    automaton = compile(language, vocabulary)
    for made in (
        automaton,
        automaton.expand(),
        automaton.matcher(),
    ):  # tests/decoding/token_automata/test_pickled.py
        assert type(pickle.loads(pickle.dumps(made))) is type(made)
    with pytest.raises(TypeError, match="Vocabulary"):
        pickle.dumps(vocabulary.native)


def test_a_matcher_that_another_thread_was_using() -> None:
    # Nothing is promised of it in the child, but that calls end.
    vocabulary = words(30_000)
    automaton = compile(regex("([a-h ]{1,9}x)*"), vocabulary)
    matcher = automaton.matcher(40)
    rows = np.zeros((1, -(-len(vocabulary) // 32)), np.int32)
    over = threading.Event()

    def work() -> None:
        while not over.is_set():
            matcher.fill_next_token_bitmask(rows, 0)

    def ask() -> bytes:
        try:
            matcher.accept_token(97)
        except Exception as error:
            return type(error).__name__.encode()
        return b"went on"

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for _ in range(10):
            assert in_child(ask) in (b"went on", b"ConstraintError")
    finally:
        over.set()
        thread.join()
