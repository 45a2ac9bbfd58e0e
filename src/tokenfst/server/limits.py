"""What bounds the server: nothing that a client sends makes it use more than this."""

from __future__ import annotations

import os
from dataclasses import dataclass, fields

from tokenfst.arguments import real, whole
from tokenfst.budget import Budget

_PART = 0.8
"""Of a job's time, for one construction."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds of one server.

    ``workers``: processes that compile, and so constraints that are compiled at once. ``seconds``: wall-clock time that
    a request may take there before its process is killed; it is refused for good only if it had a processor for most of
    them. ``memory``: bytes that one may take beyond what its process
    has when it starts. ``states``: of an automaton. ``body``: bytes of a request. ``answer``: bytes of an answer that
    is no artifact. ``queue``: requests of one tenant that wait for a worker. ``waiting``: seconds that they wait at
    most. ``reading``: seconds in which a body must have arrived. ``kept``: bytes of answers that are kept in memory,
    and again as many of artifacts. ``grace``: seconds that requests have to be finished when the server ends.
    ``connections``: open ones.
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
    kept: int = 64 << 20
    grace: float = 30.0
    connections: int = 2048

    def __post_init__(self) -> None:
        for field in fields(self):
            given = getattr(self, field.name)
            if field.type == "int":
                whole("Limits", field.name, given, 0 if field.name in ("workers", "kept") else 1)
            elif not real("Limits", field.name, given) > 0:
                raise ValueError(f"Limits({field.name}=...) must be positive, not {given!r}")
        if not self.workers:
            object.__setattr__(self, "workers", max(1, os.cpu_count() or 1))

    @property
    def budget(self) -> Budget:
        """What each construction in a worker may take: less than a job as a whole, so that the library says what
        grew before the process is killed."""
        return Budget(states=self.states, bytes=max(1, self.memory // 2), seconds=_PART * self.seconds)
