"""Lists of labels against every list that there is, with models and tokenizers that are tables."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tokenfst import Vocabulary, label_lists, multi_label

torch = pytest.importorskip("torch")

PIECES = [b"a", b"b", b"c", b"-", b"-a", b"-b", b"-c", b"ab", b"-ab", b""]
VOCABULARY = Vocabulary(PIECES, eos_token_id=9)
PROMPT = [9]
LABELS = ["a", "b", "c", "ab"]
CUTS = {
    b"a": [[0]],
    b"b": [[1]],
    b"c": [[2]],
    b"ab": [[7], [0, 1]],
    b"-a": [[4], [3, 0]],
    b"-b": [[5], [3, 1]],
    b"-c": [[6], [3, 2]],
    b"-ab": [[8], [3, 7], [4, 1], [3, 0, 1]],
}
"""The ways to cut texts: a tokenizer takes one of each."""


def shares(seed: int, context: tuple[int, ...]) -> list[float]:
    """What the model thinks of the next token."""
    draw = random.Random(f"{seed} {context}")
    weights = [draw.random() ** 3 + 1e-3 for _ in PIECES]
    return [weight / sum(weights) for weight in weights]


def every_list(seed, labels, cuts, least, most):
    """Each list's probability: a product of what may come next each time, normalised."""
    found = {}
    steps = {}
    pending = [((), tuple(PROMPT), 1.0)]
    for used, context, share in pending:  # grows meanwhile
        if len(used) == most:
            found[used] = share
            continue
        weights = {}
        left = [label for label in labels if label not in used]
        for label in left:
            weight, here = 1.0, context
            for token in cuts[(b"-" if used else b"") + label.encode()]:
                weight *= shares(seed, here)[token]
                here = (*here, token)
            may_follow = {9} if len(used) + 1 >= least else set()
            if len(used) + 1 < most:
                may_follow |= {cuts[b"-" + other.encode()][0] for other in left if other != label}
            weights[label] = weight * sum(shares(seed, here)[token] for token in may_follow), here
        total = sum(weight for weight, _ in weights.values())
        if len(used) >= least:
            total += shares(seed, context)[9]
            found[used] = share * shares(seed, context)[9] / total
        for label, (weight, here) in weights.items():
            steps[used, label] = weight / total
            pending.append(((*used, label), here, share * weight / total))
    return found, steps


@given(st.data(), st.integers(0, 10**6))
@settings(deadline=None, max_examples=50)
def test_against_every_list(data, seed):
    labels = data.draw(st.lists(st.sampled_from(LABELS), min_size=1, max_size=4, unique=True))
    cuts = {text: data.draw(st.sampled_from(ways)) for text, ways in CUTS.items()}
    most = data.draw(st.integers(1, len(labels)))
    least = data.draw(st.integers(0, most))
    expected, steps = every_list(seed, labels, cuts, least, most)

    def model(ids):
        return torch.tensor([shares(seed, tuple(row)) for row in ids.tolist()], dtype=torch.float64).log()

    options = {
        "separator": "-",
        "min": least,
        "max": most,
        "encode": lambda text: cuts[bytes(text)],
        "width": len(PIECES),
    }
    found = label_lists(model, PROMPT, labels, VOCABULARY, beams=200, **options)
    assert dict(found.lists).keys() == expected.keys()
    for each, share in found.lists:
        assert math.isclose(share, expected[each], rel_tol=1e-4)
    assert math.isclose(found.covered, 1, rel_tol=1e-4)

    chosen = multi_label(model, PROMPT, labels, VOCABULARY, threshold=0, **options)
    used: tuple[str, ...] = ()
    for label, share in chosen:
        best = max((label for label in labels if label not in used), key=lambda each: steps[used, each])
        assert math.isclose(steps[used, label], steps[used, best], rel_tol=1e-4)
        assert math.isclose(share, steps[used, label], rel_tol=1e-4)
        used = (*used, label)
    assert len(used) == most
