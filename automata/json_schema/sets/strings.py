"""Sets of strings as unions of cells, closed under intersection, union and complement; for string values and names.

The idea: a cell is a conjunction of languages, each as given or complemented, with bounds on the number of code points
and some excluded words; or it is a list of words. Lengths stay numbers and words stay words. So they become one counter
and one prefix tree, and queries about constants need no automaton.

Cost: operations are linear in the product of the cells of both sides; the complement of n cells multiplies their
conditions. Lone surrogates in words are dropped, because no UTF-8 text contains one (``json_values.strings``).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Final

from tokenfst._native import NameTexts
from tokenfst.automata.expressions.expression import EMPTY, Expr, complement, intersect, literal, union
from tokenfst.automata.images.lengths import MAX_LENGTH, of_length
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.automata.json_values.strings import (
    Spelling,
    json_literal,
    json_literals,
    json_string,
    json_string_of_length,
)
from tokenfst.automata.languages.emptiness import has_word, record_word
from tokenfst.automata.languages.language import Language
from tokenfst.common.clock_cache import Recent
from tokenfst.errors import BudgetExceeded

_MOST_PAIRS = 16
"""Up to this number, pairs of cells are intersected one by one; otherwise cells are first combined into one
language.
"""
_MOST_SINGLE = 256
"""The same limit if one side is a single cell, so that the number of cells does not grow."""
_HOLDS = 8
"""The number of words that are looked up in one step."""
_FEW = 64
"""Up to this number, excluded words are written one by one, because most of them are names. More words become one
prefix tree.
"""


class TextPattern(str):
    """A language as the value of a ``pattern`` keyword, for languages that no pattern expresses.

    As a string it is the language's name: equal strings must have equal languages.
    """

    __slots__ = ("language",)
    language: Language

    @classmethod
    def of(cls, name: str, language: Language) -> TextPattern:
        """The ``TextPattern`` of a language. As a string it is ``name`` in parentheses."""
        made = cls(f"({name})")
        made.language = language
        return made

    def __deepcopy__(self, memo: object) -> TextPattern:
        return self


@dataclass(slots=True, unsafe_hash=True)
class Part:
    """The texts in ``language``; or, unless ``positive``, the texts that are not in ``outer``.

    ``outer`` is the language itself (``None``) unless ``language`` leaves words out. Then ``partial`` says which words
    (``Format.missing``), and ``outer`` contains all of the words, and others. So neither the part nor its complement
    has a text that it should not have. A partial part without ``outer`` must not be complemented.
    """

    # Final instead of frozen: mypy checks it, and a frozen dataclass takes three times as long to make.
    language: Final[Language]
    positive: Final[bool] = True
    partial: Final[str] = ""
    outer: Final[Language | None] = None

    def excluded(self) -> Language:
        """The language that the complement of this part excludes."""
        return self.outer or self.language

    def inverse(self, *, surely: bool) -> Part:
        """The complement. With ``surely``, it does not contain the words that ``language`` leaves out."""
        if surely or self.outer is None:
            return Part(self.language, not self.positive, self.partial, self.outer)
        return Part(self.outer, not self.positive, self.partial, self.language)

    def holds(self, text: str) -> bool:
        """Whether the part contains a text."""
        return _accepts(self.language, text) if self.positive else not _accepts(self.excluded(), text)


@dataclass(slots=True, unsafe_hash=True)
class Strings:
    """One cell.

    ``values``: if it is given, exactly these texts. Otherwise the texts that are in all ``parts``, have ``low`` to
    ``high`` code points, and are not ``excluded``.
    """

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
            and all(part.holds(text) for part in self.parts)
        )

    def among(self, texts: frozenset[str]) -> frozenset[str]:
        """The texts among ``texts`` that are in the cell, as ``holds`` decides."""
        if self.values is not None:
            return texts & self.values
        kept = texts - self.excluded if self.excluded else texts
        if self.low or self.high is not None or self.parts:
            return frozenset(filter(self.holds, kept))
        return kept

    def is_universal(self) -> bool:
        """Whether the cell has every text, as far as its form shows."""
        return self == _EVERY

    def is_empty(self, work: Work) -> bool:
        """Whether a bounded search finds that the cell has no text. If the search ends early, the answer is false."""
        if self.values is not None:
            return not self.values
        if self.high is not None and self.high < self.low:
            return True
        return len(self.parts) > 1 and work.is_plainly_empty(self, self._texts, len(self.parts))

    def content(self) -> Language:
        """The texts themselves, in UTF-8."""
        if self.values is not None:
            return Language.union_of(Language.literal(word) for word in sorted(self.values))
        language = _conjunction(self.parts)
        if self.low or self.high is not None:
            language = of_length(language, self.low, self.high)
        if self.excluded:
            barred = [Language.literal(word) for word in sorted(self.excluded) if not has_surrogate(word)]
            language = language - Language.union_of(barred)
        return language

    def _texts(self) -> Expr:
        """The expression of a language with parts, without the other properties of a ``Language``."""
        if self.low or self.high is not None:
            return self.content().expr
        parts = [part.language.expr for part in self.parts if part.positive] or [Language.any_text().expr]
        parts += [complement(part.excluded().expr) for part in self.parts if not part.positive]
        if self.excluded:
            barred = [literal(word.encode()) for word in sorted(self.excluded) if not has_surrogate(word)]
            parts.append(complement(union(*barred)))
        return intersect(*parts)

    def json(self, spelling: Spelling, work: Work) -> Expr:
        """All JSON texts of the cell, including quotation marks; EMPTY if there are none.

        Equal cells share one expression. Raises BudgetExceeded.
        """
        if self.values is None and not self.parts and not self._bounded:
            return name_texts(spelling).without(self.excluded)
        known = _texts if self.parts else _listed_texts
        return known.get((spelling, self), lambda: self._json(spelling, work))

    def _json(self, spelling: Spelling, work: Work) -> Expr:
        if self.values is not None:
            return json_literals(sorted(self.values), spelling=spelling)
        if not self.parts:
            text = json_string_of_length(self.low, self.high, spelling=spelling).expr
            if self.excluded:
                words = sorted(self.excluded)
                if len(words) <= _FEW:
                    barred = union(*(spelled(word, spelling) for word in words))
                else:
                    barred = _several(words, spelling)
                text = intersect(text, complement(barred))
                if self.high == 0 and "" in self.excluded:
                    return EMPTY
            record_word(text)  # there are more texts than are excluded
            return text
        return _json_of(self.content(), spelling, work)

    @property
    def _bounded(self) -> bool:
        return self.low > 0 or self.high is not None


def _accepts(language: Language, text: str) -> bool:
    """Whether a text is in a language. This is called for each word of long lists."""
    try:
        return language.automaton.accepts(text.encode())
    except UnicodeEncodeError:  # a lone surrogate
        return False
    except BudgetExceeded:  # the budget of all queries to this automaton so far
        return language.accepts(text)


_EVERY = Strings()
StringSet = tuple[Strings, ...]
"""A union of cells."""

EVERY_STRING: StringSet = (_EVERY,)
NO_STRING: StringSet = ()


@lru_cache(maxsize=8)
def any_string(spelling: Spelling) -> Expr:
    """The JSON texts of all strings."""
    return json_string(spelling=spelling).expr


@lru_cache(maxsize=8)
def name_texts(spelling: Spelling) -> NameTexts:
    """The native core's cache of the JSON texts of names, and of all strings except some names, in a spelling."""
    every = any_string(spelling)
    record_word(every)
    return NameTexts(
        every,
        spelling != "any",
        partial(_name, spelling=spelling),
        partial(_several, spelling=spelling),
        _FEW,
    )


