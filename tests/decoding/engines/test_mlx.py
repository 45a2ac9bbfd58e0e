"""MLX-LM itself, on the CPU, with tiny random Llamas (``make test-mlx``)."""

from __future__ import annotations

import re
from typing import Any, Literal

import numpy as np
import pydantic
import pytest
from support.engines.serving import tiny_tokenizer

from tokenfst import (
    Generator,
    Vocabulary,
    WeightedLanguage,
    apply_token_bitmask_inplace,
    compile,
    gbnf,
    regex,
)
from tokenfst.errors import (
    ArgumentTypeError,
    DecodingError,
    EmptyLanguageError,
    LogitsError,
    MaskBufferError,
    MatcherError,
    ModelError,
    TokenLimitError,
    VocabularyMismatchError,
)

mx = pytest.importorskip("mlx.core", reason="MLX has an environment of its own: make test-mlx")
mlx_lm = pytest.importorskip("mlx_lm")
llama = pytest.importorskip("mlx_lm.models.llama")
loops = pytest.importorskip("mlx_lm.generate")
engine = pytest.importorskip("tokenfst.decoding.engines.mlx")
PADDING = 40
PATTERNS = [r"[0-9]{3}-[a-f]{2,6}", "(the|é)( a)*12", "x{3,9}", ""]


class Person(pydantic.BaseModel, extra="forbid"):
    active: bool
    age: Literal[1, 22]


@pytest.fixture(scope="module")
def tokenizer() -> Any:
    return mlx_lm.tokenizer_utils.TokenizerWrapper(tiny_tokenizer())


@pytest.fixture(scope="module")
def vocabulary(tokenizer) -> Vocabulary:
    return engine.mlx_vocabulary(tokenizer)


def tiny_llama(seed: int, width: int, dtype: Any = mx.bfloat16) -> Any:
    """A model whose logits are wider than the tokenizer."""
    mx.random.seed(seed)
    model = llama.Model(
        llama.ModelArgs(
            model_type="llama",
            hidden_size=32,
            num_hidden_layers=1,
            intermediate_size=64,
            num_attention_heads=2,
            rms_norm_eps=1e-5,
            vocab_size=width,
        )
    )
    model.set_dtype(dtype)
    return model


@pytest.fixture(scope="module")
def model(vocabulary) -> Any:
    return tiny_llama(0, len(vocabulary) + PADDING)


@pytest.fixture
def sampler() -> Any:
    mx.random.seed(5)
    return mlx_lm.sample_utils.make_sampler(temp=1.0)


