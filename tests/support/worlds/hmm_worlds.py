"""Small hidden Markov models."""

from __future__ import annotations

import torch

from tokenfst.decoding.particles.hmm import Hmm


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def small(seed: int, hidden: int = 3, vocab: int = 4, sharpness: float = 1.5) -> Hmm:
    return Hmm.random(hidden, vocab, sharpness=sharpness, generator=seeded(seed), dtype=torch.float64)


def tables(hmm: Hmm) -> tuple[list[float], list[list[float]], list[list[float]]]:
    return hmm.initial.tolist(), hmm.transition.tolist(), hmm.emission.tolist()


def split(hmm: Hmm, copies: int) -> Hmm:
    """The same distribution in float32, each hidden state being so many equal ones."""
    return Hmm(
        hmm.initial.repeat_interleave(copies).float() / copies,
        hmm.transition.repeat_interleave(copies, 0).repeat_interleave(copies, 1).float() / copies,
        hmm.emission.repeat_interleave(copies, 0).float(),
    )
