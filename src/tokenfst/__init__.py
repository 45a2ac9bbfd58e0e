"""tokenfst: exact constrained decoding by composition of automata with tokenizers.

    import tokenfst

    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    automaton = tokenfst.compile(tokenfst.regex(r"[0-9]{3}-[0-9]{4}"), vocabulary)
    matcher = automaton.matcher()

The module of a name is imported when the name is first used, so ``import tokenfst`` is fast. Heavy packages (pynini,
torch, transformers) are imported only by the calls that need them.
"""

from __future__ import annotations

import importlib
import sys

import tokenfst.common.moved  # modules by their old names
import tokenfst.tokenizers.adapters  # noqa: F401  # the doors of Vocabulary

TYPE_CHECKING = False  # typing itself takes longer to import than all of this
if TYPE_CHECKING:
    from typing import Any

    from tokenfst._native import Matcher
    from tokenfst.automata.events.partial import stream_json
    from tokenfst.automata.grammars.grammar import Grammar
    from tokenfst.automata.grammars.lists import (
        delimited_list,
        delimited_subsequence_of,
        quoted_text,
        substring_of,
        text_until,
        unquoted_text,
    )
    from tokenfst.automata.grammars.repairing import repair
    from tokenfst.automata.grammars.templates import template
    from tokenfst.automata.images.edits import within_edits
    from tokenfst.automata.images.equivalence import normalization_insensitive
    from tokenfst.automata.images.folding import case_insensitive
    from tokenfst.automata.images.rewriting import rewrite
    from tokenfst.automata.json_schema.changes import schema_changes
    from tokenfst.automata.json_schema.json_schema import json_object, json_schema, json_value
    from tokenfst.automata.languages.constraint import Constraint
    from tokenfst.automata.languages.language import Language
    from tokenfst.automata.notations.bundled import bundled_grammar, bundled_grammars
    from tokenfst.automata.notations.ebnf import ebnf
    from tokenfst.automata.notations.gbnf import gbnf
    from tokenfst.automata.notations.lark_syntax import lark_grammar
    from tokenfst.automata.pieces.concepts import Concepts, avoids, concepts, contains_all, contains_in_order
    from tokenfst.automata.pieces.taxonomy import choices, hierarchy, hierarchy_labels, multi_choice
    from tokenfst.automata.pieces.tokens import one_token, special_token, token_class
    from tokenfst.automata.pieces.unordered import unordered
    from tokenfst.automata.python_text.objects import python_calls, python_object
    from tokenfst.automata.regex.translate import regex
    from tokenfst.automata.structural_tags.structural_tag import structural_tag
    from tokenfst.automata.symbols.automaton import SymbolAutomaton
    from tokenfst.automata.symbols.ltlf import ltlf
    from tokenfst.automata.tools.reading.reader import ToolParser
    from tokenfst.automata.tools.reading.replies import ToolCall, ToolReply
    from tokenfst.automata.tools.requests import from_openai
    from tokenfst.automata.tools.tools import tools
    from tokenfst.automata.weighted_grammars.grammar import WeightedGrammar
    from tokenfst.automata.weights.choices import weighted_template
    from tokenfst.automata.weights.edits import weighted_edits
    from tokenfst.automata.weights.entropy import maximum_entropy
    from tokenfst.automata.weights.language import WeightedLanguage
    from tokenfst.automata.weights.look_ahead import look_ahead
    from tokenfst.automata.weights.ngrams import NGramModel
    from tokenfst.automata.weights.preferences import boost, prefer
    from tokenfst.budget import Budget
    from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
    from tokenfst.decoding.compiling.compile import compile
    from tokenfst.decoding.compiling.estimate import estimate
    from tokenfst.decoding.device.automata.automaton import DeviceAutomaton
    from tokenfst.decoding.device.automata.composing import ComposingDeviceAutomaton
    from tokenfst.decoding.device.automata.pushdown import PushDownDeviceAutomaton
    from tokenfst.decoding.device.automata.sampling import DeviceSampler
    from tokenfst.decoding.device.generate import DeviceGenerate
    from tokenfst.decoding.device.graphs import GraphedStep
    from tokenfst.decoding.device.lazy.lazy import LazyDeviceAutomaton
    from tokenfst.decoding.device.paged.matchers import DeviceMatchers
    from tokenfst.decoding.device.weighted.score_matchers import DeviceScoreMatchers
    from tokenfst.decoding.device.weighted.scores import DeviceScores
    from tokenfst.decoding.generation.endpoint import Endpoint
    from tokenfst.decoding.generation.generator import Generator
    from tokenfst.decoding.labels.check import verify_labels
    from tokenfst.decoding.labels.lists import label_lists, multi_label
    from tokenfst.decoding.labels.scoring import classify, label_probabilities
    from tokenfst.decoding.labels.search import top_labels
    from tokenfst.decoding.masks.bitmask import (
        allocate_token_bitmask,
        apply_token_bitmask_inplace,
        fill_bitmasks,
    )
    from tokenfst.decoding.matchers.unconstrained import UNCONSTRAINED
    from tokenfst.decoding.models.fused import FusedModel
    from tokenfst.decoding.particles.hmm import Hmm
    from tokenfst.decoding.particles.hmm_look_ahead import HmmLookAhead
    from tokenfst.decoding.particles.hmm_product import HmmProduct
    from tokenfst.decoding.particles.hmm_training import distil_hmm, train_hmm
    from tokenfst.decoding.particles.smc import smc
    from tokenfst.decoding.rows.edges import TokenEdges
    from tokenfst.decoding.rows.generations import Generation
    from tokenfst.decoding.rows.reach_rows import start_rows
    from tokenfst.decoding.rows.tensor_rows import TensorRows
    from tokenfst.decoding.scores.automaton import ScoreAutomaton
    from tokenfst.decoding.scores.matcher import ScoreMatcher
    from tokenfst.decoding.search.beam_search import automata_beam_search
    from tokenfst.decoding.search.beam_search_generate import automata_beam_generate
    from tokenfst.decoding.search.beam_trace import BeamTrace
    from tokenfst.decoding.search.drafts import PromptLookup
    from tokenfst.decoding.search.exact_length_sampling import exact_length_sample
    from tokenfst.decoding.search.jump_forward import generate
    from tokenfst.decoding.search.logits_processor import ConstraintLogitsProcessor
    from tokenfst.decoding.search.scores_processor import ScoresLogitsProcessor
    from tokenfst.decoding.search.speculation import speculative_generate
    from tokenfst.decoding.store.store import Store
    from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
    from tokenfst.errors import (
        BudgetExceeded,
        EmptyLanguageError,
        ParseError,
        ProviderSchemaError,
        SchemaError,
        TokenfstError,
        TokenLimitError,
        ToolError,
        UnsupportedSchemaError,
    )
    from tokenfst.tokenizers.adapters.sources import load_vocabulary
    from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

    load = TokenAutomaton.load
    _ALL: list[str]

