"""Look-ahead without a horizon: beside the sum over all token sequences, and beside the product with a long horizon."""

from __future__ import annotations

import itertools
import math
import random

import pytest
import torch

from tokenfst import (
    Budget,
    FusedModel,
    Hmm,
    HmmLookAhead,
    HmmProduct,
    Vocabulary,
    WeightedLanguage,
    compile,
    regex,
)
from tokenfst.decoding.particles.hmm_product import FLOOR
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    HmmError,
    VocabularyMismatchError,
)

PIECES = [b"a", b"b", b"ab", b""]
END = 3
VOCABULARY = Vocabulary(PIECES, END)


def model(seed: int, hidden: int = 2) -> Hmm:
    return Hmm.random(
        hidden, len(PIECES), generator=torch.Generator().manual_seed(seed), dtype=torch.float64, sharpness=1.5
    )


def probability(hmm: Hmm, tokens: tuple[int, ...]) -> float:
    belief, total = hmm.initial, 1.0
    for token in tokens:
        seen = belief * hmm.emitted[token]
        total *= float(seen.sum())
        if total == 0:
            return 0.0
        belief = (seen / seen.sum()) @ hmm.transition
    return total


@pytest.mark.parametrize("seed", range(4))
def test_the_sum_over_all_sequences(seed: int) -> None:
    """A finite language, so that the definition is a finite sum."""
    hmm = model(seed)
    language = WeightedLanguage.alternatives({"ab": 1.5, "abb": 0.5, "ba": 2.0}).determinize()
    found = HmmLookAhead(hmm, language, VOCABULARY)
    every = [tokens for n in range(4) for tokens in itertools.product(range(3), repeat=n)]

    def expected(prefix: tuple[int, ...]) -> float:
        total = 0.0
        for tokens in every:
            if tokens[: len(prefix)] == prefix:
                weight = math.exp(language.log_weight(b"".join(PIECES[token] for token in tokens)))
                total += weight * probability(hmm, (*tokens, END))
        return total / probability(hmm, prefix)

    assert found.log_expected == pytest.approx(math.log(expected(())))
    for prefix in [(), (0,), (2,), (0, 1), (1,), (2, 1)]:
        matcher = found.matcher()
        assert matcher.accept_tokens(prefix)
        scores = matcher.scores().tolist()
        text = b"".join(PIECES[token] for token in prefix)
        for token in range(3):
            due = expected((*prefix, token))
            wanted = math.log(due / expected(prefix)) if due else -math.inf
            assert scores[token] == pytest.approx(wanted, abs=1e-5)
        end = language.log_weight(text) - math.log(expected(prefix))
        assert scores[END] == pytest.approx(end, abs=1e-5)
        total = matcher.log_weight
        if matcher.accept_token(END):
            assert matcher.log_weight == pytest.approx(language.log_weight(text) - found.start.expected)
        else:
            assert total > -math.inf and end == -math.inf


@pytest.mark.parametrize("seed", range(3))
def test_the_product_with_a_long_horizon(seed: int) -> None:
    hmm, constraint = model(seed, 3), regex("(a|b)*bb(a|b)*")
    found = HmmLookAhead(hmm, constraint, VOCABULARY)
    product = HmmProduct(hmm, compile(constraint, VOCABULARY), 400)
    belief, state = hmm.start(1), torch.tensor([product.horizon.start])
    assert found.log_expected == pytest.approx(float(product.log_accepted(belief, state, 400)), abs=1e-6)
    matcher, draw = found.matcher(), random.Random(seed)
    for left in range(400, 394, -1):
        weights, _ = product.log_weights(belief, state, left)
        mean = float(product.log_accepted(belief, state, left))
        assert matcher.scores()[:3] == pytest.approx((weights[0, :3] - mean).tolist(), abs=1e-5)
        token = draw.randrange(3)
        assert matcher.accept_token(token)
        belief = hmm.observe(belief, torch.tensor([token]))
        state = product.next_states(state, torch.tensor([token]))


