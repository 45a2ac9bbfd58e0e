"""Free text between marks: text in which no mark and no excluded string stands, and text up to the first mark.

The idea, with Σ* all texts, P the marks and E what is excluded. Text that stays open is Σ* less Σ*(P|E)Σ*. Text up to
and with a mark p, where p is the first of all marks by where it ends, is Σ*p less Σ*PΣ⁺ and less Σ*EΣ*. Both are
regular: deterministic automata that read as Aho and Corasick's does ("Efficient string matching", CACM 1975), with
UTF-8 checked along the way. The texts up to first marks are prefix-free, so there is no doubt where free text ends.

A mark that holds special tokens is found by them: free text has none, so what comes before the first token of the mark
is open text that ends with the mark's first bytes.

Cost: an automaton of a few states for each byte of the marks, for each mark that ends a text; kept for the next tag.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache

from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    EMPTY,
    EPSILON,
    UNIVERSE,
    Expr,
    complement,
    concat,
    intersect,
    literal,
    machine,
    union,
)
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.engine import make_automaton, make_tables
from tokenfst.automata.structural_tags.marks import Spelled, ends_inside, spelled_expr
from tokenfst.budget import Budget


class FreeText:
    """Free text with these marks and exclusions. ``limit``: all texts that are short enough, where there is a bound."""

    def __init__(
        self,
        marks: Iterable[Spelled],
        excludes: Iterable[bytes],
        budget: Budget,
        limit: Expr | None = None,
    ) -> None:
        self.marks = tuple(dict.fromkeys(marks))
        self.excludes = tuple(dict.fromkeys(excludes))
        self.limit = limit
        self._budget = budget
        self._plain = tuple(sorted(each[0] for each in self.marks if len(each) == 1 and isinstance(each[0], bytes)))

    def open(self) -> Expr:
        """Text that holds no mark and nothing excluded."""
        return self._limited(self._ending(b""), EPSILON)

    def until(self, mark: Spelled) -> Expr:
        """Text up to and with ``mark``, one of the marks, which is the first. EMPTY if it never is."""
        if self.blocker(mark) is not None:
            return EMPTY
        first, *rest = mark
        if not rest and isinstance(first, bytes):
            found = _first(first, self._plain, self.excludes, self._budget)
            return self._limited(found, literal(first))
        if isinstance(first, bytes):
            return concat(self._limited(self._ending(first), literal(first)), spelled_expr(mark[1:]))
        return concat(self.open(), spelled_expr(mark))

    def blocker(self, mark: Spelled) -> Spelled | None:
        """What stands in ``mark`` so that it can never be the first: a mark that ends earlier, or something excluded."""
        for other in self.marks:
            if ends_inside(other, mark):
                return other
        for text in self.excludes:
            if any(isinstance(part, bytes) and text in part for part in mark):
                return (text,)
        return None

    def _ending(self, end: bytes) -> Expr:
        """Open text that ends with ``end``."""
        return _open(end, self._plain, self.excludes, self._budget)

    def _limited(self, text: Expr, end: Expr) -> Expr:
        return text if self.limit is None else intersect(text, concat(self.limit, end))


@lru_cache(maxsize=256)
def _open(end: bytes, marks: tuple[bytes, ...], excludes: tuple[bytes, ...], budget: Budget) -> Expr:
    """Texts that end with ``end`` and hold none of the marks and of what is excluded."""
    ended = concat(_any_text(), literal(end))
    held = union(*map(literal, (*marks, *excludes)))
    if held is EMPTY:
        return ended
    return _machine(intersect(ended, complement(concat(UNIVERSE, held, UNIVERSE))), budget)


@lru_cache(maxsize=256)
def _first(mark: bytes, marks: tuple[bytes, ...], excludes: tuple[bytes, ...], budget: Budget) -> Expr:
    """Texts that end with ``mark``, no mark ending in them before, without what is excluded."""
    ended = concat(_any_text(), literal(mark))
    earlier = concat(UNIVERSE, union(*map(literal, marks)), ANY_BYTE, UNIVERSE)
    held = concat(UNIVERSE, union(*map(literal, excludes)), UNIVERSE) if excludes else EMPTY
    return _machine(intersect(ended, complement(union(earlier, held))), budget)


def _machine(expr: Expr, budget: Budget) -> Expr:
    dfa = make_tables(make_automaton(expr, budget))
    return machine(dfa) if dfa.start else EMPTY


def _any_text() -> Expr:
    return Language.any_text().expr
