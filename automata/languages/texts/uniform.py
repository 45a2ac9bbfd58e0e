"""Uniform sampling among all texts of a length, or up to a length, by ranking.

A ``Draw`` returns the length of a text and its rank among the texts of that length; None if there is no text. Cost:
that of the counts (``walk``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from tokenfst.automata.languages.texts.walk import Walk, below

Draw: TypeAlias = Callable[[Walk], tuple[int, int] | None]


def of_all(generator: Any, longest: int) -> Draw:
    """One of all texts of at most ``longest`` bytes, uniformly."""

    def draw(walk: Walk) -> tuple[int, int] | None:
        counts = walk.counts(longest)
        if counts.total == 0:
            return None
        place = below(generator, counts.total)
        for length, number in enumerate(counts.by_length):
            if place < number:
                return length, place
            place -= number
        raise AssertionError("the numbers of all lengths are the total")

    return draw


def of_lengths(generator: Any, weights: Mapping[int, float]) -> Draw:
    """A length by its weight, among those that have texts; then one of its texts uniformly."""

    def draw(walk: Walk) -> tuple[int, int] | None:
        if walk.start is None:
            return None
        numbers = {length: walk.ways(walk.start, length) for length, weight in weights.items() if weight}
        possible = [length for length, number in numbers.items() if number]
        if not possible:
            return None
        length = possible[-1]
        if len(possible) > 1:
            point = generator.random() * sum(weights[each] for each in possible)
            for each in possible:
                point -= weights[each]
                if point < 0:
                    length = each
                    break
        return length, below(generator, numbers[length])

    return draw
