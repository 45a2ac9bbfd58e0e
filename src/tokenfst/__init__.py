"""tokenfst: exact constrained decoding by composition of automata with tokenizers.

    import tokenfst

    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    automaton = tokenfst.compile(tokenfst.regex(r"[0-9]{3}-[0-9]{4}"), vocabulary)
    matcher = automaton.matcher()

A name's module is imported when the name is first used, so ``import tokenfst`` itself is quick; heavy packages (pynini,
torch, transformers) are imported only by the calls that need them.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # typing itself takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

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
    from tokenfst.automata.json_schema import json_object, json_schema, json_value
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
    from tokenfst.decoding.abs import abs_beam_search
    from tokenfst.decoding.abs_generate import abs_generate
    from tokenfst.decoding.bitmask import allocate_token_bitmask, apply_token_bitmask_inplace, fill_bitmasks
    from tokenfst.decoding.canonical import CanonicalAutomaton
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
    from tokenfst.decoding.label_check import verify_labels
    from tokenfst.decoding.label_lists import label_lists, multi_label
    from tokenfst.decoding.label_scoring import classify, label_probabilities
    from tokenfst.decoding.label_search import top_labels
    from tokenfst.decoding.logits_processor import ConstraintLogitsProcessor
    from tokenfst.decoding.smc import smc
    from tokenfst.decoding.speculation import speculative_generate
    from tokenfst.decoding.token_automaton import TokenAutomaton, compile
    from tokenfst.errors import EmptyLanguageError, SchemaError, TokenfstError, UnsupportedSchemaError
    from tokenfst.tokenizers.sources import load_vocabulary
    from tokenfst.tokenizers.vocabulary import Vocabulary

    load = TokenAutomaton.load

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
    "structural_tag",
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

_PLACES = {
    "Budget": "budget",
    "CanonicalAutomaton": "decoding.canonical",
    "ComposingDeviceAutomaton": "decoding.device_composing",
    "Concepts": "automata.concepts",
    "ConstraintLogitsProcessor": "decoding.logits_processor",
    "DeviceAutomaton": "decoding.device_automaton",
    "DeviceGenerate": "decoding.device_generate",
    "DeviceMatchers": "decoding.device_matchers",
    "EmptyLanguageError": "errors",
    "Grammar": "automata.grammar",
    "GraphedStep": "decoding.device_graphs",
    "Hmm": "decoding.hmm",
    "HmmProduct": "decoding.hmm_product",
    "Language": "automata.language",
    "Matcher": "_native",
    "PromptLookup": "decoding.drafts",
    "PushDownDeviceAutomaton": "decoding.device_stacks",
    "SchemaError": "errors",
    "SymbolAutomaton": "automata.symbols",
    "TensorRows": "decoding.gcd_tensor",
    "TokenAutomaton": "decoding.token_automaton",
    "TokenEdges": "decoding.gcd_edges",
    "TokenfstError": "errors",
    "UnsupportedSchemaError": "errors",
    "Vocabulary": "tokenizers.vocabulary",
    "abs_beam_search": "decoding.abs",
    "abs_generate": "decoding.abs_generate",
    "allocate_token_bitmask": "decoding.bitmask",
    "apply_token_bitmask_inplace": "decoding.bitmask",
    "avoids": "automata.concepts",
    "bundled_grammar": "automata.bundled",
    "bundled_grammars": "automata.bundled",
    "case_insensitive": "automata.folding",
    "choices": "automata.taxonomy",
    "classify": "decoding.label_scoring",
    "compile": "decoding.token_automaton",
    "concepts": "automata.concepts",
    "contains_all": "automata.concepts",
    "contains_in_order": "automata.concepts",
    "delimited_list": "automata.groups",
    "delimited_subsequence_of": "automata.groups",
    "distil_hmm": "decoding.hmm_training",
    "ebnf": "automata.ebnf",
    "fill_bitmasks": "decoding.bitmask",
    "gbnf": "automata.gbnf",
    "gcd_sample": "decoding.gcd_sample",
    "generate": "decoding.jump_forward",
    "hierarchy": "automata.taxonomy",
    "hierarchy_labels": "automata.taxonomy",
    "json_object": "automata.json_schema",
    "json_schema": "automata.json_schema",
    "json_value": "automata.json_schema",
    "label_lists": "decoding.label_lists",
    "label_probabilities": "decoding.label_scoring",
    "lark_grammar": "automata.lark_syntax",
    "load_vocabulary": "tokenizers.sources",
    "ltlf": "automata.ltlf",
    "multi_choice": "automata.taxonomy",
    "multi_label": "decoding.label_lists",
    "normalization_insensitive": "automata.equivalence",
    "one_token": "automata.token_groups",
    "python_calls": "automata.python_objects",
    "python_object": "automata.python_objects",
    "quoted_text": "automata.groups",
    "regex": "automata.regex",
    "rewrite": "automata.rewriting",
    "smc": "decoding.smc",
    "special_token": "automata.token_groups",
    "speculative_generate": "decoding.speculation",
    "start_rows": "decoding.gcd_rows",
    "structural_tag": "automata.structural_tags.door",
    "substring_of": "automata.groups",
    "template": "automata.templates",
    "text_until": "automata.groups",
    "token_class": "automata.token_groups",
    "top_labels": "decoding.label_search",
    "train_hmm": "decoding.hmm_training",
    "unordered": "automata.unordered",
    "unquoted_text": "automata.groups",
    "verify_labels": "decoding.label_check",
    "within_edits": "automata.edits",
}
"""The module of each name."""
_FOLDERS = frozenset({"automata", "decoding", "tokenizers", "errors", "budget"})


def __getattr__(name: str) -> Any:
    if name == "load":
        found = __getattr__("TokenAutomaton").load
    elif name in _PLACES:
        found = getattr(importlib.import_module(f"tokenfst.{_PLACES[name]}"), name)
    elif name in _FOLDERS:
        return importlib.import_module(f"tokenfst.{name}")
    else:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
