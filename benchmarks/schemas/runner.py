"""One library over many JSON schemas, in a process of its own that may be killed.

The library gets one schema at a time, over a pipe. It compiles the schema, makes the first mask, and walks along each
document of the schema, token by token. The answer is a ``Record``. A schema that takes longer than ``LIMIT`` seconds,
or that ends the process, has a record too, and the next schema goes to a new process.

Memory is the highest resident size while a schema is compiled and walked, minus the resident size before it (Linux
only). Before each schema, garbage is collected and freed pages go back to the system, so that memory left by an
earlier schema does not hide the growth.
"""

from __future__ import annotations

import ctypes
import gc
import json
import multiprocessing
import os
import resource
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from multiprocessing.connection import Connection
from pathlib import Path
from time import monotonic, perf_counter_ns, process_time_ns
from typing import Any

import tokenfst
from benchmarks.measuring.libraries import LIBRARIES, Encode, Walk
from benchmarks.measuring.measure import clock_overhead, quiet
from benchmarks.schemas.mask_by_mask import ANSWERS

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))
from reference.json.json_schema_order import ordered

LIMIT = 20.0
"""Seconds of processor time for one schema and all of its documents."""
WAITED = 10
"""A process is also ended after this many times the limit by the clock, even if it uses no processor time."""
LOOKED = 0.1
"""The seconds between two readings of the processor time of a process."""
START_LIMIT = 120.0
"""The seconds of processor time in which a process must be ready."""
ORDER_LIMIT, ORDER_PROBES, ORDER_SECONDS = 60.0, 1_000, 15.0
"""The bounds of the search for an accepted order: seconds for a schema; attempts and seconds for a document."""
MEMORY_LIMIT = 8 << 30
"""The address space of a process, in bytes."""
WARM_UP = {"type": "object", "properties": {"a": {"type": "string"}, "b": {"type": "number"}}}


@dataclass(slots=True)
class Record:
    """What a library did with one schema.

    - ``schema``, ``who``: the names of the schema and of the library.
    - ``first_mask``: seconds by the clock from the schema to the first mask; None if there is none.
    - ``steps``: seconds of a mask and an advance, for each token of all documents.
    - ``refused``: the message if the schema did not compile; else empty.
    - ``trouble``: ``"timeout"``, ``"crash"``, an error in the middle of a walk, or an error of compilation that says
      nothing about the schema; else empty.
    - ``accepts_invalid``, ``other_order``, ``rejects_valid``: the indices of documents that are invalid and were
      accepted; that are valid and were rejected, but are accepted with their members in another order; and that are
      valid and were rejected for another reason.
    - ``moved``: for each document of ``other_order``, the place where an accepted order first differs from the
      document's.
    - ``memory``: bytes; None if the system does not tell. ``first_mask_cpu``: like ``first_mask``, in seconds of
      processor time, which other work on the computer does not change.
    """

    schema: str
    who: str
    first_mask: float | None = None
    steps: list[float] = field(default_factory=list)
    refused: str = ""
    trouble: str = ""
    accepts_invalid: list[int] = field(default_factory=list)
    other_order: list[int] = field(default_factory=list)
    rejects_valid: list[int] = field(default_factory=list)
    moved: list[str] = field(default_factory=list)
    memory: int | None = None
    first_mask_cpu: float | None = None

    @property
    def passed(self) -> bool:
        """Compiled, and right about every document."""
        wrong = self.accepts_invalid or self.other_order or self.rejects_valid
        return not (self.refused or self.trouble or wrong)


