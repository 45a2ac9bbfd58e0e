"""Connections that are closed if the client is too slow, so that slow clients do not use up all of them."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol


class Connection(H11Protocol):  # type: ignore[misc]
    """uvicorn's connection with a limit of ``seconds`` for each thing that it waits for: the headers of a request, from
    the first byte or from the beginning of the connection; the rest of a body after its answer; and that the client
    takes what was sent, some ten KB at least.

    The application bounds the time of a body that it reads; uvicorn bounds how long a connection is idle.
    """

    def __init__(self, *given: Any, seconds: float, **named: Any) -> None:
        super().__init__(*given, **named)
        self._seconds = seconds
        self._receiving: asyncio.TimerHandle | None = None
        self._sending: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:
        """Wait for headers."""
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        """Take bytes of a request."""
        super().data_received(data)
        self._watch()

    def pause_writing(self) -> None:
        """The client reads too slowly, and the buffers are full: bound the wait."""
        super().pause_writing()
        if self._sending is None:
            self._sending = self.loop.call_later(self._seconds, self.transport.abort)

    def resume_writing(self) -> None:
        """The client has read most of what was sent: end the wait."""
        super().resume_writing()
        _cancel(self._sending)
        self._sending = None

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop the timers."""
        _cancel(self._receiving)
        _cancel(self._sending)
        self._receiving = self._sending = None
        super().connection_lost(exc)

    def _watch(self) -> None:
        """Bound the wait for what is not bounded elsewhere: one timer, which later bytes do not put off."""
        theirs = self.conn.their_state
        answered = self.conn.our_state is h11.DONE and theirs is h11.SEND_BODY
        if not answered and theirs is not h11.IDLE:
            _cancel(self._receiving)
            self._receiving = None
        elif self._receiving is None:
            self._receiving = self.loop.call_later(self._seconds, self.transport.abort)


def _cancel(timer: asyncio.TimerHandle | None) -> None:
    if timer is not None:
        timer.cancel()
