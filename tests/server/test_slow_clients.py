"""Clients that are slow, on purpose or not: each is closed after a while, and nobody else waits for it."""

from __future__ import annotations

import gc
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tokenfst.server.limits import Limits

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")
pytest.importorskip("prometheus_client", reason="the extra serve is not installed")
httpx = pytest.importorskip("httpx", reason="the tests of the server need httpx")

from support.programs.constraint_server import KEYS, Running, serving

from tokenfst.server.front.answers import digest
from tokenfst.server.front.connections import Connection

SECONDS = 0.7
LIMITS = Limits(workers=1, seconds=60, memory=1 << 30, connections=20, reading=SECONDS)
KEY = f"x-api-key: {KEYS['acme']}\r\n"
LARGE = 12 << 20


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    with serving(tmp_path_factory.mktemp("slow"), LIMITS) as found:
        yield found


def connected(running: Running, receive: int = 0) -> socket.socket:
    host, port = running.url.removeprefix("http://").split(":")
    found = socket.socket()
    if receive:
        found.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive)
    found.connect((host, int(port)))
    found.settimeout(30)
    return found


def closed_after(link: socket.socket, drip: bytes) -> float:
    """Send ``drip`` byte by byte until the other side has closed; returns the seconds, and fails after a minute."""
    began = time.monotonic()
    link.settimeout(0.05)
    for byte in drip * (1 + 1200 // max(1, len(drip))) if drip else [None] * 1200:
        try:
            if byte is not None:
                link.sendall(bytes([byte]))
            if link.recv(1 << 16) == b"":
                return time.monotonic() - began
        except TimeoutError:
            continue
        except OSError:
            return time.monotonic() - began
    raise AssertionError("it was never closed")


@pytest.mark.parametrize(
    ("sent", "drip"),
    [
        ("", b""),
        ("", b"GET /healthz"),
        ("GET /healthz HTTP/1.1\r\nhost: x\r\n", b"a: b\r\n"),
        ("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n", b"GET"),
        ("POST /v1/check HTTP/1.1\r\nhost: x\r\ncontent-length: 900\r\n\r\n", b" "),
        ("GET /healthz HTTP/1.1\r\nhost: x\r\ncontent-length: 900\r\n\r\n", b" "),
        (f"POST /v1/check HTTP/1.1\r\nhost: x\r\n{KEY}content-length: 900\r\n\r\n", b" "),
    ],
    ids=["nothing", "letters", "headers", "second request", "body without a key", "unread body", "body"],
)
def test_who_sends_slowly_is_closed(sent: str, drip: bytes, running: Running) -> None:
    with connected(running) as link:
        link.sendall(sent.encode())
        seconds = closed_after(link, drip)
    assert SECONDS * 0.5 < seconds < SECONDS + 20


def large_artifact(running: Running) -> str:
    """The path of an artifact that no buffer of a socket holds."""
    name = "7" * 64

    def put() -> None:
        running.server._artifacts.put(digest("acme", name), memoryview(bytes(LARGE)), LARGE)

    running.loop.call_soon_threadsafe(put)
    return f"/v1/constraints/{name}/artifact"


def test_who_does_not_take_an_answer_is_closed(running: Running) -> None:
    path = large_artifact(running)
    with connected(running, 4096) as link:
        link.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n{KEY}\r\n".encode())
        time.sleep(SECONDS * 3)
        taken = 0
        try:
            while data := link.recv(1 << 16):
                taken += len(data)
        except ConnectionResetError:
            pass
    assert taken < LARGE


def test_who_takes_it_slowly_but_steadily_gets_all(running: Running) -> None:
    path, taken = large_artifact(running), 0
    with connected(running, 1 << 16) as link:
        link.sendall(f"GET {path} HTTP/1.1\r\nhost: x\r\n{KEY}connection: close\r\n\r\n".encode())
        began = time.monotonic()
        while data := link.recv(1 << 18):
            taken += len(data)
            time.sleep(0.02)
    assert taken > LARGE and time.monotonic() - began > SECONDS


def test_who_leaves_the_rest_of_an_answer_is_closed(running: Running) -> None:
    """The rest is small enough for the application to be done with it, and uvicorn only waits for the client."""
    path = large_artifact(running)
    with connected(running, 4096) as link:
        link.sendall(b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n")
        assert link.recv(1000).startswith(b"HTTP/1.1 200")
        name = link.getsockname()
        (server_side,) = [each for each in connections() if each.client == name]
        server_side.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        link.sendall(
            f"GET {path} HTTP/1.1\r\nhost: x\r\n{KEY}range: bytes=0-40000\r\nconnection: close\r\n\r\n".encode()
        )
        end = time.monotonic() + 20
        while server_side in connections():
            assert time.monotonic() < end, server_side.transport.get_write_buffer_size()
            time.sleep(0.05)


def connections() -> list[Connection]:
    """The open connections of all servers in this process."""
    return [each for each in gc.get_objects() if type(each) is Connection and each in each.connections]


@pytest.mark.parametrize("sent", [b"", b"GET /he", b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"])
def test_slow_clients_do_not_keep_others_out(sent: bytes, tmp_path: Path) -> None:
    """Twice as many as may be connected send nothing more, long before the limit of seconds: all others are answered,
    and the newest of the idle connections stay.
    """
    with serving(tmp_path, replace(LIMITS, reading=60)) as found, ExitStack() as stack:
        for _ in range(2 * LIMITS.connections):
            link = stack.enter_context(connected(found))
            link.sendall(sent)
            if sent.endswith(b"\n"):
                answer = b""
                while b"ok" not in answer:  # headers and body may come one after the other
                    more = link.recv(1000)
                    assert more
                    answer += more
                assert answer.startswith(b"HTTP/1.1 200")
        for _ in range(3):
            with httpx.Client(base_url=found.url, timeout=60) as client:
                assert client.get("/healthz").status_code == 200
        link.sendall(
            b"GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n"[len(sent) if not sent.endswith(b"\n") else 0 :]
        )
        assert link.recv(1000).startswith(b"HTTP/1.1 200")
        assert len(connections()) < LIMITS.connections


def test_a_slow_question_is_not_a_slow_client(running: Running) -> None:
    """The client waits for its answer for longer than it may let the server wait."""
    pool, go = running.server._pool, threading.Event()
    drive = pool._drive

    def slowly(worker: Any, job: Any) -> Any:
        go.wait(SECONDS * 3)
        return drive(worker, job)

    pool._drive = slowly  # type: ignore[method-assign]
    try:
        with httpx.Client(base_url=running.url, headers={"x-api-key": KEYS["acme"]}, timeout=60) as client:
            response = client.post("/v1/check", json={"constraint": {"regex": "a+"}, "texts": ["a"]})
            assert response.status_code == 200 and response.elapsed.total_seconds() > SECONDS
            assert client.get("/v1/vocabularies").status_code == 200  # on the same connection
    finally:
        pool._drive = drive  # type: ignore[method-assign]
