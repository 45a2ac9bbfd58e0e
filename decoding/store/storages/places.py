"""``Place``: the storage interface of a store, with atomic creation of complete files."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from tokenfst.errors import StoreError


class Listed(NamedTuple):
    """A file of a storage: its name, its size in bytes, and the time of its last write or use (seconds since the
    epoch). ``version``: a value that differs once the file has been written again.
    """

    name: str
    size: int
    used: float
    version: object


class Place(Protocol):
    """A storage. Names are relative paths of letters, digits, dots and slashes.

    The essential operation is ``create``: after it returns, the file is complete and durable; of several concurrent
    calls exactly one creates the file. Every method raises ``StoreError`` if the storage fails.

    ``is_shared``: whether other processes can reach the files, which is not so in memory.
    """

    url: str
    is_shared: bool

    def read(self, name: str, *, fresh: bool = False) -> bytes | None:
        """The content of the file; None if there is none. ``fresh``: read the storage itself, not a copy that fsspec
        keeps on this computer (``filecache::s3://...``), and drop such a copy.
        """

    def exists(self, name: str) -> bool:
        """Whether the file exists."""

    def create(self, name: str, data: bytes) -> bool:
        """Create the file. Returns False if it exists already; it is then unchanged."""

    def replace(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        """Create the file or replace it; readers get the old or the new content.

        Unless ``lasting`` is set, the file may be missing or empty after a crash of the computer.
        """

    def remove(self, name: str) -> None:
        """Remove the file, if it exists."""

    def remove_unchanged(self, listed: Listed) -> bool:
        """Remove a file unless it was written again since it was listed. Returns whether the file is gone.

        Storages without such a request check the file immediately before they remove it: a file that is written between
        the check and the removal is lost.
        """

    def touch(self, name: str) -> None:
        """Record that the file was used today. Best effort."""

    def list(self, folder: str) -> Iterator[Listed]:
        """The files below a folder."""

    def now(self) -> float:
        """The current time of the clock that ``list`` uses."""

    def clean(self, before: float) -> None:
        """Remove the temporary files of writers that died before ``before``."""


def open_place(url: str | os.PathLike[str], options: Mapping[str, Any]) -> Place:
    """The storage at a URL: a path, ``file://...``, or a URL that fsspec supports. Raises ``StoreError``."""
    text = os.fspath(url)
    scheme = urlsplit(text).scheme if "://" in text else ""
    if not text or "\0" in text:
        raise StoreError(
            f"a store's URL is a folder or a URL that fsspec knows, such as s3://bucket/folder, not {text!r}"
        )
    if scheme in ("", "file", "local") and "::" not in text:
        from tokenfst.decoding.store.storages.local_files import LocalFiles

        if options:
            raise StoreError(f"a folder has no storage options, and {sorted(options)} were given for {text}")
        return LocalFiles(_folder(text) if scheme else text)
    from tokenfst.decoding.store.storages.remote import Remote

    return Remote(text, options)


def _folder(url: str) -> str:
    """The folder of a ``file://`` URL. Raises ``StoreError`` for a relative one."""
    scheme, _, folder = url.partition("://")
    if not folder.startswith("/"):
        raise StoreError(
            f"{url} names no absolute folder: write {scheme}:///{folder or 'folder'} (three slashes), or, for a "
            f"folder below the current one, its path alone: {folder or 'folder'}"
        )
    return folder
