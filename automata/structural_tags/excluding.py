"""``excludes`` of ``json_schema``: JSON whose strings, as they are written, do not contain certain texts.

Strings, names included, are leaves of the expression that JSON Schema writes, so each is intersected where it is
written. A name that the schema does not list may then occur twice: intersected strings are not compared with each
other.
"""

from __future__ import annotations

from collections.abc import Sequence

from tokenfst.automata.expressions.expression import (
    EMPTY,
    UNIVERSE,
    Expr,
    complement,
    concat,
    intersect,
    literal,
    union,
)
from tokenfst.automata.json_schema.reading.meaning import Meaning
from tokenfst.automata.json_schema.sets.formula import Formula
from tokenfst.automata.json_schema.sets.strings import Strings, spelled
from tokenfst.automata.json_schema.sets.value_sets import ValueSet
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.automata.json_schema.writing.layout import Layout
from tokenfst.automata.json_schema.writing.members import Members
from tokenfst.automata.json_schema.writing.writer import OwnMembers
from tokenfst.automata.languages.emptiness import has_word


class _Members(Members):
    """The members of an object; names that are not listed contain no excluded text."""

    writer: Excluding

    def _free(self, strings: Strings) -> Expr:
        return self.writer.kept(super()._free(strings))


class Excluding(OwnMembers):
    """Writes JSON whose strings do not contain the texts in ``excludes``."""

    of_objects = _Members

    def __init__(
        self, meaning: Meaning, layout: Layout, *, fractions: bool, any_order: bool, excludes: Sequence[bytes]
    ) -> None:
        super().__init__(meaning, layout, fractions=fractions, any_order=any_order, distinct=False)
        self.excludes = excludes
        quote = literal(b'"')
        self._held = concat(quote, held(excludes), quote)

    def kept(self, text: Expr) -> Expr:
        """The JSON strings in ``text`` that contain no excluded text."""
        return with_word(intersect(text, complement(self._held)), self.work) if text is not EMPTY else EMPTY

    def scalars(self, value_set: ValueSet, where: str) -> Expr:
        strings = union(*(self.kept(cell.json(self.spelling, self.work)) for cell in value_set.strings))
        return union(super().scalars(value_set.without_strings(), where), strings)

    def _member(self, name: str, formula: Formula) -> Expr:
        return concat(self.kept(spelled(name, self.spelling)), self.layout.colon, self.value(formula))


def held(excludes: Sequence[bytes]) -> Expr:
    """All texts that contain at least one of ``excludes``."""
    return concat(UNIVERSE, union(*map(literal, excludes)), UNIVERSE)


def with_word(text: Expr, work: Work) -> Expr:
    """The expression itself if it has a word; otherwise EMPTY."""
    return text if has_word(text, work.left()) else EMPTY
