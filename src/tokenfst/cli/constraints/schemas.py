"""JSON Schemas on the command line: the schema's file, and how its values are written, as one group of options.

Errors begin with the file's name, followed by the JSON pointer of the keyword. Relaxed keywords are warnings. The front
end is imported only if a schema is given, so that other commands start faster.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tokenfst.budget import Budget
from tokenfst.cli.constraints.grammars import read_text
from tokenfst.cli.output.terminal import UsageError, warn
from tokenfst.errors import ConstraintError, EmptyLanguageError, SchemaError

if TYPE_CHECKING:
    from tokenfst.automata.json_schema.json_schema import SchemaGrammar, SchemaLanguage

_PANEL = "JSON Schema"
_OPTIONS = (
    "spelling",
    "whitespace",
    "separators",
    "indent",
    "surrounding",
    "draft",
    "additional_properties",
    "repeated_names",
    "formats",
    "on_unsupported",
    "document",
)


class Draft(enum.StrEnum):
    """The supported drafts."""

    DRAFT_04 = "draft-04"
    DRAFT_06 = "draft-06"
    DRAFT_07 = "draft-07"
    DRAFT_2019_09 = "2019-09"
    DRAFT_2020_12 = "2020-12"


class Spelled(enum.StrEnum):
    """How strings, names and numbers are written."""

    PLAIN = "plain"
    ASCII = "ascii"
    ANY = "any"


class Around(enum.StrEnum):
    """White space before and after the value."""

    NONE = "none"
    FLEXIBLE = "flexible"


class Additional(enum.StrEnum):
    """Members that a schema does not name."""

    SCHEMA = "schema"
    FORBID = "forbid"


class Repeated(enum.StrEnum):
    """Whether a text may repeat names that its schema does not list."""

    FORBID = "forbid"
    ALLOW = "allow"


class Formats(enum.StrEnum):
    """Whether ``format`` is a constraint."""

    ASSERT = "assert"
    ANNOTATE = "annotate"


class OnUnsupported(enum.StrEnum):
    """What happens to unsupported keywords."""

    RAISE = "raise"
    RELAX = "relax"


@dataclass(frozen=True, slots=True)
class SchemaOptions:
    """A JSON Schema."""

    json_schema: Annotated[
        Path | None,
        typer.Option(
            "--json-schema",
            metavar="FILE",
            help="A JSON Schema: the constraint is the JSON texts of the values that it allows.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    spelling: Annotated[
        Spelled | None,
        typer.Option(
            help="How strings, names and numbers are written: plain (if not given), as "
            "json.dumps(x, ensure_ascii=False) writes them; ascii, as json.dumps(x) does; "
            "any, in every spelling that JSON allows.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    whitespace: Annotated[
        str | None,
        typer.Option(
            metavar="POLICY",
            help="White space between the tokens of JSON: flexible (if not given), compact, "
            "pretty, or a pattern.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    separators: Annotated[
        tuple[str, str] | None,
        typer.Option(
            metavar="ITEM NAME",
            help="Instead of --whitespace: the text between members and the text after names, as "
            'in json.dumps: "," ":".',
            rich_help_panel=_PANEL,
        ),
    ] = None
    indent: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=0,
            max=64,
            help="Instead of --whitespace: the lines of json.dumps(indent=N).",
            rich_help_panel=_PANEL,
        ),
    ] = None
    surrounding: Annotated[
        Around | None,
        typer.Option(
            help="White space before and after the value: none (if not given), or flexible.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    draft: Annotated[
        Draft | None,
        typer.Option(
            help="The schema's draft. If not given, $schema names it; without $schema it is 2020-12.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    additional_properties: Annotated[
        Additional | None,
        typer.Option(
            help="Members that a schema does not mention: schema (if not given) allows them, as "
            "JSON Schema does; forbid does not.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    repeated_names: Annotated[
        Repeated | None,
        typer.Option(
            help="Whether a text may repeat a name that its schema does not list: forbid (if not "
            "given) or allow. With allow, a schema that is not recursive has a finite "
            "automaton.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    formats: Annotated[
        Formats | None,
        typer.Option(
            help="Whether format constrains strings: assert (if not given) or annotate.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    on_unsupported: Annotated[
        OnUnsupported | None,
        typer.Option(
            help="Keywords that have no exact automaton: raise (if not given) reports an error; "
            "relax ignores them, with a warning for each.",
            rich_help_panel=_PANEL,
        ),
    ] = None
    document: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URI=FILE",
            help="A schema that $ref names by its URI; may be repeated. Nothing is fetched from the network.",
            rich_help_panel=_PANEL,
        ),
    ] = None

    def read_schema(self, budget: Budget) -> SchemaLanguage | SchemaGrammar | None:
        """The texts of the schema, if one is given; warns about relaxed keywords."""
        if self.json_schema is None:
            for name in _OPTIONS:
                if getattr(self, name) is not None:
                    raise UsageError(f"--{name.replace('_', '-')} goes with --json-schema")
            return None
        from tokenfst.automata.json_schema.json_schema import json_schema

        documents: dict[str, str] = {}
        for given in self.document or ():
            uri, schema = _document(given)
            if uri in documents:
                raise UsageError(f"--document gives {uri} twice: give each URI once")
            documents[uri] = schema
        text = read_text(self.json_schema, "the schema")
        try:
            made = json_schema(
                text,
                draft=self.draft,
                spelling=(self.spelling or Spelled.PLAIN).value,
                whitespace=self.whitespace or "flexible",
                separators=self.separators,
                indent=self.indent,
                surrounding=(self.surrounding or Around.NONE).value,
                additional_properties=(self.additional_properties or Additional.SCHEMA).value,
                repeated_names=(self.repeated_names or Repeated.FORBID).value,
                formats=(self.formats or Formats.ASSERT).value,
                on_unsupported=(self.on_unsupported or OnUnsupported.RAISE).value,
                resolver=documents.get if documents else None,
                source=f"json_schema({self.json_schema.name!r})",
                budget=budget,
            )
        except EmptyLanguageError as error:
            raise EmptyLanguageError(f"{self.json_schema}: {error}") from error
        except SchemaError as error:
            raise ConstraintError(f"{self.json_schema}: {error}") from error
        for each in made.relaxed:
            warn(f"left out: {each}")
        return made


def _document(argument: str) -> tuple[str, str]:
    uri, separator, name = argument.rpartition("=")
    if not separator or not uri or not name:
        raise UsageError(f"--document takes URI=FILE, not {argument!r}")
    return uri, read_text(Path(name), "the schema")
