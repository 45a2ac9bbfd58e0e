"""Turns at a slow storage: who asks for much delays the others by one turn, and what many ask for is read once."""

from __future__ import annotations

import asyncio
import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import islice
from pathlib import Path

import pytest

from tokenfst.server.limits import Limits

pytest.importorskip("starlette", reason="the extra serve is not installed")
pytest.importorskip("uvicorn", reason="the extra serve is not installed")
pytest.importorskip("prometheus_client", reason="the extra serve is not installed")
httpx = pytest.importorskip("httpx", reason="the tests of the server need httpx")

from support.programs.constraint_server import KEYS, Running, serving

from tokenfst.errors import NotInStoreError
from tokenfst.server.front.turns import FairTurns
from tokenfst.server.refusals import Refused

MOST, QUEUE = 3, 5


def test_turns_are_bounded_and_go_round_the_tenants() -> None:
    async def main(chance: random.Random) -> None:
        turns = FairTurns(MOST, QUEUE, 60)
        inside, order = 0, []

        async def use(tenant: str) -> None:
            nonlocal inside
            await turns.enter(tenant)
            inside += 1
            assert inside <= MOST
            order.append(tenant)
            try:
                await asyncio.sleep(0)
            finally:
                inside -= 1
                turns.leave()

        names = [*["loud"] * (MOST + QUEUE), "one", "two", "loud"]
        tasks = [asyncio.create_task(use(name)) for name in names]
        found = await asyncio.gather(*tasks, return_exceptions=True)
        assert isinstance(found[-1], Refused) and found[-1].code == "busy" and found[:-1] == [None] * 10
        assert order[MOST : MOST + 3] == ["loud", "one", "two"]
        for _ in range(200):  # also if some stop to wait, in whatever moment
            tasks = [asyncio.create_task(use(chance.choice("abc"))) for _ in range(chance.randrange(9))]
            for task in tasks:
                if chance.random() < 0.3:
                    await asyncio.sleep(0)
                    task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            assert (inside, turns._free, turns._waiting) == (0, MOST, {})

    asyncio.run(main(random.Random(5)))


def test_who_waits_too_long_for_a_turn_is_told() -> None:
    async def main() -> None:
        turns = FairTurns(1, QUEUE, 0.05)
        await turns.enter("one")
        with pytest.raises(Refused, match=r"waited for 0\.05 seconds"):
            await turns.enter("two")
        turns.leave()
        await turns.enter("two")

    asyncio.run(main())


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    with serving(tmp_path, Limits(workers=1, seconds=60, memory=1 << 30, queue=40)) as found:
        yield found


def test_one_tenant_does_not_keep_the_storage_from_another(running: Running) -> None:
    held, order = threading.Event(), []

    def slowly(url: str, name: str) -> memoryview:
        order.append(url.rpartition("/")[2])
        assert held.wait(60)
        raise NotInStoreError("")

    running.server._out_of_store = slowly  # type: ignore[method-assign]
    with httpx.Client(base_url=running.url, timeout=120) as client, ThreadPoolExecutor(60) as threads:

        def ask(tenant: str, number: int) -> int:
            path = f"/v1/constraints/{number:064x}/artifact"
            return int(client.get(path, headers={"x-api-key": KEYS[tenant]}).status_code)

        loud = [threads.submit(ask, "acme", number) for number in range(54)]
        first = [each.result() for each in islice(as_completed(loud), 10)]
        assert first == [429] * 10  # four are read, and forty wait
        quiet = threads.submit(ask, "other", 0)
        while "other" not in running.server._readers._waiting:
            time.sleep(0.01)
        held.set()
        assert quiet.result() == 404 and {each.result() for each in loud} == {404, 429}
    assert order.index("other") <= 6


def test_what_many_ask_for_is_read_once(running: Running) -> None:
    """And nobody holds a second copy of what is too large to be cached."""
    held, reads = threading.Event(), []
    running.server._artifacts._most = 4

    def slowly(url: str, name: str) -> memoryview:
        reads.append(name)
        assert held.wait(60)
        return memoryview(b"artifact" * 1000)

    running.server._out_of_store = slowly  # type: ignore[method-assign]
    headers = {"x-api-key": KEYS["acme"]}
    with httpx.Client(base_url=running.url, timeout=120) as client, ThreadPoolExecutor(20) as threads:
        path = f"/v1/constraints/{'0' * 64}/artifact"
        asked = [threads.submit(client.get, path, headers=headers) for _ in range(20)]
        while not reads:
            time.sleep(0.01)
        client.get("/v1/vocabularies", headers=headers)
        held.set()
        assert {each.result().content for each in asked} == {b"artifact" * 1000}
    assert len(reads) < 5  # one, and those that came after all had their answer
