"""Texts with calls of tools as models write them, from values: each format by itself, after the models' own templates.

Nothing here knows the table of ``automata/tools``: that is what it is compared with.
"""

from __future__ import annotations

import json
from typing import Any

from reference.tools.xml_parameters import Obj, written

Calls = list[tuple[str, dict[str, Any]]]

STYLES = {
    "qwen_3_coder": "qwen_xml",
    "qwen_3_5": "qwen_xml",
    "mimo": "qwen_xml",
    "deepseek_v3_2": "deepseek_xml",
    "deepseek_v4": "deepseek_xml",
    "deepseek_v4_1": "deepseek_v4_1_xml",
    "kimi_k3": "kimi_k3_xml",
    "glm_4_7": "glm_xml",
    "minimax": "minimax_xml",
    "minimax_m3": "minimax_m3_xml",
    "cohere": "cohere_xml",
}
"""Of formats whose arguments are not JSON."""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def _objects(value: Any) -> Any:
    """A value with ``Obj`` for dicts."""
    if isinstance(value, dict):
        return Obj([(name, _objects(each)) for name, each in value.items()])
    return [_objects(each) for each in value] if isinstance(value, list) else value


def _parameters(format: str, arguments: dict[str, Any]) -> str:
    pairs = _objects(arguments).pairs
    if format in ("qwen_3_coder", "qwen_3_5"):
        lines = [
            f"<parameter={name}>\n{value if isinstance(value, str) else _json(arguments[name])}\n</parameter>"
            for name, value in pairs
        ]
        return "\n".join(lines)
    return written(STYLES[format], pairs)


def _call(format: str, number: int, name: str, arguments: dict[str, Any]) -> str:
    inner = _parameters(format, arguments) if format in STYLES else _json(arguments)
    match format:
        case "json":
            return f'{{"name": "{name}", "arguments": {inner}}}'
        case "llama":
            return f'{{"name": "{name}", "parameters": {inner}}}'
        case "qwen_3":
            return f'<tool_call>\n{{"name": "{name}", "arguments": {inner}}}\n</tool_call>'
        case "exaone":
            return f'<tool_call>{{"name": "{name}", "arguments": {inner}}}</tool_call>'
        case "qwen_3_coder" | "qwen_3_5":
            return f"<tool_call>\n<function={name}>\n{inner}\n</function>\n</tool_call>"
        case "mimo":
            return f"<tool_call><function={name}>{inner}</function></tool_call>"
        case "deepseek_r1":
            json_block = f"```json\n{inner}\n```"
            return f"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{name}\n{json_block}<｜tool▁call▁end｜>"
        case "deepseek_v3_1":
            return f"<｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{inner}<｜tool▁call▁end｜>"
        case "deepseek_v3_2" | "deepseek_v4":
            return f'<｜DSML｜invoke name="{name}">\n{inner}</｜DSML｜invoke>\n'
        case "deepseek_v4_1":
            return f'<｜DSML｜ invoke name="{name}">\n{inner}</｜DSML｜ invoke>\n'
        case "kimi":
            marks = "<|tool_call_begin|>", "<|tool_call_argument_begin|>", "<|tool_call_end|>"
            return f"{marks[0]}functions.{name}:{number}{marks[1]}{inner}{marks[2]}"
        case "kimi_k3":
            return f'<|open|>call tool="{name}" index="{number}"<|sep|>{inner}<|close|>call<|sep|>'
        case "glm_4_7":
            return f"<tool_call>{name}{inner}</tool_call>"
        case "minimax":
            return f'<invoke name="{name}">\n{inner}</invoke>\n'
        case "minimax_m3":
            mark = "]<]minimax[>["
            return f'{mark}<invoke name="{name}">{inner}{mark}</invoke>\n'
        case "cohere":
            return f'<cofl:tool_call id="{number}" name="{name}">{inner}</cofl:tool_call>'
        case "harmony":
            lead = f"<|channel|>commentary to=functions.{name}"
            return f"{lead}<|constrain|>json<|message|>{inner}<|call|>"
        case "mistral":
            return f"[TOOL_CALLS]{name}[ARGS]{inner}"
        case "mistral_v11":
            return f"[TOOL_CALLS]{name}[CALL_ID]{number:09d}[ARGS]{inner}"
        case "mistral_v3":
            return f'{{"name": "{name}", "arguments": {inner}, "id": "{number:09d}"}}'
        case "python":
            return f"{name}({', '.join(f'{key}={value!r}' for key, value in arguments.items())})"
    raise AssertionError(format)


_BLOCKS = {
    "deepseek_r1": ("<｜tool▁calls▁begin｜>", "\n", "<｜tool▁calls▁end｜>"),
    "deepseek_v3_1": ("<｜tool▁calls▁begin｜>", "", "<｜tool▁calls▁end｜>"),
    "deepseek_v3_2": ("<｜DSML｜function_calls>\n", "", "</｜DSML｜function_calls>"),
    "deepseek_v4": ("<｜DSML｜tool_calls>\n", "", "</｜DSML｜tool_calls>"),
    "deepseek_v4_1": ("<｜DSML｜ calls>\n", "", "</｜DSML｜ calls>"),
    "kimi": ("<|tool_calls_section_begin|>", "", "<|tool_calls_section_end|>"),
    "minimax": ("<minimax:tool_call>\n", "", "</minimax:tool_call>"),
    "minimax_m3": ("]<]minimax[>[<tool_call>\n", "", "]<]minimax[>[</tool_call>"),
    "cohere": ("<cofl:tool_calls>", "", "</cofl:tool_calls>"),
    "mistral_v3": ("[TOOL_CALLS][", ", ", "]"),
    "python": ("[", ", ", "]"),
}
_FRONT = {"minimax": "\n</think>\n\n\n\n"}
"""What stands in front of a text without reasoning."""


def text_of(format: str, content: str, calls: Calls) -> str:
    """A text that says something and then calls tools."""
    parts = [_call(format, number, name, arguments) for number, (name, arguments) in enumerate(calls)]
    if format == "harmony":
        said = [f"<|channel|>final<|message|>{content}<|end|>"] if content else []
        return "<|start|>assistant".join([*said, *parts])
    if format == "kimi_k3":
        block = f"<|open|>tools<|sep|>{''.join(parts)}<|close|>tools<|sep|>" if parts else ""
        return f"{content}<|close|>response<|sep|>{block}<|close|>message<|sep|>"
    front = _FRONT.get(format, "")
    if format in _BLOCKS and parts:
        begin, between, end = _BLOCKS[format]
        return front + content + begin + between.join(parts) + end
    return front + content + "".join(parts)
