"""``NodeMatcher``: the interface of ``Matcher`` in Python, over anything that can be walked node by node.

It is used for canonical token sequences (``CanonicalMatcher``), and for the configurations of ``Reach``, whose token
limits are exact for stacks (``ReachMatcher``). The accepted tokens are a ``WalkHistory``. Cost: a step of the walk, and
a copied mask.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, Self, TypeVar

import numpy as np
import numpy.typing as npt

import tokenfst._native as _native
from tokenfst.automata.captures.values import Captures
from tokenfst.common.arguments import refuse, whole
from tokenfst.decoding.matchers.history import WalkHistory
from tokenfst.decoding.token_automata.explaining import (
    TokenExplanation,
    captures,
    explain,
    temperature,
)
from tokenfst.decoding.token_automata.pickled import restored
from tokenfst.decoding.token_automata.showing import described, described_in_html
from tokenfst.errors import MaskBufferError, TokenIdError, TokenLimitError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Bits = npt.NDArray[np.int32]
N = TypeVar("N")


class Walk(Protocol[N]):
    """The interface of a walkable automaton: nodes, each with the tokens that lead to other nodes."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the tokens."""

    @property
    def native(self) -> _native.TokenAutomaton:
        """The underlying automaton of the native core."""

    @property
    def start(self) -> N:
        """The start node."""

    @property
    def end_tokens(self) -> Bits:
        """The mask of the end tokens."""

    def distance(self, node: N) -> int:
        """The number of tokens to acceptance, not counting the end token."""

    def refusal(self, node: N, max_new_tokens: int) -> TokenLimitError:
        """The error for a text that ``max_new_tokens`` tokens cannot complete."""

    def accepting(self, node: N) -> bool:
        """Whether the text may end."""

    def is_within(self, node: N, max_new_tokens: int) -> bool:
        """Whether at most ``max_new_tokens`` tokens complete the text."""

    def step(self, node: N, token: int) -> N | None:
        """The node after a token, from which the text can be completed; None if there is none."""

    def mask(self, node: N) -> Bits:
        """The allowed next tokens, int32 (words,); read-only."""

    def mask_within(self, node: N, max_new_tokens: int) -> Bits:
        """The tokens after which ``max_new_tokens - 1`` tokens suffice, int32 (words,); read-only."""


