"""``json_schema``: the language of the JSON texts whose values a schema allows.

A schema is read on demand (``documents.source``) and becomes a set of values that is divided by type and closed under
intersection, union and complement (``reading.meaning``, ``sets.value_sets``). Each set whose values have parts becomes
a rule of a grammar (``writing.writer``). Nothing is approximated: a keyword without an exact automaton of reasonable
size is rejected with its JSON pointer.

The order of members is that of the schema's own ``properties``, then that of the schemas that it applies in place.
After them come members that are only required, and all others, in any order. ``property_order="any"`` allows any order.

No name occurs twice. For listed names the rules ensure this; for others, and for unique strings, each sequence
remembers the names that it has used (``writing.distinct``). With ``repeated_names="allow"`` unlisted names may repeat;
then each of the members must be valid, and all of them count towards ``maxProperties``. A ``minProperties`` that
repeated names could help to satisfy is rejected.

A Python type is converted to its schema (``python_types``), and the constraint's ``parse`` returns instances of it.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal

from tokenfst.automata.expressions.expression import EMPTY, Expr
from tokenfst.automata.json_schema.comparing import ComparedSchema, Document
from tokenfst.automata.json_schema.contradiction import Emptiness, contradiction
from tokenfst.automata.json_schema.documents.forms import Forms
from tokenfst.automata.json_schema.documents.schema_texts import read
from tokenfst.automata.json_schema.documents.source import Resolver, Source
from tokenfst.automata.json_schema.providers import Provider, provider_findings
from tokenfst.automata.json_schema.python_types import read_type
from tokenfst.automata.json_schema.reading.meaning import Meaning, Relaxed
from tokenfst.automata.json_schema.reading.typed_keywords import TypedKeywords
from tokenfst.automata.json_schema.reading.unevaluated import Evaluated
from tokenfst.automata.json_schema.recipes import Recipe, recipe_for
from tokenfst.automata.json_schema.sets.work import Work, text_parts
from tokenfst.automata.json_schema.writing.layout import Layout, Surrounding, layout
from tokenfst.automata.json_schema.writing.writer import ANY_RULE, START, SchemaRules, Writer
from tokenfst.automata.json_schema.writing.written import WrittenGrammar
from tokenfst.automata.json_values.strings import SPELLINGS, Spelling
from tokenfst.automata.languages.language import Language
from tokenfst.budget import QUICK, Budget
from tokenfst.common.arguments import checked_but, refuse, shown
from tokenfst.common.remedies import READ_FILE
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    ProviderSchemaError,
    SchemaError,
    TokenfstError,
    UnsupportedSchemaError,
)

__all__ = [
    "Relaxed",
    "Resolver",
    "SchemaGrammar",
    "SchemaLanguage",
    "json_object",
    "json_schema",
    "json_value",
]


_OPTIONS = (
    *("draft", "spelling", "whitespace", "separators", "indent", "surrounding"),
    *("property_order", "additional_properties", "repeated_names", "formats"),
    *("on_unsupported", "source", "budget"),
)
"""The options that a constraint depends on, if it has no resolver."""


@dataclass(frozen=True, slots=True)
class About:
    """What a schema's constraint knows besides its texts."""

    source: str
    document: Document
    relaxed: tuple[Relaxed, ...] = ()
    reader: Callable[[str | bytes], Any] = json.loads
    recipe: Recipe | None = None


class SchemaLanguage(ComparedSchema, Language):
    """The constraint of a schema whose values have no parts: a ``Language``.

    ``relaxed``: the keywords that were omitted (``on_unsupported="relax"``), each a ``Relaxed``.
    """

    __slots__ = ("_reader", "_recipe", "document", "relaxed")
    _made_again = (*Language._made_again, "_recipe")  # noqa: SLF001  # its own base class

    def __init__(self, expr: Expr, about: About, budget: Budget | None) -> None:
        super().__init__(expr, about.source, budget)
        self.relaxed, self._reader, self.document = about.relaxed, about.reader, about.document
        self._recipe = about.recipe

    def recipe(self) -> Recipe | None:
        """A call that makes this constraint again; ``None`` unless it was made from a schema (not a type) without a
        resolver.
        """
        return self._recipe

    def parse(self, text: str | bytes) -> Any:
        """The value of a generated text.

        If the schema was made from a Python type, the value is an instance of it; if it was made from a function, the
        bound arguments (``inspect.BoundArguments``); otherwise the result of ``json.loads``. Raises the errors of
        pydantic or ``json``.
        """
        return self._reader(text)


