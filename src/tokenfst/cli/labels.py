"""Labels on the command line: a file with one label a line, or a tree of names as JSON.

Nothing is trimmed but the ends of lines: a space before a label is part of it.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tokenfst.automata.language import Language
from tokenfst.automata.taxonomy import choices, hierarchy, multi_choice
from tokenfst.budget import Budget
from tokenfst.cli.grammars import read_text
from tokenfst.cli.json_files import read_json
from tokenfst.cli.terminal import UsageError
from tokenfst.errors import ConstraintError, LabelError

_PANEL = "Labels"


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
            help="Choose several labels, with this text between two, no label twice; in a hierarchy, what stands "
            "between the names of a path (' > ').",
            rich_help_panel=_PANEL,
        ),
    ] = None
    most: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Choose at most so many labels.", rich_help_panel=_PANEL),
    ] = None
    repeats: Annotated[
        bool, typer.Option("--repeats", help="Labels may occur again.", rich_help_panel=_PANEL)
    ] = False
    leaf_only: Annotated[
        bool, typer.Option("--leaf-only", help="Only whole paths, down to a leaf.", rich_help_panel=_PANEL)
    ] = False

    def read_labels(self, budget: Budget) -> Language | None:
        """The language of the labels, if some are given."""
        if self.leaf_only and self.hierarchy is None:
            raise UsageError("--leaf-only goes with --hierarchy")
        if self.hierarchy is not None:
            if self.most is not None or self.repeats:
                raise UsageError("--most and --repeats go with --choices")
            return _paths(self.hierarchy, self.separator, self.leaf_only, budget)
        if self.choices is not None:
            if self.separator is None and (self.most is not None or self.repeats):
                raise UsageError("--most and --repeats go with --separator TEXT, which allows several labels")
            return _choices(self.choices, self.separator, self.most, self.repeats, budget)
        if self.separator is not None or self.most is not None or self.repeats:
            raise UsageError("--separator, --most and --repeats go with --choices")
        return None


def _choices(path: Path, separator: str | None, most: int | None, repeats: bool, budget: Budget) -> Language:
    """One of the labels in a file; with a separator, up to ``most`` of them.

    Raises UsageError for an empty line, OSError, and ``LabelError`` with the file's name.
    """
    lines = read_text(path, "the labels").removesuffix("\n").split("\n")
    labels = [line.removesuffix("\r") for line in lines]
    if "" in labels:
        raise UsageError(f"{path}: line {labels.index('') + 1} is empty, and a label must not be")
    try:
        if separator is None:
            return choices(labels, budget=budget)
        return multi_choice(labels, separator, max=most, unique=not repeats, budget=budget)
    except LabelError as error:
        raise LabelError(error.label, f"{path}: {error}") from error


def _paths(path: Path, separator: str | None, leaf_only: bool, budget: Budget) -> Language:
    """A path through the tree in a file. Raises what ``_choices`` does, and ConstraintError for another JSON value."""
    tree = read_json(path, "its names")
    try:
        return hierarchy(tree, " > " if separator is None else separator, leaf_only=leaf_only, budget=budget)
    except LabelError as error:
        raise LabelError(error.label, f"{path}: {error}") from error
    except ConstraintError as error:
        raise ConstraintError(f"{path}: {error}") from error
