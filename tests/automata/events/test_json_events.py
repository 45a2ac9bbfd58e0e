"""Events of JSON: the same however the text is cut, and those of the value that ``json.loads`` reads."""

from __future__ import annotations

import copy
import itertools
import json
import math
import random
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.json.json_events import events as events_of
from tokenfst import json_schema, load_vocabulary, regex, stream_json
from tokenfst.automata.events.json_events import JsonEvents
from tokenfst.errors import ConstraintError

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=12,
)
Told = list[tuple[str, tuple[Any, ...], Any]]


def written(value: Any, rng: random.Random) -> str:
    """One of the ways to write a value."""
    indent, separators = rng.choice([None, 1]), rng.choice([(",", ":"), (", ", ": "), (" ,\t", " :\r\n")])
    text = json.dumps(value, ensure_ascii=rng.random() < 0.5, indent=indent, separators=separators)
    return rng.choice(["", " ", "\n"]) + text + rng.choice(["", " \n"])


def split(data: bytes, rng: random.Random) -> list[bytes]:
    """Cut anywhere, also inside of characters; some parts may be empty."""
    cuts = sorted(rng.randrange(len(data) + 1) for _ in range(rng.randrange(2 * len(data) + 1)))
    return [data[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def told(parts: list[bytes]) -> Told:
    """All events, with pieces that stand together joined."""
    document, found = JsonEvents(), Told()
    for event in [event for part in parts for event in document.feed(part)] + document.close():
        if event.kind == "piece" and found and found[-1][:2] == ("piece", event.path):
            found[-1] = ("piece", event.path, found[-1][2] + event.value)
        else:
            found.append(tuple(event))
    return found


@settings(max_examples=300, deadline=None)
@given(VALUES, st.integers(0, 2**32))
def test_the_events_do_not_depend_on_how_the_text_is_split(value: Any, seed: int) -> None:
    rng = random.Random(seed)
    data = written(value, rng).encode("utf-8", "surrogatepass")
    if "\\ud" not in data.decode("utf-8", "surrogatepass") and json.loads(data) != value:
        return
    whole = told([data])
    assert told(split(data, rng)) == told([bytes([byte]) for byte in data]) == whole
    numbers = {path for kind, path, kind_of in whole if kind == "start" and kind_of == "number"}
    assert [event for event in whole if event[0] != "piece" or event[1] not in numbers] == list(
        events_of(json.loads(data))
    )


def grows(before: Any, after: Any) -> bool:
    """Whether a value is another one that has grown."""
    if isinstance(before, str):
        return isinstance(after, str) and after.startswith(before)
    if isinstance(before, dict):
        kept = isinstance(after, dict) and list(after)[: len(before)] == list(before)
        return kept and all(grows(item, after[key]) for key, item in before.items())
    if isinstance(before, list):
        kept = isinstance(after, list) and len(after) >= len(before)
        return kept and all(grows(item, more) for item, more in zip(before, after, strict=False))
    return type(before) is type(after) and before == after


@settings(max_examples=200, deadline=None)
@given(VALUES, st.integers(0, 2**32))
def test_partial_values_only_grow(value: Any, seed: int) -> None:
    rng = random.Random(seed)
    text = written(value, rng)
    seen = [copy.deepcopy(part) for part in stream_json(split(text.encode("utf-8", "surrogatepass"), rng))]
    assert all(grows(one, other) for one, other in itertools.pairwise(seen))
    assert seen[-1] == json.loads(text)


@pytest.mark.parametrize(
    "text",
    [r'"\ud83d\ude00"', r'"\ud83d"', r'"\ud83dx"', r'"\ud83d\n"', r'"\ud83d\ud83d\ude00"', r'"\ude00\u0041"',
     r'"\ud83dA"', '"é😀"', "-0", "0", "1e5", "-1.5E+3", "[]", "{}", '{"":{"":[]}}', "1e999", r'"\/\b\f\r\t\"\\"'],
)  # fmt: skip
def test_places_where_texts_are_easily_misread(text: str) -> None:
    data = text.encode()
    for cut in range(len(data) + 1):
        found = told([data[:cut], data[cut:]])
        [value] = [event[2] for event in found if event[0] == "end" and event[1] == ()]
        expected = json.loads(text)
        assert value == expected or isinstance(expected, list | dict)
        assert list(stream_json([data[:cut], data[cut:]]))[-1] == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [("", "ends before"), ("[1", "ends before"), ("[1,]", "begins no value"), ("{,}", "begins no key"),
     ('{"a" 1}', "colon"), ('{"a":1,}', "begins no key"), ("[1 2]", "','"), ("01", "not a number"),
     ("1.", "not a number"), ("--1", "not a number"), ("tru", "ends before"), ("trux", "no constant"),
     ('"\\x"', "no escape"), ('"\\u12g"', "hexadecimal"),
     ('"a\nb"', "control character"), ("[] []", "after the document"), ("NaN", "begins no value"),
     ("]", "begins no value"), ('{"a":1]', "'}'"), ('"abc', "ends before"), ("1" * 5000, "digits")],
)  # fmt: skip
def test_what_is_no_json_is_refused_at_every_cut(text: str, message: str) -> None:
    if text != "NaN" and "digits" not in message:
        with pytest.raises(ValueError):
            json.loads(text)
    for cut in range(min(len(text), 8) + 1):
        document = JsonEvents()
        with pytest.raises(ConstraintError, match=message):
            document.feed(text[:cut])
            document.feed(text[cut:])
            document.close()


def test_bytes_that_are_no_text() -> None:
    with pytest.raises(ConstraintError, match="UTF-8"):
        JsonEvents().feed(b'"\xff"')
    document = JsonEvents()
    document.feed(b'"\xc3')
    with pytest.raises(ConstraintError, match="not whole"):
        document.close()


@settings(max_examples=300, deadline=None)
@given(st.text('{}[]:," \\u0d8t1-.e', max_size=9))
def test_json_is_what_json_loads_reads(text: str) -> None:
    try:
        expected = json.loads(text)
    except ValueError:
        with pytest.raises(ConstraintError):
            told([text.encode()])
    else:
        found = told([text.encode()])
        numbers = {path for kind, path, kind_of in found if kind == "start" and kind_of == "number"}
        names = [(*path, key) for kind, path, key in found if kind == "key"]
        if len(names) == len(set(names)):
            assert list(events_of(expected)) == [
                event for event in found if event[0] != "piece" or event[1] not in numbers
            ]


def test_streams_of_schemas() -> None:
    schema = json_schema({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})
    assert schema.speaks_json
    stream = schema.stream()
    assert [event.kind for event in stream.feed('{"a": "x')] == ["start", "key", "start", "piece"]
    assert [event.value for event in stream.feed('y"}')] == ["y", "xy", None]
    assert stream.close() == [] and stream.text == b'{"a": "xy"}'
    other = schema.stream()
    other.feed('{"a": 1}')
    with pytest.raises(ConstraintError, match="leaves the language at byte 6"):
        other.close()
    with pytest.raises(TypeError, match="str or bytes"):
        other.feed(3)  # type: ignore[arg-type]


def test_stream_json_checks() -> None:
    schema = json_schema({"type": "array", "items": {"type": "integer"}})
    assert list(stream_json(["[1", ", 2]"], schema))[-1] == [1, 2]
    with pytest.raises(ConstraintError, match="stream_json"):
        list(stream_json(["[true]"], schema))
    with pytest.raises(ConstraintError, match="'a' occurs twice"):
        list(stream_json(['{"a": 1, "a": 2}']))
    with pytest.raises(TypeError, match="parts"):
        stream_json("[1]")
    with pytest.raises(TypeError, match="constraint"):
        stream_json(["[1]"], 3)  # type: ignore[arg-type]
    assert [event.kind for event in regex("1").stream(json=True).feed("1")] == ["start", "piece"]
    assert regex("1").stream().feed("1") == []


def test_a_token_takes_microseconds() -> None:
    vocabulary = load_vocabulary("mistral:tekken_240911")
    items = [{"name": "a longer text with\nlines in it " * 3, "n": n, "ok": True} for n in range(300)]
    parts = [vocabulary.token_bytes(token) for token in vocabulary.encode_greedy(json.dumps(items).encode())]
    best = math.inf
    for _ in range(5):
        document, begun = JsonEvents(), time.process_time()
        for part in parts:
            document.feed(part)
        best = min(best, time.process_time() - begun)
    assert best / len(parts) < 20e-6  # 1.1 µs where nothing else runs


def test_texts_and_bytes_do_not_share_a_character() -> None:
    with pytest.raises(ConstraintError, match="a character is not whole"):
        list(stream_json([b'"\xc3', "x", b'\xa9"']))


def test_half_of_a_surrogate_pair_is_no_text() -> None:
    constraint = json_schema({})
    with pytest.raises(ConstraintError, match="is a lone surrogate"):
        constraint.stream().feed('"\ud800"')
    with pytest.raises(ConstraintError, match="is a lone surrogate"):
        list(stream_json(['"\ud800"'], constraint))
