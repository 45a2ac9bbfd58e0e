"""Arguments for ``hostile_calls``: values that fit hardly anywhere, and good ones for all public calls."""

from __future__ import annotations

import math
import tempfile
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pynini
import torch

import tokenfst as t
from tokenfst.automata.expressions.expression import literal

FOLDER = Path(tempfile.mkdtemp())
WIDTH = 257


def values() -> dict[str, Any]:
    """Values that fit hardly anywhere, by what they are called in a report."""
    return {
        "None": None,
        "True": True,
        "0": 0,
        "-1": -1,
        "1.5": 1.5,
        "nan": math.nan,
        "inf": math.inf,
        "2**31": 2**31,
        "2**63": 2**63,
        "10**30": 10**30,
        "-10**30": -(10**30),
        "numpy 1": np.int64(1),
        "numpy True": np.bool_(True),
        "no text": "",
        "text": "no such thing",
        "surrogate": "\ud800",
        "NUL": "a\0b",
        "bytes": b"\xff\xfe",
        "object": object(),
        "class": dict,
        "function": lambda: None,
        "[]": [],
        "[None]": [None],
        "[-1]": [-1],
        "[2**63]": [2**63],
        "[nan]": [math.nan],
        "[[]]": [[]],
        "[surrogate]": ["\ud800"],
        "{}": {},
        "{1: 2}": {1: 2},
        "{'a': None}": {"a": None},
        "generator": (each for each in (1, "a", None)),
        "numpy scalar": np.float64(0.5),
        "numpy 0-d": np.array(1),
        "numpy floats": np.full((2, 3), math.nan),
        "numpy objects": np.array([None, "a"], dtype=object),
        "numpy strided": np.zeros((4, 8), np.int32)[::2, ::2],
        "tensor 0-d": torch.tensor(1),
        "tensor floats": torch.zeros((2, 3), dtype=torch.float64),
        "tensor ints": torch.full((1,), -5),
        "tensor int32": torch.full((1,), 99, dtype=torch.int32),
        "tensor empty": torch.zeros(0, dtype=torch.int64),
        "tensor strided": torch.zeros((2, WIDTH * 2))[:, ::2],
        "tensor meta": torch.zeros((1, WIDTH), device="meta"),
    }


ARPA = "\\data\\\nngram 1=2\n\\1-grams:\n-0.3 a\n-0.3 </s>\n\\end\\\n"
TOOLS = [{"type": "function", "name": "f"}]