def test_long_texts_do_not_underflow() -> None:
    uniform = Hmm.random(2, len(PIECES), sharpness=0.0)
    finite = HmmLookAhead(uniform, regex("a{900}"), VOCABULARY)
    assert finite.log_expected == pytest.approx(-901 * math.log(4))
    light = WeightedLanguage.of(regex("a")).scaled(-800)
    assert HmmLookAhead(uniform, light, VOCABULARY).log_expected == pytest.approx(-800 - 2 * math.log(4))
    rounds = HmmLookAhead(uniform, regex("b(a{900}b)*"), VOCABULARY).matcher()
    assert rounds.accept_tokens([1, 0])
    assert rounds.scores()[0] == pytest.approx(math.log(4))
    assert rounds.accept_tokens([0] * 899) and rounds.scores()[1] == pytest.approx(math.log(4))
    assert rounds.accept_tokens([1]) and rounds.is_accepting()


def test_hidden_states_that_cannot_end_expect_nothing() -> None:
    """State 1 writes b for ever, so texts on the cycle end with the probability of state 0 alone."""
    passes = torch.tensor([[0.5, 0.5], [0.0, 1.0]], dtype=torch.float64)
    emission = torch.tensor([[0.5, 0.0, 0.0, 0.5], [0.0, 0.5, 0.5, 0.0]], dtype=torch.float64)
    hmm = Hmm(torch.tensor([1.0, 0.0], dtype=torch.float64), passes, emission)
    found = HmmLookAhead(hmm, regex("(a|b)*"), VOCABULARY)
    assert found.log_expected == pytest.approx(math.log(0.5 / 0.75))  # 1/2 + 1/2 1/2 1/2 + ...


def test_nothing_is_forbidden_but_by_the_language() -> None:
    emission = torch.tensor([[0.5, 0.0, 0.0, 0.5]], dtype=torch.float64)
    one = torch.ones((1, 1), dtype=torch.float64)
    hmm = Hmm(one[0], one, emission)
    found = HmmLookAhead(hmm, regex("a|bb"), VOCABULARY)
    scores = found.matcher().scores()
    assert scores[0] > -1 and scores[1] == pytest.approx(scores.max() + FLOOR)
    assert scores[2] == -math.inf
    matcher = found.matcher()
    assert matcher.accept_tokens([1, 1, END])
    plain = lambda ids: torch.zeros(len(ids), 4)  # noqa: E731  # a model
    fused = FusedModel(plain, found, width=4).start([[0]])
    assert fused.logits[0].tolist() == pytest.approx(scores.tolist())


def test_what_is_refused() -> None:
    hmm = model(0)
    with pytest.raises(VocabularyMismatchError):
        HmmLookAhead(hmm, regex("a"), Vocabulary([b"a", b""], 1))
    with pytest.raises(VocabularyMismatchError, match="another"):
        of_another = Hmm(hmm.initial, hmm.transition, hmm.emission, "another")
        HmmLookAhead(of_another, regex("a"), VOCABULARY)
    with pytest.raises(EmptyLanguageError):
        HmmLookAhead(hmm, regex("a") & regex("b"), VOCABULARY)
    with pytest.raises(EmptyLanguageError, match="no text"):
        HmmLookAhead(
            Hmm(torch.ones(1), torch.ones(1, 1), torch.tensor([[1.0, 0, 0, 0]])), regex("b"), VOCABULARY
        )
    with pytest.raises(ConstraintError, match="determinize"):
        one = WeightedLanguage.alternatives({"a": 1.0})
        HmmLookAhead(hmm, one | one, VOCABULARY)
    with pytest.raises(EmptyLanguageError, match="no text"):
        endless = Hmm(torch.ones(1), torch.ones(1, 1), torch.tensor([[0.5, 0.5, 0, 0.0]]))
        HmmLookAhead(endless, regex("(a|b)*"), VOCABULARY)
    with pytest.raises(HmmError, match="infinite"):
        HmmLookAhead(hmm, WeightedLanguage.alternatives({"a": 50.0, "b": 1.0}).star(), VOCABULARY)
    with pytest.raises(BudgetExceeded):
        HmmLookAhead(hmm, regex("((a|b){8})*"), VOCABULARY, budget=Budget(bytes=300))
