"""Metrics for Prometheus. No label contains the name of a tenant or another value that a client chooses."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Histogram, PlatformCollector, ProcessCollector
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest

TYPE = CONTENT_TYPE_LATEST
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)


class Metrics:
    """The metrics of one server. ``now``: for each gauge, by name, its help and a function that reads its value;
    ``deaths``: the number of replaced worker processes, by reason.
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
            "Seconds from the arrival of a request's headers to the beginning of its answer",
            ["route", "cached"],
            buckets=_BUCKETS,
            registry=self._registry,
        )
        self.late = Histogram(
            "tokenfst_late_seconds",
            "Delay of the event loop of the HTTP process in seconds, measured ten times a second",
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
            "Worker processes that were replaced: out of time, delayed by other work (overload), out of memory, ended "
            "by themselves (crash), grown too large (tired)",
            labels=["why"],
        )
        for why, number in self._deaths.items():
            replaced.add_metric([why], number)
        yield replaced
