"""Structured outputs of SGLang by tokenfst: the grammar backend, one for a scheduler, and the grammar of a request.

SGLang asks a backend for a grammar by its kind and text alone, keeps it, and copies it for each request; masks of a
step are asked for together, drafts are accepted, masked and taken back one by one. So a grammar is a template until a
request comes: ``begin`` gives it the matcher, with the request's end tokens and number of tokens. The hooks that call
it are in ``sglang_plugin``. Written for SGLang 0.5.23 (docs/engines/sglang.md).

Invariant: a text is whole within the request's ``max_new_tokens``, unless reasoning comes before it, since nobody tells
a grammar how many tokens the reasoning took. After the end of a text every token is accepted and none is masked, as
SGLang wants it; going back before the end is going back.

Automata are kept by their bytes (``CompiledRequests``). SGLang's own table of grammars has no bound, and holds the
texts of requests only: a template whose automaton has gone is compiled again, on a thread of its own.
"""

from __future__ import annotations

import codecs
from collections.abc import Sequence
from concurrent.futures import Future
from functools import cache
from typing import Any

import torch
from sglang.srt.constrained.base_grammar_backend import (
    BaseGrammarBackend,
    BaseGrammarObject,
    InvalidGrammarObject,
)
from sglang.srt.constrained.torch_ops.token_filter_torch_ops import set_token_filter_torch

from tokenfst._native import Matcher
from tokenfst.decoding.engines.requests import (
    CompiledRequests,
    Kind,
    Request,
    RequestMatcher,
    fill_step,
    kept_bytes,
)
from tokenfst.decoding.masks.bitmask import apply_token_bitmask_inplace
from tokenfst.decoding.matchers.prefixes import AnyMatcher
from tokenfst.decoding.matchers.reach_matcher import ReachMatcher
from tokenfst.errors import MatcherError, TokenfstError, VocabularyError
from tokenfst.plurals import counted
from tokenfst.tokenizers.adapters.huggingface import from_huggingface
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_ANY = "$$ANY$$"
"""What SGLang's requests say instead of a schema where any JSON will do."""


class _NotBegun:
    """What a template has instead of a text."""

    def __getattr__(self, name: str) -> Any:
        raise MatcherError("this grammar is a template: begin() gives it a text")


_NOT_BEGUN: Any = _NotBegun()


