"""Storages that fsspec supports: S3, GCS, the hub, memory.

An object is written by one request, which the storage executes completely or not at all. The storage also guarantees
that an existing object is not overwritten (``mode="create"``: on S3 the header If-None-Match). Since such storages do
not record reads, usage is recorded in small objects, once for each day, object and process.

With a cache of fsspec's before the storage (``filecache::s3://...``, ``simplecache::...``), only files are read through
it. Everything else goes to the storage: the caches know no ``mode="create"``, and their listings may be old.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from datetime import datetime
from pathlib import Path
from typing import Any

from tokenfst.decoding.store.storages.places import Listed
from tokenfst.errors import MissingDependencyError, StoreError, TransferError

_USED = "used/"
_CLOCK = "clock"
_DAY = 86_400.0
_CUT = {
    "ClientPayloadError",
    "FlexibleChecksumError",
    "IncompleteRead",
    "IncompleteReadError",
    "ResponseStreamingError",
}
"""The exceptions of HTTP clients for an incomplete response body."""
_changing = threading.Lock()
"""Held while objects in memory are changed, which is not atomic among threads."""


class Remote:
    """An implementation of ``places.Place``."""

    def __init__(self, url: str, options: Mapping[str, Any]) -> None:
        try:
            import fsspec
        except ImportError as error:
            raise MissingDependencyError(
                f"the store {url} needs the package fsspec: pip install tokenfst[store]"
            ) from error
        self.url = url
        self._told: dict[str, float] = {}
        try:
            files, self._root = fsspec.core.url_to_fs(url, **_with_own_options(url, options))
        except ImportError as error:
            raise MissingDependencyError(f"the store {url} needs a package: {error}") from error
        except Exception as error:  # each file system has its own
            raise StoreError(
                f"{url} is not the URL of a store that fsspec can open: {_reason(error)}"
            ) from error
        self._caches, self._files = _caches_before(files)
        self._is_memory, self._has_bucket = "memory" in _protocols(self._files), False
        self.is_shared = not self._is_memory

    def read(self, name: str, *, fresh: bool = False) -> bytes | None:
        """See ``Place``."""
        with self._failing("read", name):
            if fresh:
                self._drop_copy(name)
            files = self._caches[0] if self._caches and not fresh else self._files
            try:
                return bytes(files.cat_file(self._at(name)))
            except FileNotFoundError as error:
                self._check_missing(error)
                return None
            except Exception as error:  # each file system has its own
                if not _CUT.intersection(kind.__name__ for kind in type(error).__mro__):
                    raise
                raise TransferError(f"{self.url}/{name} arrived cut or altered: {_reason(error)}") from error

    def exists(self, name: str) -> bool:
        """See ``Place``."""
        with self._failing("look into", name):
            self._files.invalidate_cache()
            try:
                return bool(self._files.info(self._at(name)))
            except FileNotFoundError as error:
                self._check_missing(error)
                return False

    def create(self, name: str, data: bytes) -> bool:
        """See ``Place``."""
        with self._failing("write", name), self._changing():
            self._make_folder(name)
            try:
                self._files.pipe_file(self._at(name), data, mode="create")
            except FileExistsError:
                return False
            return True

    def replace(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        """See ``Place``."""
        with self._failing("write", name), self._changing():
            self._make_folder(name)
            self._files.pipe_file(self._at(name), data)
            self._drop_copy(name)

    def remove(self, name: str) -> None:
        """See ``Place``."""
        with self._failing("remove", name), self._changing():
            self._remove(name)

    def remove_unchanged(self, listed: Listed) -> bool:
        """See ``Place``."""
        with self._failing("remove", listed.name), self._changing():
            self._files.invalidate_cache()
            try:
                if _version(self._files.info(self._at(listed.name))) != listed.version:
                    return False
            except FileNotFoundError as error:
                self._check_missing(error)
                return True
            self._remove(listed.name)
            return True

    def touch(self, name: str) -> None:
        """See ``Place``."""
        now = time.monotonic()
        if now - self._told.get(name, -_DAY) >= _DAY:
            self._told[name] = now
            with suppress(StoreError):  # read-only
                self.replace(_USED + name, b"")

    def list(self, folder: str) -> Iterator[Listed]:
        """See ``Place``."""
        used = {each.name: each.used for each in self._all(_USED + folder)}
        for each in self._all(folder):
            yield each._replace(used=max(each.used, used.get(_USED + each.name, 0)))

    def now(self) -> float:
        """The storage's own clock, read from an object that is written for this purpose."""
        self.replace(_CLOCK, b"")
        with self._failing("read", _CLOCK):
            self._files.invalidate_cache()
            return _modified(self._files.info(self._at(_CLOCK)))

    def clean(self, before: float) -> None:
        """Does nothing: writers leave only parts of multipart uploads, which the storage removes."""

    def _all(self, folder: str) -> Iterator[Listed]:
        with self._failing("list"):
            self._files.invalidate_cache()
            try:
                found = self._files.find(self._at(folder), detail=True)
                if not found:  # find() passes over what cannot be listed
                    self._files.ls(self._at(folder), detail=False)
            except FileNotFoundError as error:
                self._check_missing(error)
                return
        root = self._files._strip_protocol(self._root).rstrip("/")  # noqa: SLF001  # there is no public name
        for path, info in sorted(found.items()):
            name = str(path)[len(root) + 1 :]
            yield Listed(name, int(info.get("size") or 0), _modified(info), _version(info))

    def _at(self, name: str) -> str:
        return f"{self._root.rstrip('/')}/{name}"

    def _check_missing(self, error: FileNotFoundError) -> None:
        """Raise if a file is missing because its storage was not reached (fsspec's HTTP client says so), or because
        there is no such bucket. The bucket is looked at once.
        """
        if isinstance(error.__cause__, OSError) and not isinstance(error.__cause__, FileNotFoundError):
            raise error.__cause__
        split = getattr(self._files, "split_path", None)
        if self._has_bucket or split is None:
            return
        bucket = split(self._root)[0]
        try:
            self._files.info(bucket)
        except FileNotFoundError:
            raise StoreError(
                f"there is no bucket {bucket}, which the store {self.url} is in: check the URL, or make the bucket"
            ) from None
        except PermissionError:  # who may not look at it may read below the store's folder
            pass
        self._has_bucket = True

    def _drop_copy(self, name: str) -> None:
        """Drop the copies of a file that fsspec's caches keep."""
        for cache in self._caches:
            with suppress(FileNotFoundError):  # another process was quicker
                _drop_copy(cache, cache._strip_protocol(self._at(name)))  # noqa: SLF001  # there is no public name

    def _remove(self, name: str) -> None:
        self._drop_copy(name)
        for each in (name, _USED + name):
            with suppress(FileNotFoundError):
                self._files.rm_file(self._at(each))

    def _changing(self) -> AbstractContextManager[object]:
        return _changing if self._is_memory else nullcontext()

    def _make_folder(self, name: str) -> None:
        if self._is_memory:  # the only one of these that has folders
            self._files.makedirs(self._at(name).rpartition("/")[0], exist_ok=True)

    @contextmanager
    def _failing(self, what: str, name: str = "") -> Iterator[None]:
        try:
            yield
        except (StoreError, MemoryError):
            raise
        except Exception as error:  # each file system has its own
            raise StoreError(
                f"cannot {what} the store {self.url}{f', at {name}' if name else ''}: {_reason(error)}. Check the URL, "
                "the credentials of this process and its rights there, and whether the storage can be reached"
            ) from error


