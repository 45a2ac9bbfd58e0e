"""``TextRows``: constraint state for engines that pass the whole token sequence and ask for the next mask.

Such engines call a function with the ids, of the prompt and of the generated text, and with the logits. Between two
calls they may append a token; go back and try another one (speculation, rewinding); ask again about the same ids; or
continue for some calls after the end of a text. ``TextRows`` follows all of this by the ids alone: after the prompt
they determine the state of a text (``RowStates``).

Invariant: a row of masks is that of the text of its row of ids. After the end of the text, an end token or the last of
``max_new_tokens``, it allows the end tokens only. Ids that do not start with the prompt, or that grew by several
tokens, belong to another request: MatcherError. A token that the constraint forbids raises LogitsError when it arrives.

In a step that other requests share, an error must not be raised: ``masks_or_end`` stores it, and its request ends.

With ``scores``, tokens without a score are forbidden too, and ``apply`` adds the scores of the others, ``weight``
times.

Cost: a comparison of the ids with those of the last call (numpy), and for each row an accepted token and a mask, all
masks in one native call.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from tokenfst.common.arguments import refuse
from tokenfst.common.token_ids import check_width
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.masks.bitmask import apply_and_find_empty, bitmask_from_ids, fill_bitmasks
from tokenfst.decoding.matchers.prefixes import RowStates
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.decoding.scores.matcher import ScoreSource
from tokenfst.decoding.scores.rows import ScoreRow
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import (
    ArgumentValueError,
    LogitsError,
    MatcherError,
    TokenfstError,
    VocabularyMismatchError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_log = logging.getLogger(__name__)
Automaton: TypeAlias = TokenAutomaton | CanonicalAutomaton
Ids: TypeAlias = npt.NDArray[Any]


class TextRows:
    """The texts of one request, with a row and an automaton for each; all share a vocabulary.

    ``name``: the name of the caller in messages. ``remedy``: advice if the model has fewer scores than the vocabulary
    has tokens. ``goes_back``: whether the engine may remove tokens, or ask again. Raises TokenLimitError if no text is
    complete within ``max_new_tokens``.
    """

    def __init__(
        self,
        automata: Sequence[Automaton],
        max_new_tokens: int | None,
        *,
        name: str,
        remedy: str,
        goes_back: bool = True,
        scores: ScoreSource | None = None,
        weight: float = 1.0,
    ) -> None:
        if not automata:
            refuse(name, "automata", automata, "at least one automaton")
        vocabulary = automata[0].vocabulary
        for row, each in enumerate(automata):
            if each.vocabulary != vocabulary:
                raise VocabularyMismatchError(
                    f"{name}: the automaton of row {row} was compiled for another vocabulary than that of row 0"
                )
        check_scores(name, vocabulary, scores, weight)
        self._scorers: list[Any] = [] if scores is None else [scores.matcher() for _ in automata]
        self._weight = np.float32(weight)
        self._rows: list[ScoreRow | None] = [None] * len(automata)
        self._matchers = [start_matcher(each, max_new_tokens) for each in automata]
        self.vocab_size = len(vocabulary)
        self._states = RowStates(self._matchers, self.vocab_size, 0)
        self._scored = RowStates(self._scorers, self.vocab_size, 0)
        self._only_end = bitmask_from_ids(vocabulary.eos_token_ids, self.vocab_size)
        self._name, self._remedy, self._goes_back = name, remedy, goes_back
        self._prompts: Ids | None = None
        self.error: Exception | None = None

    def masks_or_end(self, masks: Callable[[Ids], Ids], ids: Ids) -> Ids:
        """Return ``masks(ids)``, where ``masks`` is one of the two methods below. If it raises, the error is stored in
        ``error`` and logged, and from then on only end tokens are allowed.
        """
        if self.error is None:
            try:
                return masks(ids)
            except Exception as error:  # whatever it is, the other requests go on
                self.error = error
                trace = None if isinstance(error, TokenfstError) else error
                _log.error("a constraint failed, and its request ends: %s", error, exc_info=trace)
        self._rows = [None] * len(self._rows)
        return np.repeat(self._only_end[None], len(ids), axis=0)

    def masks_after_prompts(self, ids: Ids) -> Ids:
        """The masks after rows of ids that start with the prompts; those of the first call are the prompts."""
        if self._prompts is None:
            self._prompts = ids.copy()
            self._states = RowStates(self._matchers, self.vocab_size, ids.shape[1])
            self._scored = RowStates(self._scorers, self.vocab_size, ids.shape[1])
        return self.masks(ids)

    def masks(self, ids: Ids) -> Ids:
        """The masks after rows of ids, of shape (rows, words). Without an earlier call of ``masks_after_prompts`` the
        ids are the generated ones. The next call overwrites the result.
        """
        states = self._states
        if not states.step(ids):
            self._resume(ids)
        bitmask = states.bitmask
        matchers: list[Any] = states.matchers
        if len(matchers) == 1:
            matchers[0].fill_next_token_bitmask(bitmask, 0)
        else:
            fill_bitmasks(matchers, bitmask)
        for row, matcher in enumerate(matchers):
            if matcher.is_terminated() or matcher.max_tokens_left == 0:
                bitmask[row] = self._only_end
            elif states.is_dead(row):
                token = ids[row, states.prompt + matcher.num_tokens]
                raise LogitsError(
                    f"token {token} was chosen in row {row}, which the constraint does not allow: look for another "
                    "logits processor, or NaN in the model's logits"
                )
        if self._scorers:
            self._follow_scores(ids, bitmask)
        return bitmask

    def _follow_scores(self, ids: Ids, bitmask: Ids) -> None:
        """Forbid what has no score, and keep each row's scores for ``apply``."""
        scored: Any = self._scored
        if not scored.step(ids):
            scored.follow(ids)
        for row, matcher in enumerate(scored.matchers):
            over = np.array_equal(bitmask[row], self._only_end) or scored.is_over(row)
            found = self._rows[row] = None if over else matcher.row()
            if found is not None:
                bitmask[row] &= found.allowed
                if not bitmask[row].any():
                    raise nothing_scored(f" of row {row}")

    def added(self, row: int) -> npt.NDArray[np.float32] | None:
        """The weighted scores that belong to the last masks of a row and are added to its logits, float32 (V,); None if
        there are none.
        """
        found = self._rows[row]
        return None if found is None else found.scores * self._weight

    def _resume(self, ids: Ids) -> None:
        """Follow rows that are not those of the last call and one token more each."""
        states, prompts = self._states, self._prompts
        if prompts is not None and not np.array_equal(ids[:, : prompts.shape[1]], prompts):
            raise self._other()
        if states.width >= 0 and (ids.shape[1] > states.width + 1 or not self._goes_back):
            raise self._other()
        states.follow(ids)

    def check_width(self, width: int) -> None:
        """Raise VocabularyMismatchError for logits of fewer tokens than the vocabulary has."""
        check_width(width, self.vocab_size, vocabulary="the constraint's vocabulary", remedy=self._remedy)

    def apply(self, scores: Any, masks: Ids) -> None:
        """Add the scores to rows of logits on the CPU and mask them, in place. Raises LogitsError if no finite logit is
        left.
        """
        for place, each in enumerate(scores[None] if scores.ndim == 1 else scores):
            more = self.added(place)
            if more is not None:
                each[: self.vocab_size] += more.astype(each.dtype)
        row = apply_and_find_empty(scores, masks, vocab_size=self.vocab_size)
        if row is not None:
            raise LogitsError(
                f"every token that the constraint allows has the logit -inf in row {row}: look for another logits "
                "processor, or a logit_bias, that forbids them"
            )

    def _other(self) -> MatcherError:
        return MatcherError(
            f"a {self._name} serves one completion, and these ids are of another one: make another for the next"
        )


def check_scores(name: str, vocabulary: Vocabulary, scores: ScoreSource | None, weight: float) -> None:
    """Raise VocabularyMismatchError for scores of another vocabulary, and ArgumentValueError for a weight that is not
    finite. ``name``: the name of the class in messages.
    """
    if not abs(weight) < np.inf:
        refuse(name, "scores_weight", weight, "finite", ArgumentValueError)
    if scores is not None and scores.vocabulary != vocabulary:
        raise VocabularyMismatchError(
            f"{name}: the scores were compiled for another vocabulary than the automaton"
        )


def nothing_scored(where: str = "") -> LogitsError:
    """The error if no allowed token has a score."""
    return LogitsError(
        f"no token{where} is allowed by the constraint and has a score: multiply the weighted language by the "
        "constraint before it is compiled (weighted & language)"
    )
