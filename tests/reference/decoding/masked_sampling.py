"""Slow twin of constrained sampling: the probability of every token sequence."""

from __future__ import annotations

import torch

import tokenfst
from tokenfst.decoding.models.language_model import CallbackModel


def sequence_probabilities(
    automaton: tokenfst.TokenAutomaton,
    model: CallbackModel,
    limit: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
) -> dict[tuple[int, ...], float]:
    """Of all complete sequences of at most ``limit`` tokens, from an empty prompt."""
    found: dict[tuple[int, ...], float] = {}
    pending: list[tuple[tuple[int, ...], float]] = [((), 1.0)]
    while pending:
        tokens, mass = pending.pop()
        matcher = automaton.matcher(limit)
        assert matcher.accept_tokens(tokens)
        if matcher.is_terminated() or len(tokens) == limit:
            found[tokens] = mass
            continue
        row = tokenfst.allocate_token_bitmask(1, model.width)
        matcher.fill_next_token_bitmask(row, 0)
        allowed = [
            token for token in range(len(automaton.vocabulary)) if row[0, token >> 5] >> (token & 31) & 1
        ]
        scores = model.score(torch.tensor([tokens], dtype=torch.long))[0].double() / temperature
        weights = {token: float(scores[token].exp()) for token in allowed}
        ranked = sorted(allowed, key=lambda token: -weights[token])[:top_k]
        total, kept, sum_kept = sum(weights[token] for token in ranked), [], 0.0
        for token in ranked:
            if top_p is None or sum_kept < top_p * total:
                kept.append(token)
                sum_kept += weights[token]
        pending += [((*tokens, token), mass * weights[token] / sum_kept) for token in kept]
    return found
