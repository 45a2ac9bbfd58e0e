"""Fills the masks of many matchers at once, in native threads that do not hold the interpreter's lock."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenfst.common.plurals import counted
from tokenfst.compat.llguidance.classes.matcher import LLMatcher, as_array, rows_at
from tokenfst.decoding.masks import bitmask as masks
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask
from tokenfst.errors import BudgetExceeded

Rows = Sequence[tuple[LLMatcher, int]]
Drafts = Sequence[tuple[LLMatcher, int, Sequence[int]]]


class LLExecutor:
    """Calls for many matchers at once. ``num_threads``: the number of native threads (``None``: the default)."""

    def __init__(self, num_threads: int | None = None) -> None:
        self.num_threads = num_threads

    def consume_token_par(self, matchers_and_tokens: Sequence[tuple[LLMatcher, int]]) -> list[bool]:
        """Accept one token in each matcher; returns which matchers accepted theirs."""
        return [matcher.consume_token(token) for matcher, token in matchers_and_tokens]

    def unsafe_compute_mask_ptr(
        self, interpreters: Rows, trg_ptr: int, one_mask_bytes: int, trg_batch_size: int
    ) -> None:
        """Write the masks of many matchers into rows of memory at an address."""
        if interpreters:
            size = interpreters[0][0].vocab_size
            fill_rows(self, interpreters, rows_at(trg_ptr, one_mask_bytes, size, trg_batch_size))

    def unsafe_compute_mask_ptr_with_draft_token(
        self, interpreters: Drafts, trg_ptr: int, one_mask_bytes: int, trg_batch_size: int
    ) -> None:
        """Write the masks of many matchers into rows of memory at an address. Each mask is followed by a row for the
        text after each draft token of its matcher.
        """
        if interpreters:
            size = interpreters[0][0].vocab_size
            fill_drafts(self, interpreters, rows_at(trg_ptr, one_mask_bytes, size, trg_batch_size))


def fill_rows(executor: LLExecutor, matchers: Rows, bitmask: Any) -> None:
    """Write the mask of each matcher into its row of a numpy array or torch tensor."""
    going = [(native, row) for matcher, row in matchers if (native := matcher.open()) is not None]
    rest = [(matcher, row) for matcher, row in matchers if matcher.open() is None]
    found = allocate_token_bitmask(len(going), 32 * bitmask.shape[1])
    try:
        masks.fill_bitmasks([native for native, _ in going], found, executor.num_threads)
    except BudgetExceeded:
        rest = [*matchers]  # one by one, so that only the matcher at fault gets an error state
    else:
        as_array(bitmask)[[row for _, row in going]] = found
    for matcher, row in rest:
        matcher.fill(bitmask, row)


def fill_drafts(executor: LLExecutor, matchers: Drafts, bitmask: Any) -> None:
    """Write the mask of each matcher into its row of a numpy array or torch tensor, and in the rows after it the masks
    after each of its draft tokens.

    This stops at the first draft token that is not allowed or that ends the text; later rows are unchanged. Raises
    ValueError if a row does not exist in the bitmask.
    """
    for _, row, drafts in matchers:
        if not 0 <= row < bitmask.shape[0] - len(drafts):
            raise ValueError(
                f"row {row} with {counted(len(drafts), 'draft')} does not fit into the bitmask, which has "
                f"{counted(bitmask.shape[0], 'row')}"
            )
    fill_rows(executor, [(matcher, row) for matcher, row, _ in matchers], bitmask)
    for matcher, row, drafts in matchers:
        matcher.fill_after(bitmask, row, drafts)
