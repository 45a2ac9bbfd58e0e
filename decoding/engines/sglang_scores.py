"""Scores of weighted languages in SGLang: a custom logit processor.

A subclass names the weighted languages. Requests send it by ``custom_logit_processor=Subclass.to_str()`` and choose by
``custom_params={"tokenfst_scores": name, "tokenfst_scores_weight": weight}``; the server needs
``enable_custom_logit_processor`` and ``disable_overlap_schedule``. Scores are added after SGLang has masked what a
constraint forbids. ``refuse_scores``, called by the plugin, ends a request before it runs if the engine cannot do what
it asks for. Written for SGLang 0.5.23 (docs/engines/sglang.md).
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from sglang.srt.sampling.custom_logit_processor import CustomLogitProcessor

from tokenfst.decoding.engines.shared.served_scores import SCORES, NamedScores, ScoredText, read_scores
from tokenfst.errors import ConstraintError, TokenfstError, VocabularyError
from tokenfst.tokenizers.adapters.huggingface import from_huggingface
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_TEXT = "_tokenfst_scored_text"
_log = logging.getLogger(__name__)


class SGLangScores(CustomLogitProcessor):  # type: ignore[misc]
    """Adds the scores that requests name. ``weighted``, set by a subclass: the weighted languages by name."""

    weighted: ClassVar[Mapping[str, Any]] = {}

    def __init__(self) -> None:
        self._named: NamedScores | None = None

    def __call__(self, logits: torch.Tensor, custom_param_list: Any = None) -> torch.Tensor:
        """Add the scores to rows of logits; one dict of parameters for each row."""
        for row, params in enumerate(custom_param_list or ()):
            try:
                asked = read_scores(params, self.weighted)
            except TokenfstError as error:
                # refuse_scores has ended this request; SGLang still computes one token for it, which it discards.
                _log.warning("scores of a request: %s", error)
                continue
            if asked is None:
                continue
            request = params["__req__"]
            text: ScoredText | None = getattr(request, _TEXT, None)
            if text is None:
                scores = self._scores(request, logits.shape[-1])
                text = scores.text(asked, end_tokens(request), request.grammar is not None)
                setattr(request, _TEXT, text)
            text.add_to(logits[row], request.output_ids)
        return logits

    def _scores(self, request: Any, width: int) -> NamedScores:
        if self._named is None:
            tokenizer = request.tokenizer

            def vocabulary_of(stops: Sequence[int]) -> Vocabulary:
                return from_huggingface(tokenizer, size=width, eos_token_id=stops)

            self._named = NamedScores(self.weighted, vocabulary_of)
        return self._named


def end_tokens(request: Any) -> list[int]:
    """The tokens that end a request's text."""
    params, tokenizer = request.sampling_params, request.tokenizer
    found = {
        tokenizer.eos_token_id,
        *(request.eos_token_ids or ()),
        *(params.stop_token_ids or ()),
        *(getattr(tokenizer, "additional_stop_token_ids", None) or ()),
    } - {None}
    if not found:
        raise VocabularyError("the model has no end token, and the request names no stop token")
    return sorted(found)


def refuse_scores(request: Any, server_args: Any) -> None:
    """End a request for scores that are not available, before it runs, with the reason."""
    params = request.sampling_params.custom_params
    if not isinstance(params, dict) or SCORES not in params:
        return
    try:
        if request.custom_logit_processor is None:
            raise ConstraintError(
                f"{SCORES} needs a processor: send custom_logit_processor=YourScores.to_str() with the request"
            )
        processor = CustomLogitProcessor.from_str(request.custom_logit_processor)
        if not isinstance(processor, SGLangScores):
            return
        if server_args.speculative_algorithm is not None:
            raise ConstraintError(
                f"{SCORES}: SGLang gives processors no drafts: start it without speculation"
            )
        if not server_args.disable_overlap_schedule:
            raise ConstraintError(
                f"{SCORES}: with the overlap schedule SGLang does not tell processors the last token: start it with "
                "--disable-overlap-schedule"
            )
        read_scores(params, processor.weighted)
        end_tokens(request)
    except TokenfstError as error:
        request.set_finish_with_abort(f"scores: {error}")
