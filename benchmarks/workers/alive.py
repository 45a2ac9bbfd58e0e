"""The memory of 10,000 living automata: ``python -m benchmarks.workers.alive [--automata N] [--masks] [--save]``.

Schemas of MaskBench in a random order are compiled over Tekken's vocabulary, and all automata stay alive. 300 other
automata are made before, so that the caches of the process are filled. Each figure is a mean over all automata: the
growth of the process's resident memory, with Python's objects; the memory that ``automaton.memory()`` counts as the
automaton's own states; and the difference. With ``--masks``, each automaton computes its first mask. Reserved memory
of tables counts as own, but is resident only after it is written.
"""

from __future__ import annotations

import argparse
import gc
import gzip
import json
import os
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import tokenfst
from benchmarks.measuring.measure import Figure
from benchmarks.measuring.record import report
from benchmarks.schemas.maskbench import DATA
from tokenfst.errors import TokenfstError

TEKKEN = "mistral:tekken_240911"
BEFORE = 300


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--automata", type=int, default=10_000)
    parser.add_argument("--masks", action="store_true", help="compute each automaton's first mask")
    parser.add_argument("--save", action="store_true", help="also write docs/data/alive.json")
    options = parser.parse_args()
    report("alive", figures(options.automata, masks=options.masks), keep=options.save)


def figures(number: int, *, masks: bool) -> Iterator[Figure]:
    """The means over ``number`` automata."""
    vocabulary = tokenfst.load_vocabulary(TEKKEN)
    bitmask = tokenfst.allocate_token_bitmask(1, len(vocabulary))
    with gzip.open(DATA, "rt") as file:
        lines = file.readlines()
    random.Random(3).shuffle(lines)

    def automata() -> Iterator[Any]:
        """The automata of the schemas that are not refused."""
        for line in lines:
            try:
                made = tokenfst.compile(tokenfst.json_schema(json.loads(line)["schema"]), vocabulary)
            except TokenfstError:
                continue
            if masks:
                made.matcher().fill_next_token_bitmask(bitmask)
            yield made

    every = automata()
    for _, _ in zip(range(BEFORE), every, strict=False):
        pass
    gc.collect()
    before = resident()
    alive = [made for _, made in zip(range(number), every, strict=False)]
    gc.collect()
    grown = (resident() - before) / len(alive)
    own = sum(made.memory().automaton for made in alive) / len(alive)
    what = f"{len(alive):,} automata" + (" with their first mask" if masks else "")
    yield Figure(what, "resident memory of each", grown, unit="bytes")
    yield Figure(what, "own states", own, unit="bytes")
    yield Figure(what, "beyond own states", grown - own, unit="bytes")


def resident() -> int:
    """The resident bytes of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


if __name__ == "__main__":
    main()
