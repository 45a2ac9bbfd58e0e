"""Sequential Monte Carlo against the exact posterior, found by enumeration of all texts."""

from __future__ import annotations

import math
import warnings
from functools import cache, partial
from typing import Any

import pytest
import torch

from reference.decoding.probability import accepted_sequences, path_probability, posterior, total_variation
from tests.support.worlds.hmm_worlds import seeded, small, tables
from tokenfst import TokenAutomaton, Vocabulary, compile, lark_grammar, regex
from tokenfst.decoding.models.language_model import CallbackModel, as_language_model
from tokenfst.decoding.particles.hmm import Hmm
from tokenfst.decoding.particles.hmm_product import HmmProduct
from tokenfst.decoding.particles.resampling import SCHEMES
from tokenfst.decoding.particles.smc import PROPOSALS, Particles, smc
from tokenfst.errors import (
    ConstraintError,
    HmmError,
    LogitsError,
    ModelError,
    ParticleError,
    TokenLimitError,
    VocabularyMismatchError,
)

pytestmark = pytest.mark.usefixtures("one_torch_thread")

VOCABULARY = Vocabulary([b"a", b"b", b"ab", b""], 3)
WIDTH = 6
"""The model scores more ids than the vocabulary has."""
TABLE = (2.5 * torch.randn(5, WIDTH, WIDTH, generator=seeded(5))).log_softmax(-1)
"""log p of the next token by place and last token; prompts are one token."""
TOKENS = 4


def scores(ids: torch.Tensor) -> torch.Tensor:
    return TABLE[ids.shape[1] - 1, ids[:, -1]]


MODEL = CallbackModel(scores, WIDTH)


def probability(tokens: tuple[int, ...]) -> float:
    ids = [0, *tokens]
    return math.exp(sum(float(TABLE[i, ids[i], ids[i + 1]]) for i in range(len(tokens))))


@cache
def automaton(pattern: str = "(a|b)*abb?|bb(a|b)") -> TokenAutomaton:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return compile(regex(pattern), VOCABULARY)


@cache
def truth(length: str) -> tuple[dict[tuple[int, ...], float], float]:
    return posterior(list(accepted_sequences(automaton(), TOKENS, length == "exact")), probability)


def run(
    count: int, particles: int, proposal: str, length: str = "at_most", **options: Any
) -> list[Particles]:
    """``count`` independent runs: as many equal prompts."""
    if proposal == "p-gcd":
        options.setdefault("hmm", small(8, sharpness=1.0).to(dtype=torch.float32))
    options.setdefault("generator", seeded(1))
    return smc(
        MODEL,
        [[0]] * count,
        automaton(),
        particles=particles,
        max_new_tokens=TOKENS,
        proposal=proposal,
        length=length,
        **options,
    )


VARIANTS: list[tuple[str, dict[str, Any]]] = [
    ("lcd", {}),
    ("gcd", {}),
    ("p-gcd", {}),
    ("p-gcd", {"corrected": False}),
    ("p-gcd", {"potentials": False}),
    ("p-gcd", {"defensive": 0.2}),
]


@pytest.mark.parametrize(("proposal", "options"), VARIANTS)
@pytest.mark.parametrize("length", ["exact", "at_most"])
def test_the_posterior_is_approached_as_particles_grow(
    proposal: str, options: dict[str, Any], length: str
) -> None:
    exact, _ = truth(length)
    errors = []
    for particles in (1, 8, 64):
        found = run(150, particles, proposal, length, **options)
        errors.append(sum(total_variation(one.distribution(), exact) for one in found) / len(found))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.35 * errors[0]


