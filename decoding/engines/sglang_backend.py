"""The SGLang grammar backend: one backend for each scheduler, and one grammar for each request.

SGLang requests a grammar by its kind and text alone, caches it, and copies it for each request. It requests the
masks of a step together; drafts are accepted, masked and taken back one by one. So a grammar is a template until it
gets a request: ``begin`` then creates its matcher, with the request's end tokens and number of tokens. The hooks
that call ``begin`` are in ``sglang_plugin``. Written for SGLang 0.5.23 (docs/engines/sglang.md).

Invariant: a text is complete within the request's ``max_new_tokens``, unless reasoning precedes it, because a
grammar does not learn how many tokens the reasoning took. After the end of a text every token is accepted and none
is masked, as SGLang requires; a rollback to before the end continues the text.

Automata are cached by their size in bytes (``CompiledRequests``). SGLang's own table of grammars is unbounded, but
holds only the texts of requests: if the automaton of a template was dropped, it is compiled again, in a separate
thread.
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
from tokenfst.common.plurals import counted
from tokenfst.decoding.engines.shared.requests import (
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
from tokenfst.errors import ArgumentValueError, MatcherError, TokenfstError, VocabularyError
from tokenfst.tokenizers.adapters.huggingface import from_huggingface
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_ANY = "$$ANY$$"
"""The value with which SGLang's requests ask for any JSON instead of a schema."""


class _NotBegun:
    """The state of a template, which has no text."""

    def __getattr__(self, name: str) -> Any:
        raise MatcherError("this grammar is a template: begin() gives it a text")


_NOT_BEGUN: Any = _NotBegun()


