"""``tokenfst list``: the texts of a constraint, shorter ones first."""

from __future__ import annotations

import sys
from itertools import islice
from typing import Annotated

import typer

from tokenfst.cli.constraints import options
from tokenfst.cli.input import groups
from tokenfst.cli.input.budgets import BudgetOptions
from tokenfst.cli.output.terminal import Exit, json_bytes, plain, say, say_json_list


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "list", list_command)


def list_command(
    *,
    constraining: options.ConstraintOptions,
    number: Annotated[
        int, typer.Option("--number", "-n", metavar="N", min=1, help="Maximum number of texts.")
    ] = 10,
    budgeting: BudgetOptions,
    json: options.Json = False,
) -> int:
    """List the texts that satisfy a constraint, one on each line, shorter ones first.

    Texts of the same length are in byte order. Line breaks, control characters and bytes that are not UTF-8 are
    shown as escapes; --json prints the exact texts. Exit code 1: there is none.
    """
    budget = budgeting.read()
    given = constraining.one(budget)
    texts = islice(given.value, min(number, sys.maxsize))
    found = 0
    if json:
        found = say_json_list({"command": "list", "source": given.source}, "texts", map(json_bytes, texts))
    else:
        for text in texts:
            say(plain(text))
            found += 1
    return Exit.YES if found else Exit.NO
