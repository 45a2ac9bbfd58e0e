"""Custom tools whose grammars need a stack: in every format, written as the model writes strings, and read back."""

from __future__ import annotations

import random
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenfst
from reference.tools.tool_texts import text_of
from tokenfst import ParseError, ToolError
from tokenfst.automata.tools.constraints import ToolConstraint
from tokenfst.automata.tools.definitions.formats import FORMATS

NESTED = r"""start: "(" start ")" | start "," start | /[a-z "'é🙂\n\\<]+/"""
each_format = pytest.mark.parametrize("format", list(FORMATS))
texts = st.recursive(
    st.text("ab \"'é🙂\n\\<", min_size=1, max_size=6),
    lambda inner: inner.map(lambda text: f"({text})") | st.tuples(inner, inner).map(",".join),
    max_leaves=4,
)


def custom(definition: str, syntax: str = "lark") -> dict[str, Any]:
    form = {"type": "grammar", "syntax": syntax, "definition": definition}
    return {"type": "custom", "name": "run", "format": form}


@lru_cache(maxsize=32)
def constraint(format: str) -> ToolConstraint:
    other = {"type": "function", "name": "f", "parameters": {"type": "object", "properties": {}}}
    return tokenfst.tools([custom(NESTED), other], format=format)


def written(format: str, text: str) -> str:
    """A call as the model writes it; formats with a place for any text have it there as it is."""
    if not FORMATS[format].bare:
        return text_of(format, "", [("run", {"input": text})])
    lead, end = text_of(format, "", [("run", {})]).split("{}")
    return lead.replace("<|constrain|>json", "") + text + end


@each_format
@settings(max_examples=20, deadline=None)
@given(text=texts)
def test_what_was_written_is_read(format: str, text: str) -> None:
    made, whole = constraint(format), written(format, text)
    assert made.accepts(whole)
    (call,) = made.parse(whole).calls
    assert call.name == "run" and call.arguments == {"input": text}
    stream = made.stream()
    found = [event for byte in whole.encode() for event in stream.feed(bytes([byte]))] + stream.close()
    assert "".join(event.value for event in found if event.kind == "piece") == text
    assert [event.value for event in found if event.kind == "end"] == [text, None]
    assert found[-1].kind == "tool call ended" and found[-1].value == call


@each_format
def test_what_the_grammar_does_not_have_is_refused(format: str) -> None:
    for text in ("(a", "a)", "", "A"):
        with pytest.raises(ParseError):
            constraint(format).parse(written(format, text))


@each_format
def test_random_words_are_read(format: str) -> None:
    made = tokenfst.tools([custom(NESTED)], format=format, choice="run")
    for seed in range(6):
        (call,) = made.parse(made.sample(random.Random(seed))).calls
        assert tokenfst.lark_grammar(NESTED).accepts(call.arguments["input"])


def test_what_no_string_holds_is_refused_by_name() -> None:
    marked = 'start: "(" start ")" | <|x|>'
    with pytest.raises(ToolError, match="tokens, which cannot be written in a string") as caught:
        tokenfst.tools([custom(marked)], format="hermes")
    assert caught.value.pointer == "#/0/format"
    differ = (
        'start: "(" start ")" | %json {"type": "array", "items": {"type": "integer"}, "uniqueItems": true}'
    )
    with pytest.raises(ToolError, match="items that must differ"):
        tokenfst.tools([custom(differ)], format="qwen_3")
    for definition in (differ, "start: few\nfew[max_tokens=3]: /[a-z]+/"):
        with pytest.raises(ToolError, match="cannot be restricted to texts without the end marker") as caught:
            tokenfst.tools([custom(definition)], format="harmony")
        assert caught.value.pointer == "#/0/format"


def test_a_request_with_a_recursive_grammar() -> None:
    """Both forms of OpenAI's, in a format that has strings."""
    form = {"syntax": "lark", "definition": NESTED}
    chat = {"type": "custom", "custom": {"name": "run", "format": {"type": "grammar", "grammar": form}}}
    for tool in (chat, custom(NESTED)):
        made = tokenfst.from_openai({"tools": [tool], "tool_choice": "required"}, format="hermes")
        text = '<tool_call>\n{"name": "run", "arguments": {"input": "(\\"a\\")"}}\n</tool_call>'
        assert made.parse(text).calls[0].arguments == {"input": '("a")'}
    made = tokenfst.from_openai({"tools": [custom("[0-9]+", "regex")]}, format="hermes")
    assert made.accepts('<tool_call>\n{"name": "run", "arguments": {"input": "12"}}\n</tool_call>')


def test_a_pattern_is_read_within_the_budget() -> None:
    tool = custom("a{1,20000000}", "regex")
    with pytest.raises(tokenfst.BudgetExceeded, match="10,000,000 positions"):
        tokenfst.tools([tool], format="hermes")
    tokenfst.tools([tool], format="hermes", budget=tokenfst.Budget(positions=10**9))