class SchemaGrammar(ComparedSchema, WrittenGrammar):
    """The constraint of a schema whose values may have parts: a ``Grammar`` whose rules are named by JSON pointers.

    ``relaxed``: the keywords that were omitted (``on_unsupported="relax"``), each a ``Relaxed``.
    """

    __slots__ = ("_reader", "_recipe", "document", "relaxed")
    _made_again = (*WrittenGrammar._made_again, "_recipe")  # noqa: SLF001  # its own base class

    def __init__(self, rules: SchemaRules, about: About, budget: Budget | None) -> None:
        super().__init__(
            {START: rules.start, **rules.bodies},
            START,
            rules.states,
            shared=ANY_RULE,
            source=about.source,
            budget=budget,
        )
        self.relaxed, self._reader, self.document = about.relaxed, about.reader, about.document
        self._recipe = about.recipe

    def recipe(self) -> Recipe | None:
        """A call that makes this constraint again; ``None`` unless it was made from a schema (not a type) without a
        resolver.
        """
        return self._recipe

    def parse(self, text: str | bytes) -> Any:
        """As ``SchemaLanguage.parse``."""
        return self._reader(text)


@checked_but(
    "spelling",
    "surrounding",
    "property_order",
    "additional_properties",
    "repeated_names",
    "formats",
    "on_unsupported",
    "strict",
)
def json_schema(  # one option after the other
    schema: Any,
    *,
    draft: str | None = None,
    spelling: Spelling = "plain",
    whitespace: str = "flexible",
    separators: tuple[str, str] | None = None,
    indent: int | None = None,
    surrounding: Surrounding = "none",
    property_order: Literal["schema", "any"] = "schema",
    additional_properties: Literal["schema", "forbid"] = "schema",
    repeated_names: Literal["forbid", "allow"] = "forbid",
    formats: Literal["assert", "annotate"] = "assert",
    on_unsupported: Literal["raise", "relax"] = "raise",
    strict: Provider | None = None,
    resolver: Resolver | None = None,
    source: str = "",
    budget: Budget | None = None,
) -> SchemaLanguage | SchemaGrammar:
    """The JSON texts of the values that ``schema`` allows: a language, or a grammar if the values have parts.

    ``schema``: a dict, a boolean or JSON text (whose numbers stay exact); or a pydantic model, a dataclass, a
    TypedDict, an enum, any other annotation (``list[int] | None``), or a function, which stands for its parameters. For
    a type or a function, ``parse`` of the result returns instances, and integers are written without a fraction (needs
    pydantic).

    ``draft``: one of ``DRAFTS``; by default the draft that ``$schema`` names, or 2020-12. ``formats``: whether
    ``format`` constrains values (``"assert"``) or not (``"annotate"``); unknown format names never do. ``resolver``: a
    function that returns the document with a given URI, for a ``$ref`` that leads out of the schema; nothing is ever
    fetched. ``on_unsupported="relax"``: omit keywords that would be rejected, and list them in ``relaxed`` of the
    result. ``strict``: a provider whose structured outputs must also accept the schema (``provider_findings``).

    ``spelling``: ``"plain"``: strings, names and numbers as ``json.dumps(value, ensure_ascii=False)`` writes them
    (numbers also as JavaScript and pydantic do, and with trailing zeros in fractions); ``"ascii"``: the same with
    ``ensure_ascii=True``; ``"any"``: every spelling of JSON (docs/constraints/json-spelling.md). ``whitespace``:
    ``"flexible"``, ``"compact"``, ``"pretty"`` or a pattern (``writing.layout``); or use ``separators`` and ``indent``,
    as in ``json.dumps``. ``surrounding="flexible"``: allow white space before and after the value.

    ``property_order``: ``"schema"``, or ``"any"`` for members in any order; then only the sets of names that texts
    visit take memory. ``additional_properties="forbid"``: objects have only members that their schema names, unless the
    schema constrains other members explicitly (``reading.closing``). ``repeated_names="allow"``: a text may repeat
    names that its schema does not list, so that finite automata suffice; by default no name occurs twice.

    ``source``: the name of the constraint in messages. ``budget``: the bounds of the construction.

    Raises SchemaError for an invalid schema and unresolved references, UnsupportedSchemaError for keywords without an
    exact automaton, ProviderSchemaError for keywords that the provider does not accept, all with the keyword's
    ``pointer``; EmptyLanguageError if no value is allowed, with the ``pointers`` of contradictory keywords;
    ConstraintError for invalid options; MissingDependencyError for a type without pydantic; BudgetExceeded. Linear in
    the schema, apart from combinations of arrays and objects under ``allOf``, ``oneOf`` and ``not``, whose cases
    multiply.
    """
    _check_choice("additional_properties", additional_properties, "schema", "forbid")
    _check_choice("repeated_names", repeated_names, "forbid", "allow")
    _check_choice("formats", formats, "assert", "annotate")
    _check_choice("property_order", property_order, "schema", "any")
    _check_choice("on_unsupported", on_unsupported, "raise", "relax")
    written = _layout(spelling, whitespace, separators, indent, surrounding)
    relax, typed = on_unsupported == "relax", None
    _refuse_values(schema)
    if not isinstance(schema, (Mapping, bool, str, list)):  # a list is not an annotation
        typed = read_type(schema)
        if typed.refused and not relax:
            raise UnsupportedSchemaError(*typed.refused[0])
        schema = typed.schema
    if strict is not None:
        _check_provider(schema, strict, budget)

    def make(schema: Any, work: Work) -> tuple[SchemaLanguage | SchemaGrammar, Any]:
        known = Source(schema, draft, resolver, work, Forms(work).check)
        meaning = Meaning(known, TypedKeywords(budget, formats), work, relax=relax)
        any_order = property_order == "any"
        writer = Writer(
            meaning,
            written,
            fractions=typed is None,
            any_order=any_order,
            distinct=repeated_names == "forbid",
        )
        closed = Evaluated() if additional_properties == "forbid" else None
        with work.placed_errors():
            rules = writer.write(meaning.formula(known.root.closing(closed)))
        if typed is None:
            name = source or "json_schema(...)"
            about = About(name, document, tuple(meaning.relaxed), recipe=recipe)
        else:
            relaxed = (*(Relaxed(*each) for each in typed.refused), *meaning.relaxed)
            about = About(source or f"json_schema({typed.name})", document, relaxed, typed.parse)
        return _constraint(rules, about, budget), known.root.value

    def emptiness(schema: Any) -> Emptiness:
        try:
            return _emptiness(make(schema, Work(work.glance(QUICK)))[0])
        except SchemaError:
            return Emptiness.NONE
        except BudgetExceeded as error:
            if error.resource == "seconds":
                raise work.exceeded("seconds") from None
            return Emptiness.NONE

    recipe = None
    if typed is None and resolver is None:
        options = (
            *(draft, spelling, whitespace, separators, indent, surrounding),
            *(property_order, additional_properties, repeated_names, formats, on_unsupported, source, budget),
        )
        recipe = recipe_for(json_schema, schema, _OPTIONS, options)
    document = Document(schema, draft, formats, resolver, budget, additional_properties == "forbid")
    work = Work(budget)
    with _uncollected():
        made, value = make(schema, work)
        if _emptiness(made) is not Emptiness.NONE:
            raise contradiction(value, text_parts(value, work), emptiness)
    return made


