"""Sessions of models and rows of constraints: what every decoder stands on."""

from __future__ import annotations

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

import tokenfst
from tokenfst.decoding.models import language_model
from tokenfst.decoding.models.language_model import (
    CallbackModel,
    as_language_model,
    next_log_probs,
    start_after,
)
from tokenfst.decoding.rows.rows import ConstraintRows
from tokenfst.errors import LogitsError, ModelError, TokenLimitError, VocabularyMismatchError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

CPU = torch.device("cpu")


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2, "num_attention_heads": 4}
    return LlamaForCausalLM(LlamaConfig(vocab_size=23, max_position_embeddings=64, **sizes)).eval()


def alone(model: LlamaForCausalLM, ids: list[int]) -> torch.Tensor:
    """The twin: the scores after ``ids`` by one call without cache, padding or neighbours."""
    with torch.no_grad():
        return model(torch.tensor([ids])).logits[0, -1]


def test_rows_of_any_length_are_scored_as_if_alone(llama: LlamaForCausalLM) -> None:
    rows = [[1, 2, 3, 4], [5], [6, 7]]
    session = as_language_model(llama).start(rows)
    for step in range(6):
        for row, ids in enumerate(rows):
            assert torch.allclose(session.logits[row], alone(llama, ids), atol=1e-5), (step, row)
        parents = torch.tensor([(step + 1) % 3, 0, 0, 1][: 3 + step % 2]) % len(rows)
        tokens = torch.arange(len(parents)) + step
        session.extend(parents, tokens)
        rows = [[*rows[p], t] for p, t in zip(parents.tolist(), tokens.tolist(), strict=True)]


def test_several_tokens_at_once_and_back(llama: LlamaForCausalLM) -> None:
    rows = [[1, 2, 3], [4]]
    session = as_language_model(llama).start(rows)
    tokens = torch.tensor([[5, 6, 7], [8, 9, 10]])
    scores = session.extend(torch.arange(2), tokens)
    for row, ids in enumerate(rows):
        for k in range(3):
            assert torch.allclose(
                scores[row, k], alone(llama, ids + tokens[row, : k + 1].tolist()), atol=1e-5
            )
    session.rewind(2)
    session.extend(torch.tensor([1, 0]), torch.tensor([11, 12]))
    assert torch.allclose(session.logits[0], alone(llama, [4, 8, 11]), atol=1e-5)
    assert torch.allclose(session.logits[1], alone(llama, [1, 2, 3, 5, 12]), atol=1e-5)
    with pytest.raises(ModelError, match="cannot rewind 3 tokens: the prompts were extended by 2"):
        session.rewind(3)


def test_a_callback_sees_whole_rows() -> None:
    model = as_language_model(lambda ids: ids.sum(1, keepdim=True).repeat(1, 4), width=4)
    session = model.start([[], []])
    assert session.logits.tolist() == [[0.0] * 4] * 2
    scores = session.extend(torch.tensor([0, 1, 1]), torch.tensor([[1, 1], [2, 2], [3, 3]]))
    assert scores[:, :, 0].tolist() == [[1.0, 2.0], [2.0, 4.0], [3.0, 6.0]]
    session.rewind(1)
    session.extend(torch.tensor([2, 0]), torch.tensor([0, 5]))
    assert session.logits[:, 0].tolist() == [3.0, 6.0]


def test_a_callback_takes_prompts_of_any_lengths() -> None:
    model = as_language_model(lambda ids: ids.sum(1, keepdim=True).repeat(1, 4), width=4)
    session = model.start([[], [1, 2], [3]])
    assert session.logits[:, 0].tolist() == [0.0, 3.0, 3.0]
    session.extend(torch.tensor([1, 0, 2]), torch.tensor([5, 6, 7]))
    assert session.logits[:, 0].tolist() == [8.0, 6.0, 10.0]
    session.rewind(1)
    with pytest.raises(ModelError, match="cannot rewind 1 token: the prompts were extended by 0"):
        session.rewind(1)


def test_models_and_prompts_that_do_not_fit(llama: LlamaForCausalLM) -> None:
    with pytest.raises(ModelError, match="shape \\(1, 3\\) for 1 row: expected \\(1, 4\\)"):
        as_language_model(lambda ids: torch.zeros(len(ids), 3), width=4).start([[1]])
    with pytest.raises(ModelError, match="at least one token in each prompt"):
        as_language_model(llama).start([[]])
    with pytest.raises(ModelError, match="no prompts"):
        as_language_model(llama).start([])
    with pytest.raises(ModelError, match="needs `width`"):
        as_language_model(lambda ids: ids)
    with pytest.raises(ModelError, match="cannot decode from int"):
        as_language_model(3)


@pytest.mark.parametrize("width", [2, 5, 16, 100, 4099])
def test_scores_without_a_distribution_are_refused(width: int) -> None:
    for bad, place in [(float("nan"), -1), (float("nan"), 0), (float("inf"), 0), (float("inf"), -1)]:
        scores = torch.zeros(3, width)
        scores[1, place] = bad
        with pytest.raises(LogitsError, match="row 1"):
            next_log_probs(scores)
    with pytest.raises(LogitsError, match="row 0"):
        next_log_probs(torch.full((2, width), -float("inf")))
    next_log_probs(torch.tensor([[-float("inf")] * (width - 1) + [0.0]]))


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary([b"a", b"b", b"ab", b""], eos_token_id=3)


