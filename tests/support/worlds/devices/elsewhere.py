"""Automata on a device, used by tests that hold their tensors on the host: all that goes in is moved there, all that
comes out is moved back.
"""

from __future__ import annotations

from typing import Any

import torch


def here(value: Any) -> Any:
    """Tensors, and tuples of them, on the host."""
    if isinstance(value, torch.Tensor):
        return value.cpu()
    return tuple(here(part) for part in value) if isinstance(value, tuple) else value


class Elsewhere:
    """``made(automata, where, ...)``, with the methods and attributes of what that gives."""

    def __init__(self, made: Any, automata: Any, where: str, **options: Any) -> None:
        self.where, self.inside = where, made(automata, where, **options)

    def __len__(self) -> int:
        return len(self.inside)

    def __getattr__(self, name: str) -> Any:
        found = getattr(self.inside, name)
        if not callable(found):
            return here(found)

        def call(*arguments: Any, **options: Any) -> Any:
            moved = [self._there(argument) for argument in arguments]
            made = here(found(*moved, **{key: self._there(value) for key, value in options.items()}))
            return arguments[0].copy_(made) if name == "mask_logits_" else made

        return call

    def _there(self, value: Any) -> Any:
        return value.to(self.where, copy=True) if isinstance(value, torch.Tensor) else value
