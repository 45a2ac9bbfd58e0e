"""How models write calls: a table with one row for each format.

If xgrammar 0.2.8 has a format of the same name, the texts are those of ``xgrammar.get_model_structural_tag``, except
for the differences in docs/constraints/tools.md. Mistral's format and that of Python lists follow the models' own
templates.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass
from typing import Literal

from tokenfst.errors import ToolError

_THINK = ("<think>", "</think>")


@dataclass(frozen=True, slots=True)
class Thinking:
    """How a model writes reasoning before an answer: ``begin``, the reasoning, ``end``, then ``after``.

    ``excludes``: texts that the reasoning must not contain. ``loose``: it may contain them if reasoning is required.
    ``opened``: if reasoning is required, the prompt ends with ``begin``. ``skipped``: the beginning of a text without
    reasoning. ``bare_end``: ``end`` alone may replace the reasoning.
    """

    begin: str = "<think>"
    end: str = "</think>"
    after: str = ""
    excludes: tuple[str, ...] = _THINK
    loose: bool = False
    opened: bool = True
    skipped: str = ""
    bare_end: bool = False


@dataclass(frozen=True, slots=True)
class CallFormat:
    """One row of the table. A call is ``begin``, arguments, ``end``, where ``{name}`` stands for the tool's name.

    ``style``: how arguments are written: ``"json"``, a style of ``json_schema`` in structural tags, or ``"python"``.
    ``number``: the pattern of a call's number, which follows ``begin``, and the text between the number and the
    arguments. ``block``: the texts before and after all calls; ``separator``: the text between two calls. ``trigger``:
    the beginning of calls in free text, if that is not the block's beginning. ``lead``: the text before a block that is
    required; ``open``: such a block is followed by free text. ``excludes``: texts that free text must not contain.
    ``thinking``: how reasoning is written; ``None``: the format has none. ``layout``: ``"free"`` for calls in free
    text, or a layout with its own functions in ``documents``. ``newlines``: a line break around a bare string is not a
    part of the string. ``bare``: the input of a custom tool stands in place of the arguments, as it is. ``tail``: a
    pattern of what may follow the arguments. ``stops``: ends that may be missing at the end of a text, because they are
    end tokens.
    """

    name: str
    begin: str
    end: str
    style: str = "json"
    number: tuple[str, str] | None = None
    block: tuple[str, str] | None = None
    separator: str = ""
    trigger: str = ""
    lead: str = ""
    open: bool = False
    excludes: tuple[str, ...] = _THINK
    thinking: Thinking | None = None
    layout: Literal["free", "messages", "response", "list"] = "free"
    newlines: bool = False
    bare: bool = False
    tail: str = ""
    stops: tuple[str, ...] = ()

    @property
    def begins(self) -> str:
        """The text with which calls begin in free text, up to the tool's name."""
        return self.trigger or (self.block[0] if self.block else self.begin.partition("{name}")[0])


def _deepseek(name: str, calls: str, gap: str, style: str) -> CallFormat:
    return CallFormat(
        name,
        f'<｜DSML｜{gap}invoke name="{{name}}">\n',
        f"</｜DSML｜{gap}invoke>\n",
        style,
        block=(f"<｜DSML｜{calls}>\n", f"</｜DSML｜{calls}>"),
        trigger=f"<｜DSML｜{calls}>",
        lead="\n\n",
        thinking=Thinking(),
    )


def _qwen_coder(name: str) -> CallFormat:
    return CallFormat(
        name,
        "<tool_call>\n<function={name}>\n",
        "\n</function>\n</tool_call>",
        "qwen_xml",
        trigger="<tool_call>\n<function=",
        thinking=Thinking(after="\n\n"),
        newlines=True,
    )


