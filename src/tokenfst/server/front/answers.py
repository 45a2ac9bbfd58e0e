"""In-memory caches of answers, by the digest of their requests, and of artifacts, each with a size limit."""

from __future__ import annotations

import hashlib
import time
from collections import OrderedDict
from typing import Generic, TypeVar

_T = TypeVar("_T")
_BESIDE = 300
"""The approximate number of bytes that an entry takes in addition to its value."""


class SizedCache(Generic[_T]):
    """A least-recently-used cache of at most ``most`` bytes in all. For one thread."""

    def __init__(self, most: int) -> None:
        self._most, self.bytes = most, 0
        self._kept: OrderedDict[bytes, tuple[_T, int, float]] = OrderedDict()

    def get(self, key: bytes) -> _T | None:
        """The value; None if it is not cached or its lifetime is over."""
        found = self._kept.get(key)
        if found is None:
            return None
        if found[2] < time.monotonic():
            self.drop(key)
            return None
        self._kept.move_to_end(key)
        return found[0]

    def put(self, key: bytes, value: _T, size: int, fresh: float = float("inf")) -> None:
        """Cache a value with its ``size`` in bytes and its lifetime ``fresh`` in seconds. A value that takes more than
        a quarter of the limit is not cached, so that it does not evict many others.
        """
        self.drop(key)
        if size > self._most // 4:
            return
        self._kept[key] = value, size + _BESIDE, time.monotonic() + fresh
        self.bytes += size + _BESIDE
        while self.bytes > self._most:
            self.drop(next(iter(self._kept)))

    def drop(self, key: bytes) -> None:
        """Forget a value."""
        found = self._kept.pop(key, None)
        if found is not None:
            self.bytes -= found[1]


def digest(*parts: str | bytes) -> bytes:
    """The SHA-256 digest of a sequence of texts and bytes. The length of each part is hashed too, so different
    sequences have different digests.
    """
    made = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogateescape") if isinstance(part, str) else part
        made.update(len(data).to_bytes(8, "little"))
        made.update(data)
    return made.digest()
