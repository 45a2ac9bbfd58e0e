"""A server on a port of its own: in a thread of this process, where tests can look at it."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tokenfst.server.front.application import Server
from tokenfst.server.front.tenants import digest_of
from tokenfst.server.limits import Limits
from tokenfst.server.running import Listening
from tokenfst.server.workers.process import Work

KEYS = {"acme": "key-of-acme", "other": "key-of-other"}


def small_vocabulary(folder: Path) -> str:
    """A small vocabulary in a file, by its name."""
    tokens: list[Any] = [{"bytes": [byte]} for byte in range(256)] + ["ab", '{"', "true", ""]
    path = folder / "small.json"
    path.write_text(json.dumps({"tokens": tokens, "eos_token_id": len(tokens) - 1}))
    return f"tokens:{path}"


def write_keys(folder: Path) -> Path:
    path = folder / "keys.json"
    path.write_text(json.dumps({name: [digest_of(key)] for name, key in KEYS.items()}))
    return path


class Running:
    """``url``; ``server``, which looks inside; ``loop``, on which it runs."""

    def __init__(self, url: str, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.url, self.server, self.loop = url, server, loop

    @property
    def workers(self) -> list[int]:
        return [process.pid for process in self.server._pool._processes]


@contextmanager
def serving(
    folder: Path,
    limits: Limits,
    *,
    keys: bool = True,
    vocabularies: tuple[tuple[str, str], ...] = (),
    store_options: Mapping[str, Any] | None = None,
) -> Iterator[Running]:
    known = (("small", small_vocabulary(folder)), *vocabularies)
    work = Work(known, limits, {"cache": f"{folder}/cache"} if store_options is None else store_options)
    server = Server(work, f"{folder}/store", write_keys(folder) if keys else None)
    listening = Listening(server, limits, "127.0.0.1", 0)
    loops: list[asyncio.AbstractEventLoop] = []

    async def main() -> None:
        loops.append(asyncio.get_running_loop())
        await listening.serve()

    thread = threading.Thread(target=asyncio.run, args=(main(),))
    thread.start()
    try:
        while not listening.started:
            assert thread.is_alive()
            time.sleep(0.02)
        yield Running(f"http://127.0.0.1:{listening.bound}", server, loops[0])
    finally:
        listening.should_exit = True
        thread.join()
        server.kill()
