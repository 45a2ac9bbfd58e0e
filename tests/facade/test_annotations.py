"""Annotations are evaluated as Python would, and the libraries in them may do what they like."""

from __future__ import annotations

import time
from typing import Literal

import pytest

from tokenfst.common.arguments import checked
from tokenfst.errors import ArgumentValueError


@checked
def call(day: Literal[time.strptime("7", "%d").tm_mday]) -> int:  # type: ignore[valid-type]
    """``strptime`` imports a module when it runs; so does ``NDArray[...]`` of numpy 2.4."""
    return day


def test_an_annotation_may_import() -> None:
    assert call(7) == 7
    with pytest.raises((ArgumentValueError, TypeError)):
        call("7")
