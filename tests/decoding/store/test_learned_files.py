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
def test_a_worker_starts_where_others_stopped(constraint: Any, where: dict[str, Any]) -> None:
    store = Store(**where, learned=True)
    key = store.key(constraint, SMALL, expand=False)
    one, other = (store.compile(constraint, SMALL, expand=False) for _ in range(2))
    walk(one, range(4)), walk(other, range(4, 8))
    assert store.learn(key, one) and store.learn(key, other)
    assert not store.learn(key, one)  # it has taken up the other's
    third = pickle.loads(pickle.dumps(store)).compile(constraint, SMALL, expand=False)
    assert walk(third, range(8)) == walk(compile(constraint, SMALL), range(8))
    assert third.stats().masks_composed == 0
    cold = Store(**where).get(key, SMALL)
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


class Killed(BaseException):
    """The end of a worker: nothing in the store catches it."""


class Dying:
    """A file system whose user dies at its n-th request: before that is sent, or once it is answered (``late``)."""

    def __init__(self, files: Any, step: int, late: bool) -> None:
        self._files, self._step, self._late, self.count = files, step, late, 0

    def __getattr__(self, name: str) -> Any:
        real = getattr(self._files, name)
        if name not in ("cat_file", "find", "info", "pipe_file", "rm_file"):
            return real

        def call(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            if self.count == self._step and not self._late:
                raise Killed
            found = real(*args, **kwargs)
            if self.count == self._step:
                raise Killed
            return found

        return call


@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("url", ["memory", "s3"])
def test_learn_at_a_far_store_killed_at_every_request(
    url: str, late: bool, request: pytest.FixtureRequest
) -> None:
    name = f"learned-{'late' if late else 'early'}"
    options = {}
    if url == "s3":
        options = request.getfixturevalue("s3")
        import s3fs

        s3fs.S3FileSystem(**options).mkdir(name)
    before, after = compile(SCHEMA, SMALL), compile(SCHEMA, SMALL)
    walk(before, range(2)), walk(after, range(2, 5))
    for step in range(1, 30):
        where = {"url": f"{url}://{name}/{step}", "storage_options": options}
        store = Store(**where, learned=True)
        key = store.key(SCHEMA, SMALL, expand=False)
        assert store.put(key, before) and store.learn(key, before)
        dying: Any = Store(**where, learned=True)
        dying._place._files = Dying(dying._place._files, step, late)
        killed = False
        try:
            assert dying.learn(key, after)
        except Killed:
            killed = True
        assert store.verify() == []
        found = Store(**where, learned=True).get(key, SMALL)
        walk(found, range(2) if killed else range(5))
        assert found.stats().masks_composed == 0
        Store(**where, learned=True).learn(key, after)
        whole = Store(**where, learned=True).get(key, SMALL)
        walk(whole, range(5))
        assert whole.stats().masks_composed == 0
        if not killed:
            break
    assert not killed and step > 4


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


def test_what_is_damaged_is_replaced(tmp_path: Path) -> None:
    """Learned data whose file exists and is damaged: it is written again before older files are removed."""
    walked = compile(SCHEMA, SMALL)
    first, store = Store(tmp_path / "first", learned=True), Store(tmp_path / "second", learned=True)
    key = store.key(SCHEMA, SMALL, expand=False)
    for each in (first, store):
        each.compile(SCHEMA, SMALL, expand=False)
    walk(walked, range(2))
    assert store.learn(key, walked)
    walk(walked, range(2, 6))
    assert first.learn(key, walked)
    [whole] = files(tmp_path / "first")
    damaged = tmp_path / "second" / whole.relative_to(tmp_path / "first")
    damaged.write_bytes(whole.read_bytes()[:-1])
    with pytest.warns(StoreWarning, match="left aside"):
        assert store.learn(key, walked)
    assert [each.read_bytes() for each in files(tmp_path / "second")] == [whole.read_bytes()]
    assert store.verify() == []


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
