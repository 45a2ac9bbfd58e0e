"""Masks in numpy arrays, under the names of ``llguidance.numpy``."""

from __future__ import annotations

from typing import Any

from tokenfst.compat.llguidance.classes.executor import Drafts, LLExecutor, Rows, fill_drafts, fill_rows
from tokenfst.compat.llguidance.classes.matcher import LLMatcher
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace

__all__ = [
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "apply_token_bitmask_inplace_kernel",
    "consume_token_par",
    "fill_next_token_bitmask",
    "fill_next_token_bitmask_par",
    "fill_next_token_bitmask_par_with_draft_tokens",
    "get_bitmask_shape",
]

apply_token_bitmask_inplace_kernel = apply_token_bitmask_inplace


def get_bitmask_shape(batch_size: int, vocab_size: int) -> tuple[int, int]:
    """The shape of a bitmask: (rows, words of 32 bits in a row)."""
    return batch_size, -(-vocab_size // 32)


def consume_token_par(executor: LLExecutor, matchers: Rows) -> list[bool]:
    """Accept a token in each matcher; returns which matchers accepted theirs."""
    return executor.consume_token_par(matchers)


def fill_next_token_bitmask(interp: LLMatcher, bitmask: Any, index: int = 0) -> None:
    """Write the mask of the next token into a row of an int32 bitmask."""
    interp.fill(bitmask, index)


def fill_next_token_bitmask_par(executor: LLExecutor, matchers: Rows, bitmask: Any) -> None:
    """Write the mask of each matcher into its row of a bitmask, int32 (rows, words)."""
    fill_rows(executor, matchers, bitmask)


def fill_next_token_bitmask_par_with_draft_tokens(
    executor: LLExecutor, matchers: Drafts, bitmask: Any
) -> None:
    """Write the mask of each matcher into its row, and the masks after each of its draft tokens into later rows."""
    fill_drafts(executor, matchers, bitmask)
