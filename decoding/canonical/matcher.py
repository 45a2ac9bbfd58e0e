"""``CanonicalMatcher``: one decoding by canonical token sequences."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, cast

import numpy as np
import numpy.typing as npt

from tokenfst.automata.expressions.metering import Deadline
from tokenfst.decoding.canonical.nodes import Node
from tokenfst.decoding.matchers.node_matcher import NodeMatcher

if TYPE_CHECKING:
    from tokenfst.decoding.canonical.automaton import CanonicalAutomaton

_MAX_FORCED = 1 << 20


class CanonicalMatcher(NodeMatcher[Node]):
    """One decoding under a ``CanonicalAutomaton``, with the methods of ``Matcher``."""

    @property
    def state(self) -> int:
        """A state number: equal numbers have equal futures, in all matchers of one automaton."""
        state, cuts, last = self._nodes[-1]
        return state << 64 | cuts << 32 | last + 1

    @property
    def memory(self) -> int:
        """Approximate memory of this sequence in bytes, without the shared automaton."""
        each = sys.getsizeof(self._nodes[0]) + 3 * sys.getsizeof(1 << 30)
        return sys.getsizeof(self._tokens) + sys.getsizeof(self._nodes) + each * len(self._nodes)

    def forced_bytes(self) -> bytes:
        """The bytes that follow in every accepted text whose canonical tokens start with those so far.

        As in ``Matcher``, the limit of tokens is ignored. All continuations are followed in parallel, byte by byte, up
        to the first choice or to a position at which the text may end.
        """
        budget = cast("CanonicalAutomaton", self.automaton).budget
        deadline = Deadline(budget, "the bytes that are certain to come")
        forced = bytearray()
        ways = set() if self._terminated else {(self._nodes[-1], b"")}
        while ways and len(forced) < _MAX_FORCED:
            deadline.check()
            begun = self._begun(node for node, rest in ways if not rest)
            if begun is None:
                break
            begun |= {(node, rest) for node, rest in ways if rest}
            byte, *others = {rest[0] for _, rest in begun}
            if others:
                break
            forced.append(byte)
            ways = {(node, rest[1:]) for node, rest in begun}
        return bytes(forced)

    def find_jump_forward_string(self) -> str:
        """``forced_bytes()`` as text, without a trailing incomplete character."""
        return self.forced_bytes().decode("utf-8", "ignore")

    def _begun(self, nodes: Iterable[Node]) -> set[tuple[Node, bytes]] | None:
        """The targets of the tokens that may come next at any of the nodes, and their bytes.

        None if these do not all begin with the same byte, or if the text may end.
        """
        automaton, tokens = self.automaton, self.automaton.vocabulary.tokens
        found: set[tuple[Node, bytes]] = set()
        first: int | None = None
        for node in nodes:
            if automaton.accepting(node):
                return None
            allowed = _ids(automaton.mask(node))
            first = tokens[allowed[0]][0] if first is None else first
            if any(tokens[token][0] != first for token in allowed):
                return None
            for token in allowed:
                following = automaton.step(node, token)
                assert following is not None, "the mask allows it"
                found.add((following, tokens[token]))
        return found


def _ids(mask: npt.NDArray[np.int32]) -> list[int]:
    """The tokens of a mask, ascending."""
    found: list[int] = np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little")).tolist()
    return found
