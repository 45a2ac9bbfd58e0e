"""The functions that xgrammar's own tests use: texts under a grammar, and conversion of bitmasks."""

from __future__ import annotations

from typing import Any

import torch

from tokenfst.compat.xgrammar.compiler import GrammarCompiler
from tokenfst.compat.xgrammar.grammar import Grammar
from tokenfst.compat.xgrammar.matcher import GrammarMatcher, bitmask_dtype, bits, packed
from tokenfst.compat.xgrammar.tokenizer_info import TokenizerInfo


def _get_matcher_from_grammar(grammar: Grammar | str, **kwargs: Any) -> GrammarMatcher:
    return _get_matcher_from_grammar_and_tokenizer_info(
        grammar, **({"terminate_without_stop_token": True} | kwargs)
    )


def _get_matcher_from_grammar_and_tokenizer_info(
    grammar: Grammar | str, tokenizer_info: TokenizerInfo | None = None, **kwargs: Any
) -> GrammarMatcher:
    compiler = GrammarCompiler(tokenizer_info or TokenizerInfo([]), cache_enabled=False)
    return GrammarMatcher(compiler.compile_grammar(grammar), **kwargs)


def _is_grammar_accept_string(
    grammar: Grammar | str,
    input_str: str,
    *,
    debug_print: bool = False,
    print_time: bool = False,
    require_termination: bool = True,
) -> bool:
    matcher = _get_matcher_from_grammar(grammar)
    return matcher.accept_string(input_str) and (not require_termination or matcher.is_terminated())


def _get_masked_tokens_from_bitmask(bitmask: torch.Tensor, vocab_size: int, index: int = 0) -> list[int]:
    allowed = bitmask_to_bool_mask(bitmask, vocab_size)[index]
    return [int(token) for token in torch.nonzero(~allowed)[:, 0]]


def _is_single_token_bitmask(bitmask: torch.Tensor, vocab_size: int, index: int = 0) -> tuple[bool, int]:
    allowed = torch.nonzero(bitmask_to_bool_mask(bitmask, vocab_size)[index])[:, 0]
    return (True, int(allowed[0])) if len(allowed) == 1 else (False, -1)


def _ebnf_to_grammar_no_normalization(ebnf_string: str, root_rule_name: str = "root") -> Grammar:
    return Grammar.from_ebnf(ebnf_string, root_rule_name=root_rule_name)


def _traverse_draft_tree(
    retrieve_next_token: torch.Tensor,
    retrieve_next_sibling: torch.Tensor,
    draft_tokens: torch.Tensor,
    matcher: GrammarMatcher,
    allocate_token_bitmask: torch.Tensor,
    time_threshold: float = -1.0,
) -> bool:
    return matcher.traverse_draft_tree(
        retrieve_next_token, retrieve_next_sibling, draft_tokens, allocate_token_bitmask, time_threshold
    )


def bool_mask_to_bitmask(bool_mask: torch.Tensor) -> torch.Tensor:
    """Booleans (rows, size) as a bitmask, int32 (rows, ceil(size / 32)). The remaining bits are 1 (allowed)."""
    rows, size = bool_mask.shape
    padded = torch.ones((rows, -(-size // 32) * 32), dtype=torch.bool)
    padded[:, :size] = bool_mask
    return packed(padded)


def bitmask_to_bool_mask(bit_mask: torch.Tensor, vocab_size: int | None = None) -> torch.Tensor:
    """A bitmask, int32 (rows, words), as booleans (rows, vocab_size). Raises ValueError for another device than the CPU
    or another dtype.
    """
    if bit_mask.device.type != "cpu" or bit_mask.dtype != bitmask_dtype:
        raise ValueError(
            f"bit_mask must be of {bitmask_dtype} on the CPU, not {bit_mask.dtype} on {bit_mask.device}"
        )
    size = 32 * bit_mask.shape[1] if vocab_size is None else vocab_size
    if size > 32 * bit_mask.shape[1]:
        raise ValueError(f"vocab_size={size} is more than the {32 * bit_mask.shape[1]} bits of a row")
    return bits(bit_mask, size)


def _unchanged(grammar: Grammar) -> Grammar:
    """The same grammar: these functions change xgrammar's internal form of a grammar, never its texts."""
    return grammar


class GrammarFunctor:
    """xgrammar's transformations of grammars, for its tests. Here a grammar has one normal form, which ``compile``
    makes.
    """

    structure_normalizer = staticmethod(_unchanged)
    rule_inliner = staticmethod(_unchanged)
    byte_string_fuser = staticmethod(_unchanged)
    dead_code_eliminator = staticmethod(_unchanged)
    lookahead_assertion_analyzer = staticmethod(_unchanged)
    grammar_optimizer = staticmethod(_unchanged)
    fsm_builder = staticmethod(_unchanged)
    repetition_normalizer = staticmethod(_unchanged)
