"""The masking kernel against its slow twin, at every SIMD level that this CPU has."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.tokens import bitmask as reference
from tokenfst import _native

KINDS = {"float32": (0, np.uint32), "float16": (1, np.uint16), "bfloat16": (2, np.uint16)}
LEVELS = _native.simd_levels()


def run(
    patterns,
    bitmask,
    kind,
    vocab_size=None,
    indices=None,
    check_nan=True,
    level="auto",
    threads=1,
    shift=0,
    pad=0,
):
    """Mask a copy ``shift`` bytes off alignment, with ``pad`` elements between rows that must survive."""
    dtype = KINDS[kind][1]
    rows, width = patterns.shape
    stride = (width + pad) * dtype().itemsize
    memory = np.full(rows * stride + shift + 64, 0xAB, dtype=np.uint8)
    for row in range(rows):
        begin = shift + row * stride
        memory[begin : begin + width * dtype().itemsize] = patterns[row].view(np.uint8)
    before = memory.copy()
    words = np.zeros(bitmask.nbytes + 3, np.uint8)
    words[3:] = np.ascontiguousarray(bitmask).view(np.uint8).reshape(-1)
    nan = _native.apply_bitmask(
        _native.buffer_address(memory) + shift,
        KINDS[kind][0],
        rows,
        width,
        stride,
        _native.buffer_address(words) + 3,
        len(bitmask),
        bitmask.shape[1],
        4 * bitmask.shape[1],
        width if vocab_size is None else vocab_size,
        indices,
        check_nan,
        threads,
        level,
    )
    out = np.empty_like(patterns)
    touched = np.zeros(len(memory), dtype=bool)
    for row in range(rows):
        begin = shift + row * stride
        end = begin + width * dtype().itemsize
        out[row] = (
            memory[begin:end].view(dtype)
            if shift % dtype().itemsize == 0
            else memory[begin:end].copy().view(dtype)
        )
        touched[begin:end] = True
    assert (memory[~touched] == before[~touched]).all(), "bytes outside the rows were written"
    return out, nan


def agree(patterns, bitmask, kind, vocab_size=None, indices=None, **how):
    expected, nan = reference.apply(patterns.tolist(), bitmask.tolist(), kind, vocab_size, indices)
    got, got_nan = run(patterns, bitmask, kind, vocab_size, indices, **how)
    np.testing.assert_array_equal(got, expected)
    assert got_nan == (nan if how.get("check_nan", True) else None)


def sample(rng, kind, rows, width, words, density, nan=0.0):
    """Logits as bit patterns, all classes of numbers among them, and a bitmask; ``nan``: the share of NaN."""
    dtype = KINDS[kind][1]
    patterns = rng.integers(0, np.iinfo(dtype).max, size=(rows, width), dtype=dtype, endpoint=True)
    patterns[(patterns & ~dtype(reference.SIGN[kind])) > reference.INF[kind]] = reference.MINUS_INF[kind]
    patterns[rng.random((rows, width)) < nan] = reference.INF[kind] + 1
    bits = rng.random((rows, 32 * words)) < density
    return patterns, np.packbits(bits, axis=1, bitorder="little").view(np.int32)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_width_around_the_block_sizes(kind, level):
    rng = np.random.default_rng(1)
    for width in [*range(70), *range(250, 262), *range(508, 518), 1023, 1024, 1025, 1055]:
        for words in {0, width // 32, -(-width // 32), width // 32 + 2}:
            patterns, bitmask = sample(rng, kind, 1, width, words, rng.choice([0, 0.01, 0.5, 0.99, 1]))
            agree(patterns, bitmask, kind, level=level, shift=int(rng.integers(70)))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_every_alignment(kind, level):
    """Vector blocks begin where a cache line does, at any bit of the mask; runs of ones and zeros cross them."""
    rng = np.random.default_rng(5)
    for shift in range(66):
        width = int(rng.integers(1030, 2200))
        patterns, bitmask = sample(rng, kind, 1, width, -(-width // 32), 0.5)
        for _ in range(8):
            begin, length = rng.integers(0, width), rng.integers(0, 1200)
            bits = np.unpackbits(bitmask.view(np.uint8), bitorder="little")
            bits[begin : begin + length] = rng.integers(2)
            bitmask = np.packbits(bits, bitorder="little").view(np.int32)[None]
        agree(patterns, bitmask, kind, level=level, shift=shift, vocab_size=width - int(rng.integers(40)))


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_nan_at_every_column(kind, level):
    rng = np.random.default_rng(2)
    width = 32 * 35 + 5
    for column in range(0, width, 3):
        patterns, bitmask = sample(rng, kind, 1, width, 36, 1.0 if column % 2 else 0.6)
        for pattern in (reference.INF[kind] + 1, reference.SIGN[kind] | (reference.INF[kind] + 1)):
            patterns[0, column] = pattern
            expected = (0, column) if reference.bit(bitmask[0], column) else None
            assert run(patterns, bitmask, kind, level=level, shift=column % 70)[1] == expected
            assert run(patterns, bitmask, kind, level=level, check_nan=False)[1] is None


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("kind", KINDS)
def test_infinities_are_numbers(kind, level):
    patterns = np.full((1, 600), reference.INF[kind], dtype=KINDS[kind][1])
    patterns[0, ::2] = reference.MINUS_INF[kind]
    everything = np.full((1, 19), -1, dtype=np.int32)
    out, nan = run(patterns, everything, kind, level=level)
    assert nan is None
    np.testing.assert_array_equal(out, patterns)


@given(st.data())
def test_like_the_twin(data):
    kind, level = data.draw(st.sampled_from(sorted(KINDS))), data.draw(st.sampled_from(LEVELS))
    rows, width = data.draw(st.integers(1, 4)), data.draw(st.integers(0, 1100))
    words = data.draw(st.integers(0, width // 32 + 3))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    density = data.draw(st.sampled_from([0, 0.002, 0.1, 0.5, 0.9, 0.998, 1]))
    patterns, bitmask = sample(
        rng, kind, rows, width, words, density, data.draw(st.sampled_from([0, 0.001, 0.3]))
    )
    agree(
        patterns,
        bitmask,
        kind,
        vocab_size=data.draw(st.none() | st.integers(0, width + 40)),
        indices=data.draw(st.none() | st.lists(st.integers(0, rows - 1), unique=True)),
        check_nan=data.draw(st.booleans()),
        level=level,
        threads=data.draw(st.integers(1, 3)),
        shift=data.draw(st.integers(0, 70)),
        pad=data.draw(st.integers(0, 3)),
    )


def test_levels_agree_on_a_real_size():
    rng = np.random.default_rng(3)
    bits = rng.random((3, 131_072)) < [[0.001], [0.5], [0.999]]
    bitmask = np.packbits(bits, axis=1, bitorder="little").view(np.int32)
    logits = rng.standard_normal((3, 131_072)).astype(np.float32)
    expected = np.where(bits, logits, -np.inf).astype(np.float32)
    for level in LEVELS:
        out, nan = run(logits.view(np.uint32), bitmask, "float32", level=level, threads=2)
        assert nan is None
        np.testing.assert_array_equal(out.view(np.float32), expected)


def test_scalar_is_always_there_and_unknown_levels_are_refused():
    assert LEVELS[-1] == "scalar"
    patterns, bitmask = sample(np.random.default_rng(4), "float32", 1, 32, 1, 0.5)
    with pytest.raises(ValueError, match="level must be auto, avx512, avx2 or scalar, not sse"):
        run(patterns, bitmask, "float32", level="sse")
    for level in {"avx512", "avx2"} - set(LEVELS):
        with pytest.raises(ValueError, match="does not support"):
            run(patterns, bitmask, "float32", level=level)
