"""A test over seeds, by default few and in the soak many."""

from __future__ import annotations

import pytest


def few_and_many_seeds(few: list[range], many: list[range]) -> pytest.MarkDecorator:
    """Parametrize a test by ``seeds``: each range of ``few`` by default, each of ``many`` in the soak."""
    return pytest.mark.parametrize(
        "seeds",
        [
            *(pytest.param(seeds, id=_named(seeds)) for seeds in few),
            *(pytest.param(seeds, id=_named(seeds), marks=pytest.mark.soak) for seeds in many),
        ],
    )


def in_ranges(seeds: range, length: int) -> list[range]:
    """Ranges of at most ``length`` that make up ``seeds``."""
    return [seeds[first : first + length] for first in range(0, len(seeds), length)]


def _named(seeds: range) -> str:
    return str(seeds.start) if len(seeds) == 1 else f"{seeds.start}-{seeds[-1]}"
