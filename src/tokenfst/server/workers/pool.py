"""The worker processes and their scheduling.

Each tenant has a queue of bounded length. A free process takes the next job of the tenant that has waited longest for
its turn, and if several tenants wait, no tenant gets all processes. So a tenant that sends expensive requests delays
another tenant by at most one job. A thread drives each process: it sends a job, waits no longer than the limit, and
then kills and replaces the process. It uses SIGKILL, so the process need not cooperate.

Invariant: an accepted job gets exactly one reply, whatever happens to its process.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import os
import sys
import threading
import time
from collections import OrderedDict, deque
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

from tokenfst.common.plurals import counted
from tokenfst.errors import TokenfstError
from tokenfst.server import logs
from tokenfst.server.refusals import Refused, busy
from tokenfst.server.workers.process import (
    PRELOAD,
    Job,
    Reply,
    Work,
    died,
    over_time,
    processor_seconds,
    serve,
)

_START = 300.0
"""Seconds within which a process must have loaded its vocabularies."""
_WEIGHT = 0.1
"""The weight of the last job in the moving average of seconds."""
_TURNS = 3
"""The number of dead processes that a job may meet before it is given up."""


class WorkerError(TokenfstError):
    """No process could be started; the message has its output."""


@dataclass
class _Worker:
    process: Any
    ends: Connection


@dataclass
class _Waiting:
    job: Job
    reply: asyncio.Future[Reply]
    since: float


class Pool:
    """The worker processes of a server, with a queue of jobs for each tenant. Its coroutines run in one event loop."""

    def __init__(self, work: Work) -> None:
        self._work, self._limits = work, work.limits
        self._queues: OrderedDict[str, deque[_Waiting]] = OrderedDict()
        self._running: dict[str, int] = {}
        self._free: deque[_Worker] = deque()
        self._threads = ThreadPoolExecutor(self._limits.workers, "worker")
        self._mean = 0.05
        self._tasks: set[asyncio.Task[None]] = set()
        self._starting = threading.Lock()
        self._processes: set[Any] = set()
        self._is_over = False
        self.vocabularies: list[tuple[str, str, int]] = []
        self.deaths = {"time": 0, "overload": 0, "memory": 0, "crash": 0, "tired": 0}
        """The number of replaced processes, by reason."""

    async def start(self) -> None:
        """Start the processes. Raises ``WorkerError``."""
        loop = asyncio.get_running_loop()
        first = await loop.run_in_executor(self._threads, self._start)
        rest = [loop.run_in_executor(self._threads, self._start) for _ in range(self._limits.workers - 1)]
        self._free.extend([first, *await asyncio.gather(*rest)])

    @property
    def waiting(self) -> int:
        """The number of jobs that wait."""
        return sum(map(len, self._queues.values()))

    @property
    def busy(self) -> int:
        """The number of jobs that run."""
        return sum(self._running.values())

    @property
    def is_ready(self) -> bool:
        """Whether the processes are started."""
        return bool(self._free) or self.busy > 0

    async def ask(self, tenant: str, job: Job) -> Reply:
        """The reply to a job. Raises ``Refused`` if too many jobs of the tenant wait, or if this job has waited too
        long.
        """
        queue = self._queues.setdefault(tenant, deque())
        if len(queue) >= self._limits.queue:
            raise busy(f"{counted(len(queue), 'request')} of the same tenant already waiting", self._delay())
        loop = asyncio.get_running_loop()
        waiting = _Waiting(job, loop.create_future(), time.monotonic())
        queue.append(waiting)
        self._next()
        timer = loop.call_later(self._limits.waiting, self._give_up, tenant, waiting)
        try:
            return await waiting.reply
        finally:
            timer.cancel()

    async def close(self) -> None:
        """End the processes. Waiting jobs are refused, and processes that still work on a job are killed."""
        self._is_over = True
        for waiting in [each for queue in self._queues.values() for each in queue]:
            if not waiting.reply.done():
                waiting.reply.set_exception(
                    Refused("ending", "this server is shutting down", "use another server", retry_after=1)
                )
        self._queues.clear()
        for process in self._processes - {worker.process for worker in self._free}:
            process.kill()
        while self._tasks:
            await asyncio.wait(self._tasks)
        for worker in self._free:
            worker.ends.close()
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(None, self._end)

    def kill(self) -> None:
        """Kill all processes at once."""
        self._is_over = True
        for process in list(self._processes):
            process.kill()
        self._threads.shutdown(wait=False, cancel_futures=True)

    # --- who is next ----------------------------------------------------------------------------------------------

    def _give_up(self, tenant: str, waiting: _Waiting) -> None:
        queue = self._queues.get(tenant)
        if queue is not None and waiting in queue:
            queue.remove(waiting)
            waiting.reply.set_exception(
                busy(f"it waited for {self._limits.waiting:g} seconds", self._delay())
            )

    def _delay(self) -> int:
        """Seconds after which a client should try again."""
        return max(1, math.ceil(self.waiting * self._mean / self._limits.workers))

    def _next(self) -> None:
        """Give jobs to free processes."""
        while self._free:
            tenant = self._turn()
            if tenant is None:
                return
            waiting = self._queues[tenant].popleft()
            if waiting.reply.done():  # nobody waits for it any more
                continue
            self._queues.move_to_end(tenant)
            self._running[tenant] = self._running.get(tenant, 0) + 1
            task = asyncio.ensure_future(self._run(self._free.popleft(), tenant, waiting))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    def _turn(self) -> str | None:
        """The tenant whose turn it is; None if nobody may have one. If several tenants have queues, one that uses all
        processes except one leaves the last to others.
        """
        most = max(1, self._limits.workers - (len(self._queues) > 1))
        for tenant, queue in self._queues.items():
            if queue and self._running.get(tenant, 0) < most:
                return tenant
        return None

    async def _run(self, worker: _Worker, tenant: str, waiting: _Waiting) -> None:
        loop = asyncio.get_running_loop()
        began = time.monotonic()
        reply = None
        for turn in range(_TURNS):
            if turn:
                worker = await self._renewed(worker)
            reply = await loop.run_in_executor(self._threads, self._drive, worker, waiting.job)
            if reply is not None or self._is_over:
                break
        reply = reply or died(worker.process.exitcode)
        self._mean += _WEIGHT * (time.monotonic() - began - self._mean)
        if not waiting.reply.done():
            waiting.reply.set_result(reply)
        if reply.tired and not self._is_over:
            worker = await self._renewed(worker)
        self._free.append(worker)
        self._running[tenant] -= 1
        if not self._running[tenant]:
            del self._running[tenant]
        self._next()

    async def _renewed(self, worker: _Worker) -> _Worker:
        """A new process in place of ``worker``, as soon as one can be started: the computer may be out of memory for a
        while. If the server shuts down meanwhile, ``worker`` itself.
        """
        loop = asyncio.get_running_loop()
        await loop.run_in_executor(self._threads, self._discard, worker)
        while not self._is_over:
            try:
                return await loop.run_in_executor(self._threads, self._start)
            except Exception as error:
                if not self._is_over:
                    logs.event("no process could be started", logging.ERROR, error=str(error))
                    await asyncio.sleep(1)
        return worker

    # --- processes, in threads ------------------------------------------------------------------------------------

    def _drive(self, worker: _Worker, job: Job) -> Reply | None:
        """The reply to a job; None if the process had died before it got the job."""
        if worker.process.exitcode is not None:
            self.deaths["crash"] += 1
            return None
        before = processor_seconds(worker.process.pid)
        try:
            worker.ends.send(job)
            if worker.ends.poll(self._limits.seconds):
                reply: Reply = worker.ends.recv()
                if reply.tired:
                    self.deaths["memory" if reply.code == "over_limit" else "tired"] += 1
                return reply
            now = processor_seconds(worker.process.pid)
            late = over_time(self._limits, None if before is None or now is None else now - before)
            self.deaths["time" if late.code == "over_limit" else "overload"] += 1
            return late
        except Exception as error:
            if not isinstance(error, EOFError | OSError):  # whatever it is, the job gets a reply
                logs.LOGGER.exception("fault")
                worker.process.kill()
            worker.process.join(5)
            self.deaths["crash"] += 1
            return died(worker.process.exitcode)

    def _discard(self, worker: _Worker) -> None:
        worker.process.kill()
        worker.ends.close()
        worker.process.join()
        self._processes.discard(worker.process)

    def _start(self) -> _Worker:
        """A new process that is ready."""
        forked = "forkserver" if sys.platform == "linux" else "spawn"
        context: Any = get_context(forked)
        with self._starting:  # of servers in one process, each has its own vocabularies
            if forked == "forkserver":
                context.set_forkserver_preload([serve.__module__])
                os.environ[PRELOAD] = json.dumps([spec for _, spec in self._work.vocabularies])
            own, other = context.Pipe()
            process = context.Process(target=serve, args=(other, self._work), daemon=True)
            process.start()
            self._processes.add(process)
            os.environ.pop(PRELOAD, None)
        other.close()
        try:
            if not own.poll(_START):
                raise EOFError
            found = own.recv()
        except (EOFError, OSError):
            process.kill()
            process.join()
            self._processes.discard(process)
            raise WorkerError(
                f"a worker process ended with the code {process.exitcode} before it was ready"
            ) from None
        if isinstance(found, str):
            raise WorkerError(found)
        self.vocabularies = found
        return _Worker(process, own)

    def _end(self) -> None:
        self._threads.shutdown()
        for worker in self._free:
            worker.process.join(1)
            if worker.process.exitcode is None:
                worker.process.kill()
                worker.process.join()
            self._processes.discard(worker.process)
