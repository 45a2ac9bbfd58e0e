"""The routes, and the steps of each request: key, size, cache, queue, worker.

This module reads a body only to count and digest it. If a tenant sends several requests with the same bytes at the same
time, they share one job.
"""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from tokenfst.common.plurals import counted
from tokenfst.decoding.store.keys import NAME
from tokenfst.decoding.store.store import Store
from tokenfst.errors import ArtifactError, NotInStoreError, StoreError, TokenfstError
from tokenfst.server import logs
from tokenfst.server.front.answers import SizedCache, digest
from tokenfst.server.front.metrics import TYPE, Metrics
from tokenfst.server.front.openapi import document
from tokenfst.server.front.ranges import asked_range, names_tag
from tokenfst.server.front.tenants import Tenants, store_url
from tokenfst.server.front.turns import FairTurns
from tokenfst.server.refusals import Refused, refused, unknown_id
from tokenfst.server.workers.pool import Pool
from tokenfst.server.workers.process import Job, Reply, Work

_FRESH = {"compile": 60.0, "describe": 60.0}
"""The lifetime, in seconds, of cached answers that depend on the content of the store."""
_LOST = 1 << 20
"""Bytes for the ids whose entries were lately found missing or damaged: cached answers about them are not used."""
_CHUNK = 256 << 10
_READERS = 4
"""The greatest number of artifacts that are read from stores at the same time."""
_LOOKED = 2.0
"""Seconds for which ``/readyz`` reuses the result of a check of the store."""
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,64}")
_TICK = 0.1
_NOTHING = "0" * 64
QUESTIONS = {
    "/v1/constraints": "compile",
    "/v1/check": "check",
    "/v1/explain": "explain",
    "/v1/diff": "diff",
    "/v1/sample": "sample",
    "/v1/openai/validate": "openai",
}
"""The question that each POST route asks."""
_Handler = Callable[[Request, "_About"], Awaitable[Response]]
_T = TypeVar("_T")


@dataclass
class _About:
    """The fields of a request's log entry."""

    id: str
    route: str
    began: float
    tenant: str = ""
    cached: bool = False
    code: str = ""
    received: int = 0


