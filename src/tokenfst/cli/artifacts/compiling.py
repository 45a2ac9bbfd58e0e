"""``tokenfst compile``: from a pattern and a vocabulary to an artifact.

The expansion runs in the native core, which makes no callbacks. A thread asks it for its progress at intervals and
updates the progress bar. The artifact is written last, under a temporary name, and then renamed.
"""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

from tokenfst.automata.languages.language import Language
from tokenfst.cli.artifacts.batches import BatchOptions
from tokenfst.cli.constraints import options
from tokenfst.cli.constraints.constraints import SUFFIX
from tokenfst.cli.input import groups
from tokenfst.cli.input.budgets import BudgetOptions
from tokenfst.cli.input.tokens import VocabularyOptions
from tokenfst.cli.output.terminal import (
    Exit,
    UsageError,
    console,
    counted,
    duration,
    note,
    say,
    say_json,
    say_pairs,
    warn,
    writing,
)
from tokenfst.common.sizes import byte_size
from tokenfst.decoding.artifacts import artifact
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.compiling.estimate import Estimate
from tokenfst.decoding.compiling.estimate import estimate as estimate_of
from tokenfst.decoding.token_automata.sizes import Stats
from tokenfst.decoding.token_automata.token_automaton import UNREACHABLE, TokenAutomaton
from tokenfst.errors import (
    ArtifactError,
    ArtifactVersionError,
    BudgetExceeded,
    ConstraintError,
    EmptyLanguageError,
    NondeterministicError,
)
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_PATIENCE = 1.0
"""Seconds before the progress bar appears."""
_TICK = 0.2
"""Seconds between two updates."""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "compile", compile_command)


def compile_command(
    *,
    constraining: options.ConstraintOptions,
    tokenizing: VocabularyOptions,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output", "-o", metavar="FILE", help=f"The artifact to write; its name ends in {SUFFIX}."
        ),
    ] = None,
    estimate: Annotated[
        bool, typer.Option("--estimate", help="Print how large the artifact would be, and write nothing.")
    ] = False,
    force: Annotated[
        bool, typer.Option("--force", help="Replace FILE even if it is not an artifact.")
    ] = False,
    batching: BatchOptions,
    budgeting: BudgetOptions,
    json: options.Json = False,
) -> int:
    """Compile a pattern, a schema, a grammar or another constraint for a vocabulary, into an artifact.

    The artifact holds all states, masks and distances. It gets its name when it is complete, and then replaces an
    older artifact of that name.

    With --batch, compile many constraints into a store that processes and computers share. Constraints that are
    already in the store are not compiled again. A line that fails is reported, and the others are compiled.
    """
    began = time.perf_counter()
    budget = budgeting.read()
    if batching.are_given(constraining, output, estimate, force):
        return batching.run(tokenizing, budget, json)
    constraint = constraining.one(budget)
    if output is None and not estimate:
        raise UsageError(f"--output FILE{SUFFIX} is needed (or --estimate)")
    if output is not None and not estimate:
        check_output(output, force)
    tokens = constraint.tokens(tokenizing, "compile")

    expected = None
    of_tokens = isinstance(constraint.value, Language) and constraint.value.program().is_token_level
    if isinstance(constraint.value, Language) and not of_tokens:
        expected = estimate_of(constraint.value, tokens)
    elif of_tokens and estimate:
        raise UsageError(f"--estimate counts byte states, but {constraint.source} constrains tokens")
    elif estimate:
        raise UsageError(
            f"--estimate needs a finite automaton, but {constraint.source} needs a stack: add --depth N"
        )
    answer: dict[str, Any] = {
        "command": "compile",
        "source": constraint.source,
        "vocabulary": {"name": tokens.name, "size": len(tokens), "fingerprint": tokens.fingerprint},
        "estimate": None if expected is None else expected.as_json(),
    }
    if estimate:
        say_json(answer) if json else say(str(expected))
        return Exit.YES
    if not json and expected is not None and expected.states:
        note(f"estimate: {expected}")

    lazy, messages = constraint.compiled(tokens, budget, tokenizing)
    for message in messages:
        warn(message)
    try:
        with _Bar(_tables(lazy), expected):
            automaton = lazy.expand()
    except ConstraintError as error:
        if isinstance(constraint.value, Language):
            raise
        found = constraint.value.conflict() if isinstance(error, NondeterministicError) else None
        why = found or error
        raise ConstraintError(
            f"no artifact can be made from {constraint.value.source}: {why}. Add --depth N to take only texts in which "
            "no rule is nested in itself more than N times"
        ) from error
    assert output is not None
    distance = _distance(automaton, tokens)
    with writing:
        automaton.save(output)
    seconds = time.perf_counter() - began
    _report(answer, automaton, distance, tokens, output, messages, seconds, json)
    return Exit.YES


def _report(
    answer: dict[str, Any],
    automaton: TokenAutomaton | CanonicalAutomaton,
    distance: int | None,
    tokens: Vocabulary,
    output: Path,
    messages: list[str],
    seconds: float,
    json: bool,
) -> None:
    arrays = _tables(automaton).arrays()
    masks, rows = len(arrays["mask_row"]) - 1, len(arrays["rows"])
    states = len(arrays["distance"]) - 1
    size = output.stat().st_size
    if json:
        say_json(
            answer
            | {
                "output": str(output),
                "bytes": size,
                "states": states,
                "masks": masks,
                "dense_rows": rows,
                "distance": distance,
                "seconds": round(seconds, 3),
                "warnings": messages,
            }
        )
        return
    shortest = counted(distance, "token") if distance is not None else "not found within the budget"
    say(f"{output}: {automaton.source} for {tokens.name or 'the vocabulary'}")
    say_pairs(
        [
            ("states", f"{states:,}"),
            ("masks", f"{masks:,} different, {counted(rows, 'dense row')}"),
            ("shortest", shortest),
            ("size", byte_size(size)),
            ("time", duration(seconds)),
        ],
        "  ",
    )


