"""Structural tags of tool calls in a model's own format.

They come from the table of ``tokenfst.tools`` (docs/constraints/tools.md) and from functions that
``register_model_structural_tag`` adds, which take precedence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeVar

from tokenfst.automata.tools.definitions.formats import CallFormat, format_named
from tokenfst.automata.tools.documents import K3_SIGNS
from tokenfst.automata.tools.tools import tools as tool_constraint
from tokenfst.common.plurals import counted
from tokenfst.compat.xgrammar.openai_tool_call_schema import (
    AllowedToolChoiceParam,
    AllowedToolsParam,
    BuiltinToolChoiceParam,
    BuiltinToolParam,
    FunctionToolParam,
    NamedToolChoiceParam,
    read_choice,
    read_tool,
)
from tokenfst.compat.xgrammar.structural_tag import StructuralTag
from tokenfst.errors import ToolError

_Builder = TypeVar("_Builder", bound=Callable[..., Any])
_registered: dict[str, Callable[..., Any]] = {}


def register_model_structural_tag(name: str) -> Callable[[_Builder], _Builder]:
    """A decorator: from now on ``get_model_structural_tag(name, ...)`` calls the decorated function.

    The function gets the tools that are functions, the tools of the server, the choice of ``normalize_tool_choice``,
    the reasoning mode, and the other arguments by name.
    """

    def register(builder: _Builder) -> _Builder:
        _registered[name] = builder
        return builder

    return register


def normalize_tool_choice(
    tools: list[Any] | None = None, tool_choice: Any = "auto"
) -> tuple[list[FunctionToolParam], list[BuiltinToolParam], Literal["auto", "required", "forced"]]:
    """The tools that ``tool_choice`` allows, and which calls it requires.

    Returns the functions, the built-in tools of the server, and a mode: "auto" (no call is required), "required" (at
    least one call), or "forced" (a call of the one tool that is left).

    Raises ToolError, which is a ValueError as in xgrammar, for something that is not a tool or a choice, for the
    choice of a tool that is not in the list, and if a tool must be called and none is left.
    """
    if tools is not None and not isinstance(tools, list):
        raise ToolError("tools", "must be a list")
    read = [read_tool(tool, f"tools/{place}") for place, tool in enumerate(tools or ())]
    functions = [tool for tool in read if isinstance(tool, FunctionToolParam)]
    builtin = [tool for tool in read if isinstance(tool, BuiltinToolParam)]
    choice = read_choice(tool_choice)
    if isinstance(choice, AllowedToolChoiceParam):
        functions, builtin = _allowed(functions, builtin, choice.allowed_tools)
        word: Literal["auto", "required", "forced"] = choice.allowed_tools.mode
    elif isinstance(choice, NamedToolChoiceParam):
        name = choice.function.name
        functions, builtin = [tool for tool in functions if tool.function.name == name], []
        word = "forced"
        if len(functions) != 1:
            raise ToolError(
                "tool_choice",
                f"names the function {name!r}, which must be in the list of tools once, not {len(functions)} times",
            )
    elif isinstance(choice, BuiltinToolChoiceParam):
        functions, builtin = [], [tool for tool in builtin if tool.type == choice.type]
        word = "forced"
        if len(builtin) != 1:
            raise ToolError(
                "tool_choice",
                f"names the type {choice.type!r}, which must be in the list of tools once, not {len(builtin)} times",
            )
    elif choice == "none":
        functions, builtin, word = [], [], "auto"
    else:
        word = choice
    if word == "required" and not functions and not builtin:
        raise ToolError("tool_choice", "a tool must be called, and there is none")
    return functions, builtin, word


def _allowed(
    functions: list[FunctionToolParam], builtin: list[BuiltinToolParam], allowed: AllowedToolsParam
) -> tuple[list[FunctionToolParam], list[BuiltinToolParam]]:
    names, types = set(), set()
    for place, each in enumerate(allowed.tools):
        if each.type != "function":
            types.add(each.type)
        elif each.function is None:
            raise ToolError(f"tool_choice/allowed_tools/tools/{place}", "needs the field 'function'")
        else:
            names.add(each.function.name)
    unknown = sorted(
        names - {tool.function.name for tool in functions} | types - {tool.type for tool in builtin}
    )
    if unknown:
        raise ToolError(
            "tool_choice/allowed_tools", f"names {unknown[0]!r}, which is not in the list of tools"
        )
    return (
        [tool for tool in functions if tool.function.name in names],
        [tool for tool in builtin if tool.type in types],
    )


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
) -> Any:
    """The structural tag of calls of ``tools`` in a model's format. Raises ToolError, a ValueError as in xgrammar.

    ``reasoning`` has no effect for models without reasoning. ``exclude_special_tokens=False``: free text may contain
    the model's own markers (``<think>``), as text and as special tokens. If no tool may be called, it may not contain
    the marker that begins a call.
    """
    if isinstance(reasoning, bool):
        reasoning = "enabled" if reasoning else "disabled"
    if builder := _registered.get(model):
        given = None if tools is None else list(tools)
        return builder(
            *normalize_tool_choice(given, tool_choice),
            reasoning,
            any_order=any_order,
            exclude_special_tokens=exclude_special_tokens,
            max_whitespace_cnt=max_whitespace_cnt,
            parallel_tool_calls=parallel_tool_calls,
        )
    return _of_table(
        model,
        list(tools or ()),
        "auto" if tool_choice is None else tool_choice,
        reasoning,
        any_order=any_order,
        exclude_special_tokens=exclude_special_tokens,
        max_whitespace_cnt=max_whitespace_cnt,
        parallel_tool_calls=parallel_tool_calls,
    )


def _of_table(
    model: str,
    tools: list[Any],
    tool_choice: Any,
    reasoning: str,
    *,
    any_order: bool,
    exclude_special_tokens: bool,
    max_whitespace_cnt: int | None,
    parallel_tool_calls: bool,
) -> StructuralTag:
    """The structural tag of a model in the table."""
    row = format_named(model)
    if row.thinking is None and reasoning in ("enabled", "auto"):
        reasoning = "disabled"
    plain = [each.model_dump() if hasattr(each, "model_dump") else each for each in tools]
    choice = tool_choice.model_dump() if hasattr(tool_choice, "model_dump") else tool_choice
    made = tool_constraint(
        plain,
        format=model,
        choice=choice,
        parallel=parallel_tool_calls,
        reasoning=reasoning,  # type: ignore[arg-type]  # checked there
        any_order=any_order,
        whitespace="flexible" if max_whitespace_cnt is None else rf"[ \n\t\r]{{0,{max_whitespace_cnt}}}",
    )
    document = made.structural_tag
    if not exclude_special_tokens:
        kept = set() if plain and choice != "none" else {row.begins}
        document = {**_without(document, _signs(row) - kept), "control_tokens": True}
    return StructuralTag.from_json(document)


def _signs(row: CallFormat) -> set[str]:
    """The model's own markers, which its free text does not contain."""
    return {*row.excludes, *(row.thinking.excludes if row.thinking else ()), *K3_SIGNS, row.begins}


