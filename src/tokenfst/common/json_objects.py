"""JSON objects with a repeated name: refused wherever JSON is read, because only one of the values could count."""

from __future__ import annotations

from typing import Any


class RepeatedNameError(ValueError):
    """A JSON object has a ``name`` twice, and only one of the values could count."""

    def __init__(self, name: str) -> None:
        self.name = name
        super().__init__(f"an object has the name {name!r} twice")


def unique_names(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The members of a JSON object as a dict, for ``json.loads(..., object_pairs_hook=unique_names)``. Raises
    ``RepeatedNameError``.
    """
    made = dict(pairs)
    if len(made) < len(pairs):
        seen: set[str] = set()
        for name, _ in pairs:
            if name in seen:
                raise RepeatedNameError(name)
            seen.add(name)
    return made
