"""llguidance's ``LLInterpreter``: a matcher that also says which tokens follow a token that was chosen.

It never takes tokens back and never changes the end of a prompt, which llguidance's may; so ``enable_backtrack`` means
nothing. What each step tells in JSON has the text, the captures and whether it stopped, and no counts of work.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tokenfst.compat.llguidance.grammars import LLParserLimits
from tokenfst.compat.llguidance.matcher import LLMatcher, as_array
from tokenfst.compat.llguidance.tokenizer import LLTokenizer
from tokenfst.plurals import counted


class LLInterpreter:
    """One decoding: ``process_prompt`` or ``start_without_prompt``, then ``compute_mask`` and ``commit_token`` in turn.

    Raises ValueError for a wrong grammar, as there."""

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
        self._told = 0  # how many of these were told of
        self._captured = 0

    def deep_copy(self) -> LLInterpreter:
        """An independent copy."""
        made = LLInterpreter.__new__(LLInterpreter)
        made.__dict__.update(self.__dict__)
        made._matcher, made._tokens = self._matcher.deep_copy(), [*self._tokens]  # a copy
        return made

    def is_accepting(self) -> bool:
        """Whether the text so far is whole."""
        return self._matcher.is_accepting()

    def stop_reason(self) -> str:
        """Why it stopped."""
        return self._matcher.stop_reason() if self.has_pending_stop() else "NotStopped"

    def has_pending_stop(self) -> bool:
        """Whether the next ``compute_mask`` tells that it stopped."""
        return self._matcher.is_stopped()

    def start_without_prompt(self) -> None:
        """Begin."""

    def process_prompt(self, prompt: Sequence[int]) -> list[int]:
        """The prompt, and the tokens that every text begins with."""
        return [*prompt, *self._forced()]

    def validate_tokens_raw(self, tokens: Sequence[int]) -> int:
        """How many of these tokens could be taken."""
        return self._matcher.validate_tokens(tokens)

    def compute_mask(self) -> tuple[bytes | None, str]:
        """The mask of the next token, a byte a token (200: allowed), None where it stopped; and what happened, as
        JSON."""
        stopped = self.has_pending_stop()
        return None if stopped else self._matcher.compute_logit_bias(), self._progress(stopped)

    def compute_mask_into(self, trg: bytearray) -> str:
        """The same, the mask as bits into a buffer."""
        found = self._matcher.compute_bitmask()
        if len(trg) != len(found):
            raise ValueError(f"a mask takes {counted(len(found), 'byte')}, not {len(trg):,}")
        trg[:] = found
        return self._progress(self.has_pending_stop())

    def unsafe_compute_mask_ptr(self, trg_ptr: int, trg_bytes: int) -> str:
        """The same into memory at an address."""
        self._matcher.unsafe_compute_mask_ptr(trg_ptr, trg_bytes)
        return self._progress(self.has_pending_stop())

    def fill(self, bitmask: Any, index: int) -> None:
        """The mask of the next token into a row."""
        self._matcher.fill(as_array(bitmask), index)

    def commit_token(self, sampled_token: int | None) -> tuple[int, list[int]]:
        """Take a token: none to remove, and the tokens to append: this one and those that must follow. ValueError for
        one that is not allowed."""
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
