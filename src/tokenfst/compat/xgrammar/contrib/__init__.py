"""Processors of scores: ``hf``."""

from tokenfst.compat.xgrammar.contrib import hf

__all__ = ["hf"]
