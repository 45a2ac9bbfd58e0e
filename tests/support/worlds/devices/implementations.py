"""A device automaton in both implementations for host tensors: the native kernels, and plain torch."""

from __future__ import annotations

from typing import Any

import pytest


def in_plain_torch(kind: Any) -> Any:
    """The class ``kind``, taking plain torch for host tensors too."""
    return type(kind.__name__, (kind,), {"_is_native": lambda self: False})


def implementations(kind: Any) -> Any:
    """A fixture ``make`` that is the class ``kind``, with the native kernels and in plain torch."""
    classes = {"native": kind, "torch": in_plain_torch(kind)}

    @pytest.fixture(params=sorted(classes))
    def make(request: pytest.FixtureRequest) -> Any:
        return classes[request.param]

    return make
