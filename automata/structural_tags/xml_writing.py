"""Parameters of a call in a model's own style, from a JSON Schema of an object.

``json_schema/reading`` defines what a schema means; only the texts differ. Members are chosen as for objects in JSON:
listed ones at most once, required ones exactly once, in the schema's order or in any order. ``Elements`` writes each
member as an element. The type of a value decides its form: a string is bare and extends to the first stop of the style;
other values are JSON, or elements inside of the element.

Invariant: if the style has a place for a type, an element names the type of its value, and its value has that type.
Names that the schema does not list may occur twice, since they are not compared with each other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

from tokenfst.automata.expressions.expression import (
    EMPTY,
    EPSILON,
    Expr,
    complement,
    concat,
    intersect,
    literal,
    union,
)
from tokenfst.automata.json_schema.documents.forms import Forms
from tokenfst.automata.json_schema.documents.source import Source
from tokenfst.automata.json_schema.reading.meaning import Meaning
from tokenfst.automata.json_schema.reading.typed_keywords import TypedKeywords
from tokenfst.automata.json_schema.reading.unevaluated import Evaluated
from tokenfst.automata.json_schema.sets.formula import Formula
from tokenfst.automata.json_schema.sets.strings import EVERY_STRING, Strings
from tokenfst.automata.json_schema.sets.value_sets import NOTHING, ValueSet
from tokenfst.automata.json_schema.sets.work import Work
from tokenfst.automata.json_schema.writing.layout import Layout, layout
from tokenfst.automata.json_schema.writing.members import Members
from tokenfst.automata.json_schema.writing.writer import (
    OwnMembers,
    SchemaRules,
    Writer,
    name_of,
    place_of,
)
from tokenfst.automata.json_schema.writing.written import members_of_rules
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.regex.translate import regex
from tokenfst.automata.structural_tags.documents.xml_styles import Style
from tokenfst.automata.structural_tags.excluding import Excluding, held, with_word
from tokenfst.automata.structural_tags.free_text import FreeText
from tokenfst.automata.structural_tags.sentinels import ElementEnd, Sentinels
from tokenfst.budget import Budget
from tokenfst.errors import EmptyLanguageError, UnsupportedSchemaError

_FREE_NAME = r"[^\s\x00-\x20<>\"&=/\]\x7f]+"
"""Names of parameters that the schema does not list: they contain no delimiters of any style."""


def styled(
    schema: Mapping[str, Any] | bool,
    style: Style | None,
    *,
    whitespace: str,
    any_order: bool,
    additional_properties: Literal["schema", "forbid"],
    excludes: Sequence[bytes] = (),
    budget: Budget | None = None,
    sentinels: Sentinels | None = None,
) -> Constraint:
    """The texts of the members of the objects that ``schema`` allows, in a style; if ``style`` is ``None``, JSON texts.

    Strings contain none of ``excludes``. ``sentinels``: those for a parser of elements, if any. Raises the errors of
    ``json_schema``; UnsupportedSchemaError also for names that the style cannot write; EmptyLanguageError also for a
    schema without objects.
    """
    work = Work(budget)
    known = Source(schema, None, None, work, Forms(work).check)
    meaning = Meaning(known, TypedKeywords(budget, "assert"), work, relax=False)
    json = Writer(meaning, layout(whitespace), fractions=True, any_order=any_order, distinct=True)
    if excludes:
        json = Excluding(meaning, json.layout, fractions=True, any_order=any_order, excludes=excludes)
    closed = Evaluated() if additional_properties == "forbid" else None
    with work.placed_errors():
        writer = json if style is None else Elements(json, style, excludes, budget or Budget(), sentinels)
        rules = writer.write(meaning.formula(known.root.closing(closed)))
    made = members_of_rules(rules, "json_schema(...) in a style", budget)
    if made.is_empty():
        what = "value" if style is None else "object"
        why = "" if style is None else ", and parameters are the members of one"
        without = " without what is excluded" if excludes else ""
        raise EmptyLanguageError(f"no {what}{without} satisfies the schema{why}")
    return made


class _Parameters(Members):
    """The members of an object as elements."""

    writer: Elements

    def _member(self, name: Expr, formula: Formula) -> Expr:
        writer = self.writer
        return writer.element(concat(literal(writer.style.before.encode()), name), "", formula)

    def _free(self, strings: Strings) -> Expr:
        """The names of a class, without the listed ones."""
        if not self.writer.style.free_names:
            raise UnsupportedSchemaError(
                self.cell.where,
                "this style writes a name twice in an element, and names that are not listed cannot be compared: list "
                "them, or forbid others",
            )
        names = intersect(strings.content().expr, regex(_FREE_NAME).expr)
        if self.writer.excludes:
            names = intersect(names, complement(held(self.writer.excludes)))
        return with_word(names, self.writer.work)


class Elements(OwnMembers):
    """Writes the members of objects as elements.

    ``json`` writes values in JSON, and the rules of both writers are shared.
    """

    of_objects = _Parameters

    def __init__(
        self,
        json: Writer,
        style: Style,
        excludes: Sequence[bytes],
        budget: Budget,
        sentinels: Sentinels | None,
    ) -> None:
        gap = json.layout.opened
        super().__init__(
            json.meaning,
            Layout(json.layout.spelling, gap, gap, gap, gap, EPSILON),
            fractions=json.fractions,
            any_order=json.any_order,
            distinct=False,
        )
        self.json, self.style, self.gap, self.sentinels = json, style, gap, sentinels
        self.share_rules(json)
        self._stop = style.stop.encode()
        self.excludes = excludes
        self._text = FreeText([(self._stop,)], excludes, budget).until((self._stop,), closes=True)

    def write(self, root: Formula) -> SchemaRules:
        """The rules of the members of the objects that ``root`` describes."""
        value_set = self.meaning.value_set(root)
        return self.finish(lambda: self._parts(replace(NOTHING, objects=value_set.objects)))

    def value(self, formula: Formula) -> Expr:
        """The text of an array's item: an element without a name if the style nests elements, otherwise JSON."""
        if not self.style.nested:
            return self.json.value(formula)
        found = self._level.known.get(formula)
        if found is None:
            assert self.style.unnamed is not None
            found = self._level.known[formula] = self.element(
                literal(self.style.unnamed.encode()), None, formula
            )
        return found

    def _member(self, name: str, formula: Formula) -> Expr:
        written = self.style.name(name)
        if written is None:
            raise UnsupportedSchemaError(
                place_of(formula),
                f"the name {name!r} of a parameter cannot be written in this style: it contains markers of the "
                "style. Rename it, or choose another style",
            )
        lead = literal((self.style.before + written).encode())
        return EMPTY if self.excluded(written.encode()) else self.element(lead, written, formula)

    def bracketed(self, left: bytes, filled: Expr, right: bytes, *, empty: bool, **marks: bool | str) -> Expr:
        assert not any(marks.values())  # a writer without ``distinct`` has refused schemas that need them
        return union(self.gap if empty else EMPTY, concat(self.gap, filled, self.gap))

    # --- elements -------------------------------------------------------------------------------------

    def element(self, lead: Expr, name: str | None, formula: Formula) -> Expr:
        """An element with any value of a formula. ``lead``: its text up to and including the name, which is ``None``
        for an item.
        """
        value_set = self.meaning.value_set(formula)
        close = self.style.close.format("item" if name is None else name).encode()
        ways: dict[tuple[str, ...], list[tuple[Expr, ElementEnd]]] = {}
        for kind, part in _by_kind(value_set):
            after = self.style.after[kind]
            if name is None and after[0].startswith('"'):
                after = (after[0][1:], *after[1:])
            end = self._end(kind, part)
            ways.setdefault(after, []).append((self._typed(kind, part, close, formula, end), end))
        found = []
        for after, values in ways.items():
            spaced = self._with_gaps([literal(each.encode()) for each in after])
            begun = EPSILON
            if self.sentinels is not None:
                begun = self.sentinels.begins(
                    "item" if name is None else name, after, [end for _, end in values]
                )
            found.append(concat(*spaced, begun, union(*(value for value, _ in values))))
        return concat(lead, union(*found))

    def _with_gaps(self, parts: list[Expr]) -> list[Expr]:
        """Parts with white space between them."""
        first, *rest = parts
        return [first, *(each for part in rest for each in (self.gap, part))]

    def _end(self, kind: str, value_set: ValueSet) -> ElementEnd:
        """The end of an element whose value is of one kind."""
        if kind == "string":
            return ElementEnd(kind, None if value_set.strings == EVERY_STRING else value_set.strings)
        return ElementEnd(kind if kind in ("array", "object") and self.style.nested else "json")

    def _typed(
        self, kind: str, value_set: ValueSet, close: bytes, formula: Formula, ended: ElementEnd
    ) -> Expr:
        """Values of one kind, followed by the end of the element."""
        sentinel = EPSILON if self.sentinels is None else self.sentinels.ended(ended)
        if kind == "string":
            return concat(union(*map(self._bare, value_set.strings)), literal(close), sentinel)
        end = concat(literal(self._stop + close), sentinel)
        if ended.kind != "json":
            key = "element", kind, close, value_set
            return self._call(
                key,
                lambda: f"{kind} {name_of(formula)}",
                lambda: concat(self._parts(value_set), end),
                self._level,
            )
        text = self.json.of_value_set(value_set, formula)
        return concat(self.gap, text, self.gap, end) if self.style.spaced else concat(text, end)

    def _bare(self, cell: Strings) -> Expr:
        """The strings of a cell, each followed by the first stop."""
        if (cell,) == EVERY_STRING:
            return self._text
        stop = literal(self._stop)
        gap = self.gap if self.style.padded else EPSILON
        if cell.values is not None:
            texts = sorted(text.encode() for text in cell.values)
            kept = [text for text in texts if (text + self._stop).find(self._stop) == len(text)]
            kept = [text for text in kept if not self.excluded(text)]
            return concat(gap, union(*map(literal, kept)), gap, stop)
        return with_word(intersect(concat(gap, cell.content().expr, gap, stop), self._text), self.work)

    def excluded(self, text: bytes) -> bool:
        """Whether a text contains an excluded text."""
        return any(each in text for each in self.excludes)


def _by_kind(value_set: ValueSet) -> list[tuple[str, ValueSet]]:
    """The parts of a value set by the types that styles distinguish."""
    parts = [
        ("string", replace(NOTHING, strings=value_set.strings), bool(value_set.strings)),
        (
            "number",
            replace(NOTHING, numbers=value_set.numbers, whole=value_set.whole, bare=value_set.bare),
            value_set.has_numbers(),
        ),
        (
            "boolean",
            replace(NOTHING, true=value_set.true, false=value_set.false),
            value_set.true or value_set.false,
        ),
        ("null", replace(NOTHING, null=True), value_set.null),
        ("array", replace(NOTHING, arrays=value_set.arrays), bool(value_set.arrays)),
        ("object", replace(NOTHING, objects=value_set.objects), bool(value_set.objects)),
    ]
    return [(kind, part) for kind, part, there in parts if there]
