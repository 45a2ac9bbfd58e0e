"""Requests in the loop of an engine: what fails there fails for one request alone."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenfst import Budget, Vocabulary, allocate_token_bitmask, compile, regex
from tokenfst.decoding.engines.shared.requests import (
    CompiledRequests,
    Request,
    RequestMatcher,
    fill_step,
    named_automata,
)
from tokenfst.decoding.masks.bitmask import unpack_bitmask
from tokenfst.errors import BudgetExceeded, ConstraintError, MaskBufferError

TOKENS = [*(bytes([byte]) for byte in range(256)), b"stop", b"end"]
SIZE = len(TOKENS)
DIGITS, LETTERS = Request("regex", "[0-9]+"), Request("regex", "[a-z]*")


def requests() -> CompiledRequests:
    return CompiledRequests(lambda stops: Vocabulary(TOKENS, stops or [257]))


ERRORS = [
    lambda: BudgetExceeded("states", 3, "a test"),
    lambda: RuntimeError("in a test"),
    lambda: MemoryError("in a test"),
]


class Exhausted:
    """A matcher that raises, by default because its budget is exceeded. In Python, so it fills its row by itself."""

    max_tokens_left = None

    def __init__(self, error: Callable[[], Exception] = ERRORS[0]) -> None:
        self._error = error

    def fill_next_token_bitmask(self, bitmask: Any, row: int) -> None:
        raise self._error()

    def accept_token(self, token: int) -> bool:
        raise self._error()

    def validate_tokens(self, tokens: Any) -> int:
        raise self._error()

    def is_terminated(self) -> bool:
        return False


def allowed(row: Any) -> set[int]:
    return set(np.flatnonzero(unpack_bitmask(row, SIZE)).tolist())


@pytest.mark.parametrize("error", ERRORS, ids=["budget", "runtime", "memory"])
def test_masks_of_a_batch_go_on_where_one_request_fails(error):
    known = requests()
    good = [known.served(DIGITS, [], None), known.served(LETTERS, [256, 257], 4)]
    for rows in ((0, 1, 2), (4, 0, 2)):
        bad: Any = RequestMatcher(Exhausted(error), [256, 257])  # type: ignore[arg-type]
        bitmask = allocate_token_bitmask(5, SIZE)
        fill_step(bitmask, [good[0], bad, good[1]], rows)
        assert allowed(bitmask[rows[0]]) == {*range(48, 58)}
        assert allowed(bitmask[rows[1]]) == {*range(256)}  # no end: the text is not to look whole
        assert allowed(bitmask[rows[2]]) == {*range(97, 123), 256, 257}
        assert "a test" in bad.failure and not bad.accept(97) and not good[0].failure


def test_masks_of_a_batch_go_on_where_a_native_matcher_fails():
    """A budget of states that the automaton of one request exceeds in the middle of a step."""
    vocabulary = Vocabulary(TOKENS, [257])
    small = compile(regex("(a|b)*a(a|b){12}"), vocabulary, budget=Budget(states=40))
    bad, good = RequestMatcher(small.matcher(), [257]), requests().served(DIGITS, [], None)
    bitmask = allocate_token_bitmask(2, SIZE)
    for _ in range(200):
        fill_step(bitmask, [bad, good])
        assert allowed(bitmask[1]) - {257} == {*range(48, 58)}, "the other request goes on"
        if bad.failure:
            break
        assert good.accept(48)
        bad.accept(97 + random.Random(good.matcher.num_tokens).randrange(2))
    assert "states" in bad.failure and not bad.accept(97) and bad.validate([97]) == 0
    assert not good.failure


@pytest.mark.parametrize("error", ERRORS, ids=["budget", "runtime", "memory"])
def test_a_token_that_cannot_be_followed_is_refused(error, caplog):
    bad: Any = RequestMatcher(Exhausted(error), [257])  # type: ignore[arg-type]
    assert bad.validate([97]) == 0 and not bad.failure
    assert not bad.is_over() and not bad.accept(97) and "a test" in bad.failure
    assert "a test" in caplog.text, "the reason is logged"


def test_a_token_outside_of_the_vocabulary_ends_its_request():
    served = requests().served(LETTERS, [], None)
    assert served.accept_until_over([97]) and not served.accept_until_over([SIZE])
    assert str(SIZE) in served.failure and not served.accept(97)


def test_a_request_ends_with_its_text_or_its_tokens():
    known = requests()
    served = known.served(LETTERS, [], 3)
    assert served.accept(97) and not served.is_over() and not served.accept(48) and not served.failure
    assert served.accept(257) and served.is_over()
    last = known.served(LETTERS, [], 1)
    assert last.accept(97) and last.is_over()
    bitmask = np.zeros((1, -(-SIZE // 32)), np.int32)
    fill_step(bitmask, [last])
    assert (bitmask == -1).all()


def test_tokens_behind_the_end_are_ignored():
    known = requests()
    for served in (
        known.served(LETTERS, [], 3),
        RequestMatcher(ByPython(known.served(LETTERS, [], 3)), [257]),
    ):  # type: ignore[arg-type]
        assert served.accept_until_over([97, 98]) and not served.is_over()
        assert not served.accept_until_over([48, 97]) and served.matcher.num_tokens == 2
        assert served.accept_until_over([257, 48, 48]) and served.is_over()
        assert served.accept_until_over([97]) and served.matcher.num_tokens == 3
    assert not RequestMatcher(Exhausted(), [257]).accept_until_over([97])  # type: ignore[arg-type]


class ByPython:
    """A matcher whose calls go through Python."""

    def __init__(self, served: RequestMatcher) -> None:
        self._matcher = served.matcher

    def __getattr__(self, name: str) -> Any:
        return getattr(self._matcher, name)


@given(
    walks=st.lists(
        st.tuples(st.sampled_from(["native", "python", "exhausted", "none"]), st.lists(st.integers(0, 3))),
        max_size=24,
    ),
    limit=st.one_of(st.none(), st.integers(1, 4)),
    seed=st.randoms(use_true_random=False),
)
def test_the_masks_of_a_step_are_those_of_each_request(walks, limit, seed):
    known = requests()
    step: list[RequestMatcher | None] = []
    for kind, chosen in walks:
        served = known.served(LETTERS, [], limit)
        if kind == "python":
            served = RequestMatcher(ByPython(served), [257])  # type: ignore[arg-type]
        if kind == "exhausted":
            served = RequestMatcher(Exhausted(), [257])  # type: ignore[arg-type]
        else:
            served.accept_until_over([(97, 98, 257, 48)[each] for each in chosen])
        step.append(None if kind == "none" else served)
    rows = [*range(len(step) + 2)]
    seed.shuffle(rows)
    rows = rows[: len(step)]
    bitmask = np.zeros((len(step) + 2, -(-SIZE // 32)), np.int32)
    fill_step(bitmask, step, rows)
    for place in {*range(len(bitmask))} - {*rows}:
        assert not bitmask[place].any()
    for place, (kind, _), each in zip(rows, walks, step, strict=True):
        expected = np.full((1, bitmask.shape[1]), -1, np.int32)
        if kind == "exhausted":
            assert allowed(bitmask[place]) == {*range(SIZE)} - {257} and each and each.failure
            continue
        if each is not None and not each.matcher.is_terminated() and each.matcher.max_tokens_left != 0:
            each.matcher.fill_next_token_bitmask(expected, 0)
        assert np.array_equal(bitmask[place], expected[0])


def test_rows_of_a_step_must_fit():
    known = requests()
    for buffer, rows in (
        (np.zeros((1, 3), np.int32), None),
        (np.zeros((1, -(-SIZE // 32)), np.int32), [1]),
        (np.zeros((1, -(-SIZE // 32)), np.float32), None),
    ):
        with pytest.raises(MaskBufferError):
            fill_step(buffer, [known.served(LETTERS, [], None)], rows)
    with pytest.raises(ValueError, match="a row for each"):
        fill_step(np.zeros((2, -(-SIZE // 32)), np.int32), [None, None], [1])


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


def test_a_named_automaton_is_found_as_long_as_it_has_the_name() -> None:
    vocabulary = Vocabulary(TOKENS, [256])
    automaton = compile(regex("ab"), vocabulary)
    known = requests()
    with named_automata([automaton, automaton]) as names:
        assert len(set(names)) == 2
        for name in names:
            assert known.automaton(Request("named", name), [257]) is automaton
            served = known.served(Request("named", name), [257], 3)
            assert [served.accept(token) for token in b"ba"] == [False, True]
            assert served.accept(ord("b")) and served.accept(256) and served.is_over()
    for name in names:
        with pytest.raises(ConstraintError, match="no automaton of this process has the name"):
            known.automaton(Request("named", name), [257])
