"""Training against expected counts summed over all hidden paths, and distillation of models that are known."""

from __future__ import annotations

import itertools
import math
from pydoc_data.topics import topics
from typing import Any

import pytest
import torch

from reference.decoding.probability import path_counts
from tests.support.worlds.hmm_worlds import seeded, small, tables
from tokenfst import Vocabulary
from tokenfst.decoding.models.language_model import CallbackModel
from tokenfst.decoding.particles.hmm import Hmm
from tokenfst.decoding.particles.hmm_training import distil_hmm, draw_samples, first_hmm, train_hmm
from tokenfst.errors import HmmError, LogitsError, TokenfstError, VocabularyMismatchError

pytestmark = pytest.mark.usefixtures("one_torch_thread")

VOCABULARY = Vocabulary([b"a", b"b", b"c", b"d", b""], 4)
CHAIN = torch.tensor(
    [
        [0.05, 0.60, 0.15, 0.10, 0.10],
        [0.10, 0.05, 0.70, 0.05, 0.10],
        [0.20, 0.10, 0.05, 0.55, 0.10],
        [0.65, 0.10, 0.05, 0.05, 0.15],
        [0.70, 0.10, 0.10, 0.10, 0.00],
    ]
)
"""A bigram model: row i is the distribution after token i; the prompt is the end token."""


def chain(ids: torch.Tensor) -> torch.Tensor:
    return CHAIN[ids[:, -1]].log()


def test_a_pass_is_the_textbooks_pass() -> None:
    hmm = small(3, hidden=2, vocab=3)
    tokens = torch.tensor([[0, 1, 2, 1], [2, 2, 0, 0], [1, 0, 0, 0]])
    lengths = torch.tensor([4, 3, 1])
    rows = [row[:length] for row, length in zip(tokens.tolist(), lengths.tolist(), strict=True)]
    expected = path_counts(*tables(hmm), rows)
    for batch_rows in (1, 2, 64):
        found = train_hmm(hmm, tokens, lengths, passes=1, smoothing=0.0, batch_rows=batch_rows).hmm
        for table, counts in zip(
            (found.initial[None], found.transition, found.emission), expected, strict=True
        ):
            for row, of_row in zip(table.tolist(), counts, strict=True):
                assert row == pytest.approx([count / math.fsum(of_row) for count in of_row])


def test_no_pass_lowers_the_likelihood() -> None:
    tokens = small(1, hidden=4, vocab=6, sharpness=2.0).sample(40, 8, seeded(1))
    trained = train_hmm(small(2, hidden=3, vocab=6), tokens, passes=25, smoothing=0.0, tolerance=-1.0)
    assert len(trained.log_likelihoods) == 25
    assert all(b >= a - 1e-12 for a, b in itertools.pairwise(trained.log_likelihoods))
    assert trained.log_likelihoods[-1] > trained.log_likelihoods[0] + 0.1
    stopped = train_hmm(small(2, hidden=3, vocab=6), tokens, passes=25, smoothing=0.0, tolerance=0.01)
    assert stopped.log_likelihoods == trained.log_likelihoods[: len(stopped.log_likelihoods)]
    assert len(stopped.log_likelihoods) < 25


def test_smoothing_leaves_nothing_impossible() -> None:
    tokens = torch.tensor([[0, 1, 0, 1], [1, 0, 1, 0]])
    found = train_hmm(Hmm.random(3, 5, generator=seeded(1)), tokens, passes=30).hmm
    assert float(found.emission.min()) > 0
    assert float(found.transition.min()) > 0
    assert bool(found.log_likelihood(torch.tensor([[4, 3, 2]])).isfinite().all())


def test_the_first_model_is_a_better_beginning_than_random_tables() -> None:
    text = "".join(topics.values()).encode()[:12_000]
    tokens = torch.tensor(list(text)).reshape(-1, 40)
    ours = first_hmm(tokens, hidden_size=24, vocab_size=256, generator=seeded(7))
    random = train_hmm(Hmm.random(24, 256, generator=seeded(7)), tokens, passes=4, batch_rows=300)
    assert train_hmm(ours, tokens, passes=1).log_likelihoods[0] > random.log_likelihoods[-1] + 0.2


@pytest.mark.parametrize("hidden", [2, 5, 13])
def test_the_first_model_has_any_number_of_states(hidden: int) -> None:
    tokens = torch.tensor([[0, 3, 3, 1], [3, 0, 3, -100]])
    found = first_hmm(tokens, torch.tensor([4, 3]), hidden_size=hidden, vocab_size=7, generator=seeded(1))
    assert found.hidden_size == hidden
    assert float(found.emission.min()) > 0
    later = train_hmm(found, tokens, torch.tensor([4, 3]), passes=3, smoothing=0.0)
    assert later.log_likelihoods[-1] > later.log_likelihoods[0]


