"""What the server is made of, piece by piece."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace

import pytest
from support.programs.command_line import tokenfst, write_toy

from tokenfst.cli.output.exits import UsageError
from tokenfst.cli.services.serving import LimitOptions
from tokenfst.server import running
from tokenfst.server.front import application
from tokenfst.server.front.answers import SizedCache, digest
from tokenfst.server.front.application import Server
from tokenfst.server.front.ranges import asked_range
from tokenfst.server.front.tenants import ALONE, KeysError, Tenants, digest_of, new_key, store_url
from tokenfst.server.limits import Limits
from tokenfst.server.running import Listening
from tokenfst.server.workers import process
from tokenfst.server.workers.process import Work


def slow_range(header: str, size: int) -> tuple[int, int] | None:
    """The twin: the bytes that a header lists, counted out."""
    first, _, last = header.removeprefix("bytes=").partition("-")
    if not first:
        wanted = [at for at in range(size) if at >= size - int(last)]
    else:
        if last and int(last) < int(first):
            return None
        wanted = [at for at in range(size) if int(first) <= at and (not last or at <= int(last))]
    if not wanted:
        raise ValueError
    return wanted[0], wanted[-1] + 1


def test_ranges_are_those_that_one_counts_out() -> None:
    numbers = ["", *map(str, range(6))]
    for size in range(5):
        for header in (f"bytes={a}-{b}" for a in numbers for b in numbers if a or b):
            try:
                expected = slow_range(header, size)
            except ValueError:
                with pytest.raises(ValueError, match=f"the whole has {size:,} bytes?$"):
                    asked_range(header, size)
            else:
                assert asked_range(header, size) == expected, (header, size)
    assert asked_range(None, 5) is None and asked_range("bytes=" + "9" * 5000 + "-", 5) is None


def test_what_is_kept_stays_within_its_bytes() -> None:
    kept: SizedCache[int] = SizedCache(10_000)
    for number in range(1000):
        kept.put(digest(str(number)), number, number % 900)
        assert kept.bytes <= 10_000
        assert kept.get(digest("0")) in (0, None)  # asked for again and again, it is the last to go
    assert kept.get(digest("0")) == 0 and kept.get(digest("1")) is None and kept.get(digest("999")) == 999
    kept.put(b"large", 1, 9_000)
    kept.put(b"old", 1, 1, fresh=-1)
    assert kept.get(b"large") is None and kept.get(b"old") is None
    before = kept.bytes
    kept.put(digest("0"), 0, 0)
    kept.drop(digest("0"))
    assert kept.bytes == before - 300 and kept.get(digest("0")) is None
    assert digest("ab", "c") != digest("a", "bc") and digest("a", b"b") == digest(b"a", "b")


def test_keys_are_known_by_their_digests(tmp_path: Path) -> None:
    key, made = new_key()
    path = tmp_path / "keys.json"
    path.write_text(json.dumps({"acme": [digest_of("one"), made], "b-2": []}))
    tenants = Tenants.read(path)
    assert [tenants.of(each) for each in ("one", key, "two", "", None, "\udcff")] == ["acme", "acme"] + [
        None
    ] * 4
    assert Tenants.read(None).of(None) == ALONE and not Tenants.read(None).are_known
    assert (
        store_url("s3://b/f/", "acme", True) == "s3://b/f/tenants/acme" and store_url("f", "x", False) == "f"
    )
    for text, reason in (
        ("{", "is not JSON"),
        ("[]", "holds no tenants"),
        ("{}", "holds no tenants"),
        ('{"../x": []}', "a tenant's name"),
        ('{"A": []}', "a tenant's name"),
        ('{"a": ["key"]}', "64 hexadecimal digits"),
        ('{"a": "x"}', "64 hexadecimal digits"),
        (f'{{"a": ["{"0" * 64}"], "a": ["{"1" * 64}"]}}', "the tenant 'a' is there twice"),
        (f'{{"a": ["{"0" * 64}"], "b": ["{"0" * 64}"]}}', "'a' and 'b' have the same key, 0000"),
    ):
        path.write_text(text)
        with pytest.raises(KeysError, match=reason):
            Tenants.read(path)


def test_limits_are_checked() -> None:
    assert Limits().workers >= 1 and Limits(memory=10).budget.bytes == 5
    for wrong in (
        {"workers": -1},
        {"seconds": 0.0},
        {"body": 0},
        {"waiting": float("nan")},
        {"seconds": float("inf")},
        {"seconds": 1e18},
    ):
        with pytest.raises(ValueError, match=next(iter(wrong))):
            Limits(**wrong)  # type: ignore[arg-type]


def test_the_command_says_what_is_missing() -> None:
    shown = tokenfst("serve", "--new-key")
    words = dict(line.split() for line in shown.out.splitlines())
    assert shown.code == 0 and words["digest"] == digest_of(words["key"])
    told = json.loads(tokenfst("serve", "--new-key", "--json").out)
    assert told == {"command": "serve", "key": told["key"], "digest": digest_of(told["key"])}
    given = ["--store", "x", "--vocabulary", "tokens:x"]
    for arguments, reason in (
        ([], "needs --store URL and --vocabulary"),
        (["--store", "x"], "needs --store URL and --vocabulary"),
        ([*given, "--host", "0.0.0.0"], "give --keys FILE, or --no-keys"),
        ([*given, "--keys", "x", "--no-keys"], "give one of them"),
        ([*given, "--memory", "much"], "--memory takes a size"),
        ([*given, "--seconds", "inf"], "--seconds takes a positive number of seconds, at most 1,000,000"),
        ([*given, "--waiting", "1e18"], "--waiting takes a positive number of seconds, at most 1,000,000"),
        ([*given, "--drain", "inf"], "Invalid value for '--drain'"),
        ([*given, "--log-level", "loud"], "--log-level is"),
        ([*given, "--trusted-key", "0" * 64], "--trusted-key needs --sign-with FILE"),
        ([*given, "--sign-with", "none.key"], "none.key"),
    ):
        done = tokenfst("serve", *arguments)
        assert done.code == 2 and reason in done.err, done.err


def test_the_old_name_of_an_option_gives_the_same_limits(capsys: pytest.CaptureFixture[str]) -> None:
    assert LimitOptions(memory_cache="1M").read() == Limits(memory_cache=1 << 20)
    assert capsys.readouterr().err == ""
    assert LimitOptions(kept="1M").read() == Limits(memory_cache=1 << 20)
    assert "--kept is called --memory-cache now" in capsys.readouterr().err
    with pytest.raises(UsageError, match="old name of --memory-cache"):
        LimitOptions(kept="1M", memory_cache="2M").read()


@pytest.mark.parametrize(
    ("before", "wanted", "after", "warns"),
    [
        ((1024, 4096), 2048, 2304, False),
        ((1024, 1500), 2048, 1500, True),
        ((4096, 4096), 2048, 4096, False),
        ((1024, 4096), 500, 1024, False),
    ],
)
def test_there_are_as_many_files_as_connections(
    before: tuple[int, int],
    wanted: int,
    after: int,
    warns: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    found = [before]
    resource = SimpleNamespace(
        RLIMIT_NOFILE=7,
        RLIM_INFINITY=-1,
        getrlimit=lambda _: found[-1],
        setrlimit=lambda _, limits: found.append(limits),
    )
    monkeypatch.setattr(running, "resource", resource)
    monkeypatch.setattr(running.logs.LOGGER, "propagate", True)
    with caplog.at_level("WARNING", logger="tokenfst.server"):
        running.make_room(wanted)
    assert found[-1] == (after, before[1])
    assert ["few files"] * warns == [each.getMessage() for each in caplog.records]


def test_headers_are_bounded_whatever_is_installed() -> None:
    """uvicorn takes httptools where it is installed, which has no bound on headers."""
    server = Server(Work((), Limits(workers=1), {}), "unused", None)
    config = Listening(server, Limits(workers=1), "127.0.0.1", 0).config
    uvicorn = pytest.importorskip("uvicorn")
    config.load()
    with closing(asyncio.new_event_loop()) as loop:
        state = uvicorn.server.ServerState()
        made = config.http_protocol_class(config=config, server_state=state, app_state={}, _loop=loop)
    assert "H11Protocol" in [kind.__name__ for kind in type(made).__mro__] and config.ws == "none"
    assert 0 < (config.h11_max_incomplete_event_size or 0) <= 1 << 20


def test_new_workers_need_not_load_the_front_ends() -> None:
    pytest.importorskip("lark")
    code = f"import sys, {process.__name__}; print('lark' in sys.modules)"
    for vocabularies, says in (("[]", "True"), ("", "False")):
        environment = os.environ | {process.PRELOAD: vocabularies}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == says


def test_a_store_in_memory_is_refused(tmp_path: Path) -> None:
    """Each worker would have its own, and the front process would never find their artifacts."""
    pytest.importorskip("fsspec")
    done = tokenfst("serve", "--store", "memory://served", "--vocabulary", write_toy(tmp_path), "--port", 0)
    assert done.code == 2 and "memory of one process, and a server runs in several" in done.err


def test_many_who_ask_whether_the_server_is_ready_look_at_the_store_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Anyone may ask, also while a look at a slow store takes place."""
    looks: list[str] = []

    class Slow:
        def __init__(self, url: str) -> None:
            looks.append(url)

        def contains(self, key: str) -> bool:
            time.sleep(0.1)
            return False

    async def ask() -> list[int]:
        server = Server(Work((), Limits(workers=1), {}), "unused", None)
        transport = httpx.ASGITransport(server.application())
        async with httpx.AsyncClient(transport=transport, base_url="http://server") as client:
            return [
                each.status_code for each in await asyncio.gather(*(client.get("/readyz") for _ in range(20)))
            ]

    httpx = pytest.importorskip("httpx")
    monkeypatch.setattr(application, "Store", Slow)
    assert asyncio.run(ask()) == [503] * 20  # no worker is started
    assert looks == ["unused"]
