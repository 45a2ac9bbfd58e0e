"""``tokenfst compile --batch``: many constraints into a store."""

from __future__ import annotations

import enum
import json
import sys
import time
from codecs import BOM_UTF8
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, TextIO

import typer
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    SpinnerColumn,
    TextColumn,
    TimeRemainingColumn,
)

from tokenfst.budget import Budget
from tokenfst.cli.constraints.options import ConstraintOptions
from tokenfst.cli.input import signing
from tokenfst.cli.input.tokens import Tokenization, VocabularyOptions
from tokenfst.cli.output.terminal import (
    Exit,
    UsageError,
    complain,
    console,
    counted,
    duration,
    say,
    say_json,
    say_pairs,
    writing,
)
from tokenfst.common.printable import printable

if TYPE_CHECKING:
    from tokenfst.decoding.store.batch import Outcome

_PANEL = "Batch"
_SHOWN = 20
"""The greatest number of failures that are shown; the JSON object has all of them."""
_ID = 80
"""The greatest number of characters of an id that are shown."""


class Engine(enum.StrEnum):
    """Where a batch is compiled."""

    PROCESSES = "processes"
    RAY = "ray"


@dataclass(frozen=True)
class BatchOptions:
    """A batch: many constraints, and the store for the results."""

    batch: Annotated[
        str | None,
        typer.Option(
            "--batch",
            metavar="FILE",
            help="Compile every line of FILE (- for stdin) into a store. A line is a JSON object: one of json_schema, "
            "regex, lark, gbnf, ebnf and structural_tag, and optionally an id and options of that front end.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    store: Annotated[
        str | None,
        typer.Option(
            "--store", metavar="URL", help="The store: a folder, s3://..., gcs://...", rich_help_panel=_PANEL
        ),
    ] = None
    jobs: Annotated[
        int,
        typer.Option(
            "--jobs", metavar="N", min=1, help="Number of processes that compile.", rich_help_panel=_PANEL
        ),
    ] = 1
    engine: Annotated[
        Engine,
        typer.Option(
            "--engine",
            help="What compiles: processes on this computer, or actors of a Ray cluster (RAY_ADDRESS).",
            rich_help_panel=_PANEL,
        ),
    ] = Engine.PROCESSES
    expand: Annotated[
        bool,
        typer.Option(
            "--expand",
            help="Compute all states and masks ahead of time where this is possible; otherwise "
            "store the program.",
            rich_help_panel=_PANEL,
        ),
    ] = False
    keys: Annotated[
        Path | None,
        typer.Option(
            "--keys",
            metavar="FILE",
            help="Write the store's key of every line that did not fail to FILE, one JSON object on each line.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    sign_with: Annotated[
        Path | None,
        typer.Option("--sign-with", metavar="FILE", help=signing.HELP, rich_help_panel=_PANEL),
    ] = None
    trusted_key: Annotated[
        list[str] | None,
        typer.Option("--trusted-key", metavar="KEY", help=signing.HELP_TRUSTED, rich_help_panel=_PANEL),
    ] = None

    def are_given(self, constraining: ConstraintOptions, *others: object) -> bool:
        """Whether a batch is given. Raises UsageError for options of a batch without one, and, with a batch, for those
        of a single constraint and for ``others``.
        """
        if self.batch is not None:
            if constraining.constraint is not None or any(others):
                raise UsageError(
                    "--batch FILE cannot be combined with CONSTRAINT, --output, --estimate or --force"
                )
            for each in fields(constraining):
                if getattr(constraining, each.name) != each.default:
                    raise UsageError(
                        f"--{each.name.replace('_', '-')} cannot be combined with --batch FILE: each line has its own "
                        "constraint and options"
                    )
            return True
        given = {
            "--store": self.store,
            "--keys": self.keys,
            "--sign-with": self.sign_with,
            "--trusted-key": self.trusted_key,
            "--expand": self.expand,
            "--jobs": self.jobs != 1,
            "--engine": self.engine is not Engine.PROCESSES,
        }
        for name, value in given.items():
            if value:
                raise UsageError(f"{name} needs --batch FILE")
        return False

    def run(self, tokenizing: VocabularyOptions, budget: Budget, as_json: bool) -> int:
        """Compile the batch; Exit.NO if a line failed."""
        if self.store is None:
            raise UsageError(
                "--batch needs --store URL, such as --store artifacts or --store s3://bucket/folder"
            )
        if tokenizing.tokenization is not Tokenization.ALL or tokenizing.token_class:
            raise UsageError("--tokenization and --token-class cannot be combined with --batch")
        source = Path(self.batch or "")
        if self.keys is not None and self.keys.exists() and source.exists() and self.keys.samefile(source):
            raise UsageError(
                "--keys is the file of the batch itself: its lines would be lost. Name another file"
            )
        vocabulary = tokenizing.need("a batch")
        store = signing.signing_store(self.store, self.sign_with, self.trusted_key)
        began = time.perf_counter()
        tally = _Tally()
        with ExitStack() as stack:
            lines, total = self._lines(stack)
            keys = (
                stack.enter_context(self.keys.open("w", encoding="utf-8")) if self.keys is not None else None
            )
            bar = _bar()
            if not bar.disable:  # older versions of rich end a bar that was never shown with an empty line
                stack.enter_context(bar)
            task = bar.add_task("lines", total=total, rate="")
            compile_them = _in_processes() if self.engine is Engine.PROCESSES else _on_ray()
            for outcome in compile_them(lines, store, vocabulary, budget, expand=self.expand, jobs=self.jobs):
                tally.add(outcome, keys)
                rate = tally.lines / max(time.perf_counter() - began, 1e-9)
                bar.update(task, completed=tally.lines, rate=f"{rate:,.0f} lines/s, {tally.failed} failed")
        tally.failures.sort(key=lambda each: each["line"])
        seconds = time.perf_counter() - began
        summary = {
            "command": "compile",
            "batch": self.batch,
            "store": store.url,
            "lines": tally.lines,
            "put": tally.put,
            "known": tally.known,
            "failed": tally.failed,
            "failures": tally.failures,
            "seconds": round(seconds, 3),
        }
        if as_json:
            say_json(summary)
        else:
            _show(summary)
        return Exit.NO if tally.failed else Exit.YES

    def _lines(self, stack: ExitStack) -> tuple[Iterator[str], int | None]:
        """The lines of the batch, and their number, if it is known."""
        if self.batch == "-":
            return _decoded(sys.stdin.buffer), None
        path, total = Path(self.batch or ""), None
        if path.is_file():  # what is read once only, such as a pipe, is not counted before
            with path.open("rb") as file:
                total = sum(1 for line in file if line.strip())
        return _decoded(stack.enter_context(path.open("rb"))), total


def _decoded(file: BinaryIO) -> Iterator[str]:
    """The lines of a file, without a byte order mark. Bytes that are not UTF-8 become lone surrogates."""
    for number, line in enumerate(file):
        yield (line if number else line.removeprefix(BOM_UTF8)).decode("utf-8", "surrogateescape")


@dataclass
class _Tally:
    """The outcomes of the lines so far."""

    put: int = 0
    known: int = 0

    def __post_init__(self) -> None:
        self.failures: list[dict[str, Any]] = []

    @property
    def failed(self) -> int:
        return len(self.failures)

    @property
    def lines(self) -> int:
        return self.put + self.known + self.failed

    def add(self, outcome: Outcome, keys: TextIO | None) -> None:
        """Count a line, and write its key to the file of keys."""
        if outcome.state == "failed":
            about = {"line": outcome.line, "id": outcome.id, "place": outcome.place, "reason": outcome.reason}
            self.failures.append(about)
            return
        self.put += outcome.state == "put"
        self.known += outcome.state == "known"
        if keys is not None:
            with writing:
                keys.write(json.dumps({"line": outcome.line, "id": outcome.id, "key": outcome.key}) + "\n")


def _in_processes() -> Callable[..., Iterator[Outcome]]:
    """``compile_batch`` on this computer. Its module is imported here: help and a single constraint need no store."""
    from tokenfst.decoding.store.batch import compile_batch

    return compile_batch


def _on_ray() -> Callable[..., Iterator[Outcome]]:
    """``compile_batch`` on a Ray cluster, with Ray's own progress bars turned off."""
    from tokenfst.ray.batches import compile_batch  # first: without Ray, it says what to install

    import ray.data  # isort: skip

    ray.init(ignore_reinit_error=True, log_to_driver=False, logging_level="error")
    ray.data.DataContext.get_current().enable_progress_bars = False
    return compile_batch


def _bar() -> Progress:
    return Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
        console=console(stderr=True),
        transient=True,
        disable=not console(stderr=True).is_terminal,
    )


def _show(summary: dict[str, Any]) -> None:
    for each in summary["failures"][:_SHOWN]:
        own = f" ({printable(each['id']):.{_ID}})" if each["id"] else ""
        reason = each["reason"].splitlines()[0] if each["reason"] else ""
        complain(f"line {each['line']}{own}: {reason}")
    if (more := summary["failed"] - _SHOWN) > 0:
        complain(f"{counted(more, 'more failure')}: --json lists them all")
    say(f"{summary['batch']}: {counted(summary['lines'], 'line')} into {summary['store']}")
    say_pairs(
        [
            ("put", f"{summary['put']:,}"),
            ("known", f"{summary['known']:,}"),
            ("failed", f"{summary['failed']:,}"),
            ("time", duration(summary["seconds"])),
        ],
        "  ",
    )
