"""Ids and counts that make no sense: every call names the argument, what it got and what it accepts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tokenfst import (
    Grammar,
    Matcher,
    Vocabulary,
    allocate_token_bitmask,
    compile,
    fill_bitmasks,
    lark_grammar,
    regex,
)
from tokenfst.decoding.matchers.node_matcher import NodeMatcher
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.errors import ArgumentTypeError, ArgumentValueError, RollbackError, TokenIdError

VOCABULARY = Vocabulary([b"a", b"b", b"ab", b""], 3)
NO_IDS = [True, np.True_, 1.0, np.float32(1), "1", b"a", None, [1], np.array([1]), {}]
NO_SEQUENCES = [
    True,
    1,
    1.0,
    "12",
    b"\1",
    None,
    {0: 1},
    {1},
    np.array([1.0]),
    np.array([True]),
    np.array([[1]]),
]


def matchers() -> list[Any]:
    """A matcher of the core, and one that walks nodes in Python."""
    inside: Grammar = lark_grammar('start: "a" start "b" | "ab"')
    found = [compile(regex("[ab]*"), VOCABULARY).matcher(), start_matcher(compile(inside, VOCABULARY), 6)]
    assert isinstance(found[0], Matcher) and isinstance(found[1], NodeMatcher)
    return found


@pytest.mark.parametrize("matcher", matchers(), ids=["core", "nodes"])
class TestMatchers:
    @pytest.mark.parametrize("given", NO_IDS, ids=repr)
    def test_what_is_no_id(self, matcher: Any, given: Any) -> None:
        with pytest.raises(ArgumentTypeError, match=r"accept_token: token_id must be an integer, not "):
            matcher.accept_token(given)
        for call in (matcher.accept_tokens, matcher.validate_tokens):
            with pytest.raises(ArgumentTypeError, match=r"token_ids\[1\] must be an integer, not "):
                call([0, given])
        with pytest.raises(ArgumentTypeError, match="rollback: num_tokens must be an integer, not "):
            matcher.rollback(given)
        assert matcher.num_tokens == 0

    @pytest.mark.parametrize("given", NO_SEQUENCES, ids=repr)
    def test_what_is_no_sequence(self, matcher: Any, given: Any) -> None:
        for call in (matcher.accept_tokens, matcher.validate_tokens):
            with pytest.raises(ArgumentTypeError, match="token_ids must be a sequence of integers, not "):
                call(given)

    @pytest.mark.parametrize("given", [-1, 4, 1 << 40, -(1 << 63)])
    def test_ids_out_of_range(self, matcher: Any, given: int) -> None:
        said = f"token id {given} lies outside the vocabulary of 4 tokens, which have the ids 0 to 3"
        for call in (matcher.accept_token, lambda token: matcher.accept_tokens([0, token])):
            with pytest.raises(TokenIdError, match=said):
                call(given)
        with pytest.raises(TokenIdError, match=said):
            matcher.validate_tokens(np.array([given]))
        with pytest.raises(RollbackError):
            matcher.rollback(abs(given) + 1 if abs(given) < 1 << 62 else 5)

    @pytest.mark.parametrize("given", [1 << 63, -(1 << 63) - 1, 1 << 80], ids=repr)
    def test_no_number_of_64_bits(self, matcher: Any, given: int) -> None:
        for call in (matcher.accept_token, lambda token: matcher.accept_tokens([token])):
            with pytest.raises(ArgumentValueError, match=r"an integer from -2\^63 to 2\^63 - 1"):
                call(given)

    @pytest.mark.parametrize("kind", [int, np.int64, np.int32, np.uint8, np.uint64], ids=repr)
    def test_integers_of_other_libraries(self, matcher: Any, kind: Callable[[int], Any]) -> None:
        assert matcher.accept_token(kind(0)) and matcher.accept_tokens((kind(2), kind(1)))
        assert matcher.tokens == [0, 2, 1]
        matcher.rollback(kind(3))
        assert matcher.validate_tokens(np.array([0, 2, 1, 1], getattr(kind, "__name__", "int"))) >= 3


def test_lists_that_change_while_they_are_read() -> None:
    """``__index__`` of an element empties the list; reading went on in memory that was free."""

    class Emptying:
        def __init__(self, given: list[Any]) -> None:
            self.given = given

        def __index__(self) -> int:
            self.given.clear()
            self.given.extend(range(1000))
            self.given.clear()
            return 0

    for matcher in matchers():
        given: list[Any] = []
        given += [Emptying(given), *([1] * 1000)]
        assert matcher.validate_tokens(given) == 1


def test_tensors() -> None:
    torch = pytest.importorskip("torch")
    for matcher in matchers():
        assert matcher.accept_token(torch.tensor(0))
        assert matcher.accept_tokens(torch.tensor([2, 1], dtype=torch.int32))
        for wrong in (torch.tensor([1.0]), torch.tensor([True]), torch.tensor([[1]]), torch.tensor(1)):
            with pytest.raises(ArgumentTypeError, match="token_ids must be a sequence of integers"):
                matcher.accept_tokens(wrong)


def test_draft_trees_and_rows() -> None:
    """Arrays of numbers that are no integers were rounded."""
    matcher = matchers()[0]
    bitmask = allocate_token_bitmask(2, 4)
    line = np.array([1, -1]), np.array([-1, -1]), np.array([0, 2])
    for name, place in (("next_token", 0), ("next_sibling", 1), ("draft_tokens", 2)):
        for wrong in (np.array([0.5, 1.5]), np.array([True, False]), None, 5):
            given: list[Any] = [*line]
            given[place] = wrong
            with pytest.raises(
                ArgumentTypeError, match=f"traverse_draft_tree: {name} must be a sequence of integers"
            ):
                matcher.traverse_draft_tree(*given, bitmask)
    expected = allocate_token_bitmask(2, 4)
    matcher.traverse_draft_tree(*line, expected)
    matcher.traverse_draft_tree(*(each.tolist() for each in line), bitmask)
    assert (bitmask == expected).all()
    for wrong in (True, 1.0, None, "0"):
        with pytest.raises(
            ArgumentTypeError, match="fill_next_token_bitmask: index must be an integer, not "
        ):
            matcher.fill_next_token_bitmask(bitmask, wrong)
    for wrong in (None, 5, matcher):
        with pytest.raises(
            ArgumentTypeError, match="fill_bitmasks: matchers must be a sequence of matchers, not "
        ):
            fill_bitmasks(wrong, bitmask)


@pytest.mark.parametrize("given", [True, 1.0, None, "a"], ids=repr)
def test_vocabularies(given: Any) -> None:
    for call in (VOCABULARY.token_bytes, VOCABULARY.initial_bytes):
        with pytest.raises(ArgumentTypeError, match="token_id must be an integer, not "):
            call(given)
