"""The number of canonical tokens that complete a text, and the masks within a limit of tokens.

The least number of tokens of any kind is a lower bound for canonical tokens. So a depth-first search, which tries the
tokens nearest to acceptance first, decides whether ``most`` tokens suffice. It abandons a node as soon as the lower
bound exceeds the limit; for loose limits the first path usually succeeds. The cache keeps for each node a number that
is known to suffice, a number that is known not to suffice, and the first token of the path that was found. The distance
is the least sufficient number; the search finds it by increasing the limit step by step.

A mask under a limit is computed for groups of tokens with the same two target states. One path decides for all tokens
of the group that may precede the path's first token.

Cost: the nodes that the search visits, within the automaton's budget; results are kept. Rejected: distances by backward
breadth-first search, which would create every node of the composition, states x tokens.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokenfst.decoding.canonical.nodes import ENDS, NO_TOKEN, Node

if TYPE_CHECKING:
    from tokenfst.decoding.canonical.automaton import CanonicalAutomaton

_KEPT = 32
"""The number of states whose numbered targets are cached."""


class CanonicalLengths:
    """A cache of length bounds for one automaton. The caller must hold the automaton's lock."""

    def __init__(self, automaton: CanonicalAutomaton) -> None:
        self._automaton = automaton
        self._targets: dict[int, tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]] = {}
        self._enough: dict[Node, tuple[int, int]] = {}  # a sufficient number of tokens, and the first of them
        self._not_enough: dict[Node, int] = {}  # fewer tokens are not sufficient

    def distance(self, node: Node) -> int:
        """The least number of tokens that complete a live node."""
        most = int(self._automaton.native.distance(node.state))
        tried = 0
        while not self.is_within(node, most):
            tried += 1  # runs without end only for an artifact with false distances
            self._automaton.check(tried)
            most = max(most + 1, self._not_enough.get(node, 0))
        return self._enough[node][0]

    def is_within(self, start: Node, most: int) -> bool:
        """Whether at most ``most`` tokens complete a node."""
        known = self._judged(start, most)
        if known is not None:
            return known
        if len(self._enough) + len(self._not_enough) > self._automaton.budget.states:
            self._enough.clear()
            self._not_enough.clear()
        path: list[tuple[Node, Iterator[tuple[int, Node]]]] = [(start, self._automaton.successors(start))]
        taken: list[int] = []
        visited = 0
        while path:
            node, successors = path[-1]
            left = most - len(path)  # after the token that is taken next
            for token, following in successors:
                self._automaton.deadline.tick()
                if self._automaton.native.distance(following.state) > left:
                    path[-1] = node, iter(())  # the others are not nearer
                    break
                judged = self._judged(following, left)
                if judged is False:
                    continue
                taken.append(token)
                if judged:
                    length = self._enough[following][0]
                    for (passed, _), first in zip(reversed(path), reversed(taken), strict=True):
                        length += 1
                        if length < self._enough.get(passed, (length + 1, 0))[0]:
                            self._enough[passed] = length, first
                    return True
                visited += 1
                self._automaton.check(visited)
                path.append((following, self._automaton.successors(following)))
                break
            else:
                self._not_enough[node] = max(left + 2, self._not_enough.get(node, 0))
                path.pop()
                if taken:
                    taken.pop()
        return False

    def mask(self, node: Node, left: int) -> npt.NDArray[np.int32]:
        """The tokens of a node's mask after which ``left`` - 1 tokens suffice; also the allowed end tokens, if ``left``
        is at least 1.
        """
        automaton = self._automaton
        allowed = np.zeros(32 * len(automaton.end_tokens), np.bool_)
        if left > 0:
            tokens, targets, after = automaton.cut_arcs_of(node)
            distinct, which = self._numbered(node.state, targets)
            sensible = np.flatnonzero(after)
            tokens, which, after = tokens[sensible], which[sensible], after[sensible].astype(np.int64)
            width = int(after.max(initial=0)) + 1
            group_of = which * width + after
            sizes = np.bincount(group_of, minlength=1)
            groups = np.flatnonzero(sizes)
            # Numbers of 16 bits are sorted in linear time.
            order = np.argsort(
                group_of.astype(np.uint16) if len(sizes) <= 1 << 16 else group_of, kind="stable"
            )
            parts = np.split(tokens[order], np.cumsum(sizes[groups])[:-1])
            for group, members in zip(groups.tolist(), parts, strict=False):
                automaton.deadline.tick(10)
                state = int(distinct[group // width])
                allowed[members[self._within(state, group % width, members, left - 1)]] = True
        mask: npt.NDArray[np.int32] = np.packbits(allowed, bitorder="little").view(np.int32)
        return mask | automaton.end_tokens if left > 0 and automaton.accepting(node) else mask

    def _numbered(
        self, state: int, targets: npt.NDArray[np.int64]
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """The distinct ``targets`` of a state, and for each target its number among these; cached for a few states."""
        if state not in self._targets:
            while len(self._targets) >= _KEPT:
                del self._targets[next(iter(self._targets))]
            self._targets[state] = np.unique(targets, return_inverse=True)
        return self._targets[state]

    def _within(
        self, state: int, cuts: int, tokens: npt.NDArray[np.int64], most: int
    ) -> npt.NDArray[np.bool_]:
        """Which of ``tokens``, which all lead to the same two states, can be completed by ``most`` more tokens."""
        automaton = self._automaton
        within = np.zeros(len(tokens), np.bool_)
        if automaton.native.distance(state) > most:
            return within
        pending = np.arange(len(tokens))
        while len(pending):
            for place, index in enumerate(pending.tolist()):  # noqa: B007  # used after the loop
                node = automaton.node(state, cuts, int(tokens[index]))
                assert node is not None, "dead cuts are left out"
                automaton.deadline.tick(10)
                if self.is_within(node, most):
                    break
                if node.last == NO_TOKEN:
                    return within
            else:
                return within
            first = self._enough[node][1]
            if node.last == NO_TOKEN or first == ENDS:
                return np.ones(len(tokens), np.bool_)
            like = automaton.tokenizer.predecessors(first)[tokens]
            if not automaton.tokenizer.may_precede(node.last, first):
                like = ~like
            within |= like
            pending = pending[place + 1 :]
            pending = pending[~within[pending]]
        return within

    def _judged(self, node: Node, most: int) -> bool | None:
        """Whether ``most`` tokens are enough; None if this is not known."""
        known = self._enough.get(node)
        if known is None and self._automaton.accepting(node):
            known = self._enough[node] = 0, ENDS
        if known is not None and known[0] <= most:
            return True
        nearest = int(self._automaton.native.distance(node.state))
        return False if most < max(nearest, self._not_enough.get(node, 0)) else None
