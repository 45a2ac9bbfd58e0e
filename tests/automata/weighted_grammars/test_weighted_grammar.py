"""Weighted grammars beside the enumeration of their derivations, and beside sums that are known."""

from __future__ import annotations

import itertools
import math
import pickle
import random
from typing import Any

import numpy as np
import pytest

from reference.grammars.derivations import Form, as_templates, derived, prefix_weight
from tokenfst import Budget, Vocabulary, WeightedGrammar, WeightedLanguage, compile, regex
from tokenfst.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    BudgetExceeded,
    ConstraintError,
    DivergingGrammarError,
    DivergingSumError,
    EmptyLanguageError,
    TemplateError,
)

TEXTS = [bytes(text) for length in range(5) for text in itertools.product(b"ab", repeat=length)]
VOCABULARY = Vocabulary([b"a", b"b", b"ab", b"ba", b"aab", b"abba", b"a", b"", b"", b"bb"], 7)
END, SPECIAL = 7, 8


def random_rules(seed: int, *, recursive: bool) -> dict[str, list[tuple[Form, float]]]:
    """Rules with empty words, first calls and calls alone; those of a recursive grammar are no probabilities either."""
    draw = random.Random(seed)
    names = ["start", "A", "B"]
    made: dict[str, list[tuple[Form, float]]] = {}
    for at, name in enumerate(names):
        callable_ = names if recursive else names[at + 1 :]
        alternatives: list[tuple[Form, float]] = [((draw.choice(b"ab"),), draw.uniform(0.2, 0.5))]
        for _ in range(draw.randrange(1, 4)):
            form = tuple(
                draw.choice(callable_) if callable_ and draw.random() < 0.5 else draw.choice(b"ab")
                for _ in range(draw.randrange(4))
            )
            alternatives.append((form, draw.uniform(0.01, 0.1 if recursive else 1.0)))
        made[name] = alternatives
    return made


def log(value: float) -> float:
    return math.log(value) if value else -math.inf


@pytest.mark.parametrize("seed", range(60))
def test_grammars_without_recursion_are_their_derivations(seed: int) -> None:
    rules = random_rules(seed, recursive=False)
    texts, lost = derived(rules, "start")
    assert lost == 0
    grammar = WeightedGrammar(as_templates(rules))
    assert grammar.mass() == pytest.approx(sum(texts.values()), rel=1e-9)
    for text in [*TEXTS, *texts]:
        assert grammar.log_weight(text) == pytest.approx(log(texts.get(text, 0)), abs=1e-9)
        assert grammar.log_prefix_weight(text) == pytest.approx(log(prefix_weight(texts, text)), abs=1e-9)
    check_walk(grammar, texts, seed, 1e-5)


@pytest.mark.parametrize("seed", range(12))
def test_recursive_grammars_are_the_sums_of_their_derivations(seed: int) -> None:
    rules = random_rules(seed, recursive=True)
    texts, lost = derived(rules, "start", 1e-6)
    assert lost < 0.02
    grammar = WeightedGrammar(as_templates(rules))
    whole = sum(texts.values())
    room = 2 * lost + 1e-9  # a form that was left out stands for what its names weigh, each less than 1.5
    assert -1e-9 <= grammar.mass() - whole <= room
    for text in TEXTS:
        assert -1e-9 <= math.exp(grammar.log_weight(text)) - texts.get(text, 0) <= room
        assert -1e-9 <= math.exp(grammar.log_prefix_weight(text)) - prefix_weight(texts, text) <= room


def check_walk(grammar: WeightedGrammar, texts: dict[bytes, float], seed: int, room: float) -> None:
    """A walk over tokens: each row by the definition, and the sum of scores beside the text's weight."""
    draw = random.Random(seed)
    automaton = compile(grammar, VOCABULARY)
    matcher, text = automaton.matcher(), b""
    while not matcher.is_terminated():
        before = prefix_weight(texts, text)
        due = [
            log(texts.get(text, 0) / before) if token == END
            else -math.inf if not data
            else log(prefix_weight(texts, text + data) / before)
            for token, data in enumerate(VOCABULARY.tokens)
        ]  # fmt: skip
        assert matcher.scores() == pytest.approx(due, abs=room)
        assert matcher.is_accepting() == (due[END] > -math.inf)
        token = draw.choice([token for token, score in enumerate(due) if score > -math.inf])
        assert not any(matcher.fork().accept_token(t) for t, score in enumerate(due) if score == -math.inf)
        assert matcher.accept_token(token)
        text += VOCABULARY.tokens[token]
    assert matcher.log_weight == pytest.approx(math.log(texts[text]), abs=1e-9)


