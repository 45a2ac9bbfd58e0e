"""Labels on the command line: a file with one label a line.

Nothing is trimmed but the ends of lines: a space before a label is part of it.
"""

from __future__ import annotations

from pathlib import Path

from tokenfst.automata.language import Language
from tokenfst.automata.taxonomy import choices, multi_choice
from tokenfst.budget import Budget
from tokenfst.cli.grammars import read_text
from tokenfst.cli.terminal import UsageError
from tokenfst.errors import LabelError


def read_choices(
    path: Path, separator: str | None, most: int | None, repeats: bool, budget: Budget
) -> Language:
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
