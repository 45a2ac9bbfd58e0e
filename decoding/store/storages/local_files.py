"""A local folder as a storage.

A file is written under a temporary name, flushed to the disk, and then hard-linked to its final name, which fails if
that exists. So a file is complete from the first moment, and the first writer wins. The folder is flushed before the
call returns. Files left by a writer that died have names that start with a dot, and are never read as entries.

Below the folder only regular files are read, and no symbolic link is followed (``inner_files``): a tenant who may write
into one folder must not make another tenant's files appear there.

A writer holds a shared lock (``flock``) on a file's folder while it gives the file its name. ``remove_unchanged`` holds
an exclusive lock while it checks and removes a file. So it never removes a file that was written in between.

Rejected: ``open(..., "x")``, whose file exists before its content; ``rename``, where the last writer wins; removal by
renaming a file, checking it and renaming it back if it has changed, because a process that is killed in between has
removed the file.
"""

from __future__ import annotations

import os
import secrets
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tokenfst.decoding.store.storages.inner_files import FolderLocks, open_inner, plain_path
from tokenfst.decoding.store.storages.places import Listed
from tokenfst.errors import StoreError

_LEFT = ".tokenfst-"
_OFTEN = 3600.0
"""Seconds after a touch in which a file is not touched again."""


class LocalFiles:
    """An implementation of ``places.Place``."""

    def __init__(self, folder: str) -> None:
        self._root = Path(folder).absolute()
        self.url, self.is_shared = str(self._root), True
        self._locks = FolderLocks()
        with self._failing("open"):
            if self._root.exists() and not self._root.is_dir():  # else it is made when something is put
                raise NotADirectoryError(20, "it is not a folder")

    def read(self, name: str, *, fresh: bool = False) -> bytes | None:
        """See ``Place``."""
        with self._failing("read", name):
            try:
                with os.fdopen(open_inner(self._root, name), "rb") as file:
                    return file.read()
            except FileNotFoundError:
                return None

    def exists(self, name: str) -> bool:
        """See ``Place``."""
        with self._failing("look into"):
            try:
                os.close(open_inner(self._root, name))
            except FileNotFoundError:
                return False
            return True

    def create(self, name: str, data: bytes) -> bool:
        """See ``Place``."""
        with self._failing("write", name):
            target = plain_path(self._root, name)
            written = self._write(target, data)
            try:
                with self._locks.locked(target.parent):
                    os.link(written, target)
                made = True
            except FileExistsError:
                made = False
            finally:  # a full disk may have no place for the name
                written.unlink()
            _flush_folder(
                target.parent
            )  # also for a file of another writer: success must not be reported for data that may be lost
            return made

    def replace(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        """See ``Place``."""
        with self._failing("write", name):
            target = plain_path(self._root, name)
            written = self._write(target, data, lasting)
            try:
                with self._locks.locked(target.parent):
                    written.rename(target)
            except BaseException:
                written.unlink()
                raise
            if lasting:
                _flush_folder(target.parent)

    def remove(self, name: str) -> None:
        """See ``Place``."""
        with self._failing("remove", name):
            plain_path(self._root, name).unlink(missing_ok=True)

    def remove_unchanged(self, listed: Listed) -> bool:
        """See ``Place``."""
        with self._failing("remove", listed.name):
            path = plain_path(self._root, listed.name)
            try:
                with self._locks.locked(path.parent, alone=True):
                    if _version(path.lstat()) != listed.version:
                        return False
                    path.unlink()
            except FileNotFoundError:
                pass
            return True

    def touch(self, name: str) -> None:
        """See ``Place``."""
        try:
            descriptor = open_inner(self._root, name)
        except OSError:  # gone, or a link
            return
        try:
            if (
                abs(time.time() - os.fstat(descriptor).st_mtime) > _OFTEN
            ):  # the clocks of a shared folder may differ
                os.utime(descriptor if os.utime in os.supports_fd else self._root / name)
        except OSError:  # read-only
            return
        finally:
            os.close(descriptor)

    def list(self, folder: str) -> Iterator[Listed]:
        """See ``Place``."""
        with self._failing("list"):
            for path in sorted(plain_path(self._root, f"{folder}/").rglob("*")):
                try:
                    found = path.lstat()
                except FileNotFoundError:
                    continue
                if stat.S_ISREG(found.st_mode) and not path.name.startswith(_LEFT):
                    name = path.relative_to(self._root).as_posix()
                    yield Listed(name, found.st_size, found.st_mtime, _version(found))

    def now(self) -> float:
        """The time of the folder's own clock, which may be another computer's: the time of a file that is written for
        this purpose.
        """
        path = self._root / f"{_LEFT}{secrets.token_hex(8)}"
        try:
            try:
                with path.open("xb") as file:
                    file.write(b"\n")
                return path.stat().st_mtime
            finally:
                path.unlink(missing_ok=True)
        except OSError:  # no folder, read-only, or full
            return time.time()

    def clean(self, before: float) -> None:
        """See ``Place``."""
        with self._failing("clean"):
            for path in self._root.rglob(f"{_LEFT}*"):
                try:
                    found = path.lstat()
                    if found.st_mtime < before and not stat.S_ISDIR(found.st_mode):
                        path.unlink(missing_ok=True)
                except FileNotFoundError:
                    continue

    def _write(self, target: Path, data: bytes, lasting: bool = True) -> Path:
        """Write a new file next to ``target``, on the disk; returns its path."""
        for folder in [folder for folder in (target.parent, *target.parent.parents) if not folder.exists()][
            ::-1
        ]:
            folder.mkdir(exist_ok=True)
            _flush_folder(folder.parent)
        path = target.with_name(f"{_LEFT}{secrets.token_hex(8)}")
        file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(file, view) :]
            if lasting:
                os.fsync(file)
        except BaseException:
            path.unlink()
            raise
        finally:
            os.close(file)
        return path

    @contextmanager
    def _failing(self, what: str, name: str = "") -> Iterator[None]:
        try:
            yield
        except OSError as error:
            raise StoreError(
                f"cannot {what} the store {self._root}{f', at {name}' if name else ''}: {error.strerror or error}. "
                "Check that it is a folder, that this user may write there, and the space left"
            ) from error


def _version(found: os.stat_result) -> object:
    return found.st_ino, found.st_mtime_ns, found.st_size


def _flush_folder(folder: Path) -> None:
    file = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(file)
    finally:
        os.close(file)
