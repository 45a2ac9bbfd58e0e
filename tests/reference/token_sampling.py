"""What a sampled token's distribution is, by lists and floats of 64 bits: one row, in the order of the definition."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence


def distribution(
    logits: Sequence[float],
    allowed: Collection[int],
    *,
    temperature: float = 1.0,
    top_k: int = 0,
    top_p: float = 1.0,
    min_p: float = 0.0,
    repetition_penalty: float = 1.0,
    presence_penalty: float = 0.0,
    seen: Collection[int] = (),
) -> dict[int, float]:
    """The probability of each token that may be drawn; of the first allowed one where none has a weight."""
    scores = {}
    for token in sorted(allowed):
        score = logits[token]
        if token in seen:
            score = score / repetition_penalty if score > 0 else score * repetition_penalty
            score -= presence_penalty
        if not math.isnan(score) and score > -math.inf:
            scores[token] = score
    if not scores:
        return {min(allowed): 1.0}
    order = sorted(scores, key=lambda token: (-scores[token], token))
    best = scores[order[0]]
    if temperature == 0:
        return {order[0]: 1.0}
    weights = {
        token: 1.0 if scores[token] == best else math.exp((scores[token] - best) / temperature)
        for token in order
    }
    if top_k:
        order = order[:top_k]
    if top_p < 1:
        whole, before, kept = sum(weights[token] for token in order), 0.0, []
        for token in order:
            if before < top_p * whole:
                kept.append(token)
            before += weights[token]
        order = kept
    order = [token for token in order if weights[token] >= min_p]
    mass = sum(weights[token] for token in order)
    return {token: weights[token] / mass for token in sorted(order)}
