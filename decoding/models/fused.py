"""``FusedModel``: shallow fusion of a language model with weighted languages, for every decoder that takes a model.

A ``FusedModel`` is a language model whose logits are those of another model plus ``weight`` times the scores of a
weighted language after the text that each row has generated. Decoders need no changes, so the plain loop, speculation,
beam search, exact lengths, labels and particles all work with it.

Invariant: the score of a row's token sequence is the sum of the model's score and ``weight`` times that of the weighted
language, which telescopes to the text's log weight. Prompts are not scored. A token that the weighted language forbids
has the logit -inf. After such a token all logits of the row are -inf, so a decoder that continues the row raises
``LogitsError``. After an end token the model's logits are unchanged.

Cost per step and row: a step of the weighted language, a mask and an addition.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np

from tokenfst.common.arguments import checked, checked_but, refuse
from tokenfst.common.token_ids import check_width, outside
from tokenfst.decoding.models.language_model import (
    Prompts,
    Session,
    as_language_model,
    prompt_rows,
    start_after,
)
from tokenfst.decoding.scores.matcher import ScoreMatcher, ScoreSource, add_row
from tokenfst.errors import (
    ArgumentValueError,
    MissingDependencyError,
)

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error


class FusedModel:
    """``model`` plus ``weight`` times the scores of a compiled weighted language or n-gram model.

    ``model``, ``width``: the arguments of ``as_language_model``.
    """

    @checked_but("model")
    def __init__(
        self,
        model: Any,
        scores: ScoreSource,
        weight: float = 1.0,
        *,
        width: int | None = None,
    ) -> None:
        self.model = as_language_model(model, width)
        if not abs(weight) < np.inf:
            refuse("FusedModel", "weight", weight, "finite", ArgumentValueError)
        check_width(self.model.width, len(scores.vocabulary), vocabulary="the weighted language's vocabulary")
        self.scores, self.weight = scores, float(weight)

    @property
    def width(self) -> int:
        """The number of scores per row."""
        return self.model.width

    @property
    def device(self) -> torch.device:
        """The device of the model's scores."""
        return self.model.device

    @checked
    def start(self, prompts: Prompts) -> FusedSession:
        """A session with a row for each prompt."""
        rows = prompt_rows(prompts)
        return self.start_after(rows, [[] for _ in rows])

    @checked
    def start_after(self, prompts: list[list[int]], written: list[list[int]]) -> FusedSession:
        """A session with a row for each prompt followed by the text ``written`` after it. Only the latter is scored."""
        session = start_after(self.model, prompts, written)
        rows = [_Row(self.scores.matcher()) for _ in prompts]
        for row, tokens in zip(rows, written, strict=True):
            for token in tokens:
                row.take(token)
        return FusedSession(session, rows, self.weight)


class _Row:
    """A row's matcher, and how many tokens came after one that it refused or that ended the text."""

    __slots__ = ("matcher", "past_end")

    def __init__(self, matcher: ScoreMatcher[Any], past_end: int = 0) -> None:
        self.matcher, self.past_end = matcher, past_end

    def fork(self) -> _Row:
        return _Row(self.matcher.fork(), self.past_end)

    def take(self, token: int) -> None:
        size = len(self.matcher.automaton.vocabulary)
        if token < 0:
            raise outside(token, size)
        over = self.past_end or self.matcher.is_terminated() or token >= size
        if over or not self.matcher.accept_token(token):
            self.past_end += 1

    def rewind(self, count: int) -> None:
        own = max(count - self.past_end, 0)
        self.past_end -= count - own
        self.matcher.rollback(own)

    def weigh(self, logits: torch.Tensor, weight: float) -> None:
        """Add the scores of the possible next tokens, in place."""
        if self.matcher.is_terminated():
            return
        if self.past_end:
            logits.fill_(-torch.inf)
        else:
            add_row(self.matcher.row(), logits, weight, None)


class FusedSession:
    """The rows of a ``FusedModel``."""

    def __init__(self, session: Session, rows: list[_Row], weight: float) -> None:
        self._session, self._rows, self._weight = session, rows, weight
        self.logits = session.logits.clone()
        for row, logits in zip(rows, self.logits, strict=True):
            row.weigh(logits, weight)

    def extend(
        self, parents: torch.Tensor, tokens: torch.Tensor, lengths: torch.Tensor | None = None
    ) -> torch.Tensor:
        """Like ``Session.extend``."""
        scores = self._session.extend(parents, tokens, lengths).clone()
        taken: list[list[int]] = (tokens if tokens.dim() == 2 else tokens.unsqueeze(1)).tolist()
        heirs = Counter(chosen := parents.tolist())
        self._rows = [self._rows[at].fork() if heirs[at] > 1 else self._rows[at] for at in chosen]
        counts = [scores.shape[1]] * len(taken) if lengths is None else lengths.tolist()
        for number, (row, new) in enumerate(zip(self._rows, taken, strict=True)):
            for place, token in enumerate(new[: counts[number]]):
                row.take(token)
                row.weigh(scores[number, place], self._weight)
        last = torch.tensor(counts, device=scores.device) - 1
        self.logits = scores[torch.arange(len(taken), device=scores.device), last]
        return scores

    def rewind(self, count: int) -> None:
        """Like ``Session.rewind``."""
        self._session.rewind(count)
        for row in self._rows:
            row.rewind(count)
