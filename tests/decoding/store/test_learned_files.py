"""What workers learn, through a store: all of it is there, whoever puts at once or dies; nothing damaged is used."""

from __future__ import annotations

import pickle
import random
from pathlib import Path
from typing import Any

import pytest
from support.worlds.stores import OTHER, SMALL, TWO_STACKS

from reference.tokens.learned import masks_along
from tests.decoding.store.test_crashes import killed_at
from tokenfst import Store, compile, json_schema, regex
from tokenfst.errors import ArtifactVocabularyError, StoreWarning

SCHEMA = json_schema({"type": "array", "items": {"enum": ["ab", 1, [2, 3]]}, "uniqueItems": True})


def walk(automaton: Any, seeds: Any) -> list[Any]:
    return [masks_along(automaton, random.Random(seed), 8) for seed in seeds]


def files(folder: Path) -> list[Path]:
    return sorted(path for path in (folder / "learned").rglob("*") if path.is_file())


@pytest.mark.parametrize("constraint", [TWO_STACKS, SCHEMA], ids=["stacks", "unique"])
@pytest.mark.parametrize("url", ["folder", "memory"])
def test_a_worker_starts_where_others_stopped(constraint: Any, url: str, tmp_path: Path) -> None:
    url = str(tmp_path) if url == "folder" else f"memory://{tmp_path.name}"
    store = Store(url, learned=True)
    key = store.key(constraint, SMALL, expand=False)
    one, other = (store.compile(constraint, SMALL, expand=False) for _ in range(2))
    walk(one, range(4)), walk(other, range(4, 8))
    assert store.learn(key, one) and store.learn(key, other)
    assert not store.learn(key, one)  # it has taken up the other's
    third = pickle.loads(pickle.dumps(store)).compile(constraint, SMALL, expand=False)
    assert walk(third, range(8)) == walk(compile(constraint, SMALL), range(8))
    assert third.stats().masks_composed == 0
    cold = Store(url).get(key, SMALL)
    assert walk(cold, range(8)) == walk(third, range(8))
    assert cold.stats().masks_recalled == 0
    assert store.verify() == [] and [each.key for each in store.list()] == [str(key)]


def test_two_who_put_at_once_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reads before the other has put: two files, which the next one makes into one."""
    store = Store(tmp_path, learned=True)
    key = store.key(SCHEMA, SMALL, expand=False)
    one, other = (store.compile(SCHEMA, SMALL, expand=False) for _ in range(2))
    walk(one, range(4)), walk(other, range(4, 8))
    create = store._create  # the moment in between
    done = []

    def meanwhile(name: str, data: bytes) -> bool:
        if not done:
            done.append(name)
            store.learn(key, other)
        return create(name, data)

    monkeypatch.setattr(store._learned, "_create", meanwhile)
    assert store.learn(key, one)
    assert len(files(tmp_path)) == 2
    third = store.get(key, SMALL)
    walk(third, range(8))
    assert third.stats().masks_composed == 0
    assert store.learn(key, third)
    assert len(files(tmp_path)) == 1


@pytest.mark.parametrize("half", [False, True])
def test_learn_killed_at_every_step(half: bool, tmp_path: Path) -> None:
    before, after = compile(SCHEMA, SMALL), compile(SCHEMA, SMALL)
    walk(before, range(2)), walk(after, range(2, 5))
    for step in range(1, 60):
        store = Store(tmp_path / f"{step}", learned=True)
        key = store.key(SCHEMA, SMALL, expand=False)
        assert store.put(key, before)
        assert store.learn(key, before)
        killed, said = killed_at(step, half, lambda store=store, key=key: store.learn(key, after))
        assert store.verify() == []
        found = store.get(key, SMALL)
        walk(found, range(5) if said else range(2))
        assert found.stats().masks_composed == 0
        if not killed:
            break
    assert not killed
    assert step > 5


def test_what_is_damaged_is_left_aside(tmp_path: Path) -> None:
    store = Store(tmp_path, learned=True)
    key = store.key(SCHEMA, SMALL, expand=False)
    worker = store.compile(SCHEMA, SMALL, expand=False)
    walk(worker, range(4))
    store.learn(key, worker)
    (path,) = files(tmp_path)
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.warns(StoreWarning, match="left aside"):
        cold = store.get(key, SMALL)
    assert walk(cold, range(4)) == walk(worker, range(4))
    assert [each.key for each in store.verify(remove=True)] == [
        f"learned/{path.parent.parent.name}/{key}/{path.name}"
    ]
    assert files(tmp_path) == [] and key in store


def test_signatures(tmp_path: Path) -> None:
    ed25519 = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ed25519")
    private = ed25519.Ed25519PrivateKey.generate()
    public = private.public_key().public_bytes_raw()
    signing = Store(tmp_path, sign_with=private.private_bytes_raw(), trusted_keys=[public], learned=True)
    unsigned = Store(tmp_path, learned=True)
    key = signing.key(SCHEMA, SMALL, expand=False)
    worker = signing.compile(SCHEMA, SMALL, expand=False)
    walk(worker, range(4))
    unsigned.learn(key, worker)
    with pytest.warns(StoreWarning, match="left aside"):
        cold = signing.get(key, SMALL)
    walk(cold, [1])
    assert cold.stats().masks_recalled == 0
    for path in files(tmp_path):
        path.unlink()
    assert signing.learn(key, worker)
    warm = signing.get(key, SMALL)
    walk(warm, range(4))
    assert warm.stats().masks_composed == 0


def test_what_is_not_put(tmp_path: Path) -> None:
    store = Store(tmp_path, learned=True, learned_bytes=1_000)
    key = store.key(SCHEMA, SMALL, expand=False)
    worker = compile(SCHEMA, SMALL)
    with pytest.warns(StoreWarning, match="learned_bytes=1,000"):
        assert not store.learn(key, worker)
    expanded = compile(regex("a+"), SMALL).expand()
    assert not store.learn(store.key(regex("a+"), SMALL), expanded)
    with pytest.raises(ArtifactVocabularyError):
        store.learn(key, compile(regex("a+"), OTHER))
    assert files(tmp_path) == []


def test_it_goes_with_its_entry(tmp_path: Path) -> None:
    store = Store(tmp_path, learned=True)
    key = store.key(SCHEMA, SMALL, expand=False)
    worker = store.compile(SCHEMA, SMALL, expand=False)
    store.learn(key, worker)
    store.prune(unused_days=1)
    assert len(files(tmp_path)) == 1
    store.prune(max_bytes=0)
    assert files(tmp_path) == []
    store.put(key, worker), store.learn(key, worker)
    store.remove(key)
    assert files(tmp_path) == []
