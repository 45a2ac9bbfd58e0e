"""ONNX Runtime GenAI itself, on the CPU, with a tiny ONNX model made here (``make test-genai``)."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from support.engines import tiny_onnx
from support.engines.serving import tiny_byte_pairs

from tokenfst import Generator, Vocabulary, WeightedLanguage, compile, gbnf, regex
from tokenfst.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DecodingError,
    EmptyLanguageError,
    LogitsError,
    MatcherError,
    ModelError,
    TokenLimitError,
    VocabularyError,
    VocabularyMismatchError,
)

genai = pytest.importorskip(
    "onnxruntime_genai", reason="ONNX Runtime GenAI has an environment of its own: make test-genai"
)
pytest.importorskip("onnx")
engine = pytest.importorskip("tokenfst.decoding.engines.onnx_genai")
PADDING, PAD = 40, 9
PATTERNS = [r"[0-9]{3}-[a-f]{2,6}", "(the|é)( a)*12", "x{3,9}", ""]
GRAMMAR = gbnf('root ::= "(" root ")" | [a-d]+')


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    made = tmp_path_factory.mktemp("genai")
    tokenizer = tiny_byte_pairs()
    tokenizer.save(str(made / "tokenizer.json"))
    (made / "tokenizer_config.json").write_text(
        json.dumps({"tokenizer_class": "PreTrainedTokenizerFast", "bos_token": "<s>", "eos_token": "</s>"})
    )
    tiny_onnx.write_model(made, tokenizer.get_vocab_size() + PADDING, [1, 0], PAD)
    return made


@pytest.fixture(scope="module")
def model(folder) -> Any:
    return genai.Model(str(folder))


@pytest.fixture(scope="module")
def vocabulary(folder) -> Vocabulary:
    return engine.genai_vocabulary(folder)


def started(model: Any, prompts: list[list[int]], **options: Any) -> Any:
    """A generator that has read its prompts."""
    params = genai.GeneratorParams(model)
    params.set_search_options(batch_size=len(prompts), **options)
    generator = genai.Generator(model, params)
    generator.append_tokens(np.array(prompts, np.int32))
    return generator


def test_the_vocabulary_is_the_tokenizers(model, folder, vocabulary, tmp_path):
    assert vocabulary.eos_token_ids == (0, 1)
    tokenizer = genai.Tokenizer(model)
    for text in ("the model 12", "Zürich 東京", '{"a": true}'):
        ids = tokenizer.encode(text)
        assert vocabulary.decode(ids.tolist()).decode() == text
    (tmp_path / "genai_config.json").write_text('{"model": {}}')
    with pytest.raises(VocabularyError, match=r"genai_config\.json"):
        engine.genai_vocabulary(tmp_path)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("pattern", PATTERNS)
def test_texts_are_in_the_language(model, vocabulary, pattern, sampled):
    automaton = compile(regex(pattern), vocabulary)
    least = automaton.distance()
    for most in (max(least, 1), least + 1, 14):
        tokens = list(
            engine.genai_generate(model, [5, 6, 7], automaton, most, do_sample=sampled, random_seed=most)
        )
        assert len(tokens) <= most
        assert re.fullmatch(pattern, vocabulary.decode(tokens).decode()), tokens


def test_texts_of_a_grammar_within_exact_budgets(model, vocabulary):
    automaton = compile(GRAMMAR, vocabulary)
    for most in (1, 2, 3, 4, 30):
        tokens = list(engine.genai_generate(model, [5], automaton, most, do_sample=True, random_seed=3))
        assert GRAMMAR.accepts(vocabulary.decode(tokens))


def test_batches_have_an_automaton_for_each_prompt(model, vocabulary):
    patterns = [*PATTERNS[:3], "(yes|no)"]
    automata = [compile(regex(each), vocabulary) for each in patterns]
    for seed in range(3):
        generator = started(
            model,
            [[5 + row, 6, 7] for row in range(4)],
            do_sample=True,
            random_seed=seed,
            max_length=3 + 12,
        )
        constraint = engine.GenAIConstraint(automata, 12)
        while not generator.is_done():
            constraint.mask(generator)
            generator.generate_next_token()
        for row, pattern in enumerate(patterns):
            tokens = generator.get_sequence(row)[3:].tolist()
            end = next((place for place, token in enumerate(tokens) if token in (0, 1)), len(tokens))
            assert re.fullmatch(pattern, vocabulary.decode(tokens[:end]).decode()), tokens


def test_rewinding_takes_tokens_back(model, vocabulary):
    ids = {letter: vocabulary.tokens.index(letter.encode()) for letter in "abcde"}
    constraint = engine.GenAIConstraint(compile(regex("abc|ade"), vocabulary), 4)
    generator = started(model, [[5, 6, 7]], max_length=20)

    def allowed() -> set[bytes]:
        constraint.mask(generator)
        found = np.flatnonzero(np.isfinite(generator.get_logits()[0, 0]))
        return {vocabulary.tokens[token] for token in found.tolist() if token not in (0, 1)}

    first = allowed()
    generator.append_tokens([ids["a"]])
    assert b"a" in first and b"b" in allowed()
    generator.append_tokens([ids["b"]])
    assert allowed() == {b"c"}
    generator.rewind_to(3)
    generator.append_tokens([ids["a"]])
    generator.append_tokens([ids["d"]])
    assert allowed() == {b"e"}
    generator.rewind_to(3)
    generator.append_tokens([ids["b"]])
    with pytest.raises(LogitsError, match="does not allow"):
        constraint.mask(generator)


def test_what_does_not_fit_is_refused(model, vocabulary):
    automaton = compile(regex("a{3}"), vocabulary)
    with pytest.raises(TokenLimitError, match="least number"):
        engine.genai_generate(model, [5], automaton, 0)
    with pytest.raises(EmptyLanguageError):
        engine.GenAIConstraint(compile(regex("[^\\s\\S]"), vocabulary))
    with pytest.raises(ArgumentTypeError, match="automata"):
        engine.GenAIConstraint(regex("a+"))
    with pytest.raises(ArgumentValueError, match="prompt"):
        engine.genai_generate(model, [], automaton, 5)
    with pytest.raises(ModelError, match="Model"):
        engine.genai_generate("model", [5], automaton, 5)
    with pytest.raises(DecodingError, match="num_beams"):
        engine.genai_generate(model, [5], automaton, 5, num_beams=3)
    other = compile(regex("a+"), Vocabulary([b"a"] * 999, 5))
    with pytest.raises(VocabularyMismatchError, match=r"tokenizer\.json"):
        engine.GenAIConstraint(other).mask(started(model, [[5]]))
    with pytest.raises(VocabularyMismatchError, match="row 1"):
        engine.GenAIConstraint([automaton, other])
    with pytest.raises(ModelError, match="num_beams"):
        engine.GenAIConstraint(automaton).mask(started(model, [[5]], num_beams=3))
    with pytest.raises(ModelError, match="each prompt"):
        engine.GenAIConstraint([automaton] * 3).mask(started(model, [[5], [6]]))


def test_two_requests_of_one_constraint_are_told_apart(model, vocabulary):
    constraint = engine.GenAIConstraint(compile(regex("[a-z]{5}"), vocabulary), 9)
    one, other, third = (started(model, [[5, 6]], max_length=20) for _ in range(3))
    for _ in range(3):
        for generator in (one, other):
            constraint.mask(generator)
            generator.generate_next_token()
    assert one.get_sequence(0).tolist() == other.get_sequence(0).tolist()
    constraint.mask(third)
    with pytest.raises(MatcherError, match="one completion"):
        constraint.mask(started(model, [[5, 7]]))


@pytest.mark.parametrize("bad", [-np.inf, np.nan])
def test_logits_without_a_choice_are_refused(model, vocabulary, bad):
    generator = started(model, [[5, 6]])
    generator.set_logits(np.full_like(generator.get_logits(), bad))
    with pytest.raises(LogitsError):
        engine.GenAIConstraint(compile(regex("[a-z]{5}"), vocabulary)).mask(generator)


def test_a_generator_of_typed_answers(model, folder, vocabulary):
    tokenizer = genai.Tokenizer(model)
    generate = Generator(model, tokenizer, vocabulary=vocabulary)
    assert generate("the model", regex("[0-9]{3}"), max_new_tokens=6, do_sample=True).isdigit()
    assert generate("the model", Literal["yes", "no"], max_new_tokens=6) in ("yes", "no")
    texts = generate.batch(["the model", "12"], regex("x{3,9}"), max_new_tokens=12)
    assert all(re.fullmatch("x{3,9}", text) for text in texts)
    assert re.fullmatch("[ab]{4}", "".join(generate.stream("a", regex("[ab]{4}"), max_new_tokens=8)))
    with pytest.raises(TokenLimitError):
        generate("the model", regex("x{50}"), max_new_tokens=2)
    with pytest.raises(DecodingError, match="num_beams"):
        generate("the model", regex("x"), max_new_tokens=2, num_beams=2)
    with pytest.raises(ModelError, match="genai_vocabulary"):
        Generator(model, tokenizer)
    with pytest.raises(ModelError, match="no tokens"):
        generate("", regex("x"), max_new_tokens=2)
    with pytest.raises(ModelError, match="a chat"):
        generate([{"role": "user", "content": "hi"}], regex("x"), max_new_tokens=2)


def test_scores_are_added(model, vocabulary):
    """With a weight that outdoes the model, the text is the likeliest one of the weighted language."""
    automaton = compile(regex("[a-d]{4}"), vocabulary)
    language = WeightedLanguage.alternatives({"abcd": 1, "dcba": 1000, "bbbb": 10}).normalized()
    scores = compile(language, vocabulary)
    generator = Generator(model, genai.Tokenizer(model), vocabulary=vocabulary)
    for weight, texts in ((50.0, [b"dcba"]), (0.0, [b"abcd", b"dcba", b"bbbb"]), (-50.0, [b"abcd"])):
        tokens = engine.genai_generate(
            model, [5, 6, 7], automaton, 8, do_sample=True, random_seed=3, scores=scores, scores_weight=weight
        )
        assert vocabulary.decode(list(tokens)) in texts
        given = {"scores": language, "scores_weight": weight, "max_new_tokens": 8, "do_sample": True}
        assert generator("the", regex("[a-d]{4}"), **given).encode() in texts
    with pytest.raises(DecodingError, match="scores must be"):
        generator("the", regex("a"), max_new_tokens=8, scores="abcd")