def _with_own_options(url: str, options: Mapping[str, Any]) -> dict[str, Any]:
    """The options of a client, with defaults. That of S3 queries an object's size before it reads it, in order to read
    parts of large ones in parallel; the objects read here are small.

    In a chain of file systems each has its own options, below its name.
    """
    protocol = url.rpartition("::")[2].partition("://")[0]
    if protocol not in ("s3", "s3a"):
        return dict(options)
    defaults = {"max_concurrency": 1}
    if "::" not in url:
        return defaults | dict(options)
    return {**options, protocol: defaults | dict(options.get(protocol, {}))}


def _drop_copy(cache: Any, path: str) -> None:
    """Drop the copy of a file that one of fsspec's caches keeps. Raises ``FileNotFoundError`` if it is gone."""
    from fsspec.implementations.cached import SimpleCacheFileSystem

    if not isinstance(cache, SimpleCacheFileSystem):
        cache.pop_from_cache(path)
    elif copy := cache._check_file(path):  # noqa: SLF001  # its pop_from_cache looks where it keeps no notes
        Path(copy).unlink()


def _caches_before(files: Any) -> tuple[list[Any], Any]:
    """The caches of fsspec's that a file system consists of, the outermost one first, and the storage behind them."""
    from fsspec.implementations.cached import CachingFileSystem

    caches = []
    while isinstance(files, CachingFileSystem):
        caches.append(files)
        files = files.fs
    return caches, files


def _protocols(files: Any) -> tuple[str, ...]:
    return (files.protocol,) if isinstance(files.protocol, str) else tuple(files.protocol)


def _modified(info: Mapping[str, Any]) -> float:
    for key in ("LastModified", "last_modified", "mtime", "updated", "created"):
        found = info.get(key)
        if isinstance(found, datetime):
            return found.timestamp()
        if isinstance(found, int | float):
            return float(found)
    return 0.0


def _version(info: Mapping[str, Any]) -> object:
    return info.get("ETag"), info.get("generation"), info.get("size"), _modified(info)


def _reason(error: Exception) -> str:
    return f"{type(error).__name__}: {str(error).strip().splitlines()[0] if str(error).strip() else 'no reason given'}"
