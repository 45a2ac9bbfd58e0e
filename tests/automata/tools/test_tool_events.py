"""Events of texts with calls: those of the whole text, however it is cut, told when they are decided and not before."""

from __future__ import annotations

import contextlib
import random
from functools import lru_cache
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenfst
from reference.json.json_events import events as events_of
from reference.tools.tool_texts import Calls, text_of
from tokenfst import ParseError
from tokenfst.automata.events.event import Event
from tokenfst.automata.structural_tags.special_tokens import Delimiters
from tokenfst.automata.tools.constraints import ToolConstraint
from tokenfst.automata.tools.definitions.choosing import Chosen
from tokenfst.automata.tools.definitions.definitions import read_tools
from tokenfst.automata.tools.definitions.formats import FORMATS, CallFormat
from tokenfst.automata.tools.documents import Plan
from tokenfst.automata.tools.tools import planned

_INNER = {"type": "object", "properties": {"x": {"type": "string"}, "on": {"type": "boolean"}}}
_PARAMETERS = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "either": {"type": ["string", "null"]},
        "kind": {"enum": ["a", "b c"]},
        "tags": {"type": "array", "items": {"type": "string"}},
        "inner": _INNER,
        "list": {"type": "array", "items": _INNER},
    },
}
DEFINITIONS = [
    {"type": "function", "name": "do", "parameters": _PARAMETERS},
    {"type": "function", "name": "do_it", "parameters": {"type": "object", "properties": {}}},
    {"type": "function", "name": "other", "parameters": _PARAMETERS},
]
REPLIES: list[tuple[str, Calls]] = [
    ("", []),
    ("so: é", []),
    ("", [("do_it", {})]),
    ("a < b", [("do", {"text": "é\n<b", "count": 12, "either": None, "kind": "b c"}), ("do_it", {})]),
    (
        "x",
        [
            (
                "other",
                {"text": "", "tags": ["y", ""], "inner": {"x": "z"}, "list": [{"x": "1"}, {"on": True}]},
            ),
            ("do", {"either": "w", "tags": []}),
        ],
    ),
]
Told = list[tuple[str, tuple[Any, ...], Any]]
each_format = pytest.mark.parametrize("format", list(FORMATS))


@lru_cache(maxsize=32)
def constraint(format: str) -> ToolConstraint:
    return tokenfst.tools(DEFINITIONS, format=format)


def joined(found: list[Event]) -> Told:
    """Pieces that stand together joined, and none of numbers, whose value has no digits."""
    told: Told = []
    number = None
    for kind, path, value in found:
        if kind == "start":
            number = path if value == "number" else None
        if kind == "piece" and path == number:
            continue
        if kind in ("piece", "content", "reasoning"):
            assert value, "no piece is empty"
            if told and told[-1][:2] == (kind, path):
                told[-1] = kind, path, told[-1][2] + value
                continue
        told.append((kind, path, value))
    return told


def expected(made: ToolConstraint, text: str) -> Told:
    """The events of a whole text, from what ``parse`` makes of it; content comes first in these texts."""
    reply = made.parse(text)
    told: Told = [("content", (), reply.content)] if reply.content else []
    for number, call in enumerate(reply.calls):
        told.append(("tool call begun", (number,), call.name))
        told += events_of(call.arguments, (number,))
        told.append(("tool call ended", (number,), call))
    return told


def told(made: ToolConstraint, parts: list[bytes]) -> Told:
    stream = made.stream()
    found = [event for part in parts for event in stream.feed(part)] + stream.close()
    assert stream.reply == made.parse(b"".join(parts))
    return joined(found)


@each_format
def test_the_events_are_those_of_the_text_however_it_is_cut(format: str) -> None:
    made, rng = constraint(format), random.Random(format)
    for content, calls in REPLIES:
        text = text_of(format, content, calls)
        data, events = text.encode(), expected(made, text)
        assert told(made, [data]) == events
        assert told(made, [data[place : place + 1] for place in range(len(data))]) == events
        for _ in range(3):
            cuts = sorted(rng.choices(range(len(data) + 1), k=rng.randrange(12)))
            parts = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
            assert told(made, parts) == events