class World:
    """Arguments that make sense, by the names of parameters, and things that have methods."""

    def __init__(self) -> None:
        self.budget = t.Budget(states=2000, positions=20000, bytes=64 << 20, seconds=1)
        pieces = [*(bytes([byte]) for byte in range(256)), b""]
        self.vocabulary = t.Vocabulary(pieces, 256, split_pattern=r"\p{L}+|\P{L}+")
        self.language = t.regex("(ab|c){1,3}", budget=self.budget)
        self.grammar = t.lark_grammar('start: "(" start ")" | "a"', budget=self.budget)
        self.schema = t.json_schema({"type": "integer"}, budget=self.budget)
        self.automaton = t.compile(self.language, self.vocabulary, self.budget).expand()
        self.file = FOLDER / "a.safetensors"
        self.automaton.save(self.file)
        self.store = t.Store(FOLDER / "artifacts")
        self.store.compile(self.language, self.vocabulary, self.budget)
        self.hmm = t.Hmm(torch.tensor([0.5, 0.5]), torch.full((2, 2), 0.5), torch.full((2, WIDTH), 1 / WIDTH))
        self.edges = t.TokenEdges.from_automaton(self.automaton)
        self.symbols = t.SymbolAutomaton(["a", "b"], [[1, 0, 0], [1, 1, 1]], np.array([False, True]), 0)
        self.device = t.DeviceAutomaton(self.automaton)
        self.weighted = t.WeightedLanguage.alternatives({"ab": 1.0, "c": 2.0}, self.budget)
        self.preferred = t.prefer(self.language, budget=self.budget)
        self.scored = t.compile(self.weighted, self.vocabulary)

    def model(self, ids: Any) -> Any:
        return torch.zeros(len(ids), WIDTH)

    def argument(self, name: str, owner: str) -> Any:
        """A good value for a parameter without a default."""
        special = {
            ("DeviceMatchers", "matchers"): [self.automaton.matcher()],
            ("DeviceScoreMatchers", "matchers"): [self.scored.matcher()],
            ("fill_bitmasks", "matchers"): [self.automaton.matcher()],
            ("DeviceGenerate", "automaton"): self.device,
            ("GraphedStep", "automaton"): self.device,
            ("DeviceSampler", "automaton"): self.device,
            ("DeviceSampler.see", "tokens"): torch.tensor([[97]]),
            ("DeviceSampler.select", "rows"): torch.tensor([0]),
            ("look_ahead", "model"): self.weighted,
            ("FusedModel", "scores"): self.scored,
            ("ScoresLogitsProcessor", "scores"): self.scored,
            ("DeviceScores", "language"): self.preferred,
            ("Grammar", "rules"): {"start": literal(b"a")},
            ("Grammar", "start"): "start",
            ("Grammar.from_rules", "start"): "start",
            ("SymbolAutomaton", "start"): 0,
            ("SymbolAutomaton.from_transitions", "start"): 0,
            ("SymbolAutomaton.from_transitions", "accepting"): [1],
            ("TokenEdges.from_arcs", "start"): [0],
            ("TokenEdges.from_arcs", "accepting"): [1],
            ("json_schema", "schema"): {"type": "integer"},
            ("schema_changes", "old"): self.schema,
            ("schema_changes", "new"): self.schema,
            ("structural_tag", "spec"): {
                "type": "structural_tag",
                "format": {"type": "const_string", "value": "a"},
            },
            ("tools", "tools"): TOOLS,
            ("tools", "format"): "hermes",
            ("from_openai", "request"): {"tools": TOOLS, "tool_choice": "none"},
            ("ToolConstraint.parse", "text"): "ab",
            ("ToolParser.feed", "piece"): "ab",
            ("train_hmm", "tokens"): torch.zeros((1, 2), dtype=torch.int64),
            ("Vocabulary", "tokens"): [b"a", b""],
            ("Concepts", "forms"): {"a": ["b"]},
            ("ltlf", "formula"): "F a",
            ("stream_json", "parts"): ["[1]"],
            ("ebnf", "text"): "root ::= 'a'",
            ("gbnf", "text"): 'root ::= "a"',
            ("lark_grammar", "text"): 'start: "a"',
            ("bundled_grammar", "name"): "json",
            ("SymbolAutomaton.equivalent", "other"): self.symbols,
            ("SymbolAutomaton.includes", "other"): self.symbols,
            ("SymbolAutomaton.over", "symbols"): ["a", "b", "c"],
            ("SymbolAutomaton.from_transitions", "symbols"): ["a", "b"],
            ("Concepts.language", "automaton"): self.symbols,
            ("TokenAutomaton", "native"): object(),
            ("Language.from_dfa", "dfa"): self.language.determinize(),
            ("Vocabulary.from_huggingface", "tokenizer"): str(FOLDER / "missing.json"),
            ("Vocabulary.from_sentencepiece", "model"): str(FOLDER / "missing.model"),
            ("Vocabulary.from_tiktoken", "encoding"): str(FOLDER / "missing.tiktoken"),
            ("Vocabulary.from_mistral", "name_or_path"): str(FOLDER / "missing.json"),
            ("load", "path"): self.file,
            ("TokenAutomaton.load", "path"): self.file,
            ("CanonicalAutomaton.load", "path"): self.file,
            ("Hmm.load", "path"): self.file,
            ("TokenAutomaton.of_artifact", "path"): self.file,
            ("TokenAutomaton.learn", "other"): self.automaton,
            ("HmmProduct", "automaton"): self.automaton,
            ("Store", "url"): str(FOLDER / "store"),
            ("NGramModel.from_arpa", "text"): ARPA,
            ("WeightedGrammar", "rules"): {"start": {"a{start}b": 0.25, "c": 0.5}},
            ("Vocabulary.with_tries", "tables"): (),
            ("WeightedLanguage.from_fst", "fst"): self.language.to_native_fst(),
        }
        if (owner, name) in special:
            return special[owner, name]
        return {
            "accepting": np.array([False, True]),
            "annotation": int,
            "arcs": [(0, 0, 1)],
            "automata": self.automaton,
            "automaton": self.automaton,
            "batch": 1,
            "belief": self.hmm.start(1),
            "bitmask": t.allocate_token_bitmask(1, WIDTH),
            "boundaries": True,
            "budget": self.budget,
            "by": 0.5,
            "choices": {"ab": 1.0},
            "client": SimpleNamespace(chat=None, models=None),
            "constraint": self.language,
            "count": 1,
            "data": b"ab",
            "depth": 1,
            "device": torch.device("cpu"),
            "bitmasks": None,
            "draft": self.model,
            "document": {"regex": "a"},
            "edges": self.edges,
            "emission": self.hmm.emission,
            "end_tokens": [256],
            "eos_token_id": 1,
            "exact": False,
            "expr": self.language.expr,
            "fingerprint": self.vocabulary.fingerprint,
            "first": 1,
            "formula": "F a",
            "forms": ["dog", "cat"],
            "fsa": pynini.accep("a"),
            "functions": [math.sin],
            "hidden_size": 2,
            "hmm": self.hmm,
            "ids": [97, 98],
            "ignore_case": False,
            "indices": [0],
            "initial": self.hmm.initial,
            "item": "a",
            "items": ["a", "b"],
            "k": 1,
            "key": self.store.key(self.language, self.vocabulary),
            "label": 0,
            "labels": ["a", "b"],
            "language": self.language,
            "languages": [self.language],
            "largest": 4,
            "last": 2,
            "length": 2,
            "lengths": torch.tensor([2]),
            "limit": 1,
            "logits": torch.zeros((1, WIDTH)),
            "low": 1,
            "machine": t.choices(["a", "b"]),
            "matcher": self.automaton.matcher(),
            "max_length": 4,
            "max_new_tokens": 4,
            "mean_length": 2.0,
            "model": self.model,
            "max_cost": 1.0,
            "name": "a",
            "num_beams": 2,
            "num_states": 2,
            "num_tokens": WIDTH,
            "other": self.language,
            "parents": [0],
            "particles": 2,
            "parts": [b"ab"],
            "path": FOLDER / "new.bin",
            "pattern": "a",
            "phrases": ["ab"],
            "prefix": b"a",
            "prompt": [0],
            "prompts": [[0]],
            "row": 0,
            "rows": 1,
            "rules": {"start": self.language},
            "scores": torch.zeros((1, WIDTH)),
            "separator": ",",
            "sequence": ["a", "b"],
            "source": "x",
            "spec": "symbols:a,b",
            "start": 0,
            "state": 0,
            "states": self.device.start_states([0]),
            "stop": "a",
            "symbol": "a",
            "symbols": ["a", "b"],
            "table": [[1, 0, 0], [1, 1, 1]],
            "target": self.model,
            "text": "abc",
            "token": 97,
            "token_id": 97,
            "token_ids": [97],
            "whole": None,
            "tokens": torch.tensor([97]),
            "transducer": pynini.cross("a", "b"),
            "transition": self.hmm.transition,
            "transitions": [(0, "a", 1)],
            "tree": {"a": ["b"]},
            "unit": "character",
            "vocab_size": WIDTH,
            "vocabulary": self.vocabulary,
            "what": "a batch",
            "width": WIDTH,
            "word": "ab",
            "written": [[97]],
        }[name]

    def subjects(self) -> dict[str, Any]:
        """An object of each public class, for its methods."""
        nested = t.compile(self.grammar, self.vocabulary, self.budget)
        return {
            "Language": self.language,
            "Grammar": self.grammar,
            "Vocabulary": self.vocabulary,
            "TokenAutomaton": self.automaton,
            "Matcher": self.automaton.matcher(),
            "Store": self.store,
            "SymbolAutomaton": self.symbols,
            "ToolConstraint": t.tools(TOOLS, format="hermes", budget=self.budget),
            "ToolParser": t.tools(TOOLS, format="hermes", budget=self.budget).parser(),
            "Concepts": t.concepts(["dog", "cat"]),
            "TokenEdges": self.edges,
            "TensorRows": t.TensorRows(self.edges, self.vocabulary, prompts=1, max_new_tokens=4, width=WIDTH),
            "Hmm": self.hmm,
            "HmmProduct": t.HmmProduct(self.hmm, self.automaton, 4),
            "DeviceAutomaton": self.device,
            "ComposingDeviceAutomaton": t.ComposingDeviceAutomaton(self.automaton),
            "PushDownDeviceAutomaton": t.PushDownDeviceAutomaton(nested.expand()),
            "LazyDeviceAutomaton": t.LazyDeviceAutomaton(
                t.compile(self.language, self.vocabulary, self.budget)
            ),
            "ConstraintLogitsProcessor": t.ConstraintLogitsProcessor(self.automaton),
            "DeviceScores": t.DeviceScores(self.preferred, self.vocabulary, capacity=1 << 20),
            "FusedModel": t.FusedModel(self.model, self.scored, width=WIDTH),
            "ScoresLogitsProcessor": t.ScoresLogitsProcessor(self.scored),
            "DeviceMatchers": t.DeviceMatchers([self.automaton.matcher()], self.vocabulary),
            "DeviceScoreMatchers": t.DeviceScoreMatchers([self.scored.matcher()], self.vocabulary),
            "DeviceSampler": t.DeviceSampler(self.device, 1, presence_penalty=0.5),
            "PromptLookup": t.PromptLookup(),
            "CanonicalMatcher": t.compile(
                self.language, self.vocabulary, self.budget, tokenization="canonical"
            ).matcher(),
            "WeightedLanguage": t.WeightedLanguage.of(self.language, self.budget),
            "WeightedGrammar": t.WeightedGrammar({"start": {"a{start}b": 0.25, "c": 0.5}}),
            "ScoreMatcher": t.compile(
                t.WeightedLanguage.of(self.language, self.budget), self.vocabulary
            ).matcher(),
            "Drawing": self.language.draw(),
            "LabelScores": t.label_probabilities(self.model, [[0]], ["a", "b"], self.vocabulary, width=WIDTH),
        }
