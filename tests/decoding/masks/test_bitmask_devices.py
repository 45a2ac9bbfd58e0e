"""The pure-torch masking that serves other devices, run here on the CPU against the native kernel."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tokenfst.decoding.masks import bitmask as host
from tokenfst.errors import LogitsError, MaskBufferError

torch = pytest.importorskip("torch")
device = pytest.importorskip("tokenfst.decoding.masks.on_device")


@given(st.data())
def test_as_the_native_kernel(data):
    rows, width = data.draw(st.integers(1, 4)), data.draw(st.integers(1, 150))
    words = data.draw(st.integers(1, width // 32 + 2))
    rng = np.random.default_rng(data.draw(st.integers(0, 2**32)))
    dtype = data.draw(st.sampled_from([torch.float32, torch.float16, torch.bfloat16]))
    ours = torch.from_numpy(rng.standard_normal((rows, width)).astype(np.float32)).to(dtype)
    theirs = ours.clone()
    bitmask = rng.integers(-(2**31), 2**31, (rows, words)).astype(np.int32)
    vocab_size = data.draw(st.none() | st.integers(0, width))
    indices = data.draw(st.none() | st.lists(st.integers(0, rows - 1), unique=True))
    as_tensor = data.draw(st.booleans())
    host.apply_token_bitmask_inplace(theirs, bitmask, vocab_size=vocab_size, indices=indices)
    device.apply_on_device(
        ours, torch.from_numpy(bitmask) if as_tensor else bitmask, vocab_size=vocab_size, indices=indices
    )
    assert torch.equal(ours, theirs)


def test_float64_and_single_rows():
    logits = torch.zeros(40, dtype=torch.float64)
    device.apply_on_device(logits, host.bitmask_from_ids([3, 39], 40))
    assert torch.isfinite(logits).nonzero().flatten().tolist() == [3, 39]


@pytest.mark.parametrize("indices", [None, [2, 1]])
def test_nan(indices):
    logits = torch.zeros(3, 40)
    logits[1, 7] = logits[2, 8] = torch.nan
    bitmask = np.stack([host.bitmask_from_ids([7], 40)] * 3)
    with pytest.raises(LogitsError, match="token 7 in row 1 is NaN"):
        device.apply_on_device(logits, bitmask, indices=indices)
    device.apply_on_device(logits, bitmask, indices=indices, check_nan=False)


def test_what_does_not_fit():
    logits = torch.zeros(3, 40)
    with pytest.raises(MaskBufferError, match=r"dtype int32, not torch\.int64"):
        device.apply_on_device(logits, torch.zeros(3, 2, dtype=torch.int64))
    with pytest.raises(MaskBufferError, match="2 rows and the logits have 3"):
        device.apply_on_device(logits, torch.zeros(2, 2, dtype=torch.int32))
    with pytest.raises(MaskBufferError, match="1 or 2 dimensions"):
        device.apply_on_device(logits[None], torch.zeros(3, 2, dtype=torch.int32))
    with pytest.raises(MaskBufferError, match="names row 2"):
        device.apply_on_device(logits, torch.zeros(2, 2, dtype=torch.int32), indices=[2])


def test_tensors_off_the_cpu_are_sent_there(monkeypatch):
    """No accelerator is needed to see the way: a tensor on the meta device has a shape and no data."""
    seen = []
    monkeypatch.setattr(device, "apply_on_device", lambda *args, **kwargs: seen.append((args, kwargs)))
    logits = torch.zeros(2, 64, device="meta")
    host.apply_token_bitmask_inplace(logits, np.zeros((2, 2), np.int32), vocab_size=60, check_nan=False)
    assert seen[0][0][0] is logits
    assert seen[0][1] == {"vocab_size": 60, "indices": None, "check_nan": False}
