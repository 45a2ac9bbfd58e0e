"""A process that answers questions, one at a time, and may be killed at any of them.

It receives the bytes of a body and returns those of an answer. The operating system bounds its memory (``RLIMIT_AS``):
beyond the limit the library raises or the process dies, and the client gets a refusal in both cases. Then, and when its
memory has grown by half of the limit, it asks to be replaced, because fragmented memory is not given back. Processes
are forked from one that has loaded the vocabularies (``multiprocessing``'s fork server), so a new one takes
milliseconds, and all of them share those pages.
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
from tokenfst.errors import ArtifactError, ConstraintError, NotInStoreError, TokenfstError
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
"""The increment of a worker's niceness. With a lower priority than the HTTP process, workers do not delay it on a busy
computer.
"""
_PAGE = 4096 if resource is None else resource.getpagesize()


@dataclass(frozen=True, slots=True)
class Work:
    """The settings of all workers of a server.

    ``vocabularies``: pairs of a name and the argument of ``load_vocabulary``. ``store_options``: the arguments of every
    ``Store``.
    """

    vocabularies: tuple[tuple[str, str], ...]
    limits: Limits
    store_options: Mapping[str, Any] = field(repr=False)  # a private key may be among them


@dataclass(frozen=True, slots=True)
class Job:
    """One question: its name, the body of the request, the members that the path and the query add to it (``extra``),
    and the URL of the tenant's store.
    """

    question: str
    body: bytes
    extra: tuple[tuple[str, str], ...]
    store: str


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer, or a refusal with its ``code``.

    ``status``, ``body``: the HTTP status, and the JSON. ``keep``: whether the answer may be cached, because the same
    question would get the same answer. ``tired``: whether the process asks to be replaced. ``detail``: an error for the
    log, which the client must not see. ``id``: the entry that the answer describes, or that was found to be missing or
    damaged.
    """

    status: int
    body: bytes
    keep: bool = False
    tired: bool = False
    code: str = ""
    retry_after: int | None = None
    detail: str = ""
    id: str = ""


@cache
def loaded(spec: str) -> Vocabulary:
    """The vocabulary that ``spec`` names, with its native part. It is loaded once for a process and its forks."""
    found = load_vocabulary(spec)
    _ = found.native
    return found


def preload() -> None:
    """Load vocabularies and front ends, once, in the fork server, which calls this when it imports this module.

    Errors are ignored here: a process that needs a vocabulary raises them again. The first constraint in each notation
    imports its front end (Lark's takes most of a second), so that a new process does not have to.
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
    """The work of a process: load the vocabularies, then receive jobs and send replies until the connection closes."""
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
    body: dict[str, Any] = {}
    try:
        state = stores.get(
            job.store,
            lambda: WorkerState(vocabularies, Store(job.store, **work.store_options), work.limits.budget),
        )
        body = _members(job)
        found = answer(job.question, body, state)
        made = json.dumps(found).encode()
        if len(made) > work.limits.answer:
            raise Refused(
                "over_limit",
                f"the answer has {counted(len(made), 'byte')}",
                f"this server allows {work.limits.answer:,}",
            )
        return Reply(200, made, keep=job.question != "sample" or "seed" in body, id=found.get("id", ""))
    except MemoryError:
        return over_memory(work.limits)
    except Exception as error:  # whatever it is, the next one is another
        told = refused(error, used=time.process_time() - begun)
        if told.code == "fault":
            sys.excepthook(type(error), error, error.__traceback__)
        cause = error.__cause__ if isinstance(error, Refused) else error
        keep, detail = told.code == "bad_constraint", str(cause or error) if told.code == "store" else ""
        # Only a question about an id fails on an entry: the others replace what is damaged.
        lost = str(body.get("id", "")) if isinstance(error, NotInStoreError | ArtifactError) else ""
        return Reply(told.status, told.body(), keep, False, told.code, told.retry_after, detail, lost)


def _members(job: Job) -> dict[str, Any]:
    """The members of a request: those of its body and of its path."""
    try:
        found = members_of(job.body) if job.body else {}
    except ConstraintError as error:
        raise Refused("bad_request", f"the body: {error}", "send one JSON object, in UTF-8") from None
    return found | dict(job.extra)


def over_memory(limits: Limits) -> Reply:
    """The refusal of a request that needed too much memory."""
    found = Refused(
        "over_limit",
        f"it needs more than {counted(limits.memory, 'byte')} of memory",
        "this server allows no more: make the constraint smaller",
        "BudgetExceeded",
    )
    return Reply(found.status, found.body(), tired=True, code=found.code)


def over_time(limits: Limits, used: float | None) -> Reply:
    """The refusal of a request that took too long; ``used``: the seconds for which it had a processor."""
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
    """The refusal of a request whose process ended by itself; ``code``: its exit code."""
    found = Refused(
        "died",
        f"the process that worked on it ended with the code {code} (below 0: the signal)",
        "if it happens again, make the constraint smaller, and report it",
    )
    return Reply(found.status, found.body(), tired=True, code=found.code)


def _bound(memory: int) -> Any:
    """Limit this process to ``memory`` additional bytes. Returns a test whether the process has grown by more than half
    of that.
    """
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
