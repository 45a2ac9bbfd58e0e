"""Encodings of tiktoken, under the name of ``llguidance.tiktoken``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenfst.compat.llguidance.classes.tokenizer import LLTokenizer

__all__ = ["lltokenizer_from_encoding"]


def lltokenizer_from_encoding(
    encoding: Any,
    *,
    n_vocab: int | None = None,
    eos_token: int | Sequence[int] | None = None,
    slices: Sequence[str] | None = None,
) -> LLTokenizer:
    """Make an ``LLTokenizer`` from an ``Encoding``."""
    return LLTokenizer.from_tiktoken(
        encoder=encoding._mergeable_ranks,
        special_tokens=encoding._special_tokens,
        pattern=encoding._pat_str,
        eos_token=encoding.eot_token if eos_token is None else eos_token,
        n_vocab=n_vocab,
        slices=slices,
    )
