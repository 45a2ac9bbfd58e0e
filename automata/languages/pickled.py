"""How values with slots are pickled: all that they hold, but for what they keep only to save work."""

from __future__ import annotations


def state_without(value: object, *kept: str) -> tuple[None, dict[str, object]]:
    """The state of a value for ``pickle``: its slots, those named in ``kept`` as None, to be made again."""
    slots = {name for kind in type(value).__mro__ for name in getattr(kind, "__slots__", ())}
    slots.discard("__weakref__")
    return None, {name: None if name in kept else getattr(value, name) for name in sorted(slots)}