class TokenfstGrammar(BaseGrammarObject):  # type: ignore[misc]
    """A request's constraint and, after ``begin``, its matcher, with SGLang's interface."""

    def __init__(self, requests: CompiledRequests, request: Request, ends: tuple[int, ...]) -> None:
        super().__init__()
        self._requests, self.request, self._ends = requests, request, ends
        self.served: RequestMatcher = _NOT_BEGUN

    def begin(self, stops: Sequence[int], max_tokens: int | None) -> None:
        """Create the matcher of a request. Its text is complete within ``max_tokens``, and ``stops`` may end it too.

        Raises TokenLimitError if no text is that short, and for additional stop tokens the errors of compilation.
        """
        self.served = self._requests.served(self.request, sorted({*self._ends, *stops}), max_tokens)

    @property
    def matcher(self) -> AnyMatcher:
        """The matcher, with tokenfst's own interface."""
        return self.served.matcher

    def is_compiled(self) -> bool:
        """Whether the request's automaton is in the cache."""
        return self._requests.known(self.request, self._ends) is not None

    def copy(self) -> TokenfstGrammar:
        """A new template of the same constraint."""
        return TokenfstGrammar(self._requests, self.request, self._ends)

    def accept_token(self, token: int) -> None:
        """Advance. Raises ValueError for a token that is not allowed; tokens after the end are ignored."""
        self.current_token = token
        if not self.served.accept_until_over((token,)):
            raise ArgumentValueError(
                self.served.failure
                or f"token {token} is not allowed after {counted(self.matcher.num_tokens, 'token')} of {self.request}"
            )

    def rollback(self, k: int) -> None:
        """Undo the last ``k`` tokens."""
        self.matcher.rollback(k)

    def is_terminated(self) -> bool:
        """Whether the text has ended, by an end token or by the last of ``max_new_tokens``."""
        return self.served.is_over()

    def allocate_vocab_mask(self, vocab_size: int, batch_size: int, device: Any) -> torch.Tensor:
        """Rows that allow every token, in host memory."""
        return TokenfstGrammarBackend.allocate_vocab_mask(vocab_size, batch_size, device)

    def fill_vocab_mask(self, vocab_mask: torch.Tensor, idx: int) -> None:
        """Write the mask of the next token into row ``idx``."""
        fill_step(vocab_mask.numpy(), [self.served], [idx])

    @staticmethod
    def fill_vocab_mask_batched(entries: list[Any], vocab_mask: torch.Tensor) -> None:
        """Write the masks of a step into the entries' rows, in one native call if all grammars are of this class."""
        grammars = [entry.grammar for entry in entries]
        if {*map(type, grammars)} == {TokenfstGrammar}:
            served = [grammar.served for grammar in grammars]
            fill_step(vocab_mask.numpy(), served, [entry.row for entry in entries])
        else:
            BaseGrammarObject.fill_vocab_mask_batched(entries, vocab_mask)

    @staticmethod
    def reset_vocab_mask(vocab_mask: torch.Tensor) -> None:
        """Allow every token in all rows."""
        vocab_mask.fill_(-1)

    @staticmethod
    def move_vocab_mask(vocab_mask: torch.Tensor, device: Any) -> torch.Tensor:
        """The mask on the device of the logits."""
        return vocab_mask.to(device, non_blocking=True)

    @staticmethod
    def apply_vocab_mask(logits: torch.Tensor, vocab_mask: torch.Tensor) -> None:
        """Set forbidden logits to -inf. There is no check for NaN, because it would have to wait for the device."""
        apply_token_bitmask_inplace(logits, vocab_mask, check_nan=False)

    def try_jump_forward(self, tokenizer: Any) -> tuple[list[int], str] | None:
        """The text that must come next, up to the last complete character; None if there is none."""
        matcher = self.matcher
        if self.is_terminated() or not isinstance(matcher, Matcher | ReachMatcher):
            return None
        text = codecs.getincrementaldecoder("utf-8")("ignore").decode(matcher.forced_bytes())
        return ([], text) if text else None

    def jump_forward_str_state(self, helper: tuple[list[int], str]) -> tuple[str, int]:
        """The text of ``try_jump_forward``, and -1 in place of a state, because the matcher itself holds the state."""
        return helper[1], -1

    def jump_and_retokenize(
        self, old_output_ids: list[int], new_output_ids: list[int], next_state: int
    ) -> None:
        """Replace the tokens of the text by those of its new tokenization. Raises ValueError for a token that is not
        allowed.
        """
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
    """Compiles and caches constraints for a scheduler. ``TOKENFST_CACHE_MB``: the size of the cache, 512 by default."""

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
        """Rows that allow every token, in host memory that a device can read if there is one."""
        shape = (batch_size, -(-vocab_size // 32))
        return torch.full(shape, -1, dtype=torch.int32, pin_memory=_has_device())

    def dispatch_json(self, key_string: str) -> BaseGrammarObject:
        """The JSON texts of a schema."""
        return self._made("json", "true" if key_string == _ANY else key_string)

    def dispatch_regex(self, key_string: str) -> BaseGrammarObject:
        """The texts that a pattern matches in full."""
        return self._made("regex", key_string)

    def dispatch_ebnf(self, key_string: str) -> BaseGrammarObject:
        """The texts of a grammar in xgrammar's EBNF."""
        return self._made("grammar", key_string)

    def dispatch_structural_tag(self, key_string: str) -> BaseGrammarObject:
        """The texts of a structural tag, including the legacy form."""
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
        """A template, or a future of one. If its automaton was dropped from the cache, it is compiled again."""
        known = self.cache.get(key)
        if isinstance(known, TokenfstGrammar) and not known.is_compiled():
            del self.cache[key]
        found: tuple[Any, bool] = super().get_cached_or_future_value(key, require_reasoning)
        return found


@cache
def _has_device() -> bool:
    """Whether there is a device that reads host memory. Computed once, because a mask is allocated for each step."""
    return bool(torch.cuda.is_available())


def make_backend(server_args: Any, tokenizer: Any, vocab_size: int, eos_token_ids: Any) -> BaseGrammarBackend:
    """The backend of a scheduler, as ``register_grammar_backend`` requires it."""
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
    """The value of ``whitespace`` of ``json_schema`` for the server's options."""
    if server_args.constrained_json_disable_any_whitespace:
        return "compact"
    if server_args.constrained_json_whitespace_pattern is not None:
        return str(server_args.constrained_json_whitespace_pattern)
    most = server_args.constrained_json_max_whitespace_cnt
    return "flexible" if most is None else f"[ \\t\\n\\r]{{0,{most}}}"


def begin_request(request: Any) -> None:
    """Give a scheduler's request its matcher. A constraint that cannot be met ends the request before it runs, with
    the reason.
    """
    grammar = request.grammar
    inner = getattr(grammar, "grammar", grammar)
    if not isinstance(inner, TokenfstGrammar):
        return
    params = request.sampling_params
    reasons = inner is not grammar and request.require_reasoning
    # Before it generates n texts, SGLang runs the prompt with 0 new tokens, to have it in its cache.
    counted = not reasons and params.max_new_tokens != 0
    try:
        inner.begin(sorted(params.stop_token_ids or ()), params.max_new_tokens if counted else None)
    except TokenfstError as error:
        request.set_finish_with_abort(f"structured output: {error}")
