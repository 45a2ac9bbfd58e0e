"""The bounds of the server: no request makes it use more than these."""

from __future__ import annotations

import math
import os
from dataclasses import dataclass, fields

from tokenfst.budget import Budget
from tokenfst.common.arguments import real, refuse, whole
from tokenfst.errors import ArgumentValueError

_PART = 0.8
"""The part of a job's time that one construction may take."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one server.

    ``workers``: the number of processes that compile, and so of constraints that are compiled at the same time.
    ``seconds``: wall-clock time that a request may take in a process before that is killed; the refusal is final only
    if the request had a processor for most of them. ``memory``: bytes that a process may take beyond those at its
    start. ``states``: of an automaton. ``body``: bytes of a request. ``answer``: bytes of an answer that is not an
    artifact. ``queue``: requests of one tenant that wait for a worker. ``waiting``: the greatest number of seconds that
    they wait. ``reading``: seconds within which headers, or a body, must arrive, and within which a client must take a
    part of its answer. ``memory_cache``: bytes of cached answers, and
    again as many of cached artifacts. ``grace``: seconds for open requests when the server shuts down.
    ``connections``: open connections.
    """

    workers: int = 0
    seconds: float = 10.0
    memory: int = 1 << 30
    states: int = 1_000_000
    body: int = 1 << 20
    answer: int = 4 << 20
    queue: int = 64
    waiting: float = 30.0
    reading: float = 20.0
    memory_cache: int = 64 << 20
    grace: float = 30.0
    connections: int = 2048

    def __post_init__(self) -> None:
        for field in fields(self):
            given = getattr(self, field.name)
            if field.type == "int":
                whole("Limits", field.name, given, 0 if field.name in ("workers", "memory_cache") else 1)
            elif not 0 < real("Limits", field.name, given) < math.inf:
                refuse("Limits", field.name, given, "positive and finite", ArgumentValueError)
        if not self.workers:
            object.__setattr__(self, "workers", max(1, os.cpu_count() or 1))

    @property
    def budget(self) -> Budget:
        """The budget of each construction in a worker. It is smaller than that of a whole job, so that the library
        reports what was too large before the process is killed.
        """
        return Budget(states=self.states, bytes=max(1, self.memory // 2), seconds=_PART * self.seconds)
