"""Scores in engines that serve many requests: the same as a matcher's, and errors that end one request only."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

pytest.importorskip("torch")
import torch

from tokenfst import Vocabulary, WeightedLanguage, boost, compile, prefer, regex
from tokenfst.decoding.engines.shared.served_scores import NamedScores, ScoredText, read_scores
from tokenfst.errors import ArgumentValueError, ConstraintError

TOKENS = [b"a", b"b", b"ab", b"c", b"", b"stop"]
WEIGHTED = {
    "soft": prefer(regex("a.*"), by=1.5) & boost({"bab": 2.0, "c": -1.0}),
    "few": WeightedLanguage.alternatives({"ab": 3, "abc": 1, "c": 4}),
}


def vocabulary_of(ends):
    return Vocabulary(TOKENS, list(ends) or [4])


@given(
    name=st.sampled_from(["soft", "few"]),
    weight=st.sampled_from([1.0, 0.0, -0.5, 2.0]),
    walks=st.lists(st.lists(st.integers(0, 5), max_size=4), max_size=4),
    masked=st.sets(st.integers(0, 5), max_size=5),
    dtype=st.sampled_from([torch.float32, torch.bfloat16]),
)
def test_the_scores_are_those_of_a_matcher_wherever_the_ids_lead(name, weight, walks, masked, dtype):
    named = NamedScores(WEIGHTED, vocabulary_of)
    text = named.text(read_scores({"tokenfst_scores": name}, WEIGHTED)._replace(weight=weight), [4], True)
    for ids in walks:  # later ones may take tokens back, or be another text
        plain = compile(WEIGHTED[name], vocabulary_of([4])).matcher()
        if not plain.accept_tokens(ids) or 4 in ids:
            continue
        logits = torch.linspace(-1, 1, 8).to(dtype)
        logits[sorted(masked)] = -torch.inf
        expected = logits.clone()
        plain.scores_into(expected, weight)
        text.add_to(logits, ids)
        if expected.max() > -torch.inf:
            assert torch.equal(logits, expected)
        else:  # what the constraint forbids, so that it rejects it
            assert {*torch.nonzero(logits == 0).flatten().tolist()} == masked
            assert (logits[[each for each in range(8) if each not in masked]] == -torch.inf).all()


def test_where_nothing_is_left_a_request_without_a_constraint_ends():
    named = NamedScores(WEIGHTED, vocabulary_of)
    asked = read_scores({"tokenfst_scores": "few"}, WEIGHTED)
    for constrained, ids in ((False, [3, 3]), (True, [3, 3]), (False, [0, 3])):
        text = named.text(asked, [4, 5], constrained)
        logits = torch.zeros(6)
        text.add_to(logits, ids)  # of which the last has no score
        assert text.failure and {*torch.nonzero(logits == 0).flatten().tolist()} == {4, 5}
    text = named.text(asked, [4, 5], True)
    logits = torch.tensor([1.0, 1.0, -torch.inf, 1.0, 1.0, 1.0])
    text.add_to(logits, [1])
    assert text.failure and torch.equal(logits == 0, torch.tensor([False, False, True, False, False, False]))


def test_behind_the_end_nothing_is_added():
    text = ScoredText(compile(WEIGHTED["few"], vocabulary_of([4])), 1.0, True)
    for ids in ([2], [2, 4], [2, 4, 1]):
        logits = torch.zeros(6)
        text.add_to(logits, ids)
        assert torch.equal(logits, torch.zeros(6)) == (4 in ids) and not text.failure
    logits = torch.zeros(6)
    text.add_to(logits, [3])
    assert logits[4] > -torch.inf and (logits[[0, 1, 2, 3, 5]] == -torch.inf).all()


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tokenfst_scores": "none"}, ConstraintError, "'none'; this engine was started with 'few', 'soft'"),
        ({"tokenfst_scores": ["few"]}, ConstraintError, "names a text"),
        ({"tokenfst_scores": "few", "tokenfst_scores_weight": "1"}, ArgumentValueError, "finite number"),
        (
            {"tokenfst_scores": "few", "tokenfst_scores_weight": float("nan")},
            ArgumentValueError,
            "finite number",
        ),
        ({"tokenfst_scores": "few", "tokenfst_scores_weight": True}, ArgumentValueError, "finite number"),
        ({"tokenfst_scores_weight": 1.0}, ConstraintError, "without tokenfst_scores"),
    ],
)
def test_what_cannot_be_is_refused(options, error, message):
    with pytest.raises(error, match=message):
        read_scores(options, WEIGHTED)
    assert read_scores(None, WEIGHTED) is None and read_scores({"other": 1}, WEIGHTED) is None
