"""Samplers of random rows by Triton's interpreter beside the plain one.

``exp2`` is the one function that devices round in ways of their own, and the interpreter is numpy: with numpy's in
plain torch too, draws must be equal bit for bit. Blocks are made small, so that small vocabularies have several.
"""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import torch

from tests.support.worlds.devices.sampled_options import options, scores
from tokenfst.decoding.device.automata.sampling import DeviceSampler
from tokenfst.decoding.device.kernels.sampling import plain as plain_sampling
from tokenfst.decoding.device.kernels.sampling import triton as triton_sampling


def numpys_exp2() -> None:
    """For the rest of this process."""
    torch.exp2 = lambda values: torch.from_numpy(np.exp2(values.numpy()))


def small_blocks(columns: int) -> None:
    """For the rest of this process; a multiple of 32."""
    plain_sampling.BLOCK = triton_sampling.BLOCK = columns


def check(rng: random.Random, one: Any, other: Any, states: torch.Tensor, worlds: int) -> None:
    """Both automata's samplers in the same random worlds, two steps each."""
    rows, size = len(states), len(one.vocabulary)
    for _ in range(worlds):
        given = options(rng, rows)
        seeds = [rng.getrandbits(63) - 2**62 for _ in range(rows)]
        samplers = [DeviceSampler(device, rows, seeds=seeds, **given) for device in (one, other)]
        prompt = torch.tensor([[rng.randrange(-1, size + 3) for _ in range(40)] for _ in range(rows)])
        left = rng.choice(
            [None, 4, torch.tensor([rng.randrange(-1, 9) for _ in range(rows)], dtype=torch.int32)]
        )
        for sampler in samplers:
            sampler.see(prompt)
        logits = scores(rng, rows, size + rng.choice([0, 7]))
        for logs in (False, True):
            found = [
                sampler.step_with_logs(logits, states, left) if logs else sampler.step(logits, states, left)
                for sampler in samplers
            ]
            assert torch.equal(found[0][0], found[1][0]), (given, logits, found)
            assert torch.equal(found[0][1], found[1][1])
            for ours, wanted in zip(found[0][2:], found[1][2:], strict=True):
                assert torch.allclose(ours, wanted, atol=1e-5, equal_nan=True), (given, logits, found)
        for name in ("draws", "forced", "seen"):
            ours, wanted = (getattr(sampler, name) for sampler in samplers)
            assert (ours is None and wanted is None) or torch.equal(ours, wanted), name