def _name(text: str, spelling: Spelling) -> Expr:
    """The texts of one name; of one with a lone surrogate, bytes that are not UTF-8, so that no text contains them."""
    if has_surrogate(text):
        return literal(f'"{text}"'.encode("utf-8", "surrogatepass"))
    return json_literal(text, spelling=spelling)


def _several(texts: Iterable[str], spelling: Spelling) -> Expr:
    """The texts of any of these names, like ``_name``."""
    kept = [text for text in texts if not has_surrogate(text)]
    return json_literals(kept, spelling=spelling) if kept else _name("\ud800", spelling)


def spelled(text: str, spelling: Spelling) -> Expr:
    """The JSON texts of one string. Equal names share one expression, whether they are listed, required or excluded."""
    return name_texts(spelling).of(text)


_texts: Recent[tuple[Spelling, Strings], Expr] = Recent(512)
"""The JSON texts of cells with parts. Formats take up to 20 ms, so entries that only one object uses must not evict
them.
"""
_listed_texts: Recent[tuple[Spelling, Strings], Expr] = Recent(512)
"""The JSON texts of listed words, and of strings of bounded length."""


def _json_of(content: Language, spelling: Spelling, work: Work) -> Expr:
    """All JSON texts of a language of texts; EMPTY if there are none.

    Emptiness is checked before characters are spelled, because spelling makes the search longer.
    """
    if not content.expr.size and not has_word(content.expr, work.left()):  # a plain expression has one
        return EMPTY
    made = json_string(content, spelling=spelling).expr
    record_word(made)
    return made


