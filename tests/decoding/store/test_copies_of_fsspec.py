"""A store behind a cache of fsspec's: what is read comes from the copies, everything else from the storage."""

from __future__ import annotations

import secrets
from pathlib import Path
from typing import Any

import pytest
from support.worlds.stores import SMALL, allowed, files_of

from tokenfst import Store, compile, regex
from tokenfst.errors import NotInStoreError

pytest.importorskip("fsspec")
CHAINS = ("filecache", "simplecache", "simplecache::filecache")


@pytest.fixture(params=CHAINS)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Store, Store, Path]:
    """A store with copies, the same one without, and the folder of the copies."""
    url = f"memory://copies-{secrets.token_hex(6)}"
    options: dict[str, Any] = {}
    for protocol in request.param.split("::"):
        options[protocol] = {"cache_storage": str(tmp_path / protocol)}
    return Store(f"{request.param}::{url}", storage_options=options), Store(url), tmp_path


def copies(folder: Path) -> list[Path]:
    """The copies of files, as opposed to what fsspec notes about them."""
    return [path for path in folder.rglob("*") if path.is_file() and path.name != "cache"]


def test_a_copy_is_read(pair: tuple[Store, Store, Path]) -> None:
    store, plain, folder = pair
    key = store.key(regex("a+"), SMALL)
    assert store.put(key, compile(regex("a+"), SMALL)) and not copies(folder)
    wanted = allowed(store.get(key, SMALL))
    assert copies(folder)
    (path,) = files_of(plain)
    plain._place.remove(path)
    assert allowed(store.get(key, SMALL)) == wanted  # from the copy
    assert key not in store and not list(store.list()) and store.verify() == []
    assert store.put(key, compile(regex("a+"), SMALL)) and key in plain


def test_a_damaged_copy_is_replaced(pair: tuple[Store, Store, Path]) -> None:
    store, _, folder = pair
    key = store.key(regex("a+"), SMALL)
    store.put(key, compile(regex("a+"), SMALL))
    wanted = allowed(store.get(key, SMALL))
    for path in copies(folder):
        path.write_bytes(path.read_bytes()[:40])
    assert allowed(store.get(key, SMALL)) == wanted
    damaged = [path for path in copies(folder) if path.stat().st_size == 40]
    assert damaged == [] and store.verify() == []


def test_a_damaged_entry_behind_a_good_copy(pair: tuple[Store, Store, Path]) -> None:
    store, plain, _ = pair
    key = store.key(regex("a+"), SMALL)
    store.put(key, compile(regex("a+"), SMALL))
    store.get(key, SMALL)
    ((path, data),) = files_of(plain).items()
    plain._place.replace(path, data[:40])
    assert [each.key for each in store.verify()] == [key.name]
    store.verify(remove=True)
    with pytest.raises(NotInStoreError):
        store.get(key, SMALL)


def test_what_is_removed_or_replaced_leaves_no_copy(pair: tuple[Store, Store, Path]) -> None:
    store, _, folder = pair
    key = store.key(regex("ab|c"), SMALL)
    store.put(key, compile(regex("ab|c"), SMALL))
    store.get(key, SMALL)
    other = compile(regex("c|ab"), SMALL)
    store.put(key, other, replace=True)
    assert store.get(key, SMALL).source == other.source
    store.remove(key)
    assert not copies(folder)
    with pytest.raises(NotInStoreError):
        store.get(key, SMALL)
