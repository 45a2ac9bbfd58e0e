"""Structural tags of tools in a model's own format, from the table of ``tokenfst.tools`` (docs/tools.md)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tokenfst.automata.tools.door import tools as tool_constraint
from tokenfst.compat.xgrammar.exception import Unsupported
from tokenfst.compat.xgrammar.structural_tag import StructuralTag


def get_model_structural_tag(
    model: str,
    tools: Sequence[Any] | None = None,
    tool_choice: Any = "auto",
    reasoning: bool | str = "enabled",
    force_reasoning: bool = False,
    any_order: bool = False,
    exclude_special_tokens: bool = True,
    max_whitespace_cnt: int | None = None,
    parallel_tool_calls: bool = True,
) -> StructuralTag:
    """The structural tag of calls of ``tools`` as a model writes them. Raises ToolError, a ValueError as there."""
    if not exclude_special_tokens:
        raise Unsupported(
            "get_model_structural_tag: exclude_special_tokens=False, as free text never holds them here"
        )
    if isinstance(reasoning, bool):
        reasoning = "enabled" if reasoning else "disabled"
    given = [each.model_dump() if hasattr(each, "model_dump") else each for each in tools or ()]
    made = tool_constraint(
        given,
        format=model,
        choice="auto" if tool_choice is None else tool_choice,
        parallel=parallel_tool_calls,
        reasoning=reasoning,  # type: ignore[arg-type]  # checked there
        any_order=any_order,
        whitespace="flexible" if max_whitespace_cnt is None else rf"[ \n\t\r]{{0,{max_whitespace_cnt}}}",
    )
    return StructuralTag.from_json(made.structural_tag)


get_builtin_structural_tag = get_model_structural_tag