class NodeMatcher(WalkHistory[N]):
    """One decoding over a ``Walk``, with the methods of ``Matcher``."""

    automaton: Walk[N]

    def __init__(self, automaton: Walk[N], max_new_tokens: int | None = None) -> None:
        super().__init__(automaton, automaton.start)
        self._limit: int | None = None
        self.max_tokens_left = max_new_tokens

    def __reduce__(self) -> tuple[Any, ...]:
        return _restored, (type(self), self.automaton, self.tokens, self.max_tokens_left)

    __repr__ = described
    _repr_html_ = described_in_html

    @property
    def max_tokens_left(self) -> int | None:
        """The number of tokens that may still come, counting the end token; None if unlimited.

        Setting it raises ``TokenLimitError`` if no accepted text fits, ``BudgetExceeded`` if that cannot be decided.
        """
        return None if self._limit is None else self._limit - len(self._tokens)

    @max_tokens_left.setter
    def max_tokens_left(self, left: int | None) -> None:
        if left is not None and not self._terminated and not self.automaton.is_within(self._nodes[-1], left):
            raise self.automaton.refusal(self._nodes[-1], left)
        self._limit = None if left is None else len(self._tokens) + left

    def distance(self) -> int:
        """The least number of tokens, not counting the end token, that complete the text; an upper bound with
        stacks.
        """
        return self.automaton.distance(self._nodes[-1])

    def is_accepting(self) -> bool:
        """Whether an end token is allowed."""
        return self.automaton.accepting(self._nodes[-1])

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool:
        """Write the mask into row ``index`` of an int32 array or CPU tensor ``(batch, ceil(V / 32))``.

        Returns True: the mask has to be applied.
        """
        return write_mask(self._mask(), bitmask, index)

    def forced_tokens(self) -> list[int]:
        """The next tokens that have no alternative, up to the next choice, or to an end token, which is left out."""
        before = len(self._tokens)
        try:
            while not self._terminated:
                bits = np.unpackbits(self._mask().view(np.uint8), bitorder="little")
                only = np.flatnonzero(bits)
                if len(only) != 1 or int(only[0]) in self.automaton.vocabulary.eos_token_ids:
                    break
                self._push(int(only[0]))
            return self._tokens[before:]
        finally:
            self.rollback(len(self._tokens) - before)

    def traverse_draft_tree(
        self,
        next_token: npt.NDArray[np.int64],
        next_sibling: npt.NDArray[np.int64],
        draft_tokens: npt.NDArray[np.int64],
        bitmask: Any,
    ) -> None:
        """Compute the masks for a tree of draft tokens, as ``Matcher.traverse_draft_tree`` does.

        Row i of ``bitmask`` becomes the mask after the path to node i, or zero if a token of this path is not allowed.
        The matcher does not change.
        """
        if not len(next_token) == len(next_sibling) == len(draft_tokens):
            raise MaskBufferError(
                "the arrays of a draft tree must have one entry for each node, but their lengths are "
                f"{len(next_token)} (next_token), {len(next_sibling)} (next_sibling) and "
                f"{len(draft_tokens)} (draft_tokens)"
            )
        for name, each in (
            ("next_token", next_token),
            ("next_sibling", next_sibling),
            ("draft_tokens", draft_tokens),
        ):
            if getattr(each, "dtype", None) != np.int64:
                refuse("traverse_draft_tree", name, each, "an int64 array")
        rows = _rows(bitmask)
        size, seen, before = len(self.automaton.vocabulary), set[int](), len(self._tokens)
        pending = [(0, before)] if len(draft_tokens) else []
        try:
            while pending:
                node, depth = pending.pop()
                if node < 0:
                    continue
                if node >= len(draft_tokens) or node in seen:
                    raise TokenIdError(f"node {node} of the draft tree does not exist or has two parents")
                seen.add(node)
                self.rollback(len(self._tokens) - depth)
                if node:
                    pending.append((int(next_sibling[node]), depth))
                token = int(draft_tokens[node])
                if node and (self._terminated or not 0 <= token < size or not self._push(token)):
                    for below in self._subtree(int(next_token[node]), next_token, next_sibling, seen):
                        rows[below] = 0
                    rows[node] = 0
                    continue
                self.fill_next_token_bitmask(bitmask, node)
                pending.append((int(next_token[node]), len(self._tokens)))
        finally:
            self.rollback(len(self._tokens) - before)

    @staticmethod
    def _subtree(
        first: int, next_token: npt.NDArray[np.int64], next_sibling: npt.NDArray[np.int64], seen: set[int]
    ) -> list[int]:
        """The nodes of a draft tree from ``first`` on, its siblings and all below, that were not seen."""
        found, pending = [], [first]
        while pending:
            node = pending.pop()
            if 0 <= node < len(next_token) and node not in seen:
                seen.add(node)
                found.append(node)
                pending += (int(next_sibling[node]), int(next_token[node]))
        return found

    def fork(self) -> Self:
        """A copy of this matcher, in the same state."""
        other = super().fork()
        other._limit = self._limit  # noqa: SLF001  # another of this class
        return other

    def _new(self) -> Self:
        return type(self)(self.automaton)

    def _mask(self) -> Bits:
        """The tokens that may come next."""
        automaton, left = self.automaton, self.max_tokens_left
        if self._terminated:
            return automaton.end_tokens
        if left is None:
            return automaton.mask(self._nodes[-1])
        return automaton.mask_within(self._nodes[-1], left)

    def explain(self, token_id: int) -> TokenExplanation:
        """Whether a token is allowed, and if not, the reason, the failing byte of the token, and what was expected
        there.
        """
        return explain(self, token_id)

    @property
    def temperature(self) -> float | None:
        """The sampling temperature that is set by the rules that may read the next token; ``None`` if none sets one."""
        return temperature(self)

    def captures(self) -> Captures:
        """The captures of the constraint's named groups and rules in the text so far."""
        return captures(self)

    def _push(self, token: int) -> bool:
        automaton, node, left = self.automaton, self._nodes[-1], self.max_tokens_left
        if left is not None and left <= 0:
            return False
        if token in automaton.vocabulary.eos_token_ids:
            if not automaton.accepting(node):
                return False
            self._terminated = True
        else:
            following = automaton.step(node, token)
            if following is None or (left is not None and not automaton.is_within(following, left - 1)):
                return False
            node = following
        return self._went(node, token)


def write_mask(mask: Bits, bitmask: Any, index: int) -> bool:
    """Write a mask into row ``index`` of a bitmask; returns True. Raises ``MaskBufferError``."""
    if type(index) is not int:
        index = whole("fill_next_token_bitmask", "index", index)
    rows = _rows(bitmask)
    if rows.dtype != np.int32 or rows.shape[1] != len(mask) or not 0 <= index < len(rows):
        raise MaskBufferError(
            f"row {index} of {len(mask)} int32 words does not fit a bitmask of shape {rows.shape} and type "
            f"{rows.dtype}; make one by allocate_token_bitmask()"
        )
    rows[index] = mask
    return True


def _rows(bitmask: Any) -> npt.NDArray[Any]:
    """A bitmask's own memory by rows. A list would be copied, and writes to the copy would be lost."""
    if not hasattr(bitmask, "dtype") or getattr(bitmask, "is_meta", False):
        raise MaskBufferError(
            f"the bitmask must be a numpy array or a torch tensor on the CPU, not {type(bitmask).__name__}"
        )
    return np.atleast_2d(np.asarray(bitmask))


def _restored(
    kind: type[NodeMatcher[N]], automaton: Walk[N], tokens: Sequence[int], left: int | None
) -> NodeMatcher[N]:
    return restored(kind(automaton), tokens, left)
