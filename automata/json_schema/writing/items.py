"""The texts of an array cell: the first items one by one, then a counted repetition.

If items are counted by their kinds, an automaton walks the sequence (``contains``). If they must differ
(``uniqueItems``) and have listed values, each value is an unordered member that occurs at most once
(``expression.unordered``). Strings that are not listed, and unlisted items of any other kind, are compared as the text
is generated (``distinct``).
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from tokenfst.automata.expressions.expression import EMPTY, EPSILON, Expr, concat, repeat, union, unordered
from tokenfst.automata.json_schema.sets.arrays import Array, Contains
from tokenfst.automata.json_schema.sets.constants import Whole, listed_values
from tokenfst.automata.json_schema.sets.formula import NONE, Formula
from tokenfst.automata.json_schema.sets.strings import subset_of_words
from tokenfst.automata.json_schema.sets.value_sets import ValueSet
from tokenfst.automata.json_schema.writing.cardinality import ValueCounts
from tokenfst.automata.json_schema.writing.contains import Counting
from tokenfst.automata.json_schema.writing.distinct import count_texts, fresh_text
from tokenfst.automata.json_schema.writing.layout import Differs
from tokenfst.errors import UnsupportedSchemaError

if TYPE_CHECKING:
    from tokenfst.automata.json_schema.writing.writer import Writer

_MOST_STATES = 2_000
_MOST_TWICE = 64
"""Maximum number of values that are checked for two occurrences; each is an automaton that runs in parallel."""


class Items:
    """Writes one array cell."""

    def __init__(self, writer: Writer, cell: Array, *, differs: Differs = "") -> None:
        """``differs``: as for ``Writer.bracketed``."""
        self.writer, self.cell, self.differs = writer, cell, differs
        self.formulas, self.layout = writer.meaning.formulas, writer.layout

    def texts(self) -> Expr:
        """The texts of all arrays of the cell. Raises UnsupportedSchemaError if they need too many states."""
        distinct = False
        if self.cell.unique and (self.cell.high is None or self.cell.high > 1):
            distinct, inner = self._all_different()
        elif self.cell.twice:
            inner = self._some_twice()
        elif self.cell.contains:
            inner = Counting(self.writer, self.cell).texts()
        else:
            inner = self._plain()
        return self.writer.bracketed(
            b"[", inner, b"]", empty=self.cell.low == 0, distinct=distinct, differs=self.differs
        )

    def _plain(self) -> Expr:
        """The items in order. Like all these methods, without the empty sequence."""
        return self._in_order(
            [self.writer.value(item) for item in self.cell.prefix], self.writer.value(self.cell.rest)
        )

    def _in_order(self, prefix: list[Expr], rest: Expr) -> Expr:
        """The same, given the texts of items."""
        cell, comma = self.cell, self.layout.comma
        length = len(prefix)
        if not length:
            if cell.high == 0 or rest is EMPTY:
                return EMPTY
            most = None if cell.high is None else cell.high - 1
            return concat(rest, repeat(concat(comma, rest), max(cell.low - 1, 0), most))
        after: Expr = EPSILON
        if rest is not EMPTY and (cell.high is None or cell.high > length):
            most = None if cell.high is None else cell.high - length
            after = repeat(concat(comma, rest), max(cell.low - length, 0), most)
        elif cell.low > length:
            return EMPTY
        for place in range(length - 1, -1, -1):
            item = prefix[place]
            after = concat(item if place == 0 else concat(comma, item), after)
            if place and place >= cell.low:
                after = union(after, EPSILON)
        return after

    # --- uniqueItems ----------------------------------------------------------------------------------

    def _all_different(self) -> tuple[bool, Expr]:
        """Items that differ; and whether some of them are compared as the text is generated."""
        strings = self._different_strings()
        if strings is not None:
            return True, strings
        cell = self.cell
        formulas = [*cell.prefix, *([cell.rest] if cell.rest is not NONE else [])]
        if not cell.contains and all(
            listed_values(self.writer.meaning.value_set(formula)) is not None for formula in formulas
        ):
            return False, self._distinct()
        return True, self._different_values()

    def _some_twice(self) -> Expr:
        """Items of which two are equal: for each listed value, the sequences that contain it twice."""
        cell, writer = self.cell, self.writer
        formulas = [*cell.prefix, *([cell.rest] if cell.rest is not NONE else [])]
        listed = [listed_values(writer.meaning.value_set(formula)) for formula in formulas]
        each_value = [value for found in listed for value in found or ()]
        values = dict.fromkeys(
            writer.meaning.constant(Fraction(value) if value.__class__ is int else value)
            for value in each_value
        )
        if (
            None in listed
            or len(values) > _MOST_TWICE
            or any(isinstance(value, Whole) for value in each_value)  # may be equal to another one
        ):
            raise UnsupportedSchemaError(
                cell.twice,
                "the complement of uniqueItems needs memory for all items; take it out of `not` or `oneOf`",
            )
        cells = (
            replace(cell, contains=(*cell.contains, Contains(value, 2, None, 0, cell.twice)), twice="")
            for value in values
        )
        return union(*(Counting(writer, each).texts() for each in cells))

    def _different_values(self) -> Expr:
        """Items of any kind that differ, compared as the text is generated."""
        cell = self.cell
        if not self.writer.distinct:
            raise UnsupportedSchemaError(
                cell.unique,
                "items that are not listed can be compared only in JSON where no object has a name twice "
                '(repeated_names="forbid")',
            )
        counts = ValueCounts(self.writer)
        for place in range(min(cell.low, len(cell.prefix) + 1)):
            needed = place + 1 if place < len(cell.prefix) else cell.low
            if needed > 1:
                self._ask_for(counts, cell.at(place), needed, f"item {place}")
        if cell.contains:
            self._check_counted(counts)
            return Counting(self.writer, cell, self.writer.different).texts()
        differs: Differs = "alone" if cell.low <= 1 else "one of several"
        prefix = [self.writer.different(item, differs) for item in cell.prefix]
        rest = EMPTY if cell.rest is NONE else self.writer.different(cell.rest, differs)
        return self._in_order(prefix, rest)

    def _ask_for(self, counts: ValueCounts, formula: Formula, number: int, what: str) -> None:
        """Raise UnsupportedSchemaError unless a formula surely has this number of values."""
        if counts.of(formula) < number:
            raise UnsupportedSchemaError(
                self.cell.unique,
                f"{self.cell.low} different items are asked for, and it is not known whether there are {number} "
                f"different values for {what}",
            )

    def _check_counted(self, counts: ValueCounts) -> None:
        """Raise UnsupportedSchemaError if all possible values of a required item may have been used.

        A kind that is required once has no used values before that. For items of a single kind, the uncounted
        values remain.
        """
        cell, kinds = self.cell, self.cell.contains
        if all(each.high is None and each.low <= 1 and each.start == 0 for each in kinds):
            return
        if len(kinds) > 1 or cell.prefix or kinds[0].start:
            raise UnsupportedSchemaError(
                cell.unique,
                "items that must differ are not counted by what they contain in several ways at once",
            )
        [kind] = kinds
        if kind.low > 1:
            self._ask_for(counts, self.formulas.both(cell.rest, kind.formula), kind.low, "what is contained")
        if kind.high is not None and cell.low > 1:
            others = self.formulas.both(cell.rest, self.formulas.negate(kind.formula))
            self._ask_for(counts, others, cell.low, "what is not contained")

    def _different_strings(self) -> Expr | None:
        """Items that differ: strings, which are compared as the text is generated, and some listed values at most
        once each.

        ``None`` if the cell is not of this form.
        """
        cell = self.cell
        if cell.contains or not self.writer.distinct:
            return None
        work = self.writer.work
        value_sets = [self.writer.meaning.value_set(formula) for formula in cell.prefix]
        prefix = [self._different(value_set, place) for place, value_set in enumerate(value_sets)]
        last = self.writer.meaning.value_set(cell.rest)
        rest = EMPTY if cell.rest is NONE else self._different(last, len(prefix))
        if rest is None or any(item is None for item in prefix):
            return None
        others = listed_values(last.without_strings())
        if rest is not EMPTY and cell.low > 1 and others is not None:
            counts = count_texts(last.strings, self.layout.spelling, work).count
            if counts is None:
                raise UnsupportedSchemaError(
                    cell.unique,
                    f"{cell.low} items are asked for, and it is not known how many strings there are",
                )
            if cell.low > counts + len(others):
                return None if prefix else EMPTY
        if (
            prefix
            and not others
            and all(not listed_values(value_set.without_strings()) for value_set in value_sets)
        ):
            return self._in_order([item for item in prefix if item is not None], rest)
        if prefix or others is None:
            return None
        options = [self.writer.value(self.writer.meaning.constant(value)) for value in others]
        return unordered(options, self.layout.comma, other=rest, low=max(cell.low, 1), high=cell.high)

    def _distinct(self) -> Expr:
        """Items that differ, with listed values. For ``prefix``, each set of used values is a state; after it, the
        others come in any order.
        """
        cell, comma = self.cell, self.layout.comma
        formulas = [*cell.prefix, *([cell.rest] if cell.rest is not NONE else [])]
        known: dict[Formula, int] = {}
        places: list[list[int]] = []
        listed: set[tuple[Any, bool]] = set()
        """For each number, whether it is written as an integer."""
        found_at = [listed_values(self.writer.meaning.value_set(formula)) for formula in formulas]
        loose = {each for found in found_at for each in found or () if isinstance(each, Fraction)}
        """Numbers that are not bare in some place, because equal items must be one constant."""
        for found in found_at:
            assert found is not None  # checked before
            listed.update(
                (value, isinstance(value, Whole)) for value in found if isinstance(value, int | Fraction)
            )
            values = [
                self.writer.meaning.constant(
                    Fraction(value) if value.__class__ is int and value in loose else value
                )
                for value in found
            ]
            places.append([known.setdefault(value, len(known)) for value in values])
        if len({number for number, _ in listed}) < len(listed):
            raise UnsupportedSchemaError(
                cell.unique,
                "an integer that 1.0 does not count as, and a number of the same value, are not distinguished",
            )
        if cell.rest is NONE:
            places.append([])
        items = [self.writer.value(value) for value in known]
        length = len(places) - 1 if cell.high is None else min(len(places) - 1, cell.high)
        levels: list[dict[frozenset[int], None]] = [{frozenset(): None}]
        for place in range(length):
            levels.append({used | {k}: None for used in levels[-1] for k in places[place] if k not in used})
            if sum(map(len, levels)) > _MOST_STATES:
                raise UnsupportedSchemaError(
                    cell.unique,
                    f"prefixItems leave more than {_MOST_STATES:,} sets of values that may have been used",
                )

        def after(place: int, more: Expr) -> Expr:
            return union(
                EPSILON if place and place >= cell.low else EMPTY, concat(comma, more) if place else more
            )

        following: dict[frozenset[int], Expr] = {}
        most = None if cell.high is None else cell.high - length
        for used in levels[length]:
            left = [items[k] for k in places[-1] if k not in used]
            more = unordered(left, comma, low=max(cell.low - length, 1), high=most)
            following[used] = after(length, EMPTY if most == 0 else more)
        for place in range(length - 1, -1, -1):
            following = {
                used: after(
                    place,
                    union(*(concat(items[k], following[used | {k}]) for k in places[place] if k not in used)),
                )
                for used in levels[place]
            }
        return following[frozenset()]

    def _different(self, value_set: ValueSet, place: int) -> Expr | None:
        """The strings of a value set, each at most once.

        Only if they are not listed, one remains when that many others are used, and there are few other values.
        """
        spelling, work = self.layout.spelling, self.writer.work
        if (
            subset_of_words(value_set.strings) is not None
            or listed_values(value_set.without_strings()) is None
        ):
            return None
        if place and (count_texts(value_set.strings, spelling, work).count or 0) <= place:
            return None
        return fresh_text(value_set.strings, spelling, work)
