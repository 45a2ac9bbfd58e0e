"""Replays requests through every adapter that its environment has, and through the plain matcher: all masks are equal.

A trace is a JSON Schema of MaskBench and one of its documents, as the text that a model wrote. At each token the mask
is compared bit by bit, then the token is taken; the first one that is refused ends the trace, and must be refused by
all. Every second trace has a budget of tokens, where the adapter knows budgets. Budgets of stacks are bounds in
servers, as the core has them; elsewhere they are exact, at a cost, and are left out here.

    python -m tests.support.engines.replay [--schemas N]      # in the environment of each engine
"""

from __future__ import annotations

import argparse
import gzip
import importlib.util
import json
import random
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from tokenfst import TokenAutomaton, Vocabulary, allocate_token_bitmask, compile, json_schema
from tokenfst.decoding.matchers.reach_matcher import start_matcher
from tokenfst.errors import TokenfstError, TokenLimitError

ROOT = Path(__file__).resolve().parents[3]
SCHEMAS = ROOT.parent / "shared" / "maskbench" / "dev.jsonl.gz"
SMALL_MODEL = ROOT / "examples" / "small_model"
SEED, PADDING = 3, 40
Row = npt.NDArray[np.int32]


class World(NamedTuple):
    """A vocabulary, and the tokenizer of transformers that it is of, where there is one."""

    vocabulary: Vocabulary
    tokenizer: Any

    @property
    def width(self) -> int:
        return len(self.vocabulary)

    @property
    def end(self) -> int:
        return self.vocabulary.eos_token_ids[0]


class Trace(NamedTuple):
    """What was asked for, the tokens that a model wrote, and how many it could have written."""

    name: str
    schema: str
    tokens: list[int]
    most: int | None


class Walk(Protocol):
    """A request that is being decoded."""

    def mask(self) -> Row:
        """The mask of the next token."""

    def accept(self, token: int) -> bool:
        """Take a token."""


def world() -> World:
    """The small model's tokenizer; where transformers is missing, bytes and a few words."""
    if importlib.util.find_spec("transformers") is None:
        words = [b'{"', b'":', b'": ', b", ", b"true", b"null", b"the", b"12", b"type", b"name"]
        return World(
            Vocabulary([*(bytes([byte]) for byte in range(256)), *words, b"</s>"], [256 + len(words)]), None
        )
    from transformers import PreTrainedTokenizerFast

    tokenizer = PreTrainedTokenizerFast.from_pretrained(SMALL_MODEL, local_files_only=True)
    return World(Vocabulary.from_huggingface(tokenizer, size=len(tokenizer) + PADDING), tokenizer)


def traces(known: World, schemas: int) -> Iterator[Trace]:
    """A document of each of so many schemas, the same every time."""
    with gzip.open(SCHEMAS, "rt") as lines:
        rows = [json.loads(line) for line in lines]
    random.Random(SEED).shuffle(rows)
    for number, row in enumerate(rows[:schemas]):
        documents = [test["data"] for test in row["tests"] if test["valid"]] or [
            test["data"] for test in row["tests"]
        ]
        if documents:
            text = json.dumps(
                documents[0], ensure_ascii=False, separators=(", ", ": ") if number % 3 else (",", ":")
            )
            tokens = [*known.vocabulary.encode_greedy(text.encode()), known.end]
            most = len(tokens) + number % 5 if number % 2 else None
            yield Trace(row["id"], json.dumps(row["schema"]), tokens, most)


class Plain:
    """The library's own matcher."""

    def __init__(self, known: World, automaton: TokenAutomaton, most: int | None) -> None:
        try:
            self._matcher: Any = automaton.matcher(most)
        except TokenLimitError:
            self._matcher = start_matcher(automaton, most)
        self._row = allocate_token_bitmask(1, known.width)

    def mask(self) -> Row:
        self._matcher.fill_next_token_bitmask(self._row, 0)
        return self._row[0].copy()

    def accept(self, token: int) -> bool:
        return self._matcher.accept_token(token)