def words(values: Iterable[str]) -> StringSet:
    """The set with exactly these texts."""
    kept = frozenset(values)
    if not "".join(kept).isascii():
        kept = frozenset(value for value in kept if not has_surrogate(value))
    return (Strings(values=kept),) if kept else NO_STRING


def has_surrogate(text: str) -> bool:
    """Whether a lone surrogate is in the text, so that it has no UTF-8 encoding."""
    return not text.isascii() and any("\ud800" <= character <= "\udfff" for character in text)


def within(language: Language, partial: str = "", outer: Language | None = None) -> StringSet:
    """The set of a language. ``partial`` and ``outer``: as in ``Part``."""
    return (Strings(parts=(Part(language, True, partial, outer),)),)


def lengths(low: int, high: int | None) -> StringSet:
    """The texts of ``low`` to ``high`` code points. A bound that is too large for a counter is an error only in
    ``json``.
    """
    return (Strings(low=low, high=high),) if high is None or low <= high else NO_STRING


def meet(left: StringSet, right: StringSet, work: Work) -> StringSet:
    """The texts that are in both sets."""
    if left is EVERY_STRING or left == EVERY_STRING:
        return right
    if right is EVERY_STRING or right == EVERY_STRING:
        return left
    pairs = len(left) * len(right)
    if pairs > _MOST_PAIRS and (pairs > _MOST_SINGLE or min(len(left), len(right)) > 1):
        left, right = _gathered(left), _gathered(right)
    found: list[StringSet] = []
    for one in left:
        for other in right:
            cell = _meet(one, other, work)
            if not cell.is_empty(work):
                found.append((cell,))
    if len(found) == 1:
        work.tick()
        return found[0]
    return join(found, work)


