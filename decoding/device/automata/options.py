"""The check of the options of sampling, before anything is launched."""

from __future__ import annotations

import math

from tokenfst.common.arguments import real, refuse, whole
from tokenfst.decoding.device.tables.pool import torch
from tokenfst.errors import ArgumentValueError


def check_sampling(
    temperature: float,
    top_k: int | None,
    top_p: float | None,
    generator: torch.Generator | None,
    device: torch.device,
) -> None:
    """Raise ``ArgumentTypeError`` or ``ArgumentValueError`` for invalid options of sampling on ``device``."""
    if type(temperature) is not float:
        temperature = real("sampling", "temperature", temperature)
    if top_k is not None and type(top_k) is not int:
        top_k = whole("sampling", "top_k", top_k)
    if top_p is not None and type(top_p) is not float:
        top_p = real("sampling", "top_p", top_p)
    if not (temperature >= 0 and math.isfinite(temperature)):
        raise ArgumentValueError(
            f"sampling: temperature must not be negative, and must be finite, not {temperature}"
        )
    if top_k is not None and top_k < 1:
        raise ArgumentValueError(f"sampling: top_k must be at least 1, not {top_k}; None keeps all tokens")
    if top_p is not None and not 0 < top_p <= 1:
        raise ArgumentValueError(f"sampling: top_p must be more than 0 and at most 1, not {top_p}")
    if generator is not None:
        if not isinstance(generator, torch.Generator):
            refuse("sampling", "generator", generator, "a torch.Generator or None")
        if generator.device.type != device.type:
            raise ArgumentValueError(
                f"sampling: generator must be on {device}, not on {generator.device}: "
                f"torch.Generator({device.type!r})"
            )