__version__ = "0.1.0"

__all__ = [
    "UNCONSTRAINED",
    "BeamTrace",
    "Budget",
    "BudgetExceeded",
    "CanonicalAutomaton",
    "ComposingDeviceAutomaton",
    "Concepts",
    "Constraint",
    "ConstraintLogitsProcessor",
    "DeviceAutomaton",
    "DeviceGenerate",
    "DeviceMatchers",
    "DeviceSampler",
    "DeviceScoreMatchers",
    "DeviceScores",
    "EmptyLanguageError",
    "Endpoint",
    "FusedModel",
    "Generation",
    "Generator",
    "Grammar",
    "GraphedStep",
    "Hmm",
    "HmmLookAhead",
    "HmmProduct",
    "Language",
    "LazyDeviceAutomaton",
    "Matcher",
    "NGramModel",
    "ParseError",
    "PromptLookup",
    "ProviderSchemaError",
    "PushDownDeviceAutomaton",
    "SchemaError",
    "ScoreAutomaton",
    "ScoreMatcher",
    "ScoresLogitsProcessor",
    "Store",
    "SymbolAutomaton",
    "TensorRows",
    "TokenAutomaton",
    "TokenEdges",
    "TokenLimitError",
    "TokenfstError",
    "ToolCall",
    "ToolError",
    "ToolParser",
    "ToolReply",
    "UnsupportedSchemaError",
    "Vocabulary",
    "WeightedGrammar",
    "WeightedLanguage",
    "allocate_token_bitmask",
    "apply_token_bitmask_inplace",
    "automata_beam_generate",
    "automata_beam_search",
    "avoids",
    "boost",
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
    "estimate",
    "exact_length_sample",
    "fill_bitmasks",
    "from_openai",
    "gbnf",
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
    "look_ahead",
    "ltlf",
    "maximum_entropy",
    "multi_choice",
    "multi_label",
    "normalization_insensitive",
    "one_token",
    "prefer",
    "python_calls",
    "python_object",
    "quoted_text",
    "regex",
    "repair",
    "rewrite",
    "schema_changes",
    "smc",
    "special_token",
    "speculative_generate",
    "start_rows",
    "stream_json",
    "structural_tag",
    "substring_of",
    "template",
    "text_until",
    "token_class",
    "tools",
    "top_labels",
    "train_hmm",
    "unordered",
    "unquoted_text",
    "verify_labels",
    "weighted_edits",
    "weighted_template",
    "within_edits",
]

