"""The bounds of the server: no request makes it use more than these."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields

from tokenfst.budget import Budget
from tokenfst.common.arguments import real, refuse, whole
from tokenfst.errors import ArgumentValueError

_PART = 0.8
"""The fraction of a job's time that one construction may take."""
LONGEST = 1_000_000
"""The greatest number of seconds of a limit. The system's clocks have no room for much larger ones."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one server.

    ``workers``: the number of worker processes, and so of constraints that are compiled at the same time (0: one for
    each CPU). ``seconds``: wall-clock time that a request may take in a worker; then the worker is killed. The client
    is told to try again if the request had a processor for less than three quarters of that time. ``memory``: bytes
    that a worker may allocate beyond those at its start. ``states``: states of an automaton. ``body``: bytes of a
    request's body. ``answer``: bytes of an answer that is not an artifact. ``queue``: requests of one tenant that wait
    for a worker. ``waiting``: seconds that a request may wait. ``reading``: seconds within which the headers or the
    body of a request must arrive, and within which a client must read the next part of its answer. ``memory_cache``:
    bytes of cached answers; cached artifacts may take as many again. ``grace``: seconds to finish open requests when
    the server shuts down. ``connections``: open connections.
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
            elif not 0 < real("Limits", field.name, given) <= LONGEST:
                refuse("Limits", field.name, given, f"positive and at most {LONGEST:,}", ArgumentValueError)
        if not self.workers:
            object.__setattr__(self, "workers", max(1, os.cpu_count() or 1))

    @property
    def budget(self) -> Budget:
        """The budget of each construction in a worker. It has less time and memory than the whole job, so that the
        library reports what was too large before the worker is killed.
        """
        return Budget(states=self.states, bytes=max(1, self.memory // 2), seconds=_PART * self.seconds)
