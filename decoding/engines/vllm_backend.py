"""The vLLM structured-output backend: one object for an engine, and a grammar for each request.

vLLM requests a grammar from the backend (in a separate thread) and masks before each step, and reports the accepted
tokens. Drafts are checked by ``validate_tokens``, accepted one by one for their masks, and rolled back. Written for
vLLM 0.32 and 0.33 (docs/engines/vllm.md); ``vllm_plugin`` installs it.

Invariant: a text is complete within the request's ``max_tokens``, unless a reasoning parser is used, because a grammar
does not learn how many tokens the reasoning took. After the end of a text every token is accepted and none is masked,
as vLLM requires; a rollback to before the end continues the text.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from vllm.v1.structured_output.backend_types import (
    StructuredOutputBackend,
    StructuredOutputGrammar,
    StructuredOutputOptions,
)
from vllm.v1.structured_output.request import get_structured_output_key
from vllm.v1.structured_output.utils import grammar_is_likely_lark

from tokenfst.decoding.engines.shared.requests import (
    NAMED,
    CompiledRequests,
    Request,
    RequestMatcher,
    fill_step,
    kept_bytes,
)
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask
from tokenfst.errors import VocabularyError
from tokenfst.tokenizers.adapters.huggingface import from_huggingface
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

NAME = "tokenfst"
_KINDS: dict[Any, Any] = {
    StructuredOutputOptions.JSON: "json",
    StructuredOutputOptions.JSON_OBJECT: "json_object",
    StructuredOutputOptions.REGEX: "regex",
    StructuredOutputOptions.CHOICE: "choice",
    StructuredOutputOptions.GRAMMAR: "grammar",
    StructuredOutputOptions.STRUCTURAL_TAG: "structural_tag",
}


def read_params(params: Any) -> Request:
    """The request of vLLM's ``StructuredOutputsParams``."""
    option, text = get_structured_output_key(params)
    whitespace = "compact" if params.disable_any_whitespace else params.whitespace_pattern or "flexible"
    additional = "forbid" if params.disable_additional_properties else "schema"
    return _request(option, text if isinstance(text, str) else json.dumps(text), whitespace, additional)


def _request(option: Any, text: str, whitespace: str = "flexible", additional: Any = "schema") -> Request:
    kind = _KINDS[option]
    if kind == "grammar" and text.startswith(NAMED):
        kind = "named"
    elif kind == "grammar" and grammar_is_likely_lark(text):
        kind = "lark"
    return Request(kind, text, whitespace, additional)


def vocabulary_of(tokenizer: Any, width: int) -> Callable[[Sequence[int]], Vocabulary]:
    """A function that returns the vocabulary of a model of ``width`` scores with the given end tokens."""

    def with_ends(stops: Sequence[int]) -> Vocabulary:
        ends = stops or tokenizer.eos_token_id
        if ends is None:
            raise VocabularyError(
                "the model has no end token, and the request names no stop token: texts could not end"
            )
        return from_huggingface(tokenizer, size=width, eos_token_id=ends)

    return with_ends


def compiled_requests(tokenizer: Any, width: int) -> CompiledRequests:
    """A cache of compiled requests for a model of ``width`` scores."""
    return CompiledRequests(vocabulary_of(tokenizer, width), kept_bytes())


@dataclass
class TokenfstBackend(StructuredOutputBackend):  # type: ignore[misc]
    """The compiled constraints of an engine."""

    def __post_init__(self) -> None:
        self.requests = compiled_requests(self.tokenizer, self.vocab_size)
        self._rows: Any = None
        self.num_drafts = 0

    def compile_grammar(
        self, request_type: Any, grammar_spec: str, stop_token_ids: set[int] | None = None
    ) -> TokenfstGrammar:
        """A grammar without a limit of tokens."""
        return self._grammar(_request(request_type, grammar_spec), stop_token_ids, None)

    def compile_request(self, request: Any, *, counted: bool) -> TokenfstGrammar:
        """The grammar of an engine's request, with all of its parameters.

        ``counted``: the text is complete within ``max_tokens``, or within the context's room after the prompt if that
        is less.
        """
        sampling, room = request.sampling_params, self.vllm_config.model_config.max_model_len
        most = min(request.max_tokens, room - request.num_prompt_tokens) if counted else None
        return self._grammar(read_params(sampling.structured_outputs), sampling.all_stop_token_ids, most)

    def _grammar(self, request: Request, stops: set[int] | None, max_tokens: int | None) -> TokenfstGrammar:
        return TokenfstGrammar(self.requests.served(request, sorted(stops or ()), max_tokens))

    def allocate_token_bitmask(self, max_num_seqs: int) -> torch.Tensor:
        """Rows for ``max_num_seqs`` sequences, in host memory."""
        return torch.full((max_num_seqs, -(-self.vocab_size // 32)), -1, dtype=torch.int32)

    def masks_of_step(self, requests: Any, names: Sequence[str], begun: Callable[[Any], bool] | None) -> Any:
        """The masks of all requests of a step, one row each, if no drafts are checked. The next step overwrites them.

        ``begun``: says of a request whether its text has started, if reasoning may precede texts; else None. A request
        whose text has not started allows every token.
        """
        if self._rows is None:
            most = self.vllm_config.scheduler_config.max_num_seqs
            self._rows = allocate_token_bitmask(most, self.vocab_size)
        rows = self._rows[: len(names)]
        grammars = [requests[name].structured_output_request.grammar for name in names]
        if begun is None:
            fill_step(rows, [grammar.served for grammar in grammars])
        else:
            texts = zip(names, grammars, strict=True)
            fill_step(rows, [grammar.served if begun(requests[name]) else None for name, grammar in texts])
        return rows

    def destroy(self) -> None:
        """Drop all compiled constraints."""
        del self.requests


class TokenfstGrammar(StructuredOutputGrammar):  # type: ignore[misc]
    """A request's matcher, with vLLM's interface."""

    def __init__(self, served: RequestMatcher) -> None:
        self.served, self.matcher = served, served.matcher

    def accept_tokens(self, request_id: str, tokens: list[int]) -> bool:
        """Advance; False for a token that is not allowed. Tokens after the end are ignored."""
        return self.served.accept_until_over(tokens)

    def validate_tokens(self, tokens: list[int]) -> list[int]:
        """The longest prefix of these tokens that would be accepted."""
        return tokens[: self.served.validate(tokens)]

    def rollback(self, num_tokens: int) -> None:
        """Undo the last tokens."""
        self.matcher.rollback(num_tokens)

    def fill_bitmask(self, bitmask: torch.Tensor, batch_index: int) -> None:
        """Write the mask of the next token into row ``batch_index``."""
        fill_step(bitmask.numpy(), [self.served], [batch_index])

    def is_terminated(self) -> bool:
        """Whether the text has ended: by the end token, by the last of ``max_tokens``, or by a failure."""
        return bool(self.served.failure) or self.served.is_over()

    def reset(self) -> None:
        """Return to the start."""
        self.matcher.reset()