def test_rows_of_places_that_are_equal_are_made_once() -> None:
    nested = {"start": {"[{start}]": 0.3, "[]": 0.2, "{word}": 0.4}, "word": {"{word}a": 0.5, "a": 0.25}}
    automaton = compile(WeightedGrammar(nested), Vocabulary([b"[", b"]", b"a", b""], 3))
    matcher = automaton.matcher()
    for token in (0, 0, 2, 2, 2, 2):
        matcher.scores()
        assert matcher.accept_token(token)
    assert automaton.rows_made == 4  # after "", "[", "[[", "[[a"; "[[aa" and "[[aaa" have that of "[[a"
    loaded = pickle.loads(pickle.dumps(automaton)).matcher()
    loaded.accept_tokens([0, 0, 2, 2, 2, 2])
    assert np.array_equal(loaded.scores(), matcher.scores())
    matcher.rollback(3)
    assert np.isclose(np.exp(matcher.scores()[:3]).sum(), 1)


def test_left_recursion_and_circles_of_calls() -> None:
    """E -> E + E | E | x: the total solves a square equation, and so do beginnings."""
    grammar = WeightedGrammar({"start": {"{start}+{start}": 0.2, "{start}": 0.1, "x": 0.5}})
    total = (0.9 - math.sqrt(0.81 - 0.4)) / 0.4
    assert grammar.mass() == pytest.approx(total, rel=1e-12)
    one = 0.5 / 0.9
    assert math.exp(grammar.log_weight("x")) == pytest.approx(one, rel=1e-9)
    assert math.exp(grammar.log_weight("x+x")) == pytest.approx(0.2 / 0.9 * one**2, rel=1e-9)
    assert math.exp(grammar.log_prefix_weight("x+")) == pytest.approx(total - one, rel=1e-9)
    assert grammar.log_prefix_weight("+") == -math.inf


def test_long_texts_do_not_underflow() -> None:
    deep = WeightedGrammar({"start": {"({start}){start}": 1e-6, "": 1.0}})
    text = "(" * 300 + ")" * 300
    assert deep.log_weight(text) == pytest.approx(300 * math.log(1e-6), abs=1e-6)
    many = WeightedGrammar({"start": {"{start}a": 1e-3, "a": 1e-3}})
    assert many.log_weight("a" * 3000) == pytest.approx(3000 * math.log(1e-3), rel=1e-9)


def test_a_rule_may_be_a_weighted_language() -> None:
    number = WeightedLanguage.of(regex("[0-9]")).scaled(math.log(0.05)).star() & regex("[0-9]+")
    grammar = WeightedGrammar({"start": {"{start}+{start}": 0.25, "{number}": 0.5}, "number": number})
    assert math.exp(grammar.log_weight("12+3")) == pytest.approx(0.25 * 0.25 * 0.05**3, rel=1e-9)
    letters = WeightedGrammar({"start": {"{{{word}}}": 2}, "word": "a|bc"})
    assert math.exp(letters.log_weight("{bc}")) == pytest.approx(2) and letters.mass() == pytest.approx(4)


def test_drawn_texts() -> None:
    grammar = WeightedGrammar({"start": {"a{start}b": 0.5, "": 1.5}})
    drawn = grammar.sample(2000, generator=np.random.default_rng(1))
    for n in range(3):
        share = drawn.count(b"a" * n + b"b" * n) / len(drawn)
        assert share == pytest.approx(
            math.exp(grammar.log_weight("a" * n + "b" * n)) / grammar.mass(), abs=0.04
        )
    assert grammar.sample(3, generator=np.random.default_rng(1)) == drawn[:3]


