"""tokenfst: exact constrained decoding by composition of automata with tokenizers.

    import tokenfst

    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    automaton = tokenfst.compile(tokenfst.regex(r"[0-9]{3}-[0-9]{4}"), vocabulary)
    matcher = automaton.matcher()

Heavy packages (pynini, torch, transformers) are imported only by the calls that need them.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from tokenfst._native import Matcher
from tokenfst.automata.bundled import bundled_grammar, bundled_grammars
from tokenfst.automata.concepts import Concepts, avoids, concepts, contains_all, contains_in_order
from tokenfst.automata.ebnf import ebnf
from tokenfst.automata.edits import within_edits
from tokenfst.automata.equivalence import normalization_insensitive
from tokenfst.automata.folding import case_insensitive
from tokenfst.automata.gbnf import gbnf
from tokenfst.automata.grammar import Grammar
from tokenfst.automata.groups import (
    delimited_list,
    delimited_subsequence_of,
    quoted_text,
    substring_of,
    text_until,
    unquoted_text,
)
from tokenfst.automata.language import Language
from tokenfst.automata.lark_syntax import lark_grammar
from tokenfst.automata.ltlf import ltlf
from tokenfst.automata.python_objects import python_calls, python_object
from tokenfst.automata.regex import regex
from tokenfst.automata.rewriting import rewrite
from tokenfst.automata.symbols import SymbolAutomaton
from tokenfst.automata.taxonomy import choices, hierarchy, hierarchy_labels, multi_choice
from tokenfst.automata.templates import template
from tokenfst.automata.token_groups import one_token, special_token, token_class
from tokenfst.automata.unordered import unordered
from tokenfst.budget import Budget
from tokenfst.decoding.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace, fill_bitmasks
from tokenfst.decoding.canonical import CanonicalAutomaton
from tokenfst.decoding.label_check import verify_labels
from tokenfst.decoding.token_automaton import TokenAutomaton, compile
from tokenfst.errors import EmptyLanguageError, SchemaError, TokenfstError, UnsupportedSchemaError
from tokenfst.tokenizers.sources import load_vocabulary
from tokenfst.tokenizers.vocabulary import Vocabulary

if TYPE_CHECKING:
    from tokenfst.automata.json_schema import json_object, json_schema, json_value
    from tokenfst.decoding.abs import abs_beam_search
    from tokenfst.decoding.abs_generate import abs_generate
    from tokenfst.decoding.device_automaton import DeviceAutomaton
    from tokenfst.decoding.device_composing import ComposingDeviceAutomaton
    from tokenfst.decoding.device_generate import DeviceGenerate
    from tokenfst.decoding.device_graphs import GraphedStep
    from tokenfst.decoding.device_matchers import DeviceMatchers
    from tokenfst.decoding.device_stacks import PushDownDeviceAutomaton
    from tokenfst.decoding.drafts import PromptLookup
    from tokenfst.decoding.gcd_edges import TokenEdges
    from tokenfst.decoding.gcd_rows import start_rows
    from tokenfst.decoding.gcd_sample import gcd_sample
    from tokenfst.decoding.gcd_tensor import TensorRows
    from tokenfst.decoding.hmm import Hmm
    from tokenfst.decoding.hmm_product import HmmProduct
    from tokenfst.decoding.hmm_training import distil_hmm, train_hmm
    from tokenfst.decoding.jump_forward import generate
    from tokenfst.decoding.label_lists import label_lists, multi_label
    from tokenfst.decoding.label_scoring import classify, label_probabilities
    from tokenfst.decoding.label_search import top_labels
    from tokenfst.decoding.logits_processor import ConstraintLogitsProcessor
    from tokenfst.decoding.smc import smc
    from tokenfst.decoding.speculation import speculative_generate

__version__ = "0.1.0"

__all__ = [
    "Budget",
    "CanonicalAutomaton",
    "ComposingDeviceAutomaton",
    "Concepts",
    "ConstraintLogitsProcessor",
    "DeviceAutomaton",
    "DeviceGenerate",
    "DeviceMatchers",
    "EmptyLanguageError",
    "Grammar",
    "GraphedStep",
    "Hmm",
    "HmmProduct",
    "Language",
    "Matcher",
    "PromptLookup",
    "PushDownDeviceAutomaton",
    "SchemaError",
    "SymbolAutomaton",
    "TensorRows",
    "TokenAutomaton",
    "TokenEdges",
    "TokenfstError",
    "UnsupportedSchemaError",
    "Vocabulary",
    "abs_beam_search",
    "abs_generate",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "avoids",
    "bundled_grammar",
    "bundled_grammars",
    "case_insensitive",
    "choices",
    "classify",
    "compile",
    "concepts",
    "contains_all",
    "contains_in_order",
    "delimited_list",
    "delimited_subsequence_of",
    "distil_hmm",
    "ebnf",
    "fill_bitmasks",
    "gbnf",
    "gcd_sample",
    "generate",
    "hierarchy",
    "hierarchy_labels",
    "json_object",
    "json_schema",
    "json_value",
    "label_lists",
    "label_probabilities",
    "lark_grammar",
    "load",
    "load_vocabulary",
    "ltlf",
    "multi_choice",
    "multi_label",
    "normalization_insensitive",
    "one_token",
    "python_calls",
    "python_object",
    "quoted_text",
    "regex",
    "rewrite",
    "smc",
    "special_token",
    "speculative_generate",
    "start_rows",
    "substring_of",
    "template",
    "text_until",
    "token_class",
    "top_labels",
    "train_hmm",
    "unordered",
    "unquoted_text",
    "verify_labels",
    "within_edits",
]

load = TokenAutomaton.load


_LAZY = {
    "ConstraintLogitsProcessor": "tokenfst.decoding.logits_processor",  # needs torch and transformers
    "Hmm": "tokenfst.decoding.hmm",
    "HmmProduct": "tokenfst.decoding.hmm_product",
    "PromptLookup": "tokenfst.decoding.drafts",
    "TensorRows": "tokenfst.decoding.gcd_tensor",
    "TokenEdges": "tokenfst.decoding.gcd_edges",
    "abs_beam_search": "tokenfst.decoding.abs",
    "abs_generate": "tokenfst.decoding.abs_generate",
    "classify": "tokenfst.decoding.label_scoring",
    "distil_hmm": "tokenfst.decoding.hmm_training",
    "gcd_sample": "tokenfst.decoding.gcd_sample",
    "generate": "tokenfst.decoding.jump_forward",
    "ComposingDeviceAutomaton": "tokenfst.decoding.device_composing",  # needs torch
    "DeviceAutomaton": "tokenfst.decoding.device_automaton",
    "DeviceGenerate": "tokenfst.decoding.device_generate",
    "GraphedStep": "tokenfst.decoding.device_graphs",
    "DeviceMatchers": "tokenfst.decoding.device_matchers",
    "PushDownDeviceAutomaton": "tokenfst.decoding.device_stacks",
    "json_object": "tokenfst.automata.json_schema",
    "json_schema": "tokenfst.automata.json_schema",
    "json_value": "tokenfst.automata.json_schema",
    "label_lists": "tokenfst.decoding.label_lists",
    "label_probabilities": "tokenfst.decoding.label_scoring",
    "multi_label": "tokenfst.decoding.label_lists",
    "smc": "tokenfst.decoding.smc",
    "speculative_generate": "tokenfst.decoding.speculation",
    "start_rows": "tokenfst.decoding.gcd_rows",
    "top_labels": "tokenfst.decoding.label_search",
    "train_hmm": "tokenfst.decoding.hmm_training",
}
"""Names whose modules are imported when they are first asked for."""


def __getattr__(name: str) -> Any:
    if name not in _LAZY:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = globals()[name] = getattr(importlib.import_module(_LAZY[name]), name)
    return found
