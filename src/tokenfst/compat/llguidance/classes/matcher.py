"""One decoding under a grammar, with the interface of llguidance's ``LLMatcher``.

As in llguidance, a matcher never raises for a grammar or a token: it enters an error state and stays in it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from tokenfst._native import Matcher
from tokenfst.common.plurals import counted
from tokenfst.compat.llguidance.classes.grammars import (
    LLParserLimits,
    constraint_of,
    json_schema_grammar,
    regex_grammar,
    warnings_of,
)
from tokenfst.compat.llguidance.classes.tokenizer import LOOK_BACK, LLTokenizer
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.masks import bitmask as masks
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask
from tokenfst.errors import BudgetExceeded, TokenfstError


class LLMatcher:
    """One decoding under a grammar: a text from ``grammar_from_...`` or ``grammar_from``, or a text in Lark's
    notation.
    """

    def __init__(
        self,
        tokenizer: LLTokenizer,
        grammar: str,
        *,
        log_level: int = 1,
        limits: LLParserLimits | None = None,
    ) -> None:
        self._tokenizer = tokenizer
        self._error = ""
        self._warnings: list[str] = []
        self._matcher: Matcher | None = None
        try:
            constraint = constraint_of(grammar)
            self._warnings = warnings_of(constraint)
            self._matcher = compile(constraint, tokenizer.vocabulary).matcher()
        except TokenfstError as error:
            self._error = str(error)

    # --- grammars -----------------------------------------------------------------------------------------

    @staticmethod
    def grammar_from_json_schema(
        schema: str | Mapping[str, Any],
        defaults: Mapping[str, Any] | None = None,
        overrides: Mapping[str, Any] | None = None,
    ) -> str:
        """The grammar of a JSON Schema.

        ``x-guidance`` in the schema takes precedence over ``defaults``, and ``overrides`` over both. The options are
        in docs/engines/compat.md.
        """
        return json_schema_grammar(schema, defaults or {}, overrides or {})

    @staticmethod
    def grammar_from_lark(lark: str) -> str:
        """The grammar of a text in Lark's notation, which is the text itself."""
        return lark

    @staticmethod
    def grammar_from_regex(regex: str) -> str:
        """The grammar of a regular expression of Python's ``re``, matched in full."""
        return regex_grammar(regex)

    @staticmethod
    def validate_grammar(
        grammar: str, tokenizer: LLTokenizer | None = None, *, limits: LLParserLimits | None = None
    ) -> str:
        """The message of the error that a grammar raises; empty if the grammar is valid."""
        wrong, [*lines] = LLMatcher.validate_grammar_with_warnings(grammar, tokenizer)
        return lines[0] if wrong else ""

    @staticmethod
    def validate_grammar_with_warnings(
        grammar: str, tokenizer: LLTokenizer | None = None, *, limits: LLParserLimits | None = None
    ) -> tuple[bool, list[str]]:
        """Whether a grammar is invalid, and the error. For a valid one, the keywords that were left out of it."""
        try:
            made = constraint_of(grammar)
            if tokenizer is not None:
                compile(made, tokenizer.vocabulary)
        except TokenfstError as error:
            return True, [str(error)]
        return False, warnings_of(made)

    # --- state --------------------------------------------------------------------------------------------

    def is_error(self) -> bool:
        """Whether the grammar was invalid, or a token was not allowed."""
        return bool(self._error)

    def get_error(self) -> str:
        """The error message; empty if there is no error."""
        return self._error

    def get_grammar_warnings(self) -> list[str]:
        """The unsupported keywords that were left out of a schema. Without ``lenient`` they are errors."""
        return list(self._warnings)

    def is_accepting(self) -> bool:
        """Whether the text so far is complete."""
        matcher = self._going()
        return matcher is not None and (matcher.is_terminated() or matcher.is_accepting())

    def is_stopped(self) -> bool:
        """Whether only the end token may follow; also true after an error."""
        matcher = self._going()
        if matcher is None or matcher.is_terminated():
            return True
        return matcher.is_accepting() and not self._goes_on(matcher)

    def stop_reason(self) -> str:
        """The reason why the matcher stopped, in llguidance's words."""
        if self._error:
            return "InternalError"
        matcher = self._going()
        if matcher is not None and matcher.is_terminated():
            before = matcher.fork()
            before.rollback(1)
            return "EndOfSentence" if self._goes_on(before) else "NoExtension"
        return "NoExtension" if self.is_stopped() else "NotStopped"

    def deep_copy(self) -> LLMatcher:
        """An independent copy."""
        made = LLMatcher.__new__(LLMatcher)
        made.__dict__.update(self.__dict__)
        made._matcher = None if self._matcher is None else self._matcher.fork()  # a copy
        return made

    # --- tokens -------------------------------------------------------------------------------------------

    def consume_token(self, sampled_token: int) -> bool:
        """Accept a token. Returns False, and enters an error state, if it is not allowed."""
        return self.consume_tokens([sampled_token])

    def consume_tokens(self, tokens: Sequence[int]) -> bool:
        """Accept tokens. Returns False, and enters an error state, if one of them is not allowed.

        A matcher that has stopped takes a single end token as often as it is given, and does not change: ``rollback``
        does not count these.
        """
        if len(tokens) == 1 and tokens[0] in self._tokenizer.eos_tokens and self.is_stopped():
            return True
        if self._error:
            return False
        taken = self.try_consume_tokens(tokens)
        if not self._error and taken < len(tokens):
            self._error = f"token {tokens[taken]}, number {taken + 1} of these tokens, is not allowed"
        return not self._error

    def try_consume_tokens(self, tokens: Sequence[int]) -> int:
        """Accept tokens up to the first that is not allowed, and return how many were accepted."""
        matcher, count = self._going(), self.validate_tokens(tokens)
        try:
            if matcher is not None and count:
                matcher.accept_tokens(list(tokens[:count]))
        except BudgetExceeded as error:
            self._error = str(error)
        return 0 if self._error else count

    def validate_tokens(self, tokens: Sequence[int]) -> int:
        """How many of these tokens would be accepted."""
        matcher = self._going()
        if matcher is None or matcher.is_terminated():
            return 0
        known = next((place for place, token in enumerate(tokens) if not self._is_token(token)), len(tokens))
        try:
            return matcher.validate_tokens(list(tokens[:known]))
        except BudgetExceeded as error:
            self._error = str(error)
            return 0

    def rollback(self, num_tokens: int) -> bool:
        """Take back the last tokens. Returns False, and enters an error state, if there were fewer."""
        matcher = self._going()
        if matcher is None:
            return False
        if not 0 <= num_tokens <= matcher.num_tokens:
            taken = counted(matcher.num_tokens, "token")
            self._error = f"rollback of {counted(num_tokens, 'token')}: the matcher has taken {taken}"
            return False
        matcher.rollback(num_tokens)
        return True

    def reset(self) -> bool:
        """Return to the beginning of the text."""
        matcher = self._going()
        if matcher is not None:
            matcher.reset()
        return matcher is not None

    def compute_ff_tokens(self) -> list[int]:
        """The tokens that must come next, as the tokenizer cuts the forced text; without an end token.

        The last of them are left out if a longer token could replace them.
        """
        matcher = self.open()
        if matcher is None:
            return []
        found = self._tokenizer.tokenize_bytes(matcher.forced_bytes())
        found = found[: matcher.validate_tokens(found)]
        ahead = matcher.fork()
        row = allocate_token_bitmask(1, self.vocab_size)
        for place, token in enumerate(found):
            if len(found) - place <= LOOK_BACK:
                ahead.fill_next_token_bitmask(row, 0)
                longer = self._tokenizer.longer(self._tokenizer.decode_bytes(found[place:]))
                if any(row[0, each // 32] >> each % 32 & 1 for each in longer):
                    return found[:place]
            ahead.accept_token(token)
        return found

    def compute_ff_bytes(self) -> bytes:
        """The bytes that must come next."""
        matcher = self._going()
        return b"" if matcher is None or matcher.is_terminated() else matcher.forced_bytes()

    def compute_bitmask(self) -> bytes:
        """The mask of the next token, one bit for each token."""
        row = allocate_token_bitmask(1, self._tokenizer.vocab_size)
        self.fill(row, 0)
        return row.tobytes()

    def compute_logit_bias(self) -> bytes:
        """The mask of the next token, one byte for each token: 200 if it is allowed, otherwise 0."""
        row = allocate_token_bitmask(1, self._tokenizer.vocab_size)
        self.fill(row, 0)
        return (masks.unpack_bitmask(row[0], self._tokenizer.vocab_size) * 200).astype("u1").tobytes()

    def fill(self, bitmask: Any, index: int) -> None:
        """Write the mask of the next token into a row. If the matcher has stopped, only end tokens are allowed."""
        matcher = self._going()
        if matcher is not None and not matcher.is_terminated():
            try:
                matcher.fill_next_token_bitmask(bitmask, index)
            except BudgetExceeded as error:
                self._error = str(error)
            else:
                return
        vocabulary = self._tokenizer.vocabulary
        as_array(bitmask)[index] = masks.bitmask_from_ids(vocabulary.eos_token_ids, len(vocabulary))

    def unsafe_compute_mask_ptr(self, trg_ptr: int, trg_bytes: int) -> None:
        """Write the mask of the next token to memory at an address. Raises ValueError if the size is not that of a
        mask.
        """
        self.fill(rows_at(trg_ptr, trg_bytes, self._tokenizer.vocab_size, 1), 0)

    def unsafe_compute_mask_ptr_with_draft_token(
        self, trg_ptr: int, trg_bytes: int, draft_tokens: Sequence[int]
    ) -> None:
        """Write the mask of the next token to memory at an address, followed by the masks after each draft token. All
        masks have the same size. Raises ValueError if ``trg_bytes`` is not the size of these masks.
        """
        rows = rows_at(trg_ptr, trg_bytes, self.vocab_size, 1 + len(draft_tokens))
        self.fill(rows, 0)
        self.fill_after(rows, 0, draft_tokens)

    def fill_after(self, bitmask: Any, row: int, drafts: Sequence[int]) -> None:
        """Write the masks after each further draft token into the rows after ``row``.

        This stops at the first draft token that is not allowed or that ends the text; later rows are unchanged.
        """
        taken = 0
        for place, token in enumerate(drafts):
            if self.open() is None or self.try_consume_tokens([token]) == 0:
                break
            taken += 1
            if self.open() is not None:
                self.fill(bitmask, row + place + 1)
        self.rollback(taken)

    def get_captures(self) -> list[tuple[str, bytes]]:
        """The bytes that named rules and groups matched, in the order in which the matches ended."""
        matcher = self._going()
        if matcher is None:
            return []
        found = [
            (each.end, name, each.data)
            for name, many in matcher.captures().items()
            for each in many
            if each.end is not None
        ]
        return [(name, data) for _, name, data in sorted(found, key=lambda each: each[0])]

    def get_capture(self, name: str) -> bytes | None:
        """The bytes of the last match with this name."""
        return next((data for known, data in reversed(self.get_captures()) if known == name), None)

    def __copy__(self) -> LLMatcher:
        return self.deep_copy()

    def __deepcopy__(self, memo: object) -> LLMatcher:
        return self.deep_copy()

    @property
    def vocab_size(self) -> int:
        """The width of the model's logits."""
        return self._tokenizer.vocab_size

    def open(self) -> Matcher | None:
        """The tokenfst matcher, unless the text has ended or there was an error."""
        matcher = self._going()
        return None if matcher is None or matcher.is_terminated() else matcher

    def _going(self) -> Matcher | None:
        return None if self._error else self._matcher

    def _is_token(self, token: int) -> bool:
        return 0 <= token < self._tokenizer.vocab_size

    def _goes_on(self, matcher: Matcher) -> bool:
        """Whether a token other than the end tokens may follow."""
        row = allocate_token_bitmask(1, self._tokenizer.vocab_size)
        matcher.fill_next_token_bitmask(row, 0)
        vocabulary = self._tokenizer.vocabulary
        return bool((row[0] & ~masks.bitmask_from_ids(vocabulary.eos_token_ids, len(vocabulary))).any())


def as_array(bitmask: Any) -> Any:
    """The memory of a bitmask, which is a numpy array or a torch tensor in host memory."""
    return bitmask if isinstance(bitmask, np.ndarray) else bitmask.numpy()


def rows_at(pointer: int, bytes_of_row: int, vocab_size: int, rows: int) -> npt.NDArray[np.int32]:
    """Rows of masks at an address. Raises ValueError if a row does not have the size of a mask."""
    words = -(-vocab_size // 32)
    if bytes_of_row != 4 * words or pointer == 0 or pointer % 4:
        raise ValueError(
            f"a mask of {counted(vocab_size, 'token')} takes {counted(4 * words, 'byte')} at an address that 4 "
            "divides, not "
            f"{bytes_of_row:,} at {pointer:#x}"
        )
    memory = (ctypes.c_char * (rows * bytes_of_row)).from_address(pointer)
    return np.frombuffer(memoryview(memory), np.int32).reshape(rows, words)
