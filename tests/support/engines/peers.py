"""The libraries that tokenfst.compat stands in for, in the versions that it was written from."""

from __future__ import annotations

from importlib.metadata import version
from typing import Any

import pytest

VERSIONS = {"llguidance": "1.9.1", "xgrammar": "0.2.8"}


def peer(name: str) -> Any:
    """A module of one of them. Skips the test if it is not installed, or is of another version."""
    library = name.split(".")[0]
    module = pytest.importorskip(name, reason=f"{library} is not installed: make test-compat")
    if version(library) != VERSIONS[library]:
        pytest.skip(
            f"{library} {version(library)} is installed, and this was written from {VERSIONS[library]}"
        )
    return module
