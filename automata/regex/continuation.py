"""Parts of an expression that depend on their continuation, the rest of the text, which look-ahead restricts.

A part without look-ahead is an ``Expr``; any other part is one of the nodes below. ``before`` turns a part and the
language of the following text into an expression. Invariant: a ``Choice``, ``Sequence`` or ``Loop`` contains
look-ahead, so everything else stays a plain expression (and its repetitions stay counted).

Cost: linear in ``weight``, the number of nodes after counted loops are expanded.
"""

from __future__ import annotations

from collections.abc import Sequence as Parts
from dataclasses import dataclass

from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    UNIVERSE,
    Expr,
    concat,
    intersect,
    recursive,
    union,
)


@dataclass(frozen=True, slots=True)
class Ahead:
    """The empty word, where the rest of the text is in ``rest``."""

    rest: Expr
    weight: int = 1


@dataclass(frozen=True, slots=True)
class Sequence:
    """A concatenation of parts, some with look-ahead."""

    parts: tuple[Part, ...]
    weight: int


@dataclass(frozen=True, slots=True)
class Choice:
    """A union of parts, some with look-ahead."""

    parts: tuple[Part, ...]
    weight: int


@dataclass(frozen=True, slots=True)
class Loop:
    """A part with look-ahead, ``low`` to ``high`` times."""

    body: Part
    low: int
    high: int | None
    weight: int


Part = Expr | Ahead | Sequence | Choice | Loop


def _weight(part: Part) -> int:
    return 1 if isinstance(part, Expr) else part.weight


def sequence(parts: Parts[Part]) -> Part:
    """The concatenation of parts: a plain expression if all are."""
    if any(part is EMPTY for part in parts):
        return EMPTY
    kept = [part for part in parts if part is not EPSILON]
    plain = [part for part in kept if isinstance(part, Expr)]
    if len(plain) == len(kept):
        return concat(*plain)
    return kept[0] if len(kept) == 1 else Sequence(tuple(kept), sum(map(_weight, kept)))


def choice(parts: Parts[Part]) -> Part:
    """The union of parts: a plain expression if all are."""
    kept = [part for part in parts if part is not EMPTY]
    plain = [part for part in kept if isinstance(part, Expr)]
    if len(plain) == len(kept):
        return union(*plain)
    return kept[0] if len(kept) == 1 else Choice(tuple(kept), sum(map(_weight, kept)))


def before(part: Part, rest: Expr) -> Expr:
    """``part`` followed by ``rest``, the language of the whole remaining text."""
    if isinstance(part, Expr):
        return concat(part, rest)
    if isinstance(part, Ahead):
        return part.rest if rest is UNIVERSE else intersect(part.rest, rest)
    if isinstance(part, Sequence):
        for each in reversed(part.parts):
            rest = before(each, rest)
        return rest
    if isinstance(part, Choice):
        return union(*[before(each, rest) for each in part.parts])
    body, tail = part.body, rest
    if part.high is None:
        tail = recursive(lambda again: union(rest, before(body, again)))
    else:
        for _ in range(part.high - part.low):
            tail = union(rest, before(body, tail))
    for _ in range(part.low):
        tail = before(body, tail)
    return tail
