"""Constrained generation with transformers: a logits processor that masks the tokens that the constraint forbids.

``model.generate(..., logits_processor=[ConstraintLogitsProcessor(automaton)])`` works in greedy, sampling, beam,
beam-sample and assisted modes, for batches with left padding, with one constraint for all prompts or one for each. One
processor serves one prompt after another, and several threads at once: each call of ``generate`` has its own matchers
(``generate_calls``), and the token ids determine which matcher belongs to which row (``prefixes``).

Invariant: returned text satisfies the constraint. A row that continues may take only tokens that its matcher allows. If
all of those are -inf already (another processor forbids them), ``LogitsError`` names the row and the step, because
``generate`` would otherwise take an arbitrary token. In beam search such a row stays all -inf and the search continues
with others; the error is raised if no row of the prompt is left and none could end before. Three kinds of rows may only
take the end token, and ``generate`` discards or pads them: finished rows, rows without tokens left, and rows whose
prefix the constraint rejects. The last kind occurs in beam search, which explores rows with score -inf when there are
fewer strings than beams, and in assisted decoding when a draft is wrong.

Cost per step: the masks (about 1 µs for each row once cached), one copy of the scores, since ``generate`` may return
the raw scores too, and masking in place (docs/decoding/masks.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from tokenfst.common.arguments import checked, refuse
from tokenfst.common.plurals import counted
from tokenfst.common.token_ids import check_width, warn_of_width
from tokenfst.decoding.masks.bitmask import apply_and_find_empty, bitmask_from_ids, fill_bitmasks
from tokenfst.decoding.matchers.prefixes import PrefixStates, RowStates
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.decoding.matchers.unconstrained import FREE, Unconstrained
from tokenfst.decoding.search.generate_calls import states_of_call
from tokenfst.errors import (
    ArgumentValueError,
    LogitsError,
    MaskBufferError,
    MissingDependencyError,
    VocabularyMismatchError,
)

try:
    import torch
    from transformers import LogitsProcessor
except ImportError as error:
    raise MissingDependencyError(
        'ConstraintLogitsProcessor needs transformers: pip install "tokenfst[transformers]"'
    ) from error

if TYPE_CHECKING:
    from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
    from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
    from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

    _Constraint: TypeAlias = TokenAutomaton | CanonicalAutomaton | None


class ConstraintLogitsProcessor(LogitsProcessor):  # type: ignore[misc]
    """Restricts generated text, without the prompt, to the language of a token automaton.

    ``automata``: one for all rows, or one for each prompt of the batch, in order; ``UNCONSTRAINED`` (or ``"free"``) for
    a prompt without a constraint. All must be over the model's vocabulary. ``max_new_tokens``: the text is complete
    after at most this many tokens; pass the same number to ``generate``, which raises ``ArgumentValueError`` if it
    would stop earlier. Raises ``TokenLimitError`` at once if the constraint's shortest text is longer. ``check_nan``:
    raise ``LogitsError`` if the logit of an allowed token is NaN. ``threads``: number of threads that fill the masks of
    a batch; see ``fill_bitmasks``.

    Text ends with an end token of the vocabulary: ``generate`` must have it as ``eos_token_id``.
    """

    supports_continuous_batching = False
    _most: int | None = None

    @checked
    def __init__(
        self,
        automata: TokenAutomaton
        | CanonicalAutomaton
        | Sequence[TokenAutomaton | CanonicalAutomaton | Unconstrained | Literal["free"]],
        *,
        max_new_tokens: int | None = None,
        check_nan: bool = True,
        threads: int | None = None,
    ) -> None:
        listed = automata if isinstance(automata, Sequence) else [automata]
        for row, each in enumerate(listed):
            if isinstance(each, str) and each != FREE:
                wanted = "a TokenAutomaton or tokenfst.UNCONSTRAINED"
                refuse("ConstraintLogitsProcessor", f"automata[{row}]", each, wanted)
        shared: list[_Constraint] = [
            None if isinstance(each, str | Unconstrained) else each for each in listed
        ]
        given = [automaton for automaton in shared if automaton is not None]
        if not given:
            what = "has nothing but UNCONSTRAINED" if shared else "is empty"
            raise ArgumentValueError(
                f"automata {what}: give one constraint for all rows, or one per prompt, or leave the processor out"
            )
        vocabulary = given[0].vocabulary
        for automaton in given:
            if automaton.vocabulary.fingerprint != vocabulary.fingerprint:
                raise VocabularyMismatchError(
                    "the constraints of a batch must be compiled for one vocabulary; found "
                    f"{vocabulary.fingerprint[:12]} and {automaton.vocabulary.fingerprint[:12]}"
                )
        self._anew = partial(
            type(self), automata, max_new_tokens=max_new_tokens, check_nan=check_nan, threads=threads
        )
        self._check_nan = check_nan
        self._threads = threads
        self._most = max_new_tokens
        self._follow(
            vocabulary, [None if each is None else start_matcher(each, max_new_tokens) for each in shared]
        )

    def _follow(self, vocabulary: Vocabulary, matchers: Sequence[Any]) -> None:
        """Start with these matchers, one for all rows or one for each prompt."""
        self._vocab_size = len(vocabulary)
        self._end_tokens = list(vocabulary.eos_token_ids)
        self._only_end = bitmask_from_ids(self._end_tokens, self._vocab_size)
        self._states = PrefixStates(matchers, self._vocab_size)
        self._width = self._vocab_size

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies, in this process or another one, start without any decoding loop."""
        return self._anew, ()

    @checked
    def reset(self, prompt_length: int | None = None) -> None:
        """Forget all decoding loops, other than calls of ``generate``, which need no reset.

        In a custom decoding loop, which appends one token for each call, the processor recognizes a new prompt by its
        ids. Call ``reset`` before a new prompt that equals the ids of the last call plus one token. ``prompt_length``:
        in all later loops the first ``prompt_length`` columns are the prompt (padding included), and rows may grow by
        several tokens at once, be shortened, or be repeated.
        """
        self._states.reset(prompt_length)

    def __call__(self, input_ids: torch.LongTensor, scores: torch.FloatTensor) -> torch.FloatTensor:
        """A copy of ``scores`` (rows, width) with forbidden tokens at -inf; ``input_ids``: rows so far."""
        rows, width = scores.shape
        check_width(width, self._vocab_size, vocabulary="the constraint's vocabulary")
        if width != self._width:
            self._width = width
            warn_of_width(width, self._vocab_size)
        if len(input_ids) != rows:
            raise MaskBufferError(
                f"input_ids has {counted(len(input_ids), 'row')}, and scores has {rows:,}: give as many of each"
            )
        ids = input_ids.detach().cpu().numpy()
        states = states_of_call(self._states, ids, self._most) or self._states.update(ids)
        bitmask, chosen = self._fill(states), states.constrained
        masked: Any = scores.clone(memory_format=torch.contiguous_format)
        empty = apply_and_find_empty(
            masked, bitmask, vocab_size=self._vocab_size, indices=chosen, check_nan=self._check_nan
        )
        self._weigh(states, masked)
        if states.beams > 1:
            self._note_ends(states, masked)
        if empty is not None:
            self._settle(states, masked)
        return masked

    def _weigh(self, states: RowStates, masked: Any) -> None:
        """Add scores to the allowed tokens: none here (see ``ScoresLogitsProcessor``)."""

    def _fill(self, states: RowStates) -> Any:
        """The masks of all rows; those of rows without a constraint are not used."""
        bitmask, chosen, matchers = states.bitmask, states.constrained, states.matchers
        if chosen is not None:
            matchers = [matchers[row] for row in chosen]
        fill_bitmasks(matchers, bitmask, self._threads)  # type: ignore[arg-type]  # none of these is None
        if chosen is not None:
            bitmask[chosen] = bitmask[: len(chosen)].copy()
        for row, matcher in enumerate(states.matchers):
            if matcher is not None and (matcher.max_tokens_left == 0 or states.is_dead(row)):
                bitmask[row] = self._only_end
        return bitmask

    def _note_ends(self, states: RowStates, masked: Any) -> None:
        """Record the prompts whose searches may have found a complete text by the next step."""
        for row, matcher in enumerate(states.matchers):
            if matcher is None or row // states.beams in states.ends or states.is_over(row):
                continue
            if matcher.is_accepting() and bool((masked[row, self._end_tokens] > -torch.inf).any()):
                states.ends.add(row // states.beams)

    def _settle(self, states: RowStates, masked: Any) -> None:
        """Handle rows whose allowed tokens are all -inf: complete texts end, and others raise an error."""
        without = (masked == -torch.inf).all(1).tolist()
        for row, matcher in enumerate(states.matchers):
            if matcher is None or not without[row]:
                continue
            if states.is_over(row):
                masked[row, self._end_tokens[0]] = 0.0
                continue
            search = row // states.beams
            rows = range(search * states.beams, (search + 1) * states.beams)
            if states.beams > 1 and (
                search in states.ends or not all(without[each] or states.is_dead(each) for each in rows)
            ):
                continue
            raise LogitsError(
                f"every token that the constraint allows has the logit -inf in row {row} at step "
                f"{states.width - states.prompt}: none can be taken. Look for another logits processor, or an option "
                "of generate(), that forbids them (suppress_tokens, bad_words_ids, min_new_tokens, ...)"
            )
