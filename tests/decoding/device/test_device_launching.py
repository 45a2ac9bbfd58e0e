"""Kernels started the short way: only arguments that are alike to Triton share a compiled kernel."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
launching = pytest.importorskip("tokenfst.decoding.device.kernels.launching")


class Compiled:
    """What Triton returns, as far as it is used: started by ``compiled[grid](*arguments)``."""

    def __init__(self, takes: int) -> None:
        self.takes, self.starts = takes, []  # type: tuple[int, list[Any]]

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def start(*arguments: Any) -> None:
            if len(arguments) != self.takes:
                raise TypeError(f"takes {self.takes} arguments")
            self.starts.append((grid, arguments))

        return start


class Kernel:
    arg_names = ("values", "count", "first", "second")

    def __init__(self, takes: int = 4, *, interpreted: bool = False) -> None:
        self.takes, self.interpreted = takes, interpreted
        self.slow: list[Any] = []
        self.made: list[Compiled] = []

    def __getitem__(self, grid: tuple[int, ...]) -> Any:
        def start(*arguments: Any, **constants: Any) -> Compiled | None:
            self.slow.append((grid, arguments, constants))
            if self.interpreted:
                return None
            self.made.append(Compiled(self.takes))
            return self.made[-1]

        return start


@pytest.fixture(autouse=True)
def _nothing_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "_DIRECT", True)
    monkeypatch.setattr(launching, "_KEPT", {})
    monkeypatch.setattr(launching, "_REFUSED", set())


def started(kernel: Kernel, values: Any, count: int, second: int = 8, grid: tuple[int, ...] = (3,)) -> None:
    launching.launch(kernel, grid, (values, count), {"second": second, "first": True}, 4)


def test_the_second_launch_is_direct_and_in_the_order_of_the_signature() -> None:
    kernel, values = Kernel(), torch.zeros(32)
    started(kernel, values, 5)
    started(kernel, values, 7, grid=(2, 9))
    assert len(kernel.slow) == 1 and kernel.slow[0][2] == {"second": 8, "first": True, "num_warps": 4}
    ((grid, arguments),) = kernel.made[0].starts
    assert grid == (2, 9, 1) and arguments[0] is values and arguments[1:] == (7, True, 8)


def test_what_triton_looks_at_tells_launches_apart() -> None:
    kernel, values = Kernel(), torch.zeros(32)
    alike = [(values, 5), (values[4:], 7), (torch.ones(9), 2**31 - 1), (values, -3)]
    for arguments in alike:
        started(kernel, *arguments)
    assert len(kernel.slow) == 1
    others = [
        (values[1:], 5),
        (values, 1),
        (values, 48),
        (values, 2**31 + 1),
        (values.half(), 5),
        (values.int(), 5),
    ]
    for place, arguments in enumerate(others):
        started(kernel, *arguments)
        assert len(kernel.slow) == 2 + place
    started(kernel, values, 5, second=9)
    other = Kernel()
    started(other, values, 5)
    assert len(kernel.slow) == 8 and len(other.slow) == 1


def test_another_triton_keeps_its_own_launcher() -> None:
    kernel = Kernel(takes=2)
    for _ in range(4):
        started(kernel, torch.zeros(4), 5)
    assert len(kernel.slow) == 4 and not any(made.starts for made in kernel.made)


def test_the_interpreter_keeps_nothing() -> None:
    kernel = Kernel(interpreted=True)
    for _ in range(3):
        started(kernel, torch.zeros(4), 5)
    assert len(kernel.slow) == 3 and not launching._KEPT


def test_keys_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(launching, "_MOST", 3)
    kernel = Kernel()
    for second in range(20):
        started(kernel, torch.zeros(4), 5, second)
        assert len(launching._KEPT) <= 3
