"""Small formats, all texts of a few pieces: what is read is the one reading that the definition has."""

from __future__ import annotations

import json
from itertools import product
from typing import Any

import pytest

from reference.tools.tool_readings import Reading, block_readings, readings
from tokenfst import ParseError
from tokenfst.automata.structural_tags.special_tokens import Delimiters
from tokenfst.automata.tools.definitions.choosing import Chosen
from tokenfst.automata.tools.definitions.definitions import read_tools
from tokenfst.automata.tools.definitions.formats import CallFormat
from tokenfst.automata.tools.documents import Plan
from tokenfst.automata.tools.tools import planned

SCHEMA = {"type": "object", "properties": {"a": {"enum": [1, ">"]}}}
ARGUMENTS = ("{}", '{"a":1}', '{"a":">"}', '{"a": 1}', '{"a": ">"}')
PIECES = ("<", "f", "g", "{}", '{"a":">"}', ">", "x", "<f{}>", "[", "]")


def made(row: CallFormat) -> Any:
    definitions = [{"type": "function", "name": name, "parameters": SCHEMA} for name in ("f", "fg")]
    known = read_tools(definitions, "#", None)
    plan = Plan(row, known, Chosen("auto", (0, 1)), True, "disabled")
    return planned(plan, Delimiters(None, "text"), "flexible", "small")


def is_arguments(text: str) -> bool:
    return text in ARGUMENTS


def read(constraint: Any, text: str) -> set[Reading]:
    try:
        reply = constraint.parse(text)
    except ParseError:
        return set()
    calls = []
    for call in reply.calls:
        inner = call.raw[1 + len(call.name) : -1]
        assert json.loads(inner) == call.arguments
        calls.append((call.name, inner))
    return {(reply.content, tuple(calls))}


@pytest.mark.parametrize("length", [1, 2, 3, 4])
def test_calls_in_free_text(length: int) -> None:
    row = CallFormat("small", "<{name}", ">", trigger="<", excludes=())
    constraint, taken = made(row), 0
    for pieces in product(PIECES, repeat=length):
        text = "".join(pieces)
        expected = readings(text, "<", {"f": "<f", "fg": "<fg"}, ">", is_arguments)
        assert len(expected) <= 1 and constraint.accepts(text) == bool(expected)
        assert read(constraint, text) == expected
        taken += bool(expected and next(iter(expected))[1])
    assert taken > 0


@pytest.mark.parametrize("separator", ["", "x"])
@pytest.mark.parametrize("length", [3, 4])
def test_calls_in_blocks(length: int, separator: str) -> None:
    row = CallFormat("small", "<{name}", ">", block=("[", "]"), separator=separator, excludes=())
    constraint, taken = made(row), 0
    for pieces in product(PIECES, repeat=length):
        text = "".join(pieces)
        expected = block_readings(text, ("[", "]"), separator, {"f": "<f", "fg": "<fg"}, ">", is_arguments)
        assert len(expected) <= 1 and constraint.accepts(text) == bool(expected)
        assert read(constraint, text) == expected
        taken += bool(expected and next(iter(expected))[1])
    assert taken > 0
