"""``top_labels``: exact best-first search for the most probable labels of a set that is too large to score.

No label is more probable than any of its prefixes. So prefixes wait in a heap. The best ones are expanded: they are
scored, and their continuations are put into the heap. A complete label that is better than everything in the heap is
the next best of all. Several prefixes are expanded in one call of the model, as a tree after the prompt. Labels are
walked in their token automaton, so the set may have any size.

Cost: about as many calls as labels have tokens, if the model is certain; for each prefix a mask, and a heap entry for
each token that it allows. Rejected: beam search, which may lose the best label early without noticing.
"""

from __future__ import annotations

from collections.abc import Sequence
from heapq import heappop, heappush
from typing import Any

import numpy as np

from tokenfst.automata.pieces.taxonomy import choices
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.labels.tries import (
    LeadingSpace,
    Tokenization,
    checked_tokenization,
    label_texts,
    model_over,
)
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, unpack_bitmask
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.decoding.models.language_model import TreeSession, next_log_probs, one_prompt
from tokenfst.decoding.models.token_tree import TokenTree
from tokenfst.decoding.models.tree_session import tree_session
from tokenfst.errors import BudgetExceeded, DecodingError, MissingDependencyError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error

_COMPLETE = -1


@checked_but("prompt", "labels")
def top_labels(
    model: Any,
    prompt: Sequence[int],
    labels: Sequence[str],
    vocabulary: Vocabulary,
    count: int,
    *,
    tokenization: Tokenization = "canonical",
    leading_space: LeadingSpace = "none",
    end: bool = True,
    beams: int = 16,
    budget: Budget | None = None,
    width: int | None = None,
) -> list[tuple[str, float]]:
    """The ``count`` most probable labels (or all, if there are fewer), best first, each with the ln of its probability,
    as in ``LabelScores.joint``. Exact.

    Expands the ``beams`` most probable prefixes in each call of the model, until no prefix is more probable than the
    labels found. Labels of probability zero are left out, and the list is empty if all are. With
    ``tokenization="all"`` a label is scored by its most probable token sequence. Raises the errors of
    ``label_probabilities``; ``BudgetExceeded`` beyond ``budget.positions`` prefixes.
    """
    if count < 1 or beams < 1:
        raise DecodingError(f"count and beams must be 1 or more: {count}, {beams}")
    checked_tokenization(tokenization, leading_space)
    language_model = model_over(model, vocabulary, width)
    limits = budget or Budget()
    labels = label_texts("top_labels", labels)
    language = choices(labels, leading_space=leading_space, budget=limits)
    automaton = (
        compile(language, vocabulary, limits)
        if tokenization == "all"
        else compile(language, vocabulary, limits, tokenization="canonical")
    )
    session = tree_session(language_model.start([one_prompt(prompt)]))
    stops = list(vocabulary.eos_token_ids) if end else []
    skip = len(" ") if leading_space == "required" else 0
    search = _Search(session, automaton.matcher(), vocabulary, stops, limits)
    found: dict[str, float] = {}
    while len(found) < count:
        best = search.next(beams)
        if best is None:
            break
        tokens, value = best
        found.setdefault(vocabulary.decode(tokens).decode()[skip:], value)
    return list(found.items())


class _Search:
    """Prefixes of labels, most probable ones first.

    The heap has (-ln p, number, parent, token) for prefixes that wait; for complete labels, their node and
    ``_COMPLETE``.
    """

    def __init__(
        self,
        session: TreeSession,
        matcher: AnyMatcher,
        vocabulary: Vocabulary,
        stops: list[int],
        budget: Budget,
    ) -> None:
        self._session = session
        self._stops = stops
        self._budget = budget
        self._ends = frozenset(vocabulary.eos_token_ids)
        self._mask = allocate_token_bitmask(1, len(vocabulary))
        self._size = len(vocabulary)
        self._tree = TokenTree()
        self._matchers = {-1: matcher}
        self._heap: list[tuple[float, int, int, int]] = []
        self._pushed = 0
        self._expand(-1, 0.0, session.logits[0])

    def next(self, beams: int) -> tuple[list[int], float] | None:
        """The next best token sequence, and its ln p; None after the last one."""
        while self._heap:
            if self._heap[0][3] == _COMPLETE:
                value, _, node, _ = heappop(self._heap)
                return self._tree.path(node), -value
            batch: list[tuple[float, int, int, int]] = []
            while self._heap and len(batch) < beams and self._heap[0][3] != _COMPLETE:
                batch.append(heappop(self._heap))
            parents, tokens = [each[2] for each in batch], [each[3] for each in batch]
            scores = self._session.extend_tree(parents, tokens)[0]
            for node, (value, _, parent, token), row in zip(
                self._tree.add(parents, tokens), batch, scores, strict=True
            ):
                matcher = self._matchers[parent].fork()
                matcher.accept_token(token)
                self._matchers[node] = matcher
                self._expand(node, -value, row)
            if len(self._tree) > self._budget.positions:
                raise BudgetExceeded("positions", self._budget.positions, "the search for the best labels")
        return None

    def _expand(self, node: int, value: float, scores: torch.Tensor) -> None:
        log_probs = next_log_probs(scores.unsqueeze(0))[0].double()
        matcher = self._matchers[node]
        if matcher.is_accepting():
            stop = float(log_probs[self._stops].logsumexp(0)) if self._stops else 0.0
            self._push(value + stop, node, _COMPLETE)
        matcher.fill_next_token_bitmask(self._mask, 0)
        allowed = np.flatnonzero(unpack_bitmask(self._mask[0], self._size)).tolist()
        tokens = [token for token in allowed if token not in self._ends]
        for token, each in zip(tokens, log_probs[tokens].tolist(), strict=True):
            self._push(value + each, node, token)

    def _push(self, value: float, node: int, token: int) -> None:
        if value > float("-inf"):
            self._pushed += 1
            heappush(self._heap, (-value, self._pushed, node, token))
