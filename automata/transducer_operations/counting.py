"""Random paths as a prefix tree, weighted by how often each path was drawn."""

from __future__ import annotations

import math

from tokenfst.automata.transducers.growth import Growth
from tokenfst.automata.transducers.vector import VectorFst
from tokenfst.budget import Budget
from tokenfst.errors import FstOpError

_COSTS = ("standard", "tropical64", "log", "log64")


def counted(paths: VectorFst, total: int, budget: Budget | None) -> VectorFst:
    """The tree of the paths that leave the start of ``paths``.

    The weight of each arc is its share of the draws that reach its state, and of each final state its share times
    ``total``. Raises ``FstOpError`` in semirings without such weights. Linear.
    """
    name = paths.arc_type()
    if name not in (*_COSTS, "real", "real64"):
        raise FstOpError(f"randgen: counts of paths are no weights of arcs of type {name!r}: weighted=False")
    made, growth = paths.like(paths.kind.core()), Growth(budget, "randgen")
    places: dict[tuple[int, int, int], int] = {}
    passed, ended = [0], [0]

    def weight(share: float) -> float:
        return -math.log(share) if name in _COSTS else share

    if paths.start() < 0:
        return made
    made.set_start(made.add_state())
    for first in paths.core.arcs(paths.start()):
        at, arcs = 0, [first]
        passed[0] += 1
        while arcs:
            ilabel, olabel, _, state = arcs[0]
            if ilabel or olabel:
                key = (at, ilabel, olabel)
                if key not in places:
                    places[key] = made.add_state()
                    passed.append(0)
                    ended.append(0)
                    growth.grown(made)
                at = places[key]
                passed[at] += 1
            arcs = paths.core.arcs(state)
        ended[at] += 1
    for (source, ilabel, olabel), target in places.items():
        made.core.add_arc(source, ilabel, olabel, weight(passed[target] / passed[source]), target)
    for state, count in enumerate(ended):
        if count:
            made.core.set_final(state, weight(count / passed[state] * total))
    return made
