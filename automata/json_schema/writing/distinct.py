"""Strings that must differ as a text is generated: unlisted names of members, and unique items.

An automaton reads such a string, and the sequence remembers it (``exclusion_marks.fresh``). If a prefix begins
infinitely many words, it stays alive although finitely many of them are used. If some prefix has few words, or if there
are fewer words in all than a text could need, the expression says so, and masks then search for an unused word. Small
sets of names are listed instead: each name is then a separate option, and automata remember which of them are used
(``expression.unordered``).

Cost: one small automaton for each set with a pattern or format, cached; if it exceeds ``QUICK`` the number of its words
is unknown, so that masks always search.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import lru_cache
from json import dumps

from tokenfst._native import word_counts
from tokenfst.automata.expressions.exclusion_marks import FEW_VALUES, MANY_VALUES, fresh
from tokenfst.automata.expressions.expression import Dfa, Expr, Op, machine, union
from tokenfst.automata.json_schema.sets.strings import Part, Strings
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.automata.json_values.strings import Spelling
from tokenfst.automata.languages.language import Language
from tokenfst.budget import QUICK
from tokenfst.common.clock_cache import Recent
from tokenfst.errors import BudgetExceeded

MANY = 1 << 20
"""A number of words that no array or object can use up: ``TextCount.count`` is capped here."""
MOST_LISTED = 256
"""Maximum number of names that are listed if one of them is required."""
MOST_OPTIONS = 8
"""Maximum number of names that are listed without need. It is small, because automata remember each set of used names.
"""
_PLAIN = 93
"""The number of printable ASCII characters that JSON spells unchanged: all but two."""
_LONGEST = 128
"""The lengths of words are computed up to this number of bytes."""


@dataclass(frozen=True, slots=True)
class TextCount:
    """How many texts a set of strings has.

    ``count``: the number, capped at ``MANY``; ``None`` if it is not known. ``few_endings``: whether some prefix of a
    text may have fewer than ``MANY`` endings. ``words``: the texts themselves, if they are few. ``few_bytes``,
    ``many_bytes``: parameters of ``exclusion_marks.fresh``; they hold after the quotation mark and, if ``few_endings``
    is false, after every prefix.
    """

    count: int | None
    few_endings: bool = True
    words: frozenset[str] | None = None
    few_bytes: int = 0
    many_bytes: int = 0


def fresh_text(cells: tuple[Strings, ...], spelling: Spelling, work: Work) -> Expr:
    """The JSON texts of a union of cells, each different from all strings before it in the same array or object."""
    found = count_texts(cells, spelling, work)
    fewest = 0 if found.count == MANY else max(found.count or 1, 1)
    text = union(*(_without_context(cell).json(spelling, work) for cell in cells))
    return fresh(
        text,
        few_endings=found.few_endings,
        fewest=fewest,
        few_bytes=found.few_bytes,
        many_bytes=found.many_bytes,
    )


def _without_context(cell: Strings) -> Strings:
    """Make a cell readable without remembering what was read before (look-around in a repetition).

    Only the end of a string is remembered, not how it was reached. Raises BudgetExceeded.
    """
    if not cell.parts:
        return cell
    content = replace(cell, low=0, high=None, excluded=frozenset()).content()
    if not any(node.op in (Op.VARIABLE, Op.BEHIND) for node in content.expr.walk()):
        return cell
    return replace(cell, parts=(Part(_finite(content)),))


@lru_cache(maxsize=64)
def _finite(content: Language) -> Language:
    return Language(machine(content.determinize()), str(content))


def count_texts(cells: tuple[Strings, ...], spelling: Spelling, work: Work) -> TextCount:
    """The number of texts of a union of cells, and their lengths in a spelling."""
    if len(cells) == 1:
        [cell] = cells
        if cell.values is None and not cell.parts and cell.high is None:
            return endless(cell.low, len(cell.excluded))
    return _counts.get((spelling, cells), lambda: _count_texts(cells, spelling, work))


@lru_cache(maxsize=512)
def endless(low: int, excluded: int) -> TextCount:
    """The ``TextCount`` of all texts of at least ``low`` characters, except for a number of ``excluded`` ones."""
    few_bytes, many_bytes = (
        _least_length(low, None, excluded, number) for number in (FEW_VALUES, MANY_VALUES)
    )
    return TextCount(MANY, few_endings=False, few_bytes=few_bytes, many_bytes=many_bytes)


_counts: Recent[tuple[Spelling, tuple[Strings, ...]], TextCount] = Recent(512)


def _count_texts(cells: tuple[Strings, ...], spelling: Spelling, work: Work) -> TextCount:
    ascii_only = spelling == "ascii"
    if len(cells) != 1:
        counts = [count_texts((cell,), spelling, work) for cell in cells]
        if any(each.count == MANY for each in counts):
            few_bytes, many_bytes = (
                min((length for length in lengths if length), default=0)
                for lengths in zip(
                    *((each.few_bytes, each.many_bytes) for each in counts if each.count == MANY), strict=True
                )
            )
            return TextCount(MANY, few_bytes=few_bytes, many_bytes=many_bytes)
        return _searched(
            lambda: Language.union_of(cell.content() for cell in cells), frozenset(), ascii_only, work
        )
    cell = cells[0]
    if cell.values is not None:
        count = len(cell.values)
        words = cell.values if count <= MOST_LISTED else None
        sizes = sorted(len(dumps(word, ensure_ascii=ascii_only).encode()) - 2 for word in cell.values)
        few_bytes, many_bytes = (
            sizes[min(number, count - 1)] + 1 if count else 0 for number in (FEW_VALUES, MANY_VALUES)
        )
        return TextCount(min(count, MANY), words=words, few_bytes=few_bytes, many_bytes=many_bytes)
    if not cell.parts:
        if cell.high == 0:
            words = frozenset({""}) - cell.excluded if not cell.low else frozenset()
            return TextCount(len(words), words=words)
        few_bytes, many_bytes = (
            _least_length(cell.low, cell.high, len(cell.excluded), number, ascii_only)
            for number in (FEW_VALUES, MANY_VALUES)
        )
        return TextCount(MANY, few_endings=cell.high is not None, few_bytes=few_bytes, many_bytes=many_bytes)
    every = replace(cell, excluded=frozenset())
    return _searched(every.content, frozenset(filter(every.holds, cell.excluded)), ascii_only, work)


def _searched(
    content: Callable[[], Language], excluded: frozenset[str], ascii_only: bool, work: Work
) -> TextCount:
    """The same for a language without some of its words, computed with its automaton."""
    try:
        dfa = content().with_budget(work.glance(QUICK)).determinize()
    except BudgetExceeded as error:
        if error.resource == "seconds":
            raise work.exceeded("seconds") from None
        return TextCount(None)
    if dfa.start == 0:
        return TextCount(0, words=frozenset())
    count, few_endings, (few_bytes, many_bytes) = word_counts(
        dfa.classes,
        dfa.table,
        dfa.accepting,
        dfa.start,
        len(excluded),
        MANY,
        [FEW_VALUES, MANY_VALUES],
        _LONGEST,
        ascii_only,
    )
    if count >= MANY:
        return TextCount(MANY, few_endings, few_bytes=few_bytes, many_bytes=many_bytes)
    words = frozenset(_words(dfa)) - excluded if count <= MOST_LISTED else None
    return TextCount(count, words=words, few_bytes=few_bytes, many_bytes=many_bytes)


def _least_length(low: int, high: int | None, excluded: int, number: int, ascii_only: bool = False) -> int:
    """A number of bytes within which more than ``number`` texts end after any prefix.

    The texts have ``low`` to ``high`` characters and do not include some ``excluded`` ones.
    """
    letters = 1
    while _PLAIN**letters <= number + excluded:
        letters += 1
    return low + letters if high is None or low + letters <= high else (12 if ascii_only else 4) * high


def _words(dfa: Dfa) -> list[str]:
    """All words of a finite language of texts."""
    found: list[str] = []
    rows, accepting = dfa.table[:, dfa.classes].tolist(), dfa.accepting.tolist()
    onward = [[(target, bytes([byte])) for byte, target in enumerate(row) if target] for row in rows]
    pending = [(dfa.start, b"")]
    while pending:
        state, word = pending.pop()
        if accepting[state]:
            found.append(word.decode())
        pending += ((target, word + byte) for target, byte in onward[state])
    return found
