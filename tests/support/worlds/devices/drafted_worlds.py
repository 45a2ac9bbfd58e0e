"""Draft trees at random, and what plain decoding makes of the same model: ``DeviceSampler.verify`` must do the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from tokenfst import DeviceSampler

Model = Callable[[tuple[int, ...]], Any]


def model(vocab_size: int, seed: int) -> Model:
    """Logits, float32 (V,), that depend on all tokens before."""

    def logits(tokens: tuple[int, ...]) -> Any:
        drawn = np.random.default_rng([seed, *tokens]).normal(size=vocab_size).astype(np.float32)
        return torch.from_numpy(drawn * 3)

    return logits


def plainly(
    sampler: DeviceSampler, scores: Model, states: Any, left: list[int] | None, steps: int
) -> tuple[list[list[int]], Any]:
    """The tokens of ``steps`` steps, one by one, and the states after them."""
    texts: list[list[int]] = [[] for _ in states]
    for step in range(steps):
        logits = torch.stack([scores(tuple(text)) for text in texts])
        rest = (
            None if left is None else torch.tensor([n - step for n in left], dtype=torch.int32).clamp_min(0)
        )
        tokens, states = sampler.step(logits, states, rest)
        for text, token in zip(texts, tokens.tolist(), strict=True):
            text.append(token)
    return texts, states


def random_tree(
    rng: random.Random, texts: list[list[int]], vocab_size: int, depth: int, hit: float
) -> tuple[list[int], list[int], list[tuple[int, ...]]]:
    """Parents, tokens, and the path of each node. ``texts``: what each row will write, which a node agrees with by the
    chance ``hit``. Parents come before their children in no particular order of rows.
    """
    parents: list[int] = []
    tokens: list[int] = []
    paths: list[tuple[int, ...]] = []
    levels: list[int] = []
    for _ in range(rng.randint(0, 3 * len(texts))):
        above = rng.randrange(-len(texts), len(parents))
        level = 0 if above < 0 else levels[above]
        if level == depth:
            continue
        row = -1 - above
        while row < 0:
            row = -1 - parents[-1 - row]
        text = texts[row]
        token = text[level] if level < len(text) and rng.random() < hit else rng.randrange(vocab_size)
        parents.append(above)
        tokens.append(token)
        levels.append(level + 1)
        paths.append((*(() if above < 0 else paths[above]), token))
    return parents, tokens, paths


def check(rng: random.Random, device: Any, starts: Any, options: dict[str, Any], rounds: int) -> int:
    """Decode by drafts and without; the number of draft tokens that were accepted."""
    rows, vocab_size, depth = len(starts), len(device.vocabulary), rng.randint(1, 4)
    scores = model(vocab_size, rng.randrange(1 << 30))
    left = [rng.randint(1, 12) for _ in starts] if device.token_limits and rng.random() < 0.5 else None
    one, other, ahead = (DeviceSampler(device, rows, **options) for _ in range(3))
    longest = rounds * (depth + 1)
    future, _ = plainly(ahead, scores, starts, left, longest)
    texts: list[list[int]] = [[] for _ in range(rows)]
    states, accepted = starts, 0
    for _ in range(rounds):
        after = [future[row][len(text) :] for row, text in enumerate(texts)]
        parents, tokens, paths = random_tree(rng, after, vocab_size, depth, 0.8)
        roots = []
        for above in parents:
            while above >= 0:
                above = parents[above]
            roots.append(-1 - above)
        logits = torch.stack(
            [scores(tuple(text)) for text in texts]
            + [scores((*texts[row], *path)) for row, path in zip(roots, paths, strict=True)]
        )
        rest = (
            None
            if left is None
            else torch.tensor([max(n - len(t), 0) for n, t in zip(left, texts, strict=True)])
        )
        found = one.verify(
            logits,
            states,
            torch.tensor(parents, dtype=torch.int64),
            torch.tensor(tokens, dtype=torch.int64),
            depth,
            None if rest is None else rest.int(),
        )
        states = found.states
        for row, text in enumerate(texts):
            count = int(found.counts[row])
            new = found.tokens[row].tolist()
            assert all(token >= 0 for token in new[:count]) and set(new[count:]) <= {-1}
            nodes = found.nodes[row].tolist()
            assert all(node >= 0 for node in nodes[: count - 1]) and set(nodes[count - 1 :]) <= {-1}
            assert [tokens[node] for node in nodes[: count - 1]] == new[: count - 1]
            assert all(
                above in (-1 - row, *nodes[: count - 1]) for above in (parents[n] for n in nodes[: count - 1])
            )
            text += new[:count]
            assert text == future[row][: len(text)], (row, text, future[row])
            accepted += count - 1
    # The same states, and the same numbers of draws, as plain decoding of as many tokens.
    for row, text in enumerate(texts):
        assert int(one.draws[row]) == len(text)
        alone = other.select(torch.tensor([row]))
        again, reached = plainly(
            alone, scores, starts[row : row + 1], None if left is None else [left[row]], len(text)
        )
        assert again[0] == text
        assert torch.equal(reached[0], states[row])
        assert int(alone.forced[0]) == int(one.forced[row])
        if one.seen is not None and alone.seen is not None:
            assert torch.equal(alone.seen[0], one.seen[row])
    return accepted
