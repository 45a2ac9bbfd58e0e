"""Case-insensitive closure: the texts that differ from some text of a language only in case.

Two characters are equal up to case if Unicode's simple case folding maps both to the same character. Each character is
replaced by the class of characters equal to it. This relation works character by character, so the image of a language
commutes with union, concatenation and repetition, and the expression keeps its form. The implementation is that of
``spellings``, with classes for characters: counted repetitions stay counted, nothing is determinized. The image does
not commute with intersection and complement (``A`` is in the images of ``a`` and of everything but ``a``), so these,
and look-around, are converted to automata first.

Cost: linear in the expression; an automaton for each determinized part.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tokenfst.automata.characters.case import cased_characters, with_other_case
from tokenfst.automata.characters.utf8 import ASCII, MULTIBYTE, Characters, Ranges
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.images.coding import Code
from tokenfst.automata.images.equivalence import equivalent_texts, full_case_folding
from tokenfst.automata.images.letters import by_characters, crawl, require_language, write_letters
from tokenfst.automata.images.spellings import inverse_image
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but


@checked_but("language")
def case_insensitive(language: Language, *, full: bool = False, budget: Budget | None = None) -> Language:
    """The texts that Unicode's simple case folding makes equal to some text of ``language``.

    Simple folding maps a character to one character, whose UTF-8 may have another length: ``k`` matches ``K`` and the
    Kelvin sign U+212A, ``ß`` matches ``ẞ``, but not ``ss``. With ``full``, full case folding (``str.casefold``) is
    used, which makes those equal too. The mappings are those of the running Python's Unicode version. Words that are
    not valid UTF-8 are ignored.

    Linear in the expression. Intersections, complements and look-around in it, and with ``full`` all of it, are
    determinized within ``budget`` (by default that of the language: ``BudgetExceeded``). Raises ``ConstraintError`` for
    a grammar.
    """
    source = require_language(language, "case_insensitive")
    limits = budget or source.budget
    if full:
        name = f"case_insensitive({source.source}, full=True)"
        return equivalent_texts(source, full_case_folding(), name, limits)
    expr = inverse_image(source.expr, _folding_code(), limits)
    return Language(expr, f"case_insensitive({source.source})", limits)


class _FoldingCode(Code):
    """UTF-8, in which each character represents its class."""

    functional = False

    def character(self, ranges: Ranges) -> Expr:
        return super().character(with_other_case(ranges))

    def automaton(self, read: Characters, deadline: Deadline, source: str | None = None) -> Expr:
        cased, folded = cased_characters()
        letters = by_characters(read, cased.tolist(), deadline)
        # For each interval, the columns of its characters; intervals with the same columns are one class.
        columns = {place: {group} for place, group in enumerate(letters.group.tolist())}
        orbits: dict[int, set[int]] = {}
        places = np.searchsorted(letters.begins, cased).tolist()
        for place, to in zip(places, folded.tolist(), strict=True):
            columns[place] = orbits.setdefault(to, set())
            columns[place].add(int(letters.group[place]))
        classes: dict[frozenset[int], int] = {}
        group = np.array(
            [
                -1 if -1 in found else classes.setdefault(frozenset(found), len(classes))
                for found in columns.values()
            ]
        )
        rows: list[list[int]] = letters.table.tolist()

        def follow(states: frozenset[int]) -> tuple[None, dict[int, frozenset[int]]]:
            steps: dict[int, frozenset[int]] = {}
            deadline.tick(len(classes) * (1 + len(states) // 4))
            for found, number in classes.items():
                reached = frozenset(rows[state][column] for state in states for column in found) - {0}
                if reached:
                    steps[number] = reached
            return None, steps

        table, accepting = crawl(
            frozenset((letters.start,)),
            follow,
            lambda states: bool(letters.accepting[list(states)].any()),
            len(classes),
            deadline,
        )
        return write_letters(letters.begins, group, table, accepting, "characters", deadline, source)


@lru_cache(maxsize=1)
def _folding_code() -> _FoldingCode:
    return _FoldingCode((ASCII, *MULTIBYTE))
