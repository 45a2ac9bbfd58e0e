"""``tokenfst diff``: the relation of two languages, with strings that show it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget
from tokenfst.cli.constraints import options
from tokenfst.cli.constraints.constraints import Constraint, is_artifact, is_file, pattern_in, read_constraint
from tokenfst.cli.constraints.relations import RelationOptions
from tokenfst.cli.input import groups
from tokenfst.cli.input.budgets import BudgetOptions
from tokenfst.cli.output.terminal import Exit, UsageError, json_bytes, quoted, say, say_json, say_pairs
from tokenfst.cli.questions.schema_changes import diff_schemas, is_schema

_SHOWN_WITNESS = 200

_RELATIONS = {
    "equivalent": "equivalent: A and B hold the same strings",
    "a_in_b": "different: every string of A is in B, but not the other way round",
    "b_in_a": "different: every string of B is in A, but not the other way round",
    "overlapping": "different: A and B share some strings, and each has strings of its own",
    "disjoint": "different: A and B share no string",
}


def register(app: typer.Typer) -> None:
    """Add the command to the program."""
    groups.register(app, "diff", diff_command)


def diff_command(
    *,
    a: Annotated[
        str,
        typer.Argument(
            metavar="A",
            show_default=False,
            help="A pattern, an artifact (*.safetensors), or the old version of a JSON Schema (a file, *.json).",
        ),
    ],
    b: Annotated[
        str,
        typer.Argument(
            metavar="B", show_default=False, help="A pattern, an artifact, or the new version of the schema."
        ),
    ],
    files: Annotated[bool, typer.Option("--files", help="A and B are files with a pattern each.")] = False,
    includes: Annotated[
        bool,
        typer.Option(
            "--includes", help="Ask whether A includes B: exit code 0 if every string of B is in A."
        ),
    ] = False,
    flags: options.Flags = "",
    relating: RelationOptions,
    budgeting: BudgetOptions,
    json: options.Json = False,
) -> int:
    """Compare two constraints: do they allow the same strings? If not, show a shortest string that only one of them
    allows.

    The answer is exact. Exit code 0: they are equivalent (with --includes: A includes B); 1: they are not.

    For two versions of a JSON Schema: does B allow every value that A allows? If not, show the places that
    changed, with a shortest value for each. Exit code 0: backward compatible (with --includes: and B allows no
    other values); 1: not.
    """
    budget = budgeting.read()
    if is_schema(a) and is_schema(b):
        relating.refuse_for("a JSON Schema")
        if files or flags:
            raise UsageError("--files and --flags are for patterns, not for JSON Schemas")
        return diff_schemas(Path(a), Path(b), includes, budget, json)
    if not files:
        _refuse_files(a, b)
    left, right = (relating.related(_read(word, files, flags, budget), budget) for word in (a, b))
    relation, witnesses = compare(left.language, right.language)
    holds = relation == "equivalent" or (includes and relation == "b_in_a")
    if json:
        answer: dict[str, Any] = {
            "command": "diff",
            "a": left.language.source,
            "b": right.language.source,
            "relation": relation,
            "equivalent": relation == "equivalent",
            "a_includes_b": relation in ("equivalent", "b_in_a"),
            "b_includes_a": relation in ("equivalent", "a_in_b"),
        }
        say_json(
            answer | {name: None if word is None else json_bytes(word) for name, word in witnesses.items()}
        )
        return Exit.YES if holds else Exit.NO
    if includes:
        say("yes: A includes B" if holds else "no: B has strings that are not in A")
    say(_RELATIONS[relation])
    shown = [
        (name.replace("_", " ").replace(" a", " A").replace(" b", " B"), quoted(word, _SHOWN_WITNESS))
        for name, word in witnesses.items()
        if word is not None
    ]
    if shown:
        say_pairs(shown, "  ")
    return Exit.YES if holds else Exit.NO


def _refuse_files(a: str, b: str) -> None:
    """Raise UsageError for a name of a file that is not an artifact: a schema or a pattern in the file was meant."""
    for one, other in ((a, b), (b, a)):
        if is_artifact(one) or not is_file(one):
            continue
        if is_schema(one):
            why = (
                "there is no such file"
                if other.endswith(".json")
                else "the name of a schema's file ends in .json"
            )
            raise UsageError(
                f"{one} is a JSON Schema, which is compared with another version of it, and {other} is none: {why}"
            )
        raise UsageError(
            f"{one} is a file: --files compares the patterns in two files, and JSON Schemas are compared if both names "
            "end in .json"
        )


def _read(word: str, files: bool, flags: str, budget: Budget) -> Constraint:
    if files and not is_artifact(word):
        return pattern_in(Path(word), flags, budget)
    return read_constraint(word, "" if is_artifact(word) else flags, budget)


def compare(a: Language, b: Language) -> tuple[str, dict[str, bytes | None]]:
    """The relation of two languages, with shortest strings that are only in one of them, or in both if that is a part
    of the answer.

    The keys of the strings are ``only_in_a``, ``only_in_b`` and ``in_both``.
    """
    only_b, only_a = a.includes(b).witness, b.includes(a).witness
    both = (a & b).witness() if only_a is not None and only_b is not None else None
    if only_a is None:
        relation = "equivalent" if only_b is None else "a_in_b"
    elif only_b is None:
        relation = "b_in_a"
    else:
        relation = "disjoint" if both is None else "overlapping"
    return relation, {"only_in_a": only_a, "only_in_b": only_b, "in_both": both}
