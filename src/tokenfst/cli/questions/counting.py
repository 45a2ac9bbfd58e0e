"""``tokenfst count``: the number of texts of a constraint."""

from __future__ import annotations

from typing import Annotated

import typer

from tokenfst.cli.constraints import options
from tokenfst.cli.input import groups
from tokenfst.cli.input.budgets import BudgetOptions
from tokenfst.cli.output.terminal import Exit, UsageError, say_json, say_pairs


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "count", count_command)


def count_command(
    *,
    constraining: options.ConstraintOptions,
    max_length: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            help="Count texts of at most N bytes; required if there are infinitely many texts.",
        ),
    ] = None,
    budgeting: BudgetOptions,
    json: options.Json = False,
) -> int:
    """Count the texts that satisfy a constraint: all of them, and those of each length in bytes.

    The numbers are exact. An ambiguous text counts once. Exit code 1: there is none.
    """
    budget = budgeting.read()
    given = constraining.one(budget)
    if max_length is None and not given.value.is_finite():
        raise UsageError(f"{given.source} has infinitely many texts: say --max-length N")
    counts = given.value.count(max_length)
    if json:
        answer = {"command": "count", "source": given.source, "finite": given.value.is_finite()}
        say_json(answer | {"total": counts.total, "by_length": list(counts.by_length)})
    else:
        lengths = [(str(length), f"{number:,}") for length, number in enumerate(counts.by_length) if number]
        say_pairs([("bytes", "texts"), *lengths, ("all", f"{counts.total:,}")])
    return Exit.YES if counts.total else Exit.NO
