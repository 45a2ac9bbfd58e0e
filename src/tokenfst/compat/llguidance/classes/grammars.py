"""Translates llguidance's grammars: from the text that an ``LLMatcher`` gets to a constraint.

A grammar is a text in Lark's notation, or JSON: ``{"grammars": [{"name": ..., "lark_grammar" | "json_schema" |
"regex" | "gbnf" | "choice": ...}, ...]}``. The first grammar of that list is the constraint; ``@name`` refers to one
of the others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.automata.languages.language import Language
from tokenfst.automata.notations.gbnf import gbnf
from tokenfst.automata.notations.lark_syntax import lark_grammar
from tokenfst.automata.pieces.taxonomy import choices
from tokenfst.automata.regex.translate import regex
from tokenfst.common.arguments import shown
from tokenfst.errors import ConstraintError

GrammarFormat: TypeAlias = Literal[
    "lark", "gbnf", "ebnf", "cfg", "grammar", "json_schema", "json", "regex", "choice", "llguidance"
]
_KINDS = ("json_schema", "regex", "gbnf", "choice", "lark_grammar")
_OPTIONS: dict[str, Any] = {
    "item_separator": None,
    "key_separator": None,
    "whitespace_flexible": True,
    "whitespace_pattern": None,
    "coerce_one_of": False,
    "lenient": False,
    "json_allowed_escapes": None,
    "json_allow_general_unicode_escapes": False,
}
_IGNORED = ("coerce_one_of",)
"""``oneOf`` is exact here, so no schema has to be coerced."""
_NAMED = re.compile(r"@([A-Za-z_][A-Za-z0-9_]*)")


@dataclass
class LLParserLimits:
    """Limits of llguidance's parser. They have no effect here, because constraints have budgets
    (docs/project/reliability.md).
    """

    max_items_in_row: int | None = None
    initial_lexer_fuel: int | None = None
    step_lexer_fuel: int | None = None
    step_max_items: int | None = None
    max_lexer_states: int | None = None
    max_grammar_size: int | None = None
    precompute_large_lexemes: bool | None = None
    verbose_errors: bool | None = None

    def __post_init__(self) -> None:
        for name, default in _LIMITS.items():
            if getattr(self, name) is None:
                setattr(self, name, default)


_LIMITS: dict[str, int | bool] = {
    "max_items_in_row": 2000,
    "initial_lexer_fuel": 1_000_000,
    "step_lexer_fuel": 200_000,
    "step_max_items": 50_000,
    "max_lexer_states": 250_000,
    "max_grammar_size": 500_000,
    "precompute_large_lexemes": True,
    "verbose_errors": True,
}


def json_schema_grammar(
    schema: str | Mapping[str, Any], defaults: Mapping[str, Any], overrides: Mapping[str, Any]
) -> str:
    """The grammar of a JSON Schema. Text that is not JSON raises an error only when the grammar is read."""
    try:
        value: Any = json.loads(schema) if isinstance(schema, str) else dict(schema)
    except ValueError as error:
        return json.dumps({"grammars": [{"json_schema_error": f"json_schema: this is not JSON: {error}"}]})
    said = dict(defaults)
    if isinstance(value, dict) and isinstance(value.get("x-guidance"), Mapping):
        said |= value["x-guidance"]
    said |= overrides
    if isinstance(value, dict):
        value = {**value, "x-guidance": said} if said else value
    return json.dumps({"grammars": [{"json_schema": value}]})


def regex_grammar(pattern: str) -> str:
    """The grammar of a pattern."""
    return json.dumps({"grammars": [{"regex": pattern}]})


def grammar_from(format: GrammarFormat, text: str) -> str:
    """Make a grammar for ``LLMatcher`` from a text in one of llguidance's formats."""
    if format in ("json_schema", "json"):
        return json_schema_grammar(text, {}, {})
    if format == "regex":
        return regex_grammar(text)
    if format in ("lark", "llguidance"):
        return text
    if format in ("gbnf", "ebnf", "cfg", "grammar"):
        return text if "::=" not in text else json.dumps({"grammars": [{"gbnf": text}]})
    if format == "choice":
        return json.dumps({"grammars": [{"choice": json.loads(text) if isinstance(text, str) else text}]})
    raise ValueError(f"unknown format {format!r}")