def rows_of(
    pattern: str, vocabulary: Vocabulary, prompts: int = 1, max_new_tokens: int | None = None
) -> ConstraintRows:
    automaton = tokenfst.compile(tokenfst.regex(pattern), vocabulary)
    return ConstraintRows.start(
        automaton, prompts=prompts, max_new_tokens=max_new_tokens, width=5, device=CPU
    )


def test_rows_fork_finish_and_stay_finished(vocabulary: Vocabulary) -> None:
    rows = rows_of("(ab)+", vocabulary, prompts=2)
    assert rows.allowed().int().tolist() == [[1, 0, 1, 0, 0]] * 2
    rows.extend([0, 0, 1], [0, 2, 2])
    assert rows.distances().tolist() == [1, 0, 0]
    assert rows.accepting.tolist() == [False, True, True]
    assert rows.allowed().int().tolist() == [[0, 1, 0, 0, 0], [1, 0, 1, 1, 0], [1, 0, 1, 1, 0]]
    rows.extend([1, 0, 1], [3, 1, 2])
    assert rows.finished.tolist() == [True, False, False]
    assert rows.allowed()[0].int().tolist() == [0, 0, 0, 1, 0]
    rows.extend([0, 0, 1], torch.tensor([0, 3, 3]))
    assert [rows.tokens(row) for row in range(3)] == [[2, 3], [2, 3], [0, 1, 3]]


def test_masks_within_other_budgets_leave_the_rows_as_they_were(vocabulary: Vocabulary) -> None:
    rows = rows_of("(ab){2}", vocabulary, max_new_tokens=4)
    assert rows.distances().tolist() == [2]
    assert rows.allowed(max_new_tokens=[2]).int().tolist() == [[0, 0, 1, 0, 0]]
    assert rows.allowed(max_new_tokens=[1]).int().tolist() == [[0, 0, 0, 0, 0]]
    assert rows.allowed().int().tolist() == [[1, 0, 1, 0, 0]]
    scores = rows.mask_(torch.full((1, 5), 2.0))
    assert scores.tolist() == [[2.0, -float("inf"), 2.0, -float("inf"), -float("inf")]]
    rows.extend([0], [2])
    rows.extend([0], [2])
    rows.extend([0], [3])
    assert rows.finished.tolist() == [True]


def test_rows_that_cannot_be(vocabulary: Vocabulary) -> None:
    with pytest.raises(TokenLimitError, match="least number from here is 2"):
        rows_of("(ab){2}", vocabulary, max_new_tokens=1)
    rows = rows_of("ab", vocabulary)
    with pytest.raises(ModelError, match="row 0 does not allow token 1"):
        rows.extend([0, 0], [0, 1])
    assert rows.tokens(0) == []
    automaton = tokenfst.compile(tokenfst.regex("ab"), vocabulary)
    with pytest.raises(ModelError, match="1 constraint for 2 prompts"):
        ConstraintRows.start([automaton], prompts=2, max_new_tokens=None, width=5, device=CPU)
    with pytest.raises(VocabularyMismatchError, match="scores 3 tokens"):
        ConstraintRows.start(automaton, prompts=1, max_new_tokens=None, width=3, device=CPU)
    other = tokenfst.compile(tokenfst.regex("ab"), Vocabulary([b"a", b"b", b""], eos_token_id=2))
    with pytest.raises(VocabularyMismatchError, match="one vocabulary"):
        ConstraintRows.start([automaton, other], prompts=2, max_new_tokens=None, width=5, device=CPU)


def test_the_callback_model_is_a_language_model() -> None:
    model = CallbackModel(lambda ids: torch.zeros(len(ids), 2), 2)
    assert as_language_model(model) is model


def test_an_ended_row_lends_its_mask_to_nobody(vocabulary: Vocabulary) -> None:
    rows = rows_of("(ab)+", vocabulary, prompts=2, max_new_tokens=6)
    rows.extend([0, 1], [2, 0])
    rows.extend([0, 1], [3, 1])
    assert rows.matchers[0].state == rows.matchers[1].state
    assert rows.matchers[0].max_tokens_left == rows.matchers[1].max_tokens_left
    assert rows.allowed().int().tolist() == [[0, 0, 0, 1, 0], [1, 0, 1, 1, 0]]


def test_a_model_with_the_old_name_of_start_after() -> None:
    asked = []
    model = CallbackModel(lambda ids: torch.zeros(len(ids), 5), 5)
    model.start_behind = lambda prompts, written: asked.append((prompts, written))  # type: ignore[attr-defined]
    with pytest.warns(DeprecationWarning, match="start_after"):
        start_after(model, [[1]], [[2, 3]])
    assert asked == [([[1]], [[2, 3]])]


def test_the_old_name_of_start_after() -> None:
    with pytest.warns(DeprecationWarning, match="start_after"):
        assert language_model.start_behind is start_after  # type: ignore[attr-defined]
