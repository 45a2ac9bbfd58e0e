"""A logits processor for ``generate`` of transformers. Make a new one for each call of ``generate``."""

from __future__ import annotations

from collections.abc import Sequence

import torch

from tokenfst.common.plurals import counted
from tokenfst.compat.xgrammar.compiler import CompiledGrammar
from tokenfst.compat.xgrammar.matcher import (
    BatchGrammarMatcher,
    GrammarMatcher,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
)


class LogitsProcessor:
    """Masks the scores of each row: one grammar for all rows, or one for each. Rows that have ended are unchanged."""

    def __init__(self, compiled_grammar: CompiledGrammar | Sequence[CompiledGrammar]) -> None:
        if isinstance(compiled_grammar, CompiledGrammar):
            compiled_grammar = [compiled_grammar]
        self.compiled_grammars = list(compiled_grammar)
        self.full_vocab_size = self.compiled_grammars[0].tokenizer_info.vocab_size
        self.matchers: list[GrammarMatcher] = []
        self._length = 0
        self._batch = BatchGrammarMatcher()

    def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
        """The scores, with -inf if a token is not allowed."""
        rows, length = input_ids.shape
        if not self.matchers:
            if len(self.compiled_grammars) not in (1, rows):
                raise RuntimeError(
                    f"{counted(len(self.compiled_grammars), 'grammar')} for {counted(rows, 'row')}: give one, or one "
                    "for each"
                )
            grammars = (
                self.compiled_grammars
                if len(self.compiled_grammars) == rows
                else self.compiled_grammars * rows
            )
            self.matchers = [GrammarMatcher(grammar) for grammar in grammars]
        elif rows != len(self.matchers) or length != self._length + 1:
            raise RuntimeError("a LogitsProcessor is for one call of generate: make a new one for each")
        else:
            for matcher, token in zip(self.matchers, input_ids[:, -1].tolist(), strict=True):
                if not matcher.is_terminated() and not matcher.accept_token(token):
                    raise RuntimeError(
                        f"token {token} is not allowed, and was not masked: is a processor after this one?"
                    )
        self._length = length
        going = [row for row, matcher in enumerate(self.matchers) if not matcher.is_terminated()]
        if going:
            bitmask = allocate_token_bitmask(rows, self.full_vocab_size)
            self._batch.batch_fill_next_token_bitmask([self.matchers[row] for row in going], bitmask, going)
            apply_token_bitmask_inplace(scores, bitmask.to(scores.device), indices=going)
        return scores
