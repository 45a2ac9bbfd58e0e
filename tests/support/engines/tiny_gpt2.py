"""Tiny language models of transformers with random weights."""

from __future__ import annotations

from typing import Any


def tiny_gpt2(seed: int, vocab_size: int, *, end: int, pad: int, positions: int, layers: int) -> Any:
    """A GPT-2 whose weights are large enough that its choices differ."""
    import torch
    import transformers

    torch.manual_seed(seed)
    config = transformers.GPT2Config(
        vocab_size=vocab_size,
        n_positions=positions,
        n_embd=16,
        n_layer=layers,
        n_head=2,
        bos_token_id=end,
        eos_token_id=end,
        pad_token_id=pad,
    )
    model = transformers.GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():
        parameter.data.mul_(6)
    return model
