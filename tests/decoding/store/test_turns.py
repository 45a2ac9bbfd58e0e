"""Threads that take turns: one computes, and meanwhile the storage is at work for the others."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from support.worlds.stores import SMALL

from tokenfst import Store
from tokenfst.decoding.store.storages.local_files import LocalFiles
from tokenfst.decoding.store.storages.places import Listed
from tokenfst.decoding.store.storages.turns import ByTurns
from tokenfst.errors import StoreError

THREADS = 8


class Together(LocalFiles):
    """A folder that writes nothing before ``THREADS`` threads have asked it to."""

    def __init__(self, folder: str) -> None:
        super().__init__(folder)
        self._all = threading.Barrier(THREADS, timeout=60)

    def create(self, name: str, data: bytes) -> bool:
        self._all.wait()
        return super().create(name, data)


def test_the_storage_works_for_several_threads_and_one_computes(tmp_path: Path) -> None:
    turn = threading.Lock()
    place = ByTurns(Together(str(tmp_path)), turn)
    computing: list[int] = []

    def work(number: int) -> bool:
        with turn:
            for _ in range(3):
                computing.append(number)
                assert computing == [number]
                computing.remove(number)
                made = place.create(f"a/{number}", b"x")
                assert turn.locked()
            return made

    with ThreadPoolExecutor(THREADS) as threads:
        assert not any(threads.map(work, range(THREADS)))  # the second and third time it was there
    assert not turn.locked() and len(list(LocalFiles(str(tmp_path)).list("a"))) == THREADS


class Failing:
    """A storage of which everything fails."""

    url = "nowhere"
    is_shared = True

    def read(self, name: str, *, fresh: bool = False) -> bytes | None:
        raise StoreError(name)

    def exists(self, name: str) -> bool:
        raise StoreError(name)

    def create(self, name: str, data: bytes) -> bool:
        raise StoreError(name)

    def replace(self, name: str, data: bytes, *, lasting: bool = True) -> None:
        raise StoreError(name)

    def remove(self, name: str) -> None:
        raise StoreError(name)

    def touch(self, name: str) -> None:
        raise StoreError(name)

    def list(self, folder: str) -> Iterator[Listed]:
        raise StoreError(folder)

    def now(self) -> float:
        raise StoreError("now")

    def clean(self, before: float) -> None:
        raise StoreError("clean")


def test_the_turn_comes_back_after_an_error() -> None:
    turn = threading.Lock()
    place = ByTurns(Failing(), turn)
    with turn:
        for call in (
            lambda: place.read("a"),
            lambda: place.exists("a"),
            lambda: place.create("a", b""),
            lambda: place.replace("a", b""),
            lambda: place.remove("a"),
            lambda: place.touch("a"),
            lambda: place.list("a"),
            place.now,
            lambda: place.clean(0),
        ):
            with pytest.raises(StoreError):
                call()
            assert turn.locked()


def test_a_store_by_turns_is_the_same_store(tmp_path: Path) -> None:
    turn = threading.Lock()
    store = Store(tmp_path, cache=tmp_path / "cache")
    own = store.by_turns(turn)
    with turn:
        key, made = own.ensure({"regex": "a+b"}, SMALL)
        assert made and own.ensure({"regex": "a+b"}, SMALL) == (key, False)
        assert own.url == store.url and [each.key for each in own.list()] == [key]
        assert own.get(key, SMALL).source == store.get(key, SMALL).source
        assert own.put_vocabulary(SMALL) and own.vocabulary(SMALL.fingerprint) == SMALL
        assert own.verify() == [] and own.prune(max_bytes=0).removed == 1
    assert key not in store
