"""Vocabularies of llama.cpp, under the name of ``llguidance.llamacpp``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenfst.compat.llguidance.classes.tokenizer import LLTokenizer
from tokenfst.decoding.engines.llama_cpp import vocabulary_of

__all__ = ["lltokenizer_from_vocab"]


def lltokenizer_from_vocab(
    vocab: Any,
    n_vocab: int | None = None,
    eos_token: int | Sequence[int] | None = None,
    slices: Sequence[str] | None = None,
) -> LLTokenizer:
    """Make an ``LLTokenizer`` from a ``llama_vocab_p``."""
    ends = None if eos_token is None else [eos_token] if isinstance(eos_token, int) else list(eos_token)
    return LLTokenizer(vocabulary_of(vocab, size=n_vocab, ends=ends))
