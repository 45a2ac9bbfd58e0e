"""TensorRT-LLM: logits processors for its requests, and matchers for its guided decoding.

Two ways in. A *logits processor* is official: ``SamplingParams(logits_processor=TensorRTConstraint(automaton, 40))``,
called for each step of a request, or ``LLM(batched_logits_processor=BatchedTensorRTConstraint(...))``, called once for
all requests of a step that ask for it. *Guided decoding* knows two backends and no third; ``install_matchers`` puts a
factory of ours in the place of xgrammar's, so that requests' ``GuidedDecodingParams`` come here.

**The engine was not run**: it needs CUDA, and nothing here has it. All of this is written by its sources, of 2026, and
tested on the shapes that those give (docs/engines/tensorrt-llm.md).

Requests are told apart by their ids. A request's first call has its prompt; each call brings all of its tokens. Nobody
says when a request ends: the texts of the ``KEPT`` requests called last are kept, and one that comes back after that is
refused, as ids behind an unknown prompt say nothing. Beams are refused.

On another device than the CPU, logits are neither searched for NaN nor for rows without a choice, which would wait for
it: a token that is not allowed is found when it comes back.
"""

from __future__ import annotations

import contextlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from tokenfst.arguments import checked, shown
from tokenfst.decoding.engines.requests import CompiledRequests, Kind, Request, Served, kept_bytes
from tokenfst.decoding.engines.text_rows import Automaton, Ids, TextRows
from tokenfst.decoding.masks.bitmask import apply_token_bitmask_inplace
from tokenfst.errors import (
    ConstraintError,
    DecodingError,
    MatcherError,
    MissingDependencyError,
    VocabularyError,
)
from tokenfst.tokenizers.adapters.huggingface import from_specification
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import torch
except ImportError as error:
    raise MissingDependencyError(
        'TensorRT-LLM works on torch tensors: pip install "tokenfst[torch]"'
    ) from error

KEPT = 4096
"""Requests whose texts a processor keeps."""
_KINDS: dict[str, Kind] = {
    "JSON": "json_object",
    "JSON_SCHEMA": "json",
    "REGEX": "regex",
    "EBNF_GRAMMAR": "grammar",
    "STRUCTURAL_TAG": "structural_tag",
}


class TensorRTConstraint:
    """A logits processor: each request's text is of the automaton's language, prompt excluded.

    ``max_new_tokens``: the texts are whole within so many tokens; give ``SamplingParams`` the same ``max_tokens``.
    Raises TokenBudgetError where none is so short. It pickles, before the first call and after.
    """

    @checked
    def __init__(self, automaton: Automaton, max_new_tokens: int | None = None) -> None:
        self._requests = _Requests(automaton, max_new_tokens)

    def __call__(
        self,
        req_id: int,
        logits: Any,
        token_ids: list[list[int]],
        stream_ptr: int | None,
        client_id: int | None,
    ) -> None:
        """Forbid in place, in logits of shape (1, 1, V); ``token_ids``: of each beam, prompt and text."""
        self._requests.mask(req_id, logits, token_ids, stream_ptr)


class BatchedTensorRTConstraint:
    """The same for ``LLM(batched_logits_processor=...)`` and requests with ``apply_batched_logits_processor=True``."""

    @checked
    def __init__(self, automaton: Automaton, max_new_tokens: int | None = None) -> None:
        self._requests = _Requests(automaton, max_new_tokens)

    def __call__(
        self,
        req_ids: list[int],
        logits: list[Any],
        token_ids: list[list[list[int]]],
        stream_ptr: int | None,
        client_ids: list[int | None],
    ) -> None:
        """Forbid in place in the logits of each request."""
        for request, rows, ids in zip(req_ids, logits, token_ids, strict=True):
            self._requests.mask(request, rows, ids, stream_ptr)


