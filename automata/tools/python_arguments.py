"""Keyword arguments of a Python call, from a JSON Schema of an object.

``json_schema/reading`` defines what a schema means; values are written as Python literals: ``True``, ``None``, strings
in either quotation mark, dicts and lists. The layout is that of ``repr``. ``reading/values`` parses them.
"""

from __future__ import annotations

import keyword
from dataclasses import replace
from typing import Any

from tokenfst.automata.expressions.expression import EPSILON, Expr, concat, literal, union
from tokenfst.automata.json_schema.documents.forms import Forms
from tokenfst.automata.json_schema.documents.source import Source
from tokenfst.automata.json_schema.reading.meaning import Meaning
from tokenfst.automata.json_schema.reading.typed_keywords import TypedKeywords
from tokenfst.automata.json_schema.reading.unevaluated import Evaluated
from tokenfst.automata.json_schema.sets.formula import Formula
from tokenfst.automata.json_schema.sets.strings import EVERY_STRING, Strings
from tokenfst.automata.json_schema.sets.value_sets import NOTHING, ValueSet
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.automata.json_schema.writing.layout import layout
from tokenfst.automata.json_schema.writing.members import Members
from tokenfst.automata.json_schema.writing.writer import OwnMembers, SchemaRules, place_of
from tokenfst.automata.json_schema.writing.written import WrittenGrammar, members_of_rules
from tokenfst.automata.languages.language import Language
from tokenfst.automata.python_text import literals
from tokenfst.automata.tools.definitions.places import placed
from tokenfst.budget import Budget
from tokenfst.errors import EmptyLanguageError, UnsupportedSchemaError


def python_arguments(
    schema: dict[str, Any], pointer: str, budget: Budget | None
) -> Language | WrittenGrammar:
    """The texts of the keyword arguments that ``schema`` allows.

    Raises the errors of ``json_schema``, with pointers relative to ``pointer``; UnsupportedSchemaError also for names
    that are not Python identifiers.
    """
    work = Work(budget)
    with placed(pointer):
        known = Source(schema, None, None, work, Forms(work).check)
        meaning = Meaning(known, TypedKeywords(budget, "assert"), work, relax=False)
        with work.placed_errors():
            rules = _Keywords(_Values(meaning)).write(meaning.formula(known.root.closing(Evaluated())))
        made = members_of_rules(rules, "python_arguments(...)", budget)
        if made.is_empty():
            raise EmptyLanguageError("no arguments satisfy the schema", ("#",))
    return made


class _Pairs(Members):
    """The items of a dict."""

    writer: _Values

    def _free(self, strings: Strings) -> Expr:
        return self.writer.strings((strings,))


class _Values(OwnMembers):
    """Writes values as Python's literals."""

    of_objects = _Pairs

    def __init__(self, meaning: Meaning) -> None:
        written = layout("flexible", spelling="plain", separators=(", ", ": "))
        super().__init__(meaning, written, fractions=True, any_order=False, distinct=False)

    def scalars(self, value_set: ValueSet, where: str) -> Expr:
        constants = ((b"None", value_set.null), (b"True", value_set.true), (b"False", value_set.false))
        rest = replace(value_set.without_strings(), null=False, true=False, false=False)
        return union(
            *(literal(text) for text, there in constants if there),
            super().scalars(rest, where),
            self.strings(value_set.strings),
        )

    def strings(self, cells: tuple[Strings, ...]) -> Expr:
        """The literals of strings."""
        if cells == EVERY_STRING:
            return literals.string()
        return union(*map(self._cell_texts, cells))

    def _member(self, name: str, formula: Formula) -> Expr:
        return concat(literals.string_of(name), self.layout.colon, self.value(formula))

    def _cell_texts(self, cell: Strings) -> Expr:
        if cell.values is not None:
            return union(*(literals.string_of(text) for text in sorted(cell.values)))
        return literals.string(cell.content())


class _Named(Members):
    """Keyword arguments."""

    def _free(self, strings: Strings) -> Expr:
        raise UnsupportedSchemaError(
            self.cell.where,
            "keyword arguments that are not listed have no known names: list them, or forbid others",
        )


class _Keywords(OwnMembers):
    """Writes the members of an object as keyword arguments; their values by ``values``."""

    of_objects = _Named

    def __init__(self, values: _Values) -> None:
        super().__init__(values.meaning, values.layout, fractions=True, any_order=False, distinct=False)
        self.values = values
        self.share_rules(values)

    def write(self, root: Formula) -> SchemaRules:
        """The rules of the members of the objects that ``root`` describes."""
        value_set = self.meaning.value_set(root)
        return self.finish(lambda: self._parts(replace(NOTHING, objects=value_set.objects)))

    def _member(self, name: str, formula: Formula) -> Expr:
        if not name.isidentifier() or keyword.iskeyword(name):
            raise UnsupportedSchemaError(
                place_of(formula),
                f"the name {name!r} is not a Python identifier, so it cannot be a keyword argument: choose another "
                "format",
            )
        return concat(literal(f"{name}=".encode()), self.values.value(formula))

    def bracketed(self, left: bytes, filled: Expr, right: bytes, *, empty: bool, **marks: bool | str) -> Expr:
        assert not any(marks.values())  # a writer without ``distinct`` has refused schemas that need them
        return union(EPSILON, filled) if empty else filled
