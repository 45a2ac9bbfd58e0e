"""The bounds of every construction, as one group of options."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from tokenfst.budget import Budget
from tokenfst.cli.output.terminal import UsageError
from tokenfst.common.sizes import size_of

_DEFAULT = Budget()
_PANEL = "Budget"


@dataclass(frozen=True, slots=True)
class BudgetOptions:
    """The bounds of every construction."""

    budget_states: Annotated[
        int, typer.Option(metavar="N", min=1, help="Maximum number of states.", rich_help_panel=_PANEL)
    ] = _DEFAULT.states
    budget_bytes: Annotated[
        str,
        typer.Option(
            metavar="SIZE",
            help="Maximum memory for tables and masks, such as 500M or 2G.",
            rich_help_panel=_PANEL,
        ),
    ] = "1G"
    budget_seconds: Annotated[
        float,
        typer.Option(metavar="S", help="Maximum time for one step (inf: no bound).", rich_help_panel=_PANEL),
    ] = _DEFAULT.seconds
    budget_positions: Annotated[
        int,
        typer.Option(
            metavar="N",
            min=1,
            help="Maximum length of a pattern after its counted repetitions are written out.",
            rich_help_panel=_PANEL,
        ),
    ] = _DEFAULT.positions

    def read(self) -> Budget:
        """The budget of the four options."""
        size = read_size("--budget-bytes", self.budget_bytes)
        if not self.budget_seconds > 0:
            raise UsageError(f"--budget-seconds takes a positive number, not {self.budget_seconds:g}")
        return Budget(
            states=self.budget_states,
            bytes=size,
            seconds=self.budget_seconds,
            positions=self.budget_positions,
        )


def read_size(option: str, text: str, least: int = 1) -> int:
    """A number of bytes, at least ``least``, from the text of an option. Raises UsageError."""
    size = size_of(text)
    if size is None or size < least:
        raise UsageError(f"{option} takes a size such as 500M or 2G, not {text!r:.80}")
    return size
