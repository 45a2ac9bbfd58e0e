"""TensorRT-LLM: logits processors for its requests, and matchers for its guided decoding.

There are two interfaces. *Logits processors* are official:
``SamplingParams(logits_processor=TensorRTConstraint(automaton, 40))``, called for each step of a request, or
``LLM(batched_logits_processor=BatchedTensorRTConstraint(...))``, called once for all requests of a step that use it.
*Guided decoding* has two built-in backends and no registry; ``install_matchers`` replaces xgrammar's factory, so that
requests' ``GuidedDecodingParams`` are handled here.

**The engine itself was not run**: it needs CUDA. This module is written from the engine's sources of 2026, and tested
on the shapes that the sources give (docs/engines/tensorrt-llm.md).

Requests are identified by their ids. The first call of a request has its prompt; each call has all of its tokens. The
end of a request is not signalled: the texts of the ``KEPT`` requests called last are kept, and a request that returns
after it was dropped is rejected, because ids after an unknown prompt are ambiguous. Beam search is not supported.

An error in one request's matcher ends that request alone, since all requests share the engine's step: the error is
logged, and only end tokens are allowed from then on. Beams, logits of another shape and a vocabulary that is too large
raise an error, because no step can serve them.

On a device other than the CPU, logits are checked neither for NaN nor for rows without a choice, because that would
synchronize: a forbidden token is detected when it comes back.
"""

from __future__ import annotations

import contextlib
import json
from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

import numpy as np

from tokenfst.common.arguments import checked, shown
from tokenfst.common.plurals import counted
from tokenfst.decoding.engines.shared.requests import (
    CompiledRequests,
    Kind,
    Request,
    RequestMatcher,
    kept_bytes,
)
from tokenfst.decoding.engines.shared.text_rows import Automaton, Ids, TextRows
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
"""The number of requests whose texts a processor keeps."""
_KINDS: dict[str, Kind] = {
    "JSON": "json_object",
    "JSON_SCHEMA": "json",
    "REGEX": "regex",
    "EBNF_GRAMMAR": "grammar",
    "STRUCTURAL_TAG": "structural_tag",
}


class TensorRTConstraint:
    """A logits processor: each request's text, without the prompt, is in the automaton's language.

    ``max_new_tokens``: the texts are complete within this many tokens; pass the same ``max_tokens`` to
    ``SamplingParams``. Raises TokenLimitError if no text is short enough. It can be pickled at any time.
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
        """Set the logits of forbidden tokens to -inf in place. ``logits``: shape (1, 1, V). ``token_ids``: for each
        beam the ids of prompt and text.
        """
        self._requests.mask(req_id, logits, token_ids, stream_ptr)


class BatchedTensorRTConstraint:
    """``TensorRTConstraint`` for ``LLM(batched_logits_processor=...)`` and requests with
    ``apply_batched_logits_processor=True``.
    """

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
        """Set the logits of each request's forbidden tokens to -inf in place."""
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
                f"request {request} has {counted(len(token_ids), 'beam')}, whose order changes from step to "
                "step: leave out "
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
        masks = texts.masks_or_end(texts.masks, np.array(token_ids[0][prompt:], np.int64)[None])
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
                f"request {request} has {counted(length, 'token')}, and its prompt had {found[0]:,}: these are "
                "another request's"
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
    """A request's constraint, with the four methods of TensorRT-LLM's ``GrammarMatcher``."""

    def __init__(self, served: RequestMatcher) -> None:
        self._served = served

    def accept_token(self, token_id: int) -> bool:
        """Accept a token; False if it is not allowed. After the end token no token is allowed."""
        return not self._served.matcher.is_terminated() and self._served.accept(token_id)

    def rollback(self, num_tokens: int) -> None:
        """Undo the last tokens."""
        self._served.matcher.rollback(num_tokens)

    def fill_next_token_bitmask(self, next_token_bitmask: Any, index: int) -> None:
        """Write the mask of the next token into row ``index`` of an int32 tensor."""
        self._served.fill(next_token_bitmask.numpy(), index)

    def is_terminated(self) -> bool:
        """Whether an end token was accepted."""
        return self._served.matcher.is_terminated()


class TensorRTMatcherFactory:
    """The factory of requests' matchers, with the interface of ``XGrammarMatcherFactory``.

    Raises VocabularyError if the config has no tokenizer.
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
    """Replace the guided-decoding backend "xgrammar" by this one, in this process.

    Call it where the engine's workers start, before ``LLM(guided_decoding_backend="xgrammar")``.
    """
    from tensorrt_llm._torch.pyexecutor import grammar_matcher, guided_decoder

    grammar_matcher.GrammarMatcher.register(TensorRTMatcher)
    grammar_matcher.GrammarMatcherFactory.register(TensorRTMatcherFactory)
    guided_decoder.XGrammarMatcherFactory = TensorRTMatcherFactory
