"""The cache of a machine: shared, within its limit, and nothing that is mapped is removed."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from tokenfst import Store, Vocabulary, regex
from tokenfst.decoding.store.cache import Cache
from tokenfst.errors import NotInStoreError, StoreError, StoreWarning

SMALL = Vocabulary([*(bytes([byte]) for byte in range(256)), b"ab", b""], 257)

F = [f"{number:064x}" for number in range(100)]
"""Names of entries."""


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()} - {".lock"}


def fill(cache: Cache, folder: Path, count: int, size: int = 1000) -> None:
    for number in range(count):
        cache.put(F[number], bytes([number]) * size)
        os.utime(folder / F[number], (number + 1, number + 1))


def test_least_recently_used_goes_first(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 3000)
    fill(cache, tmp_path, 3)
    assert bytes(cache.get(F[0]) or b"") == bytes(1000)
    cache.put(F[3], b"x" * 1000)
    assert names(tmp_path) == {F[0], F[2], F[3]} and cache.size() == 3000
    assert cache.get(F[1]) is None
    assert cache.put("e" * 64, bytes(3001)) is None and names(tmp_path) == {F[0], F[2], F[3]}
    cache.remove(F[0])
    cache.remove(F[0])
    assert names(tmp_path) == {F[2], F[3]}


def test_what_is_mapped_stays(tmp_path: Path) -> None:
    cache = Cache(tmp_path, 2000)
    fill(cache, tmp_path, 2)
    view = cache.get(F[0])
    assert view is not None
    os.utime(tmp_path / F[0], (1, 1))
    part = np.frombuffer(view[10:20], np.uint8)  # as the arrays of an artifact
    del view
    cache.put(F[2], bytes(1000))
    cache.put(F[3], bytes(1000))
    assert names(tmp_path) == {F[0], F[3]} and part.tolist() == [0] * 10
    cache.put(F[4], bytes(2000))
    assert names(tmp_path) == {F[0], F[4]}  # more than the limit, by what is mapped
    del part
    cache.put(F[5], bytes(1000))
    assert names(tmp_path) == {F[5]}


def test_what_another_process_maps_stays(tmp_path: Path) -> None:
    """Also where it was mapped before a fork, and the parent looks no more."""
    cache = Cache(tmp_path, 1000)
    cache.put(F[1], bytes(1000))
    view = cache.get(F[1])
    go, ready = os.pipe()
    child = os.fork()
    if not child:
        os.close(ready)
        os.read(go, 1)  # until the parent closes its end
        os._exit(0 if view is not None and bytes(view) == bytes(1000) else 1)
    os.close(go)
    del view
    cache.put(F[2], bytes(900))
    assert F[1] in names(tmp_path)
    os.close(ready)
    assert os.waitpid(child, 0)[1] == 0
    cache.put(F[3], bytes(900))
    assert names(tmp_path) == {F[3]}


def test_a_store_above_a_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store("memory://cached", cache=tmp_path / "cache")
    made = store.compile(regex("ab|c"), SMALL)
    key = store.key(regex("ab|c"), SMALL)
    assert names(tmp_path / "cache") == set()  # whoever compiles it needs no copy
    first = store.get(key, SMALL)
    assert names(tmp_path / "cache") == {store._cache_name(str(key))}
    monkeypatch.setattr(store._place, "read", None)
    again = store.get(key, SMALL)
    assert again.serialize() == first.serialize() == made.serialize()
    arrays = again.arrays()
    while getattr(base := arrays["table"], "base", None) is not None and not isinstance(base, memoryview):
        arrays = {"table": base.base}
    assert isinstance(base, memoryview) and type(base.obj).__name__ == "mmap"


def test_a_damaged_copy_is_read_again(tmp_path: Path) -> None:
    store = Store("memory://damaged-copy", cache=tmp_path)
    store.compile(regex("ab|c"), SMALL)
    key = store.key(regex("ab|c"), SMALL)
    store.get(key, SMALL)
    data = (tmp_path / store._cache_name(str(key))).read_bytes()
    for damaged in (b"", data[:-1], data[:200], data[:300] + b"?" + data[301:]):
        (tmp_path / store._cache_name(str(key))).write_bytes(damaged)
        assert store.get(key, SMALL).is_expanded
        assert (tmp_path / store._cache_name(str(key))).read_bytes() == data
    assert store.verify() == []


def test_folders_that_others_may_write_to(tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(StoreError, match="others may write there"):
        Cache(tmp_path / "open", 1000)
    with pytest.raises(StoreError, match="cannot make the cache"):
        Cache("/proc/nobody", 1000)
    Cache(tmp_path / "new", 1000)
    assert (tmp_path / "new").stat().st_mode & 0o777 == 0o700


@pytest.mark.skipif(os.name == "nt" or os.getuid() != 0, reason="only root gives links away")
@pytest.mark.parametrize("inner", ["", "inner"])
def test_a_link_of_another_user_is_not_followed(inner: str, tmp_path: Path) -> None:
    """In a folder where others may write, such as /dev/shm. It may lead to files that are named as in a cache."""
    precious = tmp_path / "blobs" / inner / ("a" * 64)
    precious.parent.mkdir(mode=0o700, parents=True)
    precious.write_bytes(bytes(100))
    link = tmp_path / "tokenfst"
    link.symlink_to(tmp_path / "blobs")
    own = Cache(link / inner, 1000)  # this user's own link is one of its ways to name a folder
    assert own.size() == 100
    os.chown(link, 12345, 12345, follow_symlinks=False)
    with pytest.raises(StoreError, match="symbolic link of another user"):
        Cache(link / inner, 50).put("b" * 64, bytes(40))
    assert precious.exists()


def test_a_full_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store("memory://full", cache=tmp_path)
    store.compile(regex("a"), SMALL)

    def full(self: Path, target: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "rename", full)
    with pytest.warns(StoreWarning, match="No space left"):
        found = store.get(store.key(regex("a"), SMALL), SMALL)
    assert found.is_expanded and names(tmp_path) == set()


def test_readers_and_evicters_at_once(tmp_path: Path) -> None:
    """Whatever is got is whole, and what is not got was evicted."""
    cache = Cache(tmp_path, 5000)
    children = []
    for number in range(4):
        children.append(child := os.fork())
        if not child:
            code = 1
            try:
                rng = np.random.default_rng(number)
                for _ in range(400):
                    which = int(rng.integers(12))
                    found = cache.get(f"f{which}") or cache.put(f"f{which}", bytes([which]) * 1000)
                    assert found is None or bytes(found) == bytes([which]) * 1000
                code = 0
            finally:
                os._exit(code)
    assert [os.waitpid(child, 0)[1] for child in children] == [0] * 4
    assert cache.size() <= 5000


def test_files_of_others_stay(tmp_path: Path) -> None:
    """What is no entry by its name is neither counted nor removed."""
    folder = tmp_path / "cache"
    folder.mkdir(mode=0o700)
    (folder / "thesis.txt").write_bytes(bytes(5000))
    cache = Cache(folder, 2000)
    fill(cache, folder, 3)
    assert names(folder) == {"thesis.txt", F[1], F[2]} and cache.size() == 2000


def test_stores_that_share_a_cache_do_not_see_each_others_entries(tmp_path: Path) -> None:
    """Tenants of a server do: what one has compiled must not be served to another."""
    constraint = regex("a+b")
    one, other = (Store(tmp_path / name, cache=tmp_path / "cache") for name in ("one", "other"))
    key = one.key(constraint, SMALL)
    one.compile(constraint, SMALL)
    one.get(key, SMALL)  # which is in the cache now
    for read in (lambda: other.get(key, SMALL), lambda: other.artifact(key)):
        with pytest.raises(NotInStoreError):
            read()
    other.compile(constraint, SMALL)
    assert key in other and bytes(one.artifact(key)) == bytes(other.artifact(key))
    one.remove(key)
    assert key not in one and len(other.artifact(key)) > 0
    with pytest.raises(NotInStoreError):
        one.get(key, SMALL)