if not TYPE_CHECKING:
    _ALL = __all__
    del __all__  # made by __getattr__, so that looking for packages costs an import of tokenfst nothing

_PLACES = {
    "BeamTrace": "decoding.search.beam_trace",
    "Budget": "budget",
    "BudgetExceeded": "errors",
    "CanonicalAutomaton": "decoding.canonical.automaton",
    "ComposingDeviceAutomaton": "decoding.device.automata.composing",
    "Concepts": "automata.pieces.concepts",
    "Constraint": "automata.languages.constraint",
    "ConstraintLogitsProcessor": "decoding.search.logits_processor",
    "DeviceAutomaton": "decoding.device.automata.automaton",
    "DeviceGenerate": "decoding.device.generate",
    "DeviceMatchers": "decoding.device.paged.matchers",
    "DeviceSampler": "decoding.device.automata.sampling",
    "DeviceScoreMatchers": "decoding.device.weighted.score_matchers",
    "DeviceScores": "decoding.device.weighted.scores",
    "EmptyLanguageError": "errors",
    "Endpoint": "decoding.generation.endpoint",
    "FusedModel": "decoding.models.fused",
    "Generation": "decoding.rows.generations",
    "Generator": "decoding.generation.generator",
    "Grammar": "automata.grammars.grammar",
    "GraphedStep": "decoding.device.graphs",
    "Hmm": "decoding.particles.hmm",
    "HmmLookAhead": "decoding.particles.hmm_look_ahead",
    "HmmProduct": "decoding.particles.hmm_product",
    "Language": "automata.languages.language",
    "Matcher": "_native",
    "NGramModel": "automata.weights.ngrams",
    "ParseError": "errors",
    "PromptLookup": "decoding.search.drafts",
    "ProviderSchemaError": "errors",
    "LazyDeviceAutomaton": "decoding.device.lazy.lazy",
    "PushDownDeviceAutomaton": "decoding.device.automata.pushdown",
    "SchemaError": "errors",
    "ScoreAutomaton": "decoding.scores.automaton",
    "ScoreMatcher": "decoding.scores.matcher",
    "ScoresLogitsProcessor": "decoding.search.scores_processor",
    "Store": "decoding.store.store",
    "SymbolAutomaton": "automata.symbols.automaton",
    "TensorRows": "decoding.rows.tensor_rows",
    "TokenAutomaton": "decoding.token_automata.token_automaton",
    "TokenLimitError": "errors",
    "TokenEdges": "decoding.rows.edges",
    "TokenfstError": "errors",
    "ToolCall": "automata.tools.reading.replies",
    "ToolError": "errors",
    "ToolParser": "automata.tools.reading.reader",
    "ToolReply": "automata.tools.reading.replies",
    "UNCONSTRAINED": "decoding.matchers.unconstrained",
    "UnsupportedSchemaError": "errors",
    "Vocabulary": "tokenizers.vocabulary.vocabulary",
    "WeightedGrammar": "automata.weighted_grammars.grammar",
    "WeightedLanguage": "automata.weights.language",
    "allocate_token_bitmask": "decoding.masks.bitmask",
    "apply_token_bitmask_inplace": "decoding.masks.bitmask",
    "automata_beam_generate": "decoding.search.beam_search_generate",
    "automata_beam_search": "decoding.search.beam_search",
    "avoids": "automata.pieces.concepts",
    "boost": "automata.weights.preferences",
    "bundled_grammar": "automata.notations.bundled",
    "bundled_grammars": "automata.notations.bundled",
    "case_insensitive": "automata.images.folding",
    "choices": "automata.pieces.taxonomy",
    "classify": "decoding.labels.scoring",
    "compile": "decoding.compiling.compile",
    "concepts": "automata.pieces.concepts",
    "contains_all": "automata.pieces.concepts",
    "contains_in_order": "automata.pieces.concepts",
    "delimited_list": "automata.grammars.lists",
    "delimited_subsequence_of": "automata.grammars.lists",
    "distil_hmm": "decoding.particles.hmm_training",
    "ebnf": "automata.notations.ebnf",
    "estimate": "decoding.compiling.estimate",
    "exact_length_sample": "decoding.search.exact_length_sampling",
    "fill_bitmasks": "decoding.masks.bitmask",
    "from_openai": "automata.tools.requests",
    "gbnf": "automata.notations.gbnf",
    "generate": "decoding.search.jump_forward",
    "hierarchy": "automata.pieces.taxonomy",
    "hierarchy_labels": "automata.pieces.taxonomy",
    "json_object": "automata.json_schema.json_schema",
    "json_schema": "automata.json_schema.json_schema",
    "json_value": "automata.json_schema.json_schema",
    "label_lists": "decoding.labels.lists",
    "label_probabilities": "decoding.labels.scoring",
    "lark_grammar": "automata.notations.lark_syntax",
    "load_vocabulary": "tokenizers.adapters.sources",
    "look_ahead": "automata.weights.look_ahead",
    "ltlf": "automata.symbols.ltlf",
    "maximum_entropy": "automata.weights.entropy",
    "multi_choice": "automata.pieces.taxonomy",
    "multi_label": "decoding.labels.lists",
    "normalization_insensitive": "automata.images.equivalence",
    "one_token": "automata.pieces.tokens",
    "prefer": "automata.weights.preferences",
    "python_calls": "automata.python_text.objects",
    "python_object": "automata.python_text.objects",
    "quoted_text": "automata.grammars.lists",
    "regex": "automata.regex.translate",
    "repair": "automata.grammars.repairing",
    "rewrite": "automata.images.rewriting",
    "schema_changes": "automata.json_schema.changes",
    "smc": "decoding.particles.smc",
    "special_token": "automata.pieces.tokens",
    "speculative_generate": "decoding.search.speculation",
    "start_rows": "decoding.rows.reach_rows",
    "stream_json": "automata.events.partial",
    "structural_tag": "automata.structural_tags.structural_tag",
    "substring_of": "automata.grammars.lists",
    "template": "automata.grammars.templates",
    "text_until": "automata.grammars.lists",
    "token_class": "automata.pieces.tokens",
    "tools": "automata.tools.tools",
    "top_labels": "decoding.labels.search",
    "train_hmm": "decoding.particles.hmm_training",
    "unordered": "automata.pieces.unordered",
    "unquoted_text": "automata.grammars.lists",
    "verify_labels": "decoding.labels.check",
    "weighted_edits": "automata.weights.edits",
    "weighted_template": "automata.weights.choices",
    "within_edits": "automata.images.edits",
}
"""The module of each name."""
_OLD = {
    "TokenBudgetError": "TokenLimitError",
    "abs_beam_search": "automata_beam_search",
    "abs_generate": "automata_beam_generate",
    "gcd_sample": "exact_length_sample",
}
"""Old names, which work for one version."""
_NEED_TORCH = frozenset(
    {
        "ComposingDeviceAutomaton",
        "DeviceAutomaton",
        "DeviceGenerate",
        "DeviceMatchers",
        "DeviceSampler",
        "DeviceScoreMatchers",
        "DeviceScores",
        "FusedModel",
        "GraphedStep",
        "Hmm",
        "HmmLookAhead",
        "HmmProduct",
        "LazyDeviceAutomaton",
        "PromptLookup",
        "PushDownDeviceAutomaton",
        "TensorRows",
        "TokenEdges",
        "automata_beam_search",
        "classify",
        "distil_hmm",
        "exact_length_sample",
        "generate",
        "label_lists",
        "label_probabilities",
        "multi_label",
        "smc",
        "speculative_generate",
        "start_rows",
        "top_labels",
        "train_hmm",
    }
)
"""Names whose modules import torch."""
_NEED_TRANSFORMERS = frozenset(
    {"ConstraintLogitsProcessor", "ScoresLogitsProcessor", "automata_beam_generate"}
)
"""Names whose modules import transformers, which needs torch."""
_FOLDERS = frozenset({"automata", "decoding", "tokenizers", "errors", "budget", "fst", "ray"})