class _Requests:
    """The texts of the requests called last, each with the length of its prompt."""

    def __init__(self, automaton: Automaton, most: int | None) -> None:
        self._automaton, self._most = automaton, most
        self._kept: OrderedDict[int, tuple[int, TextRows]] = OrderedDict()
        self._forgotten = -1
        self._new()

    def mask(self, request: int, logits: Any, token_ids: list[list[int]], stream_ptr: int | None) -> None:
        """Forbid in the logits of one request's next token."""
        if len(token_ids) != 1:
            raise DecodingError(
                f"request {request} has {len(token_ids)} beams, whose order changes from step to step: leave out "
                "use_beam_search"
            )
        prompt, texts = self._found(request, len(token_ids[0]))
        width = logits.shape[-1]
        texts.check_width(width)
        rows = logits.view(-1, width)
        if len(rows) != 1:
            raise DecodingError(
                f"request {request} has logits of shape {tuple(logits.shape)}: one row is expected, without "
                "beams and drafts"
            )
        masks = texts.masks(np.array(token_ids[0][prompt:], np.int64)[None])
        _apply(rows, masks, texts, stream_ptr)

    def _found(self, request: int, length: int) -> tuple[int, TextRows]:
        """A request's prompt length and text. MatcherError for one that was forgotten, or lost its prompt."""
        found = self._kept.get(request)
        if found is None:
            if request <= self._forgotten:
                raise MatcherError(
                    f"request {request} is unknown: {KEPT:,} later ones came between, and its prompt is forgotten"
                )
            found = self._kept[request] = length, self._new()
            if len(self._kept) > KEPT:
                self._forgotten = max(self._forgotten, self._kept.popitem(last=False)[0])
        self._kept.move_to_end(request)
        if length < found[0]:
            raise MatcherError(
                f"request {request} has {length:,} tokens, and its prompt had {found[0]:,}: these are another request's"
            )
        return found

    def _new(self) -> TextRows:
        return TextRows(
            [self._automaton],
            self._most,
            name="TensorRTConstraint",
            remedy="use the vocabulary of the model's own tokenizer",
        )


def _apply(rows: Any, masks: Ids, texts: TextRows, stream_ptr: int | None) -> None:
    if rows.is_cpu:
        texts.apply(rows, masks)
        return
    stream: Any = contextlib.nullcontext()
    if stream_ptr is not None and rows.is_cuda:
        stream = torch.cuda.stream(torch.cuda.ExternalStream(stream_ptr))
    with stream:
        apply_token_bitmask_inplace(rows, masks, vocab_size=texts.vocab_size, check_nan=False)


class TensorRTMatcher:
    """A request's constraint, by the four methods of TensorRT-LLM's ``GrammarMatcher``."""

    def __init__(self, served: Served) -> None:
        self._served = served

    def accept_token(self, token_id: int) -> bool:
        """Take a token; False where it is not allowed. After the end none is."""
        return not self._served.matcher.is_terminated() and self._served.accept(token_id)

    def rollback(self, num_tokens: int) -> None:
        """Take tokens back."""
        self._served.matcher.rollback(num_tokens)

    def fill_next_token_bitmask(self, next_token_bitmask: Any, index: int) -> None:
        """The mask of the next token, into a row of an int32 tensor."""
        self._served.fill(next_token_bitmask.numpy(), index)

    def is_terminated(self) -> bool:
        """Whether an end token was taken."""
        return self._served.matcher.is_terminated()


class TensorRTMatcherFactory:
    """What makes the matchers of requests, in the place of ``XGrammarMatcherFactory`` and with its arguments.

    Raises VocabularyError where the config brings no tokenizer.
    """

    def __init__(
        self, guided_decoding_config: Any, vocab_size_padded: int, max_num_draft_tokens: int = 0
    ) -> None:
        del max_num_draft_tokens  # going back has no limit
        if guided_decoding_config.tokenizer_str is None:
            raise VocabularyError(
                "TensorRTMatcherFactory: the guided decoding config has no tokenizer_str: the engine needs the model's "
                "fast tokenizer"
            )
        specification = json.loads(guided_decoding_config.tokenizer_str)

        def vocabulary(ends: Sequence[int]) -> Vocabulary:
            return from_specification(
                specification, size=vocab_size_padded, eos_token_id=list(ends), name="TensorRT-LLM"
            )

        self._ends = tuple(guided_decoding_config.stop_token_ids or ())
        self._requests = CompiledRequests(vocabulary, kept_bytes())

    def create(self, guided_decoding_params: Any) -> TensorRTMatcher:
        """The matcher of a request. Raises ConstraintError (a subclass that names the place) and BudgetExceeded."""
        name = getattr(guided_decoding_params.guide_type, "name", None)
        if name not in _KINDS:
            raise ConstraintError(f"guide_type must be one of {', '.join(_KINDS)}, not {shown(name)}")
        request = Request(_KINDS[name], guided_decoding_params.guide or "")
        return TensorRTMatcher(self._requests.served(request, self._ends, None))


def install_matchers() -> None:
    """Let guided decoding ask here: from now on its backend "xgrammar" is this one, in this process.

    Call it where the engine's workers start, before ``LLM(guided_decoding_backend="xgrammar")``.
    """
    from tensorrt_llm._torch.pyexecutor import grammar_matcher, guided_decoder

    grammar_matcher.GrammarMatcher.register(TensorRTMatcher)
    grammar_matcher.GrammarMatcherFactory.register(TensorRTMatcherFactory)
    guided_decoder.XGrammarMatcherFactory = TensorRTMatcherFactory
