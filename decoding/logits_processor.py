"""Constrained generation with transformers: a logits processor that masks what the constraint forbids.

``model.generate(..., logits_processor=[ConstraintLogitsProcessor(automaton)])`` works in greedy, sampling,
beam, beam-sample and assisted modes, for batches with left padding, with a constraint for all prompts or one
for each. Which matcher belongs to which row is found out from the ids (``PrefixStates``), so one processor
serves prompt after prompt.

Invariant: no row returned is all -inf. A row whose beginning the constraint does not allow (beam search
explores such rows with score -inf when there are fewer strings than beams, assisted decoding when a draft is
wrong), a finished row, and a row whose tokens are used up may only take the end token; the search discards
them or pads them.

Cost per step: the masks (about 1 µs a row once cached), one copy of the scores, since ``generate`` may return
the raw ones too, and masking them in place (docs/masks.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from tokenfst.arguments import checked
from tokenfst.decoding.bitmask import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    bitmask_from_ids,
    fill_bitmasks,
)
from tokenfst.decoding.prefixes import PrefixStates
from tokenfst.errors import MissingDependencyError, VocabularyMismatchError

try:
    import torch
    from transformers import LogitsProcessor
except ImportError as error:
    raise MissingDependencyError(
        'ConstraintLogitsProcessor needs transformers: pip install "tokenfst[transformers]"'
    ) from error

if TYPE_CHECKING:
    from tokenfst.decoding.canonical import CanonicalAutomaton
    from tokenfst.decoding.token_automaton import TokenAutomaton


class ConstraintLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """Holds generated text, prompt excluded, to the language of a token automaton.

    ``automata``: one for all rows, or one per prompt of the batch, in order; all over one vocabulary, the
    model's. ``max_new_tokens``: where given, the text is always complete after that many tokens; pass the
    same number to ``generate``. Raises ``TokenBudgetError`` at once where the constraint's shortest text is
    longer. ``check_nan``: raise ``LogitsError`` where the logit of an allowed token is NaN. ``threads``: how
    many fill the masks of a batch; see ``fill_bitmasks``.

    Text ends by an end token of the vocabulary: ``generate`` must know it as ``eos_token_id``.
    """

    supports_continuous_batching = False

    @checked
    def __init__(
        self,
        automata: TokenAutomaton | CanonicalAutomaton | Sequence[TokenAutomaton | CanonicalAutomaton],
        *,
        max_new_tokens: int | None = None,
        check_nan: bool = True,
        threads: int | None = None,
    ) -> None:
        shared = list(automata) if isinstance(automata, Sequence) else [automata]
        if not shared:
            raise ValueError("automata is empty: give one constraint for all rows, or one per prompt")
        vocabulary = shared[0].vocabulary
        for automaton in shared:
            if automaton.vocabulary.fingerprint != vocabulary.fingerprint:
                raise VocabularyMismatchError(
                    "the constraints of a batch must be compiled for one vocabulary; found "
                    f"{vocabulary.fingerprint[:12]} and {automaton.vocabulary.fingerprint[:12]}"
                )
        self._vocab_size = len(vocabulary)
        self._check_nan = check_nan
        self._threads = threads
        self._only_end = bitmask_from_ids(vocabulary.eos_token_ids, self._vocab_size)
        self._bitmask = allocate_token_bitmask(0, self._vocab_size)
        self._states = PrefixStates([a.matcher(max_new_tokens) for a in shared], self._vocab_size)

    @checked
    def reset(self, prompt_length: int | None = None) -> None:
        """Forget the last prompt. A new one is noticed by itself, unless it is the last one and a token more.

        With ``prompt_length``, this many columns of every later call are the prompt (padding included), and
        rows may grow by several tokens at once: for decoding loops of one's own.
        """
        self._states.reset(prompt_length)

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """A copy of ``scores`` (rows, width) with forbidden tokens at -inf; ``input_ids``: rows so far."""
        rows, width = scores.shape
        if width < self._vocab_size:
            raise VocabularyMismatchError(
                f"the model scores {width} tokens and the constraint's vocabulary has {self._vocab_size}: "
                "use the vocabulary of the model's own tokenizer"
            )
        states = self._states
        states.update(input_ids.detach().cpu().numpy())
        if len(self._bitmask) != rows:
            self._bitmask = allocate_token_bitmask(rows, self._vocab_size)
        fill_bitmasks(states.matchers, self._bitmask, self._threads)
        for row, matcher in enumerate(states.matchers):
            if matcher.max_tokens_left == 0 or states.is_dead(row):
                self._bitmask[row] = self._only_end
        masked: Any = scores.clone(memory_format=torch.contiguous_format)
        apply_token_bitmask_inplace(
            masked, self._bitmask, vocab_size=self._vocab_size, check_nan=self._check_nan
        )
        return masked
