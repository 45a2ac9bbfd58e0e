"""llguidance's classes and functions over tokenfst: ``import tokenfst.compat.llguidance as llguidance``.

Written from the documentation of llguidance 1.9.1 and compared with it (tests/compat, docs/engines/compat.md). The
modules of this folder have the names of llguidance's modules: ``hf``, ``torch``, ``numpy``, ``mlx``, ``tiktoken``,
``llamacpp``, ``gbnf_to_lark``, ``cli``. The folder ``classes`` defines what the package exports. Names that need no
other library are also in the package itself.

Read in this order: ``classes``, ``numpy`` and ``torch``, ``hf``, ``tiktoken``, ``llamacpp``, ``mlx``,
``gbnf_to_lark``, ``cli``.
"""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

from tokenfst.compat.llguidance.classes.compilers import JsonCompiler, LarkCompiler, RegexCompiler
from tokenfst.compat.llguidance.classes.executor import LLExecutor
from tokenfst.compat.llguidance.classes.grammars import (
    GrammarFormat,
    LLParserLimits,
    grammar_from,
    regex_to_lark,
)
from tokenfst.compat.llguidance.classes.interpreter import LLInterpreter
from tokenfst.compat.llguidance.classes.matcher import LLMatcher
from tokenfst.compat.llguidance.classes.structural_tag import StructTag
from tokenfst.compat.llguidance.classes.tokenizer import LLTokenizer, TokenizerWrapper
from tokenfst.compat.llguidance.hf import from_tokenizer
from tokenfst.compat.llguidance.numpy import (
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    consume_token_par,
    fill_next_token_bitmask,
    fill_next_token_bitmask_par,
    fill_next_token_bitmask_par_with_draft_tokens,
    get_bitmask_shape,
)

__all__ = [
    "GrammarFormat",
    "JsonCompiler",
    "LLExecutor",
    "LLInterpreter",
    "LLMatcher",
    "LLParserLimits",
    "LLTokenizer",
    "LarkCompiler",
    "RegexCompiler",
    "StructTag",
    "TokenizerWrapper",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "consume_token_par",
    "fill_next_token_bitmask",
    "fill_next_token_bitmask_par",
    "fill_next_token_bitmask_par_with_draft_tokens",
    "from_tokenizer",
    "get_bitmask_shape",
    "get_version",
    "grammar_from",
    "regex_to_lark",
]

try:
    __version__ = version("tokenfst")
except PackageNotFoundError:  # the package is imported from a source tree that was not installed
    __version__ = "0"


def get_version() -> str:
    """The name and version of this module, as llguidance's function returns its own."""
    return f"tokenfst@{__version__}"
