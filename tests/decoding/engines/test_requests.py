"""Requests in the loop of an engine: what fails there fails for one request alone."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenfst import Vocabulary, allocate_token_bitmask
from tokenfst.decoding.engines.requests import CompiledRequests, Request, RequestMatcher, fill_rows
from tokenfst.decoding.masks.bitmask import unpack_bitmask
from tokenfst.errors import BudgetExceeded

TOKENS = [*(bytes([byte]) for byte in range(256)), b"stop", b"end"]
SIZE = len(TOKENS)
DIGITS, LETTERS = Request("regex", "[0-9]+"), Request("regex", "[a-z]*")


def requests() -> CompiledRequests:
    return CompiledRequests(lambda stops: Vocabulary(TOKENS, stops or [257]))


class Exhausted:
    """A matcher that finds nothing out within its budget. Python's: masks of a batch are then made one by one."""

    max_tokens_left = None

    def fill_next_token_bitmask(self, bitmask: Any, row: int) -> None:
        raise BudgetExceeded("states", 3, "a test")

    def accept_token(self, token: int) -> bool:
        raise BudgetExceeded("states", 3, "a test")

    def is_terminated(self) -> bool:
        return False


def allowed(row: Any) -> set[int]:
    return set(np.flatnonzero(unpack_bitmask(row, SIZE)).tolist())


def test_masks_of_a_batch_go_on_where_one_request_fails():
    known = requests()
    good = [known.served(DIGITS, [], None), known.served(LETTERS, [256, 257], 4)]
    for rows in ((0, 1, 2), (4, 0, 2)):
        bad: Any = RequestMatcher(Exhausted(), [256, 257])  # type: ignore[arg-type]
        bitmask = allocate_token_bitmask(5, SIZE)
        fill_rows(bitmask, [*zip(rows, [good[0], bad, good[1]], strict=True)])
        assert allowed(bitmask[rows[0]]) == {*range(48, 58)}
        assert allowed(bitmask[rows[1]]) == {*range(256)}  # no end: the text is not to look whole
        assert allowed(bitmask[rows[2]]) == {*range(97, 123), 256, 257}
        assert "a test" in bad.failure and not bad.accept(97) and not good[0].failure


def test_a_token_that_cannot_be_followed_is_refused():
    bad: Any = RequestMatcher(Exhausted(), [257])  # type: ignore[arg-type]
    assert not bad.is_over() and not bad.accept(97) and "a test" in bad.failure


def test_a_request_ends_with_its_text_or_its_tokens():
    known = requests()
    served = known.served(LETTERS, [], 3)
    assert served.accept(97) and not served.is_over() and not served.accept(48) and not served.failure
    assert served.accept(257) and served.is_over()
    last = known.served(LETTERS, [], 1)
    assert last.accept(97) and last.is_over()
    bitmask = np.zeros((1, -(-SIZE // 32)), np.int32)
    fill_rows(bitmask, [(0, last)])
    assert (bitmask == -1).all()


def test_what_was_compiled_is_kept_by_its_bytes():
    known = requests()
    first = known.automaton(DIGITS, [])
    assert (
        known.known(DIGITS, []) is first is known.automaton(DIGITS, ()) and known.known(LETTERS, []) is None
    )
    assert known.automaton(DIGITS, [256]) is not first
    small = CompiledRequests(lambda stops: Vocabulary(TOKENS, [257]), bytes=1)
    small.automaton(DIGITS, [])
    small.automaton(LETTERS, [])
    assert small.known(DIGITS, []) is None and small.known(LETTERS, []) is not None
