"""Scores of weighted languages in engines that serve many requests at once (vLLM, SGLang).

Such an engine calls a processor of logits after its own constraint has masked them, and gives it the ids of each
request's text. ``ScoredText`` follows these ids and adds the scores of one request to its row of logits. A request
names its scores by two options, ``tokenfst_scores`` and ``tokenfst_scores_weight``; ``NamedScores`` knows the weighted
languages by these names and compiles them for the model's tokens.

An error of one request must not stop the engine. If no token is both allowed and scored, or a budget is exceeded, the
error is logged, and only tokens that the constraint forbids get finite logits: the engine rejects the one that is
chosen and ends that request with an error. If nothing is forbidden, because the request has no constraint, only the end
tokens get finite logits.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import torch

from tokenfst.common.arguments import refuse
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.scores.matcher import ScoreSource, add_row
from tokenfst.errors import ArgumentValueError, ConstraintError, TokenfstError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

SCORES, WEIGHT = "tokenfst_scores", "tokenfst_scores_weight"
_log = logging.getLogger(__name__)


class Asked(NamedTuple):
    """The scores that a request names, and the weight that they are multiplied by."""

    name: str
    weight: float


def read_scores(options: Mapping[str, Any] | None, known: Mapping[str, Any]) -> Asked | None:
    """The scores of a request's options; None if it asks for none.

    Raises ArgumentValueError for a weight that is not a finite number, and ConstraintError for a name that is not
    ``known``.
    """
    name, weight = (options or {}).get(SCORES), (options or {}).get(WEIGHT, 1.0)
    if name is None:
        if WEIGHT in (options or {}):
            raise ConstraintError(f"{WEIGHT} is given without {SCORES}, which names the scores")
        return None
    if not isinstance(name, str):
        raise ConstraintError(f"{SCORES} names a text: the name of scores, not {name!r:.60}")
    if name not in known:
        names = ", ".join(map(repr, sorted(known))) or "none"
        raise ConstraintError(f"{SCORES} names {name!r}; this engine was started with {names}")
    if isinstance(weight, bool) or not isinstance(weight, int | float) or not abs(weight) < float("inf"):
        refuse("a request", WEIGHT, weight, "a finite number", ArgumentValueError)
    return Asked(name, float(weight))


class NamedScores:
    """Weighted languages by their names, compiled for one model's tokens.

    ``vocabulary_of``: returns the vocabulary with the given end tokens; requests may have their own stop tokens.
    """

    def __init__(
        self, weighted: Mapping[str, Any], vocabulary_of: Callable[[Sequence[int]], Vocabulary]
    ) -> None:
        self._weighted, self._vocabulary_of = weighted, vocabulary_of
        self._compiled: dict[tuple[str, tuple[int, ...]], ScoreSource] = {}

    def text(self, asked: Asked, ends: Sequence[int], constrained: bool) -> ScoredText:
        """The scores of a new text that any of ``ends`` may end. ``constrained``: whether the text has a constraint.
        Raises the errors of ``compile``.
        """
        key = asked.name, tuple(sorted(set(ends)))
        if key not in self._compiled:
            self._compiled[key] = compile(self._weighted[asked.name], self._vocabulary_of(key[1]))
        return ScoredText(self._compiled[key], asked.weight, constrained)


class ScoredText:
    """The scores of one request, which follow the ids of its text."""

    def __init__(self, scores: ScoreSource, weight: float, constrained: bool) -> None:
        self._matcher = scores.matcher()
        self._weight, self._constrained = weight, constrained
        self._ends = list(scores.vocabulary.eos_token_ids)
        self._ids: list[int] = []
        self.failure = ""

    def add_to(self, logits: torch.Tensor, ids: Sequence[int]) -> None:
        """Add the scores of the next token after ``ids`` to a row of logits in place."""
        masked = logits == -torch.inf
        if not self.failure:
            try:
                self._follow(ids)
                if self._matcher.is_terminated():
                    return  # the engine discards what follows
                add_row(self._matcher.row(), logits, self._weight, None)
            except TokenfstError as error:
                self._fail(str(error))
        if self.failure:
            logits.masked_fill_(~masked, -torch.inf)
        # If no token is left. Nothing is copied from the device, which would wait for it.
        instead = torch.zeros_like(masked)
        instead[self._ends] = True
        if self._constrained:
            instead = torch.where(masked.any(), masked, instead)
        logits.masked_fill_(instead & (logits == -torch.inf).all(), 0.0)

    def _follow(self, ids: Sequence[int]) -> None:
        matcher, known = self._matcher, self._ids
        if list(ids[: len(known)]) != known:
            pairs = zip(known, ids, strict=False)
            same = next(
                (place for place, (old, new) in enumerate(pairs) if old != new), min(len(known), len(ids))
            )
            matcher.rollback(len(known) - same)
            del known[same:]
        for token in ids[len(known) :]:
            if matcher.is_terminated():
                return
            if not matcher.accept_token(int(token)):
                self._fail(f"token {token} was chosen, which has no score")
                return
            known.append(int(token))

    def _fail(self, reason: str) -> None:
        self.failure = reason
        _log.error("scores of a request: %s", reason)
