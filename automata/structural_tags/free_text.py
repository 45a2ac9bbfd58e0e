"""Free text between delimiters: text without delimiters and excluded strings, and text up to the first delimiter.

Let Σ* be all texts, P the delimiters and E the excluded strings. Text that stays open is Σ* less Σ*(P|E)Σ*. Consider
the text up to and including a delimiter p that ends before any other delimiter does. It is Σ*p less Σ*PΣ⁺ and less
Σ*EΣ*. If p ends the free text for good, it is less Σ*EΣ*p instead, because an end may be excluded from the text before
it. All of these are regular: deterministic automata of Aho and Corasick's kind ("Efficient string matching", CACM 1975)
that also check UTF-8. The texts up to first delimiters are prefix-free, so the end of free text is unambiguous.

A delimiter with special tokens is recognized by them, because free text has no special tokens. So the text before the
first token of the delimiter is open text that ends with the delimiter's first bytes, and not with those of another
delimiter that is complete earlier.

Cost: for each delimiter that ends a text, an automaton with a few states for each byte of the delimiters; cached.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    Expr,
    concat,
    intersect,
    literal,
    repeat,
)
from tokenfst.automata.pieces.free_text import text_without
from tokenfst.automata.structural_tags.special_tokens import Spelled, ends_inside, spelled_expr, symbols
from tokenfst.budget import Budget


class FreeText:
    """Free text with these delimiters and excluded strings.

    ``limit``: all texts that are short enough, if there is a bound. ``others``: special tokens that the text may
    contain, none of which is in a delimiter.
    """

    def __init__(
        self,
        delimiters: Iterable[Spelled],
        excludes: Iterable[bytes],
        budget: Budget,
        limit: Expr | None = None,
        others: Expr = EMPTY,
    ) -> None:
        self.delimiters = tuple(dict.fromkeys(delimiters))
        self.excludes = tuple(dict.fromkeys(excludes))
        self.limit, self.others = limit, others
        self._budget = budget
        self._plain = tuple(
            sorted(each[0] for each in self.delimiters if len(each) == 1 and isinstance(each[0], bytes))
        )

    def open(self) -> Expr:
        """All text without delimiters and excluded strings."""
        last = self._limited(text_without(b"", self._plain, self.excludes, self._budget), EPSILON)
        return last if self.others is EMPTY else concat(self._runs(), last)

    def until(self, delimiter: Spelled, *, closes: bool = False) -> Expr:
        """The text up to and including ``delimiter``, if it is the first delimiter; EMPTY if it can never be the first.

        ``closes``: whether the free text ends with it for good. Then excluded strings may occur in the delimiter and
        across its beginning.
        """
        if self.blocker(delimiter, closes=closes) is not None:
            return EMPTY
        lead, rest = _divided(delimiter)
        others = [_divided(other) for other in self.delimiters if other != delimiter]
        earlier = tuple(sorted(own for own, after in others if _is_begun(after, rest) and own.endswith(lead)))
        before = text_without(
            lead, self._plain, self.excludes, self._budget, earlier, is_delimiter=not rest, across=not closes
        )
        last = concat(self._limited(before, literal(lead)), spelled_expr(rest))
        return last if self.others is EMPTY else concat(self._runs(), last)

    def blocker(self, delimiter: Spelled, *, closes: bool = False) -> Spelled | None:
        """What in ``delimiter`` prevents it from being the first: a delimiter that ends earlier, or an excluded string.

        ``None`` if nothing does.
        """
        for other in self.delimiters:
            if ends_inside(other, delimiter):
                return other
        for text in () if closes else self.excludes:
            if any(isinstance(part, bytes) and text in part for part in delimiter):
                return (text,)
        return None

    def _runs(self) -> Expr:
        """Runs of text, each followed by a special token."""
        return repeat(concat(text_without(b"", self._plain, self.excludes, self._budget), self.others))

    def _limited(self, text: Expr, end: Expr) -> Expr:
        return text if self.limit is None else intersect(text, concat(self.limit, end))


def _divided(delimiter: Spelled) -> tuple[bytes, Spelled]:
    """The bytes before the first special token, and the rest."""
    return (delimiter[0], delimiter[1:]) if isinstance(delimiter[0], bytes) else (b"", delimiter)


def _is_begun(short: Spelled, long: Spelled) -> bool:
    """Whether ``short`` is not empty and a proper prefix of ``long``."""
    one, other = symbols(short), symbols(long)
    return 0 < len(one) < len(other) and other[: len(one)] == one
