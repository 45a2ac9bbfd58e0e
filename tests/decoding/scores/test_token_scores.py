"""Scores of tokens beside their definition, on small vocabularies; how they are added to logits."""

from __future__ import annotations

import math
import pickle
import random
from typing import Any

import numpy as np
import pytest
import torch

import tokenfst
import tokenfst.fst as fst
from reference.transducers.random_arpa import arpa
from reference.transducers.weighted import text_weight, token_scores
from tokenfst import Budget, NGramModel, Vocabulary, WeightedLanguage, boost, compile, prefer, regex
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    LogitsError,
    MaskBufferError,
    RollbackError,
    TerminatedError,
    TokenIdError,
)

PIECES = [b"a", b"b", b"ab", b"c", b"ba", b"abc", b"a", b"", b"", b"\xc3", b"bb"]
END, SPECIAL = 7, 8
VOCABULARY = Vocabulary(PIECES, END)


def random_language(seed: int) -> WeightedLanguage:
    """An ambiguous machine over a, b and c, whose paths stand side by side."""
    draw = random.Random(seed)
    states = draw.randrange(1, 6)
    made = fst.VectorFst("log64").add_states(states).set_start(0)
    for _ in range(draw.randrange(3, 13)):
        label = draw.choice(b"abc")
        made.add_arc(
            draw.randrange(states), fst.Arc(label, label, draw.uniform(-1, 3), draw.randrange(states))
        )
    for state in range(states):
        if draw.random() < 0.5:
            made.set_final(state, draw.uniform(-1, 2))
    return WeightedLanguage.from_fst(made, token_type="byte")


