"""Fixtures of the tests of programs."""

from __future__ import annotations

import importlib
from typing import Any

import pytest


@pytest.fixture(scope="module")
def modules() -> Any:
    """The named modules of benchmarks/."""
    return lambda name: importlib.import_module(f"benchmarks.{name}")
