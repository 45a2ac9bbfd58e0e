"""Figures of docs/research/rewriting.md: what it costs to make each kind of language, and a first mask.

python -m benchmarks.languages.rewriting
"""

from __future__ import annotations

import time
from collections.abc import Callable

import tokenfst
from tokenfst import Language, case_insensitive, normalization_insensitive, regex, within_edits

SENTENCE = "The quick brown fox jumps over the lazy dog."


def least(call: Callable[[], object], times: int = 5) -> float:
    """Milliseconds of CPU time, the least of several."""
    best = 1e9
    for _ in range(times):
        begin = time.process_time()
        call()
        best = min(best, time.process_time() - begin)
    return 1e3 * best


def report(name: str, make: Callable[[], Language]) -> None:
    print(f"{name}: {least(lambda: make().automaton):.1f} ms, {make().size().states} states")


def main() -> None:
    for k in (1, 2, 3):
        report(f"{k} edits of {len(SENTENCE)} characters", lambda k=k: within_edits(regex(SENTENCE), k))
    labels = tokenfst.choices([f"label {7919 * each % 10007}" for each in range(1000)])
    report("1 edit of 1,000 labels", lambda: within_edits(labels, 1))
    report("case", lambda: case_insensitive(regex(r"(?:select|from) \w{1,40}")))
    report("full case", lambda: case_insensitive(regex(r"(?:straße|select) [a-z]+"), full=True))
    for pattern in ("(?s:.*)café(?s:.*)", r"\w+", "."):
        report(
            f"normal forms of {pattern}", lambda pattern=pattern: normalization_insensitive(regex(pattern))
        )
    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    row = tokenfst.allocate_token_bitmask(1, len(vocabulary))

    def first_mask() -> None:
        automaton = tokenfst.compile(within_edits(regex(SENTENCE), 2), vocabulary)
        automaton.matcher().fill_next_token_bitmask(row, 0)

    print(f"2 edits, from the text to the first mask: {least(first_mask):.1f} ms")


if __name__ == "__main__":
    main()