@pytest.mark.parametrize(("proposal", "options"), VARIANTS)
@pytest.mark.parametrize("length", ["exact", "at_most"])
@pytest.mark.parametrize("ess_threshold", [0.8, 1.0])
def test_every_text_has_its_probability_on_average(
    proposal: str, options: dict[str, Any], length: str, ess_threshold: float
) -> None:
    """The mean over runs of the weight that falls on a text is the text's probability, whatever k."""
    exact, evidence = truth(length)
    runs = 1000
    found = run(runs, 4, proposal, length, ess_threshold=ess_threshold, **options)
    assert ess_threshold < 1 or any(one.resampled for one in found)  # good particles may never be resampled
    mass: dict[tuple[int, ...], list[float]] = {tokens: [] for tokens in exact}
    for one in found:
        of_text = dict.fromkeys(exact, 0.0)
        for tokens, weight in zip(one.tokens, one.log_weights.exp().tolist(), strict=True):
            if weight > 0:
                of_text[tuple(tokens)] += weight / 4
        for tokens, weight in of_text.items():
            mass[tokens].append(weight)
    evidences = torch.tensor([math.exp(one.log_evidence) for one in found])
    assert abs(float(evidences.mean()) - evidence) < 4 * float(evidences.std()) / math.sqrt(runs)
    for tokens, weights in mass.items():
        each = torch.tensor(weights, dtype=torch.float64)
        if int((each > 0).sum()) > 30:
            error = float(each.std()) / math.sqrt(runs)
            assert abs(float(each.mean()) - exact[tokens] * evidence) < 4.5 * error


@pytest.mark.parametrize("scheme", SCHEMES)
def test_every_scheme_leaves_the_evidence_unbiased(scheme: str) -> None:
    found = run(1500, 4, "gcd", resampling=scheme, ess_threshold=1.0)
    evidences = torch.tensor([math.exp(one.log_evidence) for one in found])
    error = float(evidences.std()) / math.sqrt(len(found))
    assert abs(float(evidences.mean()) - truth("at_most")[1]) < 4 * error


def test_a_model_with_zeros_breaks_nothing() -> None:
    """Its tokens 1 and 2 come in state 1 only, which it never reaches, so it holds every text impossible."""
    zeros = Hmm(
        torch.tensor([1.0, 0.0]),
        torch.tensor([[1.0, 0.0], [0.5, 0.5]]),
        torch.tensor([[0.7, 0.0, 0.0, 0.3], [0.0, 0.5, 0.5, 0.0]]),
    )
    exact, _ = truth("at_most")
    for corrected in (False, True):
        for one in run(50, 4, "p-gcd", hmm=zeros, ess_threshold=1.0, corrected=corrected):
            assert {tuple(tokens) for tokens in one.tokens} <= set(exact)
            assert math.isfinite(one.log_evidence)


def test_a_defensive_share_saves_a_look_ahead_that_is_wrong() -> None:
    """A hidden Markov model that knows `b` only. The weights that make up for it are so rare that most runs miss them,
    and their evidence is far too low; with a share of plain draws they are bounded.
    """
    wrong = Hmm(torch.ones(1), torch.ones(1, 1), torch.tensor([[0.05, 0.9499, 0.00005, 0.00005]]))
    _, evidence = truth("at_most")

    def evidences(proposal: str, **options: Any) -> torch.Tensor:
        return torch.tensor([math.exp(one.log_evidence) for one in run(600, 4, proposal, **options)])

    poor = {"hmm": wrong, "corrected": False, "potentials": False}
    assert float(evidences("p-gcd", **poor).median()) < evidence / 2
    mixed = evidences("p-gcd", defensive=0.25, **poor)
    assert abs(float(mixed.mean()) - evidence) < 4 * float(mixed.std()) / math.sqrt(len(mixed))
    assert torch.allclose(evidences("p-gcd", defensive=1.0, **poor), evidences("gcd"), atol=1e-5)


def test_a_perfect_look_ahead_needs_one_particle() -> None:
    """Where the language model is the hidden Markov model, every weight is the evidence itself."""
    hmm = small(3)

    def hmm_scores(ids: torch.Tensor) -> torch.Tensor:
        return hmm.log_next(hmm.observe_all(hmm.start(len(ids)), ids)).float()

    exact, evidence = posterior(
        list(accepted_sequences(automaton(), TOKENS, False)), partial(path_probability, *tables(hmm))
    )
    found = smc(
        CallbackModel(hmm_scores, 4),
        [[]] * 2000,
        automaton(),
        particles=1,
        max_new_tokens=TOKENS,
        proposal="p-gcd",
        hmm=hmm,
        generator=seeded(2),
    )
    assert [one.log_evidence for one in found] == pytest.approx([math.log(evidence)] * 2000, rel=1e-4)
    pooled: dict[tuple[int, ...], float] = {}
    for one in found:
        pooled[tuple(one.tokens[0])] = pooled.get(tuple(one.tokens[0]), 0.0) + 1 / 2000
    assert total_variation(pooled, exact) < 0.08
    together = smc(
        CallbackModel(hmm_scores, 4), [[]], automaton(), particles=16, max_new_tokens=TOKENS, proposal="p-gcd",
        hmm=hmm, generator=seeded(2), ess_threshold=0.99,
    )  # fmt: skip
    assert not together[0].resampled
    assert together[0].effective[:3] == pytest.approx([16.0] * 3, rel=1e-4)


