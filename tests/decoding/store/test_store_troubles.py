"""A store whose entries are damaged, whose arguments are wrong, or whose server fails: each is said, or tried again."""

from __future__ import annotations

import contextlib
import json
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.worlds.stores import HAS_S3, SMALL, allowed, files_of

from tokenfst import (
    Store,
    compile,
    regex,
)
from tokenfst.decoding.store import entries
from tokenfst.errors import (
    ArgumentValueError,
    ArtifactCorruptError,
    NotInStoreError,
    StoreError,
    StoreWarning,
)

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


@pytest.mark.parametrize("where", ["folder", "memory", "s3"], indirect=True)
def test_what_is_damaged_is_refused_and_made_again(where: dict[str, Any], tmp_path: Path) -> None:
    store = Store(**where, cache=tmp_path / "cache")
    constraint = regex("a+b")
    key = store.key(constraint, SMALL)
    store.compile(constraint, SMALL)
    ((name, data),) = files_of(store).items()
    for what, damaged in broken(data).items():
        store._place.replace(name, damaged)
        store._cache.remove(store._cache_name(str(key)))
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

    def cut(name: str, *, fresh: bool = False) -> bytes | None:
        turns.append(name)
        data = whole(name, fresh=fresh)
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
        # White space after the header is all that may differ: the artifact is the same, or refused.
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
        ("nothing://x", "not the URL of a store|needs a package"),
        ("a\0b", "a path that a file can have"),
        ("/dev/null", "cannot open the store"),
        ("file://tmp/x", r"file:///tmp/x \(three slashes\).*its path alone: tmp/x"),
        ("file://", "three slashes"),
        ("local://x", "local:///x"),
    ],
)
def test_wrong_urls(url: str, says: str) -> None:
    with pytest.raises((StoreError, ImportError, ValueError), match=says):
        Store(url)


