"""Scores of weighted languages in vLLM: a logits processor of the V1 model runner.

A subclass names the weighted languages; vLLM makes one object of it in each worker. Requests choose by
``SamplingParams(extra_args={"tokenfst_scores": name, "tokenfst_scores_weight": weight})``, over HTTP by
``vllm_xargs``. Scores are added after vLLM has masked what a constraint forbids. A request that names unknown scores
is refused before it is queued. vLLM itself refuses logits processors together with speculative decoding. Written for
vLLM 0.32 and 0.33 (docs/engines/vllm.md).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import torch
from vllm.exceptions import VLLMValidationError
from vllm.tokenizers import cached_tokenizer_from_config
from vllm.v1.sample.logits_processor import LogitsProcessor, process_dict_updates

from tokenfst.decoding.engines.shared.served_scores import NamedScores, ScoredText, read_scores
from tokenfst.decoding.engines.vllm_backend import vocabulary_of
from tokenfst.errors import TokenfstError


class VLLMScores(LogitsProcessor):  # type: ignore[misc]
    """Adds the scores that requests name. ``weighted``, set by a subclass: the weighted languages by name."""

    weighted: ClassVar[Mapping[str, Any]] = {}

    @classmethod
    def validate_params(cls, sampling_params: Any) -> None:
        """Refuse a request that names unknown scores, or a weight that is not a finite number."""
        try:
            read_scores(sampling_params.extra_args, cls.weighted)
        except TokenfstError as error:
            raise VLLMValidationError(str(error)) from error

    def __init__(self, vllm_config: Any, device: torch.device, is_pin_memory: bool) -> None:
        config = vllm_config.model_config
        tokenizer = cached_tokenizer_from_config(config)
        self._named = NamedScores(self.weighted, vocabulary_of(tokenizer, config.get_vocab_size()))
        self._texts: dict[int, tuple[ScoredText, Sequence[int]]] = {}

    def is_argmax_invariant(self) -> bool:
        """False: scores change which token is the best."""
        return False

    def update_state(self, batch_update: Any) -> None:
        """Follow the requests that join, leave or move within the batch."""
        process_dict_updates(self._texts, batch_update, self._new)

    def apply(self, logits: torch.Tensor) -> torch.Tensor:
        """Add the scores of each request that named some."""
        for row, (text, ids) in self._texts.items():
            text.add_to(logits[row], ids)
        return logits

    def _new(self, params: Any, prompt: Any, ids: Sequence[int]) -> tuple[ScoredText, Sequence[int]] | None:
        asked = read_scores(params.extra_args, self.weighted)
        if asked is None:
            return None
        constrained = params.structured_outputs is not None
        return self._named.text(asked, sorted(params.all_stop_token_ids), constrained), ids
