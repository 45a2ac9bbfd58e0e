"""Shallow fusion with transformers: a logits processor that adds the scores of a weighted language.

``model.generate(..., logits_processor=[ScoresLogitsProcessor(compile(model, vocabulary), weight=0.3)])`` works in every
mode in which a ``ConstraintLogitsProcessor`` works, and together with one, in any order: a token is forbidden if either
forbids it. Together they may leave no token. To exclude that, multiply the weighted language by the constraint before
compiling it (``weighted & language``).

Rows are tracked as in ``ConstraintLogitsProcessor``, so a finished row, or a row whose prefix has no weight, may only
take the end token. Cost per step: that of ``ConstraintLogitsProcessor`` and one addition for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tokenfst.common.arguments import checked, refuse
from tokenfst.decoding.matchers.prefixes import RowStates
from tokenfst.decoding.scores.matcher import ScoreMatcher, ScoreSource, add_row
from tokenfst.decoding.search.logits_processor import ConstraintLogitsProcessor
from tokenfst.errors import ArgumentValueError, VocabularyMismatchError


class ScoresLogitsProcessor(ConstraintLogitsProcessor):
    """Adds ``weight`` times the scores of a compiled weighted language or n-gram model to the logits of generated text.

    ``scores``: one for all rows, or one for each prompt of the batch, in order; all over the model's vocabulary.
    ``check_nan``: raise ``LogitsError`` if the logit of an allowed token is NaN.
    """

    @checked
    def __init__(
        self, scores: ScoreSource | Sequence[ScoreSource], weight: float = 1.0, *, check_nan: bool = True
    ) -> None:
        given: list[Any] = list(scores) if isinstance(scores, Sequence) else [scores]
        if not given:
            refuse("ScoresLogitsProcessor", "scores", scores, "at least one", ArgumentValueError)
        if not abs(weight) < np.inf:
            refuse("ScoresLogitsProcessor", "weight", weight, "finite", ArgumentValueError)
        vocabulary = given[0].vocabulary
        for row, each in enumerate(given):
            if each.vocabulary.fingerprint != vocabulary.fingerprint:
                raise VocabularyMismatchError(
                    f"ScoresLogitsProcessor: scores[{row}] was compiled for another vocabulary than scores[0]"
                )
        self._anew = partial(type(self), scores, weight, check_nan=check_nan)
        self.weight = weight
        self._check_nan, self._threads = check_nan, None
        self._follow(vocabulary, [each.matcher() for each in given])

    def _weigh(self, states: RowStates, masked: Any) -> None:
        for row, matcher in enumerate(states.matchers):
            if isinstance(matcher, ScoreMatcher) and not states.is_over(row):
                add_row(matcher.row(), masked, self.weight, row)
