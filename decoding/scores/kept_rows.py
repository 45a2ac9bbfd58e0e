"""``KeptRows``: what all walkable sources of scores share: a cache of rows, and matchers.

A subclass says what a node's row is (``_made``) and which nodes have equal rows (``key``). A row is computed when it is
first requested, and kept until the cache needs its place.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Hashable
from typing import Any, Generic, TypeVar

import numpy.typing as npt

from tokenfst.budget import Budget
from tokenfst.decoding.scores.matcher import ScoreMatcher, ScoreSource
from tokenfst.decoding.scores.rows import RowCache, ScoreRow
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

N = TypeVar("N")


class KeptRows(ScoreSource, Generic[N]):
    """A walkable source of scores whose rows are cached. May be shared by threads."""

    start: N
    """The node at which walks begin."""

    def __init__(self, vocabulary: Vocabulary, budget: Budget) -> None:
        self.vocabulary, self.budget = vocabulary, budget
        self._kept = RowCache(budget)

    @property
    @abstractmethod
    def start_weight(self) -> float:
        """The log weight that all texts have before their first token; no token's score includes it."""

    @property
    def rows_made(self) -> int:
        """The number of score rows computed so far."""
        return self._kept.made

    def matcher(self) -> ScoreMatcher[N]:
        """A matcher at the start."""
        return ScoreMatcher(self)

    def row(self, node: N) -> ScoreRow:
        """The scores of all tokens at a node. O(1) if it is cached."""
        return self._kept.row(self.key(node), lambda: self._made(node))

    @abstractmethod
    def key(self, node: N) -> Hashable:
        """Nodes with equal keys have equal rows."""

    @abstractmethod
    def step(self, node: N, token: int) -> tuple[N, float] | None:
        """The node after a token, and the token's score; None if there is none. Not for end tokens."""

    @abstractmethod
    def end_score(self, node: N) -> float:
        """The score of an end token."""

    @abstractmethod
    def _made(self, node: N) -> ScoreRow:
        """The scores of all tokens at a node, computed."""

    def _row_of_walk(self, scores: npt.NDArray[Any], node: N, *, begun: bool, special: float) -> ScoreRow:
        """The row of a walk of the vocabulary, which knows only tokens with bytes inside a text.

        ``begun``: whether the next token is spelled as inside a text. ``special``: the score of special tokens.
        """
        scores = scores.copy()
        if not begun:  # tokens without bytes at the start leave the text where it is
            empty = [token for token, data in enumerate(self.vocabulary.initial_tokens or ()) if not data]
            scores[empty] = 0.0
        scores[list(self.vocabulary.special_token_ids)] = special
        scores[list(self.vocabulary.eos_token_ids)] = self.end_score(node)
        return ScoreRow.of(scores)
