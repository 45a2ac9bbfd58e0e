"""Pickling of values with slots, without their caches."""

from __future__ import annotations


def state_without(value: object, *kept: str) -> tuple[None, dict[str, object]]:
    """The state of a value for ``pickle``: its slots, with those named in ``kept`` (caches) set to None."""
    slots = {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())}
    slots.discard("__weakref__")
    return None, {name: None if name in kept else getattr(value, name) for name in sorted(slots)}
