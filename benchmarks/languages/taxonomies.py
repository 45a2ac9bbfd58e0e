"""Figures of docs/constraints/taxonomies.md: labels to the first mask (in CPU time), masks, and selections without
repeats.

python -m benchmarks.languages.taxonomies
"""

from __future__ import annotations

import argparse
import random
import time

import numpy as np

import tokenfst
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


def make_labels(count: int, rng: random.Random) -> list[str]:
    """Distinct labels of one to four words, in random order."""
    labels: set[str] = set()
    while len(labels) < count:
        words = ("".join(rng.choices(SYLLABLES, k=rng.randint(1, 4))) for _ in range(rng.randint(1, 4)))
        labels.add(" ".join(words).capitalize())
    return rng.sample(sorted(labels), count)


def walk(automaton: TokenAutomaton, rng: random.Random, texts: int) -> tuple[list[float], list[float]]:
    """Microseconds of each mask when it is made, and of mask and advance along the same tokens again."""
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
    return [1e6 * each for each in fresh], [1e6 * each for each in again]


def shown(times: list[float]) -> str:
    p50, p99 = np.percentile(times, [50, 99])
    return f"p50 {p50:.2f}, p99 {p99:.1f} µs"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", type=int, nargs="+", default=[1_000, 100_000, 1_000_000])
    parser.add_argument("--texts", type=int, default=200)
    args = parser.parse_args()
    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    tokenfst.compile(tokenfst.regex("a"), vocabulary).matcher()  # makes the trie
    row = tokenfst.allocate_token_bitmask(1, len(vocabulary))
    for count in args.sizes:
        rng = random.Random(count)
        labels = make_labels(count, rng)
        for name in ("choices", "multi_choice"):
            best = 1e9
            for _ in range(3):
                begin = time.process_time()
                made = tokenfst.choices(labels) if name == "choices" else tokenfst.multi_choice(labels, max=5)
                automaton = tokenfst.compile(made, vocabulary)
                automaton.matcher().fill_next_token_bitmask(row, 0)
                best = min(best, time.process_time() - begin)
            fresh, again = walk(automaton, rng, args.texts)
            size = automaton.memory().automaton / 2**20
            print(
                f"{name} of {count:,}: {1e3 * best:.1f} ms to the first mask, {size:.0f} MB; masks when made "
                f"{shown(fresh)}; mask and advance again {shown(again)}",
                flush=True,
            )


if __name__ == "__main__":
    main()
