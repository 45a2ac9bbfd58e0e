"""Long calls of the core give up Python's lock: another thread of Python takes steps meanwhile.

The interpreter is told not to take its lock from anyone by itself, so the other thread gets it only where a call gives
it up. Its steps are counted and no clock is read: a call that keeps the lock never passes, however often it is made.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Event, Thread

import numpy as np
import pytest

from tokenfst import (
    Vocabulary,
    _native,
    allocate_token_bitmask,
    choices,
    compile,
    fill_bitmasks,
    regex,
)

LONG = b"a" * 300_000
TRIES = 200
"""Of one call: the other thread may be woken up too late for some of them."""


def weighted() -> Callable[[], object]:
    """One state that an ``a`` leads back to."""
    machine = _native.WeightedBytes(
        np.zeros(1),
        np.array([0, 1], np.uint32),
        np.array([97], np.uint8),
        np.zeros(1),
        np.zeros(1, np.uint32),
        np.array([-1], np.int32),
        np.zeros(1),
    )
    return lambda: machine.advance(np.zeros(1, np.uint32), np.zeros(1), LONG)


def tokens() -> Callable[[], object]:
    matcher = compile(regex("a*"), Vocabulary([b"a", b""], 1)).matcher()
    return lambda: matcher.validate_tokens([0] * len(LONG))


def tokens_of_an_engine() -> Callable[[], object]:
    automaton = compile(regex("a*"), Vocabulary([b"a", b""], 1))
    matchers = iter([automaton.matcher() for _ in range(TRIES + 1)])  # making one gives up the lock, too
    next(matchers).accept_until_over([0])  # from here on, all states are known
    return lambda: next(matchers).accept_until_over([0] * len(LONG))


def forced() -> Callable[[], object]:
    matcher = compile(choices([LONG.decode()]), Vocabulary([b"a", b""], 1)).matcher()
    assert matcher.forced_bytes() == LONG
    return matcher.forced_bytes


def rows() -> Callable[[], object]:
    """Known masks of a large vocabulary, for an engine's step of many requests."""
    vocabulary = Vocabulary([b"%d" % number for number in range(100_000)] + [b""], 100_000)
    matchers = [compile(regex("[0-9]*"), vocabulary).matcher()] * 256
    bitmask = allocate_token_bitmask(len(matchers), len(vocabulary))
    fill_bitmasks(matchers, bitmask)
    return lambda: _native.fill_step(matchers, bitmask)


CALLS = {
    "the position of a weighted automaton": weighted,
    "tokens that a matcher looks at": tokens,
    "tokens that a matcher accepts up to the end": tokens_of_an_engine,
    "a long text that is forced": forced,
    "known masks of many matchers": rows,
}


@contextmanager
def steps_of_another() -> Iterator[Callable[[], int]]:
    """How many steps a thread has taken that gives up the lock after each."""
    taken, over, interval = [0], Event(), sys.getswitchinterval()

    def run() -> None:
        while not over.is_set():
            taken[0] += 1
            time.sleep(0)

    thread = Thread(target=run)
    sys.setswitchinterval(1e6)
    thread.start()
    try:
        yield lambda: taken[0]
    finally:
        over.set()
        sys.setswitchinterval(interval)
        thread.join()


@pytest.mark.parametrize("name", CALLS)
def test_another_thread_takes_steps(name: str) -> None:
    call = CALLS[name]()
    with steps_of_another() as steps:
        for _ in range(TRIES):
            before = steps()
            call()
            if steps() > before:
                return
    pytest.fail(f"{TRIES} calls kept Python's lock from another thread")
