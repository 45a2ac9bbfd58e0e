"""``Answer``: the answer to a query about two languages, with a witness if it is negative."""

from __future__ import annotations

import enum
from dataclasses import dataclass

import tokenfst.common.notebook as notebook


class Side(enum.Enum):
    """The language that has a witness. In ``a.equivalent(b)``, ``a`` is left and ``b`` is right."""

    LEFT = "left"
    RIGHT = "right"


@dataclass(frozen=True, slots=True)
class Answer:
    """A truth value. If it is false, ``witness`` is a shortest word that only one of the languages has."""

    holds: bool
    witness: bytes | None = None
    side: Side | None = None
    """The language that has the witness."""

    def __bool__(self) -> bool:
        return self.holds

    @property
    def text(self) -> str | None:
        r"""The witness as text; bytes that are not valid UTF-8 are written ``\xNN``."""
        return None if self.witness is None else self.witness.decode("utf-8", "backslashreplace")

    def _repr_html_(self) -> str:
        if self.text is None or self.side is None:
            return notebook.card("yes" if self.holds else "no", [])
        return notebook.card(
            "no", [("a text that shows it", self.text), ("is in", f"the {self.side.value} one only")]
        )

    def __str__(self) -> str:
        if self.side is None:
            return "yes"
        return f"no: {self.text!r} is in the {self.side.value} language only"
