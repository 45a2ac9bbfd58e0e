"""Long runs of a property in parts: each is a soak test, with examples of its own that are always the same."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, seed, settings
from hypothesis.strategies import SearchStrategy, tuples


def in_parts(
    parts: int, examples: int, *strategies: SearchStrategy[Any]
) -> Callable[[Callable[..., None]], Callable[[int], None]]:
    """A decorator: as ``given`` these strategies, ``examples`` in each of so many soak tests."""

    def decorate(law: Callable[..., None]) -> Callable[[int], None]:
        @pytest.mark.soak
        @pytest.mark.parametrize("part", range(parts))
        def run(part: int) -> None:
            @seed(part)
            @settings(max_examples=examples, deadline=None, suppress_health_check=list(HealthCheck))
            @given(tuples(*strategies))
            def examine(values: tuple[Any, ...]) -> None:
                law(*values)

            examine()

        run.__doc__ = law.__doc__
        return run

    return decorate
