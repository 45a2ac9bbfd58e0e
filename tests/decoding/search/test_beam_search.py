"""Automata-guided beam search against enumeration, on small worlds."""

from __future__ import annotations

import itertools
import math
import random

import pytest
import torch

import tokenfst
from tokenfst.automata.symbols.automaton import SymbolAutomaton
from tokenfst.decoding.search import beam_search as search
from tokenfst.decoding.search.beam_search import automata_beam_search
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import (
    DecodingError,
    EmptyLanguageError,
    ModelError,
    TokenLimitError,
    VocabularyMismatchError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

SYMBOLS = ("a", "b", "c")
VOCABULARY = Vocabulary.of_symbols(SYMBOLS)
END = VOCABULARY.eos_token_ids[0]
KINDS = {
    "at_most": {},
    "exact": {"length": "exact"},
    "counted": {"length": "exact", "count_end": True},
}
LEFT = {"at_most": range(99), "exact": [0], "counted": [1]}
"""Tokens that are left after the text, for each kind of length."""


class RandomModel:
    """Log-probabilities that depend on the whole prefix, the same each time; a few are -inf if asked for."""

    def __init__(self, seed: int, width: int = 4, impossible: float = 0.0) -> None:
        self.seed, self.width, self.impossible = seed, width, impossible
        self.known: dict[tuple[int, ...], torch.Tensor] = {}

    def after(self, ids: tuple[int, ...]) -> torch.Tensor:
        if ids not in self.known:
            rng = random.Random(f"{self.seed} {ids}")
            logits = [
                -math.inf if token and rng.random() < self.impossible else rng.gauss(0, 2)
                for token in range(self.width)
            ]
            self.known[ids] = torch.log_softmax(torch.tensor(logits), -1)
        return self.known[ids]

    def __call__(self, ids: torch.Tensor) -> torch.Tensor:
        return torch.stack([self.after(tuple(row)) for row in ids.tolist()])

    def log_prob(self, tokens: tuple[int, ...], prompt: tuple[int, ...] = ()) -> float:
        return sum(float(self.after((*prompt, *tokens[:t]))[token]) for t, token in enumerate(tokens))


def random_automaton(rng: random.Random) -> TokenAutomaton | None:
    states = rng.randint(1, 5)
    arcs = {
        (rng.randrange(states), rng.choice(SYMBOLS)): rng.randrange(states)
        for _ in range(rng.randint(1, 3 * states))
    }
    found = SymbolAutomaton.from_transitions(
        [(source, symbol, target) for (source, symbol), target in arcs.items()],
        0,
        [s for s in range(states) if rng.random() < 0.4],
        SYMBOLS,
    )
    try:
        return tokenfst.compile(found, VOCABULARY)
    except EmptyLanguageError:
        return None


def accepted(automaton: TokenAutomaton, length: int, kind: str = "at_most") -> list[tuple[int, ...]]:
    """All sequences within the budget: texts and an end token, or texts that use all of it up; or only the latter, or
    only those with an end token that do.
    """
    native = automaton._native
    texts = [((), int(native.start))]
    found = []
    for left in range(length, -1, -1):
        for text, state in texts:
            if native.distance(state) == 0 and left in LEFT[kind]:
                found.append((*text, END) if left else text)
        texts = [
            ((*text, t), native.advance(state, t))
            for text, state in texts
            for t in range(3)
            if native.advance(state, t)
        ]
    return found


@pytest.mark.parametrize("count", [250, pytest.param(6000, marks=pytest.mark.soak)])
def test_something_accepted_is_found_if_there_is_anything(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The masks keep every row alive, for any number of beams; with blocks of any width."""
    rng = random.Random(count)
    seen = {True: 0, False: 0}
    while sum(seen.values()) < count:
        automaton = random_automaton(rng)
        if automaton is None:
            continue
        length, beams = rng.randint(0, 6), rng.choice([1, 1, 2, 3, 5])
        model = RandomModel(rng.randrange(1 << 30), impossible=rng.choice([0.0, 0.0, 0.5]))
        kind = rng.choice(list(KINDS))
        if kind == "counted" and length == 0:
            continue
        texts = accepted(automaton, length, kind)
        monkeypatch.setattr(search, "_BLOCK", rng.choice([1, 2, 3, 4, 128]))
        options = KINDS[kind] | {
            "num_beams": beams,
            "max_new_tokens": length,
            "alpha_min": rng.choice([0.0, 0.25, 1.0]),
            "gamma": rng.choice([0.5, 1.0, math.inf]),
            "rank_by": rng.choice(["log_prob", "pushed"]),
            "length_penalty": rng.choice([0.0, 1.0, -0.5]),
            "num_return_sequences": rng.randint(1, beams),
        }
        seen[bool(texts)] += 1
        if not texts:
            least = f"the least number from here is {automaton.distance()}"
            with pytest.raises(TokenLimitError, match=least if kind == "at_most" else "has exactly"):
                automata_beam_search(model, [[]], automaton, width=4, **options)
            continue
        (found,) = automata_beam_search(model, [[]], automaton, width=4, **options)
        assert 1 <= len(found) <= options["num_return_sequences"]
        assert len({each.tokens for each in found}) == len(found)
        for each in found:
            assert each.tokens in texts
            assert each.log_prob == pytest.approx(model.log_prob(each.tokens), abs=1e-4)
            assert each.pushed >= each.log_prob - 1e-4
    assert min(seen.values()) > count // 40


@pytest.mark.parametrize("count", [80, pytest.param(3000, marks=pytest.mark.soak)])
def test_a_beam_wide_enough_finds_the_best_sequences_in_order(count: int) -> None:
    rng = random.Random(count + 1)
    done = 0
    while done < count:
        automaton = random_automaton(rng)
        length, penalty = rng.randint(1, 5), rng.choice([0.0, 1.0, 0.3, -0.5])
        kind = rng.choice(list(KINDS))
        if automaton is None or not (texts := accepted(automaton, length, kind)):
            continue
        done += 1
        model = RandomModel(rng.randrange(1 << 30))
        ranked = sorted(texts, key=lambda text: -model.log_prob(text) / max(1, len(text)) ** penalty)
        asked = rng.choice([1, 3, 400])
        (found,) = automata_beam_search(
            model,
            [[]],
            automaton,
            width=4,
            num_beams=400,
            max_new_tokens=length,
            alpha_min=rng.choice([0.0, 0.5]),
            length_penalty=penalty,
            num_return_sequences=asked,
            **KINDS[kind],
        )
        assert [each.tokens for each in found] == ranked[:asked]


def test_alpha_is_defined_at_the_end_and_ramps() -> None:
    """Correction 3: 0 / 0 at t = T. Of two symbols, ``b`` leads nearer, and ``a`` is likelier."""
    language = SymbolAutomaton.from_transitions([(0, "a", 0), (0, "b", 1), (1, "a", 1)], 0, [1], SYMBOLS)
    automaton = tokenfst.compile(language, VOCABULARY)
    log_probs = torch.log_softmax(torch.tensor([3.0, 0.0, 0.0, -9.0]), -1)

    def pushed(tokens: tuple[int, ...], alpha_min: float, gamma: float) -> float:
        (found,) = automata_beam_search(
            lambda ids: log_probs.repeat(len(ids), 1),
            [[]],
            automaton,
            width=4,
            num_beams=50,
            num_return_sequences=50,
            max_new_tokens=4,
            length="exact",
            alpha_min=alpha_min,
            gamma=gamma,
        )
        return next(each.pushed for each in found if each.tokens == tokens)

    a, b = float(log_probs[0]), float(log_probs[1])
    for place in range(4):
        tokens = (0,) * place + (1,) + (0,) * (3 - place)
        rest = 3 - place
        for alpha_min, gamma in [(0.0, 1.0), (0.25, 1.0), (0.25, 2.0), (1.0, 1.0), (0.0, math.inf)]:
            tight = min(1.0, (1 / rest) ** gamma) if rest else 1.0
            alpha = alpha_min + (1 - alpha_min) * tight
            expected = 3 * a + alpha * a + (1 - alpha) * b
            assert pushed(tokens, alpha_min, gamma) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ({"num_beams": 0}, "num_beams=0"),
        ({"max_new_tokens": -1}, "max_new_tokens=-1"),
        ({"alpha_min": 1.5}, "alpha_min=1.5"),
        ({"alpha_min": math.nan}, "alpha_min=nan"),
        ({"gamma": 0}, "gamma=0"),
        ({"rank_by": "luck"}, "rank_by='luck'"),
        ({"length_penalty": math.inf}, "length_penalty=inf"),
        ({"num_return_sequences": 3}, "between 1 and num_beams, 2"),
        ({"length": "long"}, "length='long'"),
    ],
)
def test_options_out_of_range_are_told_before_the_model_is_called(option: dict, message: str) -> None:
    automaton = tokenfst.compile(tokenfst.regex("a"), Vocabulary([b"a", b""], eos_token_id=1))

    def never(ids: torch.Tensor) -> torch.Tensor:
        raise AssertionError

    with pytest.raises(DecodingError, match=message):
        automata_beam_search(
            never, [[]], automaton, width=2, **({"num_beams": 2, "max_new_tokens": 3} | option)
        )
    with pytest.raises(VocabularyMismatchError, match="scores 1 token"):
        automata_beam_search(never, [[]], automaton, width=1, num_beams=2, max_new_tokens=3)
    with pytest.raises(ModelError, match="2 constraints for 1 prompt:"):
        automata_beam_search(never, [[]], [automaton] * 2, width=2, num_beams=2, max_new_tokens=3)


@pytest.mark.filterwarnings("ignore::tokenfst.errors.UnspellableWarning")
def test_stacks_too_short_for_their_distances() -> None:
    """One token may close two frames, so the stack's distance is 4 where three tokens suffice: they are found."""
    vocabulary = Vocabulary([b"(", b")", b"((", b"))", b"a", b""], eos_token_id=5)
    grammar = tokenfst.lark_grammar('start: "(" x ")"\nx: "(" x ")" | "(" "a" ")"')
    automaton = tokenfst.compile(grammar, vocabulary)
    assert automaton.distance() == 4
    model = RandomModel(3, 6)
    (found,) = automata_beam_search(model, [[]], automaton, width=6, num_beams=1, max_new_tokens=3)
    assert vocabulary.decode(found[0].tokens) == b"((a))" and len(found[0].tokens) == 3
    (found,) = automata_beam_search(
        model, [[]], automaton, width=6, num_beams=64, max_new_tokens=9, num_return_sequences=64
    )
    assert all(grammar.accepts(vocabulary.decode(each.tokens)) for each in found)
    with pytest.raises(TokenLimitError, match="fits into 2 tokens: the least number is 3"):
        automata_beam_search(model, [[]], automaton, width=6, num_beams=1, max_new_tokens=2)


@pytest.mark.parametrize("width", [5, 127, 128, 130])
def test_more_beams_than_candidates_where_the_last_token_is_text(width: int) -> None:
    """Places of a block that lie beyond the last token are no candidates: they stood for that token again."""
    tokens = [b"" for _ in range(width)]
    tokens[-1], tokens[1] = b"z", b"y"
    vocabulary = Vocabulary(tokens, eos_token_id=[0, 2])
    automaton = tokenfst.compile(tokenfst.regex("[yz]{0,2}"), vocabulary)
    model = RandomModel(1, width=width)
    texts = [text for n in range(3) for text in itertools.product((1, width - 1), repeat=n)]
    expected = {(*text, end) for text in texts for end in (0, 2)}
    (found,) = automata_beam_search(
        model, [[]], automaton, width=width, num_beams=300, num_return_sequences=300, max_new_tokens=3
    )
    assert len(found) == len(expected) and {each.tokens for each in found} == expected
    scores = [each.log_prob for each in found]
    assert scores == sorted(scores, reverse=True)
    assert scores == pytest.approx([model.log_prob(each.tokens) for each in found], abs=1e-3)
