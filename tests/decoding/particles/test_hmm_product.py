"""The circuit product against enumeration of all token sequences, and at sizes that underflow."""

from __future__ import annotations

import math
import random
import time
import warnings
from functools import partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.decoding.probability import accepted_sequences, path_probability, posterior
from tests.support.worlds.hmm_worlds import seeded, small, split, tables
from tokenfst import Budget, TokenAutomaton, Vocabulary, compile, regex
from tokenfst.decoding.particles import hmm_product
from tokenfst.decoding.particles.hmm import Hmm
from tokenfst.decoding.particles.hmm_product import HmmProduct
from tokenfst.decoding.rows.edges import TokenEdges
from tokenfst.errors import (
    BudgetExceeded,
    HmmError,
    MatcherError,
    NondeterministicError,
    TokenLimitError,
    VocabularyMismatchError,
)

pytestmark = pytest.mark.usefixtures("one_torch_thread")

VOCABULARY = Vocabulary([b"a", b"b", b"ab", b""], 3)
PATTERNS = ["a*b", "(ab|ba)*", "a|b", "(a|b)*abb?", "((a|b)(a|b))*", "a{2,4}", "b?(ab){1,2}"]


def automaton(pattern: str, vocabulary: Vocabulary = VOCABULARY) -> TokenAutomaton:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(regex(pattern), vocabulary)


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    pattern=st.sampled_from(PATTERNS),
    max_new_tokens=st.integers(0, 4),
    exact=st.booleans(),
)
def test_every_prefix_has_the_probabilities_of_the_enumeration(
    seed: int, pattern: str, max_new_tokens: int, exact: bool
) -> None:
    hmm, constraint = small(seed), automaton(pattern)
    accepted = list(accepted_sequences(constraint, max_new_tokens, exact))
    if not accepted:
        with pytest.raises(TokenLimitError):
            HmmProduct(hmm, constraint, max_new_tokens, "exact" if exact else "at_most")
        return
    product = HmmProduct(hmm, constraint, max_new_tokens, "exact" if exact else "at_most")
    probability = partial(path_probability, *tables(hmm))
    weights, total = posterior(accepted, probability)
    rng = random.Random(seed)
    path = rng.choice(accepted)
    belief, states = hmm.start(), torch.tensor([product.start])
    assert float(product.log_accepted(belief, states, max_new_tokens)) == pytest.approx(math.log(total))
    for place, token in enumerate(path):
        left, prefix = max_new_tokens - place, path[:place]
        joint = product.log_joint(belief, states, left)[0]
        published, _ = product.log_weights(belief, states, left, corrected=False)
        corrected, _ = product.log_weights(belief, states, left)
        going_on = {x: p for x, p in weights.items() if x[:place] == prefix}
        mass = math.fsum(going_on.values())
        for x in range(4):
            with_x = math.fsum(p for tokens, p in going_on.items() if tokens[place] == x)
            assert float(joint[x].exp()) * probability(prefix) == pytest.approx(with_x * total, rel=1e-6)
            assert float(published[0, x].exp()) == pytest.approx(with_x / mass, rel=1e-6)
            ends_well = with_x * total / probability((*prefix, x))
            assert float(corrected[0, x].exp()) == pytest.approx(ends_well, rel=1e-6)
        assert float(published.exp().sum()) == pytest.approx(1.0), "marginals sum to one"
        chosen = torch.tensor([token])
        belief, states = hmm.observe(belief, chosen), product.next_states(states, chosen)
    assert float(product.log_accepted(belief, states, max_new_tokens - len(path))) == pytest.approx(0.0)


def test_a_prompt_changes_the_belief() -> None:
    hmm = small(3)
    product = HmmProduct(hmm, automaton("a*b"), 3)
    belief = hmm.observe_all(hmm.start(), torch.tensor([[1, 2]]))
    found = float(product.log_accepted(belief, torch.tensor([product.start]), 3))
    probability = partial(path_probability, *tables(hmm))
    accepted = accepted_sequences(automaton("a*b"), 3, exact=False)
    expected = math.fsum(probability((1, 2, *tokens)) for tokens in accepted) / probability((1, 2))
    assert found == pytest.approx(math.log(expected))


