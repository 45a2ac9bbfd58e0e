"""A model with scores added: sessions beside the definition, and decoders beside enumeration."""

from __future__ import annotations

import itertools
import math
import random

import pytest
import torch

import tokenfst
from reference.transducers.random_arpa import arpa
from reference.transducers.weighted import token_scores
from tests.decoding.scores.test_token_scores import random_language
from tokenfst import FusedModel, NGramModel, Vocabulary, WeightedLanguage, boost, compile, regex
from tokenfst.decoding.models.language_model import CallbackModel
from tokenfst.decoding.models.tree_session import tree_session
from tokenfst.errors import ArgumentValueError, LogitsError, TokenIdError, VocabularyMismatchError

PIECES = [b"a", b"b", b"ab", b"c", b"", b""]
END, SPECIAL, WIDTH = 4, 5, 7
VOCABULARY = Vocabulary(PIECES, END)


def scores_of(ids: tuple[int, ...]) -> list[float]:
    draw = random.Random(f"{ids}")
    return [draw.gauss(0, 1) for _ in range(WIDTH)]


def model(ids: torch.Tensor) -> torch.Tensor:
    return torch.tensor([scores_of(tuple(row)) for row in ids.tolist()])


def due(language: WeightedLanguage, ids: tuple[int, ...], prompt: int, weight: float) -> list[float]:
    """The definition: the model's score and the weighted language's, -inf where either has none."""
    text = b"".join(PIECES[token] for token in ids[prompt:])
    own = scores_of(ids)
    found = token_scores(language.machine, text, PIECES, (END,), language.special_weight)
    return [
        own[token] + weight * found[token] if token < len(PIECES) and found[token] > -math.inf else -math.inf
        for token in range(WIDTH)
    ]


@pytest.mark.parametrize("seed", range(12))
def test_sessions(seed: int) -> None:
    language = random_language(seed)
    if language.is_empty():
        return
    draw = random.Random(seed)
    weight = draw.choice([1.0, 0.3, -0.5, 0.0])
    session = FusedModel(model, compile(language, VOCABULARY), weight, width=WIDTH).start([[0], [1]])
    rows: list[tuple[tuple[int, ...], int]] = [((0,), 1), ((1,), 1)]
    for _ in range(4):
        for (ids, prompt), logits in zip(rows, session.logits.tolist(), strict=True):
            assert logits == pytest.approx(due(language, ids, prompt, weight), abs=1e-4)
        parents, tokens = [], []
        for _ in range(2):
            at = draw.randrange(2)
            allowed = [
                t for t, each in enumerate(session.logits[at].tolist()) if each > -math.inf and t != END
            ]
            if not allowed:
                return
            parents.append(at)
            tokens.append(draw.choice(allowed))
        rows = [((*rows[at][0], token), rows[at][1]) for at, token in zip(parents, tokens, strict=True)]
        session.extend(torch.tensor(parents), torch.tensor(tokens))
        if draw.random() < 0.5:  # another token, taken back
            session.extend(torch.arange(2), torch.tensor([3, 0]))
            session.rewind(1)
            rows = [(ids[:-1], prompt) for ids, prompt in rows]
            session.rewind(1)
            session.extend(torch.arange(2), torch.tensor(tokens))
            rows = [((*ids, token), prompt) for (ids, prompt), token in zip(rows, tokens, strict=True)]


def test_rows_of_several_tokens() -> None:
    language = boost({"abc": 2.0, "ba": -1.0})
    session = FusedModel(CallbackModel(model, WIDTH), compile(language, VOCABULARY), 0.5).start([[0], [1]])
    scores = session.extend(torch.tensor([1, 0]), torch.tensor([[0, 1, 3], [2, 3, 3]]), torch.tensor([3, 2]))
    for row, (first, tokens) in enumerate([(1, (0, 1, 3)), (0, (2, 3))]):
        for count in range(1, len(tokens) + 1):
            found = scores[row, count - 1].tolist()
            assert found == pytest.approx(due(language, (first, *tokens[:count]), 1, 0.5), abs=1e-4)
        assert session.logits[row].tolist() == pytest.approx(
            due(language, (first, *tokens), 1, 0.5), abs=1e-4
        )


