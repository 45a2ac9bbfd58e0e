"""Random machines by seed, and how an operation is tried on many of them.

A check takes a ``World`` and asserts. ``tried`` runs it over seeds of one semiring; by default a few, in the soak
10,000 for each operation and semiring, in parts of about half a minute.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from support.worlds.transducer_worlds import TOLERANCE, ours, same, sums

import tokenfst.fst as fst
from reference.transducers.transducers import Diverges, diverges, random_plain

FEW, MANY = 12, 10_000
BOTH = ("standard", "log", "log64")
"""The semirings that pynini has too."""
ALL = (*BOTH, "tropical64")


class World:
    """One seed: machines over one semiring."""

    def __init__(self, seed: int, arc_type: str) -> None:
        self.rng = random.Random(f"{seed} {arc_type}")
        self.arc_type = arc_type
        # Sums converge where few arcs of a state weigh e^-1.5 at most.
        self.least = 1.5 if sums(arc_type) else 0.0
        self.tolerance = 4 * TOLERANCE[arc_type]

    def machine(self, **shape: Any) -> fst.VectorFst:
        made = random_plain(self.rng, least=self.least, **shape)
        if sums(self.arc_type) and diverges(made):
            raise Diverges
        return ours(made, self.arc_type)

    def same(self, one: Any, other: Any, longest: int = 2) -> bool:
        return same(one, other, longest, self.tolerance)


Check = Callable[[Any], None]
Operations = dict[str, tuple[Check, tuple[str, ...]]]
"""What is checked, and over which semirings, by name."""


def tried(
    name: str,
    check: Check,
    arc_type: str,
    seeds: range,
    world: Callable[[int, str], Any] = World,
    lost: int = 10,
) -> None:
    """Check an operation on some seeds. At most one sum in ``lost`` may diverge."""
    skipped = 0
    for seed in seeds:
        try:
            check(world(seed, arc_type))
        except Diverges:
            skipped += 1
        except Exception as error:
            raise AssertionError(f"{name} over {arc_type}, seed {seed}: {error!r}") from error
    assert skipped * lost <= len(seeds), f"{name} over {arc_type}: {skipped} of {len(seeds)} sums diverge"


def few_and_many(operations: Operations, parts: dict[str, int], seeds: int = FEW) -> pytest.MarkDecorator:
    """Parametrize a test by ``name``, ``arc_type`` and ``seeds``.

    By default, some seeds of each operation, shared out among its semirings. In the soak, 10,000 seeds of each
    operation and semiring, those that take long in several ``parts``.
    """
    pairs = [(name, arc_type, len(types)) for name, (_, types) in operations.items() for arc_type in types]
    cases = [
        pytest.param(name, arc_type, range(-(-seeds // types)), id=f"{name}-{arc_type}-few")
        for name, arc_type, types in pairs
    ]
    for name, arc_type, _ in pairs:
        step = parts.get(name, 1)
        cases += [
            pytest.param(
                *(name, arc_type, range(part, MANY, step)),
                id=f"{name}-{arc_type}-{part}-by-{step}",
                marks=pytest.mark.soak,
            )
            for part in range(step)
        ]
    return pytest.mark.parametrize(("name", "arc_type", "seeds"), cases)
