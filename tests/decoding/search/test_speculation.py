"""Speculative decoding: the target's own constrained distribution whatever the draft, greedily its own text."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

import tokenfst
from reference.decoding.masked_sampling import sequence_probabilities
from tokenfst import Vocabulary, compile, regex
from tokenfst.decoding.models.language_model import CallbackModel
from tokenfst.decoding.models.sampling import Sampling
from tokenfst.decoding.search import drafts
from tokenfst.decoding.search.drafts import PromptLookup
from tokenfst.decoding.search.jump_forward import generate
from tokenfst.decoding.search.speculation import Speculation, _judge, speculative_generate
from tokenfst.errors import (
    DecodingError,
    LogitsError,
    ModelError,
    TokenLimitError,
    VocabularyMismatchError,
)

TOKENS = [b"a", b"b", b"ab", b"c", b"ba", b"abc", b'"', b"1", b"2", b",", b"[", b"]", b""]
END = len(TOKENS) - 1
PATTERNS = ["(abc|ab|c)+", "[ab]{3,9}c?", "(a|b)*1(2|c)*", "abcabc"]


pytestmark = pytest.mark.usefixtures("one_torch_thread")


@pytest.fixture(scope="module")
def vocabulary() -> Vocabulary:
    return Vocabulary(TOKENS, END)


def make_llama(seed: int, layers: int) -> LlamaForCausalLM:
    torch.manual_seed(seed)
    sizes = {
        "hidden_size": 16,
        "intermediate_size": 24,
        "num_hidden_layers": layers,
        "num_attention_heads": 2,
    }
    config = LlamaConfig(
        vocab_size=len(TOKENS) + 3,
        max_position_embeddings=128,
        bos_token_id=END,
        eos_token_id=END,
        pad_token_id=END,
        **sizes,
    )
    model = LlamaForCausalLM(config).eval()
    for parameter in model.parameters():
        parameter.data.mul_(4)
    return model


@pytest.fixture(scope="module")
def target() -> LlamaForCausalLM:
    return make_llama(0, 2)


@pytest.fixture(scope="module")
def draft() -> LlamaForCausalLM:
    return make_llama(1, 1)


def grammar() -> tokenfst.Grammar:
    return tokenfst.lark_grammar('start: list | /[12]/\nlist: "[" [start ("," start)*] "]"')


@pytest.mark.parametrize("branching", [(), (1, 1, 1, 1), (2,), (3, 2, 1), (1, 2, 2)])
def test_greedy_text_is_the_targets_own(
    vocabulary: Vocabulary, target: LlamaForCausalLM, draft: LlamaForCausalLM, branching: Sequence[int]
) -> None:
    for constraint in (*map(regex, PATTERNS), grammar()):
        automaton = compile(constraint, vocabulary)
        for seed, prompt in enumerate(([1, 2, 3], [5], [0, 1, 0, 1])):
            limit = 12 + 5 * seed
            expected = generate(target, [prompt], automaton, max_new_tokens=limit)
            for drafter in (draft, target):
                found = speculative_generate(
                    target, drafter, prompt, automaton, max_new_tokens=limit, branching=branching
                )
                assert found.tokens == expected[0].tokens
                assert found.target_calls <= expected.calls + 1
                if drafter is target and branching:
                    assert found.accepted == found.tried and found.acceptance in (0.0, 1.0)


def test_greedy_with_proposals_from_the_prompt(vocabulary: Vocabulary, target: LlamaForCausalLM) -> None:
    looked_up = PromptLookup(ngram=1, length=5, branches=3)
    assert looked_up.propose([1, 2, 3, 1, 2, 1]) == [[2, 1], [2, 3, 1, 2, 1]]
    accepted = 0
    for constraint in (*map(regex, PATTERNS), grammar()):
        automaton = compile(constraint, vocabulary)
        for prompt in ([0, 1, 2, 5, 3, 0, 4, 0], [900, 1, 2, 1], [1]):
            expected = generate(target, [[t % 16 for t in prompt]], automaton, max_new_tokens=24)
            found = speculative_generate(
                target, Reduced(looked_up), [t % 16 for t in prompt], automaton, max_new_tokens=24
            )
            assert found.tokens == expected[0].tokens and found.draft_calls == 0
            accepted += sum(found.accepted)
    assert accepted > 0


class Reduced:
    """Proposals with ids that the vocabulary does not have, and some that the constraint forbids."""

    def __init__(self, inner: PromptLookup) -> None:
        self._inner = inner

    def propose(self, tokens: Sequence[int]) -> list[Sequence[int]]:
        return [[-1], [99, 1], [END, 1], *self._inner.propose(tokens), [1, END], []]


# --- the distribution ---------------------------------------------------------------------------------


def random_model(width: int, seed: int, sharp: float) -> CallbackModel:
    """Scores by a hash of the row."""
    table = torch.randn(31, width, generator=torch.Generator().manual_seed(seed)) * sharp

    def scores(ids: torch.Tensor) -> torch.Tensor:
        weights = torch.tensor([7**k % 31 for k in range(1, ids.shape[1] + 1)], dtype=torch.long)
        return table[((ids + 1) * weights).sum(1) % 31]

    return CallbackModel(scores, width)


class Fixed:
    """Always the same proposals."""

    def propose(self, tokens: Sequence[int]) -> list[list[int]]:
        return [[0, 1], [0, 4], [2], [3, 3]]


def check_counts(counts: Counter[tuple[int, ...]], expected: dict[tuple[int, ...], float]) -> None:
    """Chi-square, cells of less than 5 together, at the quantile of 4.5 standard deviations (Wilson and Hilferty)."""
    runs = counts.total()
    assert set(counts) <= set(expected)
    cells = {key: runs * mass for key, mass in expected.items() if runs * mass >= 5}
    rest = runs - sum(cells.values())
    chi = sum((counts[key] - mass) ** 2 / mass for key, mass in cells.items())
    if rest >= 5:
        chi += (sum(counts[key] for key in expected if key not in cells) - rest) ** 2 / rest
    freedom = len(cells) - (rest < 5)
    assert freedom > 0, freedom
    assert chi < freedom * (1 - 2 / (9 * freedom) + 4.5 * (2 / (9 * freedom)) ** 0.5) ** 3, (chi, freedom)


@pytest.mark.parametrize("settings", [{}, {"temperature": 1.6, "top_k": 4, "top_p": 0.9}])
@pytest.mark.parametrize("width", [1, 2, 5])
def test_a_place_has_the_targets_distribution(
    vocabulary: Vocabulary, width: int, settings: dict[str, float]
) -> None:
    """What is left after siblings are rejected makes up for them: 2,000 drafts of one place."""
    automaton = compile(regex("[abc]{2}"), vocabulary)
    target, draft = random_model(len(TOKENS), 1, 1.5), random_model(len(TOKENS), 2, 1.5)
    generator = torch.Generator().manual_seed(width)
    sampling = Sampling(True, **settings)
    counts: Counter[tuple[int, ...]] = Counter()
    tree = drafts.DraftTree(automaton.matcher(), len(TOKENS), drafts.ForcedRuns(vocabulary, 9))
    masked = tree.masked(-1, target.start([[]]).logits[0])
    drafted = tree.masked(-1, draft.start([[]]).logits[0])
    for _ in range(2000):
        tree.draws[-1] = []
        for token, drawn_from in drafts._draws(drafted, width, sampling, generator):
            tree.tree.tokens.append(token)
            tree.draws[-1].append((len(tree.tree.tokens) - 1, drawn_from))
        counts[(_judge(tree, -1, masked, sampling, generator)[1],)] += 1
    exact = sampling.probabilities(masked)[0].tolist()
    check_counts(counts, {(token,): mass for token, mass in enumerate(exact) if mass > 0})


@pytest.mark.parametrize("runs", [150, pytest.param(4000, marks=pytest.mark.soak)])
@pytest.mark.parametrize("how", ["chain", "tree", "wide", "proposals"])
def test_the_distribution_of_texts_is_the_targets(how: str, runs: int) -> None:
    small = Vocabulary([b"a", b"b", b"ab", b"c", b"ba", b""], eos_token_id=5)
    automaton = compile(regex("(ab|ba|aab)*c?"), small)
    target, draft = random_model(6, 1, 1.2), random_model(7, 2, 0.8)
    settings = {"temperature": 1.2, "top_k": 4} if how == "tree" else {}
    expected = sequence_probabilities(automaton, target, 4, **settings)
    assert abs(sum(expected.values()) - 1) < 1e-9 and len(expected) > 6
    branching = {"chain": (1, 1, 1), "tree": (2, 2), "wide": (4,), "proposals": ()}[how]
    drafter = Fixed() if how == "proposals" else draft
    generator = torch.Generator().manual_seed(3)
    counts: Counter[tuple[int, ...]] = Counter()
    accepted = 0
    for _ in range(runs):
        found = speculative_generate(
            target,
            drafter,
            [],
            automaton,
            max_new_tokens=4,
            branching=branching,
            do_sample=True,
            generator=generator,
            **settings,
        )
        counts[tuple(found.tokens)] += 1
        accepted += sum(found.accepted)
        assert sum(found.accepted) <= sum(found.tried)
    assert accepted > runs / 4
    check_counts(counts, expected)


def test_every_mask_is_made_once(vocabulary: Vocabulary, monkeypatch: pytest.MonkeyPatch) -> None:
    """Draft and target look at the same rows."""
    filled: list[tuple[int, ...]] = []

    class Counting:
        def __init__(self, matcher: tokenfst.Matcher) -> None:
            self._matcher = matcher

        def __getattr__(self, name: str) -> object:
            return getattr(self._matcher, name)

        def fork(self) -> Counting:
            return Counting(self._matcher.fork())

        def fill_next_token_bitmask(self, bitmask: object, index: int = 0) -> bool:
            filled.append(tuple(self._matcher.tokens))
            return self._matcher.fill_next_token_bitmask(bitmask, index)

    class Runs(drafts.ForcedRuns):
        def take(self, matcher: Counting) -> list[int]:
            return super().take(matcher._matcher)

    automaton = compile(regex("[ab]{3,9}c?"), vocabulary)
    model = random_model(len(TOKENS), 4, 1.0)
    runs = Runs(vocabulary, 8)
    tree = drafts.DraftTree(Counting(automaton.matcher(8)), len(TOKENS), runs)
    small = drafts.LaggingSession(model, [])
    sampling = drafts.Sampling(do_sample=True)
    drafts.draw_tree(tree, small, (2, 2), sampling, torch.Generator().manual_seed(0))
    for _ in range(2):
        for place in [-1, *tree.ends.values()]:
            if not tree.is_finished(place):
                tree.masked(place, torch.zeros(len(TOKENS)))
    assert len(filled) == len(set(filled)) > 4


# --- transformers' own loop ---------------------------------------------------------------------------


@pytest.mark.parametrize("pattern", PATTERNS)
def test_assisted_generation_with_a_processor_gives_the_same_text(
    vocabulary: Vocabulary, target: LlamaForCausalLM, draft: LlamaForCausalLM, pattern: str
) -> None:
    automaton = compile(regex(pattern), vocabulary)
    processor = tokenfst.ConstraintLogitsProcessor(automaton, max_new_tokens=14)
    prompt = [1, 2, 3]
    out = target.generate(
        torch.tensor([prompt]),
        assistant_model=draft,
        logits_processor=[processor],
        max_new_tokens=14,
        do_sample=False,
    )
    theirs = out[0, 3:].tolist()
    ours = speculative_generate(target, draft, prompt, automaton, max_new_tokens=14)
    assert theirs == list(ours.tokens)


def test_other_architectures_and_branches(vocabulary: Vocabulary, draft: LlamaForCausalLM) -> None:
    torch.manual_seed(0)
    config = GPT2Config(vocab_size=len(TOKENS), n_positions=64, n_embd=16, n_layer=1, n_head=2)
    gpt = GPT2LMHeadModel(config).eval()
    automaton = compile(regex("[ab]{3,9}c?"), vocabulary)
    expected = generate(gpt, [[1]], automaton, max_new_tokens=10)
    for branching in ((1, 1, 1), (2, 2, 2)):
        found = speculative_generate(gpt, draft, [1], automaton, max_new_tokens=10, branching=branching)
        assert found.tokens == expected[0].tokens
    callback = random_model(len(TOKENS), 4, 1.0)
    expected = generate(callback, [[]], automaton, max_new_tokens=10)
    found = speculative_generate(callback, random_model(20, 5, 1.0), [], automaton, max_new_tokens=10)
    assert found.tokens == expected[0].tokens


def test_canonical_automata() -> None:
    tokens = [*(bytes([byte]) for byte in range(256)), b"ab", b"abc", b""]
    known = Vocabulary(tokens, 258, split_pattern=r"\s+|\S+")
    automaton = compile(regex("(abc|abd|ab){3,5}"), known, tokenization="canonical")
    target, draft = random_model(259, 1, 2.0), random_model(259, 2, 2.0)
    expected = generate(target, [[]], automaton, max_new_tokens=20)
    found = speculative_generate(target, draft, [], automaton, max_new_tokens=20, branching=(2, 1))
    assert found.tokens == expected[0].tokens
    copied = speculative_generate(target, PromptLookup(1), [], automaton, max_new_tokens=20)
    assert copied.tokens == expected[0].tokens


# --- bad input ----------------------------------------------------------------------------------------


def test_what_does_not_fit_is_refused_before_a_model_is_called(vocabulary: Vocabulary) -> None:
    def scores(ids: torch.Tensor) -> torch.Tensor:
        raise AssertionError("called")

    never, narrow = CallbackModel(scores, len(TOKENS)), CallbackModel(scores, 4)
    automaton = compile(regex("[ab]{5}"), vocabulary)

    def run(target: object = never, draft: object = never, limit: int = 9, **options: object) -> Speculation:
        return speculative_generate(target, draft, [1], automaton, max_new_tokens=limit, **options)

    with pytest.raises(VocabularyMismatchError, match="the target scores 4 tokens"):
        run(target=narrow)
    with pytest.raises(VocabularyMismatchError, match="the draft scores 4 tokens"):
        run(draft=narrow)
    with pytest.raises(TokenLimitError, match="least number from here is 3"):
        run(limit=2)
    with pytest.raises(DecodingError, match="each place needs 1 child"):
        run(branching=(1, 0))
    with pytest.raises(DecodingError, match="max_new_tokens=0"):
        run(limit=0)
    with pytest.raises(DecodingError, match="temperature"):
        run(temperature=-1.0)
    with pytest.raises(ModelError, match="cannot decode from int"):
        run(draft=3)
    with pytest.raises(DecodingError, match="1 or more"):
        PromptLookup(ngram=0)
    forced = speculative_generate(never, never, [], compile(regex("cc"), vocabulary), max_new_tokens=9)
    assert forced.tokens == (3, 3, END) and forced.target_calls == 0


@pytest.mark.parametrize("bad", ["target", "draft"])
def test_scores_that_are_none(vocabulary: Vocabulary, bad: str) -> None:
    broken = CallbackModel(lambda ids: torch.full((len(ids), len(TOKENS)), float("nan")), len(TOKENS))
    sound = random_model(len(TOKENS), 4, 1.0)
    models = {"target": sound, "draft": sound} | {bad: broken}
    with pytest.raises(LogitsError):
        speculative_generate(
            models["target"],
            models["draft"],
            [],
            compile(regex("[ab]{5}"), vocabulary),
            max_new_tokens=9,
            do_sample=True,
        )


@pytest.mark.soak
def test_assisted_sampling_has_the_targets_distribution() -> None:
    small = Vocabulary([b"a", b"b", b"ab", b"c", b"ba", b""], eos_token_id=5)
    automaton = compile(regex("(ab|ba|aab)*c?"), small)
    sizes = {"hidden_size": 16, "intermediate_size": 24, "num_attention_heads": 2, "vocab_size": 6}
    models = []
    for seed in range(2):
        torch.manual_seed(seed)
        config = LlamaConfig(num_hidden_layers=1, bos_token_id=5, eos_token_id=5, pad_token_id=5, **sizes)
        models.append(LlamaForCausalLM(config).eval())
        for parameter in models[-1].parameters():
            parameter.data.mul_(3)

    def scores(ids: torch.Tensor) -> torch.Tensor:
        with torch.no_grad():
            return models[0](torch.cat([torch.ones(len(ids), 1, dtype=torch.long), ids], dim=1)).logits[:, -1]

    expected = sequence_probabilities(automaton, CallbackModel(scores, 6), 4)
    processor = tokenfst.ConstraintLogitsProcessor(automaton, max_new_tokens=4)
    counts: Counter[tuple[int, ...]] = Counter()
    torch.manual_seed(0)
    for _ in range(600):
        out = models[0].generate(
            torch.tensor([[1]]),
            assistant_model=models[1],
            logits_processor=[processor],
            max_new_tokens=4,
            do_sample=True,
            top_k=0,
        )
        tokens = out[0, 1:].tolist()
        counts[tuple(tokens[: tokens.index(5) + 1] if 5 in tokens else tokens)] += 1
    check_counts(counts, expected)