_HARD = [
    '{"a": "}\\"]</"}',
    "<",
    "</tool",
    "[TOOL_CALLS",
    "<|call",
    "é😀",
    "a\nb",
    "```",
    "'\"\\\\",
    "null",
    "\x7f\u2028",
]
"""Pieces of strings that look like something else: JSON in a string, beginnings of delimiters, both quotation marks."""


@each_format
def test_every_cut_of_strings_that_look_like_marks(format: str) -> None:
    made, rng = constraint(format), random.Random(format)
    cuts = 0
    for _ in range(12):
        strings = ["".join(rng.choices(_HARD, k=rng.randrange(4))) for _ in range(3)]
        calls: Calls = [("do", {"text": strings[0], "tags": strings[1:]}), ("do_it", {})][
            : rng.randrange(1, 3)
        ]
        text = text_of(format, rng.choice(["", "so: ", "a < b"]), calls)
        if not made.accepts(text):  # a bare string may not have the delimiter that ends it
            continue
        data, events = text.encode(), expected(made, text)
        for cut in range(len(data) + 1):
            assert told(made, [data[:cut], data[cut:]]) == events, (text, cut)
            cuts += 1
    assert cuts > 500


@each_format
@settings(max_examples=8, deadline=None)
@given(data=st.data())
def test_rollback_and_fork(format: str, data: st.DataObject) -> None:
    """A stream that went back, and one that was forked, tell what a fresh one tells."""
    made = constraint(format)
    text = text_of(format, *data.draw(st.sampled_from(REPLIES))).encode()
    size = data.draw(st.integers(1, 9))
    parts = [text[place : place + size] for place in range(0, len(text), size)]
    stream, fed = made.stream(), 0
    for _ in range(data.draw(st.integers(1, 4))):
        more = data.draw(st.integers(0, len(parts) - fed))
        for part in parts[fed : fed + more]:
            stream.feed(part)
        fed += more
        if data.draw(st.booleans()):
            other = stream.fork()
            stream.feed(b"")
            stream = other
        if data.draw(st.booleans()):
            with contextlib.suppress(ParseError):
                stream.feed("<|channel|>\xff")  # another way to go on, which may be refused
            stream.rollback()
        back = data.draw(st.integers(0, fed))
        stream.rollback(back)
        fed -= back
    fresh = made.stream()
    for part in parts[:fed]:
        fresh.feed(part)
    for part in parts[fed:]:
        assert stream.feed(part) == fresh.feed(part)
    assert stream.close() == fresh.close() and stream.text == text and stream.reply == fresh.reply


def begun(found: list[Event]) -> int:
    return sum(event.kind == "tool call begun" for event in found)


@pytest.mark.parametrize("reasoning", ["disabled", "enabled"])
@each_format
def test_a_name_is_told_with_the_byte_that_decides_it(format: str, reasoning: Any) -> None:
    """Of tools ``do``, ``do_it`` and ``other``: ``o`` decides one, and what follows ``do`` another. A list of Python
    calls begins with the whole name and its bracket: before, it could be content.
    """
    if reasoning == "enabled" and (FORMATS[format].thinking is None or format in ("harmony", "kimi_k3")):
        pytest.skip("texts of this format have no reasoning, or another front")
    made = tokenfst.tools(DEFINITIONS, format=format, reasoning=reasoning)
    thinking = FORMATS[format].thinking
    lead = ""
    if reasoning == "enabled":
        assert thinking is not None
        lead = f"{'' if thinking.opened else thinking.begin}hm{thinking.end}{thinking.after}"
    for name, least in (("other", 1), ("do", 3), ("do_it", 3)):
        text = text_of(format, "", [(name, {})])
        if format == "minimax" and reasoning == "enabled":
            text = text.removeprefix("\n</think>\n\n\n\n")
        text = lead + text
        decides = len(name) + 1 if format == "python" else least
        place = text.index(name, text.index("function=") if "function=" in text else 0)
        if format == "cohere":
            place = text.index(f'name="{name}') + 6
        if format == "kimi_k3":
            place = text.index(f'tool="{name}') + 6
        stream = made.stream()
        before = text[: place + decides - 1]
        assert not begun(stream.feed(before)), before
        assert begun(stream.feed(text[len(before)])) == 1
        assert not begun(stream.feed(text[len(before) + 1 :]))
        found = [event.value for event in made.stream().feed(text) if event.kind == "reasoning"]
        assert "".join(found) == ("hm" if lead else "")


