"""From temporal formulas to automata: ``python -m benchmarks.languages.temporal``.

Prints the least of many times, of the wall clock and of the processor (they differ where others use the machine), for
the clothes of the paper, and how long the first call of the process took.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from pathlib import Path

from tokenfst import ltlf

ROUNDS = 50


def least(work: Callable[[], object], clock: Callable[[], float], rounds: int = ROUNDS) -> float:
    """The least time of several, in milliseconds."""
    times = []
    for _ in range(rounds):
        began = clock()
        work()
        times.append(clock() - began)
    return 1000 * min(times)


def main(rounds: int = ROUNDS) -> None:
    """Print the table."""
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tests"))
    from reference.symbols import clothes

    def specification() -> object:
        return ltlf(clothes.FORMULAS, clothes.SYMBOLS)

    patterns = [f"response(a{k}, b{k})" for k in range(8)]
    print(f"{'formula':<44}{'states':>8}{'wall ms':>10}{'cpu ms':>10}")
    print(
        f"{'(first call: builds the parser)':<44}{'':>8}{least(specification, time.perf_counter, 1):>10.1f}"
    )
    for name, work in (
        ("clothes, 13 formulas over 10 symbols", specification),
        ("response(a, b) for 8 pairs", lambda: ltlf(patterns)),
    ):
        states = work().num_states  # type: ignore[attr-defined]
        wall, cpu = least(work, time.perf_counter, rounds), least(work, time.process_time, rounds)
        print(f"{name:<44}{states:>8}{wall:>10.1f}{cpu:>10.1f}")


if __name__ == "__main__":
    main()
