"""What is removed while others write: an entry that was put again in the meantime stays.

Each race is made to happen step by step: the other writer acts at the worst moment of the one who removes.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from support.worlds.stores import SMALL, files_of

from tokenfst import Store, compile, regex
from tokenfst.decoding.store.storages import inner_files
from tokenfst.decoding.store.storages.local_files import LocalFiles
from tokenfst.decoding.store.storages.places import Listed

LANGUAGE = regex("a+b")


def entry_of(store: Store) -> tuple[str, bytes]:
    """The name and the bytes of an entry that the store has now."""
    store.compile(LANGUAGE, SMALL)
    ((name, data),) = files_of(store).items()
    return name, data


def acting_after(store: Store, number: int, act: Callable[[], object]) -> None:
    """``act`` happens when the storage of ``store`` was read ``number`` times."""
    read, count = store._place.read, 0

    def call(name: str, *, fresh: bool = False) -> bytes | None:
        nonlocal count
        found = read(name, fresh=fresh)
        count += 1
        if count == number:
            act()
        return found

    store._place.read = call  # type: ignore[method-assign]


def later(store: Store) -> None:
    """Wait until the storage would give another time to what is written now."""
    time.sleep(1.1 if "s3:" in store.url else 0.02)


def test_verify_keeps_an_entry_that_was_mended_in_the_meantime(where: dict[str, Any]) -> None:
    store, other = Store(**where), Store(**where)
    name, data = entry_of(store)
    other._place.replace(name, b"damaged")
    acting_after(store, 3, lambda: other._place.replace(name, data))  # after it was refused for the last time
    assert store.verify(remove=True) == []
    assert other.get(store.key(LANGUAGE, SMALL), SMALL).is_expanded


def test_verify_removes_what_is_still_damaged(where: dict[str, Any]) -> None:
    store = Store(**where)
    name, _ = entry_of(store)
    store._place.replace(name, b"damaged")
    assert [each.key for each in store.verify()] == [name[-64:]] and files_of(store) == {name: b"damaged"}
    assert [each.key for each in store.verify(remove=True)] == [name[-64:]] and files_of(store) == {}


def test_verify_keeps_a_vocabulary_that_was_mended_in_the_meantime(where: dict[str, Any]) -> None:
    store, other = Store(**where), Store(**where)
    store.put_vocabulary(SMALL)
    (name,) = (each.name for each in store._place.list("vocabularies"))
    data = store._place.read(name)
    other._place.replace(name, b"damaged")
    acting_after(store, 3, lambda: other._place.replace(name, data))
    assert store.verify(remove=True) == []
    assert other.vocabulary(SMALL.fingerprint).fingerprint == SMALL.fingerprint


@pytest.mark.parametrize("how", [{"max_bytes": 0}, {"unused_days": 1e-9}])
def test_prune_keeps_an_entry_that_was_put_again_in_the_meantime(
    how: dict[str, Any], where: dict[str, Any]
) -> None:
    """Another one prunes, too, and a worker puts the entry again, after the entries were listed."""
    store, other = Store(**where), Store(**where)
    entry_of(store)
    later(store)
    key, listing, happened = store.key(LANGUAGE, SMALL), store._place.list, []

    def call(folder: str) -> Iterator[Listed]:
        found = [*listing(folder)]
        if folder == "artifacts" and not happened:
            happened.append(folder)
            other.remove(key)
            assert other.put(key, compile(LANGUAGE, SMALL).expand())
        return iter(found)

    store._place.list = call  # type: ignore[method-assign]
    done = store.prune(**how)
    assert happened and (done.removed, done.kept) == (0, 1) and key in other
    assert store.prune(max_bytes=0).removed == 1 and key not in other


@pytest.mark.parametrize("remote", [False, True])
def test_a_writer_waits_for_one_who_is_about_to_remove(remote: bool, tmp_path: Path) -> None:
    """Folders and memory: no write comes between the last look at a file and its removal."""
    url = "memory://about-to-remove" if remote else os.fspath(tmp_path)
    store, other = Store(url), Store(url)
    name, data = entry_of(store)
    store._place.replace(name, b"damaged")
    mending = threading.Thread(target=other._place.replace, args=(name, data))
    holder, attribute = (store._place._files, "rm_file") if remote else (Path, "unlink")  # type: ignore[attr-defined]
    real = getattr(holder, attribute)

    def removing(path: Any, *given: Any, **named: Any) -> Any:
        if os.fspath(path).endswith(name) and mending.ident is None:
            mending.start()
            mending.join(0.3)
            assert mending.is_alive()
        return real(path, *given, **named)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(holder, attribute, removing)
        assert [each.key for each in store.verify(remove=True)] == [name[-64:]]
        mending.join()
    assert files_of(store) == {name: data}


def test_who_only_reads_a_folder_cannot_stop_writers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(inner_files, "_PATIENCE", 0.05)
    place = LocalFiles(str(tmp_path))
    place.create("a/first", b"1")
    handle = os.open(tmp_path / "a", os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        assert place.create("a/second", b"2") and not place.create("a/second", b"3")
        place.replace("a/second", b"4")
        assert [place.remove_unchanged(each) for each in place.list("a")] == [True, True]
    finally:
        os.close(handle)
    assert list(place.list("a")) == []


def test_who_holds_a_lock_for_ever_delays_others_once_and_not_for_each_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(inner_files, "_PATIENCE", 0.5)
    store = Store(tmp_path)
    for number in range(20):  # in one folder, that of keys which begin alike
        store._place.create(f"artifacts/aa/aa{number:062x}", b"damaged")
    handle = os.open(tmp_path / "artifacts" / "aa", os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_SH)
        began = time.monotonic()
        assert store.prune(max_bytes=7).removed == 19
        assert 0.5 < time.monotonic() - began < 5  # 9.5 s if each file had its own
    finally:
        os.close(handle)
    monkeypatch.setattr(inner_files, "_PATIENCE", 60)
    began = time.monotonic()
    assert store.prune(max_bytes=0).removed == 1 and time.monotonic() - began < 30


def test_what_is_gone_already_is_no_error(where: dict[str, Any]) -> None:
    store = Store(**where)
    name, _ = entry_of(store)
    (listed,) = store._place.list("artifacts")
    store._place.remove(name)
    assert store._place.remove_unchanged(listed)


def test_threads_put_into_a_far_storage_at_once() -> None:
    """Only memory needs one writer at a time; elsewhere each waits for its own request."""
    store = Store("memory://at-once")
    place: Any = store._place
    place._is_memory = False
    place._files = Far(threading.Barrier(4, timeout=20))
    with ThreadPoolExecutor(4) as threads:
        assert list(threads.map(lambda number: place.create(f"a/{number}", b"x"), range(4))) == [True] * 4


class Far:
    """A file system whose writes take until four are under way."""

    protocol = "far"

    def __init__(self, together: threading.Barrier) -> None:
        self._together = together

    def pipe_file(self, path: str, data: bytes, mode: str) -> None:
        self._together.wait()
