"""``Capture`` and ``Captures``: the results of capturing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capture:
    """A part of a text that matched a named group or rule.

    The bytes from ``begin`` to ``end``, which is ``None`` while the capture is open; ``data`` are these bytes, as far
    as they are known.
    """

    name: str
    begin: int
    end: int | None
    data: bytes

    @property
    def text(self) -> str:
        """The bytes as text. Raises UnicodeDecodeError if they are not valid UTF-8."""
        return self.data.decode()

    @property
    def is_open(self) -> bool:
        """Whether the capture may still grow."""
        return self.end is None


Captures = dict[str, list[Capture]]
"""Captures by name, in the order of the constraint; for each name in the order of their starts."""
