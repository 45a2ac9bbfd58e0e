"""xgrammar's classes and functions over tokenfst: ``import tokenfst.compat.xgrammar as xgrammar``.

Written from the documentation of xgrammar 0.2.8 and compared with it (tests/compat, docs/compat.md). Names, arguments
and answers are xgrammar's; what a constraint means is tokenfst's, exactly. What xgrammar has and this has not raises
``Unsupported``; errors are RuntimeErrors, as there, with the library's messages.
"""

from __future__ import annotations

from tokenfst.compat.xgrammar.grammars import (
    CompiledGrammar,
    Grammar,
    GrammarCompiler,
    GrammarError,
    TokenizerInfo,
    Unsupported,
    VocabType,
)
from tokenfst.compat.xgrammar.matchers import (
    BatchGrammarMatcher,
    GrammarMatcher,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    bitmask_dtype,
    get_bitmask_shape,
    reset_token_bitmask,
)

__all__ = [
    "BatchGrammarMatcher",
    "CompiledGrammar",
    "Grammar",
    "GrammarCompiler",
    "GrammarError",
    "GrammarMatcher",
    "TokenizerInfo",
    "Unsupported",
    "VocabType",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "bitmask_dtype",
    "get_bitmask_shape",
    "reset_token_bitmask",
]
