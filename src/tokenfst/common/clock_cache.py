"""``Recent``: a cache like ``lru_cache``, for results that are computed from more than their key, such as a deadline.

The oldest result is dropped first, however recently it was used.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from contextlib import suppress
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)
_Made = TypeVar("_Made")


class Recent(Generic[_Key, _Made]):
    """The ``most`` newest results. Threads may share it; if two miss the same result at once, both compute it. It has
    no lock, so a process may fork at any time.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self.known: dict[_Key, _Made] = {}
        """The cached results by key; callers read it, but do not change it."""

    def get(self, key: _Key, make: Callable[[], _Made]) -> _Made:
        """The cached result for a key, or else that of ``make()``. If ``make`` raises, nothing is cached."""
        found = self.known.get(key)
        if found is None:
            found = make()
            found = self.known.setdefault(key, found)
            while len(self.known) > self._most:  # two threads may have removed the same one
                with suppress(RuntimeError, StopIteration):  # another thread changed it meanwhile
                    self.known.pop(next(iter(self.known)), None)
        return found

    def clear(self) -> None:
        """Forget all results."""
        self.known.clear()
