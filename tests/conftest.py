"""Fixtures that several test files share."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator

import pytest
from hypothesis import settings
from support.programs.chromium import browser, page
from support.running import fast, shards
from support.running.shards import (
    pytest_collection_modifyitems,
    pytest_runtest_setup,
    pytest_terminal_summary,
    pytest_testnodedown,
)

from tokenfst import Vocabulary, load_vocabulary

__all__ = [
    "browser",
    "page",
    "pytest_collection_modifyitems",
    "pytest_runtest_setup",
    "pytest_terminal_summary",
    "pytest_testnodedown",
]


# A commit passes or fails wherever and whenever it is tested: property tests take the same examples each time.
# `--hypothesis-profile=random` (`make test-random`) takes others.
settings.register_profile("random")
settings.register_profile("repeatable", derandomize=True)
settings.load_profile("repeatable")


def pytest_addoption(parser: pytest.Parser) -> None:
    shards.pytest_addoption(parser)
    fast.add_options(parser)


def pytest_configure(config: pytest.Config) -> None:
    if config.getoption("--fast"):
        config.pluginmanager.register(fast.Fast(config))
    # A shell starts what runs in the background with Ctrl-C ignored, and processes hand that on to the programs tested.
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Python's garbage collections do not look at the million objects that collecting 14,000 tests leaves: neither
    meanwhile, which takes a quarter of its time, nor later.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="module")
def uncollected() -> None:
    """Python's full collections do not look at what other tests have left: with six million objects one takes 0.4 s."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def tekken() -> Vocabulary:
    """The real vocabulary of 131,072 tokens that the mistral-common wheel carries."""
    return load_vocabulary("mistral:tekken_240911")


@pytest.fixture(scope="module")
def one_torch_thread() -> Iterator[None]:
    """Torch in one thread: two that wait for each other are far slower where others use the machine too."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
