"""First masks of the schemas that two libraries both accept, from the records of two runs of ``maskbench``
(``--out``).

    python -m benchmarks.schemas.both build/tokenfst.jsonl build/llguidance.jsonl [--save]

The files are named after the libraries; ``--save`` also writes the figures to docs/data/maskbench-both.json.
Percentiles over all schemas that each library accepts compare different schemas: the slowest schemas of one library
may be those that the other refuses. So this program also prints how many of the first library's slowest schemas the
second one refuses.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from benchmarks.measuring import record
from benchmarks.measuring.measure import Figure
from benchmarks.schemas.maskbench import NAMES, percentiles, shown

PARTS = (0.5, 0.9, 0.99)
SLOWEST = (0.1, 0.03, 0.01)


def main() -> None:
    parser = argparse.ArgumentParser(description="first masks of the schemas that two libraries both accept")
    parser.add_argument("first", type=Path, help="records of maskbench")
    parser.add_argument("second", type=Path, help="records of another library for the same schemas")
    parser.add_argument("--save", action="store_true", help="also write docs/data/maskbench-both.json")
    given = parser.parse_args()
    first, second = first_masks(given.first), first_masks(given.second)
    both = [name for name in first if first[name] is not None and second.get(name) is not None]
    if not both:
        parser.error("the two files have no schema in common that both libraries accept")
    print(f"{len(both):,} schemas that both take, first mask, CPU ms:")
    times = [[known[name] or 0 for name in both] for known in (first, second)]
    for path, values in zip((given.first, given.second), times, strict=True):
        print(f"  {path.stem}: {shown(values, 1e6)}")
    ours, theirs = (percentiles(values) for values in times)
    if given.save:
        figures = [
            Figure(f"first mask {part}", path.stem, value / 1e9)
            for path, found in ((given.first, ours), (given.second, theirs))
            for part, value in zip(NAMES, found, strict=True)
        ]
        record.save("maskbench-both", record.run_now(figures, note=f"{len(both):,} schemas"))
    ratios = [f"p{100 * part:g} {ours[k] / theirs[k]:.2f}" for k, part in enumerate(PARTS)]
    print(f"  first / second: {', '.join(ratios)}")
    taken = sorted((time, name) for name, time in first.items() if time is not None and name in second)
    for part in SLOWEST:
        slowest = taken[-max(1, int(len(taken) * part)) :]
        refused = sum(second[name] is None for _, name in slowest)
        print(f"of the slowest {part:.0%} of the first ({len(slowest):,}), the second refuses {refused:,}")


def first_masks(path: Path) -> dict[str, int | None]:
    """The time of each schema's first mask in nanoseconds; None if the library refuses the schema."""
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["id"]: row.get("first") for row in rows}


if __name__ == "__main__":
    main()
