"""The local cache of a store: files that processes map into memory, so that they share one copy.

A file appears under its name complete, by a rename, and is never modified. A process that maps a file holds a shared
lock on it (``flock``) as long as any view of the mapping exists, also in processes forked later, because the mapping
keeps a duplicate of the locked file description. Eviction asks for an exclusive lock without waiting, and skips files
that it does not get. Of the others, the least recently used are removed until the total is within the limit.

Mapped files are verified like all others, including the digest. But unlike data that was read, a mapped file can change
afterwards: anyone who may write into the folder can crash the processes that map its files. So the folder is created
for its owner only, and a folder that belongs to another user is rejected. A folder behind a symbolic link of another
user is rejected, too: it may contain files of other programs whose names look like ours (other caches also use digests
as names), and eviction would remove them.

Rejected: removing mapped files, which Linux allows: their memory would not be freed, and the limit would not hold.
"""

from __future__ import annotations

import mmap
import os
import secrets
import stat
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tokenfst.decoding.store.keys import NAME
from tokenfst.errors import MissingDependencyError, StoreError, StoreWarning

try:
    import fcntl
except ImportError:  # not on Windows
    fcntl = None  # type: ignore[assignment]

_LOCK = ".lock"
_NEW = ".new-"


class Cache:
    """A folder of mapped files with at most ``most`` bytes in total, not counting files that are currently mapped."""

    def __init__(self, folder: str | os.PathLike[str], most: int) -> None:
        if fcntl is None:
            raise MissingDependencyError("a cache below a store needs the locks of Unix: leave cache= out")
        self._folder, self._most = Path(folder).absolute(), most
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self._folder.stat()
            links = [each.lstat() for each in (self._folder, *self._folder.parents) if each.is_symlink()]
        except OSError as error:
            raise StoreError(
                f"cannot make the cache {folder}: {error.strerror}. Name a folder of this computer, such as "
                "/dev/shm/tokenfst, that this user may write to"
            ) from error
        if found.st_uid != os.getuid() or found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise StoreError(
                f"the cache {folder} belongs to another user, or others may write there, and could crash the processes "
                "that map its files: name another folder, or take their rights away (chmod 700)"
            )
        if any(link.st_uid not in (0, os.getuid()) for link in links):
            raise StoreError(
                f"the cache {folder} is at, or below, a symbolic link of another user, who could have any folder "
                "of this user filled and emptied: name the folder itself"
            )

    def get(self, name: str) -> memoryview | None:
        """The file, mapped as long as the view or a part of it exists; None if it is not in the cache."""
        path = self._folder / name
        try:
            while True:
                with path.open("rb") as file:
                    fcntl.flock(file, fcntl.LOCK_SH)
                    if not os.fstat(file.fileno()).st_nlink:  # evicted before it was locked
                        continue
                    if not os.fstat(file.fileno()).st_size:
                        return None
                    view = memoryview(mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ))
                os.utime(path)
                return view
        except FileNotFoundError:
            return None
        except OSError as error:
            self._warn("read", error)
            return None

    def put(self, name: str, data: bytes) -> memoryview | None:
        """Add a file and return it as ``get`` does; None if there is no room."""
        if len(data) > self._most:
            return None
        new = self._folder / f"{_NEW}{secrets.token_hex(8)}"
        try:
            with self._alone():
                self._make_room(self._most - len(data))
                with new.open("xb") as file:
                    file.write(data)
                new.rename(self._folder / name)
        except OSError as error:
            with suppress(OSError):
                new.unlink(missing_ok=True)
            self._warn("write", error)
            return None
        return self.get(name)

    def remove(self, name: str) -> None:
        """Remove a file that was found to be damaged, even if it is mapped."""
        with suppress(OSError):
            (self._folder / name).unlink(missing_ok=True)

    def size(self) -> int:
        """The total size of all files in bytes."""
        return sum(size for _, size, _ in self._files())

    def _make_room(self, most: int) -> None:
        """Remove files that are not mapped, least recently used first, until the rest is within the limit."""
        files = self._files()
        left = sum(size for _, size, _ in files)
        for path, size, _ in sorted(files, key=lambda file: file[2]):
            if left <= most:
                return
            with suppress(FileNotFoundError), path.open("rb") as file:
                try:
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                except BlockingIOError:
                    continue
                path.unlink(missing_ok=True)
                left -= size

    def _files(self) -> list[tuple[Path, int, float]]:
        """Each file of the cache, its size, and when it was last used; those of writers that died are unused."""
        found = []
        for path in self._folder.iterdir():
            with suppress(FileNotFoundError):
                about = path.lstat()
                own = path.name.startswith(_NEW) or NAME.fullmatch(path.name)
                if own and stat.S_ISREG(about.st_mode):
                    used = 0.0 if path.name.startswith(_NEW) else about.st_mtime
                    found.append((path, about.st_size, used))
        return found

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """One writer at a time, of all processes."""
        with (self._folder / _LOCK).open("ab") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            yield

    def _warn(self, what: str, error: OSError) -> None:
        warnings.warn(
            f"cannot {what} the cache {self._folder} ({error.strerror}): going on without it. Check its rights and the "
            "space left",
            StoreWarning,
            stacklevel=4,
        )
