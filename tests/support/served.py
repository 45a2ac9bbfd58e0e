"""What served requests ask for in the tests of engines, and what their answers must be."""

from __future__ import annotations

import json
import re

from tokenfst import ebnf, json_schema

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
