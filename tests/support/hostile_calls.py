"""Every public call with arguments that make no sense, one at a time: which errors come out.

Run as a program: ``hostile_calls.py [NAME...]`` prints a line for each call that ends otherwise than by an answer or an
error that tokenfst promises (TypeError, ValueError, TokenfstError; OSError where a file is named; MemoryError where
memory is asked for), and exits 1 if there is one. Each public call runs in a process of its own, with limits on its
CPU time and memory, so that one that does not end, or ends the process, is named too.
"""

from __future__ import annotations

import inspect
import math
import os
import random
import re
import resource
import signal
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pynini
import torch

import tokenfst as t
from tokenfst import _native
from tokenfst.automata.expressions.expression import literal

CPU_SECONDS = 10
"""Of one call. The machine may be slow; the budgets of the calls are of a second."""
MEMORY = 4 << 30
NEVER = (UnicodeEncodeError, UnicodeDecodeError, RecursionError, AssertionError)
PATHS = {
    "path",
    "path_or_name",
    "spec",
    "name_or_path",
    "tokenizer",
    "model",
    "encoding",
    "automata",
    "automaton",
}
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


EXEMPT = {
    "TokenEdges": "holds the arrays that from_arcs and from_automaton make",
    "TokenAutomaton": "is made by compile and load",
    "CanonicalAutomaton": "its methods but matcher, expand, save and load walk nodes that it gives out itself",
    "TokenAutomaton.learn_from": "takes what the reader of artifacts has checked",
    "TokenAutomaton.of_artifact": "takes what the reader of artifacts has checked",
    "ToolParser": "is made by the parser() of a constraint",
    "ToolCall": "is what a parser gives",
    "ToolReply": "is what a parser gives",
    "CanonicalAutomaton.of_artifact": "takes what the reader of artifacts has checked",
    "WeightedLanguage": "holds the arrays that from_fst, of and alternatives make",
    "NGramModel": "is made by from_arpa",
    "GrammarScores": "is made by compile, and walks nodes that it gives out itself",
    "ScoreAutomaton": "is made by compile, and walks nodes that it gives out itself",
    "ScoreMatcher": "is made by the matcher() of an automaton",
    "Concepts.product": "takes the clock of the question that it is a part of",
}
"""Public calls that are left out, and why."""
BOUNDED = {
    ("Grammar.truncate", "depth"),
    ("json_object", "max_depth"),
    ("json_value", "max_depth"),
    ("within_edits", "k"),
    ("SymbolAutomaton.count", "length"),
}
"""Numbers that only a budget of time bounds, the default one here: left to the tests of budgets."""


def calls(world: World) -> Iterator[tuple[str, Callable[..., Any], list[str], dict[str, Any]]]:
    """Each public call: its name, the call, its parameters, and arguments that make sense for those that need one."""
    for name in t.__all__:
        public = getattr(t, name)
        if inspect.isclass(public) and (issubclass(public, BaseException) or public is t.Matcher):
            continue
        yield from _call(world, name, public)
        if inspect.isclass(public):
            for method, member in vars(public).items():
                if isinstance(member, classmethod) and not method.startswith("_"):
                    yield from _call(world, f"{name}.{method}", getattr(public, method))
    for name, thing in world.subjects().items():
        for method in sorted(dir(thing)):
            if method.startswith("_") or isinstance(getattr(type(thing), method, None), property):
                continue
            bound = getattr(thing, method)
            if callable(bound) and not inspect.isclass(bound) and not inspect.ismethod(type(bound)):
                if isinstance(inspect.getattr_static(type(thing), method, None), classmethod):
                    continue
                yield from _call(world, f"{name}.{method}", bound)


def _call(
    world: World, name: str, call: Callable[..., Any]
) -> Iterator[tuple[str, Callable[..., Any], list[str], dict[str, Any]]]:
    if name in EXEMPT:
        return
    needed, names = [], []
    try:
        for parameter in inspect.signature(call).parameters.values():
            if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
                continue
            names.append(parameter.name)
            if parameter.default is parameter.empty:
                needed.append(parameter.name)
    except ValueError:  # a call of the native core: its docstring begins with its signature
        found = re.match(r"\w+\((.*)\) ->", (call.__doc__ or "").replace("\n", " "))
        assert found is not None, name
        for part in re.split(r", (?=\w+:)", found[1]):
            parameter_name = part.partition(":")[0].strip()
            if parameter_name not in ("self", ""):
                names.append(parameter_name)
                if "=" not in part.rpartition("]")[2] or "ndarray" in part:
                    needed.append(parameter_name)
    if names:
        good = {each: world.argument(each, name) for each in needed if each not in _TREE} | {
            each: np.zeros(1, np.int64) for each in needed if each in _TREE
        }
        yield name, call, names, good


_TREE = {"next_token", "next_sibling", "draft_tokens"}


def run_one(name: str, call: Callable[..., Any], names: list[str], good: dict[str, Any], report: int) -> None:
    """Try all hostile values for one call; writes a line for each that ends otherwise than is promised."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + MEMORY, size + MEMORY))
    random.seed(0)
    for parameter in names:
        for label, value in values().items():
            if (name, parameter) in BOUNDED and label == "2**31":
                continue
            used = resource.getrusage(resource.RUSAGE_SELF)
            limit = int(used.ru_utime + used.ru_stime) + 1 + CPU_SECONDS
            resource.setrlimit(resource.RLIMIT_CPU, (limit, resource.RLIM_INFINITY))
            os.write(report, f"?{name}({parameter}={label})\n".encode())
            allowed: tuple[type[BaseException], ...] = (TypeError, ValueError, t.TokenfstError, MemoryError)
            if parameter in PATHS:
                allowed += (OSError,)
            try:
                call(**good | {parameter: value})
            except BaseException as error:
                if isinstance(error, allowed) and not isinstance(error, NEVER):
                    continue
                text = " ".join(str(error).split())[:100]
                if "can't allocate memory" in str(error):  # torch's MemoryError
                    continue
                os.write(report, f"!{name}({parameter}={label}): {type(error).__name__}: {text}\n".encode())


def main(chosen: list[str]) -> int:
    """Run them all, each in a process of its own."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    os.environ["HF_HUB_OFFLINE"] = "1"
    world, wrong, count = World(), 0, 0
    for name, call, names, good in calls(world):
        if chosen and not any(each in name for each in chosen):
            continue
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(reading)
            signal.alarm(600)
            run_one(name, call, names, good, writing)
            os._exit(0)
        os.close(writing)
        last = name
        with os.fdopen(reading) as lines:
            for line in lines:
                if line[0] == "?":
                    last, count = line[1:-1], count + 1
                else:
                    print(line[1:], end="", flush=True)
                    wrong += 1
        status = os.waitpid(child, 0)[1]
        if status:
            print(
                f"{last}: ended its process, status {status} (24 is {CPU_SECONDS} seconds of CPU time)",
                flush=True,
            )
            wrong += 1
    print(f"{count} calls, {wrong} of them wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    assert _native is not None
    sys.exit(main(sys.argv[1:]))
