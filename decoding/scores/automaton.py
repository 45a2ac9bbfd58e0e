"""``ScoreAutomaton``: a weighted language composed with a vocabulary, giving scores of tokens.

A node is a set of byte states, each with the log-sum of the paths to it (forward weights), so it is exact for ambiguous
machines. The score of a token is the log of the forward weight after its bytes divided by the forward weight before.
The score of an end token weights the states by their final weights. Scores telescope: along any token sequence that
spells a text, they and ``start_weight`` add up to the text's log weight.

Weights are normalized to sum to one, so nodes with equal futures are equal whatever the weight of the text so far.
Where several states are active at once, sums with different rounding are different nodes. The scores of a node are
computed by one walk of the vocabulary's trie (native/scores) and cached, least recently used first out.

Cost: a walk for each distinct node, O(trie nodes reached x active states); a cached row O(1).
"""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from tokenfst.automata.weights.language import WeightedLanguage
from tokenfst.automata.weights.sums import log_sum
from tokenfst.budget import Budget
from tokenfst.common.plurals import counted
from tokenfst.decoding.scores.kept_rows import KeptRows
from tokenfst.decoding.scores.rows import ScoreRow
from tokenfst.errors import EmptyLanguageError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """Byte states, ascending, and the logarithms of their weights, which sum to one.

    ``begun``: whether the next token is spelled as inside a text (not as its first token).
    """

    states: npt.NDArray[np.uint32]
    weights: npt.NDArray[np.float64]
    begun: bool

    @property
    def key(self) -> tuple[bytes, bytes, bool]:
        """A hashable key: equal nodes have equal keys."""
        return self.states.tobytes(), self.weights.tobytes(), self.begun


class ScoreAutomaton(KeptRows[Node]):
    """A weighted language over the tokens of a vocabulary. Created by ``compile``; may be shared by threads."""

    def __init__(
        self, language: WeightedLanguage, vocabulary: Vocabulary, budget: Budget | None = None
    ) -> None:
        if language.is_empty():
            raise EmptyLanguageError(f"{language!r} has no text with a weight")
        super().__init__(vocabulary, budget or language.budget)
        self.language = language
        self._core = language.core
        self._has_initial = vocabulary.initial_tokens is not None
        self.start = Node(np.array([language.machine.start], np.uint32), np.zeros(1), not self._has_initial)
        """The node that walks begin at."""

    def __getstate__(self) -> dict[str, object]:
        return {"language": self.language, "vocabulary": self.vocabulary, "budget": self.budget}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(state["language"], state["vocabulary"], state["budget"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"<ScoreAutomaton {self.language.source!r}: {counted(len(self._kept), 'row')} kept>"

    @property
    def start_weight(self) -> float:
        """The log weight that all texts have before their first token; no token's score includes it."""
        return self.language.machine.initial

    def key(self, node: Node) -> Hashable:
        """Nodes with equal keys have equal rows."""
        return node.key

    def step(self, node: Node, token: int) -> tuple[Node, float] | None:
        """The node after a token, and the token's score; None if the token leaves the language."""
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
        scores = self._core.scores(
            self.vocabulary.native, not node.begun, node.states, node.weights, self.budget.seconds
        )
        return self._row_of_walk(scores, node, begun=node.begun, special=self.language.special_weight)
