"""tokenfst: exact constrained decoding by composition of automata with tokenizers.

    import tokenfst

    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    automaton = tokenfst.compile(tokenfst.regex(r"[0-9]{3}-[0-9]{4}"), vocabulary)
    matcher = automaton.matcher()

Heavy packages (pynini, torch, transformers) are imported only by the calls that need them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tokenfst._native import Matcher
from tokenfst.automata.bundled import bundled_grammar, bundled_grammars
from tokenfst.automata.ebnf import ebnf
from tokenfst.automata.gbnf import gbnf
from tokenfst.automata.grammar import Grammar
from tokenfst.automata.language import Language
from tokenfst.automata.lark_syntax import lark_grammar
from tokenfst.automata.regex import regex
from tokenfst.automata.unordered import unordered
from tokenfst.budget import Budget
from tokenfst.decoding.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace, fill_bitmasks
from tokenfst.decoding.token_automaton import TokenAutomaton, compile
from tokenfst.errors import TokenfstError
from tokenfst.tokenizers.sources import load_vocabulary
from tokenfst.tokenizers.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenfst.decoding.logits_processor import ConstraintLogitsProcessor

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "ConstraintLogitsProcessor",
    "Grammar",
    "Language",
    "Matcher",
    "TokenAutomaton",
    "TokenfstError",
    "Vocabulary",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "bundled_grammar",
    "bundled_grammars",
    "compile",
    "ebnf",
    "fill_bitmasks",
    "gbnf",
    "lark_grammar",
    "load",
    "load_vocabulary",
    "regex",
    "unordered",
]

load = TokenAutomaton.load


def __getattr__(name: str) -> Any:
    if name == "ConstraintLogitsProcessor":  # needs torch and transformers
        from tokenfst.decoding.logits_processor import ConstraintLogitsProcessor

        return ConstraintLogitsProcessor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
