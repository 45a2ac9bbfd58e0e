"""The adapters to TensorRT-LLM on the shapes that its sources give. The engine itself needs CUDA and was not run."""

from __future__ import annotations

import enum
import inspect
import json
import pickle
import re
import sys
import types
from abc import ABC
from typing import Any, NamedTuple

import numpy as np
import pytest
from support.engines.serving import tiny_byte_pairs

from tokenfst import Vocabulary, compile, gbnf, json_schema, regex
from tokenfst.errors import (
    ArgumentTypeError,
    BudgetExceeded,
    ConstraintError,
    DecodingError,
    EmptyLanguageError,
    LogitsError,
    MatcherError,
    TokenLimitError,
    VocabularyError,
    VocabularyMismatchError,
)

torch = pytest.importorskip("torch")
engine = pytest.importorskip("tokenfst.decoding.engines.tensorrt_llm")
PROMPT, PADDING = [3, 4, 5], 40


@pytest.fixture(scope="module")
def specification() -> str:
    return tiny_byte_pairs().to_str()


@pytest.fixture(scope="module")
def vocabulary(specification) -> Vocabulary:
    from tokenfst.tokenizers.adapters.huggingface import from_specification

    return from_specification(json.loads(specification), eos_token_id=1)


class Requests:
    """The engine's loop: greedy over fixed random logits, the end token ends a request."""

    def __init__(self, processor: Any, vocabulary: Vocabulary, dtype: Any, batched: bool) -> None:
        assert 4 <= len(inspect.signature(processor).parameters) <= 5  # as the engine looks at it
        self._processor, self._vocabulary = processor, vocabulary
        self._dtype, self._batched = dtype, batched
        self._draw = torch.Generator().manual_seed(0)

    def run(self, prompts: dict[int, list[int]], most: int) -> dict[int, str]:
        """Texts by request; the prompts are shown twice, as chunks of them are."""
        rows = {request: list(ids) for request, ids in prompts.items()}
        going, found = list(rows), {}
        self._step(going, rows)
        while going:
            for request, token in zip(going, self._step(going, rows), strict=True):
                rows[request].append(token)
            for request in list(going):
                text = rows[request][len(prompts[request]) :]
                if text[-1] in self._vocabulary.eos_token_ids or len(text) == most:
                    tokens = [token for token in text if token not in self._vocabulary.eos_token_ids]
                    found[request] = self._vocabulary.decode(tokens).decode()
                    going.remove(request)
        return found

    def _step(self, going: list[int], rows: dict[int, list[int]]) -> list[int]:
        width = len(self._vocabulary) + PADDING
        whole = torch.randn((len(going), width), generator=self._draw).to(self._dtype)
        logits = [whole[row : row + 1].view(1, 1, -1) for row in range(len(going))]
        ids = [[list(rows[request])] for request in going]
        if self._batched:
            self._processor(going, logits, ids, None, [None] * len(going))
        else:
            for each in zip(going, logits, ids, strict=True):
                self._processor(*each, None, None)
        return whole.argmax(1).tolist()  # the views were changed in place