@contextmanager
def _uncollected() -> Iterator[None]:
    """A context in which Python's garbage collector does not run.

    The objects of a schema contain no cycles and are freed by reference counts. Most of them are young, so the
    collector would traverse a large schema again and again while it grows. The call that found the collector
    enabled enables it again, so that it runs in the end, however many threads are in this context.

    After an error the frames of its traceback, and of the errors that led to it, hold all that was made. Their
    variables are cleared: a collection would take these objects for long-lived ones, and soon traverse everything.
    """
    before, collects = sys.exception(), gc.isenabled()
    gc.disable()
    try:
        yield
    except TokenfstError as error:
        raised: BaseException | None = error
        while raised is not None and raised is not before:
            traceback.clear_frames(raised.__traceback__)
            raised = raised.__context__
        raise
    finally:
        if collects:
            gc.enable()


def _check_provider(schema: Any, strict: Provider, budget: Budget | None) -> None:
    """Check that a provider accepts a schema."""
    for finding in provider_findings(read(schema, "#", Work(budget)), strict):
        raise ProviderSchemaError(finding.pointer, finding.message)


def _refuse_values(schema: Any) -> None:
    """Refuse values that are neither a schema nor a type, before they are read as an annotation."""
    if schema is None:
        raise SchemaError("#", "a schema is an object or a boolean, not null; the type of None is type(None)")
    if isinstance(schema, (bytes, bytearray, int, float)) and not isinstance(schema, bool):
        raise SchemaError(
            "#",
            f"a schema is an object, a boolean, JSON text or a Python type, not {shown(schema)}"
            + (": data.decode() makes text from bytes" if isinstance(schema, bytes | bytearray) else ""),
        )
    if isinstance(schema, os.PathLike) or hasattr(schema, "readlines"):
        raise SchemaError("#", f"a schema is given by its text, not by {shown(schema)}: {READ_FILE}")
    if isinstance(schema, list) and len(schema) == 1 and isinstance(schema[0], type):
        raise SchemaError(
            "#",
            f"a schema is an object or a boolean, not an array: write list[{schema[0].__name__}] for a list of values",
        )


