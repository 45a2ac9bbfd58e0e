"""Masses of grammars that need a stack: beside closed forms, and beside sums over all short texts."""

from __future__ import annotations

import math
import pickle
import random

import numpy as np
import pytest

import tokenfst.fst as fst
from reference.grammars.random_grammars import random_grammar
from reference.transducers.weighted import text_weight, texts
from tokenfst import Budget, Grammar, WeightedLanguage, bundled_grammar, lark_grammar, regex
from tokenfst.automata.weights.grammar_mass import grammar_mass
from tokenfst.errors import BudgetExceeded, ConstraintError, DivergingGrammarError, DivergingSumError


def memoryless(weights: dict[str, float], end: float = 1.0) -> WeightedLanguage:
    """Each byte weighs the same wherever it stands."""
    made = fst.VectorFst("log64").add_states(1).set_start(0).set_final(0, -math.log(end))
    for letter, weight in weights.items():
        made.add_arc(0, fst.Arc(ord(letter), ord(letter), -math.log(weight), 0))
    return WeightedLanguage.from_fst(made, token_type="byte")


@pytest.mark.parametrize("p", [0.1, 0.3, 0.45])
def test_catalan(p: float) -> None:
    """x = 1 + p² x²: the brackets' generating function."""
    brackets = lark_grammar('start: "(" start ")" start |')
    model = memoryless({"(": p, ")": p})
    due = (1 - math.sqrt(1 - 4 * p * p)) / (2 * p * p)
    assert model.mass(brackets) == pytest.approx(due, rel=1e-12)
    assert model.log_mass(brackets) == pytest.approx(math.log(due))


def test_the_edge_and_beyond() -> None:
    brackets = lark_grammar('start: "(" start ")" start |')
    assert memoryless({"(": 0.5, ")": 0.5}).mass(brackets) == pytest.approx(2, rel=1e-6)
    with pytest.raises(DivergingGrammarError, match="'start'") as caught:
        memoryless({"(": 0.6, ")": 0.6}).mass(brackets)
    assert pickle.loads(pickle.dumps(caught.value)).rules == caught.value.rules
    with pytest.raises((DivergingGrammarError, DivergingSumError)):
        memoryless({"(": 0.1, ")": 0.1, "x": 1.1}).mass(lark_grammar('start: "(" start ")" | "x"*'))


def test_branching_processes() -> None:
    """A tree dies out with the least solution of x = q + (1 - q) x²: here as a grammar."""
    tree = lark_grammar('start: "l" | "b" start start')
    for q in (0.3, 0.5, 0.8):
        due = min(1.0, q / (1 - q))
        tolerance = 1e-6 if q == 0.5 else 1e-12
        assert memoryless({"l": q, "b": 1 - q}).mass(tree) == pytest.approx(due, rel=tolerance)


@pytest.mark.parametrize("seed", range(30))
def test_derivations_of_random_grammars(seed: int) -> None:
    """From below: by iterating the definition over words up to a length, for small weights."""
    rng = random.Random(seed)
    grammar = random_grammar(rng)
    made = fst.VectorFst("log64").add_states(2).set_start(0).set_final(rng.randrange(2), 0.5)
    for source in range(2):
        for letter in b"ab":
            weight = -math.log(rng.uniform(0.01, 0.12))
            made.add_arc(source, fst.Arc(letter, letter, weight, rng.randrange(2)))
    model = WeightedLanguage.from_fst(made, token_type="byte")
    if model.is_empty():
        return
    least = math.fsum(text_weight(model.machine, text) for text in texts(b"ab", 5) if grammar.accepts(text))
    try:
        found = grammar_mass(grammar, model.plain, Budget(), derivations=True)
    except DivergingGrammarError:
        return  # a rule that derives itself without a byte
    assert math.exp(found) >= least * (1 - 1e-9)
    try:
        exact = math.exp(grammar_mass(grammar, model.plain, Budget()))
    except ConstraintError:
        return
    longer = [text for text in texts(b"ab", 9) if grammar.accepts(text)]
    near = math.fsum(text_weight(model.machine, text) for text in longer)
    assert exact == pytest.approx(near, rel=1e-3)  # what is longer weighs little
    if grammar.is_regular():
        assert exact == pytest.approx(model.mass(grammar.to_language()), rel=1e-9)


def test_ambiguous_grammars_are_refused() -> None:
    model = memoryless({"a": 0.1, "(": 0.1, ")": 0.1})
    for text in ('start: "(" start ")" | "a" | "a"*', 'start: start start | "a"'):
        with pytest.raises(ConstraintError, match="in two ways"):
            model.mass(lark_grammar(text))
    # A part without calls is one automaton, so nothing in it counts twice.
    assert model.mass(lark_grammar('start: "(" start ")" | "a"? "a"?')) == pytest.approx(1.11 / 0.99)
    twice = lark_grammar('start: start start | "a"')
    assert grammar_mass(twice, model.plain, Budget(), derivations=True) == pytest.approx(
        math.log((1 - math.sqrt(1 - 0.4)) / 2)
    )


@pytest.mark.parametrize("by", [-800.0, 800.0])
def test_weights_of_whole_texts_are_logarithms(by: float) -> None:
    brackets = lark_grammar('start: "(" start ")" |')
    model = memoryless({"(": 0.1, ")": 0.1})
    assert model.scaled(by).log_mass(brackets) == pytest.approx(model.log_mass(brackets) + by)
    last = model + WeightedLanguage.of(regex("x")).scaled(by)
    within = lark_grammar('start: brackets "x"\nbrackets: "(" brackets ")" |')
    assert last.log_mass(within) == pytest.approx(model.log_mass(brackets) + by)


def test_masses_that_underflow_are_refused() -> None:
    grammar = lark_grammar('start: "(" start ")" | "' + "a" * 400 + '"')
    model = memoryless({"(": 0.1, ")": 0.1, "a": 0.01})
    with pytest.raises(ConstraintError, match="weigh less"):
        model.log_mass(grammar)
    assert memoryless({"(": 0.1, ")": 0.1}).log_mass(grammar) == -math.inf


def test_json() -> None:
    model = memoryless(dict.fromkeys('[]{}:,"0123456789abtruefalsn', 0.02))
    grammar = bundled_grammar("json")
    found = model.mass(grammar)
    below = [model.mass(grammar.truncate(depth)) for depth in (0, 1)]
    assert below[0] < below[1] <= found * (1 + 1e-12)
    assert found == pytest.approx(below[1], rel=0.05)


def test_what_is_refused() -> None:
    brackets = lark_grammar('start: "(" start ")" |')
    empty = Grammar.from_rules({"s": regex("a").expr}, "s")
    assert memoryless({"b": 0.5}).mass(empty) == 0
    assert memoryless({"b": 0.5}).mass(brackets) == 1
    assert WeightedLanguage.alternatives({}).mass(brackets) == 0
    with pytest.raises(BudgetExceeded):
        memoryless({"(": 0.1, ")": 0.1}).mass(brackets, Budget(bytes=1000))
    assert np.isfinite(memoryless({"(": 0.1, ")": 0.1}).mass(brackets))
