"""MLX-LM: a logits processor for its loops, and the vocabulary of its tokenizers.

``generate_step`` and the functions built on it call a processor with the ids so far and one row of logits. The
batch generator calls one processor for each sequence. Speculative decoding calls it for drafts and for their
verification, and goes back in between. All of them begin a step before they return the token of the previous one.
So a token that the constraint does not allow is refused before it is returned, except for the last one of a
speculative text.

MLX applies the mask where the logits are: V / 8 bytes are passed, and unpacked there. The model's step is started
before the mask is computed, so the two overlap. Checked with mlx-lm 0.32.2 and mlx 0.32.4 (docs/engines/mlx.md).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenfst.common.arguments import checked
from tokenfst.decoding.engines.shared.text_rows import Automaton, Ids, TextRows
from tokenfst.decoding.scores.matcher import ScoreSource
from tokenfst.errors import MaskBufferError, MissingDependencyError
from tokenfst.tokenizers.adapters.huggingface import from_huggingface
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import mlx.core as mx
except ImportError as error:
    raise MissingDependencyError('MLXConstraint needs mlx: pip install "tokenfst[mlx]"') from error


def mlx_vocabulary(tokenizer: Any, size: int | None = None) -> Vocabulary:
    """The vocabulary of a tokenizer that ``mlx_lm.load`` returns; all tokens that end a text there are end tokens.

    ``size``: as in ``Vocabulary.from_huggingface``, whose errors it raises.
    """
    ends = getattr(tokenizer, "eos_token_ids", None)
    return from_huggingface(tokenizer, size=size, eos_token_id=sorted(ends) if ends else None)


class MLXConstraint:
    """A logits processor for one text, which, without the prompt, is in the automaton's language.

    ``max_new_tokens``: the text is complete within this many tokens; pass the same ``max_tokens`` to ``generate``.
    Raises TokenLimitError if no text is short enough. The ids of the first call are the prompt. ``scores``: a compiled
    weighted language, grammar or n-gram model over the same vocabulary, whose scores are added ``scores_weight`` times;
    tokens without a score are forbidden.

    ``in_batch``: for a sequence of a batch generator, whose step an exception would end for all sequences. An error is
    stored and logged instead, the sequence's next token is an end token, and ``check()`` raises the error.
    """

    @checked
    def __init__(
        self,
        automaton: Automaton,
        max_new_tokens: int | None = None,
        *,
        scores: ScoreSource | None = None,
        scores_weight: float = 1.0,
        in_batch: bool = False,
    ) -> None:
        self._in_batch = in_batch
        self._texts = TextRows(
            [automaton],
            max_new_tokens,
            name="MLXConstraint",
            remedy="use mlx_vocabulary(tokenizer)",
            scores=scores,
            weight=scores_weight,
        )
        size = self._texts.vocab_size
        self._tail = np.uint32((1 << (size % 32 or 32)) - 1)

    def __call__(self, tokens: Any, logits: Any) -> Any:
        """The logits, shape (1, V), those of forbidden tokens at -inf; ``tokens``: all ids so far, 1-D."""
        if logits.ndim != 2 or logits.shape[0] != 1:
            raise MaskBufferError(
                f"MLXConstraint: logits must be one row, of shape (1, V), not {logits.shape}; a batch takes a "
                "processor for each sequence"
            )
        self._texts.check_width(logits.shape[1])
        mx.async_eval(logits)
        ids = np.array(tokens)[None]
        if self._in_batch:
            mask = self._texts.masks_or_end(self._texts.masks_after_prompts, ids)
        else:
            mask = self._texts.masks_after_prompts(ids)
        more = self._texts.added(0)
        if more is not None:
            wide = mx.pad(mx.array(more), (0, logits.shape[1] - len(more)))
            logits = (logits.astype(mx.float32) + wide).astype(logits.dtype)
        return masked(logits, mx.array(self._words(mask)))

    def check(self) -> None:
        """Raise the error that ended this sequence, if there was one (``in_batch``)."""
        if self._texts.error is not None:
            raise self._texts.error

    def _words(self, mask: Ids) -> Ids:
        """One row of a mask's words, without bits beyond the vocabulary."""
        words = mask.view(np.uint32).copy()
        words[:, -1] &= self._tail
        return words


def masked(logits: Any, words: Any) -> Any:
    """The logits, with -inf where the bits of the packed words (an array of uint32, one row for each row of logits) are
    0, and beyond the words.
    """
    bits = (words[..., None] >> mx.arange(32, dtype=mx.uint32)) & 1
    allowed, width = bits.flatten(-2).astype(mx.bool_), logits.shape[-1]
    if width > allowed.shape[-1]:
        missing = mx.zeros((*allowed.shape[:-1], width - allowed.shape[-1]), mx.bool_)
        allowed = mx.concatenate([allowed, missing], -1)
    return mx.where(allowed[..., :width], logits, mx.array(-mx.inf, logits.dtype))
