"""Every example of xgrammar's page on structural tags (0.2.6), with texts of it and texts that are not.

Where xgrammar is installed, it says the same of them.
"""

from __future__ import annotations

import importlib.util
from typing import Any

import pytest

from tokenfst import Vocabulary, compile, structural_tag

Format = dict[str, Any]
OBJECT: Format = {"type": "json_schema", "json_schema": {"type": "object"}}
ANY: Format = {"type": "any_text"}


def fields(names: dict[str, str], **more: Any) -> Format:
    """Members that are all required."""
    listed = {name: {"type": kind} for name, kind in names.items()}
    return {
        "type": "json_schema",
        "json_schema": {"type": "object", "properties": listed, "required": [*names]},
        **more,
    }


def const(value: str) -> Format:
    return {"type": "const_string", "value": value}


def tag(begin: Any, content: Format, end: Any) -> Format:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def token(name: str) -> Format:
    return {"type": "token", "token": name}


CITY, ZONE = fields({"city": "string"}), fields({"timezone": "string"})
CALLS = [
    tag("<function=get_weather>", CITY, "</function>"),
    tag("<function=get_time>", ZONE, "</function>"),
]
TRIGGERED: Format = {"type": "triggered_tags", "triggers": ["<function="], "tags": CALLS}
WEATHER = '<function=get_weather>{"city": "San Francisco"}</function>'
TIME = '<function=get_time>{"timezone": "PST"}</function>'
THINK = tag("<think>", ANY, "</think>")
RULES = [["<function=func1>", fields({"a": "integer"})], ["<function=func2>", fields({"b": "integer"})]]
DISPATCH: Format = {"type": "dispatch", "rules": RULES, "loop": True, "excludes": ["</end>"]}

EXAMPLES: dict[str, tuple[Format, list[str], list[str]]] = {
    "tag": (THINK, ["<think></think>", "<think>a < b</think>"], ["<think>", "<think>a</think>b"]),
    "triggered_tags": (
        TRIGGERED,
        ["I will call a tool now. " + WEATHER, "", "none", WEATHER + " and " + TIME],
        ["<function=get_weather>{}</function>", "<function=other>", WEATHER[:-1]],
    ),
    "const_string": (const("Let's think step by step."), ["Let's think step by step."], ["", "Let's"]),
    "json_schema": (
        fields({"name": "string", "age": "integer"}),
        ['{"name": "a", "age": 1}'],
        ['{"name": "a"}', '{"age": 1, "name": "a"}', '{"name": 1, "age": 1}'],
    ),
    "json_schema, qwen_xml": (
        fields({"location": "string"}, style="qwen_xml"),
        ["<parameter=location>Paris</parameter>"],
        ["<parameter=place>Paris</parameter>", ""],
    ),
    "json_schema, any_order": (
        fields({"name": "string", "age": "integer"}, any_order=True),
        ['{"name": "a", "age": 1}', '{"age": 1, "name": "a"}'],
        ['{"name": "a", "age": "1"}', "{}"],
    ),
    "grammar": ({"type": "grammar", "grammar": 'root ::= ("yes" | "no")'}, ["yes", "no"], ["", "yesno"]),
    "regex": ({"type": "regex", "pattern": "[A-Z]{3}-[0-9]{4}"}, ["ABC-0123"], ["AB-0123", "ABC-01234"]),
    "any_text": (
        {"type": "any_text", "excludes": ["<function="]},
        ["", "anything <function"],
        ["a <function= b"],
    ),
    "any_text, limits": (
        tag("<think>", {**ANY, "excludes": ["</think>"], "max_chars": 4}, "</think>"),
        ["<think>abcd</think>", "<think>äöüß</think>", "<think></think>"],
        ["<think>abcde</think>"],
    ),
    "sequence": (
        {"type": "sequence", "elements": [const("Answer: "), OBJECT]},
        ["Answer: {}", 'Answer: {"a": [1, null]}'],
        ["{}", "Answer: ", "Answer: []"],
    ),
    "or": ({"type": "or", "elements": [const("yes"), const("no")]}, ["yes", "no"], ["", "yesno"]),
    "optional": (
        {"type": "optional", "content": const("Optional prefix: ")},
        ["", "Optional prefix: "],
        ["Optional"],
    ),
    "plus": ({"type": "plus", "content": const("item")}, ["item", "itemitem"], ["", "ite"]),
    "star": ({"type": "star", "content": const("x")}, ["", "x", "xxx"], ["y"]),
    "repeat": (
        {"type": "repeat", "min": 1, "max": 3, "content": const("item")},
        ["item", "item" * 3],
        ["", "item" * 4],
    ),
    "repeat, no upper bound": (
        {"type": "repeat", "min": 2, "max": -1, "content": const("x")},
        ["xx", "x" * 9],
        ["", "x"],
    ),
    "tag, two ends": (
        tag("<response>", OBJECT, ["</response>", "</answer>"]),
        ["<response>{}</response>", "<response>{}</answer>"],
        ["<response>{}", "<response>{}</response></answer>"],
    ),
    "tags_with_separator": (
        {"type": "tags_with_separator", "tags": [tag("<item>", OBJECT, "</item>")], "separator": ","},
        ["", "<item>{}</item>", "<item>{}</item>,<item>{}</item>"],
        [",", "<item>{}</item>,", "<item>{}</item><item>{}</item>"],
    ),
    "dispatch": (
        DISPATCH,
        ["", "text", 'x<function=func1>{"a": 1}y<function=func2>{"b": 2}'],
        ["</end>", '<function=func1>{"b": 1}', "<function=func1>"],
    ),
    "dispatch in a tag": (
        tag("<response>", {**DISPATCH, "excludes": ["</response>"]}, "</response>"),
        ['<response>a<function=func1>{"a": 1}b</response>', "<response></response>"],
        ["<response>a", '<response><function=func1>{"b": 1}</response>'],
    ),
    "one call": (
        {**TRIGGERED, "at_least_one": True, "stop_after_first": True},
        [WEATHER, TIME],
        ["", "text " + WEATHER, WEATHER + TIME, WEATHER + " "],
    ),
    "reasoning, text and calls": (
        {"type": "sequence", "elements": [THINK, TRIGGERED]},
        ["<think>hm</think>text " + WEATHER, "<think></think>"],
        [WEATHER, "<think>hm" + WEATHER[:10]],
    ),
}


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples_of_text(name: str) -> None:
    format, words, others = EXAMPLES[name]
    constraint = structural_tag({"type": "structural_tag", "format": format})
    assert [word for word in words if not constraint.accepts(word)] == []
    assert [word for word in others if constraint.accepts(word)] == []
    if importlib.util.find_spec("xgrammar") is None:
        return
    import xgrammar
    from xgrammar.testing import _is_grammar_accept_string as accepted

    theirs = xgrammar.Grammar.from_structural_tag({"type": "structural_tag", "format": format})
    assert [word for word in words if not accepted(theirs, word)] == []
    assert [word for word in others if accepted(theirs, word)] == []


