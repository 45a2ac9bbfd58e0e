"""``TokenNGrams``: n-gram models over token ids, with the scores of all tokens after a context by exact back-off.

A row starts with the unigrams. Each longer suffix of the context then adds its back-off weight and overwrites the
tokens that it lists. O(tokens x order) for each row, cached like other rows.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst.automata.weights.ngrams import BEGIN, END, UNKNOWN, NGramModel
from tokenfst.budget import Budget
from tokenfst.common.plurals import counted
from tokenfst.decoding.scores.kept_rows import KeptRows
from tokenfst.decoding.scores.rows import ScoreRow
from tokenfst.errors import ArpaError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_Entry = tuple[npt.NDArray[np.int64], npt.NDArray[np.float64]]


class TokenNGrams(KeptRows[int]):
    """An n-gram model over the token ids of a vocabulary; ``</s>`` stands for its end tokens. Created by ``compile``.

    Tokens that the model does not list have the probability of ``<unk>``, or zero. Raises ``ArpaError`` for symbols
    that are not token ids.
    """

    def __init__(self, model: NGramModel, vocabulary: Vocabulary, budget: Budget | None = None) -> None:
        super().__init__(vocabulary, budget or Budget())
        self.model = model
        size = len(vocabulary)
        for symbol in model.symbols:
            if not (
                symbol.isascii() and symbol.isdigit() and str(int(symbol)) == symbol and int(symbol) < size
            ):
                raise ArpaError(
                    f"the symbol {symbol!r} is no token id: unit='token' takes decimal numbers below {size:,}"
                )
        self._listed = self._by_context()
        self.start = model.start
        """The node that walks begin at: a number of a context."""

    def __getstate__(self) -> dict[str, Any]:
        return {"model": self.model, "vocabulary": self.vocabulary, "budget": self.budget}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(state["model"], state["vocabulary"], state["budget"])  # type: ignore[misc]

    def __repr__(self) -> str:
        return f"<TokenNGrams of {self.model!r}: {counted(len(self._kept), 'row')} kept>"

    @property
    def start_weight(self) -> float:
        """0: texts have no weight before their first token."""
        return 0.0

    def key(self, node: int) -> Hashable:
        """Nodes with equal keys have equal rows."""
        return node

    def step(self, node: int, token: int) -> tuple[int, float] | None:
        """The context after a token, and the token's score; None if its probability is zero."""
        score = self.model.log_prob(node, str(token))
        return None if score == -np.inf else (self.model.after(node, str(token)), score)

    def end_score(self, node: int) -> float:
        """The score of an end token."""
        return self.model.log_prob(node, END)

    def _by_context(self) -> dict[int, _Entry]:
        entries: dict[int, tuple[list[int], list[float]]] = {}
        unlisted = (BEGIN, END, UNKNOWN)
        for context, symbol, log_prob in self.model.listed():
            if symbol not in unlisted:
                ids, values = entries.setdefault(context, ([], []))
                ids.append(int(symbol))
                values.append(log_prob)
        return {at: (np.array(ids), np.array(values)) for at, (ids, values) in entries.items()}

    def _made(self, node: int) -> ScoreRow:
        chain, costs = [node], [0.0]
        while chain[-1]:
            shorter, back = self.model.shorter(chain[-1])
            chain.append(shorter)
            costs.append(costs[-1] + back)
        scores = np.full(len(self.vocabulary), self.model.log_prob(node, UNKNOWN))
        for context, cost in zip(reversed(chain), reversed(costs), strict=True):
            ids, values = self._listed.get(context, (np.zeros(0, np.int64), np.zeros(0)))
            scores[ids] = values + cost
        scores[list(self.vocabulary.eos_token_ids)] = self.end_score(node)
        return ScoreRow.of(scores.astype(np.float32))