def _tables(automaton: TokenAutomaton | CanonicalAutomaton) -> TokenAutomaton:
    """The automaton that has states and masks: for canonical sequences, the automaton of all token sequences."""
    return automaton.every_sequence if isinstance(automaton, CanonicalAutomaton) else automaton


def _distance(automaton: TokenAutomaton | CanonicalAutomaton, tokens: Vocabulary) -> int | None:
    """The number of tokens of the shortest sequence; None if canonical sequences are too expensive to search. Raises
    EmptyLanguageError if there is no sequence.
    """
    if isinstance(automaton, CanonicalAutomaton):
        try:
            return automaton.matcher().distance()
        except BudgetExceeded:
            return None
    found = automaton.distance()
    if found == UNREACHABLE:
        raise EmptyLanguageError(
            f"no token sequence of {tokens.name or 'the vocabulary'} spells a string of {automaton.source}, so no "
            "matcher could be made from the artifact: give the vocabulary of a model that writes such texts"
        )
    return found


# --- what comes before --------------------------------------------------------------------------------


def check_output(path: Path, force: bool) -> None:
    """Raise, before the long work, UsageError or ArtifactError for a path that cannot be written, and for an existing
    file that is not an artifact (unless ``force``).
    """
    if path.suffix != SUFFIX:
        raise UsageError(f"the name of an artifact must end in {SUFFIX}, not be {str(path)!r}")
    folder = path.parent
    if not folder.is_dir():
        raise ArtifactError(f"cannot write {path}: there is no folder {folder}")
    if path.is_dir() or not os.access(folder, os.W_OK):
        raise ArtifactError(
            f"cannot write {path}: {'it is a folder' if path.is_dir() else f'{folder} is read-only'}"
        )
    if force or not path.exists() or path.stat().st_size == 0:
        return
    try:
        artifact.read(path)
    except ArtifactVersionError:
        return
    except ArtifactError as error:
        raise ArtifactError(
            f"{path} exists and is not a whole artifact of tokenfst (it may be the weights of a model): "
            "give another name, or replace it with --force"
        ) from error


# --- the long work ------------------------------------------------------------------------------------


class _Bar:
    """A progress bar on a terminal while an automaton expands, if that takes long. A context manager.

    One thread asks the core, which may block it; another thread draws.
    """

    def __init__(self, automaton: TokenAutomaton, expected: Estimate | None) -> None:
        self._automaton = automaton
        self._meter = Meter(expected)
        self._over = threading.Event()
        self._threads = [threading.Thread(target=run, daemon=True) for run in (self._ask, self._draw)]

    def __enter__(self) -> None:
        if console(stderr=True).is_terminal:
            self._answered = time.perf_counter()
            self._stats = self._automaton.stats()
            for thread in self._threads:
                thread.start()

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            if thread.ident is not None:
                thread.join()

    def _ask(self) -> None:
        while not self._over.wait(_TICK):
            self._stats, self._answered = self._automaton.stats(), time.perf_counter()

    def _draw(self) -> None:
        if self._over.wait(_PATIENCE):
            return
        columns = (
            SpinnerColumn(),
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.fields[text]}"),
        )
        with Progress(*columns, console=console(stderr=True), transient=True) as progress:
            task = progress.add_task("states (step 1 of 3)", total=None, text="")
            while True:
                now = time.perf_counter()
                step, total, done, text = self._meter.read(self._stats, now, now - self._answered)
                progress.update(task, description=step, total=total, completed=done, text=text)
                if self._over.wait(_TICK):
                    return


class Meter:
    """The state of the progress bar. An expansion has three steps: states, masks, and the distances, which are computed
    all at once while the core does not answer.
    """

    def __init__(self, expected: Estimate | None) -> None:
        self._total = expected.states + 1 if expected is not None and expected.exact else None
        self._step = ""
        self._since = (0.0, 0)

    def read(self, stats: Stats, now: float, silence: float = 0.0) -> tuple[str, int | None, int, str]:
        """The step, the amount of work (if known), the finished amount, and the rate and remaining time in words.

        ``silence``: seconds since the core reported these figures.
        """
        if silence > _PATIENCE or (
            self._total is not None and not stats.masks_made and stats.states >= self._total
        ):
            return "distances (step 2 of 3)", None, 0, counted(stats.states, "state")
        if stats.masks_made:
            return self._measure("masks (step 3 of 3)", stats.states, stats.masks_made, now)
        return self._measure("states (step 1 of 3)", self._total, stats.states, now)

    def _measure(
        self, step: str, total: int | None, done: int, now: float
    ) -> tuple[str, int | None, int, str]:
        if step != self._step:
            self._step, self._since = step, (now, done)
        begin, at_begin = self._since
        text = counted(done, "state") if total is None else f"{done:,} of {counted(total, 'state')}"
        if done > at_begin and now > begin:
            rate = (done - at_begin) / (now - begin)
            text += f", {rate:,.0f} states/s"
            if total is not None:
                text += f", {duration((total - done) / rate)} left"
        return step, total, done, text
