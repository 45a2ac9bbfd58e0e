"""Files below a folder that others may write into: opened without following links, and locked among processes."""

from __future__ import annotations

import errno
import os
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_PATIENCE = 5.0
"""Maximum number of seconds to wait for a lock. There is a maximum because every process that may read a folder can
lock it.
"""
_MOMENT = 0.02
"""The maximum during the ``_HURRIED`` seconds after a wait that failed."""
_HURRIED = 60.0
_PAUSE = 0.001
_FOLDER = os.O_RDONLY | getattr(os, "O_DIRECTORY", 0) | getattr(os, "O_NOFOLLOW", 0)
_FILE = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)


def open_inner(root: Path, name: str) -> int:
    """A descriptor of the regular file ``name`` below ``root``, for reading. ``root`` may be a link; nothing below it.

    Raises FileNotFoundError if there is no file, and OSError for a link, a folder, a pipe or a device.
    """
    if os.open not in os.supports_dir_fd:
        return _regular(os.open(root / name, _FILE))
    *folders, last = name.split("/")
    try:
        at = os.open(root, os.O_RDONLY)
        try:
            for folder in folders:
                inner = os.open(folder, _FOLDER, dir_fd=at)
                os.close(at)
                at = inner
            return _regular(os.open(last, _FILE, dir_fd=at))
        finally:
            os.close(at)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENOTDIR, errno.ENXIO):
            raise _refused() from None
        raise


def plain_path(root: Path, name: str) -> Path:
    """The path of ``name`` below ``root``. Raises OSError if a folder on the way is a link. Unlike ``open_inner``, this
    does not prevent others from putting a link there afterwards.
    """
    path = root
    for folder in name.split("/")[:-1]:
        path /= folder
        if path.is_symlink():
            raise _refused()
    return root / name


def _regular(file: int) -> int:
    if stat.S_ISREG(os.fstat(file).st_mode):
        return file
    os.close(file)
    raise _refused()


def _refused() -> OSError:
    return OSError(
        errno.ELOOP,
        "it, or a folder on the way to it, is a symbolic link or no plain file, which a store does not follow or read",
    )


class FolderLocks:
    """Locks on folders among processes, shared or exclusive (``alone``). If there are no such locks (Windows, some
    network file systems), or another process holds a lock for long, the caller proceeds without a lock.

    Locks are held for less than a millisecond. So after a wait has failed, the waits of the next minute are very short
    (``_MOMENT``): a process that never releases its lock delays others by about ``_PATIENCE`` seconds a minute and a
    moment for each file that they write or remove.
    """

    def __init__(self) -> None:
        self._hurried_until = 0.0

    @contextmanager
    def locked(self, folder: Path, *, alone: bool = False) -> Iterator[None]:
        """A context with a lock on a folder: exclusive if ``alone``, else shared."""
        if fcntl is None:
            yield
            return
        handle = os.open(folder, os.O_RDONLY)
        try:
            self._lock(handle, fcntl.LOCK_EX if alone else fcntl.LOCK_SH)
            yield
        finally:
            os.close(handle)

    def _lock(self, handle: int, how: int) -> None:
        now = time.monotonic()
        is_hurried = now < self._hurried_until
        end = now + (_MOMENT if is_hurried else _PATIENCE)
        while True:
            try:
                fcntl.flock(handle, how | fcntl.LOCK_NB)
                return
            except BlockingIOError:
                if time.monotonic() >= end:
                    break
                time.sleep(_PAUSE)
            except OSError:
                return
        if not is_hurried:
            self._hurried_until = time.monotonic() + _HURRIED
