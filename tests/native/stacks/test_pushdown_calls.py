"""Every call of a matcher of a push-down automaton, in random order, against a model by brute force."""

from __future__ import annotations

import random
from functools import cached_property

import numpy as np
import pytest

from reference.grammars.pushdown import INFINITE, START, Place, Recognizer, TokenModel
from reference.grammars.random_grammars_wide import GrammarGenerator, Patience
from tests.support.worlds.pushdown_worlds import CROSSING, compose, crossing
from tests.support.worlds.token_worlds import allowed, random_vocabulary
from tokenfst import Matcher, Vocabulary, _native
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.decoding.compiling.missing_bytes import of_single_bytes
from tokenfst.errors import TerminatedError


class Model(TokenModel):
    """A model that also knows the texts which tokens spell: bytes are forced if all of those go on with them."""

    def __init__(self, grammar: Grammar, vocabulary: Vocabulary) -> None:
        super().__init__(grammar, vocabulary)
        self.grammar = grammar

    @cached_property
    def spelled(self) -> Recognizer:
        grammar = of_single_bytes(self.grammar, self.vocabulary)
        return Recognizer(grammar.rules, grammar.start)


class ModelMatcher:
    """The calls of ``Matcher`` on a model."""

    def __init__(self, model: Model, tokens: list[int] | None = None) -> None:
        self.model, self.tokens = model, list(tokens or ())

    @property
    def place(self) -> Place:
        place = START
        for token in self.tokens:
            if token != self.model.eos:
                target = self.model.after(place, token)
                assert target is not None
                place = target
        return place

    def is_terminated(self) -> bool:
        return self.tokens[-1:] == [self.model.eos]

    def allowed(self) -> set[int]:
        return {self.model.eos} if self.is_terminated() else self.model.allowed(self.place)

    def accept_token(self, token: int) -> bool:
        if self.is_terminated() or token not in self.allowed():
            return False
        self.tokens.append(token)
        return True

    def validate_tokens(self, tokens: list[int]) -> int:
        trial = ModelMatcher(self.model, self.tokens)
        return next((n for n, token in enumerate(tokens) if not trial.accept_token(token)), len(tokens))

    def forced_tokens(self) -> list[int]:
        trial = ModelMatcher(self.model, self.tokens)
        while len(only := trial.allowed()) == 1 and self.model.eos not in only:
            trial.tokens += only
        return trial.tokens[len(self.tokens) :]

    def forced_bytes(self) -> bytes:
        begin = text = self.place[0]
        while not self.is_terminated():
            following, is_word = self.model.spelled.next_bytes(text)
            if is_word or len(following) != 1:
                break
            text += following
        return text[len(begin) :]


