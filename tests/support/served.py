"""What served requests ask for in the tests of engines, and what their answers must be."""

from __future__ import annotations

import json
import re
from typing import Any, Literal

import pytest

from tokenfst import Generator, ebnf, json_schema
from tokenfst.errors import ModelError

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string", "maxLength": 8}, "age": {"type": "integer", "minimum": 0}},
    "required": ["name", "age"],
    "additionalProperties": False,
}
LIST = {"type": "array", "items": {"enum": ["red", "green", 1]}, "minItems": 2, "maxItems": 4}
PATTERN = r"[0-9]{3}-[a-f]{2,6}(x|yy)"
EBNF = 'root ::= "(" root ")" | [a-c]+ | ""'
LARK = 'start: "a" start "b" | "c"'
TAG = {
    "type": "structural_tag",
    "format": {
        "type": "tag",
        "begin": "<a>",
        "content": {"type": "json_schema", "json_schema": LIST},
        "end": "</a>",
    },
}
CHOICE = ["yes", "no", "it depends"]


def check(kind: str, text: str) -> None:
    """The text is one of the kind asked for, whole."""
    if kind in ("json", "response_format"):
        assert json_schema(PERSON).accepts(text), text
        assert set(json.loads(text)) == {"name", "age"}
    elif kind == "list":
        assert 2 <= len(json.loads(text)) <= 4, text
    elif kind == "json_object":
        assert isinstance(json.loads(text), dict), text
    elif kind == "regex":
        assert re.fullmatch(PATTERN, text), text
    elif kind == "choice":
        assert text in CHOICE
    elif kind == "grammar":
        assert ebnf(EBNF).accepts(text), text
    elif kind == "lark":
        assert re.fullmatch("a*cb*", text) and text.count("a") == text.count("b"), text
    else:
        assert re.fullmatch(r"<a>.*</a>", text, re.DOTALL) and len(json.loads(text[3:-4])) >= 2, text


def stay(hotel: Literal["Sea View", "Inn"], nights: Literal[1, 2] = 1) -> str:
    """A tool."""
    return f"{hotel}: {nights}"


def with_types(endpoint: Any) -> None:
    """``Generator`` over a server: types, patterns, lists, grammars, tools, a batch, a stream, a refusal."""
    generator = Generator(endpoint)
    chat = [{"role": "user", "content": "Say something."}]
    assert set(generator(chat, PERSON, max_new_tokens=40)) == {"name", "age"}
    assert generator("Say:", Literal["yes", "it depends"], max_new_tokens=20) in ("yes", "it depends")
    assert re.fullmatch(PATTERN, generator("Say:", re.compile(PATTERN), max_new_tokens=30))
    assert ebnf(EBNF).accepts(generator("Say:", ebnf(EBNF), max_new_tokens=20))
    assert generator.tools(chat, [stay], max_new_tokens=60).call() in {
        f"{hotel}: {nights}" for hotel in ("Sea View", "Inn") for nights in (1, 2)
    }
    listed = generator.batch(["Say:"] * 20, LIST, max_new_tokens=40)
    assert all(2 <= len(each) <= 4 for each in listed)
    stream = generator.stream(chat, PERSON, max_new_tokens=40)
    assert json.loads("".join(stream)) == stream.result()
    with pytest.raises(ModelError, match="least number"):
        generator("Say:", re.compile("[0-9]{90}"), max_new_tokens=10)
