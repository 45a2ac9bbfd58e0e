"""Writers that are killed at any step, and many at once: no torn entry is read, and nothing acknowledged is lost."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tokenfst import Store, Vocabulary, compile, regex
from tokenfst.decoding.store.cache import Cache
from tokenfst.decoding.store.storages.local_files import LocalFiles
from tokenfst.errors import NotInStoreError

SMALL = Vocabulary([*(bytes([byte]) for byte in range(256)), b"ab", b""], 257)
ONE, TWO = regex("a+b|cd"), regex("[a-z]{1,3}")
STEPS = ("open", "write", "fsync", "link", "rename", "unlink", "mkdir", "close")


def killed_at(step: int, half: bool, work: Callable[[], Any]) -> tuple[bool, bool]:
    """Does ``work`` in a process that is killed before its n-th call of the system (``half``: in the midst, of a
    write). Returns whether it was killed, and whether it had said that it was done.
    """
    ends, told = os.pipe()
    child = os.fork()
    if not child:
        try:
            count = 0
            for name in STEPS:
                real = getattr(os, name)

                def call(*args: Any, real: Any = real, name: str = name, **kwargs: Any) -> Any:
                    nonlocal count
                    count += 1
                    if count == step:
                        if half and name == "write":
                            real(args[0], args[1][: len(args[1]) // 2])
                        elif half:
                            with suppress(FileExistsError):
                                real(*args, **kwargs)
                        os.kill(os.getpid(), signal.SIGKILL)
                    return real(*args, **kwargs)

                setattr(os, name, call)
            work()
            step = -1
            os.write(told, b"done")
        finally:
            os._exit(0)
    os.close(told)
    said = os.read(ends, 4) == b"done"
    os.close(ends)
    _, status = os.waitpid(child, 0)
    return os.WIFSIGNALED(status), said


def check(store: Store, key: Any, acknowledged: bool, wanted: list[bytes]) -> None:
    assert store.verify() == []
    try:
        found = store.get(key, SMALL)
    except NotInStoreError:
        assert not acknowledged and key not in store and list(store.list()) == []
        return
    assert found.serialize() in wanted
    assert [each.key for each in store.list()] == [str(key)]


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("there", [False, True])
def test_put_killed_at_every_step(half: bool, there: bool, tmp_path: Path) -> None:
    automaton = compile(ONE, SMALL).expand()
    killed = []
    for step in range(1, 60):
        store = Store(tmp_path / f"{step}")
        key = store.key(ONE, SMALL)
        if there:
            store.put(key, automaton)
        done = killed_at(step, half, lambda: store.put(key, automaton))  # noqa: B023  # called at once
        killed.append(done[0])
        check(store, key, done[1] or there, [automaton.serialize()])
        store.put(key, automaton)
        check(store, key, True, [automaton.serialize()])
        store._place.clean(time.time() + 9)
        left = [path for path in (tmp_path / f"{step}").rglob("*") if path.is_file()]
        assert len(left) == 1
        if not done[0]:
            break
    assert not killed[-1] and sum(killed) >= (9 if there else 13)


@pytest.mark.parametrize("half", [False, True])
def test_replace_killed_at_every_step(half: bool, tmp_path: Path) -> None:
    """What replaces a damaged entry: readers get the damaged one, which is refused, or the new one."""
    automaton = compile(ONE, SMALL).expand()
    for step in range(1, 60):
        store = Store(tmp_path / f"{step}")
        key = store.key(ONE, SMALL)
        store.put(key, automaton)
        (name,) = [each.name for each in store._place.list("artifacts")]
        whole = store._place.read(name)
        store._place.replace(name, b"damaged")
        died, said = killed_at(step, half, lambda: store._place.replace(name, whole))  # noqa: B023  # called at once
        assert store._place.read(name) in ((whole,) if said else (whole, b"damaged"))
        if not died:
            return
    raise AssertionError("it was never done")


def test_what_is_flushed_before_it_is_acknowledged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = LocalFiles(str(tmp_path))
    (tmp_path / "a").mkdir()
    calls: list[tuple[str, Any]] = []
    for name in ("fsync", "link"):
        real = getattr(os, name)

        def call(*args: Any, real: Any = real, name: str = name) -> Any:
            about = (
                Path(f"/proc/self/fd/{args[0]}").readlink().name if name == "fsync" else Path(args[1]).name
            )
            calls.append((name, about[:9]))
            return real(*args)

        monkeypatch.setattr(os, name, call)
    assert place.create("a/it", b"data") and not place.create("a/it", b"other")
    new, own = ("fsync", ".tokenfst"), ("fsync", "a")
    assert calls == [new, ("link", "it"), own, new, ("link", "it"), own]
    assert place.read("a/it") == b"data"


def test_many_puts_of_one_key_by_many_processes(tmp_path: Path) -> None:
    """Two thousand puts by sixteen processes, each of which also reads: one is the first, and all read its artifact."""
    one, two = compile(ONE, SMALL).expand(), compile(TWO, SMALL).expand()
    store = Store(tmp_path)
    key = store.key(ONE, SMALL)
    ends, told = os.pipe()
    children = []
    for number in range(16):
        children.append(child := os.fork())
        if not child:
            try:
                own = one if number % 2 else two  # as if they were the same: the first one's stays
                first = None
                for _ in range(125):
                    made = store.put(key, own)
                    found = store.get(key, SMALL).serialize()
                    first = first or found
                    assert found == first and (not made or found == own.serialize())
                    os.write(told, b"1" if made else b"0")
                os.write(told, b"-")
            finally:
                os._exit(0)
    os.close(told)
    said = b""
    while part := os.read(ends, 1 << 16):
        said += part
    for child in children:
        assert os.waitpid(child, 0)[1] == 0
    assert (said.count(b"1"), said.count(b"0"), said.count(b"-")) == (1, 1999, 16)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == [str(key)]
    assert store.verify() == []


def test_the_cache_killed_at_every_step(tmp_path: Path) -> None:
    data = os.urandom(5000)
    for step in range(1, 40):
        folder = tmp_path / f"{step}"
        cache = Cache(folder, 100_000)
        died, _ = killed_at(step, False, lambda: cache.put("it", data))  # noqa: B023  # called at once
        found = cache.get("it")
        assert found is None or bytes(found) == data
        assert bytes(Cache(folder, 100_000).put("it", data) or b"") == data
        del found
        assert (
            Cache(folder, 6000).put("other", data) is not None
        )  # what writers that died have left goes first
        assert cache.size() <= 6000
        if not died:
            return
    raise AssertionError("it was never done")
