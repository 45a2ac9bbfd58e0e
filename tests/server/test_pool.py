"""Processes that answer: each job gets a reply, whatever becomes of its process, and nobody else notices."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.programs.constraint_server import small_vocabulary

from tokenfst import _native, load_vocabulary
from tokenfst.common.clock_cache import Recent
from tokenfst.errors import BudgetExceeded
from tokenfst.server.limits import Limits
from tokenfst.server.refusals import Refused, refused
from tokenfst.server.workers import questions
from tokenfst.server.workers.pool import Pool, WorkerError
from tokenfst.server.workers.process import Job, Reply, Work, _reply, processor_seconds

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes are stopped by signals")
LIMITS = Limits(workers=2, seconds=60, memory=1 << 28, queue=8, waiting=60)


def run(folder: Path, limits: Limits, test: Callable[[Pool, Callable[..., Job]], Awaitable[None]]) -> None:
    async def main() -> None:
        pool = Pool(Work((("small", small_vocabulary(folder)),), limits, {}))
        await pool.start()

        def job(pattern: str, **more: object) -> Job:
            body = json.dumps({"constraint": {"regex": pattern}, "texts": ["a"]} | more).encode()
            return Job("check", body, (), f"{folder}/store")

        try:
            await test(pool, job)
        finally:
            await pool.close()
            pool.kill()

    asyncio.run(main())


def accepted(reply: Reply) -> bool:
    assert reply.status == 200, reply.body
    return bool(json.loads(reply.body)["accepted"])


def test_a_process_that_takes_too_long_or_dies_is_replaced(tmp_path: Path) -> None:
    async def test(pool: Pool, job: Callable[..., Job]) -> None:
        assert accepted(await pool.ask("one", job("a")))
        for worker in pool._free:
            os.kill(worker.process.pid, signal.SIGSTOP)  # whatever it does, it does not come to an end
        pool._limits = replace(LIMITS, seconds=0.2)
        late = await asyncio.gather(pool.ask("one", job("a")), pool.ask("one", job("b")))
        pool._limits = LIMITS
        for reply in late:
            error = json.loads(reply.body)["error"]
            assert reply.status == 503 and error["code"] == "overloaded" and "0.2 seconds" in error["message"]
            assert not reply.keep and reply.retry_after == 1  # it waited, and may have better luck
        while len(pool._free) < 2:
            await asyncio.sleep(0.01)
        for worker in pool._free:
            os.kill(worker.process.pid, signal.SIGSTOP)
        dying = [asyncio.ensure_future(pool.ask("one", job("a"))) for _ in range(2)]
        while pool.busy < 2:
            await asyncio.sleep(0.01)
        for process in list(pool._processes):
            os.kill(process.pid, signal.SIGKILL)
        for reply in await asyncio.gather(*dying):
            assert reply.status == 500 and b"code -9" in reply.body
        assert accepted(await pool.ask("one", job("a"))) and not accepted(await pool.ask("one", job("b")))
        assert pool.deaths["overload"] == pool.deaths["crash"] == 2 and len(pool._processes) == 2
        assert not pool.deaths["time"]

    run(tmp_path, LIMITS, test)


def test_a_process_that_was_killed_while_it_was_idle_costs_no_job(tmp_path: Path) -> None:
    """As by the kernel when memory is short: nothing was asked of it."""

    async def test(pool: Pool, job: Callable[..., Job]) -> None:
        for turn in range(1, 4):
            for worker in pool._free:
                os.kill(worker.process.pid, signal.SIGKILL)
                worker.process.join()
            replies = await asyncio.gather(*(pool.ask("one", job("a")) for _ in range(4)))
            assert [reply.status for reply in replies] == [200] * 4, replies
            while len(pool._free) < 2:
                await asyncio.sleep(0.01)
            assert pool.deaths["crash"] == 2 * turn and len(pool._processes) == 2

    run(tmp_path, LIMITS, test)


def test_a_job_is_given_up_where_no_process_lives_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def test(pool: Pool, job: Callable[..., Job]) -> None:
        drive, found = pool._drive, []

        def killing(worker: Any, given: Job) -> Reply | None:
            found.append(worker.process.pid)
            worker.process.kill()
            worker.process.join()
            return drive(worker, given)

        monkeypatch.setattr(pool, "_drive", killing)
        reply = await pool.ask("one", job("a"))
        assert (reply.status, reply.code) == (500, "died") and len(set(found)) == 3
        monkeypatch.setattr(pool, "_drive", drive)
        assert accepted(await pool.ask("one", job("a")))

    run(tmp_path, replace(LIMITS, workers=1), test)


def test_the_end_waits_for_no_job_that_nobody_waits_for(tmp_path: Path) -> None:
    """Jobs whose requests were cut off after ``grace`` seconds: those that run and those in the queue."""

    async def test(pool: Pool, job: Callable[..., Job]) -> None:
        for worker in pool._free:
            os.kill(worker.process.pid, signal.SIGSTOP)
        asked = [asyncio.ensure_future(pool.ask("one", job("a"))) for _ in range(6)]
        while pool.busy < 2:
            await asyncio.sleep(0.01)
        await asyncio.wait_for(pool.close(), 30)
        replies = await asyncio.gather(*asked, return_exceptions=True)
        codes = [each.code for each in replies if isinstance(each, Reply | Refused)]
        assert sorted(codes) == ["died"] * 2 + ["ending"] * 4
        assert not any(process.is_alive() for process in pool._processes)

    run(tmp_path, LIMITS, test)


def test_who_used_the_processor_for_the_whole_time_is_refused_for_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two jobs that do not come to an end in time, by the processor time that the system tells of their process."""
    seconds = iter([1.0, 1.2, 5.0, 5.04])
    monkeypatch.setattr("tokenfst.server.workers.pool.processor_seconds", lambda process: next(seconds))

    async def test(pool: Pool, job: Callable[..., Job]) -> None:
        for status, code in ((422, "over_limit"), (503, "overloaded")):
            while not pool._free:
                await asyncio.sleep(0.01)
            os.kill(pool._free[0].process.pid, signal.SIGSTOP)
            reply = await pool.ask("one", job("a"))
            assert (reply.status, reply.code) == (status, code)
        assert pool.deaths["time"] == pool.deaths["overload"] == 1

    run(tmp_path, replace(LIMITS, workers=1, seconds=0.2), test)


