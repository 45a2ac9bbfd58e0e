"""Means over the texts of weighted grammars: beside the enumeration of derivations, and beside sums that are known."""

from __future__ import annotations

import math

import pytest

from reference.grammars.derivations import as_templates, derivations, derived, merged
from tests.automata.weighted_grammars.test_weighted_grammar import random_rules
from tokenfst import Budget, WeightedGrammar, WeightedLanguage, regex
from tokenfst.errors import BudgetExceeded, ConstraintError, DivergingGrammarError, EmptyLanguageError


def entropy(weights: list[float]) -> float:
    total = math.fsum(weights)
    return -math.fsum(each / total * math.log(each / total) for each in weights if each)


def check(seed: int, *, recursive: bool) -> bool:
    """The means of a random grammar; whether it is found to be one-way."""
    rules = merged(random_rules(seed, recursive=recursive))
    found, lost = derivations(rules, "start", 1e-8 if recursive else 0.0)
    room = 1e-9 if not recursive else 200 * lost + 1e-6
    grammar = WeightedGrammar(as_templates(rules))
    weights = [weight for _, weight in found]
    length = math.fsum(len(text) * weight for text, weight in found) / math.fsum(weights)
    assert grammar.expected_length() == pytest.approx(length, abs=room)
    assert grammar.entropy(derivations=True) == pytest.approx(entropy(weights), abs=room)
    try:
        exact = grammar.entropy()
    except ConstraintError:
        return False
    texts = [text for text, _ in found]
    assert len(set(texts)) == len(texts), "a text has two derivations"
    assert exact == grammar.entropy(derivations=True)
    return True


def test_means_of_grammars_without_recursion() -> None:
    ways = [check(seed, recursive=False) for seed in range(150)]
    assert 5 < sum(ways) < 140


@pytest.mark.parametrize("seed", range(6))
def test_means_of_recursive_grammars(seed: int) -> None:
    check(seed, recursive=True)


def test_calls_are_counted() -> None:
    grammar = WeightedGrammar(
        {"start": {"({start}){tail}": 0.3, "": 0.7}, "tail": {"{start}": 0.5, "x": 0.5}}
    )
    # n = 1 + 0.3 n + 0.5 t, t = 0.3 n
    calls = grammar.expected_calls()
    assert calls["start"] == pytest.approx(1 / (1 - 0.3 - 0.15)) and calls["tail"] == pytest.approx(
        0.3 * calls["start"]
    )
    local = -(0.3 * math.log(0.3) + 0.7 * math.log(0.7))
    assert grammar.entropy() == pytest.approx(calls["start"] * local + calls["tail"] * math.log(2))
    assert grammar.expected_length() == pytest.approx(2 * calls["tail"] + 0.5 * calls["tail"])


def test_a_grammar_of_a_regular_language_is_as_the_language() -> None:
    words = WeightedLanguage.of(regex("[ab]")).scaled(math.log(0.3)).star().determinize()
    grammar = WeightedGrammar({"start": {"{words}": 2.0}, "words": words})
    assert grammar.entropy() == pytest.approx(words.entropy(), rel=1e-12)
    assert grammar.expected_length() == pytest.approx(words.expected_length(), rel=1e-12)


def test_alternatives_that_begin_alike_are_told_apart_later() -> None:
    grammar = WeightedGrammar({"start": {"ab": 1, "a{x}": 2, "c": 1}, "x": {"c": 1, "d{x}": 0.5}})
    texts, _ = derived({"start": [((97, 98), 1), ((97, "x"), 2), ((99,), 1)],
                        "x": [((99,), 1), ((100, "x"), 0.5)]}, "start", 1e-12)  # fmt: skip
    assert grammar.entropy() == pytest.approx(entropy(list(texts.values())), abs=1e-8)


@pytest.mark.parametrize(
    "rules",
    [
        {"start": {"{start}+{start}": 0.2, "x": 0.5}},
        {"start": {"{start}": 0.1, "": 0.5}},
        {"start": {"a{x}": 1, "{x}": 1}, "x": {"a": 1, "b": 1, "": 1}},
        {"start": {"{x}{y}": 1}, "x": {"": 1, "a": 1}, "y": {"": 1, "a": 1}},
        {"start": {"{x}": 1, "{y}": 1}, "x": {"": 1}, "y": {"": 1, "b": 1}},
        {"start": {"{x}": 1}, "x": WeightedLanguage.of(regex("a")) | WeightedLanguage.of(regex("ab?"))},
    ],
)
def test_texts_that_may_have_two_derivations_are_refused(rules: dict[str, dict[str, float]]) -> None:
    grammar = WeightedGrammar(rules)
    with pytest.raises(ConstraintError, match="two ways"):
        grammar.entropy()
    assert grammar.entropy(derivations=True) >= 0


@pytest.mark.parametrize("more", [0.5, 0.5 - 1e-9])
def test_texts_without_a_mean_length_are_refused(more: float) -> None:
    grammar = WeightedGrammar({"start": {"({start}){start}": more, "": 1 - more}})
    assert grammar.mass() == pytest.approx(1, rel=1e-4)
    for mean in (grammar.expected_length, grammar.entropy, grammar.expected_calls):
        with pytest.raises(DivergingGrammarError, match="start") as refused:
            mean()
        assert "how often each rule is called" in refused.value.__notes__[0]


def test_what_has_no_text_has_no_mean() -> None:
    with pytest.raises(EmptyLanguageError):
        WeightedGrammar({"start": {"a": 0}}).expected_length()


def test_budgets() -> None:
    rules = {f"r{n}": {f"a{{r{n + 1}}}": 0.5, "b": 0.1} for n in range(60)} | {"r60": {"a": 1}}
    grammar = WeightedGrammar(rules, "r0")
    assert grammar.entropy() > 0
    grammar.budget = Budget(states=100)
    with pytest.raises(BudgetExceeded, match="places"):
        grammar.entropy()
    grammar.budget = Budget(bytes=5_000)
    with pytest.raises(BudgetExceeded):
        grammar.expected_length()
