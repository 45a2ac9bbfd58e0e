"""Settings of xgrammar's parser that have no effect here, because no code recurses with the depth of its input."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tokenfst.compat.xgrammar.tokenizer_info import VERSION

_MOST = 1_000_000
_depth = 10_000


def get_max_recursion_depth() -> int:
    """The depth that was set last."""
    return _depth


def set_max_recursion_depth(max_recursion_depth: int) -> None:
    """Set xgrammar's limit of nested calls. It has no effect here. Raises ValueError for a number out of range."""
    global _depth
    if not 0 <= max_recursion_depth <= _MOST:
        raise ValueError(f"max_recursion_depth must be from 0 to {_MOST:,}, not {max_recursion_depth}")
    _depth = max_recursion_depth


@contextmanager
def max_recursion_depth(temp_depth: int) -> Iterator[None]:
    """Set the limit within a ``with`` block. It has no effect here."""
    before = get_max_recursion_depth()
    set_max_recursion_depth(temp_depth)
    try:
        yield
    finally:
        set_max_recursion_depth(before)


def get_serialization_version() -> str:
    """The version of the format of ``serialize_json``."""
    return VERSION