@pytest.mark.parametrize("batched", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_requests_of_one_processor_have_texts_of_their_own(vocabulary, batched, dtype):
    kind = engine.BatchedTensorRTConstraint if batched else engine.TensorRTConstraint
    pattern = "[0-9]{3}-[a-f]{2,6}"
    automaton = compile(regex(pattern), vocabulary)
    for most in (automaton.distance(), 9, 14):
        processor = pickle.loads(pickle.dumps(kind(automaton, most)))
        prompts = {request: [3 + request, 4][: 1 + request % 2] for request in range(1, 9)}
        found = Requests(processor, vocabulary, dtype, batched).run(prompts, most)
        assert all(re.fullmatch(pattern, text) for text in found.values()), found
        assert len(set(found.values())) > 4


def test_a_processor_pickles_in_the_middle(vocabulary):
    processor = engine.TensorRTConstraint(compile(regex("abc"), vocabulary))
    a, b = (vocabulary.tokens.index(letter) for letter in (b"a", b"b"))
    logits = torch.zeros(1, 1, len(vocabulary))
    processor(1, logits.clone(), [PROMPT], None, None)
    processor(1, logits.clone(), [[*PROMPT, a]], None, None)
    copied = pickle.loads(pickle.dumps(processor))
    copied(1, logits, [[*PROMPT, a, b]], None, None)
    allowed = np.flatnonzero(logits[0, 0].numpy() == 0).tolist()
    assert [vocabulary.tokens[token] for token in allowed] == [b"c"]


def test_what_does_not_fit_is_refused(vocabulary):
    automaton = compile(regex("a{3}"), vocabulary)
    logits = torch.zeros(1, 1, len(vocabulary))
    with pytest.raises(TokenLimitError, match="least number"):
        engine.TensorRTConstraint(automaton, 1)
    with pytest.raises(EmptyLanguageError):
        engine.TensorRTConstraint(compile(regex("[^\\s\\S]"), vocabulary))
    with pytest.raises(ArgumentTypeError, match="automaton"):
        engine.BatchedTensorRTConstraint(regex("a+"))
    processor = engine.TensorRTConstraint(automaton)
    with pytest.raises(VocabularyMismatchError, match="own tokenizer"):
        processor(1, torch.zeros(1, 1, 9), [PROMPT], None, None)
    with pytest.raises(DecodingError, match="2 beams"):
        processor(2, logits.expand(2, 1, -1), [PROMPT, PROMPT], None, None)
    with pytest.raises(DecodingError, match="one row"):
        processor(3, torch.zeros(2, 1, len(vocabulary)), [PROMPT], None, None)
    with pytest.raises(LogitsError, match="-inf"):
        processor(4, torch.full_like(logits, -torch.inf), [PROMPT], None, None)
    processor(5, logits.clone(), [PROMPT], None, None)
    with pytest.raises(MatcherError, match="another"):
        processor(5, logits.clone(), [PROMPT[:1]], None, None)


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [(b"b", "the constraint does not allow"), (b"aa", "serves one completion")],
)
def test_a_request_whose_matcher_raises_ends_alone(vocabulary, caplog, wrong, reason):
    """The engine's step is shared, so the error is logged and the other request of the same call goes on."""
    processor = engine.BatchedTensorRTConstraint(compile(regex("a{3}"), vocabulary))
    a = vocabulary.tokens.index(b"a")
    tokens = [vocabulary.tokens.index(bytes([byte])) for byte in wrong]
    processor([1, 2], [torch.zeros(1, 1, len(vocabulary)) for _ in range(2)], [[PROMPT], [PROMPT]], None, [])
    for text in (tokens, [*tokens, vocabulary.eos_token_ids[0]]):
        logits = [torch.zeros(1, 1, len(vocabulary)) for _ in range(2)]
        processor([1, 2], logits, [[[*PROMPT, *text]], [[*PROMPT, a]]], None, [])
        allowed = [np.flatnonzero(each[0, 0].numpy() == 0).tolist() for each in logits]
        assert allowed[0] == list(vocabulary.eos_token_ids)
        assert a in allowed[1]
    assert [reason in record.message for record in caplog.records] == [True]


def test_a_request_that_comes_back_too_late_is_refused(vocabulary, monkeypatch):
    monkeypatch.setattr(engine, "KEPT", 3)
    processor = engine.TensorRTConstraint(compile(regex("a+"), vocabulary))
    for request in (10, 11, 12, 10, 13):
        processor(request, torch.zeros(1, 1, len(vocabulary)), [PROMPT], None, None)
    with pytest.raises(MatcherError, match="11"):
        processor(11, torch.zeros(1, 1, len(vocabulary)), [[*PROMPT, 70]], None, None)
    processor(10, torch.zeros(1, 1, len(vocabulary)), [PROMPT], None, None)


class GuideType(enum.Enum):
    JSON = 0
    JSON_SCHEMA = 1
    REGEX = 2
    EBNF_GRAMMAR = 3
    STRUCTURAL_TAG = 4
    OTHER = 5


class Params(NamedTuple):
    """``GuidedDecodingParams`` of the executor."""

    guide_type: GuideType
    guide: str | None = None


class Config(NamedTuple):
    """``GuidedDecodingConfig``."""

    tokenizer_str: str | None
    stop_token_ids: list[int] | None


@pytest.fixture
def factory(specification, vocabulary) -> Any:
    return engine.TensorRTMatcherFactory(Config(specification, [1]), len(vocabulary) + PADDING, 2)


TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<a>",
        "content": {"type": "regex", "pattern": "[0-9]"},
        "end": "</a>",
    },
}


@pytest.mark.parametrize(
    ("guide", "constraint", "text"),
    [
        (Params(GuideType.JSON), json_schema({"type": "object"}), '{"a": [1]}'),
        (Params(GuideType.JSON_SCHEMA, '{"enum": [12, "b"]}'), json_schema({"enum": [12, "b"]}), '"b"'),
        (Params(GuideType.REGEX, "a+b"), regex("a+b"), "aab"),
        (
            Params(GuideType.EBNF_GRAMMAR, 'root ::= "(" root ")" | "x"'),
            gbnf('root ::= "(" root ")" | "x"'),
            "((x))",
        ),
        (Params(GuideType.STRUCTURAL_TAG, json.dumps(TAG)), regex("<a>[0-9]</a>"), "<a>7</a>"),
    ],
)
def test_matchers_of_guided_decoding(factory, vocabulary, guide, constraint, text):
    """As the engine drives them: masks into rows of a host tensor, drafts accepted and taken back."""
    matcher, plain = factory.create(guide), compile(constraint, vocabulary).matcher()
    width = len(vocabulary) + PADDING
    rows = torch.zeros((4, -(-width // 32)), dtype=torch.int32)
    wanted = np.zeros((1, -(-len(vocabulary) // 32)), np.int32)
    for token in [*vocabulary.encode_greedy(text.encode()), 1]:
        matcher.fill_next_token_bitmask(rows, 2)
        plain.fill_next_token_bitmask(wanted, 0)
        assert np.array_equal(rows[2].numpy()[: wanted.shape[1]], wanted[0])
        assert not rows[2].numpy()[wanted.shape[1] :].any()
        assert not matcher.accept_token(width - 1) and not matcher.is_terminated()
        assert matcher.accept_token(token)
        matcher.rollback(1)
        assert not matcher.is_terminated() and matcher.accept_token(token) and plain.accept_token(token)
    assert matcher.is_terminated() and not matcher.accept_token(1)


def test_guides_that_cannot_be_are_refused(factory, specification, vocabulary):
    with pytest.raises(ConstraintError, match="JSON_SCHEMA"):
        factory.create(Params(GuideType.OTHER, "x"))
    with pytest.raises(ConstraintError, match="type"):
        factory.create(Params(GuideType.JSON_SCHEMA, '{"type": "nothing"}'))
    with pytest.raises(EmptyLanguageError):
        factory.create(Params(GuideType.JSON_SCHEMA, '{"allOf": [{"enum": [1]}, {"enum": [2]}]}'))
    with pytest.raises(BudgetExceeded):
        factory.create(Params(GuideType.REGEX, "((a{1,999}b){1,999}c){1,999}"))
    with pytest.raises(VocabularyError, match="tokenizer_str"):
        engine.TensorRTMatcherFactory(Config(None, [1]), len(vocabulary))
    with pytest.raises(VocabularyError):
        engine.TensorRTMatcherFactory(Config(specification, None), len(vocabulary)).create(
            Params(GuideType.REGEX, "a")
        )


def test_the_factory_takes_the_place_of_xgrammars(monkeypatch):
    """The modules that its sources have, and the names that they import from each other."""
    package = "tensorrt_llm._torch.pyexecutor"
    matchers = types.ModuleType(f"{package}.grammar_matcher")
    matchers.GrammarMatcher = type("GrammarMatcher", (ABC,), {})
    matchers.GrammarMatcherFactory = type("GrammarMatcherFactory", (ABC,), {})
    decoder = types.ModuleType(f"{package}.guided_decoder")
    decoder.XGrammarMatcherFactory = object
    room = types.ModuleType(package)
    room.grammar_matcher, room.guided_decoder = matchers, decoder
    for name in ("tensorrt_llm", "tensorrt_llm._torch"):
        monkeypatch.setitem(sys.modules, name, types.ModuleType(name))
    for module in (room, matchers, decoder):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    engine.install_matchers()
    assert decoder.XGrammarMatcherFactory is engine.TensorRTMatcherFactory
    assert issubclass(engine.TensorRTMatcher, matchers.GrammarMatcher)
    assert issubclass(engine.TensorRTMatcherFactory, matchers.GrammarMatcherFactory)
