"""Texts read back: what was written by hand comes out again, in whatever pieces it came, and nothing else is read."""

from __future__ import annotations

import ast
import copy
import json
import pickle
import random
import sys
from functools import lru_cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import tokenfst
from reference.tools.tool_texts import STYLES, Calls, text_of
from reference.tools.xml_parameters import STOPS
from tokenfst import ParseError, ToolReply
from tokenfst.automata.tools.constraints import ToolConstraint
from tokenfst.automata.tools.definitions.formats import FORMATS
from tokenfst.automata.tools.python_arguments import python_arguments
from tokenfst.automata.tools.reading.values import PythonText, read_python

_INNER = {
    "type": "object",
    "properties": {"x": {"type": "string"}, "on": {"type": "boolean"}},
    "required": ["x"],
}
_PARAMETERS = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "maybe": {"type": ["integer", "null"]},
        "kind": {"enum": ["a", "b c"]},
        "short": {"type": "string", "minLength": 1, "maxLength": 8},
        "tags": {"type": "array", "items": {"type": "string"}},
        "inner": _INNER,
        "list": {"type": "array", "items": _INNER},
    },
    "required": ["text"],
}
DEFINITIONS = [
    {"type": "function", "function": {"name": "do", "parameters": _PARAMETERS}},
    {"type": "function", "name": "do_it", "parameters": {"type": "object", "properties": {}}},
]
few = settings(max_examples=20, deadline=None)
each_format = pytest.mark.parametrize("format", list(FORMATS))


@lru_cache(maxsize=64)
def constraint(
    format: str, choice: str = "auto", reasoning: Any = "disabled", parallel: bool = True
) -> ToolConstraint:
    return tokenfst.tools(DEFINITIONS, format=format, choice=choice, reasoning=reasoning, parallel=parallel)


def strings(format: str) -> st.SearchStrategy[str]:
    """Texts that the format can write: bare ones without what ends them."""
    texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12) | st.sampled_from(
        ["", "12", "null", "<b>", "a b", "line\nbreak", "</", '"quoted"', "\\", "'", "}", "{}", "🙂"]
    )
    if format not in STYLES:
        return texts
    stop = STOPS[STYLES[format]]
    marks = ("<|open|>", "<|close|>", "<|sep|>")
    return texts.filter(
        lambda text: (
            stop not in text
            and not any(text.endswith(stop[:size]) for size in range(1, len(stop)))
            and not any(mark in text for mark in marks)
        )
    )


@st.composite
def arguments(draw: st.DrawFn, format: str) -> dict[str, Any]:
    text = strings(format)
    numbers = st.integers(-(10**9), 10**9)
    inner = st.builds(
        lambda x, on: {"x": x} | ({} if on is None else {"on": on}), text, st.none() | st.booleans()
    )
    members: dict[str, st.SearchStrategy[Any]] = {
        "text": text,
        "count": numbers,
        "ratio": st.floats(-1e6, 1e6, allow_nan=False).map(lambda value: round(value, 3)) | numbers,
        "maybe": st.none() | numbers,
        "kind": st.sampled_from(["a", "b c"]),
        "short": st.text("abc12{", min_size=1, max_size=8),
        "tags": st.lists(text, max_size=3),
        "inner": inner,
        "list": st.lists(inner, max_size=2),
    }
    kept = [name for name in members if name == "text" or draw(st.booleans())]
    return {name: draw(members[name]) for name in kept}


@st.composite
def replies(draw: st.DrawFn, format: str) -> tuple[str, Calls]:
    """What a text says: content and calls. Nothing in the content begins a call."""
    calls = draw(
        st.lists(
            st.tuples(st.just("do"), arguments(format)) | st.just(("do_it", {})),
            max_size=3,
        )
    )
    return draw(st.text("ab \n.é🙂", max_size=20)), calls


def said(reply: ToolReply) -> tuple[str, Calls]:
    return reply.content, [(call.name, call.arguments) for call in reply.calls]


