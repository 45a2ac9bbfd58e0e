"""Tokenizers of transformers, under the name of ``llguidance.hf``."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any

from tokenfst.compat.llguidance.classes.tokenizer import LLTokenizer

__all__ = ["from_tokenizer"]


def from_tokenizer(
    hf_tokenizer: Any,
    n_vocab: int | None = None,
    eos_token: int | Sequence[int] | None = None,
    slices: Sequence[str] | None = None,
) -> LLTokenizer:
    """Make an ``LLTokenizer`` from a fast tokenizer of transformers."""
    backend = getattr(hf_tokenizer, "backend_tokenizer", None)
    if backend is None or not hasattr(backend, "to_str"):
        raise ValueError("Only fast tokenizers are supported")
    end = hf_tokenizer.eos_token_id if eos_token is None else eos_token
    plain = copy(backend)
    plain.no_padding()
    plain.no_truncation()
    return LLTokenizer(plain.to_str(), n_vocab=n_vocab, eos_token=end, slices=slices)
