"""``generate``: the plain loop of constrained decoding, with optional jump-forward over forced tokens.

A step masks the scores, chooses a token, and lets the model score the next position. Where the constraint allows only
one token, there is no choice. ``jump_forward=True`` appends all such tokens at once, and the model reads them in the
call that it makes for the next choice anyway. The generated text and its probability stay the same.

Forced tokens are rare, even where the bytes are forced, because a forced text has many tokenizations.
``jump_forward="canonical"`` appends forced *bytes*, tokenized as the tokenizer does. The last chosen token, which the
model has not read yet, is retokenized together with the forced bytes if the tokenizer would merge them. The last tokens
of a run are left to the model if one token could span them and the following text. This changes the distribution: of
all tokenizations of a forced text only the canonical one is used, on which the model was trained. A constraint compiled
with ``tokenization="canonical"`` has exactly the canonical sequences, with ``jump_forward=True``.

Invariant: every row is accepted by its matcher token by token, and is complete when ``max_new_tokens`` ends it.
Finished rows leave the batch. Cost per step: one call of the model over the new tokens of the rows (in a batch, padded
to the longest run), and a mask and an advance for each row. Rejected: retokenizing earlier choices, which would discard
calls of the model.

Source: Zheng et al., "SGLang: Efficient execution of structured language model programs" (2024), section 4, and its
"jump-forward decoding", which retokenizes as well.
"""

from __future__ import annotations

import codecs
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np

from tokenfst._native import Matcher
from tokenfst.common.arguments import checked_but
from tokenfst.common.renamed import renamed
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, unpack_bitmask
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.decoding.matchers.reach_matcher import ReachMatcher
from tokenfst.decoding.models.language_model import (
    Prompts,
    Session,
    as_language_model,
    prompt_rows,
    start_after,
)
from tokenfst.decoding.models.sampling import Sampling
from tokenfst.decoding.rows.generations import Generation, Generations
from tokenfst.decoding.rows.rows import AnyAutomaton, ConstraintRows
from tokenfst.decoding.search.forced_runs import ForcedRuns
from tokenfst.decoding.token_automata.explaining import rule_temperature
from tokenfst.errors import DecodingError, MissingDependencyError, TokenizationError
from tokenfst.tokenizers.segmentation.tokenizer import byte_pair_tokenizer
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import torch
except ImportError as error:
    raise MissingDependencyError('decoding needs torch: pip install "tokenfst[torch]"') from error

Encode: TypeAlias = Callable[[bytes], Sequence[int]]
"""A tokenizer: from a text, in UTF-8, to its token ids, without special tokens."""

_CONTEXT = 4
"""The number of tokens before a run that are retokenized with it, to detect merges."""


@dataclass(frozen=True, slots=True)
class Batch(Generations):
    """The result of ``generate``: a ``Generation`` for each prompt; all texts are in the language.

    ``calls``: the number of model calls, including the prompt's. ``chosen``, ``forced``, ``replaced``: the numbers of
    tokens, of all rows, that were chosen by the model, appended without it, and chosen but then retokenized.
    """

    calls: int
    chosen: int
    forced: int
    replaced: int


