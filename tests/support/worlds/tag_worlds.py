"""Random structural tags, and what is built of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from tokenfst.errors import StructuralTagError

Made = TypeVar("Made")


def built(formats: Iterable[dict[str, Any]], build: Callable[[Any], Made]) -> Iterator[tuple[Any, Made]]:
    """Each format with what ``build`` makes of it; the formats that it refuses are left out."""
    for format in formats:
        try:
            made = build(format)
        except StructuralTagError:
            continue
        yield format, made
