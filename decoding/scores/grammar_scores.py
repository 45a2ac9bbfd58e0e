"""``GrammarScores``: a weighted grammar composed with a vocabulary, giving scores of tokens.

A node is a chart (native/scores/rule_chart), which gives the total weight of all texts with the current prefix. The
score of a token is the log of its share of that weight, and of an end token the share of the text itself. So scores are
conditional log-probabilities, and along any token sequence that spells a text they add up to its log weight minus
``start_weight``, the log mass.

A row of scores is one walk of the vocabulary's trie, with a column of the chart for each inner node. Rows are cached by
what the future depends on, so a recurring situation (inside a string, after a bracket) reuses its row.
"""

from __future__ import annotations

from collections.abc import Hashable

import numpy as np

import tokenfst._native as _native
from tokenfst.automata.weighted_grammars.grammar import WeightedGrammar
from tokenfst.budget import Budget
from tokenfst.common.plurals import counted
from tokenfst.decoding.scores.kept_rows import KeptRows
from tokenfst.decoding.scores.rows import ScoreRow
from tokenfst.errors import EmptyLanguageError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Node = tuple[_native.RuleChart, bool]
"""A chart, and whether the next token is spelled as inside a text (not as its first token)."""


class GrammarScores(KeptRows[Node]):
    """A weighted grammar over the tokens of a vocabulary. Created by ``compile``; may be shared by threads."""

    def __init__(
        self, grammar: WeightedGrammar, vocabulary: Vocabulary, budget: Budget | None = None
    ) -> None:
        if grammar.is_empty():
            raise EmptyLanguageError(f"{grammar!r} has no text with a weight")
        super().__init__(vocabulary, budget or grammar.budget)
        self.grammar = grammar
        self._core = grammar.core
        self.start: Node = self._core.start(self.budget.states), vocabulary.initial_tokens is None
        """The node that walks begin at."""

    def __getstate__(self) -> dict[str, object]:
        return {"grammar": self.grammar, "vocabulary": self.vocabulary, "budget": self.budget}

    def __setstate__(self, state: dict[str, object]) -> None:
        self.__init__(state["grammar"], state["vocabulary"], state["budget"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"<GrammarScores of {self.grammar!r}: {counted(len(self._kept), 'row')} kept>"

    @property
    def start_weight(self) -> float:
        """The log mass; no token's score includes it."""
        return self.grammar.log_mass()

    def key(self, node: Node) -> Hashable:
        """Nodes with equal keys have equal rows."""
        return node[0].key(), node[1]

    def step(self, node: Node, token: int) -> tuple[Node, float] | None:
        """The node after a token, and the token's score; None if the token leaves the grammar."""
        vocabulary = self.vocabulary
        if token in vocabulary.special_token_ids:
            return None
        chart, begun = node
        data = vocabulary.token_bytes(token) if begun else vocabulary.initial_bytes(token)
        begun = begun or bool(data) or not vocabulary.start_absorbs
        if not data:
            return (chart, begun), 0.0
        chart, score = self._core.advance(chart, data, self.budget.states, self.budget.seconds)
        return None if score == -np.inf else ((chart, begun), score)

    def end_score(self, node: Node) -> float:
        """The score of an end token."""
        return node[0].end

    def _made(self, node: Node) -> ScoreRow:
        chart, begun = node
        scores = self._core.scores(
            self.vocabulary.native, not begun, chart, self.budget.states, self.budget.seconds
        )
        return self._row_of_walk(scores, node, begun=begun, special=-np.inf)
