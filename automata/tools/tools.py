"""``tools``: from definitions of tools, a choice and a model's format to a constraint."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from tokenfst.automata.structural_tags.documents.reading import read_document
from tokenfst.automata.structural_tags.schemas import Schemas
from tokenfst.automata.structural_tags.special_tokens import Delimiters, TokenTable
from tokenfst.automata.tools.constraints import About, ToolConstraint, makers
from tokenfst.automata.tools.definitions.choosing import read_choice
from tokenfst.automata.tools.definitions.definitions import read_tools
from tokenfst.automata.tools.definitions.formats import format_named
from tokenfst.automata.tools.documents import Plan, Reasoning, draw
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked_but, refuse
from tokenfst.errors import EmptyLanguageError, SchemaError, ToolError

__all__ = ["tools"]


@checked_but("choice", "reasoning", "special_tokens")
def tools(
    tools: Iterable[Any],
    *,
    format: str,
    choice: Any = "auto",
    parallel: bool = True,
    reasoning: Reasoning = "disabled",
    any_order: bool = False,
    vocabulary: TokenTable | None = None,
    special_tokens: Literal["token", "text", "both"] = "token",
    whitespace: str = "flexible",
    budget: Budget | None = None,
) -> ToolConstraint:
    """Text with calls of ``tools`` in a model's own format; ``parse`` of the result recovers the calls.

    ``tools``: OpenAI's definitions (of the Chat Completions or of the Responses API, also custom tools), functions with
    annotations, pydantic models. ``format``: the model's call format (``"llama"``, ``"hermes"``, ``"qwen_3_coder"``,
    ``"harmony"``, ...; docs/constraints/tools.md lists all). ``choice``: ``"auto"``, ``"none"``, ``"required"``, the
    name of the one tool to call, or one of OpenAI's objects, including ``allowed_tools``. ``parallel``: whether several
    calls are allowed. ``reasoning``: ``"disabled"``; ``"enabled"``: the text starts inside the reasoning if the prompt
    opens it, otherwise with the beginning of the reasoning; ``"auto"``: a block of reasoning may come first.
    ``any_order``: allow arguments in any order, not only that of the schema. ``vocabulary`` and ``special_tokens`` are
    those of ``structural_tag``, ``whitespace`` is that of ``json_schema``.

    Raises ToolError for invalid tools, such as one without a name or two with the same name, with a JSON pointer into
    the list, and for an unknown choice or format; SchemaError, UnsupportedSchemaError and EmptyLanguageError for the
    schemas of arguments, with pointers into the list; BudgetExceeded.
    """
    if isinstance(tools, str | Mapping):
        refuse("tools", "tools", tools, "a list of tools")
    known = read_tools(tools, "#", budget)
    plan = Plan(
        format_named(format),
        known,
        read_choice(choice, known, "choice"),
        parallel,
        read_reasoning(reasoning),
        any_order,
        whitespace=whitespace,
        budget=budget,
    )
    return planned(
        plan,
        Delimiters(vocabulary, read_special(special_tokens)),
        whitespace,
        f"tools(..., format={format!r})",
    )


def read_reasoning(reasoning: Any) -> Reasoning:
    """The option ``reasoning``, checked. Raises ToolError."""
    if reasoning not in ("disabled", "enabled", "auto"):
        raise ToolError("reasoning", f"must be 'disabled', 'enabled' or 'auto', not {reasoning!r}")
    found: Reasoning = reasoning
    return found


def read_special(special_tokens: Any) -> Literal["token", "text", "both"]:
    """The option ``special_tokens``, checked. Raises ToolError."""
    if special_tokens not in ("token", "text", "both"):
        raise ToolError("special_tokens", f"must be 'token', 'text' or 'both', not {special_tokens!r}")
    found: Literal["token", "text", "both"] = special_tokens
    return found


def planned(plan: Plan, delimiters: Delimiters, whitespace: str, source: str) -> ToolConstraint:
    """The constraint that a plan describes. ``source``: its name in messages."""
    sketch, format = draw(plan)
    document, roles, places = sketch.finish(format)
    about = About(
        plan.row,
        plan.tools,
        document,
        read_document(document),
        roles,
        Schemas(whitespace, "forbid", plan.budget),
        source,
    )
    try:
        made = about.build(delimiters, None, makers(about))
    except SchemaError as error:
        raise type(error)(_origin(error.pointer, places), error.reason) from None
    except EmptyLanguageError as error:
        message = str(error)
        for place, origin in places.items():
            if message.startswith(f"{place}: "):
                message = origin + message.removeprefix(place)
        pointers = tuple(_origin(each, places) for each in error.pointers)
        raise EmptyLanguageError(message, pointers) from None
    assert isinstance(made, ToolConstraint)
    return made


def _origin(pointer: str, places: dict[str, str]) -> str:
    """The position at which the text was written that is at ``pointer`` of the document."""
    for place, origin in places.items():
        if pointer == place or pointer.startswith(f"{place}/"):
            return origin + pointer.removeprefix(place)
    return pointer
