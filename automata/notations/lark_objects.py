"""What llguidance writes as a JSON object behind ``%regex``: the substrings of a text, by characters, words or
chunks."""

from __future__ import annotations

from typing import Any

from tokenfst.automata.expressions.expression import EPSILON, Expr, concat, literal, optional, union
from tokenfst.automata.languages.constraint import encode
from tokenfst.automata.pieces.substrings import substring_of
from tokenfst.budget import Budget
from tokenfst.errors import ConstraintError

_KINDS = ("substring_chars", "substring_words", "substring_chunks")


def substrings(value: Any, budget: Budget | None) -> Expr:
    """The words of such an object. ConstraintError for another one."""
    kind = next(iter(value), None) if isinstance(value, dict) and len(value) == 1 else None
    if kind not in _KINDS:
        raise ConstraintError(f"behind %regex stands an object with one of {', '.join(_KINDS)}")
    given = value[kind]
    if kind == "substring_chunks":
        if not isinstance(given, list) or not all(isinstance(chunk, str) for chunk in given):
            raise ConstraintError("substring_chunks takes a list of strings")
        return _of_chunks(given)
    if not isinstance(given, str):
        raise ConstraintError(f"{kind} takes a string")
    return substring_of(given, kind == "substring_words", budget=budget).expr


def text_of(value: Any) -> str | None:
    """The text of an object that has all substrings by characters; None of others."""
    text = value.get("substring_chars") if isinstance(value, dict) and len(value) == 1 else None
    return text if isinstance(text, str) else None


def _of_chunks(chunks: list[str]) -> Expr:
    """Chunks that stand together, from any one on."""
    onward: Expr = EPSILON
    found = [onward]
    for chunk in reversed(chunks):
        data = encode(chunk)
        if data is None:
            raise ConstraintError("a chunk holds a lone surrogate, which has no UTF-8 encoding")
        onward = optional(concat(literal(data), onward))
        found.append(onward)
    return union(*found)
