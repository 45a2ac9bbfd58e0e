"""Canonical tokenizations over Tekken: time to build, and time of masks that are new and that are known.

    python -m benchmarks.masks.canonical

Prints a line for each constraint: compile and first mask together; over random walks the median, the 99th percentile
and the worst of a mask asked for the first time at its place; the median and the least of the same one asked
for again; before that, of masks under a token budget.
"""

from __future__ import annotations

import random
import statistics
import time

import numpy as np

from tokenfst import allocate_token_bitmask, compile, load_vocabulary, regex

PATTERNS = {
    "one of six texts": "(hello|help|helmet)( world)?",
    "a JSON object": r'\{"name": "[a-z ]*", "age": [0-9]{1,3}, "tags": \[("[a-z]+"(, "[a-z]+")*)?\]\}',
    "a string of any characters": r'"[^"\\]*"',
}


def main(steps: int = 400) -> None:
    """Measure and print."""
    vocabulary = load_vocabulary("mistral:tekken_240911")
    compile(regex("a"), vocabulary)
    begun = time.perf_counter()
    compile(regex("a"), vocabulary, tokenization="canonical")
    print(f"what is made once for the vocabulary: {time.perf_counter() - begun:.2f} s")
    mask, rng = allocate_token_bitmask(1, len(vocabulary)), random.Random(0)
    for name, pattern in PATTERNS.items():
        begun = time.perf_counter()
        matcher = compile(regex(pattern), vocabulary, tokenization="canonical").matcher()
        matcher.fill_next_token_bitmask(mask)
        first = time.perf_counter() - begun
        new, known = [], []
        for _ in range(steps):
            for times in (new, known):
                begun = time.perf_counter()
                matcher.fill_next_token_bitmask(mask)
                times.append(1e6 * (time.perf_counter() - begun))
            choices = np.flatnonzero(np.unpackbits(mask.view(np.uint8).ravel(), bitorder="little"))
            matcher.accept_token(int(rng.choice(choices)))
            if matcher.is_terminated() or matcher.num_tokens > 40:
                matcher.reset()
        budgeted = []
        for _ in range(4):
            matcher = compile(regex(pattern), vocabulary, tokenization="canonical").matcher(max_new_tokens=40)
            while not matcher.is_terminated() and matcher.max_tokens_left:
                begun = time.perf_counter()
                matcher.fill_next_token_bitmask(mask)
                budgeted.append(1000 * (time.perf_counter() - begun))
                choices = np.flatnonzero(np.unpackbits(mask.view(np.uint8).ravel(), bitorder="little"))
                matcher.accept_token(int(rng.choice(choices)))
        print(
            f"{name}: with 40 tokens left at first, a mask takes {statistics.median(budgeted):.2f} ms median, "
            f"{max(budgeted):.0f} ms worst"
        )
        print(
            f"{name}: compile and first mask {1000 * first:.0f} ms; at a place {statistics.median(new):.0f} us median, "
            f"{np.quantile(new, 0.99) / 1000:.1f} ms p99, {max(new) / 1000:.0f} ms worst; again "
            f"{statistics.median(known):.1f} us median, {min(known):.1f} us least"
        )


if __name__ == "__main__":
    main()
