"""Filling the masks of a batch, with and without threads."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from tokenfst.automata.regex.translate import regex
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, fill_bitmasks, unpack_bitmask
from tokenfst.errors import MaskBufferError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

VOCABULARY = Vocabulary([*(bytes([b]) for b in range(97, 107)), b"ab", b"abc", b"aa", b"bb", b""], 14)


def matchers(count):
    """Matchers of one lazy automaton whose masks nobody has asked for yet, at different places."""
    automaton = compile(regex("(a|b|abc){0,40}c?"), VOCABULARY)
    result = []
    for i in range(count):
        matcher = automaton.matcher()
        assert matcher.accept_tokens([i % 2] * (i // 2))
        result.append(matcher)
    return result


@pytest.mark.parametrize("threads", [None, 1, 2, 5])
@pytest.mark.parametrize("count", [0, 1, 3, 40])
def test_as_one_by_one(count, threads):
    together = np.zeros((count + 2, 1), np.int32)
    fill_bitmasks(matchers(count), together, threads)
    alone = np.zeros((count + 2, 1), np.int32)
    for row, matcher in enumerate(matchers(count)):
        matcher.fill_next_token_bitmask(alone, row)
    np.testing.assert_array_equal(together, alone)
    assert not together[count:].any(), "rows without a matcher stay as they are"
    if count:
        assert set(np.flatnonzero(unpack_bitmask(together[0], 15))) == {0, 1, 2, 10, 11, 12, 13, 14}


def test_many_known_rows_are_shared_out():
    """Rows of more than a megabyte: threads copy them side by side, again and again, also beside masks to be made."""
    wide = Vocabulary(
        [*(bytes([b]) for b in range(97, 107)), *(f"a{k:x}".encode() for k in range(60_000)), b""], 60_010
    )
    automaton = compile(regex("a[0-9a-f]{0,9}b?|[b-j]{0,20}"), wide)
    places = [automaton.matcher() for _ in range(260)]
    for row, matcher in enumerate(places):
        assert matcher.accept_tokens([row % 7 + 1] * (row % 5))
    alone = allocate_token_bitmask(260, len(wide))
    for row, matcher in enumerate(places[:200]):
        matcher.fill_next_token_bitmask(alone, row)
    for _ in range(5):
        together = allocate_token_bitmask(260, len(wide))
        fill_bitmasks(places, together, 4)
        for row, matcher in enumerate(places[200:], 200):
            matcher.fill_next_token_bitmask(alone, row)
        np.testing.assert_array_equal(together, alone)
    with pytest.raises(TypeError):
        fill_bitmasks([*places[:200], None], together, 4)
    fill_bitmasks([places[0]] * 260, together, 4)  # one matcher again and again: others wait for it
    assert (together == alone[0]).all()


def test_by_several_threads_of_python_at_once():
    """Several batches at the same time: helpers go from one to another."""
    right = np.zeros((60, 1), np.int32)
    fill_bitmasks(matchers(60), right, 1)
    found = [np.zeros((60, 1), np.int32) for _ in range(12)]
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda bitmask: fill_bitmasks(matchers(60), bitmask, 3), found))
    assert all((bitmask == right).all() for bitmask in found)


def test_into_a_torch_tensor():
    torch = pytest.importorskip("torch")
    bitmask = torch.zeros(2, 1, dtype=torch.int32)
    fill_bitmasks(matchers(2), bitmask)
    expected = allocate_token_bitmask(2, 15)
    fill_bitmasks(matchers(2), expected)
    assert (bitmask.numpy() == expected).all()


def test_buffers_that_do_not_fit():
    with pytest.raises(MaskBufferError, match="3 matchers cannot fill a bitmask of 2 rows"):
        fill_bitmasks(matchers(3), np.zeros((2, 1), np.int32))
    with pytest.raises(MaskBufferError):
        fill_bitmasks(matchers(2), np.zeros((2, 2), np.int32))
    with pytest.raises(MaskBufferError, match="dtype int32, not int64"):
        fill_bitmasks(matchers(2), np.zeros((2, 1), np.int64))
    read_only = np.zeros((2, 1), np.int32)
    read_only.flags.writeable = False
    with pytest.raises(MaskBufferError, match="read-only"):
        fill_bitmasks(matchers(2), read_only)
    assert not read_only.any()
