"""``CharacterKinds``: the minimal automaton from UTF-8 bytes to kinds of characters.

Tokens may end inside a character. The relevant information about an incomplete character is which kinds its
continuations have, so prefixes with the same continuations are one node: the first two bytes of most Chinese
characters, for example. Node 0 is between characters. Nodes are built bottom-up, from the table of their 64
continuation bytes.

Cost: a few passes over the 1,114,112 code points, 64 at a time.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

BETWEEN = 0


class CharacterKinds:
    """``kind``: the kind of each code point, uint8 (0x110000,), 0 for those that are not allowed in texts."""

    def __init__(self, kind: npt.NDArray[np.uint8]) -> None:
        # A step is the kind of a character, negated, or a node; 0 if no character continues so.
        self._nodes: list[tuple[int, ...]] = [()]
        self._numbers: dict[tuple[int, ...], int] = {}
        steps = (-kind.astype(np.int64)).reshape(-1, 64)
        last = np.array([self._node(tuple(row)) for row in steps.tolist()], np.int64)
        second = last.reshape(-1, 64).copy()
        overlong = tuple(second[0].tolist())
        second[0, : 0x800 >> 6] = 0
        middle = [self._node(tuple(row)) for row in second.tolist()]
        first = np.zeros((5, 64), np.int64)
        first.ravel()[: len(middle)] = middle
        first[0, : 0x10000 >> 12] = 0
        self._lead = [0] * 256
        self._lead[:0x80] = (-kind[:0x80].astype(np.int64)).tolist()
        self._lead[0xC2:0xE0] = overlong[2:32]
        self._lead[0xE0:0xF0] = middle[:16]
        self._lead[0xF0:0xF5] = [self._node(tuple(row)) for row in first.tolist()]

    def _node(self, steps: tuple[int, ...]) -> int:
        if not any(steps):
            return 0
        known = self._numbers.setdefault(steps, len(self._nodes))
        if known == len(self._nodes):
            self._nodes.append(steps)
        return known

    def read(self, data: bytes, node: int = BETWEEN) -> tuple[bytes, int] | None:
        """The kinds of the characters that ``data`` completes, and the node after it; None if it is not part of any
        text.
        """
        kinds = bytearray()
        for byte in data:
            if node == BETWEEN:
                step = self._lead[byte]
            elif 0x80 <= byte < 0xC0:
                step = self._nodes[node][byte - 0x80]
            else:
                return None
            if step == 0:
                return None
            if step < 0:
                kinds.append(-step)
                node = BETWEEN
            else:
                node = step
        return bytes(kinds), node