def test_a_job_gets_a_reply_whatever_its_connection_raises(tmp_path: Path) -> None:
    class Broken:
        def __init__(self, ends: Any) -> None:
            self.send, self.close = ends.send, ends.close

        def poll(self, seconds: float) -> bool:
            raise OverflowError("timestamp too large")

    async def test(pool: Pool, job: Callable[..., Job]) -> None:
        (worker,) = pool._free
        worker.ends = Broken(worker.ends)  # type: ignore[assignment]
        reply = await asyncio.wait_for(pool.ask("one", job("a")), 60)
        assert (reply.status, reply.code) == (500, "died")
        assert accepted(await asyncio.wait_for(pool.ask("one", job("a")), 60))

    run(tmp_path, replace(LIMITS, workers=1), test)


def spin(seconds: float) -> None:
    until = time.process_time() + seconds
    while time.process_time() < until:
        pass


def test_processor_time_of_a_process_is_what_it_used() -> None:
    before = processor_seconds(os.getpid())
    spin(0.1)
    after = processor_seconds(os.getpid())
    assert before is not None and after is not None and 0.05 < after - before < 1
    assert processor_seconds(2**22 + 1) is None  # there is no such process


def test_a_construction_that_ran_out_of_time_is_judged_by_processor_time() -> None:
    error = BudgetExceeded("seconds", 8.0, "")
    assert refused(error, used=7.5).code == "over_limit"
    starved = refused(error, used=1.0)
    assert (starved.status, starved.code, starved.retry_after) == (503, "overloaded", 8)
    assert refused(BudgetExceeded("states", 8.0, ""), used=0.0).code == "over_limit"
    with pytest.raises(Refused) as waited, questions._about("constraint"):
        raise error
    assert (waited.value.code, waited.value.retry_after) == ("overloaded", 8)
    with pytest.raises(Refused) as worked, questions._about("constraint"):
        spin(0.1)
        raise BudgetExceeded("seconds", 0.1, "")
    assert (worked.value.code, worked.value.part) == ("over_limit", "constraint")