def constraint_of(grammar: str) -> Language | Grammar:
    """The constraint that a grammar's text describes."""
    if not grammar.lstrip().startswith("{"):
        return lark_grammar(grammar, allow_initial_skip=False)
    try:
        parts = json.loads(grammar)["grammars"]
        first = parts[0]
        names = {each["name"]: each for each in parts[1:]}
    except (ValueError, KeyError, TypeError, IndexError):
        raise ConstraintError(
            'a grammar is a text in Lark\'s notation, or {"grammars": [...]}: one grammar, and others with names'
        ) from None
    return _part(first, names, ())


def _part(part: Any, named: Mapping[str, Any], within: tuple[str, ...]) -> Language | Grammar:
    """The constraint of one of the grammars. ``within``: the names of the grammars that contain it."""
    if isinstance(part, Mapping) and "json_schema_error" in part:
        raise ConstraintError(str(part["json_schema_error"]))
    kind = isinstance(part, Mapping) and next((name for name in _KINDS if part.get(name) is not None), None)
    if not kind:
        raise ConstraintError(f"one of the grammars has none of {', '.join(_KINDS)}")
    said = part[kind]
    if kind == "json_schema":
        return _schema(said, part.get("options"))
    if kind == "regex":
        return regex(said)
    if kind == "gbnf":
        return gbnf(said)
    if kind == "choice":
        return choices(said)
    given = {}
    for name in sorted(set(_NAMED.findall(said)) & named.keys()):
        if name in within:
            raise ConstraintError(f"the grammar @{name} is a part of itself, which is not supported")
        given[name] = _part(named[name], named, (*within, name))
    return lark_grammar(said, grammars=given, allow_initial_skip=False)


def _schema(schema: Any, options: Any) -> Language | Grammar:
    said = {**(options or {})}
    if isinstance(schema, Mapping):
        said |= schema.get("x-guidance") or {}
        schema = {name: value for name, value in schema.items() if name != "x-guidance"}
    if unknown := sorted(said.keys() - _OPTIONS.keys()):
        raise ConstraintError(f"json_schema: there is no option {unknown[0]!r}")
    for name in ("json_allowed_escapes", "json_allow_general_unicode_escapes"):
        if said.get(name) not in (None, False):
            raise ConstraintError(f"json_schema: the option {name} is not supported")
    found = {name: default if said.get(name) is None else said[name] for name, default in _OPTIONS.items()}
    lenient: Literal["raise", "relax"] = "relax" if found["lenient"] else "raise"
    item, key = found["item_separator"], found["key_separator"]
    if found["whitespace_flexible"]:
        if (item or ",").strip() != "," or (key or ":").strip() != ":":
            raise ConstraintError(f"json_schema: separators are commas and colons, not {shown((item, key))}")
        return json_schema(
            schema, whitespace=found["whitespace_pattern"] or r"[ \n\r\t]*", on_unsupported=lenient
        )
    return json_schema(schema, separators=(item or ",", key or ":"), on_unsupported=lenient)


def warnings_of(constraint: Language | Grammar) -> list[str]:
    """The keywords of a schema that were left out."""
    return [str(each) for each in getattr(constraint, "relaxed", ())]


def regex_to_lark(regex: str, use_ascii: str = "") -> str:
    r"""A pattern in the form in which Lark's notation takes it between slashes.

    ``use_ascii``: which of ``d``, ``w`` and ``s`` match ASCII characters only.
    """
    found, escaped = [], False
    for letter in regex:
        if letter == "\\" and not escaped:
            escaped = True
            continue
        if escaped and letter.lower() in _CLASSES and letter.lower() in use_ascii:
            mark = "^" if letter.isupper() else ""
            found.append(f"[{mark}{_CLASSES[letter.lower()]}]")
        elif letter == "/":
            found.append("\\/")
        elif letter == "\n":
            found.append("\\n")
        else:
            found.append(f"\\{letter}" if escaped else letter)
        escaped = False
    return "".join(found)


_CLASSES = {"d": "0-9", "w": "0-9a-zA-Z_", "s": r" \t\n\r\f\v"}
