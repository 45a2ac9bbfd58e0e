"""A weighted language composed with a vocabulary: the scores of tokens.

The idea: a node is a set of byte states, each with the log-sum of the paths to it (forward weights), so it is
exact where the machine is ambiguous. The score of a token is the log of the forward weight behind its bytes, divided by
that before; that of an end token weighs the states by their final weights. Scores telescope: along any token
sequence that spells a text they add up to the text's log weight, and ``start_weight``.

Weights are kept divided by their sum, so equal futures have equal nodes however much a text weighs; where
several states stand side by side, sums that are rounded otherwise make nodes of their own. A node's row is made by
one walk of the vocabulary's trie (native/scores) and kept, the latest used ones.

Cost: a walk for each different node, O(trie nodes reached x states side by side); a kept row O(1).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.automata.weights.sums import log_sum
from tokenfst.budget import Budget
from tokenfst.decoding.scores.matcher import ScoreMatcher, ScoreSource
from tokenfst.decoding.scores.rows import KeptRows, ScoreRow
from tokenfst.errors import EmptyLanguageError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Byte states, ascending, and the logarithms of their weights, which sum to one. ``begun``: whether tokens are
    spelled as inside of a text."""

    states: npt.NDArray[np.uint32]
    weights: npt.NDArray[np.float64]
    begun: bool

    @property
    def key(self) -> tuple[bytes, bytes, bool]:
        """What tells it from others."""
        return self.states.tobytes(), self.weights.tobytes(), self.begun


class ScoreAutomaton(ScoreSource):
    """A weighted language over the tokens of a vocabulary. Made by ``compile``; shared by threads."""

    def __init__(
        self, language: WeightedLanguage, vocabulary: Vocabulary, budget: Budget | None = None
    ) -> None:
        if language.is_empty():
            raise EmptyLanguageError(f"{language!r} has no text with a weight")
        self.language, self.vocabulary, self.budget = language, vocabulary, budget or language.budget
        self._core = language.core
        self._kept = KeptRows(self.budget)
        self._has_initial = vocabulary.initial_tokens is not None
        self.start = Node(np.array([language.machine.start], np.uint32), np.zeros(1), not self._has_initial)
        """The node that walks begin at."""

    def __getstate__(self) -> dict[str, object]:
        return {"language": self.language, "vocabulary": self.vocabulary, "budget": self.budget}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(state["language"], state["vocabulary"], state["budget"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"<ScoreAutomaton {self.language.source!r}: {len(self._kept)} rows kept>"

    @property
    def start_weight(self) -> float:
        """The log weight that all texts begin with, and no token's score has in it."""
        return self.language.machine.initial

    @property
    def rows_made(self) -> int:
        """How many rows were made so far: walks of the vocabulary."""
        return self._kept.made

    def matcher(self) -> ScoreMatcher[Node]:
        """A walk from the start."""
        return ScoreMatcher(self)

    def row(self, node: Node) -> ScoreRow:
        """The scores of all tokens at a node."""
        return self._kept.row(node.key, lambda: self._made(node))

    def step(self, node: Node, token: int) -> tuple[Node, float] | None:
        """Where a token leads, and its score; None where it leads out of the language."""
        vocabulary = self.vocabulary
        if token in vocabulary.special_token_ids:
            special = self.language.special_weight
            return None if special == -np.inf else (node, special)
        data = vocabulary.token_bytes(token) if node.begun else vocabulary.initial_bytes(token)
        begun = node.begun or bool(data) or not vocabulary.start_absorbs
        if not data:
            return Node(node.states, node.weights, begun), 0.0
        states, weights = self._core.advance(node.states, node.weights, data)
        if not len(states):
            return None
        score = log_sum(weights)
        return Node(states, weights - score, begun), score

    def end_score(self, node: Node) -> float:
        """The score of an end token."""
        return log_sum(node.weights + self.language.machine.finals[node.states])

    def _made(self, node: Node) -> ScoreRow:
        vocabulary = self.vocabulary
        scores = self._core.scores(
            vocabulary.native, not node.begun, node.states, node.weights, self.budget.seconds
        ).copy()
        if not node.begun:  # tokens without bytes at the start leave the text where it is
            empty = [token for token, data in enumerate(vocabulary.initial_tokens or ()) if not data]
            scores[empty] = 0.0
        scores[list(vocabulary.special_token_ids)] = self.language.special_weight
        scores[list(vocabulary.eos_token_ids)] = self.end_score(node)
        return ScoreRow.of(scores)
