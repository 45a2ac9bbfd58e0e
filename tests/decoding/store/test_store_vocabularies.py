"""Vocabularies in a store: what is put is what comes back, mapped where there is a cache, or it is refused."""

from __future__ import annotations

import random
import shutil
from pathlib import Path
from typing import Any

import pytest
from support.worlds.stores import OTHER, SMALL

from tokenfst import Store, regex
from tokenfst.errors import (
    ArtifactCorruptError,
    NotInStoreError,
    SignatureError,
    StoreError,
)


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_put_and_get(where: dict[str, Any]) -> None:
    store = Store(**where)
    assert list(store.vocabularies()) == []
    with pytest.raises(NotInStoreError, match="put_vocabulary"):
        store.vocabulary(SMALL.fingerprint)
    assert store.put_vocabulary(SMALL)
    assert not store.put_vocabulary(SMALL)
    assert store.put_vocabulary(OTHER)
    assert sorted(store.vocabularies()) == sorted([SMALL.fingerprint, OTHER.fingerprint])
    found = Store(**where).vocabulary(SMALL.fingerprint)
    assert (found, found.tokens, found.split_pattern) == (SMALL, SMALL.tokens, SMALL.split_pattern)
    assert store.verify() == []
    assert list(store.list()) == []


def test_a_worker_needs_a_key_alone(tmp_path: Path) -> None:
    """Neither constraint nor tokenizer: both come from the store, the vocabulary out of the cache of the machine."""
    filled = Store(tmp_path / "store")
    key = filled.key(regex("[a-z]+"), SMALL)
    wanted = filled.compile(regex("[a-z]+"), SMALL).serialize()
    filled.put_vocabulary(SMALL)
    worker = Store(tmp_path / "store", cache=tmp_path / "cache")
    for _ in range(2):  # the second time from the cache
        vocabulary = worker.vocabulary(key.vocabulary)
        assert vocabulary.native.memory < SMALL.native.memory  # its tries stand in the file
        assert worker.get(key, vocabulary).serialize() == wanted
    shutil.rmtree(tmp_path / "store")
    assert worker.vocabulary(key.vocabulary) == SMALL


def test_damage_is_found_told_and_mended(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put_vocabulary(SMALL)
    (path,) = files_in(tmp_path)
    data, rng = path.read_bytes(), random.Random(1)
    for _ in range(60):
        broken = bytearray(data)
        if rng.random() < 0.4:
            del broken[rng.randrange(len(data)) :]
        else:
            place = rng.choice([rng.randrange(8), rng.randrange(300), rng.randrange(len(data))])
            broken[place] ^= 1 << rng.randrange(8)
        path.chmod(0o600)
        path.write_bytes(broken)
        try:
            found = store.vocabulary(SMALL.fingerprint)
        except ArtifactCorruptError:
            assert [type(each.error) for each in store.verify()] == [ArtifactCorruptError]
        else:
            assert found == SMALL  # a space of the header
    assert store.put_vocabulary(SMALL) or store.vocabulary(SMALL.fingerprint) == SMALL
    path.write_bytes(data[:-1])
    assert store.put_vocabulary(SMALL)
    assert store.vocabulary(SMALL.fingerprint) == SMALL
    path.write_bytes(b"")
    assert len(store.verify(remove=True)) == 1
    assert list(store.vocabularies()) == []


def test_a_vocabulary_under_the_name_of_another(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.put_vocabulary(SMALL)
    (path,) = files_in(tmp_path)
    name = OTHER.fingerprint
    false = tmp_path / "vocabularies" / name[:2] / name
    false.parent.mkdir(exist_ok=True)
    false.write_bytes(path.read_bytes())
    with pytest.raises(ArtifactCorruptError):
        store.vocabulary(name)
    for bad in ("", "x", "../../etc/passwd", name.upper(), name + "0"):
        with pytest.raises(StoreError, match="no fingerprint"):
            store.vocabulary(bad)


def test_a_damaged_copy_in_the_cache_is_read_again(tmp_path: Path) -> None:
    store = Store(tmp_path / "store", cache=tmp_path / "cache")
    store.put_vocabulary(SMALL)
    assert store.vocabulary(SMALL.fingerprint) == SMALL
    (kept,) = (path for path in files_in(tmp_path / "cache") if path.name != ".lock")
    kept.chmod(0o600)
    kept.write_bytes(kept.read_bytes()[:-7])
    assert store.vocabulary(SMALL.fingerprint) == SMALL
    assert store.vocabulary(SMALL.fingerprint) == SMALL


def test_signatures(tmp_path: Path) -> None:
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    private = bytes(range(32))
    public = ed25519.Ed25519PrivateKey.from_private_bytes(private).public_key().public_bytes_raw().hex()
    reader = Store(tmp_path, trusted_keys=[public])
    Store(tmp_path).put_vocabulary(SMALL)
    with pytest.raises(SignatureError, match="not signed"):
        reader.vocabulary(SMALL.fingerprint)
    assert [type(each.error) for each in reader.verify()] == [SignatureError]
    with pytest.raises(StoreError, match="sign_with"):
        reader.put_vocabulary(SMALL)
    both = Store(tmp_path, sign_with=private, trusted_keys=[public])
    assert both.put_vocabulary(SMALL)  # in place of what was refused
    assert reader.vocabulary(SMALL.fingerprint) == SMALL
    (path,) = files_in(tmp_path)
    data = path.read_bytes()
    path.chmod(0o600)
    path.write_bytes(data.replace(b'"signature":["', b'"signature":["0', 1).replace(b" ", b"", 1))
    with pytest.raises((SignatureError, ArtifactCorruptError)):
        reader.vocabulary(SMALL.fingerprint)
