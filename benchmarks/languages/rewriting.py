"""Figures of docs/research/rewriting.md: the time to make each kind of language, and to the first mask of one.

python -m benchmarks.languages.rewriting [--save]
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import tokenfst
from benchmarks.measuring.measure import Figure, sample
from benchmarks.measuring.record import report
from tokenfst import Language, case_insensitive, normalization_insensitive, regex, within_edits

SENTENCE = "The quick brown fox jumps over the lazy dog."
RUNS = 5


def figures() -> Iterator[Figure]:
    labels = tokenfst.choices([f"label {7919 * each % 10007}" for each in range(1000)])
    languages: dict[str, Callable[[], Language]] = {
        **{
            f"{k} edit{'s' if k > 1 else ''} of a sentence of {len(SENTENCE)} characters": (
                lambda k=k: within_edits(regex(SENTENCE), k)  # type: ignore[misc]
            )
            for k in (1, 2, 3)
        },
        "1 edit of 1,000 labels": lambda: within_edits(labels, 1),
        r"case of `(?:select|from) \w{1,40}`": lambda: case_insensitive(regex(r"(?:select|from) \w{1,40}")),
        "full case of `(?:straße|select) [a-z]+`": lambda: case_insensitive(
            regex(r"(?:straße|select) [a-z]+"), full=True
        ),
        **{
            f"normal forms of `{pattern}`": (
                lambda pattern=pattern: normalization_insensitive(regex(pattern))  # type: ignore[misc]
            )
            for pattern in ("(?s:.*)café(?s:.*)", r"\w+", ".")
        },
    }
    for name, make in languages.items():
        least = min(sample(lambda make=make: make().automaton, runs=RUNS, warm_up=0))  # type: ignore[misc]
        yield Figure(name, "time", least, least, RUNS)
        yield Figure(name, "states", make().size().states, unit="count")
    vocabulary = tokenfst.load_vocabulary("mistral:tekken_240911")
    row = tokenfst.allocate_token_bitmask(1, len(vocabulary))

    def first_mask() -> None:
        automaton = tokenfst.compile(within_edits(regex(SENTENCE), 2), vocabulary)
        automaton.matcher().fill_next_token_bitmask(row, 0)

    least = min(sample(first_mask, runs=RUNS))
    yield Figure("2 edits of it, from the text to the first mask", "time", least, least, RUNS)


if __name__ == "__main__":
    report("rewriting", figures())
