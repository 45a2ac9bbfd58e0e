"""Processors of scores: ``hf``, and ``mlxlm``, which needs mlx and is imported by its name."""

from tokenfst.compat.xgrammar.contrib import hf

__all__ = ["hf"]
