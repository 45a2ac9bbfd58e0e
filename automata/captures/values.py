"""What was captured."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capture:
    """A part of a text that a named group or rule has read: the bytes from ``begin`` to ``end``, which is ``None``
    while it is still open; ``data`` are these bytes, as far as there are."""

    name: str
    begin: int
    end: int | None
    data: bytes

    @property
    def text(self) -> str:
        """The bytes as text. UnicodeDecodeError where they are none."""
        return self.data.decode()

    @property
    def is_open(self) -> bool:
        """Whether it may still grow."""
        return self.end is None


Captures = dict[str, list[Capture]]
"""By name, in the order of the constraint: the captures of each, in the order in which they begin."""