@pytest.mark.parametrize("proposal", ["gcd", "p-gcd"])
@pytest.mark.parametrize("length", ["exact", "at_most"])
def test_global_proposals_always_end_well(proposal: str, length: str) -> None:
    accepted = set(truth(length)[0])
    for one in run(40, 5, proposal, length):
        assert {tuple(tokens) for tokens in one.tokens} <= accepted
        assert float(one.weights.sum()) == pytest.approx(1.0)


def test_local_masks_can_fail_and_say_so() -> None:
    found = smc(
        CallbackModel(lambda ids: torch.zeros(len(ids), WIDTH), WIDTH),  # one of nine runs fails
        [[0]] * 200,
        automaton("a{0,3}b{3}a"),
        particles=2,
        max_new_tokens=TOKENS,
        proposal="lcd",
        generator=seeded(1),
    )
    failed = [one for one in found if one.log_evidence == -math.inf]
    assert 0 < len(failed) < 200
    assert failed[0].weights.tolist() == [0, 0]
    assert failed[0].distribution() == {}
    with pytest.raises(ParticleError, match="no particle was accepted"):
        failed[0].draw()


def test_draws_follow_the_weights() -> None:
    one = run(1, 200, "gcd")[0]
    drawn = one.draw(20_000, seeded(3))
    pooled: dict[tuple[int, ...], float] = {}
    for tokens in drawn:
        pooled[tuple(tokens)] = pooled.get(tuple(tokens), 0.0) + 1 / len(drawn)
    assert total_variation(pooled, one.distribution()) < 0.02


def test_the_same_generator_gives_the_same_particles() -> None:
    first, second = (run(3, 4, "gcd", generator=seeded(9)) for _ in range(2))
    assert [one.tokens for one in first] == [one.tokens for one in second]
    assert first[1].log_weights.tolist() == second[1].log_weights.tolist()
    assert [one.tokens for one in first] != [one.tokens for one in run(3, 4, "gcd", generator=seeded(10))]


@cache
def gpt2() -> Any:
    from transformers import GPT2Config, GPT2LMHeadModel

    torch.manual_seed(0)
    config = GPT2Config(vocab_size=WIDTH, n_positions=32, n_embd=16, n_layer=2, n_head=2)
    model = GPT2LMHeadModel(config).eval()
    for parameter in model.parameters():
        parameter.data.mul_(8.0)
    return model


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_the_cache_is_reordered_with_the_particles(proposal: str) -> None:
    """A model with a cache gives what the same model gives that is run anew on whole rows."""
    anew = CallbackModel(lambda ids: gpt2()(ids).logits[:, -1], WIDTH)
    results = []
    with torch.no_grad():
        for model in (gpt2(), anew):
            options: dict[str, Any] = {"hmm": small(8)} if proposal == "p-gcd" else {}
            results.append(
                smc(
                    model,
                    [[0, 1], [1, 1], [2, 0]],
                    automaton(),
                    particles=12,
                    max_new_tokens=8,
                    proposal=proposal,
                    ess_threshold=0.9,
                    generator=seeded(4),
                    **options,
                )
            )
    assert any(one.resampled for one in results[0])
    for cached, whole in zip(*results, strict=True):
        assert cached.tokens == whole.tokens
        assert cached.resampled == whole.resampled
        assert cached.log_evidence == pytest.approx(whole.log_evidence, abs=1e-3)


