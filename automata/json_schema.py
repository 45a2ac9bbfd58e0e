"""JSON Schema: the texts of the JSON values that a schema allows.

The idea: a schema is read where it is needed (``schema_source``), becomes a set of values split by type and closed
under and, or, not (``schema_meaning``, ``schema_shape``), and each set that has parts becomes a rule of a grammar
(``schema_text``). Nothing is approximated: what no automaton of sensible size says exactly is refused, with the JSON
pointer of the keyword.

Members come in the order of ``properties`` (where several schemas list names, in the order in which the schema names
them), then those that are only required, and all others, in any order; or all in any order, as ``property_order`` says.
Listed names never repeat. Other names may; each of the members must be valid then, all count towards ``maxProperties``,
and of all names that are not listed one counts towards ``minProperties``.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from tokenfst.automata.expression import Expr
from tokenfst.automata.grammar import Grammar
from tokenfst.automata.language import Language
from tokenfst.automata.schema_layout import layout
from tokenfst.automata.schema_leaves import Leaves
from tokenfst.automata.schema_meaning import Meaning, Relaxed
from tokenfst.automata.schema_source import Resolver, Source
from tokenfst.automata.schema_text import START, Rules, Writer
from tokenfst.budget import Budget
from tokenfst.errors import ConstraintError, EmptyLanguageError

__all__ = [
    "Relaxed",
    "Resolver",
    "SchemaGrammar",
    "SchemaLanguage",
    "json_object",
    "json_schema",
    "json_value",
]


class SchemaLanguage(Language):
    """A schema whose values have no parts; ``relaxed`` lists the keywords that were left out."""

    __slots__ = ("relaxed",)

    def __init__(
        self, expr: Expr, source: str, budget: Budget | None, relaxed: tuple[Relaxed, ...] = ()
    ) -> None:
        super().__init__(expr, source, budget)
        self.relaxed = relaxed


class SchemaGrammar(Grammar):
    """A schema as rules, named by JSON pointers; ``relaxed`` lists the keywords that were left out."""

    __slots__ = ("relaxed",)

    def __init__(
        self, rules: Mapping[str, Expr], source: str, budget: Budget | None, relaxed: tuple[Relaxed, ...] = ()
    ) -> None:
        super().__init__(rules, START, source=source, budget=budget)
        self.relaxed = relaxed


def json_schema(
    schema: Mapping[str, Any] | bool | str,
    *,
    draft: str | None = None,
    whitespace: str = "flexible",
    property_order: Literal["schema", "any"] = "schema",
    formats: Literal["assert", "annotate"] = "assert",
    on_unsupported: Literal["raise", "relax"] = "raise",
    resolver: Resolver | None = None,
    budget: Budget | None = None,
) -> SchemaLanguage | SchemaGrammar:
    """The JSON texts of the values that ``schema`` allows: a language, or a grammar if the values have parts.

    ``schema``: a dict, a boolean or JSON text (whose numbers stay exact). ``draft``: one of ``DRAFTS``; without,
    ``$schema`` says it, or it is 2020-12. ``whitespace``: ``"flexible"``, ``"compact"``, ``"pretty"`` or a pattern
    (``schema_layout``). ``property_order``: ``"schema"``, or ``"any"`` for members in any order; it costs memory for
    those sets of names only that texts use. ``formats``: whether ``format`` constrains. ``resolver``: gives the
    documents that ``$ref`` names and that are not part of the schema; nothing is ever fetched.
    ``on_unsupported="relax"`` leaves out what would be refused, and lists it as ``relaxed`` of the result.

    Raises SchemaError for what is no schema and for references that lead nowhere, UnsupportedSchemaError for what has
    no exact automaton, both with the ``pointer`` of the keyword; EmptyLanguageError if no value is allowed;
    BudgetExceeded. Linear in the schema, apart from combinations of arrays and objects under ``allOf``, ``oneOf`` and
    ``not``, whose cases multiply.
    """
    if formats not in ("assert", "annotate"):
        raise ConstraintError(f"formats={formats!r} is neither 'assert' nor 'annotate'")
    if property_order not in ("schema", "any"):
        raise ConstraintError(f"property_order={property_order!r} is neither 'schema' nor 'any'")
    if on_unsupported not in ("raise", "relax"):
        raise ConstraintError(f"on_unsupported={on_unsupported!r} is neither 'raise' nor 'relax'")
    source = Source(schema, draft, resolver)
    meaning = Meaning(source, Leaves(budget, formats), relax=on_unsupported == "relax")
    fractions, any_order = source.root.draft != 4, property_order == "any"
    writer = Writer(meaning, layout(whitespace), budget or Budget(), fractions=fractions, any_order=any_order)
    rules = writer.write(meaning.formula(source.root))
    return _finished(rules, "json_schema(...)", budget, tuple(meaning.relaxed))


def json_value(
    max_depth: int | None = None, *, whitespace: str = "flexible"
) -> SchemaLanguage | SchemaGrammar:
    """Any JSON value; with ``max_depth``, arrays and objects at most so deep inside of each other (0: none)."""
    return json_schema(True if max_depth is None else _nested(max_depth), whitespace=whitespace)


def json_object(
    max_depth: int | None = None, *, whitespace: str = "flexible"
) -> SchemaLanguage | SchemaGrammar:
    """Any JSON object; ``max_depth`` (at least 1) as in ``json_value``, the object itself counted."""
    if max_depth is None:
        return json_schema({"type": "object"}, whitespace=whitespace)
    if max_depth < 1:
        raise ConstraintError(f"max_depth={max_depth} leaves no room for the object itself")
    return json_schema({**_nested(max_depth), "type": "object"}, whitespace=whitespace)


def _nested(depth: int) -> dict[str, Any]:
    """The schema of any value with arrays and objects nested at most so deep."""
    if depth < 0:
        raise ConstraintError(f"max_depth={depth} must not be negative")
    levels: dict[str, Any] = {"0": {"type": ["null", "boolean", "number", "string"]}}
    for level in range(1, depth + 1):
        inner = {"$ref": f"#/$defs/{level - 1}"}
        levels[str(level)] = {"items": inner, "additionalProperties": inner}
    return {"$defs": levels, "$ref": f"#/$defs/{depth}"}


def _finished(
    rules: Rules, source: str, budget: Budget | None, relaxed: tuple[Relaxed, ...]
) -> SchemaLanguage | SchemaGrammar:
    """A grammar if anything is called. EmptyLanguageError if there is no text."""
    made: SchemaLanguage | SchemaGrammar
    if rules.bodies:
        made = SchemaGrammar({START: rules.start, **rules.bodies}, source, budget, relaxed)
    else:
        made = SchemaLanguage(rules.start, source, budget, relaxed)
    if made.is_empty():
        raise EmptyLanguageError("no JSON value satisfies the schema: its keywords contradict each other")
    return made
