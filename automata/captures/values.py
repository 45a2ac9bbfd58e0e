"""``Capture`` and ``Captures``: the results of capturing."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Capture:
    """A part of a text that matched a named group or rule.

    ``begin``, ``end``: its positions in bytes; ``end`` is ``None`` while the capture is open. ``data``: the bytes
    between them, as far as they are known.
    """

    name: str
    begin: int
    end: int | None
    data: bytes

    @property
    def text(self) -> str:
        """The captured bytes as text. Raises UnicodeDecodeError if they are not valid UTF-8."""
        return self.data.decode()

    @property
    def is_open(self) -> bool:
        """Whether the capture has not ended yet."""
        return self.end is None


Captures = dict[str, list[Capture]]
"""For each name, in the order of the constraint, its captures in the order of their starts."""
