"""Restriction of a language to texts with a given number of characters, reusing counted repetitions.

"``[a-z0-9-]+`` of at most 63 characters" is an intersection with a counter, and a product has as many states as the
product of both, in which nothing is a counted repetition any more. Usually this is not needed: in a concatenation in
which all parts but one have a fixed length, the bounds move to that part; a repetition of parts of equal length takes
them as its own bounds; a union passes them on. Only the rest is intersected. Exact in every case.

Cost: linear in the expression.
"""

from __future__ import annotations

from tokenfst.automata.characters.classes import character_set
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, single_characters
from tokenfst.automata.expressions.expression import (
    EMPTY,
    Dfa,
    Expr,
    Op,
    body_of,
    bounds_of,
    complement,
    concat,
    intersect,
    repeat,
    scope,
    union,
)
from tokenfst.automata.languages.language import Language
from tokenfst.errors import ConstraintError

MAX_LENGTH = (1 << 31) - 1
"""The greatest bound of a counted repetition."""

_Width = tuple[int, int | None]
"""The least and the greatest number of characters; ``None``: unbounded or unknown."""

_UNKNOWN: _Width = (0, None)
_DEPTH = 50
"""Maximum nesting depth of expressions into which bounds are moved."""


def of_length(content: Language, low: int = 0, high: int | None = None) -> Language:
    """The words of ``content`` (text in UTF-8) with ``low`` to ``high`` code points; ``None``: at least ``low``.

    Raises ConstraintError unless 0 <= low <= high <= ``MAX_LENGTH``.
    """
    check_bounds(low, high)
    expr = _Narrowed(content.expr).within(content.expr, low, high)
    return Language(expr, f"of_length({content.source}, {low}, {high})", content.budget)


def check_bounds(low: int, high: int | None) -> None:
    """Raise ConstraintError for invalid bounds of a counted repetition."""
    if not 0 <= low <= (MAX_LENGTH if high is None else high) <= MAX_LENGTH:
        raise ConstraintError(
            f"a length must lie between bounds 0 <= low <= high <= {MAX_LENGTH}, not {low} and {high}"
        )


class _Narrowed:
    def __init__(self, root: Expr) -> None:
        self.widths: dict[int, _Width] = {}
        for node in root.walk():
            self.widths[id(node)] = self._width(node)

    def within(self, node: Expr, low: int, high: int | None, depth: int = 0) -> Expr:
        least, greatest = self.widths[id(node)]
        if (high is not None and least > high) or (greatest is not None and greatest < low):
            return EMPTY
        if least >= low and (high is None or (greatest is not None and greatest <= high)):
            return node
        if depth < _DEPTH:
            if node.op is Op.UNION:
                return union(*(self.within(arg, low, high, depth + 1) for arg in node.args))
            if node.op is Op.SCOPE:
                return scope(self.within(body_of(node), low, high, depth + 1))
            if node.op is Op.CONCAT:
                return self._concatenation(node, low, high, depth)
            if node.op is Op.REPEAT and (narrowed := self._repetition(node, low, high)) is not None:
                return narrowed
        character = character_set(((0, MAX_CODE_POINT),), True)
        if high is None:  # once a text is long enough, nothing is left of an intersection with a complement
            return intersect(node, complement(repeat(character, 0, low - 1)))
        return intersect(node, repeat(character, low, high))

    def _concatenation(self, node: Expr, low: int, high: int | None, depth: int) -> Expr:
        """Apply the bounds, less the fixed lengths, to the one part without a fixed length; to all, if there are
        several.
        """
        widths = [self.widths[id(arg)] for arg in node.args]
        loose = [k for k, (least, greatest) in enumerate(widths) if least != greatest]
        if len(loose) != 1:
            return self.within(node, low, high, _DEPTH)
        fixed = sum(least for least, greatest in widths if least == greatest)
        rest = None if high is None else high - fixed
        part = self.within(node.args[loose[0]], max(low - fixed, 0), rest, depth + 1)
        return concat(*node.args[: loose[0]], part, *node.args[loose[0] + 1 :])

    def _repetition(self, node: Expr, low: int, high: int | None) -> Expr | None:
        """The bounds as those of the repetition, if all rounds have the same length."""
        least, greatest = self.widths[id(body_of(node))]
        if least != greatest or least == 0:
            return None
        first, last = bounds_of(node)
        first = max(first, -(-low // least))
        if high is not None:
            last = high // least if last is None else min(last, high // least)
        if last is not None and last < first:
            return EMPTY
        return repeat(body_of(node), first, last, node.source)

    def _width(self, node: Expr) -> _Width:
        inner = [self.widths.get(id(arg), _UNKNOWN) for arg in node.args]
        match node.op:
            case Op.EPSILON | Op.BEHIND:
                return 0, 0
            case Op.BYTES:
                assert isinstance(node.value, int)
                return (1, 1) if node.value < 1 << 0x80 else _UNKNOWN
            case Op.LITERAL:
                assert isinstance(node.value, bytes)
                try:
                    length = len(node.value.decode())
                except UnicodeDecodeError:
                    return _UNKNOWN
                return length, length
            case Op.MACHINE:
                assert isinstance(node.value, Dfa)
                return _UNKNOWN if single_characters(node.value) is None else (1, 1)
            case Op.CONCAT:
                bounds = [greatest for _, greatest in inner if greatest is not None]
                return sum(low for low, _ in inner), sum(bounds) if len(bounds) == len(inner) else None
            case Op.UNION:
                bounds = [greatest for _, greatest in inner if greatest is not None]
                return min(low for low, _ in inner), max(bounds) if len(bounds) == len(inner) else None
            case Op.INTERSECT:
                bounds = [greatest for _, greatest in inner if greatest is not None]
                return max(low for low, _ in inner), min(bounds, default=None)
            case Op.REPEAT:
                low, high = bounds_of(node)
                least, greatest = inner[0]
                if greatest == 0:
                    return 0, 0
                return least * low, None if high is None or greatest is None else greatest * high
            case Op.SCOPE:
                return inner[0]
            case _:
                return _UNKNOWN
