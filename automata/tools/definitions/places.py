"""Positions of schemas: errors of a schema get pointers into the list of tools, or into the request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tokenfst.errors import EmptyLanguageError, SchemaError


@contextmanager
def placed(place: str) -> Iterator[None]:
    """A context in which pointers of a schema's errors are relative to ``place``: their ``#`` is replaced by it."""
    try:
        yield
    except SchemaError as error:
        raise type(error)(place + error.pointer.removeprefix("#"), error.reason) from None
    except EmptyLanguageError as error:
        pointers = tuple(place + each.removeprefix("#") for each in error.pointers)
        raise EmptyLanguageError(f"{place}: {error}", pointers) from None