_MIMO = (*_THINK, "</tool_call>", "<function=")
_GLM = (*_THINK, "</tool_call>", "<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>")
_M3 = "]<]minimax[>["
_MM = ("<mm:think>", "</mm:think>", f"{_M3}</tool_call>", f"{_M3}<invoke", f"{_M3}</invoke>")
_COHERE = ("<|START_THINKING|>", "<|END_THINKING|>")
_MISTRAL = ("[THINK]", "[/THINK]")
_MISTRAL_THINKING = Thinking(*_MISTRAL, excludes=_MISTRAL, opened=False)
_K3 = ("<|open|>", "<|close|>")
_ROWS = (
    CallFormat("json", '{"name": "{name}", "arguments": ', "}", trigger='{"name": '),
    CallFormat("llama", '{"name": "{name}", "parameters": ', "}", trigger='{"name": '),
    CallFormat(
        "qwen_3",
        '<tool_call>\n{"name": "{name}", "arguments": ',
        "}\n</tool_call>",
        trigger="<tool_call>",
        thinking=Thinking(after="\n\n"),
    ),
    CallFormat(
        "exaone",
        '<tool_call>{"name": "{name}", "arguments": ',
        "}</tool_call>",
        trigger="<tool_call>",
        thinking=Thinking(after="\n\n", loose=True),
    ),
    _qwen_coder("qwen_3_coder"),
    _qwen_coder("qwen_3_5"),
    CallFormat(
        "mimo",
        "<tool_call><function={name}>",
        "</function></tool_call>",
        "qwen_xml",
        trigger="<tool_call>",
        excludes=_MIMO,
        thinking=Thinking(excludes=("<tool_call>", *_MIMO), opened=False),
    ),
    CallFormat(
        "deepseek_r1",
        "<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n```json\n",
        "\n```<｜tool▁call▁end｜>",
        block=("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        separator="\n",
        thinking=Thinking(),
        bare=True,
    ),
    CallFormat(
        "deepseek_v3_1",
        "<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>",
        block=("<｜tool▁calls▁begin｜>", "<｜tool▁calls▁end｜>"),
        thinking=Thinking(),
        bare=True,
    ),
    _deepseek("deepseek_v3_2", "function_calls", "", "deepseek_xml"),
    _deepseek("deepseek_v4", "tool_calls", "", "deepseek_xml"),
    _deepseek("deepseek_v4_1", " calls", " ", "deepseek_v4_1_xml"),
    CallFormat(
        "kimi",
        "<|tool_call_begin|>functions.{name}:",
        "<|tool_call_end|>",
        number=(r"\d+", "<|tool_call_argument_begin|>"),
        block=("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
        excludes=(*_THINK, "<|tool_call_begin|>"),
        thinking=Thinking(loose=True),
        bare=True,
    ),
    CallFormat(
        "kimi_k3",
        '<|open|>call tool="{name}" index="',
        "<|close|>call<|sep|>",
        "kimi_k3_xml",
        number=(r"\d+", '"<|sep|>'),
        block=("<|open|>tools<|sep|>", "<|close|>tools<|sep|>"),
        excludes=_K3,
        thinking=Thinking("<|open|>think<|sep|>", "<|close|>think<|sep|>", excludes=_K3),
        layout="response",
    ),
    CallFormat(
        "glm_4_7",
        "<tool_call>{name}",
        "</tool_call>",
        "glm_xml",
        trigger="<tool_call>",
        excludes=_GLM,
        thinking=Thinking(excludes=(*_THINK, "<tool_call>", *_GLM[2:])),
    ),
    CallFormat(
        "minimax",
        '<invoke name="{name}">\n',
        "</invoke>\n",
        "minimax_xml",
        block=("<minimax:tool_call>\n", "</minimax:tool_call>"),
        trigger="<minimax:tool_call>",
        lead="\n",
        thinking=Thinking(after="\n\n", loose=True, skipped="\n</think>\n\n\n\n"),
    ),
    CallFormat(
        "minimax_m3",
        f'{_M3}<invoke name="{{name}}">',
        f"{_M3}</invoke>\n",
        "minimax_m3_xml",
        block=(f"{_M3}<tool_call>\n", f"{_M3}</tool_call>"),
        trigger=f"{_M3}<tool_call>",
        open=True,
        excludes=_MM,
        thinking=Thinking("<mm:think>", "</mm:think>", excludes=(f"{_M3}<tool_call>", *_MM), bare_end=True),
    ),
    CallFormat(
        "cohere",
        '<cofl:tool_call id="',
        "</cofl:tool_call>",
        "cohere_xml",
        number=(r"\d+", '" name="{name}">'),
        block=("<cofl:tool_calls>", "</cofl:tool_calls>"),
        excludes=_COHERE,
        thinking=Thinking(*_COHERE, excludes=_COHERE, loose=True),
    ),
    CallFormat(
        "harmony",
        "<|channel|>commentary to=functions.{name}<|constrain|>json<|message|>",
        "<|call|>",
        excludes=(),
        thinking=Thinking("<|channel|>analysis<|message|>", "<|end|>", excludes=()),
        layout="messages",
        bare=True,
        stops=("<|call|>", "<|return|>", "<|end|>"),
    ),
    CallFormat(
        "mistral",
        "[TOOL_CALLS]{name}[ARGS]",
        "",
        trigger="[TOOL_CALLS]",
        excludes=_MISTRAL,
        thinking=_MISTRAL_THINKING,
    ),
    CallFormat(
        "mistral_v11",
        "[TOOL_CALLS]{name}[CALL_ID]",
        "",
        number=("[a-zA-Z0-9]{9}", "[ARGS]"),
        trigger="[TOOL_CALLS]",
        excludes=_MISTRAL,
        thinking=_MISTRAL_THINKING,
    ),
    CallFormat(
        "mistral_v3",
        '{"name": "{name}", "arguments": ',
        "}",
        block=("[TOOL_CALLS][", "]"),
        separator=", ",
        trigger="[TOOL_CALLS]",
        excludes=(),
        tail=', "id": "[a-zA-Z0-9]{9}"',
    ),
    CallFormat(
        "python", "{name}(", ")", "python", excludes=(), block=("[", "]"), separator=", ", layout="list"
    ),
)
FORMATS = {row.name: row for row in _ROWS}
_OTHER_NAMES = {"hermes": "qwen_3", "pythonic": "python", "mistral_v13": "mistral"}


def format_named(name: str) -> CallFormat:
    """The row of the format ``name``. Raises ToolError, which suggests similar names or lists all."""
    found = FORMATS.get(_OTHER_NAMES.get(name, name))
    if found is None:
        known = [*FORMATS, *_OTHER_NAMES]
        near = difflib.get_close_matches(name, known, 3)
        hint = f"did you mean {' or '.join(map(repr, near))}?" if near else f"there are {', '.join(known)}"
        raise ToolError("format", f"unknown format {name!r}: {hint}")
    return found
