"""Scores in transformers' generate: beside our own loop over a fused model, and beside a constraint."""

from __future__ import annotations

import math
from typing import Any

import pytest

import tokenfst
from reference.transducers.random_arpa import arpa
from tests.support.engines.tiny_gpt2 import tiny_gpt2
from tokenfst import FusedModel, NGramModel, Vocabulary, WeightedLanguage, compile, prefer, regex
from tokenfst.errors import ArgumentValueError, DecodingError, VocabularyMismatchError

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
processors = pytest.importorskip("tokenfst.decoding.search.scores_processor")

PIECES = [b"a", b"b", b"ab", b"c", b"ca", b"", b""]
PAD, END = 5, 6
VOCABULARY = Vocabulary(PIECES, END)
MODEL = NGramModel.from_arpa(arpa(["a", "b", "c"], 3, 2), unit="character")


@pytest.fixture(scope="module")
def gpt2() -> Any:
    return tiny_gpt2(3, 9, end=END, pad=PAD, positions=48, layers=1)


def run(gpt2: Any, prompts: list[list[int]], processor: list[Any], **options: Any) -> list[list[int]]:
    longest = max(map(len, prompts))
    ids = torch.tensor([[PAD] * (longest - len(prompt)) + prompt for prompt in prompts])
    out = gpt2.generate(
        input_ids=ids,
        attention_mask=(ids != PAD).long(),
        logits_processor=processor,
        max_new_tokens=6,
        eos_token_id=END,
        pad_token_id=PAD,
        **options,
    )
    rows = out[:, longest:].tolist()
    return [row[: row.index(END) + 1] if END in row else row for row in rows]


@pytest.mark.parametrize("weight", [1.0, 0.4, -1.0, 20.0])
@pytest.mark.parametrize("order", [1, -1])
def test_as_our_own_loop(gpt2: Any, weight: float, order: int) -> None:
    scores, constraint = compile(MODEL, VOCABULARY), compile(regex("[abc]{2,5}"), VOCABULARY)
    made = [
        processors.ScoresLogitsProcessor(scores, weight),
        tokenfst.ConstraintLogitsProcessor(constraint, max_new_tokens=6),
    ][::order]
    prompts = [[0, 1], [3], [2, 4]]
    own = tokenfst.generate(
        FusedModel(gpt2, scores, weight), prompts, constraint, max_new_tokens=6, jump_forward=False
    )
    for _ in range(2):  # a processor serves prompt after prompt
        assert run(gpt2, prompts, made) == [list(each.tokens) for each in own]


@pytest.mark.parametrize(
    "options", [{"do_sample": True}, {"num_beams": 3}, {"num_beams": 4, "num_return_sequences": 2}]
)
def test_texts_have_a_weight(gpt2: Any, options: dict[str, Any]) -> None:
    language = WeightedLanguage.alternatives([("ab", 2), (regex("ca{1,2}"), 1)])
    processor = processors.ScoresLogitsProcessor(compile(language, VOCABULARY))
    for tokens in run(gpt2, [[0], [1]], [processor], **options):
        text = b"".join(PIECES[token] for token in tokens)
        assert language.log_weight(text) > -math.inf


def test_one_for_each_prompt(gpt2: Any) -> None:
    each = [compile(prefer(regex(f"{letter}*"), by=60.0), VOCABULARY) for letter in "bc"]
    both = run(gpt2, [[0], [0]], [processors.ScoresLogitsProcessor(each, 1.0)])
    texts = [b"".join(PIECES[token] for token in tokens) for tokens in both]
    assert set(texts[0]) <= set(b"b")
    assert set(texts[1]) <= set(b"c")


def test_what_is_refused() -> None:
    scores = compile(MODEL, VOCABULARY)
    other = compile(MODEL, Vocabulary([*PIECES[:5], b"d", b""], END))
    with pytest.raises(VocabularyMismatchError, match=r"scores\[1\]"):
        processors.ScoresLogitsProcessor([scores, other])
    with pytest.raises(ArgumentValueError, match="weight"):
        processors.ScoresLogitsProcessor(scores, math.inf)
    with pytest.raises(ArgumentValueError, match="at least one"):
        processors.ScoresLogitsProcessor([])
    with pytest.raises(TypeError, match="scores"):
        processors.ScoresLogitsProcessor(compile(regex("a"), VOCABULARY))


def test_generator(gpt2: Any) -> None:
    import small_model

    loaded = small_model.load()
    generator = tokenfst.Generator(loaded.model, loaded.tokenizer)
    names = regex("Ada|Bob|Eve|Zoe")
    for name in ("Bob", "Zoe"):
        wish = WeightedLanguage.alternatives([(name, 1.0), (names, 1e-9)]).normalized()
        for scores in (wish, compile(wish, generator.vocabulary)):
            found = generator("record: ", names, max_new_tokens=8, scores=scores, scores_weight=3.0)
            assert str(found) == name
    with pytest.raises(DecodingError, match="scores must be"):
        generator("record: ", names, max_new_tokens=8, scores="Bob")
    with pytest.raises(DecodingError, match="needs scores"):
        generator("record: ", names, max_new_tokens=8, scores_weight=2.0)
    with pytest.raises(VocabularyMismatchError, match="another vocabulary"):
        generator("record: ", names, max_new_tokens=8, scores=compile(wish, VOCABULARY))
