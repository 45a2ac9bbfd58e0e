"""xgrammar's classes and functions over tokenfst: ``import tokenfst.compat.xgrammar as xgrammar``.

Written from the documentation of xgrammar 0.2.8 and compared with it (tests/compat, docs/engines/compat.md). Names,
arguments and results are xgrammar's, also in its submodules; the meaning of a constraint is tokenfst's, exactly.
Features of xgrammar that are missing here raise ``Unsupported``. Errors are RuntimeErrors, as in xgrammar, with
tokenfst's messages; ``builtin_structural_tag`` and ``openai_tool_call_schema`` raise ValueErrors, as in xgrammar.
"""

from __future__ import annotations

from importlib.util import find_spec

from tokenfst.errors import MissingDependencyError

if find_spec("torch") is None:  # before the modules that import it
    raise MissingDependencyError('this module needs torch, as xgrammar does: pip install "tokenfst[torch]"')

from tokenfst.compat.xgrammar import (
    contrib,
    exception,
    kernels,
    openai_tool_call_schema,
    structural_tag,
    testing,
)
from tokenfst.compat.xgrammar.builtin_structural_tag import (
    get_builtin_structural_tag,
    get_model_structural_tag,
    normalize_tool_choice,
    register_model_structural_tag,
)
from tokenfst.compat.xgrammar.compiler import (
    CompiledGrammar,
    GrammarCompiler,
)
from tokenfst.compat.xgrammar.config import (
    get_max_recursion_depth,
    get_serialization_version,
    max_recursion_depth,
    set_max_recursion_depth,
)
from tokenfst.compat.xgrammar.contrib import hf
from tokenfst.compat.xgrammar.exception import (
    DeserializeFormatError,
    DeserializeVersionError,
    GrammarError,
    InvalidJSONError,
    InvalidStructuralTagError,
    Unsupported,
)
from tokenfst.compat.xgrammar.grammar import (
    Grammar,
)
from tokenfst.compat.xgrammar.matcher import (
    BatchGrammarMatcher,
    GrammarMatcher,
    allocate_token_bitmask,
    apply_token_bitmask_inplace,
    bitmask_dtype,
    get_bitmask_shape,
    reset_token_bitmask,
)
from tokenfst.compat.xgrammar.structural_tag import (
    StructuralTag,
    StructuralTagItem,
)
from tokenfst.compat.xgrammar.tokenizer_info import (
    TokenizerInfo,
    VocabType,
)

__all__ = [
    "BatchGrammarMatcher",
    "CompiledGrammar",
    "DeserializeFormatError",
    "DeserializeVersionError",
    "Grammar",
    "GrammarCompiler",
    "GrammarError",
    "GrammarMatcher",
    "InvalidJSONError",
    "InvalidStructuralTagError",
    "StructuralTag",
    "StructuralTagItem",
    "TokenizerInfo",
    "Unsupported",
    "VocabType",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "bitmask_dtype",
    "contrib",
    "exception",
    "get_bitmask_shape",
    "get_builtin_structural_tag",
    "get_max_recursion_depth",
    "get_model_structural_tag",
    "get_serialization_version",
    "hf",
    "kernels",
    "max_recursion_depth",
    "normalize_tool_choice",
    "openai_tool_call_schema",
    "register_model_structural_tag",
    "reset_token_bitmask",
    "set_max_recursion_depth",
    "structural_tag",
    "testing",
]
