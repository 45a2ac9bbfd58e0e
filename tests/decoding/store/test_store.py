"""A store on folders, in memory and on S3: what is put is what is got, once and for all; what is damaged is refused."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import secrets
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tokenfst import (
    CanonicalAutomaton,
    Store,
    TokenAutomaton,
    Vocabulary,
    compile,
    gbnf,
    json_schema,
    ltlf,
    regex,
    token_class,
    unordered,
)
from tokenfst.decoding.store import entries
from tokenfst.errors import (
    ArtifactCorruptError,
    ArtifactVocabularyError,
    BudgetExceeded,
    EmptyLanguageError,
    NotInStoreError,
    StoreError,
    StoreWarning,
)

BYTES = [bytes([byte]) for byte in range(256)]
SMALL = Vocabulary([*BYTES, b"ab", b"aab", b"((", b""], 259, split_pattern=r"[a-z]+|[^a-z]")
OTHER = Vocabulary([*BYTES, b"abc", b""], 257)
TWO_STACKS = gbnf('root ::= "(" root ")" | "x" root | "x" | root "y"')
HAS_S3 = all(importlib.util.find_spec(name) for name in ("s3fs", "moto", "flask"))


@pytest.fixture(scope="session")
def s3() -> Iterator[Any]:
    """A server that speaks S3, on this machine."""
    if not HAS_S3:
        pytest.skip("needs s3fs and moto[server,s3]")
    from moto.server import ThreadedMotoServer

    names = {"AWS_ACCESS_KEY_ID": "testing", "AWS_SECRET_ACCESS_KEY": "testing"}
    before = {name: os.environ.get(name) for name in names}
    os.environ.update(names)
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield {"endpoint_url": f"http://{host}:{port}"}
    server.stop()
    for name, value in before.items():
        os.environ.pop(name) if value is None else os.environ.update({name: value})


@pytest.fixture(params=["folder", "memory", "s3"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> dict[str, Any]:
    """The arguments of a store that nobody has used yet."""
    name = f"test-{secrets.token_hex(6)}"
    if request.param == "folder":
        return {"url": tmp_path / "store"}
    if request.param == "memory":
        return {"url": f"memory://{name}"}
    options = request.getfixturevalue("s3")
    import s3fs

    s3fs.S3FileSystem(**options).mkdir(name)
    return {"url": f"s3://{name}/below", "storage_options": options}


def files_of(store: Store) -> dict[str, bytes]:
    place = store._place
    return {each.name: place.read(each.name) or b"" for each in place.list("artifacts")}


def allowed(automaton: Any) -> bytes:
    import numpy as np

    mask = np.zeros((1, (len(automaton.vocabulary) + 31) // 32), np.int32)
    automaton.matcher().fill_next_token_bitmask(mask)
    return mask.tobytes()


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


# --- damage ---------------------------------------------------------------------------------------------------------


def broken(data: bytes) -> dict[str, bytes]:
    length = 8 + int.from_bytes(data[:8], "little")
    header = data[8:length]
    found = {
        "nothing": b"",
        "cut": data[: len(data) // 2],
        "cut in the header": data[:50],
        "no header": b"\xff" * 100,
        "longer": data + b"x",
        "no JSON": data[:8] + b"[" * (length - 8) + data[length:],
        "not an entry": data[:8] + header.replace(b"store_entry", b"other_entry") + data[length:],
        "another constraint": data[:8]
        + header.replace(b'"constraint":"', b'"constraint":"0')[:-1]
        + data[length:],
        "another artifact": data[:8] + header.replace(b'"artifact":"', b'"artifact":"0')[:-1] + data[length:],
        "another size": data[:8] + header.replace(b'"size":', b'"size":1')[:-1] + data[length:],
    }
    for place in (length + 3, length + 50, length + 120, len(data) - 1):
        found[f"a bit at {place - length}"] = data[:place] + bytes([data[place] ^ 1]) + data[place + 1 :]
    return found


def test_what_is_damaged_is_refused_and_made_again(where: dict[str, Any], tmp_path: Path) -> None:
    store = Store(**where, cache=tmp_path / "cache")
    constraint = regex("a+b")
    key = store.key(constraint, SMALL)
    store.compile(constraint, SMALL)
    ((name, data),) = files_of(store).items()
    for what, damaged in broken(data).items():
        store._place.replace(name, damaged)
        store._cache.remove(str(key))
        with pytest.raises(ArtifactCorruptError):
            store.get(key, SMALL)
        (found,) = store.verify()
        assert (found.key, type(found.error)) == (str(key), ArtifactCorruptError), what
        with pytest.warns(StoreWarning, match="compiled again"):
            assert store.compile(constraint, SMALL).is_expanded
        assert store.verify() == [] and files_of(store) == {name: data}, what
    store._place.replace(name, b"damaged")
    assert len(store.verify(remove=True)) == 1 and list(store.list()) == []


def test_an_entry_under_another_key_is_refused() -> None:
    store = Store("memory://swapped")
    one, two = (store.key(regex(text), SMALL) for text in ("a", "b"))
    store.put(one, compile(regex("a"), SMALL))
    (name,) = files_of(store)
    data = store._place.read(name)
    store._place.create(f"artifacts/{str(two)[:2]}/{two}", data)
    with pytest.raises(ArtifactCorruptError, match="the entry of another key"):
        store.get(two, SMALL)


def test_a_cut_connection_is_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    store = Store("memory://cut")
    store.compile(regex("ab"), SMALL)
    whole, turns = store._place.read, []

    def cut(name: str) -> bytes | None:
        turns.append(name)
        data = whole(name)
        return data[:-9] if data and len(turns) < 3 else data

    monkeypatch.setattr(store._place, "read", cut)
    assert store.get(store.key(regex("ab"), SMALL), SMALL).is_expanded and len(turns) == 3


@pytest.mark.parametrize("seed", range(6))
def test_any_byte_changed(seed: int) -> None:
    import random

    store = Store("memory://bytes")
    key = store.key(regex("ab|c"), SMALL)
    data = entries.pack(key, compile(regex("ab|c"), SMALL).serialize())
    rng = random.Random(seed)
    for _ in range(150):
        place = rng.randrange(len(data))
        changed = data[:place] + bytes([data[place] ^ rng.randrange(1, 256)]) + data[place + 1 :]
        try:
            found = entries.unpack("it", key.name, changed)
        except ArtifactCorruptError:
            continue
        # White space behind the header is all that may differ: the artifact is the same, or refused.
        try:
            artifact = entries.read("it", found)
        except Exception as error:
            assert "Artifact" in type(error).__name__
            continue
        assert artifact.digest == entries.read("it", entries.unpack("it", key.name, data)).digest


# --- bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("header", [b"5", b"null", b"[[1, 2]]", b'"ab"', b"{}"])
def test_headers_of_another_form(header: bytes) -> None:
    with pytest.raises(ArtifactCorruptError):
        entries.unpack("it", 64 * "0", len(header).to_bytes(8, "little") + header)


def test_a_digest_that_is_no_text() -> None:
    key = Store("memory://digest").key(regex("ab|c"), SMALL)
    packed = entries.pack(key, compile(regex("ab|c"), SMALL).serialize())
    header = json.loads(packed[8 : 8 + int.from_bytes(packed[:8], "little")])
    text = json.dumps({**header, "artifact": "\ud800", "size": 0}).encode()
    with pytest.raises(ArtifactCorruptError, match="another artifact"):
        entries.unpack("it", key.name, len(text).to_bytes(8, "little") + text)


@pytest.mark.parametrize(
    ("url", "says"),
    [
        ("", "a folder or a URL"),
        ("nothing://x", "no URL of a store|needs a package"),
        ("a\0b", "a path that a file can have"),
        ("/dev/null", "cannot open the store"),
    ],
)
def test_wrong_urls(url: str, says: str) -> None:
    with pytest.raises((StoreError, ImportError, ValueError), match=says):
        Store(url)


def test_wrong_keys_and_arguments(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for key in ("", "x", "../../etc/passwd", "A" * 64):
        with pytest.raises(StoreError, match="no key of a store"):
            store.get(key, SMALL)
    with pytest.raises(TypeError):
        store.compile("a", SMALL)
    with pytest.raises(ValueError, match="cache_bytes"):
        Store(tmp_path, cache=tmp_path / "c", cache_bytes=0)
    with pytest.raises(ValueError, match="unused_days"):
        store.prune(unused_days=-1)
    with pytest.raises(StoreError, match="no storage options"):
        Store(tmp_path, storage_options={"key": "x"})


def test_a_store_that_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch, where: dict[str, Any]) -> None:
    store = Store(**where)

    def fail(name: str, data: bytes) -> bool:
        raise StoreError("no rights")

    monkeypatch.setattr(store._place, "create", fail)
    with pytest.warns(StoreWarning, match="not put"):
        assert store.compile(regex("a"), SMALL).is_expanded
    with pytest.raises(StoreError):
        store.put(store.key(regex("a"), SMALL), compile(regex("a"), SMALL))


# --- S3's troubles --------------------------------------------------------------------------------------------------


def test_no_such_bucket(s3: Any) -> None:
    store = Store("s3://nobody-made-this/x", storage_options=s3)
    with pytest.raises(StoreError, match="cannot write"):
        store.put(store.key(regex("a"), SMALL), compile(regex("a"), SMALL))


def test_no_server() -> None:
    if not HAS_S3:
        pytest.skip("needs s3fs and moto[server,s3]")
    options = {"endpoint_url": "http://127.0.0.1:9", "key": "x", "secret": "y"}
    options["config_kwargs"] = {"connect_timeout": 1, "retries": {"max_attempts": 0}}
    store = Store("s3://bucket/x", storage_options=options)
    with pytest.raises(StoreError, match="can be reached"):
        store.get(store.key(regex("a"), SMALL), SMALL)


class Troubled:
    """A proxy before the server: every other answer to an object's name fails, or is cut in the middle."""

    def __init__(self, app: Any, kind: str) -> None:
        self.app, self.kind, self.count = app, kind, 0

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        counts = "artifacts" in environ["PATH_INFO"] and (
            self.kind == "500" or environ["REQUEST_METHOD"] == "GET"
        )
        self.count += counts
        troubled = counts and self.count % 2
        if troubled and self.kind == "500":
            start("500 Internal Server Error", [("Content-Length", "0")])
            return [b""]
        body = b"".join(self.app(environ, start_kept := _Kept()))
        headers = [each for each in start_kept.headers if each[0].lower() != "content-length"]
        if troubled and self.kind == "cut" and len(body) > 100:
            body = body[: len(body) // 2]
        start(start_kept.status, [*headers, ("Content-Length", str(len(body)))])
        return [body]


class _Kept:
    def __call__(self, status: str, headers: list[tuple[str, str]], *_: Any) -> None:
        self.status, self.headers = status, headers


@pytest.mark.parametrize("kind", ["500", "cut"])
def test_a_troubled_server(kind: str) -> None:
    if not HAS_S3:
        pytest.skip("needs s3fs and moto[server,s3]")
    import threading

    import s3fs
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    proxy = Troubled(DomainDispatcherApplication(create_backend_app), kind)
    server = make_server("127.0.0.1", 0, proxy, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        options = {"endpoint_url": f"http://127.0.0.1:{server.port}", "key": "x", "secret": "y"}
        name = f"troubled-{kind}"
        s3fs.S3FileSystem(**options).mkdir(name)
        store = Store(f"s3://{name}/x", storage_options=options)
        with warnings.catch_warnings():
            warnings.simplefilter("error", StoreWarning)
            for text in ("a", "b", "c"):
                made = store.compile(regex(text), SMALL)
                for _ in range(3):
                    assert allowed(store.get(store.key(regex(text), SMALL), SMALL)) == allowed(made)
        assert store.verify() == [] and proxy.count > 15
    finally:
        server.shutdown()
        thread.join()


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
