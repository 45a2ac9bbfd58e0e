"""Targets of ``Generator``: a Python type, a pattern, a schema or a constraint, as a constraint and a parser.

The first row that applies decides.

    what is given                               the text                    what comes back
    TokenAutomaton, CanonicalAutomaton          of its language             str
    constraint with ``parse`` (json_schema(),   of its language             what ``parse`` makes of it
      python_object(), ...)
    template(...)                               of its language             dict of str, one for each hole
    other Language, Grammar, SymbolAutomaton    of its language             str
    UNCONSTRAINED                               any text                    str
    str, re.compile(...)                        what it matches in full     str
    dict                                        JSON of that schema         what json.loads makes of it
    Literal or Enum, all of whose values are    one of them, no quotes      the value, or the member
      texts
    any other type, annotation or function      JSON                        an instance, as json_schema(...).parse

A str is a regular expression, as for ``regex``. A str that is probably meant as something else is refused: the JSON
text of an object (a schema), a text of several lines (a grammar), and "free" (no constraint):
docs/decisions/033-patterns-as-texts.md.

A text that is not UTF-8, which only constraints over bytes have, is decoded with ``surrogateescape``: encoding it with
that handler gives the bytes again.
"""

from __future__ import annotations

import contextlib
import enum
import json
import re
import typing
from collections.abc import Callable, Hashable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.grammars.templates import TemplateGrammar, TemplateLanguage
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.automata.languages.language import Language
from tokenfst.automata.pieces.taxonomy import choices
from tokenfst.automata.regex.translate import regex
from tokenfst.automata.symbols.automaton import SymbolAutomaton
from tokenfst.common.arguments import shown
from tokenfst.decoding.canonical.automaton import CanonicalAutomaton
from tokenfst.decoding.generation.server_targets import ServerConstraint, any_spelling
from tokenfst.decoding.matchers.unconstrained import FREE, UNCONSTRAINED
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import ArgumentTypeError, PatternError

Constraint: TypeAlias = Language | Grammar | SymbolAutomaton
Compiled: TypeAlias = TokenAutomaton | CanonicalAutomaton


@dataclass(frozen=True, slots=True)
class Target:
    """The constraint of the text, its parser, and its form in a server request, if it differs from the constraint's."""

    constraint: Constraint | Compiled
    parse: Callable[[bytes], Any]
    for_server: ServerConstraint | None = None


def read_target(target: Any) -> Target:
    """The target of an argument.

    Raises ArgumentTypeError for the text of a schema or a grammar and for anything that is not a constraint or type,
    and the errors of ``json_schema``, ``regex`` and ``choices`` for targets without an exact constraint.
    """
    if isinstance(target, Target):
        return target
    if isinstance(target, TemplateLanguage | TemplateGrammar):
        return Target(target, lambda text: {name: as_text(part) for name, part in target.parse(text).items()})
    if isinstance(target, Language | Grammar | SymbolAutomaton | TokenAutomaton | CanonicalAutomaton):
        return Target(target, getattr(target, "parse", as_text))
    if target is UNCONSTRAINED:
        return Target(regex("(?s:.*)"), as_text)
    if isinstance(target, re.Pattern):
        return Target(regex(target.pattern, target.flags & ~re.DEBUG), as_text)
    if isinstance(target, str):
        _refuse_other_notations(target)
        return Target(_pattern(target), as_text)
    if isinstance(target, bytes):
        raise ArgumentTypeError(
            f"a target that is a pattern must be a str, or re.compile(...), not {shown(target)}"
        )
    if target is None or isinstance(target, bool | int | float | list | tuple | set):
        several = isinstance(target, list | tuple | set)
        raise ArgumentTypeError(
            "a target must be a type, a function, a pattern (a str or re.compile(...)), the dict of a JSON Schema, or "
            f"a constraint, not {shown(target)}"
            + (
                ". Write list[...] for a list of values, Literal[...] for one of several texts"
                if several
                else ". Write tokenfst.UNCONSTRAINED for any text"
                if target is None
                else ""
            )
        )
    labels = None if isinstance(target, dict) else _labels(target)
    if labels is not None:
        return Target(
            choices(labels), lambda text: labels[as_text(text)], ServerConstraint("choice", [*labels])
        )
    schema = json_schema(target)
    for_server = ServerConstraint("json", schema.document.schema, lambda: any_spelling(target))
    return Target(schema, schema.parse, for_server)


def _pattern(text: str) -> Language:
    try:
        return regex(text)
    except PatternError as error:
        error.add_note(
            "a str as target is read as a regular expression: Literal[text] stands for the text itself"
        )
        raise


def _refuse_other_notations(text: str) -> None:
    """Refuse a str that is the text of a schema or a grammar: as a pattern it would mean something else."""
    if text == FREE:
        raise ArgumentTypeError(
            f"the target {text!r} would allow the text {text!r} alone: write tokenfst.UNCONSTRAINED for any text, or "
            f"regex({text!r}) for this one"
        )
    meant = ""
    if text.lstrip().startswith("{"):
        with contextlib.suppress(ValueError, RecursionError):
            meant = "json_schema(text)" if isinstance(json.loads(text), dict) else ""
    elif "\n" in text:
        meant = "lark_grammar(text), gbnf(text) or ebnf(text)"
    if meant:
        raise ArgumentTypeError(
            f"a str as target is read as a regular expression, and {shown(text)} does not look like one: write {meant} "
            "if it is in that notation, or regex(text) if it is a regular expression"
        )


def key_of(target: Any) -> Hashable | None:
    """The key of a target in the cache of read targets; None if the target cannot be cached."""
    try:
        key: Hashable = (type(target), json.dumps(target) if isinstance(target, dict) else target)
        hash(key)
    except (TypeError, ValueError, RecursionError):
        return None
    return key


def as_text(text: bytes) -> str:
    """A text as a Python str."""
    return text.decode("utf-8", "surrogateescape")


def _labels(target: Any) -> dict[str, Any] | None:
    """The texts that a type lists, with the value of each; None if the type is not a list of texts."""
    if typing.get_origin(target) is Literal:
        listed = [(value, value) for value in typing.get_args(target)]
    elif isinstance(target, enum.EnumType) and not issubclass(target, enum.Flag):
        members: Any = target
        listed = [(member.value, member) for member in members]
    else:
        return None
    return dict(listed) if listed and all(type(value) is str and value for value, _ in listed) else None
