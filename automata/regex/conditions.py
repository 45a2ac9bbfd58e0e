r"""The characters that can be to the left and right of a place in a text, and which of them ``^ $ \\A \\Z \\b \\B``
require.

Characters are divided into a few kinds (word characters below and above U+007F, because ``(?a:...)`` distinguishes
them; the newline; others), and the edge of the text is a kind too. A zero-width condition is a relation between the
kind to the left and the kind to the right. It is finite, so its truth in a known context is a table look-up, and
what remains is one language of texts before the place and one of texts after it.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import import_module
from typing import Any

from tokenfst.automata.characters.classes import category, character_set
from tokenfst.automata.characters.utf8 import MAX_CODE_POINT, Ranges, negate, normalize, overlap
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    EPSILON,
    UNIVERSE,
    Expr,
    complement,
    concat,
    literal,
    union,
)

_codes: Any = import_module("re._constants")

# To the left, EDGE is the beginning of the text; to the right, the end.
EDGE, ASCII_WORD, OTHER_WORD, NEWLINE, OTHER, LAST_NEWLINE = 1, 2, 4, 8, 16, 32
_WORD, _NO_WORD = re.compile(r"\w"), re.compile(r"\W")
_MOST_LOOKED_AT = 70_000
"""Up to this number, characters are tested one by one, instead of testing all code points."""
LEFT = EDGE | ASCII_WORD | OTHER_WORD | NEWLINE | OTHER
RIGHT = LEFT | LAST_NEWLINE
"""To the right, NEWLINE has more text after it and LAST_NEWLINE has none (``$`` distinguishes them)."""


@lru_cache(maxsize=4096)
def kinds_of(ranges: Ranges, text: bool) -> int:
    """The kinds of the characters in ``ranges``."""
    found = NEWLINE if overlap(ranges, ((10, 10),)) else 0
    word = category("w", False)
    if overlap(ranges, word):
        found |= ASCII_WORD
    if overlap(ranges, negate(normalize((*word, (10, 10))), 0x7F)):
        found |= OTHER
    above = overlap(ranges, ((0x80, MAX_CODE_POINT),))
    if above and not text:
        return found | OTHER
    if overlap(above, ((0x80, 0x80),)) and overlap(above, ((0xE9, 0xE9),)):
        # For example a control character and é: both kinds, so not all word characters need to be inspected.
        return found | OTHER_WORD | OTHER
    if sum(high - low for low, high in above) < _MOST_LOOKED_AT:
        texts = "".join(chr(code) for low, high in above for code in range(low, high + 1))
        return found | (OTHER_WORD if _WORD.search(texts) else 0) | (OTHER if _NO_WORD.search(texts) else 0)
    if above:
        word = category("w", True)
        found |= (OTHER_WORD if overlap(above, word) else 0) | (OTHER if overlap(above, negate(word)) else 0)
    return found


@lru_cache(maxsize=64)
def of_kinds(kinds: int, text: bool) -> Expr:
    """One character of the given kinds."""
    chosen: list[tuple[int, int]] = []
    if kinds & ASCII_WORD:
        chosen += category("w", False)
    if kinds & (NEWLINE | LAST_NEWLINE):
        chosen.append((10, 10))
    if kinds & OTHER:
        # Together with OTHER_WORD these are all characters except ASCII's word characters and the newline.
        word = category("w", text and not kinds & OTHER_WORD)
        chosen += negate(normalize((*word, (10, 10))), MAX_CODE_POINT if text else 0xFF)
    elif kinds & OTHER_WORD and text:
        chosen += overlap(category("w", True), ((0x80, MAX_CODE_POINT),))
    return character_set(normalize(chosen), text)


def texts_before(kinds: int, context: int, text: bool) -> Expr:
    """Texts that end with one of ``kinds`` (EDGE: the empty text), if only ``context`` is possible."""
    if kinds & context == context:
        return UNIVERSE
    if kinds == EDGE:
        return EPSILON
    if not kinds & EDGE or kinds == EDGE | NEWLINE:
        ends = concat(UNIVERSE, of_kinds(kinds, text))
        return union(EPSILON, ends) if kinds & EDGE else ends
    return complement(concat(UNIVERSE, of_kinds(context & ~kinds, text)))


def texts_after(kinds: int, context: int, text: bool) -> Expr:
    """Texts that begin with one of ``kinds`` (EDGE: the empty text), if only ``context`` is possible."""
    letters = kinds & (ASCII_WORD | OTHER_WORD | OTHER)
    if kinds & EDGE and letters:
        return complement(texts_after(context & ~kinds, context, text))
    parts = [EPSILON] if kinds & EDGE else []
    if kinds & NEWLINE and kinds & LAST_NEWLINE:
        letters |= NEWLINE
    elif kinds & (NEWLINE | LAST_NEWLINE):
        parts.append(literal(b"\n") if kinds & LAST_NEWLINE else concat(literal(b"\n"), ANY_BYTE, UNIVERSE))
    if letters:
        parts.append(concat(of_kinds(letters, text), UNIVERSE))
    return union(*parts)


_BOUNDARY_IN_EMPTY_TEXT = re.fullmatch(r"\B", "") is not None
"""Python 3.14 made ``\\B`` match in an empty text."""


def relation_of(at: Any, flags: int) -> dict[int, int]:
    """The condition as a mapping: for each kind to the left, the kinds to the right with which it holds."""
    lefts = [EDGE, ASCII_WORD, OTHER_WORD, NEWLINE, OTHER]
    multiline = flags & re.MULTILINE
    if at is _codes.AT_BEGINNING_STRING or at is _codes.AT_BEGINNING:
        begins = EDGE | (NEWLINE if multiline and at is _codes.AT_BEGINNING else 0)
        return {left: RIGHT if left & begins else 0 for left in lefts}
    if at is _codes.AT_END_STRING or at is _codes.AT_END:
        ends = EDGE | (0 if at is _codes.AT_END_STRING else LAST_NEWLINE | (NEWLINE if multiline else 0))
        return dict.fromkeys(lefts, ends)
    word = ASCII_WORD | (OTHER_WORD if flags & re.UNICODE else 0)
    apart = at is _codes.AT_BOUNDARY
    relation = {left: RIGHT & ~word if bool(left & word) == apart else word for left in lefts}
    if not apart and not _BOUNDARY_IN_EMPTY_TEXT:
        relation[EDGE] &= ~EDGE
    return relation


def grouped(relation: dict[int, int], left: int, right: int) -> dict[int, int]:
    """A relation restricted to a context: each set of kinds to the right, with the kinds to the left that allow it.

    ``left`` and ``right`` are the kinds that the context allows.
    """
    groups: dict[int, int] = {}
    for kind, follows in relation.items():
        if kind & left and follows & right:
            groups[follows & right] = groups.get(follows & right, 0) | kind
    return groups
