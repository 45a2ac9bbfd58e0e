"""Labels on the command line: a file with one label on each line, or a tree of names as JSON.

Only the line ends are removed: a space before a label is a part of it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tokenfst.automata.languages.language import Language
from tokenfst.automata.pieces import taxonomy
from tokenfst.budget import Budget
from tokenfst.cli.constraints.grammars import read_text
from tokenfst.cli.input.json_files import read_json
from tokenfst.cli.output.terminal import UsageError
from tokenfst.errors import ConstraintError, LabelError

_PANEL = "Labels"


class LeadingSpace(enum.StrEnum):
    """Whether a space comes before the first label."""

    NONE = "none"
    OPTIONAL = "optional"
    REQUIRED = "required"


_SPACES: dict[LeadingSpace, taxonomy.LeadingSpace] = {
    LeadingSpace.NONE: "none",
    LeadingSpace.OPTIONAL: "optional",
    LeadingSpace.REQUIRED: "required",
}


@dataclass(frozen=True)
class LabelOptions:
    """A set of labels to choose from."""

    choices: Annotated[
        Path | None,
        typer.Option(
            "--choices",
            "-c",
            metavar="FILE",
            help="Labels to choose from: a file with one label a line (UTF-8).",
            rich_help_panel=_PANEL,
        ),
    ] = None
    hierarchy: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Paths through a tree of names: a file of nested JSON objects and arrays.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    separator: Annotated[
        str | None,
        typer.Option(
            metavar="TEXT",
            help="Choose several different labels, with this text between them. In a hierarchy, "
            "the text between the names of a path (' > ').",
            rich_help_panel=_PANEL,
        ),
    ] = None
    least: Annotated[
        int | None,
        typer.Option(
            metavar="N", min=0, help="Minimum number of labels (default: 1).", rich_help_panel=_PANEL
        ),
    ] = None
    most: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Maximum number of labels.", rich_help_panel=_PANEL),
    ] = None
    repeats: Annotated[
        bool, typer.Option("--repeats", help="A label may occur more than once.", rich_help_panel=_PANEL)
    ] = False
    leaf_only: Annotated[
        bool, typer.Option("--leaf-only", help="Only whole paths, down to a leaf.", rich_help_panel=_PANEL)
    ] = False

    leading_space: Annotated[
        LeadingSpace,
        typer.Option(
            help="Whether a space comes before the first label, for text that continues after a word.",
            rich_help_panel=_PANEL,
        ),
    ] = LeadingSpace.NONE

    def read_labels(self, budget: Budget) -> Language | None:
        """The language of the labels, if some are given."""
        if self.leaf_only and self.hierarchy is None:
            raise UsageError("--leaf-only goes with --hierarchy")
        several = self.least is not None or self.most is not None or self.repeats
        if self.hierarchy is not None:
            if several:
                raise UsageError("--least, --most and --repeats go with --choices")
            return self._paths(self.hierarchy, budget)
        if self.choices is not None:
            if self.separator is None and several:
                raise UsageError(
                    "--least, --most and --repeats go with --separator TEXT, which allows several labels"
                )
            return self._choices(self.choices, budget)
        if self.separator is not None or several or self.leading_space is not LeadingSpace.NONE:
            raise UsageError("--separator, --least, --most, --repeats and --leading-space go with --choices")
        return None

    def _choices(self, path: Path, budget: Budget) -> Language:
        """One of the labels in a file; with a separator, several.

        Raises UsageError for an empty line, OSError, and ``LabelError`` with the file's name.
        """
        lines = read_text(path, "the labels").removesuffix("\n").split("\n")
        labels = [line.removesuffix("\r") for line in lines]
        if "" in labels:
            raise UsageError(f"{path}: line {labels.index('') + 1} is empty, and a label must not be")
        space = _SPACES[self.leading_space]
        try:
            if self.separator is None:
                return taxonomy.choices(labels, leading_space=space, budget=budget)
            return taxonomy.multi_choice(
                labels,
                self.separator,
                min=1 if self.least is None else self.least,
                max=self.most,
                unique=not self.repeats,
                leading_space=space,
                budget=budget,
            )
        except LabelError as error:
            raise LabelError(error.label, f"{path}: {error}") from error

    def _paths(self, path: Path, budget: Budget) -> Language:
        """A path through the tree in a file. Raises what ``_choices`` does; ConstraintError for another JSON value."""
        tree, separator = read_json(path, "its names"), self.separator
        try:
            return taxonomy.hierarchy(
                tree,
                " > " if separator is None else separator,
                leaf_only=self.leaf_only,
                leading_space=_SPACES[self.leading_space],
                budget=budget,
            )
        except LabelError as error:
            raise LabelError(error.label, f"{path}: {error}") from error
        except ConstraintError as error:
            raise ConstraintError(f"{path}: {error}") from error