@renamed(automaton="automata")
@checked_but("automata")
def generate(
    model: Any,
    prompts: Prompts,
    automata: AnyAutomaton | Sequence[AnyAutomaton],
    *,
    max_new_tokens: int,
    do_sample: bool = False,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    jump_forward: Literal[True, False, "canonical"] = True,
    encode: Encode | None = None,
    generator: torch.Generator | None = None,
    width: int | None = None,
) -> Batch:
    """Continue each prompt with a text of the constraint's language, of at most ``max_new_tokens`` tokens.

    ``model``: an argument of ``as_language_model`` (with ``width`` for plain functions). ``prompts``: token ids, one
    row each. ``automata``: one for all, or one for each prompt. Decoding is greedy unless ``do_sample``;
    ``temperature``, ``top_k`` and ``top_p`` are those of ``Sampling``, and ``generator`` is the random generator, on
    the model's device. ``jump_forward``: whether forced tokens (True) or forced bytes (``"canonical"``) are appended
    without the model; see the module. ``encode``, for ``jump_forward="canonical"``: a function from the bytes of a text
    (UTF-8) to the tokenizer's own token ids without special tokens; by default the vocabulary's own byte-pair encoding,
    which needs its ``split_pattern``.

    Raises, before the first call of the model: ``TokenLimitError``, with the least number that suffices, if no text is
    short enough, ``VocabularyMismatchError``, ``ModelError``, ``DecodingError`` and ``TokenizationError``. Later:
    ``LogitsError`` if the model's scores leave no token to choose.
    """
    language_model = as_language_model(model, width)
    sampling = Sampling(do_sample, temperature, top_k, top_p)
    if jump_forward not in (True, False, "canonical"):
        raise DecodingError(f'jump_forward is True, False or "canonical", not {jump_forward!r}')
    if max_new_tokens < 1:
        raise DecodingError(f"max_new_tokens={max_new_tokens} leaves nothing to generate")
    begun = prompt_rows(prompts)
    rows = ConstraintRows.start(
        automata,
        prompts=len(begun),
        max_new_tokens=max_new_tokens,
        width=language_model.width,
        device=language_model.device,
    )
    cut = _checked_encode(rows.vocabulary, encode) if jump_forward == "canonical" else None
    runs = ForcedRuns(rows.vocabulary, max_new_tokens)
    jumper = _Jumper(rows.vocabulary, runs, bool(jump_forward), cut)
    matchers = list(rows.matchers)
    fresh = [jumper.jump(matcher, []) for matcher in matchers]
    live = [row for row, matcher in enumerate(matchers) if not runs.is_finished(matcher)]
    session: Session | None = None
    same_rows = torch.arange(len(live), device=language_model.device)
    calls = chosen = 0
    if live:
        session = start_after(language_model, [begun[row] for row in live], [fresh[row] for row in live])
        calls = 1
        rows.select(live)
    while session is not None and live:
        scores = rows.mask_(session.logits.clone())
        if do_sample:
            scores = sampling.with_temperatures(
                scores, [rule_temperature(matcher) for matcher in rows.matchers]
            )
        tokens = sampling.choose(scores, generator).tolist()
        chosen += len(live)
        fresh = [jumper.jump(matcher, [token]) for matcher, token in zip(rows.matchers, tokens, strict=True)]
        kept = [place for place, matcher in enumerate(rows.matchers) if not runs.is_finished(matcher)]
        parents = same_rows
        if len(kept) < len(live):
            live = [live[place] for place in kept]
            rows.select(kept)
            parents, same_rows = torch.tensor(kept, device=same_rows.device), same_rows[: len(kept)]
        if live:
            _extend(session, parents, [fresh[place] for place in kept])
            calls += 1
    vocabulary = rows.vocabulary
    return Batch(
        tuple(Generation(tuple(each.tokens), vocabulary.decode(each.tokens)) for each in matchers),
        calls=calls,
        chosen=chosen,
        forced=jumper.forced,
        replaced=jumper.replaced,
    )


def _checked_encode(vocabulary: Vocabulary, encode: Encode | None) -> Encode:
    if vocabulary.initial_tokens is not None:
        raise TokenizationError(
            f"the first token of a text is spelled in a way of its own in {vocabulary!r}: certain bytes cannot be cut "
            'apart from what is before them. Leave jump_forward="canonical" out'
        )
    return byte_pair_tokenizer(vocabulary).encode if encode is None else encode


def _extend(session: Session, parents: torch.Tensor, runs: list[list[int]]) -> None:
    """Extend each row of ``parents`` by its run."""
    lengths = [len(run) for run in runs]
    longest = max(lengths)
    if min(lengths) == longest:
        session.extend(parents, torch.tensor(runs, device=parents.device))
    else:
        ids = torch.tensor([run + [run[-1]] * (longest - len(run)) for run in runs], device=parents.device)
        session.extend(parents, ids, torch.tensor(lengths, device=parents.device))


