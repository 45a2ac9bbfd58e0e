"""Connections that are closed if the client is too slow, so that slow clients do not use up all of them."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

_LEAST = 10 << 10
"""Bytes of an answer that a client must read within the limit."""


class Connection(H11Protocol):  # type: ignore[misc]
    """uvicorn's connection, which is also closed if a client is slow.

    The client has ``seconds`` for each of these: to send the headers of a request, counted from the beginning of the
    connection or, for a later request, from its first byte; to send the rest of a body that was already answered; and
    to read the next ``_LEAST`` bytes of an answer, or its rest if that is less. The last limit also applies after
    uvicorn has closed the connection. The application bounds the time of a body that it reads; uvicorn bounds how long
    a connection is idle.

    ``waiting``: the server's connections without a request in progress, the longest waiting first. If the server has as
    many connections as allowed (``limit_concurrency``), a new connection closes the one that has waited longest. So
    clients that send nothing keep nobody out.
    """

    def __init__(self, *given: Any, seconds: float, waiting: dict[Connection, None], **named: Any) -> None:
        super().__init__(*given, **named)
        self._seconds, self._waiting = seconds, waiting
        self._receiving: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Start the timer for the headers; if there are too many connections, close the one that has waited longest."""
        super().connection_made(transport)
        transport.set_write_buffer_limits(
            high=0
        )  # pause_writing is called for all that the client does not take
        if self.limit_concurrency is not None and len(self.connections) >= self.limit_concurrency:
            for longest in self._waiting:
                del self._waiting[longest]
                longest.transport.abort()
                break
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        """Begin with the next request if it has arrived, or else wait for it."""
        super().on_response_complete()
        self._note_waiting()

    def pause_writing(self) -> None:
        """Start the timer: the client has not read all that was sent."""
        super().pause_writing()
        if self._sending is None:
            self._expect_taken()

    def resume_writing(self) -> None:
        """Stop the timer: the client has read all that was sent."""
        super().resume_writing()
        _cancel(self._sending)
        self._sending = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        _cancel(self._receiving)
        _cancel(self._sending)
        self._receiving = self._sending = None
        self._waiting.pop(self, None)
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Start or stop the timer for headers, or for a body after its answer. Later bytes do not restart it."""
        self._note_waiting()
        theirs = self.conn.their_state
        answered = self.conn.our_state is h11.DONE and theirs is h11.SEND_BODY
        if not answered and theirs is not h11.IDLE:
            _cancel(self._receiving)
            self._receiving = None
        elif self._receiving is None:
            self._receiving = self.loop.call_later(self._seconds, self.transport.abort)

    def _note_waiting(self) -> None:
        """Add this connection to ``waiting``, or remove it if a request is in progress. Bytes of an incomplete request
        do not change its place.
        """
        if self.cycle is None or self.cycle.response_complete:
            self._waiting.setdefault(self)
        else:
            self._waiting.pop(self, None)

    def _expect_taken(self) -> None:
        unsent = self.transport.get_write_buffer_size()
        self._sending = self.loop.call_later(self._seconds, self._judge_taken, unsent)

    def _judge_taken(self, before: int) -> None:
        if before - self.transport.get_write_buffer_size() < _LEAST:
            self.transport.abort()
        else:
            self._expect_taken()


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
