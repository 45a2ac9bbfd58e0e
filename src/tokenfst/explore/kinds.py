"""The kinds of constraints that the explorer accepts, each with examples."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tokenfst.automata.languages.constraint import Constraint
from tokenfst.budget import Budget
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Make = Callable[[str, Vocabulary, Budget], Constraint]


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of constraint. ``name``: its name in queries; ``title``: its name on the page; ``examples``: pairs of a
    title and a text; ``make``: the function that makes the constraint from a text, which may raise any error.
    """

    name: str
    title: str
    examples: tuple[tuple[str, str], ...]
    make: Make


def _regex(text: str, vocabulary: Vocabulary, budget: Budget) -> Constraint:
    from tokenfst.automata.regex.translate import regex

    return regex(text, 0, budget).with_budget(budget)


def _schema(text: str, vocabulary: Vocabulary, budget: Budget) -> Constraint:
    from tokenfst.automata.json_schema.json_schema import json_schema

    return json_schema(text, budget=budget)


def _lark(text: str, vocabulary: Vocabulary, budget: Budget) -> Constraint:
    from tokenfst.automata.notations.lark_syntax import lark_grammar

    return lark_grammar(text).with_budget(budget)


def _gbnf(text: str, vocabulary: Vocabulary, budget: Budget) -> Constraint:
    from tokenfst.automata.notations.gbnf import gbnf

    return gbnf(text).with_budget(budget)


def _tag(text: str, vocabulary: Vocabulary, budget: Budget) -> Constraint:
    from tokenfst.automata.structural_tags.structural_tag import structural_tag

    return structural_tag(text, vocabulary=vocabulary, budget=budget)


_PERSON = """{
  "type": "object",
  "properties": {
    "name": {"type": "string", "minLength": 1},
    "born": {"type": "string", "format": "date"},
    "active": {"type": "boolean"}
  },
  "required": ["name", "born"],
  "additionalProperties": false
}"""
_ITEMS = """{
  "type": "array",
  "items": {"enum": ["red", "green", "blue"]},
  "uniqueItems": true,
  "minItems": 2
}"""
_ARITHMETIC = """start: sum
sum: product ("+" product)*
product: atom ("*" atom)*
atom: NUMBER | "(" sum ")"
NUMBER: /[0-9]+/
"""
_MAIL = """start: "To: " ADDRESS "\\n\\n" /[^\\n]+/
ADDRESS: /[a-z]+@[a-z]+\\.(com|org)/
"""
_MOVES = """root ::= move (" " move)*
move ::= [a-h] [1-8] "-" [a-h] [1-8]
"""
_NESTED = """root ::= "(" root ")" | [a-z]+
"""
_CALL = """{
  "type": "structural_tag",
  "format": {
    "type": "tag",
    "begin": "<call>",
    "content": {
      "type": "json_schema",
      "json_schema": {
        "type": "object",
        "properties": {"city": {"type": "string"}},
        "required": ["city"]
      }
    },
    "end": "</call>"
  }
}"""

KINDS = {
    kind.name: kind
    for kind in (
        Kind(
            "regex",
            "Regular expression",
            (
                ("Yes or no, then a number", "(yes|no), [0-9]{1,3} (apples|pears)"),
                ("A date", "[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"),
                ("Words, but one", "(?!never)[a-z]{1,8}( [a-z]{1,8}){0,3}"),
            ),
            _regex,
        ),
        Kind(
            "json_schema",
            "JSON Schema",
            (("A person", _PERSON), ("Different colours", _ITEMS), ("Anything", "{}")),
            _schema,
        ),
        Kind("lark", "Grammar (Lark)", (("Arithmetic", _ARITHMETIC), ("A mail", _MAIL)), _lark),
        Kind("gbnf", "Grammar (GBNF)", (("Moves", _MOVES), ("Brackets", _NESTED)), _gbnf),
        Kind("structural_tag", "Structural tag", (("A call", _CALL),), _tag),
    )
}
"""The kinds, in the order in which the page shows them."""
