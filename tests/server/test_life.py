"""The program ``tokenfst serve``: it ends when what is under way is done, and says why it does not start."""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from support.programs.constraint_server import KEYS, small_vocabulary, write_keys
from support.worlds.stores import s3 as s3

from tokenfst import Store
from tokenfst.decoding.store.signatures import new_private_key, public_key
from tokenfst.server.front.tenants import digest_of

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")
pytest.importorskip("prometheus_client", reason="the extra serve is not installed")
BODY = json.dumps({"constraint": {"regex": "a+"}, "texts": ["aa"]}).encode()


@contextmanager
def program(folder: Path, *arguments: str, store: bool = True) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-m", "tokenfst", "serve", "--workers", "1"]
    command += ["--store", f"{folder}/store"] if store else []
    command += ["--vocabulary", small_vocabulary(folder), *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


def until(process: subprocess.Popen[str], event: str) -> dict[str, Any]:
    """The line of the log that tells an event."""
    assert process.stderr is not None
    for line in process.stderr:
        found: dict[str, Any] = json.loads(line)
        if found["event"] == event:
            return found
    raise AssertionError(f"it ended without {event!r}")


def begin(port: int, key: str = KEYS["acme"]) -> socket.socket:
    """A request of which the server waits for the body."""
    connection = socket.create_connection(("127.0.0.1", port), timeout=60)
    head = f"POST /v1/check HTTP/1.1\r\nHost: x\r\nX-API-Key: {key}\r\nContent-Length: {len(BODY)}\r\n"
    connection.sendall(f"{head}Expect: 100-continue\r\n\r\n".encode())
    return connection


def test_what_is_under_way_is_finished_and_what_comes_is_refused(tmp_path: Path) -> None:
    with program(tmp_path, "--port", "0", "--keys", str(write_keys(tmp_path))) as process:
        port = until(process, "listening")["port"]
        connection = begin(port)
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")
        (tmp_path / "keys.json").write_text(json.dumps({"acme": [digest_of("fresh")]}))
        process.send_signal(signal.SIGHUP)
        until(process, "keys read again")
        with begin(port) as refused:
            assert refused.recv(1000).startswith(b"HTTP/1.1 401")
        process.send_signal(signal.SIGTERM)
        until(process, "ending")
        connection.sendall(BODY)
        answer = b""
        while data := connection.recv(10_000):
            answer += data
        assert answer.startswith(b"HTTP/1.1 200") and b'"accepted": true' in answer
        until(process, "ended")
        assert process.wait() == 0
        assert process.stdout is not None and process.stdout.read() == ""
        with pytest.raises(OSError):
            socket.create_connection(("127.0.0.1", port), timeout=60)


def test_a_program_is_told_where_it_listens(tmp_path: Path) -> None:
    with program(tmp_path, "--port", "0", "--json", "--log-level", "warning") as process:
        assert process.stdout is not None
        told = json.loads(process.stdout.readline())
        port = int(told.pop("url").removeprefix("http://127.0.0.1:"))
        socket.create_connection(("127.0.0.1", port), timeout=60).close()
        spec = small_vocabulary(tmp_path)
        assert told == {"command": "serve", "store": f"{tmp_path}/store", "vocabularies": [spec]}
        process.send_signal(signal.SIGTERM)
        assert process.wait(60) == 0 and process.stdout.read() == ""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_ends_it_at_once(number: signal.Signals, tmp_path: Path) -> None:
    """Also while a request is under way; the log has no traceback."""
    with program(tmp_path, "--port", "0", "--no-keys", "--drain", "1000") as process:
        connection = begin(until(process, "listening")["port"])
        assert connection.recv(1000).startswith(b"HTTP/1.1 100")
        process.send_signal(number)
        until(process, "ending")
        process.send_signal(number)
        assert process.stderr is not None
        log = [json.loads(line) for line in process.stderr]
        assert process.wait(60) == 0
        events = [line["event"] for line in log if line["level"] in ("info", "error")]
        assert not [event for event in events if "Traceback" in event], events
        assert events[-1] == "ended"


def test_the_program_signs_with_the_key_in_a_file(tmp_path: Path) -> None:
    pytest.importorskip("cryptography")
    httpx = pytest.importorskip("httpx", reason="the tests of the server need httpx")
    private = new_private_key()
    (tmp_path / "own.key").write_text(f"{private}\n")
    with program(tmp_path, "--port", "0", "--sign-with", f"{tmp_path}/own.key") as process:
        url = f"http://127.0.0.1:{until(process, 'listening')['port']}"
        made = httpx.post(f"{url}/v1/constraints", json={"constraint": {"regex": "a+"}}, timeout=60).json()
    store = Store(tmp_path / "store", trusted_keys=[public_key(private)])
    assert len(store.artifact(made["id"])) == made["bytes"] and store.verify() == []


@pytest.mark.soak
def test_the_store_may_be_s3(tmp_path: Path, s3: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    httpx = pytest.importorskip("httpx", reason="the tests of the server need httpx")
    import s3fs

    monkeypatch.setenv("AWS_ENDPOINT_URL", s3["endpoint_url"])
    s3fs.S3FileSystem(**s3).mkdir("server-test")
    bucket = "s3://server-test/store"
    with program(tmp_path, "--port", "0", "--store", bucket, "--no-keys", store=False) as process:
        url = f"http://127.0.0.1:{until(process, 'listening')['port']}"
        assert httpx.get(f"{url}/readyz", timeout=60).json()["store"] is True
        made = httpx.post(f"{url}/v1/constraints", json={"constraint": {"regex": "a+"}}, timeout=60).json()
        artifact = httpx.get(f"{url}/v1/constraints/{made['id']}/artifact", timeout=60)
        assert len(artifact.content) == made["bytes"] == len(Store(bucket).artifact(made["id"]))
        assert httpx.get(f"{url}/v1/constraints/{'0' * 64}/artifact", timeout=60).status_code == 404


@pytest.mark.soak
def test_what_it_cannot_do_without_is_told(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        for arguments, reason in (
            (["--port", str(taken.getsockname()[1])], "cannot listen"),
            (["--port", "0", "--vocabulary", "tokens:none.json"], "none.json"),
            (["--port", "0", "--keys", "none.json"], "none.json: No such file"),
            (["--port", "0", "--store", "nothing://x"], "Protocol not known: nothing"),
            (["--port", "0", "--store", "/dev/null"], "it is not a folder"),
        ):
            with program(tmp_path, *arguments, store="--store" not in arguments) as process:
                _, told = process.communicate(timeout=120)
                assert process.returncode == 2 and reason in told.splitlines()[-1], told
                assert "Traceback" not in told
