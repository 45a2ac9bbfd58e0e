"""Weighted edits, weighted templates and look-ahead beside their definitions, on small worlds."""

from __future__ import annotations

import itertools
import math
import random

import pytest

from reference.transducers.random_arpa import arpa
from reference.transducers.weighted import prefix_weight, text_weight, texts
from tests.automata.grammars.test_grammar_repair import allowed
from tokenfst import (
    Budget,
    Language,
    NGramModel,
    Vocabulary,
    WeightedLanguage,
    compile,
    lark_grammar,
    look_ahead,
    prefer,
    regex,
    weighted_edits,
    weighted_template,
    within_edits,
)
from tokenfst.errors import (
    ArgumentValueError,
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    TemplateError,
)

COSTS = [(1, 1, 1), (0.5, 0.7, 2), (1, math.inf, 0.3), (math.inf, 1, 1), (0, 1, 1), (1, 0, 0.25)]


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("most", [0, 1, 1.5])
def test_the_least_costly_edits(costs: tuple[float, float, float], most: float) -> None:
    rng = random.Random(str((costs, most)))
    named = dict(zip(("insert", "delete", "replace"), costs, strict=True))
    words = {"".join(rng.choices("aé", k=rng.randint(0, 3))) for _ in range(2)}
    found = weighted_edits(Language.union_of(map(Language.literal, words)), most, named)
    assert found.is_deterministic
    for text in ("".join(each) for n in range(4) for each in itertools.product("aéè", repeat=n)):
        due = min(allowed(word, text, named) for word in words)
        wanted = -due if due <= most else -math.inf
        assert found.log_weight(text) == pytest.approx(wanted, abs=1e-8)


def test_edits_of_bytes_and_of_infinite_languages() -> None:
    language = regex("(ab)*")
    found = weighted_edits(language, 2, unit="bytes")
    for k in range(3):
        near = within_edits(language, k, unit="bytes")
        for text in texts(b"abc", 4):
            assert (found.log_weight(text) >= -k) == near.accepts(text)
    assert found.log_weight(b"a\xff") == -1
    with pytest.raises(ArgumentValueError, match="max_cost"):
        weighted_edits(language, -1)
    with pytest.raises(ArgumentValueError, match="unit"):
        weighted_edits(language, 1, unit="words")  # type: ignore[arg-type]
    with pytest.raises(ConstraintError, match="'swap'"):
        weighted_edits(language, 1, {"swap": 1})
    with pytest.raises(EmptyLanguageError):
        weighted_edits(regex("a") & regex("b"), 1)
    with pytest.raises(ConstraintError, match="regular"):
        weighted_edits(lark_grammar('start: "(" start ")" | "x"'), 1)
    with pytest.raises(BudgetExceeded):
        weighted_edits(regex("(a|b)*a(a|b){9}"), 3, budget=Budget(states=200))


def test_scores_of_edits() -> None:
    """Each token is told what it costs, and no more is taken back than the end owes."""
    vocabulary = Vocabulary([b"c", b"a", b"t", b"o", b""], 4)
    matcher = compile(weighted_edits(regex("cat"), 2), vocabulary).matcher()
    assert matcher.scores().tolist() == [0, -1, -1, -1, -math.inf]
    assert matcher.accept_tokens([0, 3])
    assert matcher.scores().tolist() == [-1, 0, 0, -1, -1]


def test_templates() -> None:
    found = weighted_template("{{{who}, {what}}}", who={"Ann": 3, "Bo": 1}, what=regex("x|y"))
    assert found.log_weight("{Ann, x}") == pytest.approx(math.log(3))
    assert found.log_weight("{Bo, y}") == pytest.approx(0)
    assert found.log_weight("{Bo, z}") == -math.inf
    assert found.mass() == pytest.approx(8)
    nested = weighted_template(
        "{a}{b}", a=WeightedLanguage.alternatives({"x": 2, "xx": 5}), b={"x": 3, "xx": 7}
    )
    assert nested.mass(Language.literal("xxx")) == pytest.approx(2 * 7 + 5 * 3)  # two ways to fill the holes
    assert weighted_template("ab").mass() == 1
    with pytest.raises(TemplateError):
        weighted_template("{a", a={"x": 1})
    with pytest.raises(ConstraintError, match="no hole"):
        weighted_template("a", b={"x": 1})
    with pytest.raises(ConstraintError, match="regular"):
        weighted_template("{a}", a=lark_grammar('start: "(" start ")" | "x"'))
    with pytest.raises(ArgumentValueError):
        weighted_template("{a}", a={"x": -1})


@pytest.mark.parametrize("seed", range(4))
def test_look_ahead_is_the_expectation(seed: int) -> None:
    model = NGramModel.from_arpa(arpa(["a", "b"], 2, seed), unit="character").to_weighted().normalized()
    language = WeightedLanguage.of(regex("(a|b){0,3}b|a"))
    weights = language if seed % 2 else (language & prefer(regex("b*"), by=1.3))
    found = look_ahead(weights if not seed % 2 else regex("(a|b){0,3}b|a"), model)

    def expected(prefix: bytes) -> float:
        """The mean weight of a text that the model goes on with from here: by all texts of the language."""
        every = [text for text in texts(b"ab", 4) if text.startswith(prefix)]
        total = math.fsum(
            text_weight(model.machine, text) * text_weight(weights.machine, text) for text in every
        )
        return total / prefix_weight(model.machine, prefix)

    whole = math.log(expected(b""))
    for text in texts(b"ab", 4):
        mean = expected(text)
        score = prefix_weight(found.machine, text)
        assert score == pytest.approx(mean / math.exp(whole), rel=1e-9, abs=1e-12)
        due = text_weight(weights.machine, text) / math.exp(whole)
        assert text_weight(found.machine, text) == pytest.approx(due, rel=1e-9, abs=1e-12)


def test_look_ahead_over_all_lengths() -> None:
    """With one letter: p(a) = p, and texts of an even length are wanted. e by hand."""
    model = WeightedLanguage.alternatives([(regex("a?"), 1.0)])
    p = 0.6
    one = WeightedLanguage.alternatives({"a": p})
    model = one.star().determinize().normalized()
    found = look_ahead(regex("(aa)*"), model)
    even, odd = 1 / (1 + p), p / (1 + p)  # (1-p)/(1-p^2)
    vocabulary = Vocabulary([b"a", b""], 1)
    matcher = compile(found, vocabulary).matcher()
    assert matcher.scores() == pytest.approx([math.log(odd / even), -math.log(even)])
    assert matcher.accept_token(0)
    assert matcher.scores() == pytest.approx([math.log(even / odd), -math.inf])
    with pytest.raises(EmptyLanguageError):
        look_ahead(regex("b"), model)
    with pytest.raises(ConstraintError, match="determinize"):
        look_ahead(regex("a"), one | one)
