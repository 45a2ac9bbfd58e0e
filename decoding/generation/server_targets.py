"""A target in a form that a server understands: a schema, a pattern, a list of texts, or the text of a grammar.

A server compiles constraints itself, so a constraint that is only an automaton cannot be sent. These can:

    given                                           sent
    a type, a function, a dict, json_schema(...)    the JSON Schema
    re.compile(...), regex(...), a str              the pattern, with its flags in front
    Literal or Enum of texts                        the list
    a language of at most 1,000 texts               the list
    ebnf(text), gbnf(text), lark_grammar(text)      the text
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import islice
from typing import Any, Literal, TypeAlias

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.json_schema import SchemaGrammar, SchemaLanguage, json_schema
from tokenfst.automata.languages.language import Language
from tokenfst.budget import QUICK
from tokenfst.errors import BudgetExceeded

Notation: TypeAlias = Literal["json", "regex", "choice", "ebnf", "gbnf", "lark"]
_STARTS = {"ebnf": ("ebnf", "root"), "gbnf": ("gbnf", "root"), "lark_grammar": ("lark", "start")}
_MOST_CHOICES = 1_000


@dataclass(frozen=True, slots=True)
class ServerConstraint:
    """The form in which a constraint is sent to a server.

    ``value``: a schema as a Python value, a pattern, a list of choices, or the text of a grammar, as ``notation`` says.
    ``wider``: makes the constraint that also accepts other spellings of the same values. A server may use them where
    the target does not fix how a value is spelled.
    """

    notation: Notation
    value: Any
    wider: Callable[[], Any] | None = None


def any_spelling(schema: Any) -> SchemaLanguage | SchemaGrammar:
    """The texts of a schema's values, in every spelling, layout and order of members."""
    return json_schema(schema, spelling="any", property_order="any", surrounding="flexible")


def constraint_for_server(constraint: Any) -> ServerConstraint | None:
    """The server's form of a constraint that was made from a schema, a pattern or a grammar's text, or that has few
    texts; None for other constraints.
    """
    if isinstance(constraint, SchemaLanguage | SchemaGrammar):
        document = constraint.document
        whole = not document.place and not document.made_of and document.resolver is None
        return ServerConstraint("json", document.schema) if whole else None
    if isinstance(constraint, Language):
        pattern = constraint.pattern
        return _list_of(constraint) if pattern is None else ServerConstraint("regex", pattern)
    if not isinstance(constraint, Grammar) or not constraint.text:
        return None
    notation, start = _STARTS.get(constraint.source.partition("(")[0], (None, None))
    if notation is None or constraint.start != start:
        return None
    return ServerConstraint(notation, constraint.text)  # type: ignore[arg-type]


def _list_of(language: Language) -> ServerConstraint | None:
    """The texts of a language, shortest first; None if they are too many or too hard to find, or not all UTF-8."""
    try:
        with_few = language.with_budget(QUICK)
        if with_few.automaton.has_marks or not with_few.is_finite():
            return None
        words = list(islice(with_few, _MOST_CHOICES + 1))
        texts = [word.decode() for word in words]
    except (BudgetExceeded, UnicodeDecodeError):
        return None
    return ServerConstraint("choice", texts) if 0 < len(texts) <= _MOST_CHOICES and all(texts) else None