def _without(value: Any, signs: set[str]) -> Any:
    """A document in which the exclusions of its formats no longer contain these markers."""
    if isinstance(value, list):
        return [_without(each, signs) for each in value]
    if not isinstance(value, dict):
        return value
    return {
        key: [each for each in inner if each not in signs] if key == "excludes" else _without(inner, signs)
        for key, inner in value.items()
    }


get_builtin_structural_tag = get_model_structural_tag


def _for_model(model: str) -> Callable[..., StructuralTag]:
    """The function that xgrammar registers for a model of the table. It takes the result of
    ``normalize_tool_choice``.
    """

    def build(
        tools: list[Any] | None = None,
        builtin_tools: list[Any] | None = None,
        tool_choice: str = "auto",
        reasoning: str = "enabled",
        any_order: bool = False,
        exclude_special_tokens: bool = True,
        max_whitespace_cnt: int | None = None,
        parallel_tool_calls: bool = True,
        **kwargs: Any,
    ) -> StructuralTag:
        """The structural tag of calls of ``tools`` in this model's format."""
        read = [read_tool(tool, f"tools/{place}") for place, tool in enumerate(tools or ())]
        choice: Any = tool_choice
        if tool_choice == "forced":
            if len(read) != 1 or not isinstance(read[0], FunctionToolParam):
                raise ToolError(
                    "tool_choice",
                    f"'forced' needs a list of one function, not of {counted(len(read), 'tool')}",
                )
            choice = {"type": "function", "function": {"name": read[0].function.name}}
        return _of_table(
            model,
            [*read, *(builtin_tools or ())],
            choice,
            reasoning,
            any_order=any_order,
            exclude_special_tokens=exclude_special_tokens,
            max_whitespace_cnt=max_whitespace_cnt,
            parallel_tool_calls=parallel_tool_calls,
        )

    return build


get_llama_structural_tag = _for_model("llama")
get_kimi_structural_tag = _for_model("kimi")
get_kimi_k3_structural_tag = _for_model("kimi_k3")
get_deepseek_r1_structural_tag = _for_model("deepseek_r1")
get_deepseek_v3_1_structural_tag = _for_model("deepseek_v3_1")
get_deepseek_v3_2_structural_tag = _for_model("deepseek_v3_2")
get_deepseek_v4_structural_tag = _for_model("deepseek_v4")
get_deepseek_v4_1_structural_tag = _for_model("deepseek_v4_1")
get_qwen_3_structural_tag = _for_model("qwen_3")
get_qwen_3_5_structural_tag = _for_model("qwen_3_5")
get_qwen_3_coder_structural_tag = _for_model("qwen_3_coder")
get_mimo_structural_tag = _for_model("mimo")
get_harmony_structural_tag = _for_model("harmony")
get_minimax_structural_tag = _for_model("minimax")
get_minimax_m3_structural_tag = _for_model("minimax_m3")
get_glm_4_7_structural_tag = _for_model("glm_4_7")
get_cohere_structural_tag = _for_model("cohere")
get_exaone_structural_tag = _for_model("exaone")
