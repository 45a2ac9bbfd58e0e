"""The expressions of ``quoted_text``, ``unquoted_text``, ``text_until`` and the delimited lists.

Functions (``groups``) and named groups inside a pattern (``regex``) use them. Parts are expressions, so lists may
contain calls of a grammar's rules. All text is UTF-8.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from tokenfst.automata.characters.classes import character_set
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges, negate, normalize, overlap
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    EPSILON,
    UNIVERSE,
    Expr,
    Op,
    complement,
    concat,
    intersect,
    literal,
    machine,
    optional,
    repeat,
    union,
)
from tokenfst.automata.languages.engine import make_automaton, make_tables
from tokenfst.budget import Budget

_LINE_BREAKS = "\n\r"
_WHITE = "\t "
_INDICATORS = "-?:,[]{}#&*!|>'\"%@`"
"""YAML 1.2.2, production 22, c-indicator."""
_PRINTABLE: Ranges = (
    (0x09, 0x0A),
    (0x0D, 0x0D),
    (0x20, 0x7E),
    (0x85, 0x85),
    (0xA0, 0xD7FF),
    (0xE000, 0xFFFD),
    (0x10000, MAX_CODE_POINT),
)
"""YAML 1.2.2, production 1, c-printable."""


def chunks(texts: Sequence[str]) -> Expr:
    """The concatenations of consecutive ``texts``, including the empty one. No text may be empty."""
    onward: Expr = EPSILON
    found = [onward]
    for text in reversed(texts):
        onward = optional(concat(literal(text.encode()), onward))
        found.append(onward)
    return union(*found)


def all_of(parts: Sequence[Expr]) -> Expr:
    """The intersection of the parts."""
    return intersect(*parts)


def none_of(parts: Sequence[Expr]) -> Expr:
    """The texts (of UTF-8) that are in none of the parts."""
    return intersect(repeat(character_set(((0, MAX_CODE_POINT),), True)), complement(union(*parts)))


def _of(characters: str) -> Ranges:
    return normalize((ord(each), ord(each)) for each in characters)


def _but(characters: str, ranges: Ranges = ((0, MAX_CODE_POINT),)) -> Expr:
    """One character of ``ranges`` that is not in ``characters``."""
    return character_set(overlap(ranges, negate(_of(characters))), True)


def _one(characters: str) -> Expr:
    return character_set(_of(characters), True)


@cache
def quoted(quote: str) -> Expr:
    """A text between two ``quote`` characters, without line breaks.

    A backslash escapes each ``quote`` and each backslash in it; it may escape other characters.
    """
    plain, escaped = _but(quote + "\\" + _LINE_BREAKS), concat(literal(b"\\"), _but(_LINE_BREAKS))
    return concat(literal(quote.encode()), repeat(union(plain, escaped)), literal(quote.encode()))


@cache
def unquoted() -> Expr:
    """A plain scalar of YAML 1.2.2 on one line, outside flow collections: production 133, ns-plain-one-line.

    The productions look around one character: ``:`` needs a character that is not white space after it, and ``#`` one
    before it. Here they are expanded: after white space, and after other characters.
    """
    visible = overlap(_PRINTABLE, negate(_of(_WHITE + _LINE_BREAKS + "\ufeff")))
    character, colons = _but(":#", visible), repeat(_one(":"))
    onward = concat(colons, union(character, _one("#")))
    first = union(_but(_INDICATORS, visible), concat(_one("?:-"), onward))
    after_white = union(concat(colons, character), concat(_one(":"), colons, _one("#")))
    return concat(first, repeat(union(onward, concat(repeat(_one(_WHITE), 1), after_white))))


@cache
def _any_text() -> Expr:
    return repeat(character_set(((0, MAX_CODE_POINT),), True))


def until(stop: Expr, budget: Budget) -> Expr:
    """Text up to and including the first position at which a word of ``stop`` ends.

    With Σ* for all text and S for ``stop``, that is Σ*·S less Σ*·S·Σ+. For a literal, a deterministic automaton (that
    of Knuth, Morris and Pratt, over UTF-8).
    """
    ended = concat(_any_text(), stop)
    expr = intersect(ended, complement(concat(ended, ANY_BYTE, UNIVERSE)))
    if stop.op is not Op.LITERAL:
        return expr
    return machine(make_tables(make_automaton(expr, budget)))


def listed(item: Expr, separator: Expr, low: int, high: int | None, source: str) -> Expr:
    """``low`` to ``high`` words of ``item``, separated by words of ``separator``."""
    if high == 0:
        return EPSILON
    more = repeat(concat(separator, item), max(low - 1, 0), None if high is None else high - 1, source)
    some = concat(item, more)
    return optional(some) if low == 0 else some


def subsequence(items: Sequence[Expr], separator: Expr) -> Expr:
    """A non-empty subsequence of ``items``, one word of each, separated by words of ``separator``.

    Linear in the items: the continuations after an item are one chain, shared by all first items.
    """
    firsts: list[Expr] = []
    rest = EPSILON
    for item in reversed(items):
        firsts.append(concat(item, rest))
        rest = concat(optional(concat(separator, item)), rest)
    return union(*reversed(firsts))