def test_prompts_of_different_lengths_and_constraints_of_their_own() -> None:
    prompts, patterns = [[0], [1, 2, 0, 1, 1], [2, 2]], ["(a|b)*abb?", "a+", "b(ab)*"]
    automata = [automaton(pattern) for pattern in patterns]
    found = smc(
        gpt2(), prompts, automata, particles=6, max_new_tokens=5, ess_threshold=0.0, generator=seeded(2)
    )
    for prompt, constraint, one in zip(prompts, automata, found, strict=True):
        for tokens, log_weight in zip(one.tokens, one.log_weights.tolist(), strict=True):
            matcher, expected = constraint.matcher(5), 0.0
            for place, token in enumerate(tokens):
                with torch.no_grad():
                    logits = gpt2()(torch.tensor([prompt + tokens[:place]])).logits[0, -1]
                allowed = [x for x in range(4) if matcher.validate_tokens([x])]
                expected += float(logits.softmax(0)[allowed].sum().log())
                assert matcher.accept_token(token)
            assert matcher.is_terminated() or (matcher.is_accepting() and len(tokens) == 5)
            assert log_weight == pytest.approx(expected, abs=1e-3)


@pytest.mark.parametrize("proposal", ["lcd", "gcd"])
@pytest.mark.parametrize("length", ["exact", "at_most"])
def test_grammars_with_a_stack_are_sampled_too(proposal: str, length: str) -> None:
    closing = Vocabulary([b"a", b"b", b"bbb", b""], 3)  # one token closes three levels
    grammar = compile(lark_grammar('start: "a" start "b" | "ab" | start "a"'), closing)
    exact, evidence = posterior(list(accepted_sequences(grammar, TOKENS, length == "exact")), probability)
    errors = []
    for particles in (1, 8, 64):
        found = smc(
            MODEL,
            [[0]] * (800 // particles),
            grammar,
            particles=particles,
            max_new_tokens=TOKENS,
            proposal=proposal,
            length=length,
            generator=seeded(6),
        )
        evidences = torch.tensor([math.exp(one.log_evidence) for one in found])
        error = float(evidences.std()) / math.sqrt(len(found))
        assert abs(float(evidences.mean()) - evidence) < 4 * error
        assert {tuple(tokens) for one in found for tokens in one.distribution()} <= set(exact)
        errors.append(sum(total_variation(one.distribution(), exact) for one in found) / len(found))
    assert errors[0] > errors[1] > errors[2]
    assert errors[2] < 0.35 * errors[0]


def test_canonical_tokenizations_are_sampled(tekken: Vocabulary) -> None:
    canonical = compile(regex("(hello|world)+"), tekken, tokenization="canonical")
    model = CallbackModel(lambda ids: torch.zeros(len(ids), len(tekken)), len(tekken))
    for proposal, length in (("lcd", "at_most"), ("lcd", "exact"), ("gcd", "at_most")):
        found = smc(
            model, [[]], canonical, particles=3, max_new_tokens=4, proposal=proposal, length=length, generator=seeded(1)
        )[0]  # fmt: skip
        assert all(canonical.matcher().accept_tokens(tokens) for tokens in found.tokens)
    for proposal in ("gcd", "p-gcd"):
        with pytest.raises(ConstraintError, match="tokenization"):
            smc(
                model, [[]], canonical, particles=3, max_new_tokens=4, proposal=proposal, length="exact",
                hmm=Hmm.random(2, len(tekken)),
            )  # fmt: skip


def test_more_particles_than_texts_are_shared_out() -> None:
    found = smc(MODEL, [[0]], automaton("ab|b"), particles=8192, max_new_tokens=3, generator=seeded(1))[0]
    exact, _ = posterior(list(accepted_sequences(automaton("ab|b"), 3, False)), probability)
    assert set(found.distribution()) <= set(exact)
    assert total_variation(found.distribution(), exact) < 0.1
    with pytest.raises(ValueError, match=r"Particles\.draw: count must be at least 1"):
        found.draw(0)
    empty = smc(MODEL, [[0]], automaton("a*"), particles=2, max_new_tokens=0)[0]
    assert (empty.tokens, empty.log_evidence) == ([[], []], 0.0)


def test_products_are_made_once_and_used_again() -> None:
    hmm = small(8).to(dtype=torch.float32)
    product = HmmProduct(hmm, automaton(), TOKENS)
    fresh, again = (run(2, 4, "p-gcd", hmm=given) for given in (hmm, product))
    assert [one.tokens for one in fresh] == [one.tokens for one in again]
    listed = run(2, 4, "p-gcd", hmm=[product, product])
    assert [one.tokens for one in fresh] == [one.tokens for one in listed]
    with pytest.raises(HmmError, match="is asked about"):
        run(2, 4, "p-gcd", "exact", hmm=product)
    with pytest.raises(HmmError, match="one product for each prompt"):
        run(2, 4, "p-gcd", hmm=[product])
    with pytest.raises(HmmError, match="needs hmm"):
        run(2, 4, "p-gcd", hmm=None)


def never(ids: torch.Tensor) -> torch.Tensor:
    raise AssertionError("the model was called")


@pytest.mark.parametrize("proposal", PROPOSALS)
def test_what_cannot_be_done_is_refused_before_the_model_is_called(proposal: str) -> None:
    model = CallbackModel(never, WIDTH)
    hmm = small(8)

    def refused(**options: Any) -> None:
        smc(
            options.pop("model", model),
            [[0]],
            options.pop("automata", automaton("a{4}|(ab){2}")),
            **{"particles": 2, "max_new_tokens": 3, "proposal": proposal, "hmm": hmm} | options,
        )

    with pytest.raises(TokenLimitError, match="2"):
        refused(max_new_tokens=1)
    with pytest.raises(TokenLimitError, match="5"):
        refused(automata=automaton("(aa)*a"), length="exact", max_new_tokens=4)
    with pytest.raises(VocabularyMismatchError, match="scores 3 tokens"):
        refused(model=CallbackModel(never, 3))
    with pytest.raises(ParticleError, match="they are 0, 3, 0"):
        refused(particles=0)
    for option in (
        {"max_new_tokens": -1},
        {"ess_threshold": 1.5},
        {"defensive": -1},
        {"proposal": "best"},
        {"resampling": "cubic"},
    ):
        with pytest.raises(ParticleError):
            refused(**option)
    with pytest.raises(ModelError, match="2 constraints for 1 prompt:"):
        refused(automata=[automaton(), automaton()])
    if proposal == "p-gcd":
        with pytest.raises(VocabularyMismatchError, match="over 5 tokens"):
            refused(hmm=Hmm.random(2, 5))


def test_what_the_model_says_is_checked() -> None:
    def broken(ids: torch.Tensor) -> torch.Tensor:
        return torch.full((len(ids), WIDTH), math.nan if ids.shape[1] > 1 else 0.0)

    with pytest.raises(LogitsError):
        smc(CallbackModel(broken, WIDTH), [[0]], automaton(), particles=2, max_new_tokens=3)
    with pytest.raises(ModelError, match="no prompts"):
        smc(MODEL, [], automaton(), particles=2, max_new_tokens=3)

    def only_beyond(ids: torch.Tensor) -> torch.Tensor:
        return torch.tensor([[-math.inf] * 4 + [0.0] * 2]).expand(len(ids), -1)

    for proposal in PROPOSALS:
        found = smc(
            as_language_model(only_beyond, WIDTH), [[0]], automaton(), particles=3, max_new_tokens=3, proposal=proposal,
            hmm=small(8),
        )[0]  # fmt: skip
        assert found.log_evidence == -math.inf
        assert found.tokens == [[], [], []]


def test_particles_are_plotted() -> None:
    """The bars are the effective sizes, and the probabilities of texts."""
    found = run(1, 32, "gcd", generator=seeded(3), ess_threshold=1.0)[0]
    picture = found._repr_svg_()
    assert found.resampled and picture.count(", resampled</text>") == len(found.resampled)
    assert all(f"{size:.1f}" in picture for size in found.effective)
    texts: dict[bytes, float] = {}
    for row, weight in zip(found.rows, found.weights.tolist(), strict=True):
        texts[row.text] = texts.get(row.text, 0.0) + weight
    likeliest = max(texts, key=texts.__getitem__)
    assert f"&quot;{likeliest.decode()}&quot; {texts[likeliest]:.1%}" in picture
    assert picture.count("%</text>") == min(len(texts), 10)