class Driver:
    """Random calls on a matcher and on its model."""

    def __init__(self, rng: random.Random, automaton: _native.TokenAutomaton, model: Model) -> None:
        self.rng, self.model = rng, model
        self.pairs = [(Matcher(automaton), ModelMatcher(model))]

    def some_tokens(self, model: ModelMatcher, longest: int) -> list[int]:
        """Mostly allowed ones."""
        trial = ModelMatcher(self.model, model.tokens)
        for _ in range(self.rng.randint(0, longest)):
            if trial.is_terminated():
                break
            choices = sorted(trial.allowed()) if self.rng.random() < 0.9 else range(len(self.model.tokens))
            token = self.rng.choice(choices)
            if not trial.accept_token(token):
                return [*trial.tokens[len(model.tokens) :], token]
        return trial.tokens[len(model.tokens) :]

    def step(self) -> None:
        matcher, model = self.rng.choice(self.pairs)
        getattr(self, self.rng.choice(CALLS))(matcher, model)
        for matcher, model in self.pairs:
            assert matcher.tokens == model.tokens and matcher.num_tokens == len(model.tokens)
            assert matcher.is_terminated() == model.is_terminated()
            assert matcher.is_accepting() == self.model.is_word(model.place)

    def accept_token(self, matcher: Matcher, model: ModelMatcher) -> None:
        for token in self.some_tokens(model, 1) or [self.model.eos]:
            if model.is_terminated():
                with pytest.raises(TerminatedError):
                    matcher.accept_token(token)
            else:
                assert matcher.accept_token(token) == model.accept_token(token)

    def accept_tokens(self, matcher: Matcher, model: ModelMatcher) -> None:
        tokens = self.some_tokens(model, 4)
        whole = model.validate_tokens(tokens) == len(tokens)
        assert matcher.accept_tokens(tokens) == whole
        if whole:
            model.tokens += tokens

    def validate_tokens(self, matcher: Matcher, model: ModelMatcher) -> None:
        tokens = self.some_tokens(model, 4)
        assert matcher.validate_tokens(tokens) == model.validate_tokens(tokens)

    def mask(self, matcher: Matcher, model: ModelMatcher) -> None:
        assert allowed(matcher, len(self.model.tokens)) == model.allowed()

    def rollback(self, matcher: Matcher, model: ModelMatcher) -> None:
        count = self.rng.randint(0, len(model.tokens))
        matcher.rollback(count)
        model.tokens = model.tokens[: len(model.tokens) - count]

    def reset(self, matcher: Matcher, model: ModelMatcher) -> None:
        if self.rng.random() < 0.3:
            matcher.reset()
            model.tokens = []

    def fork(self, matcher: Matcher, model: ModelMatcher) -> None:
        if len(self.pairs) == 4:
            self.pairs.pop(0)
        self.pairs.append((matcher.fork(), ModelMatcher(self.model, model.tokens)))

    def forced(self, matcher: Matcher, model: ModelMatcher) -> None:
        assert matcher.forced_tokens() == model.forced_tokens()
        assert matcher.forced_bytes() == model.forced_bytes()

    def draft_tree(self, matcher: Matcher, model: ModelMatcher) -> None:
        rng, size = self.rng, self.rng.randint(1, 7)
        child, sibling = np.full(size, -1), np.full(size, -1)
        paths: list[list[int]] = [[]]
        for node in range(1, size):
            parent = rng.randrange(node)
            sibling[node], child[parent] = child[parent], node
            trial = ModelMatcher(self.model, model.tokens + paths[parent])
            drafts = self.some_tokens(trial, 1) if self.is_path(model, paths[parent]) else []
            paths.append([*paths[parent], *(drafts or [rng.randrange(len(self.model.tokens))])])
        tokens = np.array([0, *(path[-1] for path in paths[1:])])
        words = (len(self.model.tokens) + 31) // 32
        masks = np.full((size, words), -1, np.int32)
        matcher.traverse_draft_tree(child, sibling, tokens, masks)
        for row, path in enumerate(paths):
            found = np.flatnonzero(np.unpackbits(masks[row].view(np.uint8), bitorder="little"))
            there = ModelMatcher(self.model, model.tokens + path)
            assert set(found.tolist()) == (there.allowed() if self.is_path(model, path) else set())

    def is_path(self, model: ModelMatcher, path: list[int]) -> bool:
        return model.validate_tokens(path) == len(path)


CALLS = ["accept_token", "accept_token", "accept_tokens", "validate_tokens", "mask", "mask"]
CALLS += ["rollback", "reset", "fork", "forced", "draft_tree"]


def drive(seed: int, count: int, steps: int) -> None:
    rng, patience = random.Random(seed), Patience(1 + count // 8)
    while count:
        grammar, vocabulary = GrammarGenerator(rng).grammar(), random_vocabulary(rng, letters=True)
        model = Model(grammar, vocabulary)
        if model.recognizer.first is None or model.least(START) >= INFINITE:
            continue
        driver = Driver(rng, compose(grammar, vocabulary, rng.choice([0, 192])), model)
        with patience():
            for _ in range(steps):
                driver.step()
        count -= 1


@pytest.mark.parametrize("seed", range(4))
def test_random_calls(seed: int) -> None:
    drive(seed, 4, 40)


@pytest.mark.parametrize("name", CROSSING)
def test_random_calls_on_crossing_tokens(name: str) -> None:
    grammar, vocabulary = crossing(name, complete=True)
    driver = Driver(random.Random(name), compose(grammar, vocabulary, 0), Model(grammar, vocabulary))
    for _ in range(150):
        driver.step()


@pytest.mark.soak
@pytest.mark.parametrize("seed", range(5000, 5050))
def test_random_calls_at_length(seed: int) -> None:
    drive(seed, 20, 200)
