"""Locks that a fork leaves free, in the parent and in the child.

A process that is forked has one thread, and a copy of everything as it was at that moment: a lock that another thread
held stays locked in the copy, and what it was changing stays half changed. So ``fork_safe_lock()`` counts the locks
that it makes, and whoever forks by ``os.fork`` (as ``multiprocessing`` does) first waits until it has all of them. The
locks of the native core are told the same way (native/threads/fork_gate.hpp).

Locks made later are taken first: what uses another object is made after it. A thread that takes them in another order
makes the fork wait for ``LONGEST`` seconds; then it goes on, and locks that were held are new in the child.
"""

from __future__ import annotations

import itertools
import os
import threading
import time
import weakref

LONGEST = 10.0
"""Seconds that a fork waits at most."""

_made: weakref.WeakValueDictionary[int, threading.RLock] = weakref.WeakValueDictionary()
_numbers = itertools.count()
_making = threading.Lock()
_taken: list[threading.RLock] = []


def fork_safe_lock() -> threading.RLock:
    """A lock that its thread may take again."""
    lock = threading.RLock()
    with _making:
        _made[next(_numbers)] = lock
    return lock


def _take_all() -> None:
    end = time.monotonic() + LONGEST
    _making.acquire()
    for _, lock in sorted(_made.items(), key=lambda item: item[0], reverse=True):
        if lock.acquire(timeout=max(0.0, end - time.monotonic())):
            _taken.append(lock)


def _give_back() -> None:
    while _taken:
        _taken.pop().release()
    _making.release()


def _give_back_in_child() -> None:
    held = [lock for lock in _made.values() if not any(lock is taken for taken in _taken)]
    _give_back()
    for lock in held:
        lock._at_fork_reinit()  # type: ignore[attr-defined]  # noqa: SLF001  # as threading's locks do after a fork


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_take_all, after_in_parent=_give_back, after_in_child=_give_back_in_child)