PIECES = ("<", "f", "g", "{}", ">", "x", "h")


def small(row: CallFormat) -> ToolConstraint:
    schema = {"type": "object", "properties": {}}
    definitions = [{"type": "function", "name": name, "parameters": schema} for name in ("f", "fg", "h")]
    plan = Plan(row, read_tools(definitions, "#", None), Chosen("auto", (0, 1, 2)), True, "disabled")
    return planned(plan, Delimiters(None, "text"), "flexible", "small")


@pytest.mark.parametrize(
    "row",
    [
        CallFormat("small", "<{name}", ">", trigger="<", excludes=()),
        CallFormat("small", "x<{name}", ">", trigger="x<", excludes=()),
        CallFormat("small", "<{name}", ">", block=("x", "g"), separator="h", excludes=()),
    ],
    ids=["free", "long", "block"],
)
def test_what_is_told_is_what_all_ways_to_go_on_agree_on(row: CallFormat) -> None:
    """Brute force over texts of a few pieces: content and begun calls at a place are those of all texts that go on."""
    made = small(row)
    begins = ["".join(each) for size in range(5) for each in product(PIECES, repeat=size)]
    ends = [f"{lead}{rest}" for lead in ("<f", "<h", "f", "fg", "h", "g", "") for rest in ("{}>", "{}>g")]
    texts = [
        *begins,
        *(text + end for text in begins[:400] for end in ends),
        *(each + ">g" for each in begins),
    ]
    ways: dict[str, list[tuple[str, list[tuple[int, str]]]]] = {}
    for text in {each for each in texts if made.accepts(each)}:
        reply = made.parse(text)
        starts, place = [], 0
        for call in reply.calls:
            place = text.index(call.raw, place)
            starts.append((place, call.name))
            place += len(call.raw)
        for size in range(min(len(text), 3) + 1):
            ways.setdefault(text[:size], []).append((reply.content, starts))
    checked = 0
    for text, others in ways.items():
        stream, found = made.stream(), []
        for byte in text:
            found += stream.feed(byte)
        content = "".join(event.value for event in found if event.kind == "content")
        common = others[0][0]
        for each, _ in others:
            while not each.startswith(common):
                common = common[:-1]
        assert content == common[: len(content)] and len(content) >= min(len(common), len(text)), text
        names = [event.value for event in found if event.kind == "tool call begun"]
        every = [[name for place, name in starts if place < len(text)] for _, starts in others]
        agreed = 0
        while all(len(each) > agreed and each[agreed] == every[0][agreed] for each in every):
            agreed += 1
        assert names == every[0][:agreed], text
        checked += agreed
    assert checked


def test_bad_input() -> None:
    made = constraint("qwen_3")
    stream = made.stream()
    with pytest.raises(TypeError):
        stream.feed(5)  # type: ignore[arg-type]
    with pytest.raises(TypeError):
        made.stream(json=True)
    stream.feed("x")
    for parts in (2, -1):
        with pytest.raises(TypeError):
            stream.rollback(parts)
    with pytest.raises(ParseError):
        stream.feed("<tool_call>x")
    stream.rollback()
    stream.feed("y")
    assert stream.close() == [] and stream.reply.content == "xy"
    with pytest.raises(tokenfst.TokenfstError, match="finished"):
        stream.feed("z")
    other = made.stream()
    other.feed("<tool_call>")
    with pytest.raises(ParseError, match="stops too early"):
        other.fork().close()