def _is_there(package: str) -> bool:
    if package in sys.modules:
        return sys.modules[package] is not None
    from importlib.util import find_spec  # takes as long to import as the rest of this module

    try:
        return find_spec(package) is not None
    except ImportError:  # an importer refuses it
        return False


def _importable() -> list[str]:
    """The public names, without those that need a package that is not installed: ``from tokenfst import *`` imports
    every name of ``__all__``. Any other use of such a name still raises an error that names the package.
    """
    missing: frozenset[str] = frozenset()
    if not _is_there("torch"):
        missing = _NEED_TORCH | _NEED_TRANSFORMERS
    elif not _is_there("transformers"):
        missing = _NEED_TRANSFORMERS
    return [name for name in _ALL if name not in missing]


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return _importable()
    if name == "load":
        found = __getattr__("TokenAutomaton").load
    elif name in _PLACES:
        found = getattr(importlib.import_module(f"tokenfst.{_PLACES[name]}"), name)
    elif name in _FOLDERS:
        return importlib.import_module(f"tokenfst.{name}")
    elif name in _OLD:
        return importlib.import_module("tokenfst.common.renamed").old_names(__name__, _OLD, 4)(name)
    else:
        if name[:1] == "_":  # which programs look for
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        raise AttributeError(importlib.import_module("tokenfst.common.names").unknown(__name__, name, _ALL))
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted({*globals(), *_ALL, "__all__"})