def test_rows_in_different_states_are_looked_up_together() -> None:
    hmm, constraint = small(5), automaton("(a|b)*abb?")
    product = HmmProduct(hmm, constraint, 4)
    rows = [(0, 0), (0, 1), (2, 1), (1, 1), (0, 2)]
    belief = hmm.start(len(rows))
    states = torch.full((len(rows),), product.start)
    for place in range(2):
        tokens = torch.tensor([row[place] for row in rows])
        belief, states = hmm.observe(belief, tokens), product.next_states(states, tokens)
    together = product.log_joint(belief, states, 2)
    for row in range(len(rows)):
        alone = product.log_joint(belief.select(torch.tensor([row])), states[row : row + 1], 2)
        assert together[row].tolist() == pytest.approx(alone[0].tolist())


def test_100_steps_and_4096_states_do_not_underflow_in_float32() -> None:
    words = Vocabulary([bytes([byte]) for byte in range(97, 107)] + [b""], 10)
    constraint = automaton("a(bc|cb)*d", words)
    hmm = small(2, hidden=2, vocab=11, sharpness=2.0)
    wide = split(hmm, 2048)
    exact, found = HmmProduct(hmm, constraint, 100, "exact"), HmmProduct(wide, constraint, 100, "exact")
    start = torch.tensor([exact.start])
    expected = exact.log_accepted(hmm.start(), start, 100)
    assert float(expected) < 1.5 * math.log(1e-38), "the probability would underflow"
    assert found.log_accepted(wide.start(), start, 100).tolist() == pytest.approx(expected.tolist(), rel=1e-5)


def test_temporary_arrays_are_cut_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    words = Vocabulary([bytes([byte]) for byte in range(97, 107)] + [b""], 10)
    hmm, constraint = small(6, vocab=11), automaton("[a-c]*[d-f]{2}|b[c-j]*a", words)
    found = []
    for chunk in (1, 7, 1 << 20):
        monkeypatch.setattr(hmm_product, "_CHUNK", chunk)
        product = HmmProduct(hmm, constraint, 5)
        found.append(product.log_weights(hmm.start(), torch.tensor([product.start]), 5))
    for weights, joint in found[:2]:
        assert torch.allclose(weights, found[2][0], rtol=1e-12)
        assert torch.allclose(joint, found[2][1], rtol=1e-12)


def test_tokens_that_the_model_rules_out_stay_possible() -> None:
    emission = torch.tensor([[1.0, 0.0, 0.0, 0.0], [0.5, 0.0, 0.0, 0.5]])
    hmm = Hmm(torch.tensor([0.5, 0.5]), torch.full((2, 2), 0.5), emission)
    product = HmmProduct(hmm, automaton("a*b"), 3)
    states = torch.tensor([product.start])
    for corrected in (False, True):
        weights, joint = product.log_weights(hmm.start(), states, 3, corrected=corrected)
        assert joint[0].tolist() == [-math.inf] * 4
        assert weights[0].isfinite().tolist() == [True, True, True, False]
    belief = hmm.observe(hmm.start(), torch.tensor([1]))
    weights, _ = product.log_weights(belief, product.next_states(states, torch.tensor([1])), 2)
    assert weights[0].isfinite().tolist() == [False, False, False, True]


def test_the_least_budget_that_works_is_named() -> None:
    hmm = small(1)
    with pytest.raises(TokenLimitError, match="at most 1 token: 2 works"):
        HmmProduct(hmm, automaton("a{4}|(ab){2}"), 1)
    with pytest.raises(TokenLimitError, match="exactly 3 tokens: 2 and 4 work"):
        HmmProduct(hmm, automaton("(aa)*"), 3, "exact")
    with pytest.raises(TokenLimitError, match="exactly 5 tokens: 4 works"):
        HmmProduct(hmm, automaton("a{2,4}"), 5, "exact")
    nothing = HmmProduct(hmm, automaton("a*"), 0)
    assert float(nothing.log_accepted(hmm.start(), torch.tensor([nothing.start]), 0)) == 0


