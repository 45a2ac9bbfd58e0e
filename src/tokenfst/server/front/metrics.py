"""Metrics for Prometheus. No label has the name of a tenant, or another value that a client chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The counters of one server. ``now``: gauges by name and help, read on request; ``deaths``: the number of replaced
    processes, by reason.
    """

    def __init__(self, now: dict[str, tuple[str, Callable[[], float]]], deaths: dict[str, int]) -> None:
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        PlatformCollector(registry=self._registry)
        self.requests = Counter(
            "tokenfst_requests", "Requests that were answered", ["route", "status"], registry=self._registry
        )
        self.seconds = Histogram(
            "tokenfst_request_seconds",
            "Seconds from the first byte of a request to its answer",
            ["route", "cached"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.late = Histogram(
            "tokenfst_late_seconds",
            "How late the process in front comes to what it has to do, measured ten times a second",
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self._registry.register(_Now(now, deaths))

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        found: bytes = generate_latest(self._registry)
        return found


class _Now:
    def __init__(self, now: dict[str, tuple[str, Callable[[], float]]], deaths: dict[str, int]) -> None:
        self._now, self._deaths = now, deaths

    def collect(self) -> Iterable[Any]:
        """The current value of the gauges."""
        for name, (words, read) in self._now.items():
            yield GaugeMetricFamily(f"tokenfst_{name}", words, value=read())
        replaced = CounterMetricFamily(
            "tokenfst_workers_replaced",
            "Processes that were replaced: out of time, out of memory, ended by themselves, grown",
            labels=["why"],
        )
        for why, number in self._deaths.items():
            replaced.add_metric([why], number)
        yield replaced
