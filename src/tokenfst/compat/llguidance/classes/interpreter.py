"""llguidance's ``LLInterpreter``: a matcher that also returns the tokens that must follow a chosen token.

Unlike llguidance's, it never takes tokens back and never changes the end of a prompt, so ``enable_backtrack`` has no
effect. The JSON report of each step has the text, the captures and whether decoding stopped. It has no counts of
work.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tokenfst.common.plurals import counted
from tokenfst.compat.llguidance.classes.grammars import LLParserLimits
from tokenfst.compat.llguidance.classes.matcher import LLMatcher, as_array
from tokenfst.compat.llguidance.classes.tokenizer import LLTokenizer


class LLInterpreter:
    """One decoding: call ``process_prompt`` or ``start_without_prompt``, then ``compute_mask`` and ``commit_token``
    in turn.

    Raises ValueError for a wrong grammar, as llguidance does.
    """

    def __init__(
        self,
        tokenizer: LLTokenizer,
        grammar: str,
        enable_backtrack: bool = True,
        enable_ff_tokens: bool = True,
        log_level: int = 1,
        limits: LLParserLimits | None = None,
    ) -> None:
        self.log_level = log_level
        self._tokenizer, self._forces = tokenizer, enable_ff_tokens
        self._matcher = LLMatcher(tokenizer, grammar, limits=limits)
        if self._matcher.is_error():
            raise ValueError(self._matcher.get_error())
        self._tokens: list[int] = []
        self._told = 0  # how many of these were reported
        self._captured = 0

    def deep_copy(self) -> LLInterpreter:
        """An independent copy."""
        made = LLInterpreter.__new__(LLInterpreter)
        made.__dict__.update(self.__dict__)
        made._matcher, made._tokens = self._matcher.deep_copy(), [*self._tokens]  # a copy
        return made

    def is_accepting(self) -> bool:
        """Whether the text so far is complete."""
        return self._matcher.is_accepting()

    def stop_reason(self) -> str:
        """The reason why decoding stopped."""
        return self._matcher.stop_reason() if self.has_pending_stop() else "NotStopped"

    def has_pending_stop(self) -> bool:
        """Whether the next ``compute_mask`` reports that decoding stopped."""
        return self._matcher.is_stopped()

    def start_without_prompt(self) -> None:
        """Start decoding without a prompt."""

    def process_prompt(self, prompt: Sequence[int]) -> list[int]:
        """The prompt, followed by the tokens that begin every text."""
        return [*prompt, *self._forced()]

    def validate_tokens_raw(self, tokens: Sequence[int]) -> int:
        """How many of these tokens would be accepted."""
        return self._matcher.validate_tokens(tokens)

    def compute_mask(self) -> tuple[bytes | None, str]:
        """The mask of the next token, and a report in JSON of what happened.

        The mask has one byte for each token (200: allowed); it is None if decoding has stopped.
        """
        stopped = self.has_pending_stop()
        return None if stopped else self._matcher.compute_logit_bias(), self._progress(stopped)

    def compute_mask_into(self, trg: bytearray) -> str:
        """Write the mask of the next token into a buffer, one bit for each token. Returns ``compute_mask``'s report."""
        found = self._matcher.compute_bitmask()
        if len(trg) != len(found):
            raise ValueError(f"a mask takes {counted(len(found), 'byte')}, not {len(trg):,}")
        trg[:] = found
        return self._progress(self.has_pending_stop())

    def unsafe_compute_mask_ptr(self, trg_ptr: int, trg_bytes: int) -> str:
        """Write the mask of the next token to memory at an address; returns the report of ``compute_mask``."""
        self._matcher.unsafe_compute_mask_ptr(trg_ptr, trg_bytes)
        return self._progress(self.has_pending_stop())

    def fill(self, bitmask: Any, index: int) -> None:
        """Write the mask of the next token into a row."""
        self._matcher.fill(as_array(bitmask), index)

    def commit_token(self, sampled_token: int | None) -> tuple[int, list[int]]:
        """Accept a token. Returns 0, as no token is removed, and the tokens to append: this one and those that must
        follow.

        Raises ValueError for a token that is not allowed.
        """
        if sampled_token is None:
            return 0, []
        if not self._matcher.consume_token(sampled_token):
            raise ValueError(self._matcher.get_error())
        self._tokens.append(sampled_token)
        return 0, [sampled_token, *self._forced()]

    def _forced(self) -> list[int]:
        forced = self._matcher.compute_ff_tokens() if self._forces else []
        self._matcher.consume_tokens(forced)
        self._tokens += forced
        return forced

    def _progress(self, stopped: bool) -> str:
        told: list[dict[str, Any]] = []
        new = self._tokens[self._told :]
        told.append(
            {
                "object": "text",
                **self._text(new),
                "log_prob": 0.0,
                "num_tokens": len(new),
                "is_generated": bool(new),
            }
        )
        captures = self._matcher.get_captures()
        for name, data in captures[self._captured :]:
            text = {"str": data.decode("utf-8", "replace"), "hex": data.hex()}
            told.append({"object": "capture", "name": name, **text, "log_prob": 0.0})
        if stopped:
            told.append(
                {"object": "final_text", **self._text(self._tokens), "stop_reason": self.stop_reason()}
            )
        self._told, self._captured = len(self._tokens), len(captures)
        return json.dumps({"progress": told, "stop": stopped, "temperature": 0.0})

    def _text(self, tokens: list[int]) -> dict[str, str]:
        spelled = self._tokenizer.vocabulary.tokens
        data = b"".join(spelled[token] for token in tokens)
        return {"str": data.decode("utf-8", "replace"), "hex": data.hex()}
