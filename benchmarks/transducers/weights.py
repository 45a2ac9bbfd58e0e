"""Figures of docs/research/weights.md: scores of weighted languages, and lattices beside plain loops in torch.

``python -m benchmarks.transducers.weights [--save]``: processor time, one thread, the best of five.
"""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from pathlib import Path

import numpy as np
import torch

import tokenfst
from benchmarks.measuring.measure import Figure
from benchmarks.measuring.record import report
from tokenfst import NGramModel, WeightedLanguage, boost, prefer, regex
from tokenfst.decoding.lattices.lattice import Lattice

TEXT = (Path(__file__).parents[2] / "docs" / "project" / "conventions.md").read_text()


def best(work: Callable[[], object], repeat: int = 1) -> float:
    """The seconds of processor time of one call: the least of five samples of ``repeat`` calls each."""
    found = math.inf
    for _ in range(5):
        begun = time.process_time()
        for _ in range(repeat):
            work()
        found = min(found, (time.process_time() - begun) / repeat)
    return found


def four_grams() -> NGramModel:
    """A 4-gram model of the characters of a page, almost without smoothing."""
    counts = [Counter[tuple[str, ...]]() for _ in range(4)]
    for line in TEXT.splitlines():
        symbols = ["<s>", *("<space>" if c == " " else c for c in line if 32 <= ord(c) < 127), "</s>"]
        for order, found in enumerate(counts):
            found.update(tuple(symbols[at : at + order + 1]) for at in range(len(symbols) - order))
    lines = ["\\data\\", *(f"ngram {order}={len(found)}" for order, found in enumerate(counts, 1))]
    for order, found in enumerate(counts):
        lines.append(f"\\{order + 1}-grams:")
        for words, count in found.items():
            of = counts[0].total() if order == 0 else counts[order - 1][words[:-1]] + 0.5
            back = "\t-0.4" if order < 3 and words[-1] != "</s>" else ""
            lines.append(f"{math.log10(count / of):.5f}\t{' '.join(words)}{back}")
    return NGramModel.from_arpa("\n".join([*lines, "\\end\\"]), unit="character")


def scores() -> Iterator[Figure]:
    """The time of a row of scores at a new place, and of ``scores_into`` at a known place."""
    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    words = sorted({word for word in TEXT.split() if len(word) > 5})[:100]
    languages: dict[str, WeightedLanguage] = {
        "4-gram model of characters": four_grams().to_weighted(),
        "boost of 100 words": boost(words, by=2.0),
        "prefer a JSON object of two members": prefer(regex(r'\{"a": [0-9]+(, "b": "[a-z]*")?\}'), by=1.5),
        "prefer texts with a name in them": prefer(regex("(.|\n)*Anna(.|\n)*"), by=1.0),
    }
    for name, language in languages.items():
        automaton = tokenfst.compile(language, vocabulary)
        at, logits = automaton.start, np.zeros(len(vocabulary), np.float32)
        walk = best(
            lambda at=at, a=automaton: a.language.core.scores(
                vocabulary.native, False, at.states, at.weights, 60.0
            )
        )  # type: ignore[misc]
        matcher = automaton.matcher()
        known = best(lambda m=matcher, x=logits: m.scores_into(x), 50)  # type: ignore[misc]
        yield Figure(name, "a row at a new place", walk, walk, 5)
        yield Figure(name, "`scores_into` at a known place", known, known, 5)


def lattices() -> Iterator[Figure]:
    """Total weights and gradients of lattices as in CTC: a sequence of frames, and a weight for each arc."""
    yield from compare(100, 41, 8)
    yield from compare(200, 21, 1)


def compare(frames: int, states: int, batch: int) -> Iterator[Figure]:
    """The figures of one lattice: by the core, and by two loops in torch."""
    step = [(s, s + d) for s in range(states) for d in (0, 1, 2) if s + d < states and (d < 2 or s % 2)]
    arcs = [(states * t + s, states * (t + 1) + to) for t in range(frames - 1) for s, to in step]
    lattice = Lattice(arcs, frames * states, finals=[frames * states - 1, frames * states - 2])
    weights = torch.randn(batch, len(arcs), generator=torch.Generator().manual_seed(0), requires_grad=True)
    into: list[list[tuple[int, int]]] = [[] for _ in range(frames * states)]
    for number, (begin, end) in enumerate(arcs):
        into[end].append((begin, number))
    source, target = (torch.tensor(each) for each in zip(*step, strict=True))
    wide = target.expand(batch, -1)

    def by_core() -> torch.Tensor:
        return lattice.log_partition(weights).sum()

    def by_states() -> torch.Tensor:
        alpha = {0: torch.zeros(batch)}
        for state in range(1, frames * states):
            parts = [alpha[s] + weights[:, k] for s, k in into[state] if s in alpha]
            if parts:
                alpha[state] = torch.logsumexp(torch.stack(parts), 0)
        ends = [alpha[frames * states - 1], alpha[frames * states - 2]]
        return torch.logsumexp(torch.stack(ends), 0).sum()

    def by_frames() -> torch.Tensor:
        alpha = torch.full((batch, states), -1e4)
        alpha[:, 0] = 0
        for t in range(frames - 1):
            value = alpha[:, source] + weights[:, t * len(step) : (t + 1) * len(step)]
            most = torch.full((batch, states), -1e30).scatter_reduce(1, wide, value.detach(), "amax")
            sums = torch.zeros(batch, states).scatter_add(1, wide, (value - most[:, target]).exp())
            alpha = most + sums.clamp_min(1e-30).log()
        return torch.logsumexp(alpha[:, -2:], 1).sum()

    found = []
    for name, work in (
        ("the core", by_core),
        ("a loop over frames", by_frames),
        ("a loop over states", by_states),
    ):

        def run(work: Callable[[], torch.Tensor] = work) -> None:
            weights.grad = None
            work().backward()  # type: ignore[no-untyped-call]

        taken = best(run)
        assert weights.grad is not None
        found.append(weights.grad.clone())
        what = f"{frames} frames of {states} states, {len(arcs):,} arcs, a batch of {batch}"
        yield Figure(what, name, taken, taken, 5)
    assert all(torch.allclose(each, found[0], atol=1e-4) for each in found)


if __name__ == "__main__":
    torch.set_num_threads(1)
    report("weights", chain(scores(), lattices()))
