"""Figures of docs/research/temporal-logic.md: from temporal formulas to automata.

    python -m benchmarks.languages.temporal [--save]

The figures are the least of many processor times, for the formulas about clothes in the paper on automata-guided beam
search and for one other set, and the time of the first call of the process.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from benchmarks.measuring.measure import Figure, figure, sample
from benchmarks.measuring.record import report
from tokenfst import ltlf

ROUNDS = 50


def figures(rounds: int = ROUNDS) -> Iterator[Figure]:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    from reference.symbols import clothes

    def specification() -> object:
        return ltlf(clothes.FORMULAS, clothes.SYMBOLS)

    patterns = [f"response(a{k}, b{k})" for k in range(8)]
    yield figure(
        "the first call, which builds lark's parser", "time", sample(specification, runs=1, warm_up=0)
    )
    for name, work in (
        ("clothes, 13 formulas over 10 symbols", specification),
        ("response(a, b) for 8 pairs", lambda: ltlf(patterns)),
    ):
        states = work().num_states  # type: ignore[attr-defined]
        yield Figure(name, "states", states, unit="count")
        least = min(sample(work, runs=rounds))
        yield Figure(name, "time", least, least, rounds)


def main(rounds: int = ROUNDS) -> None:
    report("temporal", figures(rounds))


if __name__ == "__main__":
    main()
