"""The input of a custom tool whose grammar needs a stack, in formats that write it as a string.

A string is a code of characters. If all rules read whole characters, a call of a rule ends between characters; so each
rule is spelled by itself (``images.spellings``), and the result is again a grammar. An input without quotation marks is
bare text up to the tag's end.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from tokenfst.automata.expressions.expression import Expr, Op, concat, literal
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.images.coding import Code
from tokenfst.automata.images.spellings import images_of_rules
from tokenfst.automata.json_schema.writing.layout import layout
from tokenfst.automata.json_values.strings import json_code
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.automata.python_text.literals import string_code
from tokenfst.automata.structural_tags.documents.xml_styles import Style
from tokenfst.automata.tools.definitions.definitions import Tool
from tokenfst.automata.tools.definitions.sketches import Json, Sketch, constant, either, sequence
from tokenfst.errors import ConstraintError, ToolError

_NO_TEXT = {
    Op.ONE_TOKEN: "tokens",
    Op.TOKENS: "tokens",
    Op.FEW_TOKENS: "tokens",
    Op.SELECTION: "a choice of lazy terminals",
    Op.OPENED: "items that must differ",
    Op.FRESH: "items that must differ",
}
"""Operators of expressions that cannot be written in a string, and what they stand for in messages."""


def json_input(sketch: Sketch, number: int, tool: Tool, whitespace: str) -> Json:
    """The format of a JSON object whose member ``input`` is the text of the tool, as a JSON string."""
    written = layout(whitespace)
    lead = concat(literal(b"{"), written.opened, literal(b'"input"'), written.colon, literal(b'"'))
    text = sketch.tag("", _grammar(_spelled(tool, json_code)), '"', "arguments", number, "json string")
    return sequence(_regular(lead), text, _regular(concat(written.closing, literal(b"}"))))


def python_input(sketch: Sketch, number: int, tool: Tool) -> Json:
    """The format of the keyword argument ``input``, a string literal in either quotation mark."""
    ways = []
    for quote in "'\"":
        spelled = _grammar(_spelled(tool, partial(string_code, quote)))
        ways.append(sketch.tag(f"input={quote}", spelled, quote, "arguments", number, "python string"))
    return either(*ways)


def element_input(
    sketch: Sketch,
    number: int,
    tool: Tool,
    style: Style,
    excludes: list[str],
    whitespace: str,
    *,
    newlines: bool,
) -> Json:
    """The format of the parameter ``input`` in a model's style, as bare text.

    ``newlines``: the text stands on lines of its own. ``excludes``: texts that it must not contain.
    """
    gap = _regular(layout(whitespace).opened)
    first, *rest = [style.before + "input" + style.after["string"][0], *style.after["string"][1:]]
    line = "\n" if newlines else ""
    before: list[Json] = [gap]
    for part in rest:
        before += [constant(first), gap]
        first = part
    end = line + style.stop + style.close.format("input")
    text = without(tool, [end, *excludes])
    return sequence(*before, sketch.tag(first + line, _grammar(text), end, "arguments", number, "text"), gap)


def without(tool: Tool, parts: list[str]) -> Constraint:
    """A custom tool's input texts that contain none of ``parts``. Raises ToolError if these cannot be excluded."""
    assert tool.input is not None, "a custom tool has an input"
    texts = tool.input
    for part in parts:
        held = Language.any_bytes() + Language.literal(part) + Language.any_bytes()
        try:
            texts = texts & (Language.any_text() - held)
        except ConstraintError as error:
            raise ToolError(
                tool.pointer, f"the input cannot be restricted to texts without the end marker: {error}"
            ) from error
    return texts


def check_texts(tool: Tool) -> None:
    """Raise ToolError if the input of a custom tool has parts that cannot be written in a string."""
    texts = tool.input
    bodies = texts.rules.values() if isinstance(texts, Grammar) else ()
    for body in bodies:
        for node in body.walk():
            if node.op in _NO_TEXT:
                raise ToolError(
                    tool.pointer, f"the grammar has {_NO_TEXT[node.op]}, which cannot be written in a string"
                )


def _spelled(tool: Tool, code: Callable[[], Code]) -> Constraint:
    """The texts as the content of a string."""
    grammar = tool.input
    assert isinstance(grammar, Grammar), "what needs no stack is a pattern of a schema"
    try:
        made = images_of_rules(grammar.rules, code(), grammar.budget)
    except ConstraintError as error:
        raise ToolError(tool.pointer, f"the grammar cannot be written in a string: {error}") from error
    return Grammar(made, grammar.start, source=grammar.source, budget=grammar.budget)


def _regular(expr: Expr) -> Json:
    return _grammar(Language(expr, "the sentinels of an object"))


def _grammar(texts: Constraint) -> Json:
    return {"type": "grammar", "grammar": texts}
