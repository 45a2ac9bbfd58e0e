"""``Stats`` and ``Memory``: how large a token automaton is, in states, masks and bytes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple


class Memory(NamedTuple):
    """Bytes held by an automaton, and by its vocabulary (which all automata over it share)."""

    automaton: int
    vocabulary: int


@dataclass(frozen=True, slots=True)
class Stats:
    """Sizes of a token automaton; for a lazy automaton, the sizes so far.

    ``states``: byte-level states. ``masks_made``: states whose mask is known. ``distinct_masks``: different masks among
    them. ``dense_rows``: distinct masks that are stored in full (ceil(V / 32) words each). ``fragments``: parts of the
    constraint whose masks are shared by several contexts. ``expanded``: whether all states and masks are computed.

    For push-down automata: ``frames``, the number of stack symbols; ``leaves``, the number of masks that are selected
    by the inspected part of the stack; ``deepest_look``, the largest number of symbols that one of them inspects.

    ``masks_composed``: masks computed by this automaton. ``masks_recalled``: masks taken from learned data.
    """

    states: int
    masks_made: int
    distinct_masks: int
    dense_rows: int
    fragments: int
    expanded: bool
    frames: int = 0
    leaves: int = 0
    deepest_look: int = 0
    masks_composed: int = 0
    masks_recalled: int = 0
