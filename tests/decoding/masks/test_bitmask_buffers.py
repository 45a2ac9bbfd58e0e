"""Bitmasks from Python: numpy arrays and torch tensors, what fits and what is refused."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.tokens import bitmask as reference
from tokenfst.decoding.masks.bitmask import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    bitmask_from_ids,
    unpack_bitmask,
)
from tokenfst.errors import LogitsError, MaskBufferError, TokenfstError, TokenIdError

torch = pytest.importorskip("torch")


def masked(logits: np.ndarray, bits: np.ndarray) -> np.ndarray:
    return np.where(bits, logits, -np.inf).astype(logits.dtype)


def random_case(rows=3, width=200, seed=0):
    rng = np.random.default_rng(seed)
    bits = rng.random((rows, width)) < 0.5
    bitmask = np.stack([bitmask_from_ids(np.flatnonzero(row), width) for row in bits])
    return rng.standard_normal((rows, width)).astype(np.float32), bits, bitmask


@pytest.mark.parametrize(("batch", "vocab_size"), [(0, 5), (1, 0), (2, 1), (3, 32), (4, 33), (1, 131_072)])
def test_allocated_masks_allow_everything(batch, vocab_size):
    bitmask = allocate_token_bitmask(batch, vocab_size)
    assert bitmask.shape == (batch, (vocab_size + 31) // 32)
    assert bitmask.dtype == np.int32
    assert unpack_bitmask(bitmask, vocab_size).all()


def test_allocation_refuses_negative_sizes():
    with pytest.raises(ValueError, match="must not be negative"):
        allocate_token_bitmask(-1, 5)


@given(st.integers(1, 200).flatmap(lambda v: st.tuples(st.just(v), st.sets(st.integers(0, v - 1)))))
def test_ids_to_bits_and_back(case):
    vocab_size, ids = case
    row = bitmask_from_ids(ids, vocab_size)
    assert row.shape == (-(-vocab_size // 32),)
    assert [reference.bit(row, token) for token in range(32 * len(row))] == [
        token in ids for token in range(32 * len(row))
    ]
    assert set(np.flatnonzero(unpack_bitmask(row, vocab_size)).tolist()) == ids
    assert (
        unpack_bitmask(torch.from_numpy(row)[None], vocab_size)[0] == unpack_bitmask(row, vocab_size)
    ).all()


@pytest.mark.parametrize("bad", [-1, 7, 2**40])
def test_ids_outside_the_vocabulary(bad):
    with pytest.raises(TokenIdError, match=f"token id {bad} lies outside the vocabulary of 7"):
        bitmask_from_ids([1, bad], 7)


def test_unpacking_more_than_there_is():
    with pytest.raises(MaskBufferError, match="room for 32 tokens, not 33"):
        unpack_bitmask(np.zeros((1, 1), np.int32), 33)


@pytest.mark.parametrize("mask_as", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize(
    "logits_as",
    [
        lambda x: x,
        lambda x: x.astype(np.float16),
        torch.from_numpy,
        lambda x: torch.from_numpy(x).half(),
        lambda x: torch.from_numpy(x).bfloat16(),
    ],
)
def test_numpy_and_torch_in_every_combination(logits_as, mask_as):
    base, bits, bitmask = random_case()
    logits = logits_as(base)
    before = np.asarray(logits if isinstance(logits, np.ndarray) else logits.float().numpy()).copy()
    apply_token_bitmask_inplace(logits, mask_as(bitmask))
    after = logits if isinstance(logits, np.ndarray) else logits.float().numpy()
    np.testing.assert_array_equal(after, masked(before, bits))


def test_single_rows():
    base, bits, bitmask = random_case(rows=1)
    logits = base[0].copy()
    apply_token_bitmask_inplace(logits, bitmask[0])
    np.testing.assert_array_equal(logits, masked(base[0], bits[0]))
    tensor = torch.from_numpy(base[0].copy())
    apply_token_bitmask_inplace(tensor, bitmask)
    np.testing.assert_array_equal(tensor.numpy(), masked(base[0], bits[0]))


def test_strided_rows_and_one_mask_for_all():
    base, bits, bitmask = random_case()
    wide = np.zeros((6, 250), np.float32)
    wide[::-2, 30:230] = base
    apply_token_bitmask_inplace(wide[::-2, 30:230], bitmask)
    np.testing.assert_array_equal(wide[::-2, 30:230], masked(base, bits))
    wide[::-2, 30:230] = 0
    assert not wide.any(), "something outside the view was written"

    tensor = torch.zeros(3, 4, 200)
    apply_token_bitmask_inplace(tensor[:, 1, :], np.broadcast_to(bitmask[0], bitmask.shape))
    assert (np.isinf(tensor[:, 1].numpy()) == ~bits[0]).all()
    assert not tensor[:, [0, 2, 3]].any()


@pytest.mark.parametrize("indices_as", [list, np.array, torch.tensor, tuple])
def test_indices_choose_rows_of_both(indices_as):
    base, bits, bitmask = random_case(rows=4)
    logits = np.vstack([base, base[:2]])
    expected = logits.copy()
    expected[[2, 0]] = masked(base, bits)[[2, 0]]
    apply_token_bitmask_inplace(logits, bitmask, indices=indices_as([2, 0]))
    np.testing.assert_array_equal(logits, expected)


def test_as_xgrammar_where_both_say_the_same():
    xgrammar = pytest.importorskip("xgrammar")
    base, _, bitmask = random_case(rows=5, width=320, seed=9)
    for indices in (None, [4, 1], []):
        ours, theirs = torch.from_numpy(base.copy()), torch.from_numpy(base.copy())
        apply_token_bitmask_inplace(ours, bitmask, indices=indices)
        xgrammar.apply_token_bitmask_inplace(theirs, torch.from_numpy(bitmask), indices=indices)
        assert torch.equal(ours, theirs)


def test_logits_beyond_the_mask_are_masked():
    logits = np.zeros((1, 100), np.float32)
    apply_token_bitmask_inplace(logits, np.full((1, 2), -1, np.int32))
    assert (logits[0, :64] == 0).all() and np.isneginf(logits[0, 64:]).all()
    logits = np.zeros((1, 100), np.float32)
    apply_token_bitmask_inplace(logits, allocate_token_bitmask(1, 100), vocab_size=41)
    assert (logits[0, :41] == 0).all() and np.isneginf(logits[0, 41:]).all()
    with pytest.raises(ValueError, match="vocab_size must not be negative"):
        apply_token_bitmask_inplace(logits, allocate_token_bitmask(1, 100), vocab_size=-1)


@pytest.mark.parametrize("make", [np.array, torch.tensor])
def test_nan_names_row_and_token_after_masking_all(make):
    base, bits, bitmask = random_case(rows=4)
    row, column = 2, int(np.flatnonzero(bits[2])[5])
    base[row, column] = np.nan
    base[0, int(np.flatnonzero(~bits[0])[0])] = np.nan
    logits = make(base)
    with pytest.raises(LogitsError, match=f"token {column} in row {row} is NaN"):
        apply_token_bitmask_inplace(logits, bitmask)
    np.testing.assert_array_equal(np.asarray(logits), masked(base, bits))
    apply_token_bitmask_inplace(logits, bitmask, check_nan=False)
    apply_token_bitmask_inplace(logits, bitmask, indices=[0, 1, 3])


OVERLAPPING = torch.zeros(1, 64).expand(2, 64)
READ_ONLY = np.zeros((2, 64), np.float32)
READ_ONLY.flags.writeable = False
MASK = np.zeros((2, 2), np.int32)


@pytest.mark.parametrize(
    ("logits", "bitmask", "message"),
    [
        (np.zeros((2, 64)), MASK, "float32 or float16, not float64"),
        (np.zeros((2, 64), ">f4"), MASK, "float32 or float16, not >f4"),
        (torch.zeros(2, 64, dtype=torch.float64), MASK, "not torch.float64"),
        ([[0.0] * 64] * 2, MASK, "numpy array or a torch tensor, not list"),
        (np.zeros((2, 1, 64), np.float32), MASK, r"shape \(batch, width\) or \(width,\), not \(2, 1, 64\)"),
        (np.zeros((), np.float32), MASK, r"shape \(batch, width\) or \(width,\), not \(\)"),
        (np.zeros((64, 2), np.float32).T, MASK, "logits must be contiguous"),
        (torch.zeros(64, 2).T, MASK, "logits must be contiguous"),
        (READ_ONLY, MASK, "read-only"),
        (OVERLAPPING, MASK, "overlap"),
        (np.zeros((2, 64), np.float32), MASK.astype(np.uint32), "dtype int32, not uint32"),
        (np.zeros((2, 64), np.float32), np.ones((2, 64), bool), "dtype int32, not bool"),
        (np.zeros((2, 64), np.float32), torch.zeros(2, 2, dtype=torch.int64), "dtype int32, not torch.int64"),
        (np.zeros((2, 64), np.float32), [[0, 0]] * 2, "not list"),
        (np.zeros((2, 64), np.float32), MASK.reshape(2, 2, 1), r"\(batch, words\) or \(words,\)"),
        (np.zeros((2, 64), np.float32), MASK.repeat(2, 1)[:, ::2], "bitmask must be contiguous"),
        (np.zeros((3, 64), np.float32), MASK, "2 rows and the logits have 3"),
        (np.zeros((3, 64), np.float32), MASK[0], "1 row and the logits have 3"),
        (np.zeros((2, 64), np.float32), torch.zeros(2, 2, dtype=torch.int32, device="meta"), "host memory"),
    ],
)
def test_buffers_that_do_not_fit(logits, bitmask, message):
    with pytest.raises(MaskBufferError, match=message):
        apply_token_bitmask_inplace(logits, bitmask)


@pytest.mark.parametrize("bad", [[3], [-1], [0, 2, 0], [2**70]])
def test_indices_that_do_not_fit(bad):
    logits = np.zeros((4, 64), np.float32)
    with pytest.raises(MaskBufferError, match="indices"):
        apply_token_bitmask_inplace(logits, np.zeros((3, 2), np.int32), indices=bad)
    assert not logits.any(), "nothing is masked when the call is refused"


def test_errors_are_of_the_hierarchy():
    assert issubclass(MaskBufferError, TokenfstError) and issubclass(MaskBufferError, ValueError)


def test_masking_numpy_does_not_import_torch():
    code = (
        "import sys, numpy as np\n"
        "from tokenfst.decoding.masks.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace\n"
        "apply_token_bitmask_inplace(np.zeros((1, 64), np.float32), allocate_token_bitmask(1, 64))\n"
        "assert 'torch' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
