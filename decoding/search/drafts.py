"""Drafts of speculative decoding: trees of tokens that may come next, with the masks along them.

Either a small model grows the draft level by level: it draws each node's children from the masked and filtered
distribution after the node. Or a ``Proposer`` writes the draft, which predicts text without a model, for instance by
copying from the prompt.

Invariants. Every token of a draft is allowed at its position. The mask of a position is computed once and shared by the
draft, which draws by it, and the target, which verifies by it. Tokens without an alternative are appended at once and
are not choices.

Cost: a fork of the matcher and a mask for each node. The small model scores one level per call; the last level is
scored only if a part of it is kept.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from tokenfst.common.arguments import refuse, whole
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.decoding.models.language_model import LanguageModel
from tokenfst.decoding.models.sampling import Sampling
from tokenfst.decoding.models.token_tree import TokenTree
from tokenfst.decoding.models.tree_session import tree_session
from tokenfst.decoding.search.forced_runs import ForcedRuns
from tokenfst.errors import DecodingError, MissingDependencyError, ModelError

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error


@runtime_checkable
class Proposer(Protocol):
    """A source of drafts without a model."""

    def propose(self, tokens: Sequence[int]) -> Iterable[Sequence[int]]:
        """Token sequences that may follow ``tokens`` (the prompt and the generated text), most likely first."""


@dataclass(frozen=True)
class PromptLookup:
    """Proposes the tokens that followed earlier occurrences of the last ``ngram`` tokens, most recent first.

    At most ``branches`` continuations of at most ``length`` tokens (Saxena, "Prompt lookup decoding", 2023).
    """

    ngram: int = 2
    length: int = 8
    branches: int = 1

    def __post_init__(self) -> None:
        for name in ("ngram", "length", "branches"):
            object.__setattr__(self, name, whole("PromptLookup", name, getattr(self, name)))
        if min(self.ngram, self.length, self.branches) < 1:
            raise DecodingError(f"ngram, length and branches must be 1 or more: {self}")

    def propose(self, tokens: Sequence[int]) -> list[Sequence[int]]:
        """The proposed continuations. One pass over the tokens."""
        if not isinstance(tokens, Sequence) and not getattr(tokens, "shape", ()):
            refuse("PromptLookup.propose", "tokens", tokens, "a sequence of token ids")
        tail = list(tokens[-self.ngram :])
        found: list[Sequence[int]] = []
        for end in range(len(tokens) - 1, self.ngram - 1, -1):
            if list(tokens[end - self.ngram : end]) == tail:
                found.append(tokens[end : end + self.length])
                if len(found) == self.branches:
                    break
        return found


class DraftTree:
    """The draft tokens, the masks of their positions, and the draws at each position.

    ``draws``: by position (a node, -1 for the root), the children in the order in which they were drawn, each with the
    distribution that it was drawn from, float64 (V,); None for a child that was proposed, not drawn. ``ends``: by
    child, the last node of the run without alternatives that begins with it.
    """

    def __init__(self, matcher: AnyMatcher, vocab_size: int, runs: ForcedRuns) -> None:
        self.tree = TokenTree()
        self.draws: dict[int, list[tuple[int, torch.Tensor | None]]] = {}
        self.ends: dict[int, int] = {}
        self._vocab_size = vocab_size
        self._runs = runs
        self._matchers = {-1: matcher}
        self._masks: dict[int, npt.NDArray[np.int32]] = {}

    def is_finished(self, place: int) -> bool:
        """Whether the text ends at this position."""
        return self._runs.is_finished(self._matchers[place])

    def grow(self, place: int, token: int, drawn_from: torch.Tensor | None = None) -> int:
        """Add an allowed token and the tokens without alternatives after it; returns the resulting position."""
        child = end = self._append(place, token, drawn_from)
        matcher = self._matchers[child]
        for forced in self._runs.take(matcher):
            end = self.tree.append(end, forced)
        self._matchers[end] = matcher
        self.ends[child] = end
        return end

    def matcher_at(self, place: int) -> AnyMatcher:
        """The matcher at this position; must not be advanced."""
        return self._matchers[place]

    def masked(self, place: int, scores: torch.Tensor) -> torch.Tensor:
        """A copy of the scores at a position, of shape (width,), as (1, V): forbidden tokens have -inf."""
        mask = self._masks.get(place)
        if mask is None:
            mask = self._masks[place] = allocate_token_bitmask(1, self._vocab_size)
            self._matchers[place].fill_next_token_bitmask(mask, 0)
        found = scores[: self._vocab_size].unsqueeze(0).clone()
        apply_token_bitmask_inplace(found, mask, check_nan=False)
        return found

    def propose(self, sequences: Iterable[Sequence[int]]) -> None:
        """Grow the allowed prefixes of several token sequences from the root, and fill the masks along them, in one
        walk of their tree.
        """
        root = self._matchers[-1]
        tree, _ = TokenTree.of_sequences(
            takewhile(lambda token: 0 <= token < self._vocab_size, sequence) for sequence in sequences
        )
        masks = allocate_token_bitmask(len(tree) + 1, self._vocab_size)
        root.traverse_draft_tree(*tree.links(), masks)
        self._masks[-1] = masks[:1]
        places = {-1: -1}
        for node, (parent, token) in enumerate(zip(tree.parents, tree.tokens, strict=True)):
            place = places.get(parent)
            if place is None or self.is_finished(place):
                continue
            if masks[parent + 1, token >> 5] >> (token & 31) & 1:
                places[node] = self._append(place, token, None)
                self._masks[places[node]] = masks[node + 1 : node + 2]

    def _append(self, place: int, token: int, drawn_from: torch.Tensor | None) -> int:
        matcher = self._matchers[place].fork()
        matcher.accept_token(token)
        child = self.tree.append(place, token)
        self._matchers[child] = matcher
        self.ends[child] = child
        self.draws.setdefault(place, []).append((child, drawn_from))
        return child


class LaggingSession:
    """A session of one row with a draft tree after it. The row may lag behind the settled tokens: the next call of the
    model also reads those that are missing (``unseen``). ``calls`` counts the model's calls.
    """

    def __init__(self, model: LanguageModel, prompt: list[int]) -> None:
        self._session = tree_session(model.start([prompt]))
        self._device = model.device
        self.calls = 1
        self.unseen: list[int] = []
        self._ahead = 0
        self._given = 0
        self._scores: list[torch.Tensor] = []

    def catch_up(self) -> None:
        """Feed the unseen tokens to the model now."""
        if self.unseen:
            ids = torch.tensor([self.unseen], device=self._device)
            self._session.extend(torch.zeros(1, dtype=torch.long, device=self._device), ids)
            self.calls += 1
            self.unseen = []

    def score(self, tree: TokenTree) -> None:
        """Feed the unseen tokens and all new nodes of the tree to the model, in one call."""
        parents, tokens = [], []
        if not self._scores:
            self._ahead = len(self.unseen)
            parents, tokens = list(range(-1, self._ahead - 1)), list(self.unseen)
        for node in range(self._given, len(tree)):
            parents.append(tree.parents[node] + self._ahead)
            tokens.append(tree.tokens[node])
        if tokens:
            self._scores.append(self._session.extend_tree(parents, tokens)[0])
            self.calls += 1
        self._given = len(tree)

    def scores_at(self, place: int) -> torch.Tensor:
        """The scores after a node of the tree, or with -1 after the settled tokens: (width,)."""
        index = self._ahead + place
        if index < 0:
            return self._session.logits[0]
        for scores in self._scores:
            if index < len(scores):
                return scores[index]
            index -= len(scores)
        raise ModelError(f"node {place} of the draft was not scored")

    def settle(self, tree: TokenTree, path: list[int], more: list[int]) -> None:
        """Settle the nodes of ``path`` and then ``more``; the rest of the tree is dropped."""
        known = [node for node in path if node < self._given]
        if self._scores:
            self._session.keep([*range(self._ahead), *(self._ahead + node for node in known)])
            self.unseen = []
        self.unseen += [tree.tokens[node] for node in path[len(known) :]] + more
        self._ahead = self._given = 0
        self._scores = []


def draw_tree(
    tree: DraftTree,
    model: LaggingSession,
    branching: Sequence[int],
    sampling: Sampling,
    generator: torch.Generator | None,
) -> None:
    """Grow a tree by a model's distributions: ``branching[d]`` children at each position of depth d, drawn without
    replacement, or greedily the best. The model does not score the last level.
    """
    model.catch_up()
    places = [-1]
    for level, width in enumerate(branching):
        if level:
            model.score(tree.tree)
        ends = []
        for place in places:
            for token, drawn_from in _draws(
                tree.masked(place, model.scores_at(place)), width, sampling, generator
            ):
                ends.append(tree.grow(place, token, drawn_from))
        places = [end for end in ends if not tree.is_finished(end)]
        if not places:
            break


def _draws(
    scores: torch.Tensor, width: int, sampling: Sampling, generator: torch.Generator | None
) -> list[tuple[int, torch.Tensor | None]]:
    """At most ``width`` different tokens of masked scores (1, V), in order, each with the distribution that it is
    drawn from.

    That is the first distribution without the tokens before it.
    """
    if not sampling.do_sample:
        best = scores[0].topk(min(width, scores.shape[1]))
        return [
            (token, None)
            for token, score in zip(best.indices.tolist(), best.values.tolist(), strict=True)
            if score > float("-inf")
        ]
    left = sampling.probabilities(scores)[0]
    # Sorted by p / Exp(1), tokens are in the order of draws without replacement (Efraimidis and Spirakis, 2006).
    keys = left / torch.empty_like(left).exponential_(generator=generator)
    found: list[tuple[int, torch.Tensor | None]] = []
    for token in keys.topk(min(width, int((left > 0).sum()))).indices.tolist():
        found.append((token, left))
        left = left.clone()
        left[token] = 0.0
        left = left / left.sum()
    return found
