"""Nondeterministic automata with ε, run by sets of states: the slow twin of determinization and
composition.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Nfa:
    """``arcs``: (source, label, nextstate); label 0 is ε. State 0 is the start."""

    num_states: int
    final: frozenset[int]
    arcs: tuple[tuple[int, int, int], ...]

    def closure(self, states: Iterable[int]) -> frozenset[int]:
        seen = set(states)
        while new := {q for p, label, q in self.arcs if label == 0 and p in seen} - seen:
            seen |= new
        return frozenset(seen)

    def accepts(self, labels: Sequence[int]) -> bool:
        now = self.closure({0})
        for wanted in labels:
            now = self.closure(q for p, label, q in self.arcs if label == wanted and p in now)
        return not now.isdisjoint(self.final)
