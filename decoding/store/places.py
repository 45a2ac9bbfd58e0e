"""What a store needs of a storage: files by names, made whole, at once, and once."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from tokenfst.errors import StoreError


class Listed(NamedTuple):
    """A file of a storage: its name, its size in bytes, and when it was last written or used (seconds of the epoch)."""

    name: str
    size: int
    used: float


class Place(Protocol):
    """A storage. Names are paths below it, of letters, digits, dots and slashes.

    ``create`` is the one that counts: after it returns, the file is there whole, and stays where machines stop; of
    several at once one makes the file. Every method raises ``StoreError`` where the storage fails.
    """

    url: str

    def read(self, name: str) -> bytes | None:
        """The whole file; None: there is none."""

    def exists(self, name: str) -> bool:
        """Whether there is such a file."""

    def create(self, name: str, data: bytes) -> bool:
        """Makes the file; False: there is one, which stays as it is."""

    def replace(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        """Makes the file, in place of another if there is one; readers get one or the other. Unless it is ``lasting``,
        it may be gone, or be empty, after a machine stops."""

    def remove(self, name: str) -> None:
        """Takes the file away, if it is there."""

    def touch(self, name: str) -> None:
        """Says that the file was used today. It may come to nothing."""

    def list(self, folder: str) -> Iterator[Listed]:
        """The files below a folder."""

    def now(self) -> float:
        """What time it is by the clock that ``list`` tells times by."""

    def clean(self, before: float) -> None:
        """Takes away what writers that died before then have left."""


def open_place(url: str | os.PathLike[str], options: Mapping[str, Any]) -> Place:
    """The storage that a URL names: a path, ``file://...``, or what fsspec knows. ``StoreError``."""
    text = os.fspath(url)
    scheme = urlsplit(text).scheme if "://" in text else ""
    if not text or "\0" in text:
        raise StoreError(
            f"a store's URL is a folder or a URL that fsspec knows, such as s3://bucket/folder, not {text!r}"
        )
    if scheme in ("", "file", "local") and "::" not in text:
        from tokenfst.decoding.store.local_files import LocalFiles

        if options:
            raise StoreError(f"a folder has no storage options, and {sorted(options)} were given for {text}")
        return LocalFiles(text.partition("://")[2] if scheme else text)
    from tokenfst.decoding.store.remote import Remote

    return Remote(text, options)