def test_wrong_keys_and_arguments(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for key in ("", "x", "../../etc/passwd", "A" * 64):
        with pytest.raises(StoreError, match="not a key of a store"):
            store.get(key, SMALL)
    with pytest.raises(TypeError):
        store.compile("a", SMALL)
    with pytest.raises(ValueError, match="cache_bytes"):
        Store(tmp_path, cache=tmp_path / "c", cache_bytes=0)
    with pytest.raises(ArgumentValueError, match="unused_days"):
        store.prune(unused_days=-1)
    with pytest.raises(StoreError, match="no storage options"):
        Store(tmp_path, storage_options={"key": "x"})


def test_a_store_that_cannot_be_written_to(monkeypatch: pytest.MonkeyPatch, where: dict[str, Any]) -> None:
    store = Store(**where)

    def fail(name: str, data: bytes) -> bool:
        raise StoreError("no rights")

    monkeypatch.setattr(store._place, "create", fail)
    with pytest.warns(StoreWarning, match="compiled, but not stored"):
        assert store.compile(regex("a"), SMALL).is_expanded
    with pytest.raises(StoreError):
        store.put(store.key(regex("a"), SMALL), compile(regex("a"), SMALL))


# --- S3's troubles --------------------------------------------------------------------------------------------------


def test_no_such_bucket(s3: Any) -> None:
    """It is no empty store."""
    store = Store("s3://nobody-made-this/x", storage_options=s3)
    with pytest.raises(StoreError, match="cannot write"):
        store.put(store.key(regex("a"), SMALL), compile(regex("a"), SMALL))
    key = "0" * 64
    for look in (
        lambda: store.contains(key),
        lambda: store.get(key, SMALL),
        lambda: store.vocabulary(key),
        lambda: list(store.list()),
        lambda: list(store.vocabularies()),
        store.verify,
        lambda: store.prune(unused_days=1),
    ):
        with pytest.raises(StoreError, match=r"no bucket nobody-made-this|bucket does not exist") as caught:
            look()
        assert not isinstance(caught.value, NotInStoreError)


def test_who_may_not_look_at_the_bucket_may_use_a_folder_of_it(
    s3: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    import s3fs

    s3fs.S3FileSystem(**s3).mkdir("others-bucket")
    store = Store("s3://others-bucket/mine", storage_options=s3)
    files: Any = store._place._files  # type: ignore[attr-defined]
    real, looks = files.info, []

    def info(path: str, **named: Any) -> Any:
        if path == "others-bucket":
            looks.append(path)
            raise PermissionError("Forbidden")
        return real(path, **named)

    monkeypatch.setattr(files, "info", info)
    for _ in range(2):
        assert not store.contains("0" * 64) and list(store.list()) == [] and store.verify() == []
    assert looks == ["others-bucket"]


def test_no_server() -> None:
    if not HAS_S3:
        pytest.skip("needs s3fs and moto[server,s3]")
    options = {"endpoint_url": "http://127.0.0.1:9", "key": "x", "secret": "y"}
    options["config_kwargs"] = {"connect_timeout": 1, "retries": {"max_attempts": 0}}
    store = Store("s3://bucket/x", storage_options=options)
    with pytest.raises(StoreError, match="can be reached"):
        store.get(store.key(regex("a"), SMALL), SMALL)


class Troubled:
    """A proxy before the server: every other answer to an object's name fails, is cut in the middle, comes in small
    pieces, or stops in the middle for longer than the client waits.
    """

    def __init__(self, app: Any, kind: str) -> None:
        self.app, self.kind, self.count = app, kind, 0
        self.ended = threading.Event()

    def __call__(self, environ: dict[str, Any], start: Any) -> Any:
        counts = "artifacts" in environ["PATH_INFO"] and (
            self.kind == "500" or environ["REQUEST_METHOD"] == "GET"
        )
        self.count += counts
        troubled = counts and (self.count % 2 or self.kind == "always stalled")
        if troubled and self.kind == "500":
            start("500 Internal Server Error", [("Content-Length", "0")])
            return [b""]
        body = b"".join(self.app(environ, start_kept := _Kept()))
        headers = [each for each in start_kept.headers if each[0].lower() != "content-length"]
        troubled = troubled and len(body) > 100
        if troubled and self.kind == "cut":
            body = body[: len(body) // 2]
        start(start_kept.status, [*headers, ("Content-Length", str(len(body)))])
        if troubled and self.kind == "slow":
            return self.parts(body, len(body) // 50, 0.005)
        if troubled and "stalled" in self.kind:
            return self.parts(body, len(body) // 2 + 1, 9)
        return [body]

    def parts(self, body: bytes, size: int, seconds: float) -> Iterator[bytes]:
        """A body in parts, with so many seconds between two of them; at once, when the test has ended."""
        for begin in range(0, len(body), size):
            if begin:
                self.ended.wait(seconds)
            yield body[begin : begin + size]


class _Kept:
    def __call__(self, status: str, headers: list[tuple[str, str]], *_: Any) -> None:
        self.status, self.headers = status, headers


@contextlib.contextmanager
def troubled_store(kind: str, **settings: Any) -> Iterator[tuple[Store, Troubled]]:
    """A store in a bucket of its own, behind such a proxy; ``settings`` are those of the client's connections."""
    if not HAS_S3:
        pytest.skip("needs s3fs and moto[server,s3]")
    import s3fs
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server

    proxy = Troubled(DomainDispatcherApplication(create_backend_app), kind)
    server = make_server("127.0.0.1", 0, proxy, threaded=True)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        options: dict[str, Any] = {
            "endpoint_url": f"http://127.0.0.1:{server.port}",
            "key": "x",
            "secret": "y",
        }
        options["config_kwargs"] = settings
        name = f"troubled-{kind.replace(' ', '-')}"
        s3fs.S3FileSystem(**options).mkdir(name)
        yield Store(f"s3://{name}/x", storage_options=options), proxy
    finally:
        proxy.ended.set()
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("kind", ["500", "cut", "slow"])
def test_a_troubled_server(kind: str) -> None:
    with troubled_store(kind) as (store, proxy), warnings.catch_warnings():
        warnings.simplefilter("error", StoreWarning)
        for text in ("a", "b", "c"):
            made = store.compile(regex(text), SMALL)
            for _ in range(3):
                assert allowed(store.get(store.key(regex(text), SMALL), SMALL)) == allowed(made)
        assert store.verify() == [] and proxy.count >= 15


def test_an_answer_that_stops_in_the_middle_is_asked_for_again() -> None:
    with troubled_store("stalled", read_timeout=1) as (store, proxy):
        made = store.compile(regex("a"), SMALL)
        assert allowed(store.get(store.key(regex("a"), SMALL), SMALL)) == allowed(made)
        assert proxy.count > 2


def test_answers_that_all_stop_in_the_middle_are_an_error() -> None:
    with troubled_store("always stalled", read_timeout=1, retries={"max_attempts": 0}) as (store, _):
        key = store.key(regex("a"), SMALL)
        store.put(key, compile(regex("a"), SMALL))
        with pytest.raises(StoreError, match=r"cannot read the store .*always-stalled/x, at artifacts/"):
            store.get(key, SMALL)


def test_a_storage_that_is_not_reached_is_not_an_empty_one() -> None:
    pytest.importorskip("aiohttp", reason="needs fsspec's HTTP client")
    store = Store("http://127.0.0.1:1/x")  # nothing listens there
    for look in (store.contains, lambda key: store.get(key, SMALL)):
        with pytest.raises(StoreError, match="whether the storage can be reached"):
            look("0" * 64)
    for count in (lambda: list(store.list()), store.verify, lambda: store.prune(unused_days=1)):
        with pytest.raises(StoreError, match="whether the storage can be reached"):
            count()
