"""Free text that excludes some substrings: the text between tags and triggers.

The expressions are deterministic automata of Aho and Corasick's kind ("Efficient string matching", CACM 1975) that also
check UTF-8; they are cached.
"""

from __future__ import annotations

from functools import lru_cache

from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    EMPTY,
    UNIVERSE,
    Expr,
    complement,
    concat,
    intersect,
    literal,
    machine,
    repeat,
    union,
)
from tokenfst.automata.languages.engine import make_automaton, make_tables
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget


@lru_cache(maxsize=512)
def text_without(
    end: bytes,
    delimiters: tuple[bytes, ...],
    excludes: tuple[bytes, ...],
    budget: Budget,
    other_ends: tuple[bytes, ...] = (),
    *,
    is_delimiter: bool = False,
    across: bool = True,
) -> Expr:
    """The texts that end with ``end`` and contain none of the delimiters and excluded strings.

    They also do not end with any of ``other_ends``. ``is_delimiter``: ``end`` is itself a delimiter, before whose last
    byte no delimiter may end. ``across``: whether exclusions also apply to occurrences that overlap ``end``.
    """
    ended = concat(Language.any_text().expr, literal(end))
    held = [concat(UNIVERSE, literal(each)) for each in other_ends]
    if delimiters:
        after = concat(ANY_BYTE, UNIVERSE) if is_delimiter else UNIVERSE
        held.append(concat(UNIVERSE, union(*map(literal, delimiters)), after))
    if excludes:
        after = UNIVERSE if across else concat(UNIVERSE, literal(end))
        held.append(concat(UNIVERSE, union(*map(literal, excludes)), after))
    if not held:
        return ended
    return _machine(intersect(ended, complement(union(*held))), budget)


def _machine(expr: Expr, budget: Budget) -> Expr:
    dfa = make_tables(make_automaton(expr, budget))
    return machine(dfa) if dfa.start else EMPTY


def dispatch(
    tags: tuple[tuple[bytes, Expr], ...], excludes: tuple[bytes, ...], loop: bool, budget: Budget
) -> Expr:
    """Free text with tags: the expression of a tag follows each occurrence of the tag, then free text again.

    ``tags``: pairs of a tag and its expression. Without ``loop``, the text ends after the first expression. Free text
    may end anywhere and contains no tag and no excluded string.
    """
    delimiters = tuple(sorted({tag for tag, _ in tags}))
    last = text_without(b"", delimiters, excludes, budget)
    some = union(
        *(
            concat(text_without(tag, delimiters, excludes, budget, is_delimiter=True), body)
            for tag, body in tags
        )
    )
    return concat(repeat(some), last) if loop else union(last, some)