def test_edges_are_taken_too_if_they_are_deterministic() -> None:
    hmm, constraint = small(4), automaton("(a|b)*abb?")
    edges = TokenEdges.from_automaton(constraint)
    ours, same = HmmProduct(hmm, constraint, 4), HmmProduct(hmm, edges, 4, end_tokens=[3])
    start = torch.tensor([ours.start])
    assert torch.equal(ours.log_joint(hmm.start(), start, 4), same.log_joint(hmm.start(), start, 4))
    two_ways = TokenEdges.from_arcs(
        [(0, 0, 1), (0, 0, 2), (1, 1, 3), (2, 1, 3)], num_states=4, start=[0], accepting=[3], num_tokens=4
    )
    with pytest.raises(NondeterministicError, match="count runs"):
        HmmProduct(hmm, two_ways, 4, "exact")
    apart = TokenEdges.from_arcs(
        [(0, 0, 1), (2, 1, 2), (2, 2, 1)], num_states=3, start=[0], accepting=[1], num_tokens=4
    )
    with pytest.raises(TokenLimitError, match="exactly 4 tokens: 1 works"):
        HmmProduct(hmm, apart, 4, "exact")
    with pytest.raises(ValueError, match="needs end_tokens"):
        HmmProduct(hmm, edges, 4)
    one_state = TokenEdges.from_arcs(
        [(0, 0, 0), (0, 1, 0)], num_states=1, start=[0], accepting=[0], num_tokens=4
    )
    with pytest.raises(NondeterministicError, match="give end_tokens that no edge has"):
        HmmProduct(hmm, one_state, 2, end_tokens=[1])


def test_rows_must_fit_together() -> None:
    product = HmmProduct(small(1), automaton("a*b"), 3)
    belief, start = product.hmm.start(2), torch.tensor([product.start])
    for question in (product.log_joint, product.log_accepted, product.log_weights):
        with pytest.raises(HmmError, match="a belief of 2 rows goes with as many states, not 1"):
            question(belief, start, 3)
    with pytest.raises(HmmError, match="one for each of 1 state"):
        product.next_states(start, torch.tensor([0, 0]))
    for states in (torch.tensor([99]), torch.tensor([-1]), torch.tensor([[0]]), torch.tensor([0.0])):
        with pytest.raises(HmmError, match="integers from 0"):
            product.next_states(states, torch.zeros_like(states))


def test_misfits_are_refused() -> None:
    constraint = automaton("a*b")
    with pytest.raises(VocabularyMismatchError, match="over 5 tokens"):
        HmmProduct(small(1, vocab=5), constraint, 3)
    with pytest.raises(VocabularyMismatchError, match="f00d"):
        HmmProduct(Hmm.random(2, 4, vocabulary="f00d"), constraint, 3)
    named = Hmm.random(2, 4, vocabulary=constraint.vocabulary.fingerprint, generator=seeded(0))
    product = HmmProduct(named, constraint, 3)
    with pytest.raises(BudgetExceeded, match="the look-ahead over 3 tokens"):
        HmmProduct(named, constraint, 3, budget=Budget(bytes=50))
    with pytest.raises(ValueError, match="negative"):
        HmmProduct(named, constraint, -1)
    with pytest.raises(ValueError, match="at_most"):
        HmmProduct(named, constraint, 3, "about")  # type: ignore[arg-type]
    start = torch.tensor([product.start])
    with pytest.raises(MatcherError, match="has no token 3"):
        product.next_states(start, torch.tensor([3]))
    with pytest.raises(TokenLimitError, match="from 1 to 3, not 4"):
        product.log_joint(named.start(), start, 4)


def test_the_budget_s_seconds_bound_the_construction() -> None:
    hmm, constraint = small(2, hidden=64, vocab=4), automaton("(a|b)*")
    begin = time.monotonic()
    with pytest.raises(BudgetExceeded) as caught:
        HmmProduct(hmm, constraint, 200_000, budget=Budget(seconds=0.1))
    assert caught.value.resource == "seconds" and time.monotonic() - begin < 3
    with pytest.raises(BudgetExceeded) as caught:
        HmmProduct(hmm, constraint, 10**10)
    assert caught.value.resource == "bytes"
