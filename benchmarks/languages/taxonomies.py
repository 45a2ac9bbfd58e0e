"""Figures of docs/constraints/taxonomies.md: the CPU time from labels to the first mask, masks, and selections without
repeats.

    python -m benchmarks.languages.taxonomies [--save]
"""

from __future__ import annotations

import argparse
import math
import random
import time
from collections.abc import Iterator, Sequence
from functools import partial

import numpy as np

import tokenfst
from benchmarks.measuring.measure import Figure
from benchmarks.measuring.record import report
from tokenfst import TokenAutomaton

SYLLABLES = [
    "ka",
    "to",
    "mi",
    "ren",
    "sol",
    "ve",
    "dra",
    "lin",
    "qu",
    "an",
    "er",
    "is",
    "on",
    "th",
    "ing",
    "ed",
]


PATIENT = tokenfst.Budget(seconds=600)
"""A budget counts seconds by the clock, which pass faster than processor time on a busy computer."""


def make_labels(count: int, rng: random.Random) -> list[str]:
    """Distinct labels of one to four words, in random order."""
    labels: set[str] = set()
    while len(labels) < count:
        words = ("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 4)))
        labels.add(" ".join(words).capitalize())
    return rng.sample(sorted(labels), count)


def walk(automaton: TokenAutomaton, rng: random.Random, texts: int) -> tuple[list[float], list[float]]:
    """The seconds of each mask when it is computed, and of mask and advance along the same tokens a second time."""
    row = tokenfst.allocate_token_bitmask(1, len(automaton.vocabulary))
    fresh, again = [], []
    for _ in range(texts):
        matcher = automaton.matcher()
        while not matcher.is_terminated():
            begin = time.perf_counter()
            matcher.fill_next_token_bitmask(row, 0)
            fresh.append(time.perf_counter() - begin)
            allowed = np.flatnonzero(np.unpackbits(row.view(np.uint8), bitorder="little"))
            matcher.accept_token(int(rng.choice(allowed.tolist())))
        tokens = matcher.tokens
        matcher.reset()
        for token in tokens:
            begin = time.perf_counter()
            matcher.fill_next_token_bitmask(row, 0)
            matcher.accept_token(token)
            again.append(time.perf_counter() - begin)
    return fresh, again


def figures(sizes: Sequence[int], texts: int) -> Iterator[Figure]:
    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    tokenfst.compile(tokenfst.regex("a"), vocabulary).matcher()  # makes the trie
    row = tokenfst.allocate_token_bitmask(1, len(vocabulary))
    for count in sizes:
        rng = random.Random(count)
        labels = make_labels(count, rng)
        what = f"{count:,} labels"
        for name, make in (
            ("choices", partial(tokenfst.choices, budget=PATIENT)),
            ("multi_choice(max=5)", partial(tokenfst.multi_choice, max=5, budget=PATIENT)),
        ):
            best = math.inf
            for _ in range(3):
                begin = time.process_time()
                made = make(labels)
                automaton = tokenfst.compile(made, vocabulary)
                automaton.matcher().fill_next_token_bitmask(row, 0)
                best = min(best, time.process_time() - begin)
            yield Figure(what, f"`{name}`", best, best, 3)
            if name == "choices":
                fresh, again = walk(automaton, rng, texts)
                yield Figure(what, "memory of `choices`", automaton.memory().automaton, unit="bytes")
                yield Figure(what, "mask when made, p50", float(np.median(fresh)))
                yield Figure(what, "mask and advance again, p50", float(np.median(again)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--texts", type=int, default=200)
    parser.add_argument("--save", action="store_true", help="also write docs/data/taxonomies.json")
    args = parser.parse_args()
    report("taxonomies", figures(args.sizes, args.texts))


if __name__ == "__main__":
    main()
