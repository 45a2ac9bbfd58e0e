"""Structural tags on the command line: ``--structural-tag FILE``, with the vocabulary whose special tokens it names.

Errors begin with the file's name, followed by the JSON pointer of the position in it.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tokenfst.budget import Budget
from tokenfst.cli.constraints.grammars import read_text
from tokenfst.cli.output.terminal import UsageError
from tokenfst.errors import ConstraintError, EmptyLanguageError, SchemaError, StructuralTagError

if TYPE_CHECKING:
    from tokenfst.automata.grammars.grammar import Grammar
    from tokenfst.automata.languages.language import Language

_PANEL = "Structural tags"


class SpecialTokens(enum.StrEnum):
    """How a special token that a string of the tag names is matched."""

    TOKEN = "token"
    TEXT = "text"
    BOTH = "both"


@dataclass(frozen=True)
class TagOptions:
    """A structural tag."""

    structural_tag: Annotated[
        Path | None,
        typer.Option(
            "--structural-tag",
            metavar="FILE",
            help="A structural tag in JSON (the format that vLLM and SGLang take): free text with tagged parts.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    tag_vocabulary: Annotated[
        str | None,
        typer.Option(
            metavar="SPEC",
            help="The vocabulary whose special tokens the tag's strings name. If not given, such "
            "strings are text.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    special_tokens: Annotated[
        SpecialTokens | None,
        typer.Option(
            help="How a special token that the tag names is generated: as the token (if not given), as the text that "
            "spells it, or as either (both).",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def read_tag(self, budget: Budget) -> Language | Grammar | None:
        """The tag's texts, if one is given."""
        if self.structural_tag is None:
            if self.tag_vocabulary is not None or self.special_tokens is not None:
                raise UsageError("--tag-vocabulary and --special-tokens go with --structural-tag")
            return None
        from tokenfst.automata.structural_tags.structural_tag import structural_tag
        from tokenfst.tokenizers.adapters.sources import load_vocabulary

        path = self.structural_tag
        text = read_text(path, "the structural tag")
        vocabulary = None if self.tag_vocabulary is None else load_vocabulary(self.tag_vocabulary)
        try:
            return structural_tag(
                text,
                vocabulary=vocabulary,
                special_tokens=(self.special_tokens or SpecialTokens.TOKEN).value,
                source=f"structural_tag({path.name!r})",
                budget=budget,
            )
        except EmptyLanguageError as error:
            raise EmptyLanguageError(f"{path}: {error}") from error
        except (SchemaError, StructuralTagError) as error:
            raise ConstraintError(f"{path}: {error}") from error
