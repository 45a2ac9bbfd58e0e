"""Texts that are near the constraint's texts, or that a transducer makes from them, as one group of options.

The options change the constraint in this order, whatever the order on the command line: first the outputs of
transducers, then texts that differ only in case, then texts with the same normal form, then texts within a number of
edits.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from tokenfst.automata.images.edits import within_edits
from tokenfst.automata.images.equivalence import Form, normalization_insensitive
from tokenfst.automata.images.folding import case_insensitive
from tokenfst.automata.images.letters import Unit
from tokenfst.automata.images.rewriting import rewrite
from tokenfst.automata.languages.language import Language
from tokenfst.automata.openfst.files import read_fst
from tokenfst.budget import Budget
from tokenfst.cli.constraints.constraints import Constraint, of_words
from tokenfst.cli.output.terminal import UsageError
from tokenfst.errors import FstError

_PANEL = "Near texts"


class NormalForm(enum.StrEnum):
    """Unicode's normal forms."""

    NFC = "NFC"
    NFD = "NFD"
    NFKC = "NFKC"
    NFKD = "NFKD"


_FORMS: dict[NormalForm, Form] = {
    NormalForm.NFC: "NFC",
    NormalForm.NFD: "NFD",
    NormalForm.NFKC: "NFKC",
    NormalForm.NFKD: "NFKD",
}


@dataclass(frozen=True)
class RelationOptions:
    """Changes of a constraint's texts."""

    rewrite: Annotated[
        list[Path] | None,
        typer.Option(
            metavar="FST",
            help="The texts that a transducer writes when it reads the constraint's texts: an "
            "OpenFst file, or its text form. May be repeated; each reads what the one before "
            "writes.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    byte_zero: Annotated[
        int | None,
        typer.Option(
            metavar="0|1",
            min=0,
            max=1,
            help="The label of byte 0 in OpenFst files of --rewrite that have no symbol tables: 1, "
            "or 0 as in pynini's strings.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    case_insensitive: Annotated[
        bool,
        typer.Option(
            "--case-insensitive", help="Also texts that differ in case only.", rich_help_panel=_PANEL
        ),
    ] = False
    full_folding: Annotated[
        bool,
        typer.Option(
            "--full-folding",
            help="With --case-insensitive: 'ss' is equal to 'ß', as by str.casefold.",
            rich_help_panel=_PANEL,
        ),
    ] = False
    normalization_insensitive: Annotated[
        NormalForm | None,
        typer.Option(help="Also texts with the same Unicode normal form.", rich_help_panel=_PANEL),
    ] = None
    within_edits: Annotated[
        int | None,
        typer.Option(
            metavar="K",
            min=0,
            help="Also texts that differ from one of the constraint by at most K insertions, deletions and "
            "replacements of characters.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    transpositions: Annotated[
        bool,
        typer.Option(
            "--transpositions",
            help="With --within-edits: swapping two neighbouring characters is one edit.",
            rich_help_panel=_PANEL,
        ),
    ] = False
    edit_bytes: Annotated[
        bool,
        typer.Option(
            "--edit-bytes",
            help="With --within-edits: an edit changes one byte, not one character.",
            rich_help_panel=_PANEL,
        ),
    ] = False

    def related(self, given: Constraint, budget: Budget) -> Constraint:
        """The constraint of the texts that the options make from those of ``given``; ``given`` itself without options.

        Raises UsageError for options that cannot be combined and for constraints that are not regular, ``FstError``
        with the file's name, OSError, and the errors of the relations.
        """
        self._check()
        if not (
            self.rewrite
            or self.case_insensitive
            or self.normalization_insensitive
            or self.within_edits is not None
        ):
            return given
        if given.automaton is not None:
            raise UsageError(
                f"{given.source} is about sequences of symbols; --rewrite, --case-insensitive, "
                "--normalization-insensitive and --within-edits are about texts"
            )
        language = given.language
        for path in self.rewrite or ():
            language = _rewritten(language, path, self.byte_zero, budget)
        if self.case_insensitive:
            language = case_insensitive(language, full=self.full_folding, budget=budget)
        if self.normalization_insensitive is not None:
            form = _FORMS[self.normalization_insensitive]
            language = normalization_insensitive(language, form, budget=budget)
        if self.within_edits is not None:
            unit: Unit = "bytes" if self.edit_bytes else "characters"
            swaps = self.transpositions
            language = within_edits(
                language, self.within_edits, unit=unit, transpositions=swaps, budget=budget
            )
        return of_words(language)

    def refuse_for(self, what: str) -> None:
        """Raise UsageError if one of the options is given with something that is not a set of texts."""
        if self != RelationOptions():
            raise UsageError(
                "--rewrite, --case-insensitive, --normalization-insensitive, --within-edits and the options that go "
                f"with them are about texts, and this is {what}"
            )

    def _check(self) -> None:
        """Raise UsageError for an option without the one that it needs."""
        if self.full_folding and not self.case_insensitive:
            raise UsageError("--full-folding goes with --case-insensitive")
        if self.within_edits is None and (self.transpositions or self.edit_bytes):
            raise UsageError("--transpositions and --edit-bytes go with --within-edits")
        if self.byte_zero is not None and not self.rewrite:
            raise UsageError("--byte-zero goes with --rewrite")


def _rewritten(language: Language, path: Path, byte_zero: int | None, budget: Budget) -> Language:
    try:
        transducer = read_fst(path)
        named = transducer.input_symbols() is not None and transducer.output_symbols() is not None
        if not named and byte_zero is None:
            raise FstError(
                "it has no symbol tables, and its labels may be numbered in two ways: say --byte-zero 0 (label b for "
                "byte b, as in machines that pynini makes from strings) or --byte-zero 1 (label b + 1)"
            )
        made = rewrite(language, transducer, byte_zero=None if named else byte_zero, budget=budget)
    except FstError as error:
        raise FstError(f"{path}: {error}") from error
    return Language(made.expr, f"rewrite({language.source}, {path.name})", budget)