def test_samples_follow_the_model_and_end() -> None:
    count = 20_000
    model = CallbackModel(chain, 5)
    tokens, lengths = draw_samples(
        model, [[4], [1]], count=count, max_new_tokens=3, vocabulary=VOCABULARY, generator=seeded(1)
    )
    assert tokens.shape == (2 * count, 3)
    for prompt, rows in ((4, tokens[:count]), (1, tokens[count:])):
        for x, y in itertools.product(range(4), range(5)):
            expected = float(CHAIN[prompt, x] * CHAIN[x, y])
            found = float(((rows[:, 0] == x) & (rows[:, 1] == y)).float().mean())
            assert abs(found - expected) < 4.5 * math.sqrt(expected * (1 - expected) / count) + 1e-9
    ended = (tokens == 4).float().cumsum(1) > 0
    assert torch.equal(lengths, torch.where(ended.any(1), ended.float().argmax(1) + 1, 3))
    assert bool((tokens[ended] == 4).all()), "what follows the end is padding"


def test_a_bigram_model_is_distilled_to_itself() -> None:
    trained = distil_hmm(
        CallbackModel(chain, 5),
        [[4]] * 3,
        vocabulary=VOCABULARY,
        hidden_size=8,
        count=600,
        max_new_tokens=10,
        generator=seeded(1),
        batch_prompts=2,
        passes=20,
        batch_rows=1000,
    )
    hmm = trained.hmm
    assert hmm.vocabulary == VOCABULARY.fingerprint
    for prefix in ([0], [1, 2], [2, 3], [0, 1, 2, 3]):
        found = hmm.log_next(hmm.observe_all(hmm.start(), torch.tensor([prefix])))[0].exp()
        assert float((found - CHAIN[prefix[-1]]).abs().sum()) / 2 < 0.06


def test_what_cannot_be_learned_from_is_refused() -> None:
    hmm = Hmm.random(2, 3)
    with pytest.raises(HmmError, match="0 given"):
        train_hmm(hmm, torch.empty(0, 4, dtype=torch.long))
    with pytest.raises(HmmError, match=r"passes \(0\)"):
        train_hmm(hmm, torch.tensor([[0, 1]]), passes=0)
    never = Hmm(torch.ones(1), torch.ones(1, 1), torch.tensor([[0.5, 0.5, 0.0]]))
    with pytest.raises(HmmError, match="row 1 has probability zero"):
        train_hmm(never, torch.tensor([[0, 1], [0, 2]]), batch_rows=1)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"hidden_size": 0}, "distil_hmm: hidden_size must be at least 1"),
        ({"batch_prompts": 0}, "distil_hmm: batch_prompts must be at least 1"),
        ({"count": 0}, "draw_samples: count must be at least 1"),
        ({"max_new_tokens": -1}, "draw_samples: max_new_tokens must be at least 1"),
        ({"prompts": []}, "no prompts"),
        ({"steps": 3}, "distil_hmm: got an unexpected keyword argument 'steps'"),
    ],
)
def test_options_are_checked_before_the_model_is_called(options: dict[str, Any], message: str) -> None:
    def never(ids: torch.Tensor) -> torch.Tensor:
        raise AssertionError("the model was called")

    given: dict[str, Any] = {"prompts": [[1]], "hidden_size": 2, "count": 2, "max_new_tokens": 3}
    with pytest.raises(TokenfstError, match=message):
        distil_hmm(never, vocabulary=VOCABULARY, width=5, **given | options)
    plain = distil_hmm(chain, vocabulary=VOCABULARY, width=5, **given | {"prompts": torch.tensor([[4]])})
    assert plain.hmm.vocab_size == 5


def test_models_are_checked() -> None:
    def broken(ids: torch.Tensor) -> torch.Tensor:
        return torch.full((len(ids), 5), math.nan)

    with pytest.raises(VocabularyMismatchError, match="scores 3 tokens, and the vocabulary has 5"):
        draw_samples(CallbackModel(broken, 3), [[1]], count=1, max_new_tokens=2, vocabulary=VOCABULARY)
    with pytest.raises(LogitsError):
        draw_samples(CallbackModel(broken, 5), [[1]], count=1, max_new_tokens=2, vocabulary=VOCABULARY)
