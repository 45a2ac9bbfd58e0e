"""Turns of tenants at a scarce resource, such as threads that read from a slow storage."""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque

from tokenfst.common.plurals import counted
from tokenfst.server.refusals import busy


class FairTurns:
    """At most ``most`` turns at the same time. Waiting tenants get turns in rotation, so a tenant with many requests
    delays another by at most one turn. At most ``queue`` requests of a tenant wait, each for at most ``seconds``.

    Invariant: nobody waits while a turn is free. For one thread; each operation is O(1).
    """

    def __init__(self, most: int, queue: int, seconds: float) -> None:
        self._free, self._queue, self._seconds = most, queue, seconds
        self._waiting: OrderedDict[str, deque[asyncio.Future[None]]] = OrderedDict()

    async def enter(self, tenant: str) -> None:
        """Wait for a turn, which ``leave`` ends. Raises ``Refused`` if too many requests of the tenant wait, or if this
        one has waited too long.
        """
        if self._free:
            self._free -= 1
            return
        own = self._waiting.setdefault(tenant, deque())
        if len(own) >= self._queue:
            raise busy(f"{counted(len(own), 'request')} of the same tenant already waiting", 1)
        turn = asyncio.get_running_loop().create_future()
        own.append(turn)
        try:
            await asyncio.wait_for(asyncio.shield(turn), self._seconds)
        except BaseException as error:
            if turn.done():  # it came at the same moment
                self.leave()
            else:
                own.remove(turn)
                if not own:
                    del self._waiting[tenant]
            if isinstance(error, TimeoutError):
                raise busy(f"it waited for {self._seconds:g} seconds", 1) from None
            raise

    def leave(self) -> None:
        """End a turn, and give it to the tenant that has waited longest for one."""
        if not self._waiting:
            self._free += 1
            return
        tenant, own = self._waiting.popitem(last=False)
        own.popleft().set_result(None)
        if own:
            self._waiting[tenant] = own
