"""Concepts on the command line: texts by the words in them. A JSON file lists the words."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tokenfst.automata.languages.language import Language
from tokenfst.automata.pieces.concepts import avoids, concepts, contains_all, contains_in_order
from tokenfst.automata.symbols.ltlf import ltlf
from tokenfst.budget import Budget
from tokenfst.cli.input.json_files import read_json
from tokenfst.cli.output.terminal import UsageError
from tokenfst.errors import LabelError

_PANEL = "Concepts"


class Contains(enum.StrEnum):
    """Which of the concepts a text contains, and how."""

    IN_ORDER = "in-order"
    ALL = "all"
    NONE = "none"


_MADE = {Contains.IN_ORDER: contains_in_order, Contains.ALL: contains_all, Contains.NONE: avoids}


@dataclass(frozen=True)
class ConceptOptions:
    """Texts by the concepts in them."""

    concepts: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="Texts that contain given words: a JSON file with an array of words, or with an "
            "object of names and their forms. With --ltlf, formulas over the names.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    contains: Annotated[
        Contains | None,
        typer.Option(
            help="The text contains the concepts in this order (the default), all of them in any "
            "order, or none.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    inside_words: Annotated[
        bool, typer.Option("--inside-words", help="Forms also count inside words.", rich_help_panel=_PANEL)
    ] = False
    ignore_case: Annotated[
        bool, typer.Option("--ignore-case", help="Ignore case.", rich_help_panel=_PANEL)
    ] = False
    inflections: Annotated[
        bool,
        typer.Option(
            "--inflections", help="English inflections also count as forms.", rich_help_panel=_PANEL
        ),
    ] = False

    def read_concepts(
        self, formulas: Sequence[str] | None, symbols: str | None, budget: Budget
    ) -> Language | None:
        """The texts that contain the concepts as requested; None if no concepts are given.

        Raises UsageError for options that cannot be combined and for an invalid JSON value, OSError, and ``LabelError``
        with the file's name.
        """
        if self.concepts is None:
            if self.contains is not None or self.inside_words or self.ignore_case or self.inflections:
                raise UsageError(
                    "--contains, --inside-words, --ignore-case and --inflections need --concepts"
                )
            return None
        if formulas and self.contains is not None:
            raise UsageError("--contains and --ltlf cannot be combined: both define how concepts occur")
        if symbols is not None:
            raise UsageError("--symbols cannot be combined with --concepts: the concepts are the symbols")
        forms = read_json(self.concepts, "its concepts")
        if not _are_forms(forms):
            raise UsageError(
                f"{self.concepts}: concepts are an array of words, or an object of names and their forms (a text or an "
                "array of texts)"
            )
        boundaries, ignoring, inflected = not self.inside_words, self.ignore_case, self.inflections
        try:
            if not formulas:
                return _MADE[self.contains or Contains.IN_ORDER](
                    forms, budget=budget, boundaries=boundaries, ignore_case=ignoring, inflections=inflected
                )
            found = concepts(forms, boundaries=boundaries, ignore_case=ignoring, inflections=inflected)
            return found.language(ltlf(list(formulas), found.names, budget), budget)
        except LabelError as error:
            raise LabelError(error.label, f"{self.concepts}: {error}") from error


def _are_forms(value: object) -> bool:
    """Whether a JSON value can be what ``concepts`` takes."""
    if isinstance(value, dict):
        return all(isinstance(each, str) or _are_texts(each) for each in value.values())
    return _are_texts(value)


def _are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value)