CALL, DONE, THOUGHT, THOUGHTS, STOP, END = range(256, 262)
NAMES = {
    "<|tool_call_start|>": CALL,
    "<|tool_call_end|>": DONE,
    "<|think_start|>": THOUGHT,
    "<|think_end|>": THOUGHTS,
    "<|eos|>": STOP,
}
SPECIAL = Vocabulary(
    [*(bytes([byte]) for byte in range(256)), *([b""] * 6)], eos_token_id=END, special_tokens=NAMES
)
TOKEN_CALLS: Format = {
    "type": "token_triggered_tags",
    "trigger_tokens": ["<|tool_call_start|>"],
    "tags": [tag(token("<|tool_call_start|>"), OBJECT, token("<|tool_call_end|>"))],
    "exclude_tokens": ["<|eos|>"],
}
TOKENS: dict[str, tuple[Format, list[list[int]], list[list[int]]]] = {
    "token": (token("<|tool_call_start|>"), [[CALL]], [[], [DONE], [CALL, CALL]]),
    "token, a number": ({"type": "token", "token": 42}, [[42]], [[], [43]]),
    "exclude_token": (
        {"type": "exclude_token", "exclude_tokens": [42, "<|eos|>"]},
        [[41], [CALL]],
        [[], [42], [STOP], [41, 41]],
    ),
    "any_tokens": (
        {"type": "any_tokens", "exclude_tokens": ["<|eos|>"]},
        [[], [1, CALL, 2]],
        [[STOP], [1, STOP]],
    ),
    "any_tokens, a limit": ({"type": "any_tokens", "max_tokens": 2}, [[], [1], [CALL, 2]], [[1, 2, 3]]),
    "token_triggered_tags": (
        TOKEN_CALLS,
        [[], [97], [97, CALL, *b"{}", DONE, 98]],
        [[STOP], [CALL], [CALL, *b"[]", DONE]],
    ),
    "token_dispatch": (
        {
            "type": "token_dispatch",
            "rules": [["<|think_start|>", const("x")], ["<|tool_call_start|>", OBJECT]],
            "loop": True,
            "exclude_tokens": ["<|eos|>"],
        },
        [[], [97, THOUGHT, *b"x", CALL, *b"{}", 97]],
        [[THOUGHT], [THOUGHT, *b"y"], [STOP]],
    ),
    "token_dispatch, a token of text": (
        {"type": "token_dispatch", "rules": [[100, const("x")]], "exclude_tokens": ["<|eos|>"]},
        [[], [97, 100, *b"x", 97]],
        [[100], [100, *b"y"], [STOP]],
    ),
    "delimiters": (
        {
            "type": "sequence",
            "elements": [
                tag(token("<|think_start|>"), {"type": "any_tokens"}, token("<|think_end|>")),
                {**TOKEN_CALLS, "at_least_one": True},
            ],
        },
        [[THOUGHT, 97, 98, THOUGHTS, CALL, *b"{}", DONE]],
        [[CALL, *b"{}", DONE], [THOUGHT, 97, THOUGHTS], [THOUGHT, THOUGHTS, 97, CALL, *b"{}", DONE]],
    ),
}


@pytest.mark.parametrize("name", TOKENS)
def test_examples_of_tokens(name: str) -> None:
    format, words, others = TOKENS[name]
    spec = {"type": "structural_tag", "format": format}
    automaton = compile(structural_tag(spec, vocabulary=SPECIAL), SPECIAL)
    for ids in words:
        matcher = automaton.matcher()
        assert matcher.accept_tokens([*ids, END]), ids
    for ids in others:
        matcher = automaton.matcher()
        assert not matcher.accept_tokens([*ids, END]), ids