@each_format
@few
@given(data=st.data())
def test_what_was_written_is_read(format: str, data: st.DataObject) -> None:
    content, calls = data.draw(replies(format))
    text = text_of(format, content, calls)
    made = constraint(format)
    assert made.accepts(text)
    reply = made.parse(text)
    assert said(reply) == (content, calls) and not reply.reasoning
    place = 0
    for call in reply.calls:
        place = text.index(call.raw, place) + len(call.raw)


@each_format
@few
@given(data=st.data())
def test_pieces_make_no_difference(format: str, data: st.DataObject) -> None:
    text = text_of(format, *data.draw(replies(format))).encode()
    made = constraint(format)
    whole = made.parse(text)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(text)), max_size=5)))
    for places in ([], range(len(text)), cuts):
        parser, seen = made.parser(), ()
        for begin, end in zip([0, *places], [*places, len(text)], strict=True):
            parser.feed(text[begin:end])
            assert parser.calls[: len(seen)] == seen
            seen = parser.calls
        assert parser.finish() == whole and seen == whole.calls


@each_format
def test_every_cut_in_two(format: str) -> None:
    calls: Calls = [("do", {"text": "é </b>", "tags": ["x"], "inner": {"x": "y"}}), ("do_it", {})]
    text = text_of(format, "so: é", calls).encode()
    made = constraint(format)
    whole = made.parse(text)
    assert said(whole) == ("so: é", calls)
    for cut in range(len(text) + 1):
        parser = made.parser()
        parser.feed(text[:cut])
        parser.feed(text[cut:])
        assert parser.finish() == whole


@each_format
@few
@given(data=st.data())
def test_other_texts_are_refused_where_they_leave(format: str, data: st.DataObject) -> None:
    text = bytearray(text_of(format, *data.draw(replies(format))).encode())
    for _ in range(data.draw(st.integers(1, 2))):
        place = data.draw(st.integers(0, len(text)))
        if data.draw(st.booleans()):
            text[place : place + data.draw(st.integers(0, 3))] = b""
        else:
            text[place:place] = data.draw(st.sampled_from([b"<", b'"', b"}", b"x", b"\n", b"\xff", b"\xfc"]))
    made, broken = constraint(format), bytes(text)
    if made.accepts(broken):
        made.parse(broken)
        return
    try:
        made.parse(broken)
    except ParseError as error:
        assert error.position == made.viable_prefix(broken)
        assert error.expected and "^" in str(error)
    else:
        assert FORMATS[format].stops and any(
            made.accepts(broken + stop.encode()) for stop in FORMATS[format].stops
        )


@each_format
@pytest.mark.parametrize("choice", ["auto", "required", "do"])
@pytest.mark.parametrize("reasoning", ["disabled", "auto", "enabled"])
@pytest.mark.parametrize("parallel", [True, False])
def test_random_words_are_read(format: str, choice: str, reasoning: str, parallel: bool) -> None:
    if FORMATS[format].thinking is None and reasoning == "enabled":
        pytest.skip("texts of this format have no reasoning")
    made = constraint(format, choice, reasoning, parallel)
    for seed in range(4):
        word = made.sample(random.Random(seed))
        reply = made.parse(word)
        shown = word.decode()
        assert all(call.raw in shown for call in reply.calls)
        assert choice == "auto" or [call.name for call in reply.calls[:1]] == ["do"] or choice == "required"
        assert choice != "required" or reply.calls
        assert choice != "do" or len(reply.calls) == 1
        assert parallel or len(reply.calls) <= 1


def test_messages_without_a_call_are_read_where_one_is_allowed() -> None:
    """Harmony's messages: whatever the last one is, what is in front of it is the same."""
    made = constraint("harmony", "auto", "enabled", parallel=False)
    thought, start = "<|channel|>analysis<|message|>hm<|end|>", "<|start|>assistant"
    final = "<|channel|>final<|message|>Hi<|return|>"
    call = '<|channel|>commentary to=functions.do<|constrain|>json<|message|>{"text": ""}<|call|>'
    assert made.parse(thought).reasoning == "hm"
    assert made.parse(thought + start + final).content == "Hi" == made.parse(final).content
    for text in (call, thought + start + call, thought + start + final + start + call):
        assert [each.name for each in made.parse(text).calls] == ["do"]
    assert not made.accepts(call + start + final) and not made.accepts(call + start + call)