def join(sets: Iterable[StringSet], work: Work) -> StringSet:
    """The texts that are in any of the sets."""
    cells = dict.fromkeys(cell for cells in sets for cell in cells)
    if _EVERY in cells:
        return EVERY_STRING
    listed: frozenset[str] = frozenset().union(*(cell.values for cell in cells if cell.values is not None))
    others = tuple(cell for cell in cells if cell.values is None)
    work.tick(1 + len(listed) * len(others) // _HOLDS)
    for cell in others:
        listed -= cell.among(listed)
    return (*((Strings(values=listed),) if listed else ()), *others)


def invert(cells: StringSet, work: Work, *, surely: bool = False) -> StringSet:
    """All other texts.

    With ``surely``, also without the texts that parts leave out; the caller must have checked that these are known
    (``partial_reason``).
    """
    result = EVERY_STRING
    for cell in cells:
        result = meet(result, _inverse(cell, work, surely=surely), work)
    return result


def exactly_one(sets: Sequence[StringSet], work: Work) -> StringSet:
    """The texts that are in one of the sets and surely in no other (``invert``).

    Linear in the sets: two languages are updated for each set, the texts that are in exactly one of the sets so far and
    those that are in any.
    """
    once = some = NO_STRING
    for cells in sets:
        once = join(
            (
                meet(once, invert(cells, work, surely=True), work),
                meet(cells, invert(some, work, surely=True), work),
            ),
            work,
        )
        once, some = _gathered(once), _gathered(join((some, cells), work))
    return once


def partial_reason(cells: StringSet, *, known: bool = False) -> str:
    """Which words the first partial part leaves out (``Part.partial``); empty if no part is partial.

    Parts with an ``outer`` language do not count, unless ``known`` is set.
    """
    parts = (part for cell in cells for part in cell.parts if part.partial)
    return next((part.partial for part in parts if known or part.outer is None), "")


def subset_of_words(cells: StringSet) -> frozenset[str] | None:
    """The texts of a set if all of its cells list them; otherwise ``None``."""
    if any(cell.values is None for cell in cells):
        return None
    return frozenset().union(*(cell.values or () for cell in cells))


def _gathered(cells: StringSet) -> StringSet:
    """The same texts, with all unlisted ones combined into one language.

    It may have many cells, but the engine computes what they have in common only where it walks them.
    """
    others = [cell for cell in cells if cell.values is None]
    if len(others) < 2:
        return cells
    language = Language.union_of(cell.content() for cell in others)
    listed = [cell for cell in cells if cell.values is not None]
    reason = partial_reason(cells, known=True)
    outer = Language.union_of(_with_others(cell).content() for cell in others) if reason else None
    return (*listed, *within(language, reason, None if partial_reason(cells) else outer))


def _with_others(cell: Strings) -> Strings:
    """The cell including the texts that its parts leave out."""
    inverses = (part.inverse(surely=True) for part in cell.parts)
    return replace(cell, parts=tuple(part.inverse(surely=False) for part in inverses))


def _inverse(cell: Strings, work: Work, *, surely: bool) -> StringSet:
    if cell.values is not None:
        return (Strings(excluded=cell.values),)
    parts = [(Strings(parts=(part.inverse(surely=surely),)),) for part in cell.parts]
    short = [(Strings(high=cell.low - 1),)] if cell.low else []
    long = [(Strings(low=cell.high + 1),)] if cell.high is not None and cell.high < MAX_LENGTH else []
    return join((*parts, *short, *long, words(cell.excluded)), work)


def _meet(left: Strings, right: Strings, work: Work) -> Strings:
    if left.values is None and right.values is not None:
        left, right = right, left
    if left.values is not None:
        work.tick(1 + len(left.values) * (1 + len(right.parts)) // _HOLDS)
        kept = right.among(left.values)
        reason = partial_reason((right,), known=True)
        return _with_left_out(left.values, kept, right, reason) if reason else Strings(values=kept)
    work.tick()
    parts = tuple(dict.fromkeys((*left.parts, *right.parts)))
    barred = {id(part.excluded()) for part in parts if not part.positive}
    if any(part.positive and id(part.language) in barred for part in parts):
        return Strings(values=frozenset())
    highs = [high for high in (left.high, right.high) if high is not None]
    return Strings(parts, max(left.low, right.low), min(highs, default=None), left.excluded | right.excluded)


def _with_left_out(values: frozenset[str], kept: frozenset[str], other: Strings, reason: str) -> Strings:
    """The words of ``values`` that are ``kept`` because they are in the other cell.

    The words that this leaves out are known, so they are not in the complement.
    """
    unsure = values - kept
    if not partial_reason((other,)):
        unsure = frozenset(filter(_with_others(other).holds, unsure))
    if not unsure:
        return Strings(values=kept)
    inner, outer = (
        Language.union_of(map(Language.literal, sorted(words))) for words in (kept, kept | unsure)
    )
    return Strings(parts=(Part(inner, True, reason, None if partial_reason((other,)) else outer),))


def _conjunction(parts: tuple[Part, ...]) -> Language:
    positive = [part.language for part in parts if part.positive]
    result = positive[0] if positive else Language.any_text()
    for language in positive[1:]:
        result = result & language
    for part in parts:
        if not part.positive:
            result = result - part.excluded()
    return result
