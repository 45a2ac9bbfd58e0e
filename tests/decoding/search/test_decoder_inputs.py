"""Every decoder on every bad input: a typed error before the model is called, or behaviour that is defined."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from tokenfst import (
    PromptLookup,
    TokenAutomaton,
    Vocabulary,
    automata_beam_generate,
    automata_beam_search,
    classify,
    compile,
    exact_length_sample,
    generate,
    label_lists,
    label_probabilities,
    lark_grammar,
    multi_label,
    regex,
    smc,
    speculative_generate,
    top_labels,
)
from tokenfst.decoding.models.language_model import CallbackModel, CallbackSession, Prompts
from tokenfst.decoding.particles.hmm import Hmm
from tokenfst.errors import (
    ConstraintError,
    EmptyLanguageError,
    LogitsError,
    ModelError,
    TokenIdError,
    TokenLimitError,
    VocabularyMismatchError,
)

pytestmark = [
    pytest.mark.usefixtures("one_torch_thread"),
    pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning"),
]

TOKENS = [*(bytes([b]) for b in range(256)), b"ab", b"))", b"((", b""]
A, B, X = b"abx"
AB, END, WIDTH = 256, 259, 260
VOCABULARY = Vocabulary(TOKENS, eos_token_id=END, split_pattern=r"\p{L}+|\P{L}+")
Found = list[list[tuple[int, ...]]]
"""Of each prompt the sequences that a decoder found."""


class Counted:
    """A model that counts how often it is called."""

    def __init__(self, scores: Callable[[torch.Tensor], torch.Tensor], width: int = WIDTH) -> None:
        self.calls, self.width, self.device = 0, width, torch.device("cpu")
        self._model = CallbackModel(self._scored, width)
        self._scores = scores

    def _scored(self, ids: torch.Tensor) -> torch.Tensor:
        self.calls += 1
        return self._scores(ids)

    def start(self, prompts: Prompts) -> CallbackSession:
        return self._model.start(prompts)


def bigrams(ids: torch.Tensor) -> torch.Tensor:
    table = torch.randn(WIDTH, WIDTH, generator=torch.Generator().manual_seed(3))
    return table[ids[:, -1]]


def constant(values: dict[int, float], base: float = 0.0) -> Callable[[torch.Tensor], torch.Tensor]:
    row = torch.full((WIDTH,), base)
    for token, value in values.items():
        row[token] = value
    return lambda ids: row.repeat(len(ids), 1)


# --- the decoders, all called alike ------------------------------------------------------------------------------


def by_beams(length: str, model: Any, prompts: Prompts, automata: Any, tokens: int, k: int = 3) -> Found:
    found = automata_beam_search(
        model, prompts, automata, num_beams=k, max_new_tokens=tokens, num_return_sequences=k, length=length
    )
    return [[each.tokens for each in ways] for ways in found]


def by_draws(length: str, model: Any, prompts: Prompts, automata: Any, tokens: int, k: int = 1) -> Found:
    drawn = exact_length_sample(
        model, prompts, automata, max_new_tokens=tokens, length=length, generator=seeded()
    )
    return [[sample.tokens] for sample in drawn]


def by_particles(
    proposal: str, length: str, model: Any, prompts: Prompts, automata: Any, tokens: int, k: int = 4
) -> Found:
    hmm = Hmm.random(3, WIDTH, generator=seeded())
    found = smc(
        model,
        prompts,
        automata,
        particles=k,
        max_new_tokens=tokens,
        proposal=proposal,
        length=length,
        hmm=hmm if proposal == "p-gcd" else None,
        generator=seeded(),
    )
    return [list(one.distribution()) for one in found]


def by_loop(
    jump_forward: Any, do_sample: bool, model: Any, prompts: Prompts, automata: Any, tokens: int, k: int = 1
) -> Found:
    found = generate(
        model,
        prompts,
        automata,
        max_new_tokens=tokens,
        jump_forward=jump_forward,
        do_sample=do_sample,
        generator=seeded(),
    )
    return [[tuple(row)] for row in found.tokens]


def by_speculation(draft: Any, model: Any, prompts: Prompts, automata: Any, tokens: int, k: int = 2) -> Found:
    """Of one prompt."""
    found = speculative_generate(
        model,
        draft or model,
        prompts[0] if len(prompts) == 1 else prompts,
        automata,
        max_new_tokens=tokens,
        branching=(k, 2),
    )
    return [[tuple(found.tokens)]]


def seeded() -> torch.Generator:
    return torch.Generator().manual_seed(1)


Decoder = Callable[..., Found]
DECODERS: dict[str, Decoder] = {
    "beams": partial(by_beams, "at_most"),
    "beams, exact": partial(by_beams, "exact"),
    "draws": partial(by_draws, "at_most"),
    "draws, exact": partial(by_draws, "exact"),
    **{
        f"particles, {proposal}, {length}": partial(by_particles, proposal, length)
        for proposal in ("lcd", "gcd", "p-gcd")
        for length in ("at_most", "exact")
    },
    "loop": partial(by_loop, False, False),
    "loop, jumping, drawn": partial(by_loop, True, True),
    "loop, canonical": partial(by_loop, "canonical", False),
    "speculation": partial(by_speculation, None),
    "speculation, look-up": partial(by_speculation, PromptLookup(ngram=1)),
}
BATCHED = {name for name in DECODERS if not name.startswith("speculation")}
every_decoder = pytest.mark.parametrize("name", DECODERS)


@cache
def automaton(pattern: str = "(ab)+") -> TokenAutomaton:
    return compile(regex(pattern), VOCABULARY)


# --- what is refused before the model is called -------------------------------------------------------------------


def unspellable() -> TokenAutomaton:
    return compile(regex("zebra"), few(b"a", b"b"))


def few(*tokens: bytes) -> Vocabulary:
    """A vocabulary of these tokens, as large as the other."""
    return Vocabulary([*tokens, *[b""] * (WIDTH - len(tokens))], END, split_pattern=VOCABULARY.split_pattern)


def elsewhere() -> TokenAutomaton:
    return compile(regex("(ab)+"), Vocabulary([*TOKENS[1:-1], TOKENS[0], b""], eos_token_id=END))


REFUSED: dict[str, tuple[dict[str, Any], type[Exception], str]] = {
    "an automaton without a sequence": ({"automata": unspellable}, EmptyLanguageError, "no token sequence"),
    "no sequence so short": (
        {"automata": lambda: automaton("xxxxx|xxxxxxx"), "tokens": 3},
        TokenLimitError,
        r"3 tokens.*\b5\b",
    ),
    "no sequence so short, one of two": (
        {"automata": lambda: [automaton(), automaton("xxxxx")], "tokens": 3, "prompts": [[0], [1]]},
        TokenLimitError,
        r"3 tokens.*\b5\b",
    ),
    "no token at all": ({"tokens": 0}, ValueError, "0"),
    "a negative number of tokens": ({"tokens": -1}, ValueError, "-1"),
    "a model of another vocabulary": ({"width": 5}, VocabularyMismatchError, "scores 5 tokens, .* has 260"),
    "constraints of two vocabularies": (
        {"automata": lambda: [automaton(), elsewhere()], "prompts": [[0], [1]]},
        VocabularyMismatchError,
        "one vocabulary",
    ),
    "constraints and prompts of different number": (
        {"automata": lambda: [automaton()] * 3, "prompts": [[0], [1]]},
        ModelError,
        "3 constraints for 2 prompts",
    ),
    "no prompts": ({"prompts": []}, ModelError, "no prompts"),
    "a constraint that is not compiled": (
        {"automata": lambda: regex("a")},
        ConstraintError,
        "compiled constraints, not <Language",
    ),
    "a pattern as a constraint": ({"automata": lambda: "(ab)+"}, ConstraintError, "compiled constraints"),
}
OF_BATCHES = {"constraints of two", "constraints and prompts", "no prompts", "no sequence so short, one"}


def refusals() -> Iterator[Any]:
    for name in DECODERS:
        for what in REFUSED:
            if name in BATCHED or not any(what.startswith(batch) for batch in OF_BATCHES):
                yield pytest.param(name, what, id=f"{name}: {what}")


@pytest.mark.parametrize(("name", "what"), list(refusals()))
def test_it_is_refused_before_the_model_is_called(name: str, what: str) -> None:
    given, error, message = REFUSED[what]
    model = Counted(bigrams, given.get("width", WIDTH))
    with pytest.raises(error, match=message):
        DECODERS[name](
            model, given.get("prompts", [[0]]), given.get("automata", automaton)(), given.get("tokens", 6)
        )
    assert model.calls == 0


@every_decoder
def test_the_least_budget_that_is_named_works(name: str) -> None:
    for tokens in (5, 7) if "exact" in name else (5,):
        ((found, *_), *_) = DECODERS[name](Counted(bigrams), [[0]], automaton("xxxxx|xxxxxxx"), tokens)
        assert found[:tokens] == (X,) * tokens


@every_decoder
def test_budgets_of_stacks_are_least_too(name: str) -> None:
    """One token closes two frames: three tokens suffice, and the distance, an upper bound, is four."""
    nested = compile(lark_grammar('start: "(" x ")"\nx: "(" x ")" | "(" "a" ")"'), VOCABULARY)
    assert nested.distance() == 4
    model = Counted(bigrams)
    if "p-gcd" in name:
        with pytest.raises(ConstraintError, match="truncate"):
            DECODERS[name](model, [[0]], nested, 3)
    else:
        (found,) = DECODERS[name](model, [[0]], nested, 3)
        assert all(VOCABULARY.decode(tokens) == b"((a))" for tokens in found)
        assert found or "lcd" in name
        model.calls = 0
        with pytest.raises(TokenLimitError, match=r"2 tokens.*\b3\b"):
            DECODERS[name](model, [[0]], nested, 2)
    assert model.calls == 0


@pytest.fixture(scope="module")
def llama() -> LlamaForCausalLM:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=WIDTH,
        hidden_size=8,
        intermediate_size=8,
        num_hidden_layers=1,
        num_attention_heads=2,
        bos_token_id=END,
        eos_token_id=END,
        pad_token_id=END,
    )
    return LlamaForCausalLM(config).eval()


@every_decoder
@pytest.mark.parametrize(
    ("prompt", "error", "message"),
    [
        ([0, 999], TokenIdError, "prompt 0 has token id 999, and LlamaForCausalLM knows 260"),
        ([0, -1], TokenIdError, "token id -1"),
        ([], ModelError, "at least one token in each prompt"),
    ],
)
def test_prompts_that_the_model_does_not_know(
    name: str, llama: LlamaForCausalLM, prompt: list[int], error: type[Exception], message: str
) -> None:
    calls = []
    hook = llama.register_forward_pre_hook(lambda *_: calls.append(1))
    with pytest.raises(error, match=message):
        DECODERS[name](llama, [prompt], automaton("(ab)+|x"), 6)
    hook.remove()
    assert not calls


# --- what the model says -------------------------------------------------------------------------------------------


@every_decoder
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_scores_that_are_no_distribution(name: str, bad: float) -> None:
    """Of tokens that are allowed, or of all."""
    for scores in (constant({A: bad, AB: bad}), constant({}, bad)):
        if bad == -math.inf and scores(torch.zeros(1, 1))[0, B] == 0:
            continue
        with pytest.raises(LogitsError):
            DECODERS[name](Counted(scores), [[0]], automaton(), 6)


@every_decoder
def test_a_model_that_gives_every_allowed_token_the_probability_zero(name: str) -> None:
    """Beam search finds a text all the same; particles weigh nothing; who must choose one says that none is there."""
    model = Counted(constant(dict.fromkeys((A, B, AB, END), -math.inf)))
    if name.startswith("beams"):
        (found,) = DECODERS[name](model, [[0]], automaton(), 6)
        assert found and all(accepted(automaton(), tokens) for tokens in found)
    elif name.startswith("particles"):
        assert DECODERS[name](model, [[0]], automaton(), 6) == [[]]
    else:
        with pytest.raises(LogitsError, match="row 0 may take"):
            DECODERS[name](model, [[0]], automaton(), 6)


@pytest.mark.parametrize("name", [name for name in DECODERS if name != "loop, canonical"])
def test_some_allowed_tokens_of_probability_zero_are_not_taken(name: str) -> None:
    """The token `ab`, although the language allows it at every other place."""
    model = Counted(constant({AB: -math.inf}))
    (found,) = DECODERS[name](model, [[0]], automaton(), 6)
    assert found and all(accepted(automaton(), tokens) and AB not in tokens for tokens in found)


# --- more than there is, and rows of any lengths --------------------------------------------------------------------


@every_decoder
def test_more_beams_or_particles_than_sequences(name: str) -> None:
    """`ab` has two spellings, each with an end token or at the limit without one."""
    (found,) = DECODERS[name](Counted(bigrams), [[0]], automaton("ab"), 2, k=9)
    spellings = {(A, B)} if "exact" in name else {(A, B), (AB, END)}
    assert set(found) <= spellings and len(found) == len(set(found))
    if name.startswith("beams"):
        assert set(found) == spellings


@every_decoder
def test_prompts_of_different_lengths(name: str, llama: LlamaForCausalLM) -> None:
    """Every row is complete, and as if alone where nothing is drawn."""
    prompts = [[0], [3, 1, 0, 2, 0], [1, 1]]
    if name not in BATCHED:
        with pytest.raises(ModelError, match="one prompt"):
            DECODERS[name](llama, prompts, automaton(), 6)
        return
    together = DECODERS[name](llama, prompts, automaton(), 6)
    assert len(together) == len(prompts)
    for prompt, found in zip(prompts, together, strict=True):
        assert all(accepted(automaton(), tokens) for tokens in found)
        assert found or "lcd, exact" in name
        if name.startswith(("beams", "loop")) and "drawn" not in name:
            assert DECODERS[name](llama, [prompt], automaton(), 6) == [found]


def accepted(constraint: TokenAutomaton, tokens: Sequence[int]) -> bool:
    matcher = constraint.matcher()
    return matcher.accept_tokens(tokens) and (matcher.is_terminated() or matcher.is_accepting())


def test_generate_is_refused_alike(llama: LlamaForCausalLM) -> None:
    """The same through ``model.generate``: nothing is called."""
    calls = []
    hook = llama.register_forward_pre_hook(lambda *_: calls.append(1))
    for constraint, tokens, error in (
        (unspellable(), 6, EmptyLanguageError),
        (automaton("xxxxx"), 3, TokenLimitError),
        (regex("a"), 6, ConstraintError),
    ):
        ids = torch.tensor([[0, 1]])
        with pytest.raises(error):
            llama.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                num_beams=2,
                max_new_tokens=tokens,
                custom_generate=automata_beam_generate(constraint),
            )
    hook.remove()
    assert not calls


# --- labels --------------------------------------------------------------------------------------------------------

LABELS = ["ab", "abx", "x"]
LABELLERS: dict[str, Callable[..., Any]] = {
    "probabilities": lambda model, labels=LABELS, **more: label_probabilities(
        model, [[0], [1, 3, 0]], labels, VOCABULARY, **more
    ),
    "classify": lambda model, labels=LABELS, **more: classify(model, [[0]], labels, VOCABULARY, **more),
    "best": lambda model, labels=LABELS, **more: top_labels(model, [0], labels, VOCABULARY, 9, **more),
    "lists": lambda model, labels=LABELS, **more: label_lists(
        model, [0], labels, VOCABULARY, separator="(", **more
    ),
    "several": lambda model, labels=LABELS, **more: multi_label(
        model, [0], labels, VOCABULARY, separator="(", **more
    ),
}


@pytest.mark.parametrize("name", LABELLERS)
@pytest.mark.parametrize(
    ("given", "width", "error"),
    [
        ({"labels": []}, WIDTH, ConstraintError),
        ({"labels": ["a", "a"]}, WIDTH, ConstraintError),
        ({"labels": ["a", ""]}, WIDTH, ConstraintError),
        ({}, 5, VocabularyMismatchError),
    ],
)
def test_labels_are_refused_before_the_model_is_called(
    name: str, given: dict[str, Any], width: int, error: type[Exception]
) -> None:
    model = Counted(bigrams, width)
    with pytest.raises(error):
        LABELLERS[name](model, **given)
    assert model.calls == 0


@pytest.mark.parametrize("name", LABELLERS)
@pytest.mark.parametrize("bad", [math.nan, math.inf, -math.inf])
def test_labels_of_scores_that_are_no_distribution(name: str, bad: float) -> None:
    with pytest.raises(LogitsError):
        LABELLERS[name](Counted(constant({}, bad)))