class TokenfstGrammar(BaseGrammarObject):  # type: ignore[misc]
    """A request's constraint, and from ``begin`` on its matcher, in SGLang's words."""

    def __init__(self, requests: CompiledRequests, request: Request, ends: tuple[int, ...]) -> None:
        super().__init__()
        self._requests, self.request, self._ends = requests, request, ends
        self.served: RequestMatcher = _NOT_BEGUN

    def begin(self, stops: Sequence[int], max_tokens: int | None) -> None:
        """Start a text that ``stops`` may end, too, complete within ``max_tokens``.

        Raises TokenBudgetError where none is so short, and for further stop tokens what compiling raises."""
        self.served = self._requests.served(self.request, sorted({*self._ends, *stops}), max_tokens)

    @property
    def matcher(self) -> AnyMatcher:
        """The same without regard for the engine."""
        return self.served.matcher

    def is_compiled(self) -> bool:
        """Whether its automaton is at hand."""
        return self._requests.known(self.request, self._ends) is not None

    def copy(self) -> TokenfstGrammar:
        """A template of the same constraint."""
        return TokenfstGrammar(self._requests, self.request, self._ends)

    def accept_token(self, token: int) -> None:
        """Advance. ValueError for a token that is not allowed; tokens after the end are not looked at."""
        self.current_token = token
        if not self.served.accept_until_over((token,)):
            raise ValueError(
                self.served.failure
                or f"token {token} is not allowed after {counted(self.matcher.num_tokens, 'token')} of {self.request}"
            )

    def rollback(self, k: int) -> None:
        """Take tokens back."""
        self.matcher.rollback(k)

    def is_terminated(self) -> bool:
        """Whether nothing more is looked at: an end token was taken, or the last of ``max_new_tokens``."""
        return self.served.is_over()

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Rows that allow everything, in host memory."""
        return TokenfstGrammarBackend.allocate_vocab_mask(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """The mask of the next token."""
        fill_step(vocab_mask.numpy(), [self.served], [idx])

    @staticmethod
    def fill_vocab_mask_batched(entries: list[Any], vocab_mask: torch.Tensor) -> None:
        """The masks of a step, in one native call where all grammars are of this class."""
        grammars = [entry.grammar for entry in entries]
        if {*map(type, grammars)} == {TokenfstGrammar}:
            served = [grammar.served for grammar in grammars]
            fill_step(vocab_mask.numpy(), served, [entry.row for entry in entries])
        else:
            BaseGrammarObject.fill_vocab_mask_batched(entries, vocab_mask)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow everything in all rows."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """The mask on the device of the logits."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Forbidden logits become -inf. NaN is not looked for: that would wait for the device."""
        apply_token_bitmask_inplace(logits, vocab_mask, check_nan=False)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that must come next, in whole characters, if any."""
        matcher = self.matcher
        if self.is_terminated() or not isinstance(matcher, Matcher | ReachMatcher):
            return None
        text = codecs.getincrementaldecoder("utf-8")("ignore").decode(matcher.forced_bytes())
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """That text; the matcher is its own state."""
        return helper[1], -1

    def jump_and_retokenize(
        self, old_output_ids: list[int], new_output_ids: list[int], next_state: int
    ) -> None:
        """Follow the tokens that the text was cut into anew. ValueError where one is not allowed."""
        pairs = zip(old_output_ids, new_output_ids, strict=False)
        same = next((place for place, (old, new) in enumerate(pairs) if old != new), None)
        if same is None:
            same = min(len(old_output_ids), len(new_output_ids))
        self.rollback(len(old_output_ids) - same)
        for token in new_output_ids[same:]:
            self.accept_token(token)

    def __repr__(self) -> str:
        return f"TokenfstGrammar({self.request})"


class TokenfstGrammarBackend(BaseGrammarBackend):  # type: ignore[misc]
    """What a scheduler compiles and keeps. ``TOKENFST_CACHE_MB``: how much of it, 512 by default."""

    is_support_token_filter = True
    set_token_filter = staticmethod(set_token_filter_torch)
    move_vocab_mask = staticmethod(TokenfstGrammar.move_vocab_mask)
    apply_vocab_mask = staticmethod(TokenfstGrammar.apply_vocab_mask)

    def __init__(
        self, tokenizer: Any, vocab_size: int, eos_token_ids: Any, whitespace: str = "flexible"
    ) -> None:
        super().__init__()
        listed = [eos_token_ids] if isinstance(eos_token_ids, int) else [*(eos_token_ids or ())]
        ends = {
            tokenizer.eos_token_id,
            *listed,
            *(getattr(tokenizer, "additional_stop_token_ids", None) or ()),
        }
        self._ends = tuple(sorted(end for end in ends if end is not None))
        if not self._ends:
            raise VocabularyError("the model has no end token: texts could not end")

        def vocabulary_of(stops: Sequence[int]) -> Vocabulary:
            return from_huggingface(tokenizer, size=vocab_size, eos_token_id=stops)

        self.requests = CompiledRequests(vocabulary_of, kept_bytes())
        self._whitespace = whitespace

    @staticmethod
    def allocate_vocab_mask(vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Rows that allow everything, in host memory that a device can read where there is one."""
        shape = (batch_size, -(-vocab_size // 32))
        return torch.full(shape, -1, dtype=torch.int32, pin_memory=_has_device())

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """JSON of a schema."""
        return self._made("json", "true" if key_string == _ANY else key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """What a pattern matches in full."""
        return self._made("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """The texts of a grammar in xgrammar's EBNF."""
        return self._made("grammar", key_string)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """The texts of a structural tag, legacy ones too."""
        return self._made("structural_tag", key_string)

    def _made(self, kind: Kind, text: str) -> BaseGrammarObject:
        request = Request(kind, text, self._whitespace)
        try:
            self.requests.automaton(request, self._ends)
        except TokenfstError as error:
            return InvalidGrammarObject(str(error))
        return TokenfstGrammar(self.requests, request, self._ends)

    def get_cached_or_future_value(
        self, key: tuple[str, str], require_reasoning: bool
    ) -> tuple[BaseGrammarObject | Future[BaseGrammarObject], bool]:
        """A template, or the promise of one. What has gone from the store is compiled again."""
        known = self.cache.get(key)
        if isinstance(known, TokenfstGrammar) and not known.is_compiled():
            del self.cache[key]
        found: tuple[Any, bool] = super().get_cached_or_future_value(key, require_reasoning)
        return found


@cache
def _has_device() -> bool:
    """Whether there is a device that reads the host's memory. Asked once: a mask is allocated for each step."""
    return bool(torch.cuda.is_available())


def make_backend(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> BaseGrammarBackend:
    """The backend of a scheduler, as ``register_grammar_backend`` wants it."""
    backend: BaseGrammarBackend = TokenfstGrammarBackend(
        tokenizer, vocab_size, eos_token_ids, _whitespace(server_args)
    )
    if not server_args.reasoning_parser:
        return backend
    from sglang.srt.constrained.reasoner_grammar_backend import ReasonerGrammarBackend
    from sglang.srt.parser.reasoning_parser import ReasoningParser

    parser = ReasoningParser(
        model_type=server_args.reasoning_parser, stream_reasoning=False, tokenizer=tokenizer
    )
    return ReasonerGrammarBackend(
        backend, parser, tokenizer, enable_strict_thinking=server_args.enable_strict_thinking
    )


def _whitespace(server_args: Any) -> str:
    """``whitespace`` of ``json_schema`` that the server's options mean."""
    if server_args.constrained_json_disable_any_whitespace:
        return "compact"
    if server_args.constrained_json_whitespace_pattern is not None:
        return str(server_args.constrained_json_whitespace_pattern)
    most = server_args.constrained_json_max_whitespace_cnt
    return "flexible" if most is None else f"[ \\t\\n\\r]{{0,{most}}}"


def begin_request(request: Any) -> None:
    """Give the grammar of a scheduler's request its text. What cannot be ends the request, before it runs, with the
    reason."""
    grammar = request.grammar
    inner = getattr(grammar, "grammar", grammar)
    if not isinstance(inner, TokenfstGrammar):
        return
    params = request.sampling_params
    reasons = inner is not grammar and request.require_reasoning
    # Before n texts SGLang asks for none, to have the prompt in its cache.
    counted = not reasons and params.max_new_tokens != 0
    try:
        inner.begin(sorted(params.stop_token_ids or ()), params.max_new_tokens if counted else None)
    except TokenfstError as error:
        request.set_finish_with_abort(f"structured output: {error}")
