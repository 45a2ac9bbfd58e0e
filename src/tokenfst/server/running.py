"""A server on a port, and its signals.

SIGTERM and SIGINT: open requests are finished and new ones are refused, for at most ``grace`` seconds. Before that, for
``drain`` seconds, requests are still answered while /readyz reports that the server is not ready, so that a load
balancer stops using it. A second signal ends the server at once. SIGHUP: the keys are read again.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import FrameType

from tokenfst.decoding.store.store import Store
from tokenfst.errors import MissingDependencyError, TokenfstError
from tokenfst.server import logs
from tokenfst.server.limits import Limits
from tokenfst.server.workers.process import Work

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

try:
    import uvicorn

    from tokenfst.server.front.application import Server
    from tokenfst.server.front.connections import Connection
except ModuleNotFoundError as missing:
    if (missing.name or "").startswith("tokenfst"):
        raise
    raise MissingDependencyError(f'a server needs {missing.name}: pip install "tokenfst[serve]"') from missing


Announce = Callable[[str, int], None]
_FILES = 256
"""An upper estimate of the number of files that a server opens besides its connections."""
_HEADERS = 64 << 10
"""The approximate number of bytes that the headers of a request may have."""


class PortError(TokenfstError, OSError):
    """The server cannot listen on its port."""


class Listening(uvicorn.Server):  # type: ignore[misc]
    """uvicorn's server, which reports its port and shuts down as the module's docstring says. ``announce`` is called
    with the host and the port once it listens.
    """

    def __init__(
        self,
        server: Server,
        limits: Limits,
        host: str,
        port: int,
        drain: float = 0.0,
        announce: Announce | None = None,
    ) -> None:
        config = uvicorn.Config(
            server.application(),
            host=host,
            port=port,
            http=partial(Connection, seconds=limits.reading, waiting={}),
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            lifespan="on",
            timeout_keep_alive=30,
            timeout_graceful_shutdown=max(1, round(limits.grace)),
            limit_concurrency=limits.connections,
            h11_max_incomplete_event_size=_HEADERS,
        )
        super().__init__(config)
        self._own, self._drain, self.bound = server, drain, 0
        self._announce = announce
        self._ending: asyncio.Task[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Listen, and report the port."""
        await super().startup(sockets=sockets)
        addresses = [
            bound.getsockname()[:2] for each in getattr(self, "servers", []) for bound in each.sockets
        ]
        for host, self.bound in addresses:
            logs.event("listening", host=host, port=self.bound)
        if self._announce is not None and addresses:
            self._announce(*addresses[0])

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        """Handle signals while the server runs."""
        if threading.current_thread() is not threading.main_thread():  # signals are not for us
            yield
            return
        if sys.platform == "win32":  # loops there take no handlers
            with super().capture_signals():
                yield
            return
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        loop.add_signal_handler(signal.SIGHUP, self._own.reload_keys)
        yield

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to shut down; at the second signal, end at once."""
        logs.event("ending", signal=signal.Signals(sig).name)
        if self._own.is_draining:
            self.should_exit = self.force_exit = True
            return
        self._own.is_draining = True
        self._ending = asyncio.ensure_future(self._end())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Close the connections, then the application. uvicorn cancels the application at the second signal; here it
        ends, without waiting for its processes, which ``run`` kills.
        """
        await super().shutdown(sockets=sockets)
        if self.force_exit and not self._own.has_ended:
            self._own.is_forced = True
            await self.lifespan.shutdown()

    async def _end(self) -> None:
        await asyncio.sleep(self._drain)
        self._own.is_ending = True
        self.should_exit = True


def make_room(connections: int) -> None:
    """Raise the number of files that this process may open to what ``connections`` open connections need.

    If the system does not allow that many, raise it as far as possible and log a warning.
    """
    if resource is None:
        return
    wanted = connections + _FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft in (resource.RLIM_INFINITY, -1) or soft >= wanted:
        return
    most = wanted if hard in (resource.RLIM_INFINITY, -1) else min(wanted, hard)
    if most > soft:
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
    if most < wanted:
        logs.event(
            "few files",
            logging.WARNING,
            error=f"{connections} connections need {wanted} open files, and the system allows {most}: raise ulimit -n, "
            "or lower --connections",
        )


def run(
    work: Work,
    store: str,
    keys: Path | None,
    *,
    host: str,
    port: int,
    drain: float = 0.0,
    log_level: str = "info",
    announce: Announce | None = None,
) -> int:
    """Serve until a signal ends the server; returns 0. ``announce`` is called with the host and the port once it
    listens.

    Raises StoreError for an invalid URL of the store and for one in memory, KeysError and OSError for the file of keys,
    and ``TokenfstError`` if no worker can be started or the port cannot be used. A store that cannot be read at the
    moment is no error here: /readyz reports it.
    """
    logs.start(log_level)
    make_room(work.limits.connections)
    # A URL that cannot be opened is refused before anything starts.
    Store(store, **work.store_options).need_shared("a server")
    server = Server(work, store, keys)
    listening = Listening(server, work.limits, host, port, drain, announce)
    try:
        with logs.uvicorn_silent(lambda: server.trouble is not None):
            listening.run()
    except SystemExit:
        if server.trouble is not None:
            raise server.trouble from None
        raise PortError(f"cannot listen at {host}:{port}: the log says why") from None
    finally:
        server.kill()
    if not listening.started:
        raise PortError("the server did not start: its log says why")
    logs.event("ended", logging.INFO)
    sys.stderr.flush()
    return 0
