"""A full disk: whichever call of the system fails, the error names the remedy, and the store holds whole artifacts."""

from __future__ import annotations

import errno
import os
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from support.worlds.stores import SMALL

from tokenfst import Store, TokenAutomaton, compile, regex
from tokenfst.errors import StoreError, StoreWarning

resource = pytest.importorskip("resource", reason="limits on files are a thing of Unix")
LANGUAGE = regex("(a|b)+c?")
CALLS = ("open", "write", "fsync", "link", "rename", "mkdir")


@cache
def made() -> TokenAutomaton:
    found = compile(LANGUAGE, SMALL).expand()
    assert isinstance(found, TokenAutomaton)
    return found


@contextmanager
def full_at(number: int) -> Iterator[list[str]]:
    """The disk is full from the ``number``-th call on that needs space; a write takes a part of its bytes before.
    Yields the names of the calls that failed.
    """
    failed: list[str] = []
    plain = {name: getattr(os, name) for name in CALLS}
    seen = 0

    def one(name: str) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            nonlocal seen
            needs = name != "open" or bool(given[1] & os.O_CREAT)
            seen += needs
            if not needs or seen < number:
                return plain[name](*given, **named)
            if name == "write" and not failed:
                failed.append("part")
                return plain[name](given[0], given[1][: len(given[1]) // 2])
            failed.append(name)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

        return call

    with pytest.MonkeyPatch.context() as patch:
        for name in CALLS:
            patch.setattr(os, name, one(name))
        yield failed


def put(store: Store) -> object:
    return store.put(store.key(LANGUAGE, SMALL), made())


def put_vocabulary(store: Store) -> object:
    return store.put_vocabulary(SMALL)


def whole(folder: Path) -> None:
    """What is in the folder is complete, and nothing that was begun is left."""
    store = Store(folder)
    assert not store.verify()
    for entry in store.list():
        assert store.get(entry.key, SMALL).is_expanded
    assert not begun(folder)


def begun(folder: Path) -> list[Path]:
    """Files whose writing was not completed."""
    return [path for path in folder.rglob("*") if path.name.startswith(".tokenfst-")]


@pytest.mark.parametrize("action", [put, put_vocabulary])
def test_each_call_that_needs_space_fails(action: Callable[[Store], object], tmp_path: Path) -> None:
    """The call raises StoreError with its remedy, and succeeds when there is space again."""
    seen: set[str] = set()
    for number in range(1, 40):
        folder = tmp_path / str(number)
        store = Store(folder)
        with full_at(number) as failed:
            if failed_now := _fails(action, store):
                assert "No space left" in failed_now and "the space left" in failed_now
        assert bool(failed_now) == bool(failed)
        seen.update(failed)
        whole(folder)
        action(store)
        whole(folder)
        if not failed:
            break
    assert not failed and seen == {"part", *CALLS} - {"rename"}


def _fails(action: Callable[[Store], object], store: Store) -> str:
    try:
        action(store)
    except StoreError as error:
        return str(error)
    return ""


@pytest.mark.parametrize("damaged", [False, True])
def test_compiling_goes_on_while_the_disk_is_full(damaged: bool, tmp_path: Path) -> None:
    """Of a new entry and of one that replaces a damaged one: the automaton is right, and a warning says that it is not
    stored.
    """
    seen: set[str] = set()
    for number in range(1, 40):
        folder = tmp_path / str(number)
        store = Store(folder)
        if damaged:
            put(store)
            (path,) = (path for path in (folder / "artifacts").rglob("*") if path.is_file())
            path.write_bytes(b"x")
        with full_at(number) as failed, warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always", StoreWarning)
            found = store.compile(LANGUAGE, SMALL)
        messages = [str(each.message) for each in warned]
        assert any("compiled, but not stored" in each for each in messages) == bool(failed)
        assert any("compiled again, and replaced" in each for each in messages) == damaged
        assert found.serialize() == made().serialize()
        seen.update(failed)
        assert not begun(folder)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", StoreWarning)
            store.compile(LANGUAGE, SMALL)
        whole(folder)
        if not failed:
            break
    assert not failed and ("rename" if damaged else "link") in seen


def test_a_file_that_may_not_grow(tmp_path: Path) -> None:
    """The system's own error, from a limit on the size of files."""
    store, limits = Store(tmp_path / "store"), resource.getrlimit(resource.RLIMIT_FSIZE)
    assert len(made().serialize()) > 1000
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
        with pytest.raises(StoreError, match=r"File too large.*the space left"):
            put(store)
        with pytest.warns(StoreWarning, match="File too large"):
            assert store.compile(LANGUAGE, SMALL).is_expanded
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    whole(tmp_path / "store")
    assert put(store) is True
    whole(tmp_path / "store")
