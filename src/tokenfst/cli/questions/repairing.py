"""``tokenfst repair``: the text of a constraint that is nearest to a given text."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

from tokenfst.automata.grammars.repairing import repair
from tokenfst.cli.constraints import options
from tokenfst.cli.input import groups
from tokenfst.cli.input.budgets import BudgetOptions
from tokenfst.cli.output.terminal import Exit, UsageError, note, plain, say, say_json
from tokenfst.cli.questions.checking import texts_given

_FILE_NAME = re.compile(r"[\w./~-]*[\w~-]\.[A-Za-z][A-Za-z0-9]{0,4}")
"""What looks like the name of a file."""


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "repair", repair_command)


def repair_command(
    *,
    constraining: options.ConstraintOptions,
    texts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="TEXT",
            show_default=False,
            help="Texts to repair. If a TEXT is the name of a file, the whole text of the file. Without any, or with "
            "-: the lines of stdin.",
        ),
    ] = None,
    text_file: Annotated[
        Path | None,
        typer.Option("--text-file", metavar="FILE", help="Repair the whole text of this file."),
    ] = None,
    insert: Annotated[
        float, typer.Option(metavar="COST", min=0, help="Cost of an inserted character.")
    ] = 1.0,
    delete: Annotated[float, typer.Option(metavar="COST", min=0, help="Cost of a deleted character.")] = 1.0,
    replace: Annotated[
        float, typer.Option(metavar="COST", min=0, help="Cost of a replaced character.")
    ] = 1.0,
    budgeting: BudgetOptions,
    json: options.Json = False,
) -> int:
    """Repair a text: find the nearest text that satisfies a constraint, the one with the cheapest edits.

    A text that satisfies the constraint is not changed. --json also prints the cost and the edits. The constraint
    may be a recursive grammar or schema.
    """
    budget = budgeting.read()
    given, texts = constraining.first(texts or [], budget)
    if text_file is not None and texts:
        raise UsageError(f"repair either --text-file or texts, not both ({texts[0]!r})")
    results = []
    for text in _texts(texts, text_file):
        costs = {"insert": insert, "delete": delete, "replace": replace}
        found = repair(text, given.value, costs, budget=budget)
        if json:
            edits = [edit._asdict() for edit in found.edits]
            results.append({"text": text, "repaired": found.text, "cost": found.cost, "edits": edits})
        else:
            say(plain(found.text.encode()))
    if json:
        say_json({"command": "repair", "source": given.source, "results": results})
    return Exit.YES


def _texts(arguments: list[str], file: Path | None) -> Iterator[str]:
    given = texts_given(arguments) if file is None else [file.read_bytes()]
    for text in given:
        if file is None and arguments and (content := _content(os.fsdecode(text))) is not None:
            text = content
        try:
            yield text.decode()
        except UnicodeDecodeError as error:
            raise UsageError(f"a text to repair is not UTF-8 at its byte {error.start}") from error


def _content(name: str) -> bytes | None:
    """The content of the file of that name, if there is one."""
    try:
        path = Path(name)
        if not path.is_file():
            if _FILE_NAME.fullmatch(name):
                note(f"there is no file {name}: the text itself is repaired")
            return None
    except (OSError, ValueError):  # too long for a name, or a NUL in it
        return None
    note(f"{name} is a file: its text is repaired (a text that is the name of a file is read from stdin)")
    return path.read_bytes()