def _check_choice(name: str, value: object, one: str, other: str) -> None:
    """Check that an option has one of its two values."""
    if value not in (one, other):
        raise ConstraintError(f"{name}={value!r} is neither {one!r} nor {other!r}")


@checked_but("max_depth", "spelling", "surrounding")
def json_value(
    max_depth: int | None = None,
    *,
    spelling: Spelling = "plain",
    whitespace: str = "flexible",
    separators: tuple[str, str] | None = None,
    indent: int | None = None,
    surrounding: Surrounding = "none",
) -> SchemaLanguage | SchemaGrammar:
    """The texts of all JSON values.

    ``max_depth``: maximum nesting of arrays and objects (0: neither); ``None``: no maximum. The other parameters are
    those of ``json_schema``.
    """
    return json_schema(
        True if max_depth is None else _nested(max_depth),
        spelling=spelling,
        whitespace=whitespace,
        separators=separators,
        indent=indent,
        surrounding=surrounding,
    )


@checked_but("spelling", "surrounding")
def json_object(
    max_depth: int | None = None,
    *,
    spelling: Spelling = "plain",
    whitespace: str = "flexible",
    separators: tuple[str, str] | None = None,
    indent: int | None = None,
    surrounding: Surrounding = "none",
) -> SchemaLanguage | SchemaGrammar:
    """The texts of all JSON objects. ``max_depth`` (at least 1) is that of ``json_value``; the object itself counts."""
    if max_depth is not None and max_depth < 1:
        raise ConstraintError(f"max_depth={max_depth} leaves no room for the object itself")
    return json_schema(
        {**({} if max_depth is None else _nested(max_depth)), "type": "object"},
        spelling=spelling,
        whitespace=whitespace,
        separators=separators,
        indent=indent,
        surrounding=surrounding,
    )


def _layout(
    spelling: Spelling,
    whitespace: str,
    separators: tuple[str, str] | None,
    indent: int | None,
    surrounding: Surrounding,
) -> Layout:
    """The layout of texts. Raises ConstraintError for invalid settings."""
    if spelling not in SPELLINGS:
        raise ConstraintError(f"spelling must be one of 'plain', 'ascii', 'any', not {spelling!r}")
    if surrounding not in ("none", "flexible"):
        raise ConstraintError(f"surrounding={surrounding!r} is neither 'none' nor 'flexible'")
    if separators is not None and not (
        len(separators) == 2 and all(isinstance(each, str) for each in separators)
    ):
        refuse("json_schema", "separators", separators, "two texts, such as (',', ': ')")
    return layout(
        whitespace, spelling=spelling, separators=separators, indent=indent, surrounding=surrounding
    )


_LEVEL = 64
"""The least number of positions that one nesting level takes, so that an impossible ``max_depth`` is rejected at once.
"""


def _nested(depth: int) -> dict[str, Any]:
    """The schema of any value whose arrays and objects are nested at most ``depth`` deep."""
    if isinstance(depth, bool) or not isinstance(depth, int) or depth < 0:
        raise ConstraintError(f"max_depth={depth!r} must be a whole number of at least 0")
    if depth > (most := Budget().positions) // _LEVEL:
        raise BudgetExceeded("positions", most, f"max_depth={depth}")
    levels: dict[str, Any] = {"0": {"type": ["null", "boolean", "number", "string"]}}
    for level in range(1, depth + 1):
        inner = {"$ref": f"#/$defs/{level - 1}"}
        levels[str(level)] = {"items": inner, "additionalProperties": inner}
    return {"$defs": levels, "$ref": f"#/$defs/{depth}"}


def _constraint(rules: SchemaRules, about: About, budget: Budget | None) -> SchemaLanguage | SchemaGrammar:
    """A grammar if there are calls, otherwise a language."""
    return SchemaGrammar(rules, about, budget) if rules.bodies else SchemaLanguage(rules.start, about, budget)


def _emptiness(made: SchemaLanguage | SchemaGrammar) -> Emptiness:
    """Whether there is no text, and why: an expression without calls has a word unless it is EMPTY, so if no rule is
    EMPTY, only the recursion of the rules leaves none.
    """
    if not isinstance(made, SchemaGrammar):
        return Emptiness.LOCAL if made.expr is EMPTY else Emptiness.NONE
    if not made.is_empty():
        return Emptiness.NONE
    return Emptiness.LOCAL if any(body is EMPTY for body in made.rules.values()) else Emptiness.ENDLESS