class Runner:
    """A library in a process of its own, over the vocabulary ``source``. Call ``close``, or use it in a ``with``
    statement.

    ``limit``: seconds of processor time for each row. ``settings``: arguments of the library's class in
    ``LIBRARIES``.
    """

    def __init__(self, who: str, source: str, limit: float = LIMIT, **settings: Any) -> None:
        self.who, self.limit, self._source, self._settings = who, limit, source, settings
        self.process: Any = None
        self._pipe: Connection | None = None

    def run(self, row: dict[str, Any]) -> Record:
        """The record of a row, ``{"id", "schema", "tests": [{"valid", "data"}, ...]}``. In place of ``schema`` a row
        may have ``regex``, or ``lark`` and ``ebnf``. In place of ``data``, which is written as JSON, a test may have
        its ``text``.
        """
        pipe = self._pipe or self._start()
        lost = Record(row["id"], self.who)
        try:
            pipe.send(row)
            if self._answers(pipe, self.limit):
                made = lost = Record(**pipe.recv())
                if not made.rejects_valid or "schema" not in row:
                    return made
                if pipe.poll(ORDER_LIMIT):
                    return Record(**pipe.recv())
            else:
                lost.trouble = "timeout"
        except (EOFError, OSError):
            lost.trouble = "crash"
        self.close()
        return lost

    def ask(self, question: str, *arguments: Any) -> Any:
        """The answer of ``mask_by_mask.ANSWERS[question]`` for the constraint of the last row. None if the constraint
        did not compile, or if the process did not answer in time; then the process is ended.
        """
        if self._pipe is None:
            return None
        try:
            self._pipe.send((question, *arguments))
            if self._answers(self._pipe, self.limit):
                return self._pipe.recv()
        except (EOFError, OSError):
            pass
        self.close()
        return None

    def _answers(self, pipe: Connection, limit: float) -> bool:
        """Whether an answer comes before the process has used ``limit`` seconds of processor time."""
        begun = _processor_time(self.process.pid)
        until = monotonic() + limit * (1 if begun is None else WAITED)
        while not pipe.poll(min(LOOKED, limit)):
            spent = None if begun is None else _processor_time(self.process.pid)
            if monotonic() >= until or (spent is not None and begun is not None and spent - begun >= limit):
                return False
        return True

    def close(self) -> None:
        """End the process."""
        if self._pipe is not None:
            self.process.kill()
            self.process.join()
            self._pipe.close()
            self._pipe = None

    def __enter__(self) -> Runner:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _start(self) -> Connection:
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        given = (self.who, self._source, theirs, self._settings)
        self.process = context.Process(target=_serve, args=given, daemon=True)
        self.process.start()
        theirs.close()
        try:
            if self._answers(self._pipe, START_LIMIT) and self._pipe.recv() == "ready":
                return self._pipe
        except EOFError:
            pass
        self.close()
        raise RuntimeError(f"{self.who} did not start")


def _processor_time(process: int) -> float | None:
    """The seconds of processor time that a process has used; None if the system has no /proc."""
    try:
        fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return None
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


# --- in the process of the library ------------------------------------------------------------------------


def _serve(who: str, source: str, pipe: Connection, settings: dict[str, Any]) -> None:
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_LIMIT, MEMORY_LIMIT))
    vocabulary = tokenfst.load_vocabulary(source)
    encode, end = encoder(source), vocabulary.eos_token_ids[0]
    library = LIBRARIES[who](vocabulary, encode, **settings)
    overhead = clock_overhead()
    with suppress(Exception):  # the first schema that counts shows what is wrong
        library.walk(library.compile_schema(WARM_UP)).fill()
    gc.freeze()
    pipe.send("ready")
    walk: Walk | None = None
    while True:
        row = pipe.recv()
        if isinstance(row, tuple):
            question, *arguments = row
            try:
                pipe.send(None if walk is None else ANSWERS[question](walk, *arguments))
            except Exception:  # any type: an error about a walk that the library stopped
                pipe.send(None)
            continue
        made, walk = measured(library, row, encode, end, overhead)
        pipe.send(asdict(made))
        if walk is not None and made.rejects_valid and "schema" in row:
            explain(made, walk, row, encode, end)
            pipe.send(asdict(made))