@each_format
def test_reasoning_stands_apart(format: str) -> None:
    thinking = FORMATS[format].thinking
    if thinking is None:
        pytest.skip("texts of this format have no reasoning")
    calls: Calls = [("do", {"text": "x"})]
    text = text_of(format, "", calls)
    if format == "minimax":
        text = text.removeprefix("\n</think>\n\n\n\n")
    if format == "harmony":
        text = "<|start|>assistant" + text
    if format == "kimi_k3":
        text = "<|open|>response<|sep|>" + text
    block = f"so be it.{thinking.end}{thinking.after}"
    made = constraint(format, "auto", "auto")
    reply = made.parse(thinking.begin + block + text)
    assert (reply.reasoning, reply.content) == ("so be it.", "") and said(reply)[1] == calls
    begin = "" if thinking.opened and format != "harmony" else thinking.begin
    assert constraint(format, "auto", "enabled").parse(begin + block + text) == reply


def test_values_by_what_the_schema_says() -> None:
    """Bare texts are strings where only strings may stand, and other values where they may be those."""
    properties = {
        "either": {"type": ["string", "integer"]},
        "listed": {"enum": ["12", 5, " pad"]},
        "padded": {"type": "string", "pattern": "^ ?[a-z]+$"},
        "text": {"type": "string"},
    }
    definition = {
        "type": "function",
        "name": "f",
        "parameters": {"type": "object", "properties": properties, "required": list(properties)},
    }
    made = tokenfst.tools([definition], format="qwen_3_coder", choice="f")

    def read(**values: str) -> dict[str, Any]:
        inner = "\n".join(f"<parameter={name}>{value}</parameter>" for name, value in values.items())
        text = f"<tool_call>\n<function=f>\n{inner}\n</function>\n</tool_call>"
        return made.parse(text).calls[0].arguments

    assert read(either="12", listed="12", padded=" ab", text=" 12 ") == {
        "either": 12,
        "listed": "12",
        "padded": "ab",
        "text": " 12 ",
    }
    assert read(either="x1", listed="5", padded="\nab\n", text="\n\nx\n") == {
        "either": "x1",
        "listed": 5,
        "padded": "ab",
        "text": "\nx",
    }
    assert read(either="1.5", listed=" pad", padded="z", text="")["listed"] == " pad"
    assert read(either="1.5", listed="5", padded="z", text="")["either"] == "1.5"


def test_a_missing_end_token_is_added() -> None:
    made = constraint("harmony")
    for text in (
        "<|channel|>final<|message|>Hi",
        '<|channel|>commentary to=functions.do<|constrain|>json<|message|>{"text": ""}',
    ):
        assert (
            made.parse(text).calls == made.parse(text + ("<|call|>" if "{" in text else "<|return|>")).calls
        )
    assert made.parse("<|channel|>final<|message|>Hi").content == "Hi"
    with pytest.raises(ParseError, match="stops too early"):
        made.parse("<|channel|>final<|mess")


def test_errors_say_where_and_what() -> None:
    made = constraint("qwen_3")
    with pytest.raises(ParseError) as caught:
        made.parse('Well: <tool_call>\n{"name": "do", "arguments": {"text": 5}}\n</tool_call>')
    assert caught.value.position == 55 and caught.value.expected == '"""'
    assert pickle.loads(pickle.dumps(caught.value)).position == 55
    with pytest.raises(ParseError, match="stops too early"):
        made.parse('<tool_call>\n{"name": "do"')
    with pytest.raises(tokenfst.TokenfstError, match="surrogate"):
        made.parse("\ud800")
    with pytest.raises(TypeError):
        made.parse(5)  # type: ignore[arg-type]
    parser = made.parser()
    parser.feed("x")
    assert parser.finish() is parser.finish()
    with pytest.raises(tokenfst.TokenfstError, match="finished"):
        parser.feed("y")