def check_walk(language: WeightedLanguage, vocabulary: Vocabulary, seed: int) -> None:
    """Random walks: each row beside the definition, and the sum of scores beside the text's weight."""
    draw = random.Random(seed)
    automaton = compile(language, vocabulary)
    for _ in range(3):
        matcher, text = automaton.matcher(), b""
        while (
            len(text) < 5
        ):  # the definition walks every path, and there may be 3 times as many with each byte
            found = matcher.scores()
            due = token_scores(
                language.machine, text, vocabulary.tokens, vocabulary.eos_token_ids, language.special_weight
            )
            assert found == pytest.approx(due, abs=1e-4)
            allowed = np.zeros((1, -(-len(vocabulary) // 32)), np.int32)
            matcher.fill_next_token_bitmask(allowed)
            bits = np.unpackbits(allowed.view(np.uint8), bitorder="little", count=len(vocabulary))
            assert bits.tolist() == [score > -math.inf for score in due]
            possible = [
                t for t, score in enumerate(due) if score > -math.inf and t not in vocabulary.eos_token_ids
            ]
            if not possible:
                break
            token = draw.choice(possible)
            assert matcher.accept_token(token)
            text += vocabulary.tokens[token]
        if matcher.is_accepting():
            assert matcher.accept_token(END)
            assert matcher.log_weight == pytest.approx(
                math.log(text_weight(language.machine, text)), abs=1e-9
            )
            assert math.isclose(matcher.log_weight, language.log_weight(text), abs_tol=1e-9)


@pytest.mark.parametrize("seed", range(25))
def test_scores_of_ambiguous_machines(seed: int) -> None:
    language = random_language(seed)
    if language.is_empty():
        with pytest.raises(EmptyLanguageError):
            compile(language, VOCABULARY)
        return
    check_walk(language, VOCABULARY, seed)


@pytest.mark.parametrize(
    "language",
    [
        prefer(regex("(ab|c)*b"), by=1.5),
        boost({"abc": 2.0, "ba": -1.0, "cab": 0.5}),
        boost(["ab"]) & prefer(regex("[ab]*"), by=0.7),
        NGramModel.from_arpa(arpa(["a", "b", "c"], 3, 1), unit="character").to_weighted(),
        WeightedLanguage.alternatives([("ab", 1), (regex("a+b?c*"), 0.5)]),
    ],
    ids=lambda language: language.source[:20],
)
def test_scores_of_each_kind(language: WeightedLanguage) -> None:
    check_walk(language, VOCABULARY, 0)


def test_normalized_scores_are_conditional_probabilities() -> None:
    language = WeightedLanguage.alternatives({"ab": 3, "abc": 1, "c": 4}).normalized()
    single = Vocabulary([b"a", b"b", b"c", b""], 3)
    matcher = compile(language, single).matcher()
    for token, probabilities in [(0, [0.5, 0, 0.5, 0]), (1, [0, 1, 0, 0]), (None, [0, 0, 0.25, 0.75])]:
        assert np.exp(matcher.scores()) == pytest.approx(probabilities, abs=1e-6)
        if token is not None:
            matcher.accept_token(token)


def test_the_first_token_may_be_spelled_otherwise() -> None:
    vocabulary = Vocabulary([b" a", b"b", b" ", b""], 3, initial_tokens=[b"a", b"b", b"", b""])
    language = WeightedLanguage.alternatives({"a a": 2, "ab": 3, " a": 5})
    automaton = compile(language, vocabulary)
    matcher = automaton.matcher()
    # Two paths begin with "a", of weight 1 each; the third does with a space, which is not written here.
    assert matcher.scores()[:2] == pytest.approx([math.log(2), -math.inf])
    assert matcher.scores()[2:].tolist() == [0.0, -math.inf]
    assert matcher.accept_tokens([2, 0, 3]) and matcher.log_weight == pytest.approx(math.log(5))
    matcher.reset()
    assert matcher.accept_tokens([0, 0, 3]) and matcher.log_weight == pytest.approx(math.log(2))


def test_models_over_token_ids() -> None:
    text = arpa(["0", "1", "2", "4"], 3, 5)
    model = NGramModel.from_arpa(text, unit="token")
    automaton = compile(model, VOCABULARY)
    matcher, at = automaton.matcher(), model.start
    for token in [0, 2, 2, 3, 1, 4, 0, 0]:
        due = [model.log_prob(at, str(each)) for each in range(len(PIECES))]
        due[END] = model.log_prob(at, "</s>")
        assert matcher.scores() == pytest.approx(due, abs=1e-5)
        assert matcher.accept_token(token)
        at = model.after(at, str(token))
    assert matcher.accept_token(END)
    assert matcher.log_weight == pytest.approx(model.log_weight(list("02231400")))
    assert pickle.loads(pickle.dumps(automaton)).matcher().scores()[0] == automaton.matcher().scores()[0]
    without = compile(NGramModel.from_arpa(arpa(["0"], 1, 0, unknown=False), unit="token"), VOCABULARY)
    assert not without.matcher().accept_token(1)


@pytest.mark.parametrize("kind", ["numpy", "numpy16", "torch", "bfloat16", "rows"])
@pytest.mark.parametrize("weight", [1.0, 0.5, 0.0, -1.0])
def test_scores_into_logits(kind: str, weight: float) -> None:
    matcher = compile(WeightedLanguage.alternatives({"ab": 3, "c": 1}).normalized(), VOCABULARY).matcher()
    before = np.linspace(-1, 1, len(PIECES) + 2).astype(np.float32)
    scores = matcher.scores()
    due = np.full(len(before), -np.inf)
    some = scores > -np.inf
    due[: len(PIECES)][some] = before[: len(PIECES)][some] + weight * scores[some]
    made: Any = before.copy()
    if kind == "numpy16":
        made = made.astype(np.float16)
    elif kind in ("torch", "bfloat16"):
        made = torch.from_numpy(made).to(torch.float32 if kind == "torch" else torch.bfloat16)
    elif kind == "rows":
        made = torch.stack([torch.from_numpy(before)] * 3)
    matcher.scores_into(made, weight, index=1 if kind == "rows" else None)
    if kind == "rows":
        assert torch.equal(made[0], torch.from_numpy(before)) and torch.equal(made[2], made[0])
        made = made[1]
    shown = np.asarray(made.float() if isinstance(made, torch.Tensor) else made, np.float64)
    assert shown == pytest.approx(due, abs=1e-6 if "16" not in kind else 2e-2)


def test_scores_into_refuses() -> None:
    matcher = compile(WeightedLanguage.alternatives({"ab": 3}), VOCABULARY).matcher()
    with pytest.raises(MaskBufferError, match="index that names the row"):
        matcher.scores_into(np.zeros((2, 11), np.float32))
    with pytest.raises(MaskBufferError, match="no row 2"):
        matcher.scores_into(np.zeros((2, 11), np.float32), index=2)
    with pytest.raises(MaskBufferError, match="float32"):
        matcher.scores_into(np.zeros(11))
    with pytest.raises(ValueError, match="weight"):
        matcher.scores_into(np.zeros(11, np.float32), math.inf)
    with pytest.raises(LogitsError, match="NaN"):
        matcher.scores_into(np.full(11, np.nan, np.float32))
    with pytest.raises(ConstraintError, match="leave out"):
        compile(WeightedLanguage.alternatives({"a": 1}), VOCABULARY, deterministic=True)  # type: ignore[call-overload]


def test_going_back_and_forking() -> None:
    matcher = compile(prefer(regex("ab*"), by=1.0), VOCABULARY).matcher()
    first = matcher.scores()
    assert matcher.accept_tokens([0, 1, 3]) and matcher.log_weight == pytest.approx(0.0)
    other = matcher.fork()
    matcher.rollback(2)
    assert matcher.log_weight == pytest.approx(1.0) and other.tokens == [0, 1, 3]
    assert other.accept_token(SPECIAL) and other.accept_token(END) and other.is_terminated()
    assert other.scores()[END] == 0.0 and other.scores()[0] == -math.inf
    with pytest.raises(TerminatedError):
        other.accept_token(0)
    with pytest.raises(RollbackError):
        matcher.rollback(2)
    with pytest.raises(TokenIdError):
        matcher.accept_token(99)
    assert not compile(WeightedLanguage.alternatives({"ab": 1}), VOCABULARY).matcher().accept_tokens([0, END])
    matcher.reset()
    assert matcher.scores().tolist() == first.tolist()


def test_equal_nodes_have_one_row_and_few_are_kept() -> None:
    automaton = compile(prefer(regex("a*"), by=1.0), VOCABULARY)
    matcher = automaton.matcher()
    for _ in range(5):
        matcher.scores()
        matcher.accept_token(0)
    assert automaton.rows_made == 1
    size = matcher.automaton.row(automaton.start).bytes
    small = compile(boost(["abc"]), VOCABULARY, Budget(bytes=8 * size))
    walk = small.matcher()
    for token in (0, 1, 3, 0, 1, 3):
        walk.scores()
        walk.accept_token(token)
    assert small.rows_made == 6  # one row has room: none is met again in time
    with pytest.raises(BudgetExceeded, match="scores of a vocabulary"):
        compile(boost(["abc"]), VOCABULARY, Budget(bytes=size - 1)).matcher().scores()


def test_shallow_fusion_is_a_product_of_distributions() -> None:
    """A toy model and a weighted language: sampling by the sum of both logs has the product's probabilities."""
    language = WeightedLanguage.alternatives({"a": 1, "b": 3, "ab": 2})
    vocabulary = Vocabulary([b"a", b"b", b"c", b""], 3)
    logits = torch.log_softmax(torch.tensor([2.0, 1.0, 3.0, 0.5]), 0)  # the same at every place
    weights: dict[tuple[int, ...], float] = {}
    for tokens in [(0, 3), (1, 3), (0, 1, 3), (2, 3)]:
        matcher, total = tokenfst.compile(language, vocabulary).matcher(), 0.0
        for token in tokens:
            row = logits.clone()
            matcher.scores_into(row)
            total += float(row[token])
            matcher.accept_token(token)
        weights[tokens] = total + matcher.automaton.start_weight
    text = {(0, 3): "a", (1, 3): "b", (0, 1, 3): "ab"}
    for tokens, log_weight in weights.items():
        model = float(logits[list(tokens)].sum())
        due = model + language.log_weight(text[tokens]) if tokens in text else -math.inf
        assert log_weight == pytest.approx(due, abs=1e-5)
