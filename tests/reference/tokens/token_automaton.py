"""The composition of a vocabulary with a byte automaton, by brute force: every token tried at every state.

Slow and obviously right. States are pairs (byte state, whether the text has begun); distances by relaxation until
nothing changes. Takes a complete deterministic table, which the tests check against
``reference.expressions.expressions``.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

INFINITE = 0xFFFFFFFF
Node = tuple[int, bool]


@dataclass
class SlowTokenAutomaton:
    """``classes`` uint8 (256,), ``table`` (states, classes) with state 0 dead, ``accepting`` (states,)."""

    classes: npt.NDArray[np.uint8]
    table: npt.NDArray[np.uint32]
    accepting: npt.NDArray[np.bool_]
    start_state: int
    tokens: list[bytes]
    eos: int
    initial: list[bytes] | None = None
    start_absorbs: bool = False
    arcs: dict[Node, dict[int, Node]] = field(default_factory=dict)
    distances: dict[Node, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.start: Node = (self.start_state, False)
        queue = [self.start]
        self.arcs[self.start] = {}
        for node in queue:
            for token in range(len(self.tokens)):
                target = self._step(node, token)
                if target is not None:
                    self.arcs[node][token] = target
                    if target not in self.arcs:
                        self.arcs[target] = {}
                        queue.append(target)
        self.distances = {node: 0 if self.accepting[node[0]] else INFINITE for node in queue}
        changed = True
        while changed:
            changed = False
            for node in queue:
                for target in self.arcs[node].values():
                    length = min(self.distances[target] + 1, INFINITE)
                    if length < self.distances[node]:
                        self.distances[node], changed = length, True

    def _step(self, node: Node, token: int) -> Node | None:
        state, begun = node
        text = self.tokens[token]
        if not text:
            return None
        if not begun and self.initial is not None:
            text = self.initial[token]
            if not text:
                return state, not self.start_absorbs
        for byte in text:
            state = int(self.table[state, self.classes[byte]])
            if state == 0:
                return None
        return state, True

    def allowed(self, node: Node, left: int | None = None) -> set[int]:
        """The tokens with a completion, within ``left`` tokens in all."""
        if left == 0:
            return set()
        farthest = INFINITE - 1 if left is None else left - 1
        found = {token for token, target in self.arcs[node].items() if self.distances[target] <= farthest}
        return found | ({self.eos} if self.accepting[node[0]] else set())
