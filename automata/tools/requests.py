"""Requests in OpenAI's format: tools, the tool choice, and the response format.

Chat Completions have the response format in ``response_format``, the Responses API in ``text.format``. Two kinds of
fields are rejected: those in which servers take constraints of their own, and those that OpenAI had before ``tools``.
All other fields of a request are ignored, because they do not constrain the text.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from tokenfst.automata.json_schema.json_schema import json_object, json_schema
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.structural_tags.special_tokens import Delimiters, TokenTable
from tokenfst.automata.tools.constraints import ToolConstraint
from tokenfst.automata.tools.definitions.choosing import Chosen, read_choice
from tokenfst.automata.tools.definitions.definitions import check_flag, read_tools, refuse_others
from tokenfst.automata.tools.definitions.formats import CallFormat, format_named
from tokenfst.automata.tools.definitions.places import placed
from tokenfst.automata.tools.definitions.sketches import Json
from tokenfst.automata.tools.documents import Plan, Reasoning
from tokenfst.automata.tools.tools import planned, read_reasoning, read_special
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but, shown
from tokenfst.errors import ToolError

__all__ = ["from_openai"]

_PLAIN = CallFormat("", "", "", excludes=())
"""The format of texts without calls and reasoning."""

_REFUSED = {
    "functions": "OpenAI's field before 'tools': write the functions as 'tools'",
    "function_call": "OpenAI's field before 'tools': write the choice as 'tool_choice'",
    **{
        name: f"{server}'s own field for a constraint on the text, which is not read here: {instead}"
        for name, server, instead in (
            ("structured_outputs", "vLLM", "make the constraint with json_schema, regex, choices or ebnf"),
            ("guided_json", "vLLM", "make the constraint with json_schema"),
            ("guided_regex", "vLLM", "make the constraint with regex"),
            ("guided_choice", "vLLM", "make the constraint with choices"),
            ("guided_grammar", "vLLM", "make the constraint with lark_grammar or ebnf"),
            ("regex", "SGLang", "make the constraint with regex"),
            ("ebnf", "SGLang", "make the constraint with ebnf"),
            ("json_schema", "llama.cpp", "make the constraint with json_schema"),
            ("grammar", "llama.cpp", "make the constraint with gbnf"),
        )
    },
}
"""Fields that constrain the text but are not supported, and what to write instead. To ignore them would allow any text.
"""


@checked_but("reasoning", "special_tokens")
def from_openai(
    request: Any,
    *,
    format: str | None = None,
    reasoning: Reasoning = "disabled",
    any_order: bool = False,
    vocabulary: TokenTable | None = None,
    special_tokens: Literal["token", "text", "both"] = "token",
    whitespace: str = "flexible",
    budget: Budget | None = None,
) -> ToolConstraint:
    """The texts with which a model answers a request of OpenAI's Chat Completions or Responses API.

    ``request``: a mapping, or an object with ``model_dump``. The fields ``tools``, ``tool_choice``,
    ``parallel_tool_calls``, and ``response_format`` or ``text.format`` are read. Response formats are ``text``,
    ``json_object``, and ``json_schema``; with ``strict``, objects have only members that the schema names. With both a
    response format and tools, a text either has the format or calls tools. Fields of the request that do not constrain
    the text are ignored; those in which servers take constraints of their own (``guided_json``, ``structured_outputs``,
    ``grammar``, ...) are rejected.

    ``format``: the model's call format, as for ``tools``; required if tools may be called or reasoning is not disabled.
    The other parameters are also those of ``tools``.

    Raises ToolError, SchemaError, UnsupportedSchemaError and EmptyLanguageError with JSON pointers in the request;
    BudgetExceeded.
    """
    if hasattr(request, "model_dump"):
        request = request.model_dump(exclude_none=True)
    if not isinstance(request, Mapping):
        raise ToolError("#", f"a request must be an object, not {shown(request)}")
    reasoning, special = read_reasoning(reasoning), read_special(special_tokens)
    _refuse_parts(request)
    _refuse_other_constraints(request, "#")
    parallel = request.get("parallel_tool_calls")
    check_flag(parallel, "#/parallel_tool_calls")
    listed = request.get("tools")
    if not isinstance(listed, list | tuple | None):
        raise ToolError("#/tools", f"must be a list, not {shown(listed)}")
    found = read_tools(listed or (), "#/tools", budget)
    chosen = read_choice(request.get("tool_choice"), found, "#/tool_choice")
    plan = Plan(
        _row(format, chosen, reasoning),
        found,
        chosen,
        parallel is not False,
        reasoning,
        any_order,
        _answer(request, whitespace, budget),
        whitespace,
        budget,
    )
    return planned(plan, Delimiters(vocabulary, special), whitespace, "from_openai(...)")


def _refuse_parts(request: Mapping[str, Any]) -> None:
    """Raise ToolError for a response format or a tool in place of the request that has it: none of its fields is a
    request's, so that any text would be allowed.
    """
    kind = request.get("type")
    if kind in ("text", "json_object", "json_schema"):
        raise ToolError("#", "this is a response format, and a request is due: give {'response_format': ...}")
    if kind == "function":
        raise ToolError("#", "this is a tool, and a request is due: give {'tools': [...]}")


def _refuse_other_constraints(request: Mapping[str, Any], place: str) -> None:
    """Raise ToolError for a field of ``_REFUSED``, also in ``extra_body``, which OpenAI's client merges."""
    for name, reason in _REFUSED.items():
        if request.get(name) is not None:
            raise ToolError(f"{place}/{name}", reason)
    if isinstance(extra := request.get("extra_body"), Mapping):
        _refuse_other_constraints(extra, f"{place}/extra_body")