@pytest.mark.parametrize(
    ("rules", "error", "said"),
    [
        ({"start": {"{start}{start}": 0.6, "a": 0.6}}, DivergingGrammarError, "start"),
        ({"start": {"{start}": 1.0, "a": 0.5}}, DivergingGrammarError, "start"),
        ({"start": "a*"}, DivergingSumError, "a"),
        ({"start": {"a": -1}}, ArgumentValueError, "weight"),
        ({"start": {"a": math.nan}}, ArgumentValueError, "weight"),
        ({"start": {"a": math.inf}}, ArgumentValueError, "weight"),
        ({"start": {"a": True}}, ArgumentValueError, "weight"),
        ({"start": {3: 1}}, ArgumentTypeError, "alternative"),
        ({"start": {"{other}": 1}}, TemplateError, "other"),
        ({"start": {"{": 1}}, TemplateError, "partner"),
        ({"start": 7}, ArgumentTypeError, "start"),
        ({"begin": {"a": 1}}, ConstraintError, "begin"),
    ],
)
def test_what_is_refused(rules: Any, error: type[Exception], said: str) -> None:
    with pytest.raises(error, match=said):
        WeightedGrammar(rules)


def test_grammars_without_words() -> None:
    for rules in ({"start": {"a{start}": 0.5}}, {"start": {"a": 0}}, {"start": regex("a") & regex("b")}):
        grammar = WeightedGrammar(rules)
        assert grammar.is_empty() and grammar.mass() == 0 and grammar.log_weight("a") == -math.inf
        with pytest.raises(EmptyLanguageError):
            compile(grammar, VOCABULARY)
        with pytest.raises(EmptyLanguageError):
            grammar.sample()


def test_budgets() -> None:
    ambiguous = {"start": {"{start}{start}": 0.1, "a": 0.5}}
    with pytest.raises(BudgetExceeded, match="chart"):
        WeightedGrammar(ambiguous, budget=Budget(states=2000)).log_weight("a" * 100)
    with pytest.raises(BudgetExceeded, match="start"):
        WeightedGrammar({"start": {"a" * 100: 1}}, budget=Budget(states=50))
    rules: dict[str, Any] = {f"r{n}": {f"{{r{n + 1}}}a": 0.5, "b": 0.1} for n in range(100)}
    with pytest.raises(BudgetExceeded):
        WeightedGrammar(rules | {"r100": {"a": 1}}, "r0", Budget(bytes=5_000))


@pytest.mark.filterwarnings("error")
def test_a_mass_beyond_floats_is_infinite() -> None:
    grammar = WeightedGrammar({"start": {"{w}": 1e200}, "w": {"a": 1e200}})
    assert grammar.mass() == math.inf and grammar.log_mass() == pytest.approx(400 * math.log(10))
    assert WeightedGrammar({"start": {"a": 10**400}}).log_mass() == pytest.approx(400 * math.log(10))


def test_patterns_with_many_texts_do_not_diverge() -> None:
    """A pattern's texts have weight 1 each, so there are totals beyond 10^13, which was the bound of a sum."""
    grammar = WeightedGrammar({"start": {"[{start}]": 0.5, '"{name}"': 1.0}, "name": "[a-z]{1,12}"})
    assert grammar.mass() == pytest.approx(2 * sum(26**count for count in range(1, 13)))
    tiny = WeightedGrammar({"start": {"[{start}]": 0.5, "{name}": 1e-300}, "name": {"a": 1e-300}})
    assert tiny.log_mass() == pytest.approx(math.log(2) - 600 * math.log(10))


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("scale", [1e20, 1e-90])
def test_totals_do_not_depend_on_the_unit_of_weights(seed: int, scale: float) -> None:
    """With d calls multiplied by scale^(1 - d), all totals are multiplied by the scale."""
    draw = random.Random(seed)
    count = draw.choice([1, 2, 3])

    def rule() -> dict[str, float]:
        linear = {f"x{{a{draw.randrange(count)}}}": draw.choice([0.1, 0.3]) for _ in range(2)}
        twice = {f"q{{a{draw.randrange(count)}}}{{a{draw.randrange(count)}}}": 0.05}
        return linear | twice | {"y": draw.choice([0.2, 0.5])}

    rules = {f"a{number}": rule() for number in range(count)}
    scaled = {
        name: {text: weight * scale ** (1 - text.count("{")) for text, weight in ways.items()}
        for name, ways in rules.items()
    }
    due = WeightedGrammar(rules, "a0").log_mass() + math.log(scale)
    assert WeightedGrammar(scaled, "a0").log_mass() == pytest.approx(due, rel=1e-9)
