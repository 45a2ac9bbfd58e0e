"""Figures of docs/research/canonical.md: canonical tokenizations over Tekken.

    python -m benchmarks.masks.canonical [--save]

For each constraint: compilation with the first mask; over random walks the median, the 99th percentile and the worst
time of a mask that is computed for the first time; the median of a mask that is known; and masks within a limit of
tokens. Times are processor time of the process, except for known masks, which are too short for it.
"""

from __future__ import annotations

import random
import time
from collections.abc import Iterator

import numpy as np

from benchmarks.measuring.measure import Figure
from benchmarks.measuring.record import report
from tokenfst import Matcher, allocate_token_bitmask, compile, load_vocabulary, regex

PATTERNS = {
    "one of six texts": "(hello|help|helmet)( world)?",
    "a JSON object of three properties": (
        r'\{"name": "[a-z ]*", "age": [0-9]{1,3}, "tags": \[("[a-z]+"(, "[a-z]+")*)?\]\}'
    ),
    "a string of any characters": r'"[^"\\]*"',
}


def figures(steps: int = 400) -> Iterator[Figure]:
    vocabulary = load_vocabulary("mistral:tekken_240911")
    compile(regex("a"), vocabulary)
    begun = time.process_time()
    compile(regex("a"), vocabulary, tokenization="canonical")
    yield Figure("made once for the vocabulary", "time", time.process_time() - begun)
    mask, rng = allocate_token_bitmask(1, len(vocabulary)), random.Random(0)

    def chosen() -> int:
        return int(rng.choice(np.flatnonzero(np.unpackbits(mask.view(np.uint8).ravel(), bitorder="little"))))

    def taken(matcher: Matcher, clock: object = time.process_time) -> float:
        began = clock()  # type: ignore[operator]
        matcher.fill_next_token_bitmask(mask)
        return float(clock() - began)  # type: ignore[operator]

    for name, pattern in PATTERNS.items():
        begun = time.process_time()
        matcher = compile(regex(pattern), vocabulary, tokenization="canonical").matcher()
        matcher.fill_next_token_bitmask(mask)
        yield Figure(name, "compile and first mask", time.process_time() - begun)
        new, known = [], []
        for _ in range(steps):
            new.append(taken(matcher))
            known.append(taken(matcher, time.perf_counter))
            matcher.accept_token(chosen())
            if matcher.is_terminated() or matcher.num_tokens > 40:
                matcher.reset()
        yield Figure(name, "new place: median", float(np.median(new)))
        yield Figure(name, "p99", float(np.quantile(new, 0.99)))
        yield Figure(name, "worst", max(new))
        yield Figure(name, "again: median", float(np.median(known)))
        limited = []
        for _ in range(4):
            matcher = compile(regex(pattern), vocabulary, tokenization="canonical").matcher(max_new_tokens=40)
            while not matcher.is_terminated() and matcher.max_tokens_left:
                limited.append(taken(matcher))
                matcher.accept_token(chosen())
        yield Figure(name, "within 40 tokens: median", float(np.median(limited)))
        yield Figure(name, "within 40 tokens: worst", max(limited))


if __name__ == "__main__":
    report("canonical", figures())
