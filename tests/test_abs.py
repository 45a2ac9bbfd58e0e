"""Automata-guided beam search against enumeration, on small worlds."""

from __future__ import annotations

import math
import random

import pytest
import torch

import tokenfst
from tokenfst.automata.symbols import SymbolAutomaton
from tokenfst.decoding import abs as search
from tokenfst.decoding.abs import abs_beam_search
from tokenfst.decoding.token_automaton import TokenAutomaton
from tokenfst.errors import EmptyLanguageError, TokenBudgetError
from tokenfst.tokenizers.vocabulary import Vocabulary

SYMBOLS = ("a", "b", "c")
VOCABULARY = Vocabulary.of_symbols(SYMBOLS)
END = VOCABULARY.eos_token_ids[0]


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


def accepted(automaton: TokenAutomaton, length: int) -> list[tuple[int, ...]]:
    """All sequences within the budget: texts and an end token, or texts that use all of it up."""
    native = automaton._native
    texts = [((), int(native.start))]
    found = []
    for left in range(length, -1, -1):
        for text, state in texts:
            if native.distance(state) == 0:
                found.append((*text, END) if left else text)
        texts = [
            ((*text, t), native.advance(state, t))
            for text, state in texts
            for t in range(3)
            if native.advance(state, t)
        ]
    return found


@pytest.mark.parametrize("count", [400, pytest.param(6000, marks=pytest.mark.soak)])
def test_something_accepted_is_found_if_there_is_anything(
    count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The masks keep every row alive, for any number of beams; both ways to find the best candidates."""
    rng = random.Random(count)
    seen = {True: 0, False: 0}
    while sum(seen.values()) < count:
        automaton = random_automaton(rng)
        if automaton is None:
            continue
        length, beams = rng.randint(0, 6), rng.choice([1, 1, 2, 3, 5])
        model = RandomModel(rng.randrange(1 << 30), impossible=rng.choice([0.0, 0.0, 0.5]))
        texts = accepted(automaton, length)
        monkeypatch.setattr(search, "_NARROW", rng.choice([64, 0]) if beams <= 4 else 64)
        options = {
            "num_beams": beams,
            "max_length": length,
            "alpha_min": rng.choice([0.0, 0.25, 1.0]),
            "gamma": rng.choice([0.5, 1.0, math.inf]),
            "rank_by": rng.choice(["log_prob", "pushed"]),
            "length_penalty": rng.choice([0.0, 1.0, -0.5]),
            "num_return_sequences": rng.randint(1, beams),
        }
        seen[bool(texts)] += 1
        if not texts:
            with pytest.raises(
                TokenBudgetError, match=f"the least number from here is {automaton.distance()}"
            ):
                abs_beam_search(model, [[]], automaton, width=4, **options)
            continue
        (found,) = abs_beam_search(model, [[]], automaton, width=4, **options)
        assert 1 <= len(found) <= options["num_return_sequences"]
        assert len({each.tokens for each in found}) == len(found)
        for each in found:
            assert each.tokens in texts
            assert each.log_prob == pytest.approx(model.log_prob(each.tokens), abs=1e-4)
            assert each.pushed >= each.log_prob - 1e-4
    assert min(seen.values()) > count // 40


@pytest.mark.parametrize("count", [150, pytest.param(3000, marks=pytest.mark.soak)])
def test_a_beam_wide_enough_finds_the_best_sequences_in_order(count: int) -> None:
    rng = random.Random(count + 1)
    done = 0
    while done < count:
        automaton = random_automaton(rng)
        length, penalty = rng.randint(1, 5), rng.choice([0.0, 1.0, 0.3, -0.5])
        if automaton is None or not (texts := accepted(automaton, length)):
            continue
        done += 1
        model = RandomModel(rng.randrange(1 << 30))
        ranked = sorted(texts, key=lambda text: -model.log_prob(text) / max(1, len(text)) ** penalty)
        asked = rng.choice([1, 3, 400])
        (found,) = abs_beam_search(
            model,
            [[]],
            automaton,
            width=4,
            num_beams=400,
            max_length=length,
            alpha_min=rng.choice([0.0, 0.5]),
            length_penalty=penalty,
            num_return_sequences=asked,
        )
        assert [each.tokens for each in found] == ranked[:asked]


def test_viterbi_is_the_oracle_on_markov_chains() -> None:
    """MAP of a Markov chain with a unary constraint takes O(T * S²): the paper's theorem 2 says NP-hard."""
    rng = random.Random(5)
    for _ in range(60):
        states, length = 3, rng.randint(2, 6)
        chain = torch.log_softmax(torch.tensor([[rng.gauss(0, 2) for _ in range(4)] for _ in range(4)]), -1)
        place, wanted = rng.randrange(length), rng.randrange(states)
        pattern = SymbolAutomaton.from_transitions(
            [
                (t, symbol, t + 1)
                for t in range(length)
                for s, symbol in enumerate(SYMBOLS)
                if t != place or s == wanted
            ],
            0,
            [length],
            SYMBOLS,
        )
        ways = {3: (0.0, ())}  # the last row of the chain is its beginning
        for t in range(length):
            ways = {
                s: max((p + float(chain[r, s]), (*text, s)) for r, (p, text) in ways.items())
                for s in range(states)
                if t != place or s == wanted
            }
        log_prob, _ = max(ways.values())
        (found,) = abs_beam_search(
            lambda ids, chain=chain: chain[ids[:, -1] if ids.shape[1] else torch.full((len(ids),), 3)],
            [[]],
            tokenfst.compile(pattern, VOCABULARY),
            width=4,
            num_beams=states**length,
            max_length=length,
        )
        assert found[0].log_prob == pytest.approx(log_prob, abs=1e-4)
        assert found[0].tokens[place] == wanted
