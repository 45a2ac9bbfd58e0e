"""Where schemas are written: their errors with pointers of the list of tools, or of the request."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tokenfst.errors import EmptyLanguageError, SchemaError


@contextmanager
def placed(place: str) -> Iterator[None]:
    """Errors of a schema that stands at ``place`` say so."""
    try:
        yield
    except SchemaError as error:
        raise type(error)(place + error.pointer.removeprefix("#"), error.reason) from None
    except EmptyLanguageError as error:
        pointers = tuple(place + each.removeprefix("#") for each in error.pointers)
        raise EmptyLanguageError(f"{place}: {error}", pointers) from None
