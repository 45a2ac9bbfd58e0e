"""Decoders that sample draw each token at the temperature that the rules say (``matcher.temperature``)."""

from __future__ import annotations

from collections import Counter

import torch

from tokenfst import Vocabulary, compile, generate, lark_grammar, speculative_generate
from tokenfst.decoding.models.sampling import Sampling

VOCABULARY = Vocabulary([*(bytes([byte]) for byte in range(256)), b""], 256)
GRAMMAR = lark_grammar("start: cold hot\ncold[temperature=0.0]: /[ab]{4}/\nhot[temperature=5.0]: /[ab]{4}/")


def model(ids: torch.Tensor) -> torch.Tensor:
    """At temperature 1, ``a`` is e times as likely as ``b``."""
    scores = torch.zeros((len(ids), 257))
    scores[..., ord("a")] = 1.0
    return scores


def test_heated_scores_have_the_distribution_of_the_temperature() -> None:
    torch.manual_seed(3)
    scores = torch.randn((4, 9))
    scores[:, 2] = float("-inf")
    settings = Sampling(do_sample=True, temperature=0.7, top_k=5, top_p=0.9)
    heats = [None, 0.3, 2.5, 0.0]
    found = settings.probabilities(settings.with_temperatures(scores, heats))
    for row, heat in enumerate(heats[:3]):
        other = Sampling(do_sample=True, temperature=heat or 0.7, top_k=5, top_p=0.9)
        assert torch.allclose(found[row], other.probabilities(scores[row : row + 1])[0])
    assert found[3].argmax() == scores[3].argmax() and found[3].max() == 1.0
    greedy = Sampling()
    assert greedy.with_temperatures(scores, heats) is scores
    assert settings.with_temperatures(scores, [None] * 4) is scores


def test_generate_draws_at_them() -> None:
    automaton = compile(GRAMMAR, VOCABULARY)
    generator = torch.Generator().manual_seed(1)
    made = generate(
        model, [[0]] * 60, automaton, max_new_tokens=12, do_sample=True, generator=generator, width=257
    )
    hot = Counter(text[4:] for text in made.texts)
    assert {text[:4] for text in made.texts} == {b"aaaa"}
    share = sum(text.count(b"b") * count for text, count in hot.items()) / (4 * 60)
    assert 0.33 < share < 0.57  # 1 / (1 + e ** 0.2) = 0.45; at temperature 1 it is 0.27


def test_speculation_draws_at_them() -> None:
    automaton = compile(GRAMMAR, VOCABULARY)
    generator = torch.Generator().manual_seed(2)
    texts = [
        speculative_generate(
            model, model, [0], automaton, max_new_tokens=12, do_sample=True, generator=generator, width=257
        ).text
        for _ in range(40)
    ]
    assert {text[:4] for text in texts} == {b"aaaa"}
    share = sum(text[4:].count(b"b") for text in texts) / (4 * 40)
    assert 0.31 < share < 0.59