def test_what_is_forbidden_and_what_has_ended() -> None:
    language = WeightedLanguage.alternatives({"ab": 3, "c": 1})
    session = FusedModel(model, compile(language, VOCABULARY), width=WIDTH).start([[0], [0]])
    session.extend(torch.arange(2), torch.tensor([1, 3]))  # "b" begins no text
    assert session.logits[0].tolist() == [-math.inf] * WIDTH
    session.extend(torch.arange(2), torch.tensor([0, END]))
    assert session.logits[0].tolist() == [-math.inf] * WIDTH
    assert session.logits[1].tolist() == pytest.approx(scores_of((0, 3, END)))
    session.extend(torch.arange(2), torch.tensor([WIDTH - 1, END]))
    session.rewind(3)
    session.extend(torch.arange(2), torch.tensor([0, 3]))
    assert session.logits[0].tolist() == pytest.approx(due(language, (0, 0), 1, 1.0), abs=1e-4)
    # A constraint that leaves one way on, where the weighted language has none.
    with pytest.raises(LogitsError):
        fused = FusedModel(model, compile(language, VOCABULARY), width=WIDTH)
        tokenfst.generate(fused, [[0]], compile(regex("b(a|c)"), VOCABULARY), max_new_tokens=4)


@pytest.mark.parametrize("seed", range(4))
def test_decoders_find_what_is_best_by_both(seed: int) -> None:
    machine = NGramModel.from_arpa(arpa(["a", "b", "c"], 3, seed), unit="character")
    language = machine.to_weighted()
    constraint = compile(regex("[abc]{1,3}"), VOCABULARY)
    fused = FusedModel(model, compile(machine, VOCABULARY), 0.7, width=WIDTH)
    texts = {bytes(t) for n in range(1, 4) for t in itertools.product(b"abc", repeat=n)}

    # Beam search ranks by log-probabilities of each step, so its model must be normalized: score by the session.
    def log_prob(tokens: tuple[int, ...]) -> float:
        session, total = fused.start([[0]]), 0.0
        for token in (*tokens, END):
            total += float(torch.log_softmax(session.logits[0], -1)[token])
            session.extend(torch.tensor([0]), torch.tensor([token]))
        return total

    sequences = [
        tokens
        for n in range(1, 4)
        for tokens in itertools.product(range(4), repeat=n)
        if b"".join(PIECES[t] for t in tokens) in texts
    ]
    wanted = max(sequences, key=log_prob)
    found = tokenfst.automata_beam_search(fused, [[0]], constraint, num_beams=60, max_new_tokens=4)[0][0]
    assert tuple(found.tokens) == (*wanted, END)
    # Greedily: at each step the best by both.
    made = tokenfst.generate(fused, [[0]], constraint, max_new_tokens=4, jump_forward=False)[0]
    matcher, ids = constraint.matcher(4), (0,)
    for token in made.tokens:
        allowed = [t for t in range(len(PIECES)) if matcher.fork().accept_token(t)]
        step = due(language, ids, 1, 0.7)
        assert token == max(allowed, key=lambda t: step[t])
        matcher.accept_token(token)
        ids = (*ids, token)
    greedy = tokenfst.speculative_generate(
        fused, model, [0], constraint, max_new_tokens=4, branching=(2, 1), width=WIDTH
    )
    assert tuple(greedy.tokens) == tuple(made.tokens)


def test_trees() -> None:
    language = boost({"ab": 1.0})
    session = tree_session(FusedModel(model, compile(language, VOCABULARY), 1.0, width=WIDTH).start([[0]]))
    scores = session.extend_tree([-1, 0, -1], [0, 1, 3])
    for node, ids in enumerate([(0, 0), (0, 0, 1), (0, 3)]):
        assert scores[0, node].tolist() == pytest.approx(due(language, ids, 1, 1.0), abs=1e-4)


def test_what_is_refused() -> None:
    scores = compile(boost(["ab"]), VOCABULARY)
    with pytest.raises(VocabularyMismatchError, match="4 tokens"):
        FusedModel(model, scores, width=4)
    with pytest.raises(ArgumentValueError, match="weight"):
        FusedModel(model, scores, math.nan, width=WIDTH)
    with pytest.raises(TypeError, match="scores"):
        FusedModel(model, [scores], width=WIDTH)  # type: ignore[arg-type]
    with pytest.raises(TokenIdError):
        FusedModel(model, scores, width=WIDTH).start([[0]]).extend(torch.tensor([0]), torch.tensor([-1]))
