"""``ScoreMatcher``: one decoding under a weighted language; it adds scores to logits in place.

The accepted tokens are a ``WalkHistory`` of nodes and weights, so a rollback costs nothing. Cost of ``scores_into``: a
mask and one addition over the logits, if the node's row is cached.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from tokenfst.common.arguments import checked, refuse
from tokenfst.common.plurals import counted
from tokenfst.decoding.masks.bitmask import apply_token_bitmask_inplace
from tokenfst.decoding.matchers.history import WalkHistory
from tokenfst.decoding.matchers.node_matcher import write_mask
from tokenfst.decoding.scores.rows import ScoreRow
from tokenfst.errors import ArgumentValueError, MaskBufferError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

N = TypeVar("N")


class ScoreWalk(Protocol[N]):
    """The interface of a walkable weighted automaton: nodes, each with a score for each token."""

    @property
    def vocabulary(self) -> Vocabulary:
        """The vocabulary of the tokens."""

    @property
    def start(self) -> N:
        """The start node."""

    @property
    def start_weight(self) -> float:
        """The log weight that all texts have before their first token."""

    def row(self, node: N) -> ScoreRow:
        """The scores of all tokens at a node."""

    def key(self, node: N) -> Hashable:
        """Nodes with equal keys have equal rows."""

    def step(self, node: N, token: int) -> tuple[N, float] | None:
        """The node after a token, and the token's score; None if there is none. Not for end tokens."""

    def end_score(self, node: N) -> float:
        """The score of an end token."""


class ScoreMatcher(WalkHistory[tuple[N, float]]):
    """One decoding under a weighted language. Not thread-safe.

    Each step of its history is a node and the log of the paths' weight there.
    """

    automaton: ScoreWalk[N]
    max_tokens_left: int | None = None
    """None: scores do not count tokens."""

    def __init__(self, automaton: ScoreWalk[N]) -> None:
        super().__init__(automaton, (automaton.start, float(automaton.start_weight)))

    def __repr__(self) -> str:
        return f"<ScoreMatcher after {counted(len(self._tokens), 'token')}: log weight {self.log_weight:.4g}>"

    @property
    def log_weight(self) -> float:
        """The log of the weight of the paths so far; after an end token, the text's log weight."""
        return self._nodes[-1][1]

    def is_accepting(self) -> bool:
        """Whether an end token is allowed."""
        return not self._terminated and self.automaton.end_score(self._nodes[-1][0]) > -np.inf

    def scores(self) -> np.ndarray[Any, np.dtype[np.float32]]:
        """The score of each token, -inf if it is forbidden: a new array. After an end token, end tokens have score 0.

        Float32, (V,).
        """
        return self.row().full()

    @checked
    def scores_into(self, logits: Any, weight: float = 1.0, index: int | None = None) -> None:
        """Add ``weight`` times the scores to logits in place.

        The logits of forbidden tokens, and those beyond the vocabulary, become -inf, whatever the weight is.
        ``logits``: ``(V,)``, or ``(batch, V)`` with ``index``, the row to add to; a numpy array of float32 or float16,
        or a torch tensor, also of bfloat16, on any device. Raises ``LogitsError`` for NaN, ``MaskBufferError`` if the
        logits do not fit.
        """
        if not abs(weight) < np.inf:
            refuse("scores_into", "weight", weight, "finite", ArgumentValueError)
        add_row(self.row(), logits, weight, index)

    def fill_next_token_bitmask(self, bitmask: Any, index: int = 0) -> bool:
        """Write the tokens with a finite score into row ``index`` of an int32 bitmask; returns True."""
        return write_mask(self.row().allowed, bitmask, index)

    def row(self) -> ScoreRow:
        """The scores of the next tokens. After an end token, end tokens have score 0."""
        if not self._terminated:
            return self.automaton.row(self._nodes[-1][0])
        scores = np.full(len(self.automaton.vocabulary), -np.inf, np.float32)
        scores[list(self.automaton.vocabulary.eos_token_ids)] = 0.0
        return ScoreRow.of(scores)

    def row_key(self) -> Hashable:
        """A key of the current row: matchers of one automaton with equal keys have equal rows."""
        return None if self._terminated else self.automaton.key(self._nodes[-1][0])

    def _new(self) -> Self:
        return type(self)(self.automaton)

    def _push(self, token: int) -> bool:
        node, weight = self._nodes[-1]
        if token in self.automaton.vocabulary.eos_token_ids:
            score = self.automaton.end_score(node)
            if score == -np.inf:
                return False
            self._terminated = True
        else:
            found = self.automaton.step(node, token)
            if found is None:
                return False
            node, score = found
        return self._went((node, weight + score), token)


class ScoreSource(ABC):
    """Base class of everything that scores a vocabulary's tokens: compiled weighted languages, models and
    look-aheads.
    """

    vocabulary: Vocabulary

    @abstractmethod
    def matcher(self) -> ScoreMatcher[Any]:
        """A matcher at the start."""


def add_row(row: ScoreRow, logits: Any, weight: float, index: int | None) -> None:
    """The implementation of ``scores_into`` for a given row of scores."""
    shape = tuple(getattr(logits, "shape", ()))
    if not shape or len(shape) > 2 or (len(shape) == 2 and shape[0] != 1 and index is None):
        raise MaskBufferError(
            f"logits must be of shape (V,), or (batch, V) with an index that names the row, not {shape}"
        )
    if index is not None and (len(shape) != 2 or not 0 <= index < shape[0]):
        raise MaskBufferError(f"there is no row {index} of logits of shape {shape}")
    one = logits if len(shape) == 1 else logits[index or 0]
    width = min(shape[-1], len(row.scores))
    apply_token_bitmask_inplace(one, row.allowed, vocab_size=width)
    if weight == 0:
        return
    if isinstance(one, np.ndarray):
        scores = row.scores[:width] if weight == 1 else row.scores[:width] * np.float32(weight)
        np.add(one[:width], scores, out=one[:width], casting="same_kind")
    else:
        import torch

        one[:width].add_(torch.from_numpy(row.scores[:width]).to(one.device), alpha=weight)