def test_a_parser_that_refused_reads_no_more() -> None:
    parser = constraint("qwen_3").parser()
    with pytest.raises(ParseError):
        parser.feed("<tool_call>x")
    for _ in range(2):
        with pytest.raises(ParseError) as caught:
            parser.feed('\n{"name": "do_it", "arguments": {}}\n</tool_call>')  # would fit after what was read
        assert caught.value.position == 11
    with pytest.raises(ParseError):
        parser.finish()


def test_what_python_cannot_read_is_said() -> None:
    definition = {
        "type": "function",
        "name": "f",
        "parameters": {
            "type": "object",
            "properties": {"n": {"type": "integer"}},
            "additionalProperties": False,
        },
    }
    for format, begin in (("llama", '{"name": "f", "parameters": {"n": %s}}'), ("python", "[f(n=%s)]")):
        made = tokenfst.tools([definition], format=format)
        with pytest.raises(ParseError, match="Python does not read"):
            made.parse(begin % ("9" * 5000))


def test_numbers_beyond_all_floats_are_refused() -> None:
    """``1e999`` is a number of JSON and no float: an infinity would be another value."""
    definition = {
        "type": "function",
        "name": "f",
        "parameters": {"type": "object", "properties": {"n": {"type": "number"}}, "required": ["n"]},
    }
    for format, text in (
        ("llama", '{"name": "f", "parameters": {"n": %s}}'),
        ("python", "[f(n=%s)]"),
        (
            "qwen_3_coder",
            "<tool_call>\n<function=f>\n<parameter=n>\n%s\n</parameter>\n</function>\n</tool_call>",
        ),
    ):
        made = tokenfst.tools([definition], format=format)
        assert made.parse(text % "1e+308").calls[0].arguments == {"n": 1e308}
        for number in ("1e+999", "-1e+999"):
            assert made.accepts(text % number)
            parser, stream = made.parser(), made.stream()
            for reads in (made.parse, parser.feed, stream.feed):
                with pytest.raises(ParseError, match="beyond the range of a float"):
                    reads(text % number)
            assert parser.calls == ()


@settings(max_examples=300, deadline=None)
@given(st.integers(0, 2**32), st.data())
def test_python_literals_are_read_as_python_reads_them(seed: int, data: st.DataObject) -> None:
    properties = {"a": True, "naïve": True, "क्षि": True}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    text = _literals(json.dumps(schema)).sample(random.Random(seed)).decode()
    called = ast.parse(f"f({text})", mode="eval").body
    assert isinstance(called, ast.Call)
    expected = {each.arg: ast.literal_eval(each.value) for each in called.keywords}
    if "inf" in repr(expected):
        return
    assert repr(read_python(text)) == repr(expected)
    pieces, reader = f"{text})", PythonText()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(pieces)), max_size=8)))
    parts = [pieces[a:b] for a, b in zip([0, *cuts], [*cuts, len(pieces)], strict=True)]
    assert repr(json.loads("".join(map(reader.feed, parts)))) == repr(expected) and reader.is_done


@lru_cache(maxsize=1)
def _literals(schema: str) -> Any:
    return python_arguments(json.loads(schema), "#", None)


def test_python_arguments_take_linear_time() -> None:
    """Counted by calls of Python, not by a clock."""
    counts = []
    for size in (500, 1000):
        text = f"x=[{', '.join(['é', chr(39)][k % 2].join(chr(34) * 2) for k in range(size))}]"
        calls = 0

        def count(*_: object) -> None:
            nonlocal calls
            calls += 1

        sys.setprofile(count)
        try:
            read_python(text)
        finally:
            sys.setprofile(None)
        counts.append(calls)
    assert counts[1] < 2.5 * counts[0]


def test_constraints_pickle_and_copy() -> None:
    made = constraint("qwen_3_coder")
    text = text_of("qwen_3_coder", "", [("do", {"text": "x"})])
    reply = made.parse(text)
    for other in (pickle.loads(pickle.dumps(made)), copy.deepcopy(made), copy.copy(made)):
        assert other.parse(text) == reply and other.accepts(text)


def test_signs_are_no_text() -> None:
    """Bytes of signs in a text are refused, not read as signs."""
    made = constraint("llama")
    for code in range(0xF8, 0x100):
        with pytest.raises(ParseError):
            made.parse(b"ab" + bytes([code]))
