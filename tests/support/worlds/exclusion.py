"""A small vocabulary, and constraints with strings that must differ, for tests of dynamic exclusion."""

from __future__ import annotations

from typing import Any

import numpy as np

from tokenfst import Vocabulary, allocate_token_bitmask
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.exclusion_marks import fresh, opened
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.automata.languages.language import Language
from tokenfst.automata.regex.translate import regex

WORDS = [
    '","',
    '{"',
    '"a"',
    "\\u0061",
    '"a":0,"a"',
    '":0,"',
    'a":0,"a":0',
    "aa",
    'a"',
    '""',
    '"":0,"',
    '"a","',
    '","a',
]
WORDS += [
    "}}",
    '"}',
    '":{"',
    ', "a":',
    ': "',
    "[]",
    '"]',
    '"],"',
    '["a","a"]',
    '{"a":0,"\\u0061":0}',
    '","a","b"',
    "b",
]
TOKENS = [*(bytes((byte,)) for byte in range(256)), *(word.encode() for word in WORDS), b""]
END = len(TOKENS) - 1
VOCABULARY = Vocabulary(TOKENS, END)
TYPED = [*(TOKENS.index(sign.encode()) for sign in '{}[]":,a0\\'), *range(256, END)]


def allowed(matcher: Any) -> set[int]:
    mask = allocate_token_bitmask(1, len(VOCABULARY))
    matcher.fill_next_token_bitmask(mask, 0)
    return set(np.flatnonzero(np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")).tolist())


def text_of(matcher: Any) -> bytes:
    return b"".join(TOKENS[token] for token in matcher.tokens)


def compact(schema: Any, **options: Any) -> Any:
    """Its texts without white space, strings in every spelling: they are told apart by value."""
    return json_schema(schema, whitespace="compact", **{"spelling": "any", **options})


STRINGS = {"type": "array", "items": {"type": "string"}}
WORLDS: list[tuple[Any, Any, str]] = [
    ({"type": "object", "additionalProperties": {"const": 0}},) * 2 + ("{",),
    ({"type": "object", "properties": {"a": {"const": 0}}, "additionalProperties": {"const": 0}},) * 2
    + ("{",),
    ({"type": "object"},) * 2 + ("{",),
    ({**STRINGS, "uniqueItems": True}, STRINGS, "["),
    ({"type": "array", "items": {**STRINGS, "uniqueItems": True}}, {"type": "array", "items": STRINGS}, "["),
    (
        {"type": "object", "additionalProperties": {**STRINGS, "uniqueItems": True}},
        {"type": "object", "additionalProperties": STRINGS},
        "{[",
    ),
]
"""A schema, the same without what must differ (but for names), and the containers in which strings must differ."""


def listed(content: str, *, few_endings: bool = True, fewest: int = 0) -> Language:
    """A JSON array of different strings out of a language."""
    quote = ex.literal(b'"')
    item = fresh(ex.concat(quote, regex(content).expr, quote), few_endings=few_endings, fewest=fewest)
    more = ex.repeat(ex.concat(ex.literal(b","), item))
    return Language(ex.concat(opened(ex.literal(b"[")), ex.optional(ex.concat(item, more)), ex.literal(b"]")))
