"""Batch compilation of many constraints into a store, by several processes.

Each line is compiled independently: a failure is an outcome of that line, even if its process dies (a new process
continues with the next line). Only lines in progress are in memory, so a batch may be as long as a file. Entries that
exist in the store are not compiled again, so an interrupted batch is simply started again.

Each process has several threads, of which one compiles at a time while the others wait for the store (``turns``). A put
returns only when it is durable, and this wait for a disk or a network is longer than the compilation of most lines. If
a process dies while it has several lines, each of them is given alone to a process, to find out which one it was.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
import traceback
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from queue import SimpleQueue
from typing import Any, Literal

from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, whole
from tokenfst.common.json_objects import RepeatedNameError, unique_names
from tokenfst.decoding.store.store import Store
from tokenfst.errors import ConstraintError, PatternError, StoreError, TokenfstError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_AT_ONCE = 16
"""The number of lines that a process receives at a time. It receives more when it has fewer than this left."""
_THREADS = 8
"""The number of lines that a process works on at a time: one compiles, the others wait for the store."""
_STACK = 64 << 20
"""Maximum bytes of a thread's stack, which is large because front ends are recursive. Unused bytes take no memory."""
_FAULT = 70
"""The exit status of a process in which a thread raised an unexpected error."""

_NO_START = (
    "the processes of a batch do not start: Python says why on stderr. A script must call compile_batch below "
    '`if __name__ == "__main__":`, as each process reads the script again'
)
_Line = tuple[int, str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of a line: its ``state``, and its ``key`` if it is in the store.

    For a failure, ``place`` is the position in the line, if known, and ``reason`` the error. ``line`` counts from 1.
    """

    line: int
    id: str
    state: Literal["put", "known", "failed"]
    key: str = ""
    place: str = ""
    reason: str = ""
    seconds: float = 0.0


@checked
def compile_batch(
    lines: Iterable[str],
    store: Store,
    vocabulary: Vocabulary,
    budget: Budget | None = None,
    *,
    expand: bool = False,
    jobs: int = 1,
) -> Iterator[Outcome]:
    """Compile and store each line (``documents``) that is not in the store; yields the outcomes in order of completion.

    ``budget`` bounds each line. Empty lines are skipped. Raises ``StoreError`` if the store cannot be opened or is in
    memory, or if no process starts; every other failure is the outcome of a line.
    """
    whole("compile_batch", "jobs", jobs, 1)
    store.need_shared("a batch")
    numbered = ((number, line) for number, line in enumerate(lines, 1) if line.strip())
    return _once(Pool(store, vocabulary, budget, expand=expand, jobs=jobs), numbered)


def _once(pool: Pool, lines: Iterator[_Line]) -> Iterator[Outcome]:
    try:
        yield from pool.run(lines)
    finally:
        pool.close()


@dataclass
class _Worker:
    """A process and its unfinished lines by their tags, which are unique in a run. ``alone``: it gets no more lines
    before it has finished this one.
    """

    process: Any
    lines: dict[int, _Line] = field(default_factory=dict)
    alone: bool = False


class Pool:
    """Worker processes and the lines that they have received. They wait for more lines until the pool is closed."""

    def __init__(
        self, store: Store, vocabulary: Vocabulary, budget: Budget | None, *, expand: bool, jobs: int
    ) -> None:
        self._work, self._jobs = (store, vocabulary, budget, {"expand": expand}), jobs
        self._lines: Iterator[_Line] = iter(())
        self._tag = 0
        self._suspects: deque[_Line] = deque()
        self._workers: dict[Connection, _Worker] = {}
        self._idle: dict[Connection, Any] = {}
        self._answered = False

    def run(self, lines: Iterator[_Line]) -> Iterator[Outcome]:
        """The outcomes of these numbered lines."""
        self._lines = lines
        while len(self._workers) < self._jobs and (found := self._next()):
            self._employ(found)
        while self._workers:
            for ends in wait(list(self._workers)):
                assert isinstance(ends, Connection)
                yield from self._hear(ends)

    def close(self) -> None:
        """Stop all processes, whatever they are doing."""
        busy = [(ends, worker.process) for ends, worker in self._workers.items()]
        for ends, process in [*busy, *self._idle.items()]:
            ends.close()
            process.terminate()
            process.join()
        self._workers.clear()
        self._idle.clear()

    def _hear(self, ends: Connection) -> Iterator[Outcome]:
        worker = self._workers[ends]
        try:
            tag, outcome = ends.recv()
        except (EOFError, OSError):
            del self._workers[ends]
            yield from self._bury(worker)
            return
        self._answered = True
        del worker.lines[tag]
        yield outcome
        if len(worker.lines) < _AT_ONCE and not (worker.alone and worker.lines):
            self._give(ends, worker)

    def _bury(self, worker: _Worker) -> Iterator[Outcome]:
        """Find out which line ended a process."""
        worker.process.join()
        code, left = worker.process.exitcode, [*worker.lines.values()]
        if not self._answered and code == 1:
            raise StoreError(_NO_START)
        if len(left) == 1:
            reason = f"the process that compiled it ended with the code {code} (below 0: the signal)"
            yield Outcome(left[0][0], "", "failed", reason=reason)
        else:
            self._suspects += left
        if found := self._next():
            self._employ(found)

    def _employ(self, lines: list[_Line]) -> None:
        """Give lines to a process that waits, or else to a new one."""
        while self._idle:
            ends, process = self._idle.popitem()
            worker = _Worker(process)
            try:
                self._send(ends, worker, lines)
            except OSError:  # it has died in the meantime
                process.join()
                continue
            self._workers[ends] = worker
            return
        own, other = get_context("spawn").Pipe()
        process = get_context("spawn").Process(target=_serve, args=(other, *self._work), daemon=True)
        process.start()
        other.close()
        self._workers[own] = worker = _Worker(process)
        with contextlib.suppress(OSError):  # it has died: heard where its answers are
            self._send(own, worker, lines)

    def _give(self, ends: Connection, worker: _Worker) -> None:
        """Give more lines to a process, or let it wait if there are none.

        A line that may have ended a process is given only to a process without other lines.
        """
        if self._suspects and worker.lines:
            return
        if lines := self._next():
            with contextlib.suppress(OSError):  # it has died: heard where its answers are
                self._send(ends, worker, lines)
        elif not worker.lines:
            del self._workers[ends]
            self._idle[ends] = worker.process

    def _send(self, ends: Connection, worker: _Worker, lines: list[_Line]) -> None:
        tagged = dict(enumerate(lines, self._tag))
        self._tag += len(lines)
        worker.lines |= tagged
        worker.alone = len(lines) == 1
        ends.send([(tag, *line) for tag, line in tagged.items()])

    def _next(self) -> list[_Line]:
        """The next lines: a single one if it may have ended a process."""
        if self._suspects:
            return [self._suspects.popleft()]
        return list(islice(self._lines, _AT_ONCE))


def _serve(
    ends: Connection, store: Store, vocabulary: Vocabulary, budget: Budget | None, options: Mapping[str, Any]
) -> None:
    """The work of a process: lines in, outcomes out, until there are no more requests."""
    turn, sending = threading.Lock(), threading.Lock()
    own = store.by_turns(turn)
    lines: SimpleQueue[tuple[int, int, str]] = SimpleQueue()

    def work() -> None:
        try:
            while True:
                tag, number, line = lines.get()
                with turn:
                    outcome = compile_line(number, line, own, vocabulary, budget, options)
                with sending:
                    ends.send((tag, outcome))
        except (BrokenPipeError, ConnectionResetError):
            return  # nobody listens any more: the main thread is told the same
        except BaseException:
            traceback.print_exc()
            os._exit(_FAULT)

    threading.stack_size(_STACK)
    for _ in range(_THREADS):
        threading.Thread(target=work, daemon=True).start()
    with contextlib.suppress(EOFError, OSError, KeyboardInterrupt):
        while True:
            for each in ends.recv():
                lines.put(each)
    os._exit(0)  # threads may be at work in the core, which an orderly end would wait for


def compile_line(
    number: int,
    line: str,
    store: Store,
    vocabulary: Vocabulary,
    budget: Budget | None,
    options: Mapping[str, Any],
) -> Outcome:
    """The outcome of one line. Raises only exceptions that terminate the process."""
    began = time.perf_counter()
    own = ""
    try:
        members = members_of(line)
        own = str(members.get("id", ""))
        key, made = store.ensure(members, vocabulary, budget, **options)
        state: Literal["put", "known"] = "put" if made else "known"
        return Outcome(number, own, state, key, seconds=time.perf_counter() - began)
    except Exception as error:  # whatever it is, the next line is another
        seconds = time.perf_counter() - began
        return Outcome(number, own, "failed", place=place_of(error), reason=reason_of(error), seconds=seconds)


def members_of(line: str | bytes) -> dict[str, Any]:
    """The JSON object in a line. Raises ``ConstraintError``."""
    if isinstance(line, str) and (fault := not_utf8(line)):
        raise ConstraintError(fault)
    try:
        found = json.loads(line, object_pairs_hook=unique_names)
    except RecursionError:
        raise ConstraintError("it is nested too deeply") from None
    except json.JSONDecodeError as error:
        raise ConstraintError(f"it is not JSON: {error.msg} at column {error.colno}") from None
    except RepeatedNameError as error:
        raise ConstraintError(str(error)) from None
    except UnicodeDecodeError as error:
        raise ConstraintError(
            f"it is not UTF-8: byte 0x{error.object[error.start]:02x} at byte {error.start + 1}"
        ) from None
    except ValueError:  # the only one left
        raise ConstraintError(
            f"it has an integer of more than {sys.get_int_max_str_digits():,} digits"
        ) from None
    if not isinstance(found, dict):
        raise ConstraintError(f"it is not a JSON object, but the JSON value {json.dumps(found):.40}")
    return found


def not_utf8(line: str) -> str:
    """The error of a line that was read with ``errors="surrogateescape"`` and is not UTF-8; empty if it is UTF-8.

    Python keeps each wrong byte as a lone surrogate, which no valid line has.
    """
    try:
        line.encode()
    except UnicodeEncodeError as error:
        half = ord(line[error.start])
        what = f"byte 0x{half - 0xDC00:02x}" if 0xDC80 <= half <= 0xDCFF else "a lone surrogate"
        return f"it is not UTF-8: {what} at column {error.start + 1}"
    return ""


def place_of(error: Exception) -> str:
    """The position in a constraint that an error names, if any."""
    if isinstance(error, PatternError):
        return f"position {error.position}"
    return str(getattr(error, "pointer", ""))


def reason_of(error: Exception) -> str:
    """The message of an error, with its type if it is not an error of tokenfst."""
    return str(error) if isinstance(error, TokenfstError) else f"{type(error).__name__}: {error}"
