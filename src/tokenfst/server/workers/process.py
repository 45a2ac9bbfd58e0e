"""A process that answers questions, one at a time, and may be killed at any of them.

It gets the bytes of a body and gives back those of an answer. What it may take of memory is bounded by the operating
system (``RLIMIT_AS``): then the library raises, or the process dies, and both are told. Afterwards, and when it has
grown by half of what it may, it asks to be replaced, since memory that was given out in small pieces does not come
back. Processes are forked from one that holds the vocabularies already (``multiprocessing``'s fork server), so a new
one takes milliseconds, and all share those pages.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cache
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from tokenfst.automata.notations.ebnf import ebnf
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.common.clock_cache import Recent
from tokenfst.common.plurals import counted
from tokenfst.decoding.store.batch import members_of
from tokenfst.decoding.store.store import Store
from tokenfst.errors import ConstraintError, TokenfstError
from tokenfst.server.limits import Limits
from tokenfst.server.refusals import Refused, late, refused
from tokenfst.server.workers.questions import WorkerState, answer
from tokenfst.tokenizers.adapters.sources import load_vocabulary
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

try:
    import resource
except ImportError:  # not on Windows
    resource = None  # type: ignore[assignment]

PRELOAD = "TOKENFST_SERVE_VOCABULARIES"
"""The environment variable that tells the fork server which vocabularies to load (JSON)."""
_TENANTS = 64
_NICE = 10
"""A worker's priority is lower by this: on a busy computer the process in front goes on."""
_PAGE = 4096 if resource is None else resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Work:
    """What all workers of a server are told. ``vocabularies``: what ``load_vocabulary`` reads, by their names;
    ``store_options``: of every ``Store``.
    """

    vocabularies: tuple[tuple[str, str], ...]
    limits: Limits
    store_options: Mapping[str, Any] = field(repr=False)  # a private key may be among them


@dataclass(frozen=True, slots=True)
class Job:
    """One question: its name, the body of the request, members that the path and the query say, and the tenant's
    store.
    """

    question: str
    body: bytes
    extra: tuple[tuple[str, str], ...]
    store: str


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, or a refusal. ``keep``: whether the same question would get the same answer; ``tired``: the process
    wants to be replaced; ``code``: of a refusal; ``detail``: what the log says and the client does not learn.
    """

    status: int
    body: bytes
    keep: bool = False
    tired: bool = False
    code: str = ""
    retry_after: int | None = None
    detail: str = ""


@cache
def loaded(spec: str) -> Vocabulary:
    """A vocabulary, with its core, loaded once in a process and those that are forked from it."""
    found = load_vocabulary(spec)
    _ = found.native
    return found


def preload() -> None:
    """What the fork server does when it imports this module. Where a vocabulary cannot be had, each process finds that
    out, and tells it. The first constraint of each notation loads what its front end needs (of Lark's the package lark,
    most of a second), which a new process then need not do.
    """
    with suppress(TokenfstError):
        gbnf('root ::= "a"')
        ebnf('root ::= "a"')
        lark_grammar('start: "a"')
    for spec in json.loads(os.environ.get(PRELOAD, "[]")):
        with suppress(Exception):
            loaded(spec)
    gc.freeze()  # so that no collection in a process writes to the pages that all share


def serve(ends: Connection, work: Work) -> None:
    """What a process does: vocabularies first, then jobs in and replies out, until nobody asks any more."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # who asked for it closes this connection when all is done
    try:
        try:
            vocabularies = {name: loaded(spec) for name, spec in work.vocabularies}
        except Exception as error:
            ends.send(str(error) or type(error).__name__)
            return
        ends.send([(name, each.fingerprint, len(each)) for name, each in vocabularies.items()])
        bounds = _bound(work.limits.memory)
        if hasattr(os, "nice"):
            os.nice(_NICE)
        stores: Recent[str, WorkerState] = Recent(_TENANTS)
        while True:
            job: Job = ends.recv()
            reply = _reply(job, work, vocabularies, stores)
            ends.send(replace(reply, tired=True) if bounds() else reply)
    except (EOFError, BrokenPipeError, ConnectionResetError, KeyboardInterrupt):
        return


def _reply(
    job: Job, work: Work, vocabularies: Mapping[str, Vocabulary], stores: Recent[str, WorkerState]
) -> Reply:
    begun = time.process_time()
    try:
        state = stores.get(
            job.store,
            lambda: WorkerState(vocabularies, Store(job.store, **work.store_options), work.limits.budget),
        )
        body = _members(job)
        made = json.dumps(answer(job.question, body, state)).encode()
        if len(made) > work.limits.answer:
            raise Refused(
                "over_limit",
                f"the answer has {counted(len(made), 'byte')}",
                f"this server allows {work.limits.answer:,}",
            )
        return Reply(200, made, keep=job.question != "sample" or "seed" in body)
    except MemoryError:
        return over_memory(work.limits)
    except Exception as error:  # whatever it is, the next one is another
        found = refused(error, used=time.process_time() - begun)
        if found.code == "fault":
            sys.excepthook(type(error), error, error.__traceback__)
        keep, detail = found.code == "bad_constraint", str(error) if found.code == "store" else ""
        return Reply(found.status, found.body(), keep, False, found.code, found.retry_after, detail)


def _members(job: Job) -> dict[str, Any]:
    """The members of a request: those of its body and of its path."""
    try:
        found = members_of(job.body) if job.body else {}
    except ConstraintError as error:
        raise Refused("bad_request", f"the body: {error}", "send one JSON object, in UTF-8") from None
    return found | dict(job.extra)


def over_memory(limits: Limits) -> Reply:
    """Refused for what it took of memory."""
    found = Refused(
        "over_limit",
        f"it needs more than {counted(limits.memory, 'byte')} of memory",
        "this server allows no more: make the constraint smaller",
        "BudgetExceeded",
    )
    return Reply(found.status, found.body(), tired=True, code=found.code)


def over_time(limits: Limits, used: float | None) -> Reply:
    """Refused for what it took of time, of which it had a processor for ``used`` seconds."""
    found = late(limits.seconds, used)
    return Reply(found.status, found.body(), tired=True, code=found.code, retry_after=found.retry_after)


def processor_seconds(process: int) -> float | None:
    """Seconds for which a process has had a processor; ``None`` where the system does not say."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):
        return None


def died(code: int | None) -> Reply:
    """Refused where the process ended by itself."""
    found = Refused(
        "died",
        f"the process that worked on it ended with the code {code} (below 0: the signal)",
        "if it happens again, make the constraint smaller, and report it",
    )
    return Reply(found.status, found.body(), tired=True, code=found.code)


def _bound(memory: int) -> Any:
    """Limits this process to this number of additional bytes; returns a test whether it has grown by half of that."""
    statm = Path("/proc/self/statm")
    if resource is None or not statm.exists():
        return lambda: False

    def pages(field: int) -> int:
        return int(statm.read_text().split()[field])

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    size = pages(0) * _PAGE + memory
    _, most = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY or size < most:
        resource.setrlimit(resource.RLIMIT_AS, (size, size))
    begun = pages(1)
    return lambda: (pages(1) - begun) * _PAGE > memory // 2


if os.environ.get(PRELOAD):
    preload()
