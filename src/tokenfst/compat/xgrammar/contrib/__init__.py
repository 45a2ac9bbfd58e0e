"""Logits processors: ``hf``, and ``mlxlm``, which needs mlx and must be imported by name."""

from tokenfst.compat.xgrammar.contrib import hf

__all__ = ["hf"]
