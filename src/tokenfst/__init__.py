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
from tokenfst.automata.concepts import Concepts, avoids, concepts, contains_all, contains_in_order
from tokenfst.automata.ebnf import ebnf
from tokenfst.automata.gbnf import gbnf
from tokenfst.automata.grammar import Grammar
from tokenfst.automata.language import Language
from tokenfst.automata.lark_syntax import lark_grammar
from tokenfst.automata.ltlf import ltlf
from tokenfst.automata.regex import regex
from tokenfst.automata.symbols import SymbolAutomaton
from tokenfst.automata.taxonomy import choices, hierarchy, hierarchy_labels, multi_choice
from tokenfst.automata.unordered import unordered
from tokenfst.budget import Budget
from tokenfst.decoding.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace, fill_bitmasks
from tokenfst.decoding.label_check import verify_labels
from tokenfst.decoding.token_automaton import TokenAutomaton, compile
from tokenfst.errors import TokenfstError
from tokenfst.tokenizers.sources import load_vocabulary
from tokenfst.tokenizers.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenfst.decoding.logits_processor import ConstraintLogitsProcessor

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "Concepts",
    "ConstraintLogitsProcessor",
    "Grammar",
    "Language",
    "Matcher",
    "SymbolAutomaton",
    "TokenAutomaton",
    "TokenfstError",
    "Vocabulary",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "avoids",
    "bundled_grammar",
    "bundled_grammars",
    "choices",
    "compile",
    "concepts",
    "contains_all",
    "contains_in_order",
    "ebnf",
    "fill_bitmasks",
    "gbnf",
    "hierarchy",
    "hierarchy_labels",
    "lark_grammar",
    "load",
    "load_vocabulary",
    "ltlf",
    "multi_choice",
    "regex",
    "unordered",
    "verify_labels",
]

load = TokenAutomaton.load


def __getattr__(name: str) -> Any:
    if name == "ConstraintLogitsProcessor":  # needs torch and transformers
        from tokenfst.decoding.logits_processor import ConstraintLogitsProcessor

        return ConstraintLogitsProcessor
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
