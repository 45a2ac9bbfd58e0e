"""A storage for threads of which only one computes at a time.

A thread holds a lock, the *turn*, while it computes. ``ByTurns`` releases the lock while the storage works, so that
another thread can compute: the time of disks and networks overlaps with that of the processor.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from tokenfst.decoding.store.storages.places import Listed, Place


class ByTurns:
    """An implementation of ``places.Place`` over another one. The calling thread must hold the turn."""

    def __init__(self, place: Place, turn: threading.Lock) -> None:
        self._place, self._turn = place, turn
        self.url, self.is_shared = place.url, place.is_shared

    def read(self, name: str, *, fresh: bool = False) -> bytes | None:
        """See ``Place``."""
        with self._let_go():
            return self._place.read(name, fresh=fresh)

    def exists(self, name: str) -> bool:
        """See ``Place``."""
        with self._let_go():
            return self._place.exists(name)

    def create(self, name: str, data: bytes) -> bool:
        """See ``Place``."""
        with self._let_go():
            return self._place.create(name, data)

    def replace(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        """See ``Place``."""
        with self._let_go():
            self._place.replace(name, data, lasting=lasting)

    def remove(self, name: str) -> None:
        """See ``Place``."""
        with self._let_go():
            self._place.remove(name)

    def remove_unchanged(self, listed: Listed) -> bool:
        """See ``Place``."""
        with self._let_go():
            return self._place.remove_unchanged(listed)

    def touch(self, name: str) -> None:
        """See ``Place``."""
        with self._let_go():
            self._place.touch(name)

    def list(self, folder: str) -> Iterator[Listed]:
        """See ``Place``."""
        with self._let_go():
            found = [*self._place.list(folder)]
        return iter(found)

    def now(self) -> float:
        """See ``Place``."""
        with self._let_go():
            return self._place.now()

    def clean(self, before: float) -> None:
        """See ``Place``."""
        with self._let_go():
            self._place.clean(before)

    @contextmanager
    def _let_go(self) -> Iterator[None]:
        self._turn.release()
        try:
            yield
        finally:
            self._turn.acquire()
