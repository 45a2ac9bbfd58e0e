"""``Arc``, and the check that machines have the same semiring."""

from __future__ import annotations

from typing import Any

from tokenfst.automata.transducers.checks import WeightLike
from tokenfst.automata.transducers.weights import ARC_TYPES, ArcType
from tokenfst.errors import FstOpError


class Arc:
    """An arc: labels, a weight (a ``Weight``, a number or text), and the target state."""

    __slots__ = ("ilabel", "nextstate", "olabel", "weight")

    def __init__(self, ilabel: int, olabel: int, weight: WeightLike, nextstate: int) -> None:
        self.ilabel, self.olabel, self.weight, self.nextstate = ilabel, olabel, weight, nextstate

    def copy(self) -> Arc:
        """An independent copy."""
        return Arc(self.ilabel, self.olabel, self.weight, self.nextstate)

    def _key(self) -> tuple[object, ...]:
        return self.ilabel, self.olabel, self.weight, self.nextstate

    def __eq__(self, other: object) -> bool:
        return self._key() == other._key() if isinstance(other, Arc) else NotImplemented

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Arc({self.ilabel}, {self.olabel}, {str(self.weight)!r}, {self.nextstate})"


def require_same(call: str, *fsts: Any) -> ArcType:
    """The common semiring; raises ``FstOpError`` if they differ."""
    kinds = {each.kind.name for each in fsts}
    if len(kinds) > 1:
        raise FstOpError(
            f"{call}: the machines are over different semirings ({', '.join(sorted(kinds))}): convert one of them with "
            f"fst.convert(machine, {min(kinds)!r})"
        )
    return ARC_TYPES[kinds.pop()]