def encoder(source: str) -> Encode:
    """A function from text to tokens by the tokenizer itself, so that documents have the tokens that a model would
    see.
    """
    import mistral_common
    from mistral_common.tokens.tokenizers import tekken

    name = source.removeprefix("mistral:")
    assert name != source, f"only Mistral's tokenizers are known here, not {source!r}"
    path = Path(mistral_common.__file__).parent / "data" / f"{name}.json"
    tokenizer = tekken.Tekkenizer.from_file(path)
    return lambda text: tokenizer.encode(text, bos=False, eos=False)


def compiled(library: Any, row: dict[str, Any]) -> Any:
    """The compiled constraint of a row."""
    if "schema" in row:
        return library.compile_schema(row["schema"])
    return (
        library.compile(row["regex"]) if "regex" in row else library.compile_grammar(row["lark"], row["ebnf"])
    )


def text_of(test: dict[str, Any]) -> str:
    """A test's document as text."""
    return str(test["text"]) if "text" in test else json.dumps(test["data"], ensure_ascii=False)


def measured(
    library: Any, row: dict[str, Any], encode: Encode, end: int, overhead: float
) -> tuple[Record, Walk | None]:
    """Compile one schema, walk along all of its documents, and judge it. Also returns the walk, if the schema
    compiled.
    """
    made = Record(row["id"], library.name)
    documents = [encode(text_of(test)) for test in row["tests"]]
    with quiet():
        before = _memory_before()
        try:
            begin, begin_cpu = perf_counter_ns(), process_time_ns()
            walk = library.walk(compiled(library, row))
            walk.fill()
            made.first_mask_cpu = (process_time_ns() - begin_cpu) / 1e9
            made.first_mask = (perf_counter_ns() - begin) / 1e9
        except (AttributeError, NameError, ImportError) as error:  # a fault of the library, not an answer
            made.trouble = f"compiling: {_told(error)}"
            return made, None
        except Exception as error:
            made.refused = _told(error)
            return made, None
        for number, (test, tokens) in enumerate(zip(row["tests"], documents, strict=True)):
            try:
                walk.restart()
                accepted = _led(walk, [*tokens, end], made.steps, overhead)
            except Exception as error:
                made.trouble = f"document {number}: {_told(error)}"
                continue
            if accepted and not test["valid"]:
                made.accepts_invalid.append(number)
            if not accepted and test["valid"]:
                made.rejects_valid.append(number)
        made.memory = _memory_since(before)
    return made, walk


def explain(made: Record, walk: Walk, row: dict[str, Any], encode: Encode, end: int) -> None:
    """Move the documents that are accepted in another order of members from ``rejects_valid`` to ``other_order``.

    The order of the schema's ``properties`` is tried first, with the names that branches list and without them, because
    a search alone gives up where there are many members.
    """
    schema = row["schema"]
    for number in tuple(made.rejects_valid):
        data = [row["tests"][number]["data"]]
        with suppress(Exception):  # the tests' twin does not read every draft, nor invalid schemas
            data = [ordered(data[0], [schema], schema, branches=branches) for branches in (True, False)]
        if (text := accepted_order(walk, data, encode, end)) is not None:
            made.rejects_valid.remove(number)
            made.other_order.append(number)
            made.moved.append(
                first_moved(row["tests"][number]["data"], json.loads(text)) or "members that repeat"
            )


def first_moved(given: Any, accepted: Any, pointer: str = "") -> str | None:
    """The first place at which two values have their members in different orders, as text: the pointer and the two
    names; None if there is none.
    """
    if isinstance(given, dict):
        for before, after in zip(given, accepted, strict=True):
            if before != after:
                return f"#{pointer}: {json.dumps(after)} before {json.dumps(before)}"
        names = {name: name.replace("~", "~0").replace("/", "~1") for name in given}
        parts = [(given[name], accepted[name], f"{pointer}/{written}") for name, written in names.items()]
    elif isinstance(given, list):
        parts = [(*both, f"{pointer}/{k}") for k, both in enumerate(zip(given, accepted, strict=True))]
    else:
        return None
    return next(filter(None, (first_moved(*part) for part in parts)), None)