class Server:
    """The application of one server: its tenants, caches, worker processes and routes, without a port."""

    def __init__(self, work: Work, store: str, keys: Path | None) -> None:
        self._work, self._limits, self._store, self._keys = work, work.limits, store, keys
        self._tenants = Tenants.read(keys)
        self._pool = Pool(work)
        self._answers: SizedCache[Reply] = SizedCache(self._limits.memory_cache)
        self._lost: SizedCache[bool] = SizedCache(_LOST)
        self._artifacts: SizedCache[memoryview] = SizedCache(self._limits.memory_cache)
        self._flights: dict[bytes, asyncio.Task[Reply]] = {}
        self._held: WeakValueDictionary[bytes, memoryview] = WeakValueDictionary()
        self._reads: dict[bytes, asyncio.Task[memoryview]] = {}
        self._readers = FairTurns(_READERS, self._limits.queue, self._limits.waiting)
        self._looked, self._looking, self._trouble = 0.0, asyncio.Lock(), ""
        self.is_draining = self.is_ending = False
        self.is_forced = self.has_ended = False
        """Whether to end without waiting for processes, and whether the application has ended."""
        self.trouble: Exception | None = None
        self.metrics = Metrics(
            {
                "queue_waiting": ("Requests that wait for a worker", lambda: self._pool.waiting),
                "workers_busy": ("Workers that work on a request", lambda: self._pool.busy),
                "cached_answer_bytes": ("Bytes of answers in the cache", lambda: self._answers.bytes),
                "cached_artifact_bytes": ("Bytes of artifacts in the cache", lambda: self._artifacts.bytes),
            },
            self._pool.deaths,
        )

    def application(self) -> Starlette:
        """The ASGI application with all routes."""
        routes = [
            *(
                Route(path, self._handled(path, self._question(name)), methods=["POST"])
                for path, name in QUESTIONS.items()
            ),
            Route("/v1/constraints/{id}", self._handled("/v1/constraints/{id}", self._describe)),
            Route(
                "/v1/constraints/{id}/artifact",
                self._handled("/v1/constraints/{id}/artifact", self._artifact),
            ),
            Route("/v1/vocabularies", self._handled("/v1/vocabularies", self._vocabularies)),
            Route("/healthz", self._health),
            Route("/readyz", self._ready),
            Route("/metrics", self._metrics),
            Route("/openapi.json", self._document),
        ]
        found = Starlette(
            routes=routes, lifespan=self._lifespan, exception_handlers={HTTPException: self._no_route}
        )
        found.router.redirect_slashes = (
            False  # such an answer would name the host that the client's header names
        )
        return found

    def reload_keys(self) -> None:
        """Read the file of keys again; if that fails, the old keys stay valid."""
        try:
            self._tenants = Tenants.read(self._keys)
            logs.event("keys read again")
        except (OSError, ValueError) as error:
            logs.event("keys not read", logging.ERROR, error=str(error))

    def kill(self) -> None:
        """Kill all processes at once."""
        self._pool.kill()

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        try:
            await self._pool.start()
        except TokenfstError as error:
            self.trouble = error
            raise
        logs.event(
            "workers ready",
            workers=self._limits.workers,
            vocabularies=[name for name, _, _ in self._pool.vocabularies],
        )
        ticking = asyncio.create_task(self._tick())
        yield
        ticking.cancel()
        self.has_ended = True
        if not self.is_forced:
            await self._pool.close()

    async def _tick(self) -> None:
        """Measure the delay of the event loop; every latency contains it."""
        while True:
            began = time.perf_counter()
            await asyncio.sleep(_TICK)
            self.metrics.late.observe(max(0.0, time.perf_counter() - began - _TICK))

    # --- what every request goes through ------------------------------------------------------------------------

    def _handled(self, route: str, handler: _Handler) -> Callable[[Request], Awaitable[Response]]:
        async def run(request: Request) -> Response:
            given = request.headers.get("x-request-id", "")
            own = given if _REQUEST_ID.fullmatch(given) else secrets.token_hex(8)
            about = _About(own, route, time.perf_counter())
            try:
                if self.is_ending:
                    raise Refused(
                        "ending", "this server is shutting down", "use another server", retry_after=1
                    )
                about.tenant = self._tenant(request)
                response = await handler(request, about)
            except Refused as error:
                about.code = error.code
                response = _refusal(error)
            except ClientDisconnect:
                about.code = "gone"
                response = Response(status_code=499)
            except Exception:
                logs.LOGGER.exception("fault", extra={"about": {"request": own, "route": route}})
                about.code = "fault"
                response = _refusal(Refused("fault", "this is a bug in tokenfst: please report it"))
            self._finish(response, about)
            return response

        return run

    def _finish(self, response: Response, about: _About) -> None:
        seconds = time.perf_counter() - about.began
        self.metrics.requests.labels(about.route, str(response.status_code)).inc()
        self.metrics.seconds.labels(about.route, "yes" if about.cached else "no").observe(seconds)
        response.headers["x-request-id"] = about.id
        response.headers["x-cache"] = "hit" if about.cached else "miss"
        response.headers["x-kept"] = "yes" if about.cached else "no"  # the old name, for one version
        if self.is_ending:
            response.headers["connection"] = "close"
        logs.event(
            "request",
            request=about.id,
            route=about.route,
            tenant=about.tenant,
            status=response.status_code,
            code=about.code or None,
            seconds=round(seconds, 6),
            received=about.received,
            cached=about.cached,
        )

    def _tenant(self, request: Request) -> str:
        scheme, _, bearer = request.headers.get("authorization", "").partition(" ")
        key = bearer.strip() if scheme.lower() == "bearer" else request.headers.get("x-api-key")
        tenant = self._tenants.of(key)
        if tenant is None:
            raise Refused(
                "no_key",
                "the API key is missing or not known",
                "send a key as 'Authorization: Bearer KEY' or as 'X-API-Key: KEY'",
            )
        return tenant

    async def _body(self, request: Request, about: _About) -> bytes:
        most = self._limits.body
        if request.headers.get("content-encoding", "identity").lower() != "identity":
            raise Refused("wrong_encoding", "compressed bodies are not read", "send the body uncompressed")
        length = request.headers.get("content-length", "0")
        too_large = Refused(
            "too_large", f"a body may have at most {counted(most, 'byte')}", "send a smaller one"
        )
        if not length.isdigit() or len(length) > 18 or int(length) > most:
            raise too_large
        body = bytearray()
        try:
            async with asyncio.timeout(self._limits.reading):
                async for chunk in request.stream():
                    body += chunk
                    if len(body) > most:
                        raise too_large
        except TimeoutError:
            raise Refused(
                "too_slow",
                f"the body did not arrive within {self._limits.reading:g} seconds",
                "send it again",
            ) from None
        about.received = len(body)
        return bytes(body)

    # --- questions --------------------------------------------------------------------------------------------------

    def _question(self, name: str) -> _Handler:
        async def ask(request: Request, about: _About) -> Response:
            body = await self._body(request, about)
            return await self._ask(name, body or b"{}", (), about)

        return ask

    async def _describe(self, request: Request, about: _About) -> Response:
        extra = [("id", request.path_params["id"])]
        if (vocabulary := request.query_params.get("vocabulary")) is not None:
            extra.append(("vocabulary", vocabulary))
        return await self._ask("describe", b"", tuple(extra), about)

    async def _ask(
        self, name: str, body: bytes, extra: tuple[tuple[str, str], ...], about: _About
    ) -> Response:
        key = digest(about.tenant, name, repr(extra), body)
        reply = self._answers.get(key)
        if reply is not None and reply.id and self._lost.get(digest(about.tenant, reply.id)):
            reply = None
        about.cached = reply is not None
        if reply is None:
            job = Job(name, body, extra, self._url(about.tenant))
            if name == "sample":  # two that ask for random texts do not mean the same ones
                reply = await self._pool.ask(about.tenant, job)
            else:
                reply = await _shared(self._flights, key, lambda: self._pool.ask(about.tenant, job))
            if reply.keep:
                self._answers.put(key, reply, len(reply.body), _FRESH.get(name, float("inf")))
            if reply.id:
                self._note(digest(about.tenant, reply.id), is_lost=bool(reply.code))
        about.code = reply.code
        if reply.detail:
            logs.event("store", logging.ERROR, error=reply.detail, request=about.id)
        headers = {} if reply.retry_after is None else {"retry-after": str(reply.retry_after)}
        return Response(reply.body, reply.status, headers, "application/json")

    def _note(self, key: bytes, *, is_lost: bool) -> None:
        """Note whether the entry of an id was found to be missing or damaged."""
        if is_lost:
            self._lost.put(key, True, 0, max(_FRESH.values()))
        else:
            self._lost.drop(key)

    def _url(self, tenant: str) -> str:
        return store_url(self._store, tenant, self._tenants.are_known)

    # --- artifacts --------------------------------------------------------------------------------------------------

    async def _artifact(self, request: Request, about: _About) -> Response:
        name = request.path_params["id"]
        if not NAME.fullmatch(name):
            raise unknown_id()
        data = await self._read(name, about)
        tag = f'"{name}"'
        headers = {
            "etag": tag,
            "accept-ranges": "bytes",
            "cache-control": "private, max-age=31536000, immutable",
            "content-disposition": f'attachment; filename="{name}.safetensors"',
        }
        if names_tag(request.headers.get("if-none-match"), tag):
            return Response(status_code=304, headers=headers)
        header = request.headers.get("range")
        if request.method != "GET" or request.headers.get("if-range", tag) != tag:
            header = None
        try:
            part = asked_range(header, len(data))
        except ValueError as error:
            found = _refusal(Refused("bad_range", str(error), "ask for bytes within the artifact"))
            found.headers["content-range"] = f"bytes */{len(data)}"
            return found
        begin, end = (0, len(data)) if part is None else part
        status = 200 if part is None else 206
        if part is not None:
            headers["content-range"] = f"bytes {begin}-{end - 1}/{len(data)}"
        headers["content-length"] = str(end - begin)
        if request.method == "HEAD":
            return Response(status_code=status, headers=headers, media_type="application/octet-stream")
        return StreamingResponse(_chunks(data, begin, end), status, headers, "application/octet-stream")

    async def _read(self, name: str, about: _About) -> memoryview:
        key = digest(about.tenant, name)
        found = self._artifacts.get(key)
        if found is None:
            found = self._held.get(key)
        about.cached = found is not None
        if found is not None:
            return found
        try:
            return await _shared(self._reads, key, lambda: self._read_stored(key, about.tenant, name))
        except (StoreError, ArtifactError) as error:
            if isinstance(error, NotInStoreError | ArtifactError):
                self._note(key, is_lost=True)
            if not isinstance(error, NotInStoreError):
                logs.event("store", logging.ERROR, error=str(error), request=about.id)
            raise refused(error) from None

    async def _read_stored(self, key: bytes, tenant: str, name: str) -> memoryview:
        await self._readers.enter(tenant)
        try:
            found = await asyncio.to_thread(self._out_of_store, self._url(tenant), name)
        finally:
            self._readers.leave()
        self._artifacts.put(key, found, len(found))
        self._held[key] = found
        return found

    def _out_of_store(self, url: str, name: str) -> memoryview:
        return Store(url, **self._work.store_options).artifact(name)

    async def _vocabularies(self, _: Request, __: _About) -> Response:
        names = ("name", "fingerprint", "tokens")
        return JSONResponse(
            {"vocabularies": [dict(zip(names, each, strict=True)) for each in self._pool.vocabularies]}
        )

    # --- for who runs it --------------------------------------------------------------------------------------------

    async def _health(self, _: Request) -> Response:
        return JSONResponse({"status": "ok"})

    async def _ready(self, _: Request) -> Response:
        """Whether the server is ready for requests: it has workers, can reach the store, and is not shutting down."""
        async with self._looking:  # anyone may ask at any time: one look at a slow store is enough
            if time.monotonic() - self._looked > _LOOKED:
                try:
                    store = await asyncio.to_thread(Store, self._store, **self._work.store_options)
                    await asyncio.to_thread(store.contains, _NOTHING)
                    self._trouble = ""
                except StoreError as error:
                    self._trouble = str(error)
                    logs.event("store", logging.ERROR, error=str(error))
                self._looked = time.monotonic()
        ready = {
            "ending": self.is_draining,
            "workers": self._pool.is_ready,
            "store": not self._trouble,
        }
        good = ready["workers"] and ready["store"] and not self.is_draining
        return JSONResponse({"status": "ok" if good else "not ready", **ready}, 200 if good else 503)

    async def _metrics(self, _: Request) -> Response:
        return Response(self.metrics.text(), media_type=TYPE)

    async def _document(self, _: Request) -> Response:
        return JSONResponse(document())

    async def _no_route(self, _: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        codes = {404: "not_found", 405: "wrong_method"}
        code = codes.get(error.status_code, "bad_request")
        response = _refusal(Refused(code, f"{error.detail}", "see /openapi.json"))
        response.headers.update(error.headers or {})
        return response


def _refusal(error: Refused) -> Response:
    response = Response(error.body(), error.status, media_type="application/json")
    if error.retry_after is not None:
        response.headers["retry-after"] = str(error.retry_after)
    if error.code == "no_key":
        response.headers["www-authenticate"] = "Bearer"
    return response


async def _chunks(data: memoryview, begin: int, end: int) -> AsyncIterator[bytes]:
    """The bytes in pieces, so that a slow reader holds few of them besides ``data``, which all readers share."""
    for first in range(begin, end, _CHUNK):
        yield bytes(data[first : min(end, first + _CHUNK)])


async def _shared(
    flights: dict[bytes, asyncio.Task[_T]], key: bytes, begin: Callable[[], Coroutine[Any, Any, _T]]
) -> _T:
    """The result of the task that is in progress under ``key``, or else of ``begin()``, which is started as a task.
    Callers that ask for the same key while the task runs share it.
    """
    flight = flights.get(key)
    if flight is None:
        flight = flights[key] = asyncio.create_task(begin())
        flight.add_done_callback(lambda _: flights.pop(key, None))
    return await asyncio.shield(flight)