def test_the_log_has_the_message_of_the_storage(tmp_path: Path) -> None:
    (tmp_path / "artifacts").write_text("in the way")
    spec = small_vocabulary(tmp_path)
    job = Job("compile", b'{"constraint": {"regex": "a"}}', (), str(tmp_path))
    reply = _reply(job, Work((("small", spec),), LIMITS, {}), {"small": load_vocabulary(spec)}, Recent(1))
    assert (reply.status, reply.code) == (503, "store") and str(tmp_path) not in reply.body.decode()
    assert f"the store {tmp_path}: it, or a folder on the way to it, is" in reply.detail


@pytest.mark.skipif(hasattr(_native, "stress"), reason="sanitizers take memory of their own")
def test_memory_has_a_limit(tmp_path: Path) -> None:
    async def test(pool: Pool, job: Callable[..., Job]) -> None:
        reply = await pool.ask("one", job("a", nothing=[[]] * 3_000_000))
        assert reply.status == 422 and b"bytes of memory" in reply.body and not reply.keep
        assert pool.deaths["memory"] == 1
        assert accepted(await pool.ask("one", job("a")))

    run(tmp_path, replace(LIMITS, workers=1, memory=64 << 20), test)


def test_tenants_take_turns_and_leave_a_process_to_others(tmp_path: Path) -> None:
    async def test(pool: Pool, job: Callable[..., Job]) -> None:
        order: list[str] = []
        gate = asyncio.Event()
        loop = asyncio.get_running_loop()
        drive = pool._drive

        def slowly(worker: object, given: Job) -> Reply:
            order.append(given.store)
            asyncio.run_coroutine_threadsafe(gate.wait(), loop).result()
            return drive(worker, given)  # type: ignore[arg-type]

        pool._drive = slowly  # type: ignore[method-assign, assignment]
        await asyncio.gather(*(pool.ask(name, job("a")) for name in ("loud", "quiet")), release(gate))
        gate.clear()
        order.clear()
        asked = [pool.ask("loud", replace(job("a"), store=f"{tmp_path}/loud")) for _ in range(6)]
        tasks = [asyncio.ensure_future(each) for each in asked]
        await asyncio.sleep(0)
        tasks += [
            asyncio.ensure_future(pool.ask("quiet", replace(job("a"), store=f"{tmp_path}/quiet")))
            for _ in range(2)
        ]
        while pool.busy < 2:
            await asyncio.sleep(0.01)
        assert pool._running == {"loud": 1, "quiet": 1}
        gate.set()
        assert all(accepted(each) for each in await asyncio.gather(*tasks))
        names = [Path(each).name for each in order]
        assert names.index("quiet") <= 1 and names.count("loud") == 6

    async def release(gate: asyncio.Event) -> None:
        await asyncio.sleep(0.01)
        gate.set()

    run(tmp_path, LIMITS, test)


def test_who_waits_too_long_is_told(tmp_path: Path) -> None:
    async def test(pool: Pool, job: Callable[..., Job]) -> None:
        for worker in pool._free:
            os.kill(worker.process.pid, signal.SIGSTOP)
        running = asyncio.ensure_future(pool.ask("one", job("a")))
        while not pool.busy:
            await asyncio.sleep(0.01)
        with pytest.raises(Refused, match=r"waited for 0\.1 seconds") as caught:
            await pool.ask("one", job("b"))
        assert caught.value.code == "busy" and caught.value.retry_after and not pool.waiting
        (process,) = pool._processes
        os.kill(process.pid, signal.SIGCONT)
        assert accepted(await running)

    run(tmp_path, replace(LIMITS, workers=1, waiting=0.1), test)


def test_a_vocabulary_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    pool = Pool(Work((("none", f"tokens:{tmp_path}/none.json"),), replace(LIMITS, workers=1), {}))
    with pytest.raises(WorkerError, match=r"none\.json"):
        asyncio.run(pool.start())
    pool.kill()
