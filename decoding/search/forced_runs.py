"""Runs of forced tokens, which a decoder takes at once.

An end token without an alternative is part of the run: the text ends. Cost: a mask for each token of the run, and one
for the choice after it.
"""

from __future__ import annotations

from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, bitmask_from_ids
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class ForcedRuns:
    """Takes forced tokens from matchers with a limit of ``limit`` tokens."""

    def __init__(self, vocabulary: Vocabulary, limit: int) -> None:
        self._limit = limit
        self._mask = allocate_token_bitmask(1, len(vocabulary))
        self._end = vocabulary.eos_token_ids[0]
        self._only_end = bitmask_from_ids([self._end], len(vocabulary))

    def is_finished(self, matcher: AnyMatcher) -> bool:
        """Whether no more tokens can be taken: after an end token, or at the limit."""
        return matcher.is_terminated() or matcher.num_tokens >= self._limit

    def take(self, matcher: AnyMatcher) -> list[int]:
        """Advance by all tokens without an alternative; returns them."""
        if self.is_finished(matcher):
            return []
        run = matcher.forced_tokens()[: self._limit - matcher.num_tokens]
        matcher.accept_tokens(run)
        if not self.is_finished(matcher) and matcher.is_accepting():
            matcher.fill_next_token_bitmask(self._mask, 0)
            if (self._mask[0] == self._only_end).all():
                matcher.accept_token(self._end)
                run.append(self._end)
        return run