class VLLM:
    """The grammar of vLLM's structured outputs."""

    def __init__(self, known: World, trace: Trace, most: int | None) -> None:
        import torch
        from vllm.v1.structured_output.backend_types import StructuredOutputOptions

        from tokenfst.decoding.engines import vllm_backend

        backend = _kept(
            "vllm",
            lambda: vllm_backend.TokenfstBackend(
                vllm_config=None, tokenizer=known.tokenizer, vocab_size=known.width
            ),
        )
        asked = vllm_backend._request(StructuredOutputOptions.JSON, trace.schema)
        self._grammar = backend._grammar(asked, {known.end}, most)
        self._rows = torch.zeros((2, -(-known.width // 32)), dtype=torch.int32)

    def mask(self) -> Row:
        self._grammar.fill_bitmask(self._rows, 1)
        return self._rows[1].numpy().copy()

    def accept(self, token: int) -> bool:
        checked = self._grammar.validate_tokens([token]) == [token]
        assert self._grammar.accept_tokens("r", [token]) == checked
        return bool(checked)


class SGLang:
    """The grammar of SGLang's backend."""

    def __init__(self, known: World, trace: Trace, most: int | None) -> None:
        from sglang.srt.constrained.base_grammar_backend import GrammarRow, InvalidGrammarObject

        from tokenfst.decoding.engines.sglang_backend import TokenfstGrammarBackend

        backend = _kept("sglang", lambda: TokenfstGrammarBackend(known.tokenizer, known.width, {known.end}))
        self._grammar = backend.dispatch_json(trace.schema)
        if isinstance(self._grammar, InvalidGrammarObject):
            raise TokenfstError(self._grammar.error_message)
        self._grammar.begin((), most)
        self._rows = self._grammar.allocate_vocab_mask(known.width, 3, "cpu")
        self._entries = [GrammarRow(row=2, grammar=self._grammar)]

    def mask(self) -> Row:
        self._grammar.fill_vocab_mask_batched(self._entries, self._rows)
        return self._rows[2].numpy().copy()

    def accept(self, token: int) -> bool:
        try:
            self._grammar.accept_token(token)
        except ValueError:
            return False
        return True


class Processor(ABC):
    """A processor of logits: its masks are read off the logits, its tokens come with the ids."""

    PROMPT = (1, 2)

    def __init__(self, known: World) -> None:
        self._width = known.width
        self._ids = [*self.PROMPT]
        self._last: Row | None = None

    @abstractmethod
    def processed(self, ids: list[int]) -> Any:
        """The logits, all of which were 0."""

    def mask(self) -> Row:
        allowed = np.asarray(self.processed(self._ids)) == 0
        bits = np.zeros(-(-self._width // 32) * 32, np.uint8)
        bits[: self._width] = allowed[: self._width]
        self._last = np.packbits(bits, bitorder="little").view(np.int32)
        return self._last

    def accept(self, token: int) -> bool:
        assert self._last is not None
        self._ids.append(token)
        return bool(self._last[token // 32] >> (token % 32) & 1)


class Transformers(Processor):
    """``ConstraintLogitsProcessor`` in a loop of ``generate``'s shape."""

    def __init__(self, known: World, trace: Trace, most: int | None) -> None:
        from tokenfst import ConstraintLogitsProcessor

        super().__init__(known)
        automaton = compile(json_schema(trace.schema), known.vocabulary)
        self._processor = ConstraintLogitsProcessor(automaton, max_new_tokens=most)
        self._processor.reset(len(self.PROMPT))

    def processed(self, ids: list[int]) -> Any:
        import torch

        return self._processor(torch.tensor([ids]), torch.zeros((1, self._width)))[0]  # type: ignore[arg-type]


class LlamaCpp(Processor):
    """``LlamaConstraint`` as llama-cpp-python calls it."""

    def __init__(self, known: World, trace: Trace, most: int | None) -> None:
        from tokenfst.decoding.engines.llama_cpp import LlamaConstraint

        super().__init__(known)
        self._constraint = LlamaConstraint(compile(json_schema(trace.schema), known.vocabulary), most)

    def processed(self, ids: list[int]) -> Any:
        return self._constraint(np.array(ids, np.intc), np.zeros(self._width, np.single))


class MLX(Processor):
    """``MLXConstraint`` as mlx_lm's loops call it."""

    def __init__(self, known: World, trace: Trace, most: int | None) -> None:
        from tokenfst.decoding.engines.mlx import MLXConstraint

        super().__init__(known)
        self._constraint = MLXConstraint(compile(json_schema(trace.schema), known.vocabulary), most)

    def processed(self, ids: list[int]) -> Any:
        import mlx.core as mx

        found = self._constraint(mx.array(ids), mx.zeros((1, self._width), mx.bfloat16))
        return np.array(found[0].astype(mx.float32))


class OnnxGenAI(Processor):
    """``GenAIConstraint`` with a generator whose logits are 0."""

    def __init__(self, known: World, trace: Trace, most: int | None) -> None:
        from tokenfst.decoding.engines.onnx_genai import GenAIConstraint

        super().__init__(known)
        self._constraint = GenAIConstraint(compile(json_schema(trace.schema), known.vocabulary), most)

    def processed(self, ids: list[int]) -> Any:
        self._ids, self._logits = ids, np.zeros((1, 1, self._width), np.float32)
        self._constraint.mask(self)
        return self._logits[0, 0]

    def get_logits(self) -> Any:
        return self._logits

    def get_sequence(self, row: int) -> Any:
        return np.array(self._ids, np.int32)

    def set_logits(self, logits: Any) -> None:
        self._logits = logits


class TensorRT(Processor):
    """``TensorRTConstraint`` as TensorRT-LLM calls it."""

    def __init__(self, known: World, trace: Trace, most: int | None) -> None:
        from tokenfst.decoding.engines.tensorrt_llm import TensorRTConstraint

        super().__init__(known)
        self._constraint = TensorRTConstraint(compile(json_schema(trace.schema), known.vocabulary), most)

    def processed(self, ids: list[int]) -> Any:
        import torch

        logits = torch.zeros((1, 1, self._width), dtype=torch.bfloat16)
        self._constraint(7, logits, [ids], None, None)
        return logits[0, 0].float()


class CompatXgrammar:
    """The drop-in module for xgrammar. It has no budgets."""

    def __init__(self, known: World, trace: Trace, most: int | None) -> None:
        from tokenfst.compat import xgrammar

        compiler = _kept(
            "xgrammar",
            lambda: xgrammar.GrammarCompiler(xgrammar.TokenizerInfo.from_vocabulary(known.vocabulary)),
        )
        try:
            self._matcher = xgrammar.GrammarMatcher(
                compiler.compile_json_schema(trace.schema, strict_mode=False),
                terminate_without_stop_token=False,
            )
        except RuntimeError as error:
            raise TokenfstError(str(error)) from error
        self._rows = xgrammar.allocate_token_bitmask(1, known.width)

    def mask(self) -> Row:
        self._matcher.fill_next_token_bitmask(self._rows, 0)
        return self._rows[0].numpy().copy()

    def accept(self, token: int) -> bool:
        return self._matcher.accept_token(token)


class CompatLlguidance:
    """The drop-in module for llguidance. It has no budgets, and stops where nothing but the end may come."""

    def __init__(self, known: World, trace: Trace, most: int | None) -> None:
        from tokenfst.compat import llguidance

        tokenizer = _kept("llguidance", lambda: llguidance.LLTokenizer(known.vocabulary))
        self._matcher = llguidance.LLMatcher(
            tokenizer, llguidance.LLMatcher.grammar_from_json_schema(trace.schema)
        )
        if self._matcher.is_error():
            raise TokenfstError(self._matcher.get_error())

    def mask(self) -> Row:
        return np.frombuffer(self._matcher.compute_bitmask(), np.int32)

    def accept(self, token: int) -> bool:
        return self._matcher.try_consume_tokens([token]) == 1


class Adapter(NamedTuple):
    """``needs``: the packages without which it cannot run. ``budgets``: of which automata it is asked for budgets.
    ``whitespace``: what it allows in JSON without being told.
    """

    start: Callable[[World, Trace, int | None], Walk]
    needs: tuple[str, ...]
    budgets: Literal["all", "finite", "none"]
    whitespace: str = "flexible"

    def missing(self) -> str | None:
        """The first package that is not here."""
        return next((name for name in self.needs if importlib.util.find_spec(name) is None), None)


ADAPTERS = {
    "vLLM": Adapter(VLLM, ("vllm",), "all"),
    "SGLang": Adapter(SGLang, ("sglang",), "all"),
    "transformers": Adapter(Transformers, ("transformers", "torch"), "finite"),
    "llama.cpp": Adapter(LlamaCpp, ("llama_cpp",), "finite"),
    "MLX-LM": Adapter(MLX, ("mlx",), "finite"),
    "ONNX Runtime GenAI": Adapter(OnnxGenAI, ("onnxruntime_genai",), "finite"),
    "TensorRT-LLM": Adapter(TensorRT, ("torch",), "finite"),
    "compat.xgrammar": Adapter(CompatXgrammar, ("torch",), "none", r"[ \n\t\r]*"),
    "compat.llguidance": Adapter(CompatLlguidance, ("numpy",), "none", r"[ \n\t\r]*"),
}
_made: dict[str, Any] = {}


def _kept(name: str, make: Callable[[], Any]) -> Any:
    if name not in _made:
        _made[name] = make()
    return _made[name]


def replay(known: World, adapter: Adapter, trace: Trace) -> int | None:
    """How many masks were compared; None where both refuse the request. AssertionError where they differ."""
    try:
        automaton = compile(json_schema(trace.schema, whitespace=adapter.whitespace), known.vocabulary)
        budgets = adapter.budgets == "all" or (adapter.budgets == "finite" and not automaton.is_pushdown)
        most = trace.most if budgets else None
        plain: Walk | None = Plain(known, automaton, most)
    except TokenfstError:
        plain, most = None, trace.most if adapter.budgets == "all" else None
    try:
        theirs: Walk | None = adapter.start(known, trace, most)
    except TokenfstError:
        theirs = None
    assert (plain is None) == (theirs is None), f"{trace.name}: only one of them refuses it"
    if plain is None or theirs is None:
        return None
    for place, token in enumerate(trace.tokens):
        ours, other = plain.mask(), theirs.mask()
        assert np.array_equal(ours, other), f"{trace.name}: masks differ before token {place}"
        taken = plain.accept(token)
        assert theirs.accept(token) == taken, f"{trace.name}: token {place} is taken by one only"
        if not taken:
            return place + 1
    return len(trace.tokens)


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--schemas", type=int, default=200)
    options = parser.parse_args(arguments)
    known = world()
    asked = list(traces(known, options.schemas))
    for name, adapter in ADAPTERS.items():
        if missing := adapter.missing():
            print(f"{name:20} not here: {missing} is not installed")
            continue
        found = [replay(known, adapter, trace) for trace in asked]
        masks = [number for number in found if number is not None]
        print(
            f"{name:20} {len(masks)} traces, {sum(masks):,} masks equal, {found.count(None)} refused by both",
            flush=True,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
