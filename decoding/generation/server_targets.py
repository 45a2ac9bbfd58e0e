"""A target in words that a server knows: a schema, a pattern, a list of texts, a grammar's text.

A server compiles what it is sent, so a constraint that is only an automaton cannot be asked for. What can:

    what was given                                  what is sent
    a type, a function, a dict, json_schema(...)    the JSON Schema
    re.compile(...)                                 the pattern, its flags written in front
    Literal or Enum of texts                        the list
    ebnf(text), gbnf(text), lark_grammar(text)      the text
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.json_schema import SchemaGrammar, SchemaLanguage, json_schema

Notation: TypeAlias = Literal["json", "regex", "choice", "ebnf", "gbnf", "lark"]
_STARTS = {"ebnf": ("ebnf", "root"), "gbnf": ("gbnf", "root"), "lark_grammar": ("lark", "start")}
_FLAGS = ((re.ASCII, "a"), (re.IGNORECASE, "i"), (re.MULTILINE, "m"), (re.DOTALL, "s"), (re.VERBOSE, "x"))


@dataclass(frozen=True, slots=True)
class Said:
    """What is sent: ``what`` is the schema as Python has it, the pattern, the list, or the grammar's text. ``wider``
    makes the constraint of all spellings that mean the same, where the target does not say how a value is written."""

    notation: Notation
    what: Any
    wider: Callable[[], Any] | None = None


def any_spelling(schema: Any) -> SchemaLanguage | SchemaGrammar:
    """The texts of a schema's values, however they are spelled, laid out and ordered."""
    return json_schema(schema, spelling="any", property_order="any", surrounding="flexible")


def say_pattern(pattern: re.Pattern[Any]) -> Said | None:
    """A compiled pattern; None for one over bytes."""
    if not isinstance(pattern.pattern, str):
        return None
    flags = "".join(letter for flag, letter in _FLAGS if pattern.flags & flag)
    return Said("regex", f"(?{flags}){pattern.pattern}" if flags else pattern.pattern)


def say_constraint(constraint: Any) -> Said | None:
    """A constraint that was made from a schema or from a grammar's text; None for others."""
    if isinstance(constraint, SchemaLanguage | SchemaGrammar):
        document = constraint.document
        whole = not document.place and not document.made_of and document.resolver is None
        return Said("json", document.schema) if whole else None
    if not isinstance(constraint, Grammar) or not constraint.text:
        return None
    notation, start = _STARTS.get(constraint.source.partition("(")[0], (None, None))
    return Said(notation, constraint.text) if notation and constraint.start == start else None  # type: ignore[arg-type]
