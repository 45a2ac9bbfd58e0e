"""``prefer`` and ``boost`` beside what they promise of whole texts; what they pay while a text is written."""

from __future__ import annotations

import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.transducers.weighted import occurrences, texts
from tokenfst import Budget, boost, prefer, regex
from tokenfst.errors import BudgetExceeded, ConstraintError

PHRASES = st.dictionaries(st.text("ab", min_size=1, max_size=4), st.floats(-2, 3), max_size=5)


@given(PHRASES)
@settings(max_examples=30, deadline=None)
def test_boosts_count_occurrences(phrases: dict[str, float]) -> None:
    language = boost(phrases)
    for text in texts(b"abc", 4):
        due = sum(worth * occurrences(text, phrase.encode()) for phrase, worth in phrases.items())
        assert language.log_weight(text) == pytest.approx(due, abs=1e-9)


@pytest.mark.parametrize("pattern", ["(ab)*", "a|abb", "[^c]*", "", "c+|b"])
@pytest.mark.parametrize("by", [1.5, -0.5, 0.0])
def test_preferred_texts_weigh_more(pattern: str, by: float) -> None:
    wanted = regex(pattern)
    language = prefer(wanted, by=by)
    for text in texts(b"abc", 4):
        assert language.log_weight(text) == pytest.approx(by if text in wanted else 0.0, abs=1e-12)


def test_a_preference_of_nothing_is_none() -> None:
    language = prefer(regex("a") & regex("b"), by=2.0)
    assert [language.log_weight(text) for text in ("", "a", "zz")] == [0.0, 0.0, 0.0]


def test_preferences_add_up() -> None:
    both = prefer(regex("a.*"), by=1.0) & boost(["bb"], by=0.5)
    assert both.log_weight("abbb") == pytest.approx(2.0)
    assert both.log_weight("bb") == pytest.approx(0.5)
    assert both.special_weight == 0.0


def test_a_phrase_is_paid_as_it_is_written_and_taken_back() -> None:
    from tokenfst import Vocabulary, compile

    vocabulary = Vocabulary([*(bytes([byte]) for byte in b"Anax"), b"ana", b""], 5)
    matcher = compile(boost({"Anna": 4.0}), vocabulary).matcher()
    assert matcher.scores()[0] == pytest.approx(1.0)
    assert matcher.accept_tokens([0, 1])
    assert matcher.log_weight == pytest.approx(2.0)
    assert matcher.scores()[3] == pytest.approx(-2.0)  # "Anx": all of it is taken back
    assert matcher.scores()[0] == pytest.approx(-1.0)  # "AnA": another one begins
    assert matcher.scores()[5] == pytest.approx(-2.0)  # the end
    assert matcher.accept_tokens([1, 2])
    assert matcher.log_weight == pytest.approx(4.0) and matcher.scores()[5] == 0.0


def test_what_is_refused() -> None:
    with pytest.raises(TypeError, match="phrases"):
        boost("one")
    with pytest.raises(ValueError, match="not empty"):
        boost([""])
    with pytest.raises(ValueError, match="finite"):
        boost({"a": math.inf})
    with pytest.raises(ValueError, match="by"):
        prefer(regex("a"), by=math.inf)
    with pytest.raises(BudgetExceeded, match="boost"):
        boost(["a" * 100], budget=Budget(states=50))
    from tokenfst import lark_grammar

    with pytest.raises(ConstraintError, match="regular"):
        prefer(lark_grammar('start: "(" start ")" | "a"'))
