"""Runs of tokens without a choice: taken at once, wherever a decoder stands.

The end token counts: where a text can only end, it ends. Cost: a mask for each token of the run, and one for the choice
after it.
"""

from __future__ import annotations

from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, bitmask_from_ids
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class ForcedRuns:
    """Takes them, from matchers whose budget is ``limit`` tokens."""

    def __init__(self, vocabulary: Vocabulary, limit: int) -> None:
        self._limit = limit
        self._mask = allocate_token_bitmask(1, len(vocabulary))
        self._end = vocabulary.eos_token_ids[0]
        self._only_end = bitmask_from_ids([self._end], len(vocabulary))

    def is_finished(self, matcher: AnyMatcher) -> bool:
        """Whether there is nothing more to take: after an end token, or at the limit."""
        return matcher.is_terminated() or matcher.num_tokens >= self._limit

    def take(self, matcher: AnyMatcher) -> list[int]:
        """Go on by all tokens that have no alternative; return them."""
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
