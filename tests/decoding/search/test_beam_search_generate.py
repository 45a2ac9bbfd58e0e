"""Automata-guided beam search with transformers: alone, and as ``custom_generate``."""

from __future__ import annotations

import math

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM, LogitsProcessor, StoppingCriteria

import tokenfst
from tokenfst.decoding.search.beam_search import automata_beam_search
from tokenfst.decoding.search.beam_search_generate import automata_beam_generate
from tokenfst.errors import LogitsError, ModelError, TokenLimitError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

WORDS = [b"", b"c", b"a", b"t", b"cat", b"dog", b" ", b"d", b"o", b"g", b"ca", b"at", b".", b"po"]
END = 0
VOCABULARY = Vocabulary(WORDS, eos_token_id=END)
PROMPTS = [[1, 2, 3, 4], [5], [6, 7]]


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    config = LlamaConfig(
        vocab_size=16, max_position_embeddings=64, eos_token_id=END, pad_token_id=15, bos_token_id=14, **sizes
    )
    return LlamaForCausalLM(config).eval()


def padded(prompts: list[list[int]]) -> dict[str, torch.Tensor]:
    width = max(map(len, prompts))
    return {
        "input_ids": torch.tensor([[15] * (width - len(p)) + p for p in prompts]),
        "attention_mask": torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts]),
    }


@pytest.mark.parametrize("beams", [3, 8])
def test_without_constraint_and_push_it_is_beam_search(llama: LlamaForCausalLM, beams: int) -> None:
    """The twin is transformers' own search, held to the vocabulary's bytes by banning the ids beyond it."""
    anything = tokenfst.compile(tokenfst.regex("(?s:.)*"), VOCABULARY)
    found = automata_beam_search(
        llama,
        PROMPTS,
        anything,
        num_beams=beams,
        max_new_tokens=7,
        alpha_min=0,
        gamma=math.inf,
        length_penalty=1.0,
    )
    theirs = llama.generate(
        **padded(PROMPTS),
        num_beams=beams,
        max_new_tokens=7,
        do_sample=False,
        early_stopping="never",
        suppress_tokens=[14, 15],
        output_scores=True,
        return_dict_in_generate=True,
    )
    for row, (best,) in enumerate(found):
        tokens = [t for t in theirs.sequences[row, 4:].tolist() if t != 15]
        assert list(best.tokens) == tokens
        assert best.score == pytest.approx(float(theirs.sequences_scores[row]), abs=1e-4)


@pytest.mark.parametrize("beams", [1, 4])
def test_prompts_of_other_lengths_change_nothing(llama: LlamaForCausalLM, beams: int) -> None:
    automata = [
        tokenfst.compile(tokenfst.regex(p), VOCABULARY) for p in ("(cat ?)+", "(dog|cat).?", "[a-z]{5,9}")
    ]
    together = automata_beam_search(
        llama, PROMPTS, automata, num_beams=beams, max_new_tokens=9, num_return_sequences=beams
    )
    for prompt, automaton, found in zip(PROMPTS, automata, together, strict=True):
        (alone,) = automata_beam_search(
            llama, [prompt], automaton, num_beams=beams, max_new_tokens=9, num_return_sequences=beams
        )
        assert [each.tokens for each in alone] == [each.tokens for each in found]
        assert [each.log_prob for each in alone] == pytest.approx([each.log_prob for each in found], abs=1e-4)


def test_generate_takes_it(llama: LlamaForCausalLM) -> None:
    automaton = tokenfst.compile(tokenfst.regex("(cat|dog)( cat)*"), VOCABULARY)
    (expected, second, third) = automata_beam_search(
        llama, PROMPTS, automaton, num_beams=4, max_new_tokens=6, length_penalty=1.0, num_return_sequences=2
    )
    out = llama.generate(
        **padded(PROMPTS),
        custom_generate=automata_beam_generate(automaton),
        num_beams=4,
        num_return_sequences=2,
        max_new_tokens=6,
        return_dict_in_generate=True,
    )
    rows = out.sequences[:, 4:].tolist()
    for row, each in enumerate([*expected, *second, *third]):
        assert tuple(rows[row][: len(each.tokens)]) == each.tokens
        assert set(rows[row][len(each.tokens) :]) <= {15}
        assert float(out.sequences_scores[row]) == pytest.approx(each.score)
    plain = llama.generate(
        **padded(PROMPTS), custom_generate=automata_beam_generate(automaton), num_beams=4, max_new_tokens=6
    )
    assert plain[:, 4:].tolist()[0][: len(expected[0].tokens)] == list(expected[0].tokens)


def test_fewer_sequences_than_asked_for(llama: LlamaForCausalLM) -> None:
    automaton = tokenfst.compile(tokenfst.regex("cat"), VOCABULARY)  # c a t, ca t, c at, cat
    (found,) = automata_beam_search(
        llama, [[1]], automaton, num_beams=9, max_new_tokens=4, num_return_sequences=9
    )
    assert len(found) == 4 and {each.tokens[-1] for each in found} == {END}
    out = llama.generate(
        torch.tensor([[1]]),
        custom_generate=automata_beam_generate(automaton),
        num_beams=9,
        num_return_sequences=9,
        max_new_tokens=4,
        return_dict_in_generate=True,
    )
    assert out.sequences_scores.isneginf().tolist() == [False] * 4 + [True] * 5
    assert out.sequences[4:, 1:].unique().tolist() == [15]


def test_what_is_refused_before_the_model_is_called(llama: LlamaForCausalLM) -> None:
    automaton = tokenfst.compile(tokenfst.regex("cat"), VOCABULARY)

    class Nothing(LogitsProcessor):
        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            return scores

    class Never(StoppingCriteria):
        def __call__(self, input_ids: torch.Tensor, scores: torch.Tensor, **kwargs: object) -> torch.Tensor:
            return torch.zeros(len(input_ids), dtype=torch.bool)

    options = {"custom_generate": automata_beam_generate(automaton), "num_beams": 2, "max_new_tokens": 4}
    ids = torch.tensor([[1]])
    with pytest.raises(ModelError, match="does not apply Nothing"):
        llama.generate(ids, logits_processor=[Nothing()], **options)
    with pytest.raises(ModelError, match="does not apply Never"):
        llama.generate(ids, stopping_criteria=[Never()], **options)
    with pytest.raises(TokenLimitError, match="least number from here is 1"):
        automata_beam_search(llama, [[1]], automaton, num_beams=2, max_new_tokens=0)


def test_a_model_without_a_distribution(llama: LlamaForCausalLM) -> None:
    automaton = tokenfst.compile(tokenfst.regex("cat"), VOCABULARY)
    with pytest.raises(LogitsError, match="row 0"):
        automata_beam_search(
            lambda ids: torch.full((len(ids), 16), float("nan")),
            [[1]],
            automaton,
            num_beams=2,
            max_new_tokens=4,
            width=16,
        )
