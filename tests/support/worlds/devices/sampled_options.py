"""Numbers of samplers and logits that are hard to get right."""

from __future__ import annotations

import random
from typing import Any

import torch


def options(rng: random.Random, rows: int) -> dict[str, Any]:
    """Numbers of samplers that are hard to get right: all filters on some rows, none on others."""
    choices: dict[str, list[Any]] = {
        "temperature": [0, 0.5, 1, 1.7, 1e-6],
        "top_k": [0, 1, 3, 20, 400],
        "top_p": [1.0, 0.1, 0.5, 0.9, 0.99],
        "min_p": [0, 0.01, 0.3, 1],
        "repetition_penalty": [1, 1.3, 0.7],
        "presence_penalty": [0, 0.5, -1],
    }
    found = {name: [rng.choice(values) for _ in range(rows)] for name, values in choices.items()}
    kept = rng.choice([("temperature",), ("temperature", "top_p"), ("temperature", "top_k"), tuple(found)])
    return {name: found[name] for name in kept}


def scores(rng: random.Random, rows: int, width: int) -> torch.Tensor:
    """Logits of any type, some of them equal, NaN or infinite."""
    made = torch.randn(rows, width, generator=torch.Generator().manual_seed(rng.getrandbits(30)))
    made *= rng.choice([0.1, 1, 5])
    if rng.random() < 0.5:
        made = made.round()
    some = torch.rand(rows, width, generator=torch.Generator().manual_seed(rng.getrandbits(30))) < 0.03
    made[some] = rng.choice([float("nan"), float("inf"), -float("inf")])
    if rng.random() < 0.3:
        made[rng.randrange(rows)] = rng.choice([float("nan"), -float("inf")])
    return made.to(rng.choice([torch.float32, torch.float16, torch.bfloat16]))