def _led(walk: Walk, tokens: list[int], steps: list[float], overhead: float) -> bool:
    """Whether all tokens are allowed, one after the other. Appends the seconds of each step to ``steps``."""
    fill, accept, bitmask = walk.fill, walk.accept, walk.bitmask
    for token in tokens:
        begin = perf_counter_ns()
        fill()
        spent = perf_counter_ns() - begin
        allowed = (int(bitmask[0, token >> 5]) >> (token & 31)) & 1
        if allowed:
            begin = perf_counter_ns()
            accepted = accept(token)
            spent += perf_counter_ns() - begin
        steps.append(max(spent / 1e9 - (1 + allowed) * overhead, 0.0))
        if message := walk.error():
            raise ValueError(message)
        if not allowed:
            return False
        if not accepted:
            raise ValueError(f"token {token} is in the mask and was not accepted")
    return True


def accepted_order(walk: Walk, values: list[Any], encode: Encode, end: int) -> str | None:  # noqa: C901  # three functions that call each other
    """The text of a document with the members of its objects in an order that is accepted; None if none is found.

    ``values``: the document in several orders. Each is tried as a whole first, because a long document has more
    members than the search may try. Then the search begins with the first of them and backtracks: after the text
    accepted so far, it tries the remaining members one after the other. It gives up after ``ORDER_PROBES`` attempts
    or ``ORDER_SECONDS``.
    """
    left, until = ORDER_PROBES, monotonic() + ORDER_SECONDS

    def viable(text: str, *last: int) -> bool:
        nonlocal left
        left -= 1
        if left < 0 or monotonic() > until:
            return False
        walk.restart()
        tokens = [*encode(text), *last]
        return all(map(walk.accept, tokens)) if walk.checks else _led(walk, tokens, [], 0.0)

    def spelled(value: Any, prefix: str) -> Iterator[str]:
        if isinstance(value, dict) and value:
            yield from members(prefix + "{", list(value.items()), "")
        elif isinstance(value, list) and value:
            yield from items(prefix + "[", value, "")
        elif viable(text := prefix + json.dumps(value, ensure_ascii=False)):
            yield text

    def members(prefix: str, rest: list[tuple[str, Any]], comma: str) -> Iterator[str]:
        if not rest:
            yield prefix + "}"
        for place, (name, value) in enumerate(rest):
            begun = f"{prefix}{comma}{json.dumps(name, ensure_ascii=False)}: "
            if viable(begun):
                for text in spelled(value, begun):
                    yield from members(text, rest[:place] + rest[place + 1 :], ", ")

    def items(prefix: str, rest: list[Any], comma: str) -> Iterator[str]:
        if not rest:
            yield prefix + "]"
            return
        for text in spelled(rest[0], prefix + comma):
            yield from items(text, rest[1:], ", ")

    with suppress(ValueError):
        for value in values:
            if viable(whole := json.dumps(value, ensure_ascii=False), end):
                return whole
        return next((text for text in spelled(values[0], "") if viable(text, end)), None)
    return None


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"[:300]


# --- memory -----------------------------------------------------------------------------------------------

_PROCESS = Path("/proc/self")


def _memory_before() -> int | None:
    """The resident bytes after free memory has gone back to the system. The peak counts from here on."""
    try:
        ctypes.CDLL(None).malloc_trim(0)
        (_PROCESS / "clear_refs").write_text("5")
        return _status("VmRSS")
    except (OSError, AttributeError):
        return None


def _memory_since(before: int | None) -> int | None:
    return None if before is None else max(_status("VmHWM") - before, 0)


def _status(name: str) -> int:
    lines = (_PROCESS / "status").read_text().splitlines()
    return next(int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:"))
