"""Locks that a fork leaves free, in the parent and in the child.

A forked process has one thread, and a copy of everything as it was at that moment: a lock that another thread held
stays locked in the copy, and the data that it was changing stays half changed. So ``fork_safe_lock()`` records the
locks that it makes, and ``os.fork`` (which ``multiprocessing`` uses) first acquires all of them. The native core does
the same with its own locks (native/threads/fork_gate.hpp).

Locks are acquired in reverse order of their creation, because an object is usually made after the objects that it uses.
If a thread acquires them in another order, the fork waits for ``LONGEST`` seconds; then it goes on, and the child gets
new locks in place of those that were held.
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
    """A reentrant lock that a fork leaves free in the parent and in the child."""
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
