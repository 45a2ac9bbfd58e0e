"""Results that are kept for a while: the oldest goes, errors are not kept, threads share one."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from tokenfst.common.clock_cache import Recent


def test_the_oldest_goes() -> None:
    recent: Recent[int, list[int]] = Recent(3)
    made = [recent.get(key, lambda key=key: [key]) for key in range(4)]  # type: ignore[misc]
    assert all(recent.get(key, list) is made[key] for key in (1, 2, 3))
    assert recent.get(0, list) == []


def test_errors_are_not_kept() -> None:
    recent: Recent[int, str] = Recent(3)
    with pytest.raises(ZeroDivisionError):
        recent.get(1, lambda: str(1 // 0))
    assert recent.get(1, lambda: "made") == "made"


def test_threads() -> None:
    recent: Recent[int, int] = Recent(5)

    def ask(start: int) -> bool:
        return all(
            recent.get(key % 40, lambda key=key: key % 40) == key % 40 for key in range(start, start + 20_000)
        )  # type: ignore[misc]

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(ask, range(0, 40, 10)))
    assert len(recent.known) == 5


def test_what_threads_left_goes_too() -> None:
    recent: Recent[int, int] = Recent(3)
    recent.known.update({key: key for key in range(10)})  # two threads may have removed the same result
    assert recent.get(10, lambda: 10) == 10
    assert sorted(recent.known) == [8, 9, 10]