class _Jumper:
    """Accepts tokens, and the forced tokens after them."""

    def __init__(self, vocabulary: Vocabulary, runs: ForcedRuns, jumps: bool, encode: Encode | None) -> None:
        self.forced = self.replaced = 0
        self._vocabulary = vocabulary
        self._runs = runs
        self._jumps = jumps
        self._encode = encode
        self._mask = allocate_token_bitmask(1, len(vocabulary))

    def jump(self, matcher: AnyMatcher, chosen: list[int]) -> list[int]:
        """Accept the chosen tokens and the forced continuation; return all tokens that the model has not read."""
        for token in chosen:
            matcher.accept_token(token)
        if not self._jumps or self._runs.is_finished(matcher):
            return chosen
        fresh = chosen
        if self._encode is not None and isinstance(matcher, Matcher | ReachMatcher):
            fresh = self._append_bytes(matcher, chosen, self._encode)
        run = self._runs.take(matcher)
        self.forced += len(run)
        return [*fresh, *run]

    def _append_bytes(self, matcher: Matcher | ReachMatcher, recent: list[int], encode: Encode) -> list[int]:
        """Append the forced bytes, tokenized together with the preceding tokens ``recent``, which may be
        retokenized.

        Returns the tokens that replace ``recent``, and the appended ones. The last tokens of the run are left out
        if an allowed token could span them and the following text.
        """
        certain = matcher.forced_bytes()
        before = matcher.tokens[: matcher.num_tokens - len(recent)] if certain else []
        run = self._run(before, recent, certain, encode) if certain else None
        if run is None:
            return recent
        matcher.rollback(len(recent))
        run = run[: matcher.validate_tokens(run)]
        run = run[: self._unswallowed(matcher, run)]
        if len(self._spelled(run)) <= len(self._spelled(recent)):
            run = recent
        matcher.accept_tokens(run)
        same = sum(one == other for one, other in zip(run, recent, strict=False))
        self.forced += len(run) - same
        self.replaced += len(recent) - same
        return run

    def _run(self, before: list[int], recent: list[int], certain: bytes, encode: Encode) -> list[int] | None:
        """The tokens of ``recent`` and ``certain`` after ``before``.

        They are tokenized as a separate text if the tokenizer would merge them with the preceding tokens, or cannot
        tokenize these. None if it cannot tokenize them either: they begin or end inside of a character, or contain
        an unassigned one.
        """
        for context in (before[-_CONTEXT:], before[:0]):
            text = self._spelled([*context, *recent]) + certain
            try:
                found = list(encode(_whole_characters(text)))
            except (UnicodeDecodeError, TokenizationError):
                continue
            if found[: len(context)] == context:
                return found[len(context) :]
        return None

    def _unswallowed(self, matcher: Matcher | ReachMatcher, run: list[int]) -> int:
        """The number of tokens of the run before all those that an allowed token could span together with the text
        after the run.
        """
        tokens = self._vocabulary.tokens
        safe = len(run)
        matcher.accept_tokens(run)
        for place in range(len(run) - 1, max(len(run) - _CONTEXT, 0) - 1, -1):
            matcher.rollback(1)
            rest = self._spelled(run[place:])
            matcher.fill_next_token_bitmask(self._mask, 0)
            allowed = np.flatnonzero(unpack_bitmask(self._mask[0], len(tokens))).tolist()
            if any(len(tokens[token]) > len(rest) and tokens[token].startswith(rest) for token in allowed):
                safe = place
        matcher.rollback(max(len(run) - _CONTEXT, 0))
        return safe

    def _spelled(self, tokens: Sequence[int]) -> bytes:
        return b"".join(self._vocabulary.tokens[token] for token in tokens)


def _whole_characters(text: bytes) -> bytes:
    """The text without an incomplete character at its end. Raises ``UnicodeDecodeError``."""
    return codecs.getincrementaldecoder("utf-8")().decode(text).encode()
