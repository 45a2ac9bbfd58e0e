"""Sets of strings as unions of cells, closed under and, or, not; what schemas say of strings and of property names.

The idea: a cell is a conjunction of languages, each as given or complemented, with bounds on the number of code points
and some excluded words; or it is a list of words. Lengths stay numbers and words stay words, so that they are lowered
as one counter and one prefix tree, and questions about constants are answered without an automaton.

Cost: operations are linear in the cells of both sides multiplied; the complement of n cells multiplies what they hold.
Lone surrogates in words are dropped: no UTF-8 text holds one (``json_strings``).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from tokenfst.automata.expression import EMPTY, Expr, complement, intersect, union
from tokenfst.automata.json_strings import json_literal, json_literals, json_string, json_string_of_length
from tokenfst.automata.known_words import has_a_word, has_word
from tokenfst.automata.language import Language
from tokenfst.automata.text_lengths import MAX_LENGTH, of_length
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

_GLANCE = Budget(states=2_000, seconds=1.0)
"""What a question whether languages overlap may cost before it is left open."""
_FEW = 64
"""Excluded words that are written one by one, as the names that they mostly are; more share their beginnings."""


class TextPattern(str):
    """The value of ``pattern`` for a language that is no pattern's. As a text it says which language that is: equal
    texts must have equal languages."""

    __slots__ = ("language",)
    language: Language

    @classmethod
    def of(cls, name: str, language: Language) -> TextPattern:
        """The texts of a language, under a name."""
        made = cls(f"({name})")
        made.language = language
        return made

    def __deepcopy__(self, memo: object) -> TextPattern:
        return self


@dataclass(slots=True, unsafe_hash=True)
class Part:
    """A language, or all other texts. ``partial`` says what the language leaves out (``Format.missing``), if anything:
    such a part must not be complemented."""

    # Final and not frozen: mypy sees to it, and a frozen dataclass takes three times as long to make.
    language: Final[Language]
    positive: Final[bool] = True
    partial: Final[str] = ""


@dataclass(slots=True, unsafe_hash=True)
class Strings:
    """One cell. ``values``: exactly these; otherwise the texts in all ``parts``, of ``low`` to ``high`` code points,
    without ``excluded``."""

    parts: Final[tuple[Part, ...]] = ()
    low: Final[int] = 0
    high: Final[int | None] = None
    excluded: Final[frozenset[str]] = frozenset()
    values: Final[frozenset[str] | None] = None

    def holds(self, text: str) -> bool:
        """Whether a text (without lone surrogates) is in the cell."""
        if self.values is not None:
            return text in self.values
        return (
            text not in self.excluded
            and self.low <= len(text)
            and (self.high is None or len(text) <= self.high)
            and all(part.language.accepts(text) is part.positive for part in self.parts)
        )

    def is_universal(self) -> bool:
        """Whether the cell plainly has every text."""
        return self == _EVERY

    def is_empty(self) -> bool:
        """Whether the cell surely has no text; decided by a search that may leave it open."""
        if self.values is not None:
            return not self.values
        if self.high is not None and self.high < self.low:
            return True
        if len(self.parts) < 2:
            return False
        try:
            return self.content().with_budget(_GLANCE).is_empty()
        except BudgetExceeded:
            return False

    def content(self) -> Language:
        """The texts themselves, in UTF-8."""
        if self.values is not None:
            return Language.union_of(Language.literal(word) for word in sorted(self.values))
        language = _conjunction(self.parts)
        if self.low or self.high is not None:
            language = of_length(language, self.low, self.high)
        if self.excluded:
            language = language - Language.union_of(Language.literal(word) for word in sorted(self.excluded))
        return language

    def json(self) -> Expr:
        """All JSON texts of the cell, quotation marks included; EMPTY if there are none. Equal cells share one
        expression."""
        return _json(self)

    def _json(self) -> Expr:
        if self.values is not None:
            return json_literals(sorted(self.values))
        if not self.parts:
            text = json_string_of_length(self.low, self.high).expr if self._bounded else any_string()
            if self.excluded:
                words = sorted(self.excluded)
                few = len(words) <= _FEW
                text = intersect(
                    text, complement(union(*map(spelled, words)) if few else json_literals(words))
                )
            return text
        return _json_of(self.content())

    @property
    def _bounded(self) -> bool:
        return self.low > 0 or self.high is not None


_EVERY = Strings()
StringSet = tuple[Strings, ...]
"""A union of cells."""

EVERY_STRING: StringSet = (_EVERY,)
NO_STRING: StringSet = ()


@lru_cache(maxsize=1)
def any_string() -> Expr:
    """The JSON texts of all strings."""
    return json_string().expr


@lru_cache(maxsize=4096)
def spelled(text: str) -> Expr:
    """The JSON texts of one string: one object for a name wherever it is listed, required or excluded."""
    return json_literal(text)


@lru_cache(maxsize=512)
def _json(cell: Strings) -> Expr:
    if cell.values is None and not cell.parts:
        if cell.high == 0 and "" in cell.excluded:
            return EMPTY
        has_a_word(made := cell._json())  # more texts than are excluded
        return made
    return cell._json()


def _json_of(content: Language) -> Expr:
    """All JSON texts of a language of texts; EMPTY if there are none, which is found out before characters are
    spelled: that makes the search longer."""
    if not has_word(content.expr, content.budget):
        return EMPTY
    made = json_string(content).expr
    has_a_word(made)
    return made


def words(values: Iterable[str]) -> StringSet:
    """Exactly these texts."""
    kept = frozenset(value for value in values if not has_surrogate(value))
    return (Strings(values=kept),) if kept else NO_STRING


def has_surrogate(text: str) -> bool:
    """Whether a lone surrogate is in the text, so that it has no UTF-8 encoding."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def within(language: Language, partial: str = "") -> StringSet:
    """The texts of a language."""
    return (Strings(parts=(Part(language, partial=partial),)),)


