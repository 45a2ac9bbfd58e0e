"""A store on folders, in memory and on S3: what is put is what is got, once and for all, until it is pruned."""

from __future__ import annotations

import os
import pickle
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from support.worlds.stores import OTHER, SMALL, TWO_STACKS, allowed, files_of

from tokenfst import (
    CanonicalAutomaton,
    Store,
    TokenAutomaton,
    Vocabulary,
    compile,
    json_schema,
    ltlf,
    regex,
    token_class,
    unordered,
)
from tokenfst.errors import (
    ArtifactVocabularyError,
    BudgetExceeded,
    EmptyLanguageError,
    NotInStoreError,
)

# --- what is put is what is got -------------------------------------------------------------------------------------


def test_a_store_is_the_same_in_another_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    given = pickle.dumps(Store("here", cache="cached"))
    automaton = Store("here").compile(regex("a+"), SMALL)
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    again = pickle.loads(given)
    key = again.key(regex("a+"), SMALL)
    assert bytes(again.artifact(key)) == bytes(again.artifact(key)) == automaton.serialize()
    assert not list(Path.cwd().iterdir()) and again.url == str(tmp_path / "here")
    with pytest.raises(NotInStoreError):
        again.artifact("0" * 64)


def test_compile_puts_and_then_gets(where: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(**where)
    for constraint in (regex("a+b|c"), TWO_STACKS, json_schema({"enum": [1, "x"]})):
        key = store.key(constraint, SMALL)
        assert key not in store and str(key) not in store
        with pytest.raises(NotInStoreError):
            store.get(key, SMALL)
        made = store.compile(constraint, SMALL)
        assert key in store and store.contains(str(key))
        with monkeypatch.context() as patch:
            patch.setattr("tokenfst.decoding.store.store.compile", None)  # nothing is compiled any more
            for found in (
                store.compile(constraint, SMALL),
                store.get(str(key), SMALL),
                Store(**where).get(key, SMALL),
            ):
                assert isinstance(found, TokenAutomaton) and allowed(found) == allowed(made)
                assert found.is_expanded == made.is_expanded == (constraint is not TWO_STACKS)
    assert [each.key for each in store.list()] == sorted(each.key for each in store.list())
    assert len(list(store.list())) == 3 and all(each.bytes > 500 for each in store.list())
    assert all(abs(each.used - time.time()) < 3600 for each in store.list())
    assert store.verify() == []


def test_put_is_once(where: dict[str, Any]) -> None:
    store = Store(**where)
    one, two = regex("ab|c"), regex("c|ab")
    key = store.key(one, SMALL)
    assert store.key(two, SMALL) == key
    assert store.put(key, compile(one, SMALL).expand())
    before = files_of(store)
    assert not store.put(key, compile(two, SMALL))
    assert store.compile(two, SMALL).source == one.source
    assert files_of(store) == before
    assert store.put(key, compile(two, SMALL), replace=True)
    assert store.get(key, SMALL).source == two.source and len(list(store.list())) == 1
    store.remove(key)
    assert store.put(key, compile(one, SMALL), replace=True)
    store.remove(key)
    store.remove(key)
    assert key not in store and not list(store.list())


def test_of_many_at_once_one_wins(where: dict[str, Any]) -> None:
    store = Store(**where)
    automaton = compile(regex("ab|c"), SMALL)
    key = store.key(regex("ab|c"), SMALL)
    with ThreadPoolExecutor(8) as pool:
        made = list(pool.map(lambda _: store.put(key, automaton), range(40)))
    assert made.count(True) == 1
    assert len(list(store.list())) == 1 and store.verify() == []


def test_keys_tell_apart_what_differs() -> None:
    store = Store("memory://keys")
    one = regex("[ab]+")
    named = token_class("X") + regex("a")
    keys = [
        store.key(one, SMALL),
        store.key(one, OTHER),
        store.key(regex("[ab]*"), SMALL),
        store.key(one, SMALL, expand=False),
        store.key(one, SMALL, tokenization="canonical"),
        store.key(named, SMALL, token_classes={"X": [3]}),
        store.key(named, SMALL, token_classes={"X": [4]}),
        store.key(unordered([regex("a"), regex("b")]), SMALL),
    ]
    assert len({str(key) for key in keys}) == len(keys)
    assert store.key(named, SMALL, token_classes={"X": [3, 3], "Y": [1]}) == keys[5]
    assert store.key(named, SMALL, token_classes={"X": np.array([3, 3])}) == keys[5]
    assert all(len(str(key)) == 64 for key in keys)
    other = keys[0].__class__(
        keys[0].constraint, keys[0].vocabulary, keys[0].options, "tokenfst 0.0, artifact format 1"
    )
    assert str(other) != str(keys[0])


def test_canonical_symbols_and_classes(where: dict[str, Any]) -> None:
    store = Store(**where)
    for _ in range(2):
        found = store.compile(regex("(ab|c)+"), SMALL, tokenization="canonical")
        assert isinstance(found, CanonicalAutomaton)
        named = store.compile(token_class("X") + regex("a"), SMALL, token_classes={"X": [256]}, expand=False)
        assert named.matcher().accept_tokens([256, 97])
        rule = ltlf("response(order, delivery)", symbols=["order", "delivery"])
        store.compile(rule, Vocabulary.of_symbols(["order", "delivery"]))
    once = store.compile(token_class("X") + regex("b"), SMALL, token_classes={"X": iter([256])}, expand=False)
    assert once.matcher().accept_tokens([256, 98])
    assert len(list(store.list())) == 4


def test_errors_of_compile_come_through(where: dict[str, Any]) -> None:
    from tokenfst import Budget

    store = Store(**where)
    with pytest.raises(BudgetExceeded):
        store.compile(regex("(a|b)*a(a|b){12}"), SMALL, Budget(states=100))
    with pytest.raises(EmptyLanguageError):
        store.compile(regex("a") & regex("b"), SMALL)
    with pytest.raises(ArtifactVocabularyError):
        store.put(store.key(regex("a"), OTHER), compile(regex("a"), SMALL))
    assert list(store.list()) == []


def test_stores_travel_to_other_processes(where: dict[str, Any]) -> None:
    store = pickle.loads(pickle.dumps(Store(**where)))
    store.compile(regex("a"), SMALL)
    assert len(list(Store(**where).list())) == 1


# --- pruning --------------------------------------------------------------------------------------------------------


def test_prune_by_size_and_by_age(where: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store(**where)
    keys = []
    for text in ("a", "b", "c", "d"):
        keys.append(store.key(regex(text), SMALL))
        store.compile(regex(text), SMALL)
        time.sleep(1.1 if "s3" in store.url else 0.02)  # S3 tells seconds
    size = sum(each.bytes for each in store.list())
    assert store.prune(max_bytes=size).removed == 0 and store.prune(unused_days=1).removed == 0
    done = store.prune(max_bytes=size // 2)
    assert (done.removed, done.kept) == (2, 2) and done.removed_bytes + done.kept_bytes == size
    assert [key in store for key in keys] == [False, False, True, True]
    real = store._place.now()
    monkeypatch.setattr(store._place, "now", lambda: real + 3 * 86_400)
    assert store.prune(unused_days=2.5).removed == 2 and list(store.list()) == []


def test_what_is_used_is_kept(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for text in ("a", "b"):
        store.compile(regex(text), SMALL)
    old = time.time() - 5 * 86_400
    for path in tmp_path.rglob("*"):
        os.utime(path, (old, old))
    store.get(store.key(regex("a"), SMALL), SMALL)
    assert store.prune(unused_days=2).removed == 1 and store.key(regex("a"), SMALL) in store
    remote = Store("memory://used")
    remote.compile(regex("a"), SMALL)
    remote.get(remote.key(regex("a"), SMALL), SMALL)
    assert [each.name[:5] for each in remote._place.list("used")] == ["used/"]
    remote.prune(max_bytes=0)
    assert list(remote._place.list("used")) == []
    quiet = pickle.loads(pickle.dumps(Store("memory://used", note_use=False)))
    for _ in range(2):
        quiet.compile_document({"regex": "a"}, SMALL)
    key = quiet.key(regex("a"), SMALL)
    assert len(quiet.artifact(key)) == len(quiet.get(key, SMALL).serialize())
    assert list(quiet._place.list("used")) == []


@pytest.mark.parametrize("ahead", [40 * 86_400, -40 * 86_400])
@pytest.mark.parametrize("remote", [False, True])
def test_a_process_with_a_wrong_clock_prunes_by_the_storages_clock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float, remote: bool
) -> None:
    store = Store(f"memory://clock{ahead}" if remote else tmp_path)
    for text in ("a", "b"):
        store.compile(regex(text), SMALL)
    right = time.time
    monkeypatch.setattr(time, "time", lambda: right() + ahead)
    pruned = store.prune(unused_days=1)
    assert (pruned.removed, pruned.kept) == (0, 2)
    if not remote:  # a reader with a wrong clock keeps what it uses, too
        old = right() - 5 * 86_400
        for path in tmp_path.rglob("*"):
            os.utime(path, (old, old))
        store.get(store.key(regex("a"), SMALL), SMALL)
        assert store.prune(unused_days=2).removed == 1 and store.key(regex("a"), SMALL) in store


def test_leftovers_of_dead_writers_are_cleaned(tmp_path: Path) -> None:
    store = Store(tmp_path)
    store.compile(regex("a"), SMALL)
    left = tmp_path / "artifacts" / ".tokenfst-0123"
    left.write_bytes(b"half")
    store.prune(unused_days=1)
    assert left.exists() and len(list(store.list())) == 1 and store.verify() == []
    os.utime(left, (0, 0))
    store.prune()
    assert not left.exists() and len(list(store.list())) == 1


def test_files_of_others_stay(tmp_path: Path) -> None:
    """A store in a folder that holds more than it: prune and verify remove nothing but entries."""
    store = Store(str(tmp_path))
    store.compile_document({"regex": "a{3}b"}, SMALL)
    others = [tmp_path / "documents" / "tax.pdf", tmp_path / "artifacts" / "mine.bin", tmp_path / "notes.txt"]
    for path in others:
        path.write_bytes(b"mine")
        os.utime(path, (1, 1))
    assert [damage.key for damage in store.verify(remove=True)] == ["artifacts/mine.bin"]
    pruned = store.prune(max_bytes=0, unused_days=30)
    assert pruned.removed == 1 and all(path.read_bytes() == b"mine" for path in others)
