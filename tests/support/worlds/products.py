"""Languages to meet grammars with, and whether a product has a word."""

from __future__ import annotations

from tokenfst import Language
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    repeat,
)
from tokenfst.automata.grammars.grammar import Grammar


def contains(text: str) -> Language:
    return Language.any_bytes() + Language.literal(text) + Language.any_bytes()


def at_most(length: int) -> Language:
    """Any bytes, but no more than ``length`` of them."""
    return Language(repeat(ANY_BYTE, 0, length))


def has(grammar: Grammar, word: bytes) -> bool:
    """Whether the grammar has the word: its product with that word alone is not empty."""
    return not (grammar & Language.literal(word)).is_empty()