def lengths(low: int, high: int | None) -> StringSet:
    """The texts of ``low`` to ``high`` code points. A bound that no counter can have is refused by ``json``."""
    return (Strings(low=low, high=high),) if high is None or low <= high else NO_STRING


def meet(left: StringSet, right: StringSet) -> StringSet:
    """Texts in both."""
    if left is EVERY_STRING or left == EVERY_STRING:
        return right
    if right is EVERY_STRING or right == EVERY_STRING:
        return left
    found = (_meet(one, other) for one in left for other in right)
    return join(*((cell,) for cell in found if not cell.is_empty()))


def join(*sets: StringSet) -> StringSet:
    """Texts in any of them."""
    cells = dict.fromkeys(cell for cells in sets for cell in cells)
    if _EVERY in cells:
        return EVERY_STRING
    listed: frozenset[str] = frozenset().union(*(cell.values for cell in cells if cell.values is not None))
    others = tuple(cell for cell in cells if cell.values is None)
    rest = frozenset(word for word in listed if not any(cell.holds(word) for cell in others))
    return (*((Strings(values=rest),) if rest else ()), *others)


def invert(cells: StringSet) -> StringSet:
    """All other texts. The caller has made sure that no part is partial (``partial_reason``)."""
    result = EVERY_STRING
    for cell in cells:
        result = meet(result, _inverse(cell))
    return result


def partial_reason(cells: StringSet) -> str:
    """What some part leaves out; empty if the set is exact."""
    return next((part.partial for cell in cells for part in cell.parts if part.partial), "")


def subset_of_words(cells: StringSet) -> frozenset[str] | None:
    """The texts, if they are listed."""
    if any(cell.values is None for cell in cells):
        return None
    return frozenset().union(*(cell.values or () for cell in cells))


def _inverse(cell: Strings) -> StringSet:
    if cell.values is not None:
        return (Strings(excluded=cell.values),)
    parts = [(Strings(parts=(Part(part.language, not part.positive),)),) for part in cell.parts]
    short = [(Strings(high=cell.low - 1),)] if cell.low else []
    long = [(Strings(low=cell.high + 1),)] if cell.high is not None and cell.high < MAX_LENGTH else []
    return join(*parts, *short, *long, words(cell.excluded))


def _meet(left: Strings, right: Strings) -> Strings:
    if left.values is not None:
        return Strings(values=frozenset(filter(right.holds, left.values)))
    if right.values is not None:
        return Strings(values=frozenset(filter(left.holds, right.values)))
    parts = tuple(dict.fromkeys((*left.parts, *right.parts)))
    signs = {(id(part.language), part.positive) for part in parts}
    if any((language, not positive) in signs for language, positive in signs):
        return Strings(values=frozenset())
    highs = [high for high in (left.high, right.high) if high is not None]
    return Strings(parts, max(left.low, right.low), min(highs, default=None), left.excluded | right.excluded)


def _conjunction(parts: tuple[Part, ...]) -> Language:
    positive = [part.language for part in parts if part.positive]
    result = positive[0] if positive else Language.any_text()
    for language in positive[1:]:
        result = result & language
    for part in parts:
        if not part.positive:
            result = result - part.language
    return result