def _row(format: str | None, chosen: Chosen, reasoning: Reasoning) -> CallFormat:
    if format is not None:
        return format_named(format)
    if chosen.mode == "none" and reasoning == "disabled":
        return _PLAIN
    what = "calls of tools" if chosen.mode != "none" else "reasoning"
    raise ToolError(
        "format", f"the request has {what}, and each model writes them differently: name the model's format"
    )


def _answer(request: Mapping[str, Any], whitespace: str, budget: Budget | None) -> Json | None:
    """The form of an answer; ``None``: any text."""
    places: list[tuple[str, Any]] = [("#/response_format", request.get("response_format"))]
    text = request.get("text")
    if text is not None:
        if not isinstance(text, Mapping):
            raise ToolError("#/text", f"must be an object, not {shown(text)}")
        places.append(("#/text/format", text.get("format")))
    given = [(pointer, value) for pointer, value in places if value is not None]
    if len(given) > 1:
        raise ToolError(given[1][0], "the form of the answer is given twice: remove one of the two")
    if not given:
        return None
    pointer, value = given[0]
    if not isinstance(value, Mapping):
        raise ToolError(pointer, f"must be an object, not {shown(value)}")
    made = _form(value, pointer, whitespace, budget)
    return None if made is None else {"type": "grammar", "grammar": made}


def _form(
    value: Mapping[str, Any], pointer: str, whitespace: str, budget: Budget | None
) -> Constraint | None:
    kind = value.get("type")
    if kind in ("text", "json_object"):
        _check_fields(value, ("type",), pointer, kind)
    if kind == "text":
        return None
    if kind == "json_object":
        found: Constraint = json_object(whitespace=whitespace)
        return found if budget is None else found.with_budget(budget)
    if kind != "json_schema":
        raise ToolError(
            f"{pointer}/type", f"must be 'text', 'json_object' or 'json_schema', not {shown(kind)}"
        )
    own = ("name", "description", "schema", "strict")
    if isinstance(value.get("json_schema"), Mapping):  # Chat Completions
        _check_fields(value, ("type", "json_schema"), pointer, kind)
        value, pointer = value["json_schema"], f"{pointer}/json_schema"
        _check_fields(value, own, pointer, kind)
    else:
        _check_fields(value, ("type", *own), pointer, kind)
    if "schema" not in value:
        raise ToolError(pointer, "the field 'schema' is missing")
    strict, place = value.get("strict"), f"{pointer}/schema"
    check_flag(strict, f"{pointer}/strict")
    if not isinstance(value["schema"], Mapping | bool):
        raise ToolError(place, f"a schema must be an object or a boolean, not {shown(value['schema'])}")
    with placed(place):
        return json_schema(
            value["schema"],
            whitespace=whitespace,
            additional_properties="forbid" if strict else "schema",
            budget=budget,
        )


def _check_fields(value: Mapping[str, Any], known: tuple[str, ...], pointer: str, kind: str) -> None:
    """Raise ToolError for a field that no response format has."""
    refuse_others({name: value[name] for name in value if name not in known}, known, pointer, kind, "a form")