def test_the_vocabulary_is_the_tokenizers(tokenizer, vocabulary):
    assert vocabulary.eos_token_ids == (tokenizer.eos_token_id,)
    for text in ("the model 12", "Zürich 東京", '{"a": true}'):
        ids = tokenizer.encode(text)
        assert vocabulary.decode(ids).decode() == text == tokenizer.decode(ids)
    several = mlx_lm.tokenizer_utils.TokenizerWrapper(tiny_tokenizer(), eos_token_ids=[0, 7])
    assert engine.mlx_vocabulary(several).eos_token_ids == (0, 1, 7)


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("width", [0, 1, 31, 200])
def test_the_mask_is_the_one_of_the_cpu(vocabulary, dtype, width):
    size = len(vocabulary) + width
    logits = mx.random.normal((1, size)).astype(getattr(mx, dtype))
    automaton = compile(regex("[0-9]+|the [a-z]+"), vocabulary)
    found = engine.MLXConstraint(automaton)(mx.array([4, 5, 6]), logits)
    assert found.dtype == logits.dtype and found.shape == logits.shape
    mask = np.zeros((1, -(-len(vocabulary) // 32)), np.int32)
    automaton.matcher().fill_next_token_bitmask(mask, 0)
    wanted = np.array(logits.astype(mx.float32))
    apply_token_bitmask_inplace(wanted, mask, vocab_size=len(vocabulary))
    assert np.array_equal(np.array(found.astype(mx.float32)), wanted)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_steps_are_in_the_language(model, vocabulary, sampler, pattern):
    automaton = compile(regex(pattern), vocabulary)
    least = automaton.distance()
    for most in (max(least, 1), least + 1, 14):
        tokens = []
        for token, logprobs in loops.generate_step(
            mx.array([5, 6, 7]),
            model,
            max_tokens=most,
            sampler=sampler,
            logits_processors=[engine.MLXConstraint(automaton, most)],
        ):
            assert logprobs.dtype == mx.bfloat16
            if token in vocabulary.eos_token_ids:
                break
            tokens.append(token)
        assert re.fullmatch(pattern, vocabulary.decode(tokens).decode()), tokens


def test_texts_of_generate(model, tokenizer, vocabulary, sampler):
    automaton = compile(gbnf('root ::= "(" root ")" | [a-d]+'), vocabulary)
    for most in (1, 3, 20):
        text = mlx_lm.generate(
            model,
            tokenizer,
            "Say:",
            max_tokens=most,
            sampler=sampler,
            logits_processors=[engine.MLXConstraint(automaton, most)],
        )
        assert re.fullmatch(r"(\(*)[a-d]+(\)*)", text) and text.count("(") == text.count(")"), text


def test_batches_have_a_processor_for_each_sequence(model, tokenizer, vocabulary, sampler):
    patterns = [r"[0-9]{3}-[a-f]{2,6}", "x{3,9}", "(the|é)( a)*12", "(yes|no)"] * 3
    generator = loops.BatchGenerator(
        model,
        stop_tokens=[[tokenizer.eos_token_id]],
        sampler=sampler,
        completion_batch_size=5,
        prefill_batch_size=3,
    )
    names = generator.insert(
        [[5 + row] * (1 + row % 3) for row in range(len(patterns))],
        [12] * len(patterns),
        logits_processors=[[engine.MLXConstraint(compile(regex(each), vocabulary), 12)] for each in patterns],
    )
    texts: dict[int, list[int]] = {name: [] for name in names}
    while responses := generator.next_generated():
        for each in responses:
            texts[each.uid] += [each.token] if each.finish_reason != "stop" else []
    generator.close()
    for name, pattern in zip(names, patterns, strict=True):
        assert re.fullmatch(pattern, vocabulary.decode(texts[name]).decode()), texts[name]


@pytest.mark.parametrize("call", ["accept_token", "fill_next_token_bitmask"])
def test_a_matcher_that_raises_ends_its_sequence_of_a_batch_alone(
    model, tokenizer, vocabulary, sampler, call
):
    automaton = compile(regex("[0-9]{4}"), vocabulary)
    processors = [engine.MLXConstraint(automaton, 6, in_batch=True) for _ in range(4)]

    class Broken:
        def __init__(self, matcher: Any) -> None:
            self._matcher = matcher

        def __getattr__(self, name: str) -> Any:
            if name == call and self._matcher.num_tokens == (0 if call == "accept_token" else 1):
                raise KeyError("a defect")
            return getattr(self._matcher, name)

        def fork(self) -> Broken:
            return Broken(self._matcher.fork())

    texts = processors[2]._texts
    texts._matchers[0] = Broken(texts._matchers[0])
    generator = loops.BatchGenerator(model, stop_tokens=[[tokenizer.eos_token_id]], sampler=sampler)
    names = generator.insert(
        [[5], [6, 7], [8], [9]], [6] * 4, logits_processors=[[each] for each in processors]
    )
    found: dict[int, list[int]] = {name: [] for name in names}
    ends: dict[int, str] = {}
    while responses := generator.next_generated():
        for each in responses:
            found[each.uid] += [each.token] if each.finish_reason != "stop" else []
            ends[each.uid] = each.finish_reason
    generator.close()
    for place, name in enumerate(names):
        assert ends[name] == "stop"
        if place != 2:
            assert re.fullmatch("[0-9]{4}", vocabulary.decode(found[name]).decode())
            processors[place].check()
    assert len(found[names[2]]) <= 1
    with pytest.raises(KeyError, match="a defect"):
        processors[2].check()


def test_one_processor_in_batch_generate_serves_one_sequence(model, tokenizer, vocabulary, sampler):
    automaton = compile(regex("[0-9]{3}"), vocabulary)
    found = loops.batch_generate(
        model,
        tokenizer,
        [[5, 6, 7]],
        max_tokens=6,
        sampler=sampler,
        logits_processors=[engine.MLXConstraint(automaton, 6)],
    )
    assert re.fullmatch("[0-9]{3}", found.texts[0])
    with pytest.raises(MatcherError, match="one completion"):
        loops.batch_generate(
            model,
            tokenizer,
            [[5, 6, 7], [8, 9]],
            max_tokens=6,
            logits_processors=[engine.MLXConstraint(automaton, 6)],
        )


@pytest.mark.parametrize("draft_seed", [0, 1])
def test_speculative_texts(model, tokenizer, vocabulary, sampler, draft_seed):
    automaton = compile(regex("[0-9]{3}-[a-f]{2,30}"), vocabulary)
    draft = tiny_llama(draft_seed, len(vocabulary) + PADDING)
    for most, drafts in ((8, 2), (20, 4), (33, 3)):
        text = mlx_lm.generate(
            model,
            tokenizer,
            [5, 6, 7],
            max_tokens=most,
            sampler=None if draft_seed == 0 else sampler,
            draft_model=draft,
            num_draft_tokens=drafts,
            logits_processors=[engine.MLXConstraint(automaton, most)],
        )
        assert re.fullmatch("[0-9]{3}-[a-f]{2,30}", text), text


def test_speculation_writes_what_the_model_alone_writes(tokenizer, vocabulary):
    """In float32: sums over one token and over several differ in their last bit, and in bfloat16 two logits are often
    that close.
    """
    width = len(vocabulary) + PADDING
    model, draft = (tiny_llama(seed, width, mx.float32) for seed in (0, 1))
    automaton = compile(regex("[0-9a-f]{9,30}"), vocabulary)
    one, other = (
        mlx_lm.generate(
            model,
            tokenizer,
            [5, 6, 7],
            max_tokens=25,
            logits_processors=[engine.MLXConstraint(automaton, 25)],
            **more,
        )
        for more in ({}, {"draft_model": draft})
    )
    assert one == other


def test_the_generator(model, tokenizer, sampler):
    generator = Generator(model, tokenizer)
    least = generator.compile(Person).distance()
    for room in (least, least + 1, 60):
        assert isinstance(generator("record: ", Person, max_new_tokens=room, sampler=sampler), Person)
    with pytest.raises(TokenLimitError, match=str(least)):
        generator("record: ", Person, max_new_tokens=least - 1)
    grammar = gbnf('root ::= "(" root ")" | [a-d]{9}')
    stream = generator.stream("x", grammar, max_new_tokens=20, sampler=sampler)
    pieces = list(stream)
    assert "".join(pieces) == stream.result() and grammar.accepts(stream.text) and len(pieces) > 1
    targets = generator.batch(["a", "b c d", "e"], Person, max_new_tokens=50, sampler=sampler)
    assert len(targets) == 3 and all(isinstance(each, Person) for each in targets)
    chat = [{"role": "user", "content": "hello"}]
    assert generator(chat, Literal["yes", "no"], max_new_tokens=20) in ("yes", "no")
    with generator.stream("x", regex("[a-z]{100}"), max_new_tokens=120) as left:
        next(left)
    with pytest.raises(DecodingError, match="make_sampler"):
        generator("x", Person, temperature=1.0)
    with pytest.raises(ModelError, match=r"mlx_lm\.load"):
        Generator(model)


def test_a_text_asked_about_again_or_taken_back_is_the_same(vocabulary):
    logits = mx.zeros((1, len(vocabulary)))
    processor = engine.MLXConstraint(compile(regex("abc|ade"), vocabulary), 4)
    letters = {letter: vocabulary.tokens.index(letter.encode()) for letter in "abcde"}

    def allowed(text: str) -> set[bytes]:
        ids = mx.array([7, *(letters[each] for each in text)])
        found = np.flatnonzero(np.array(processor(ids, logits))[0] == 0)
        return {vocabulary.tokens[token] for token in found if token not in vocabulary.eos_token_ids}

    first = allowed("")
    assert b"a" in first and allowed("") == first
    assert b"b" in allowed("a") and allowed("ab") == {b"c"} and allowed("abc") == set()
    assert allowed("ad") == {b"e"} and allowed("") == first
    with pytest.raises(LogitsError, match="does not allow"):
        allowed("b")
    with pytest.raises(MatcherError, match="one completion"):
        allowed("abc")
    with pytest.raises(MatcherError, match="one completion"):
        processor(mx.array([8]), logits)


def test_what_does_not_fit_is_refused(model, tokenizer, vocabulary):
    automaton = compile(regex("a{3}"), vocabulary)
    with pytest.raises(TokenLimitError, match="least number"):
        engine.MLXConstraint(automaton, 0)
    with pytest.raises(EmptyLanguageError):
        engine.MLXConstraint(compile(regex("[^\\s\\S]"), vocabulary))
    with pytest.raises(ArgumentTypeError, match="automaton"):
        engine.MLXConstraint(regex("a+"))
    with pytest.raises(VocabularyMismatchError, match="mlx_vocabulary"):
        engine.MLXConstraint(automaton)(mx.array([1]), mx.zeros((1, 99)))
    with pytest.raises(MaskBufferError, match=r"\(2, 700\)"):
        engine.MLXConstraint(automaton)(mx.array([1]), mx.zeros((2, 700)))

    def forbid(tokens: Any, logits: Any) -> Any:
        return mx.full(logits.shape, -mx.inf, logits.dtype)

    with pytest.raises(LogitsError, match="does not allow"):
        mlx_lm.generate(
            model,
            tokenizer,
            "x",
            max_tokens=5,
            logits_processors=[forbid, engine.MLXConstraint(automaton, 5)],
        )


def test_scores_are_added(model, tokenizer, vocabulary, sampler):
    """With a weight that outdoes the model, the text is the likeliest one of the weighted language."""
    automaton = compile(regex("[a-d]{4}"), vocabulary)
    language = WeightedLanguage.alternatives({"abcd": 1, "dcba": 1000, "bbbb": 10}).normalized()
    scores = compile(language, vocabulary)
    generator = Generator(model, tokenizer)
    for weight, texts in ((50.0, ["dcba"]), (0.0, ["abcd", "dcba", "bbbb"]), (-50.0, ["abcd"])):
        found = mlx_lm.generate(
            model, tokenizer, "the", max_tokens=8, sampler=sampler,
            logits_processors=[engine.MLXConstraint(automaton, 8, scores=scores, scores_weight=weight)],
        )  # fmt: skip
        assert found in texts
        given = {"scores": language, "scores_weight": weight, "max_new_tokens": 8, "sampler": sampler}
        assert generator("the", regex("[a-d]{4}"), **given) in texts
        assert set(generator.batch(["the", "a"], regex("[a-d]{4}"), **given)) <= set(texts)
    with pytest.raises(DecodingError, match="scores must be"):
        generator("the", regex("a"), scores="abcd")
