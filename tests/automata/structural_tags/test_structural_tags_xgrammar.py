"""Structural tags against xgrammar 0.2.8, where it is installed: equal words on random formats but for a list of
differences, each of which has a text here and in docs/constraints/structural-tags.md.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from typing import Any

import pytest
from support.worlds.tag_worlds import built

from reference.tools.random_tags import RandomTags
from reference.tools.structural_tags import World
from reference.tools.xml_parameters import STOPS, Obj, is_valid, random_schema, random_value, written
from tokenfst import structural_tag

xgrammar = pytest.importorskip("xgrammar")

STRINGS = ("ab", "acb", "acc")
"""None overlaps another or itself."""


def theirs(format: Any, words: list[str]) -> list[bool] | None:
    """Which words xgrammar takes; ``None`` if it refuses the format."""
    from xgrammar.testing import _is_grammar_accept_string

    try:
        grammar = xgrammar.Grammar.from_structural_tag({"type": "structural_tag", "format": format})
    except RuntimeError:
        return None
    return [_is_grammar_accept_string(grammar, word) for word in words]


def parts(format: Any) -> Iterator[Mapping[str, Any]]:
    """A format and all inside of it."""
    if isinstance(format, Mapping):
        yield format
        for value in format.values():
            yield from parts(value)
    elif isinstance(format, list):
        for value in format:
            yield from parts(value)


def is_listed(format: Any) -> bool:
    """Whether one of the differences may show: an end is also a trigger inside, or a ``dispatch`` without ``loop``
    stands in a tag.
    """
    for tag in parts(format):
        if tag.get("type") != "tag":
            continue
        ends = {tag["end"]} if isinstance(tag["end"], str) else {*tag["end"]}
        for inner in parts(tag["content"]):
            triggers = {*inner.get("triggers", ()), *(pattern for pattern, _ in inner.get("rules", ()))}
            if ends & triggers or inner.get("loop") is False:
                return True
    return False


def test_random_formats_have_the_same_words() -> None:
    world = World("abc", 6)
    same = 0
    formats = (RandomTags(random.Random(seed), "abc", strings=STRINGS).format(2) for seed in range(500))
    for format, ours in built(formats, structural_tag):
        answers = None if is_listed(format) else theirs(format, world.texts)
        if answers is not None:
            assert answers == [ours.accepts(word) for word in world.texts], format
            same += 1
    assert same > 200


@pytest.mark.parametrize("style", list(STOPS))
def test_parameters_that_are_valid_are_taken_by_both(style: str) -> None:
    taken = 0
    for seed in range(25):
        rng = random.Random(seed)
        schema = random_schema(rng, 2)
        ours = structural_tag({"type": "json_schema", "json_schema": schema, "style": style})
        values = [random_value(rng, schema) for _ in range(10)]
        kept = [value.pairs for value in values if isinstance(value, Obj) and is_valid(schema, value, False)]
        texts = [written(style, pairs) for pairs in kept]
        answers = theirs({"type": "json_schema", "json_schema": schema, "style": style}, texts)
        if answers is None:
            continue
        for text, answer in zip(texts, answers, strict=True):
            assert ours.accepts(text)
            assert answer, (text, schema)
            taken += 1
    assert taken > 20


MODELS = (
    *(
        "llama",
        "kimi",
        "kimi_k3",
        "deepseek_r1",
        "deepseek_v3_1",
        "deepseek_v3_2",
        "deepseek_v4",
        "deepseek_v4_1",
    ),
    *(
        "qwen_3",
        "qwen_3_5",
        "qwen_3_coder",
        "mimo",
        "harmony",
        "minimax",
        "minimax_m3",
        "glm_4_7",
        "cohere",
        "exaone",
    ),
)


@pytest.mark.parametrize("model", MODELS)
def test_tags_of_models(model: str) -> None:
    """What xgrammar makes for a model's tools is read as it is, and a shortest text is one of both."""
    from xgrammar.testing import _is_grammar_accept_string

    properties = {"city": {"type": "string"}, "days": {"type": "array", "items": {"type": "integer"}}}
    parameters = {"type": "object", "properties": properties, "required": ["city", "days"]}
    tools = [
        {"type": "function", "function": {"name": name, "parameters": parameters}}
        for name in ("weather", "time")
    ]
    for choice in ("auto", "required"):
        for reasoning in ("enabled", "disabled"):
            given = xgrammar.get_model_structural_tag(
                model, tools=tools, tool_choice=choice, reasoning=reasoning
            )
            ours, other = structural_tag(given), xgrammar.Grammar.from_structural_tag(given)
            word = ours.witness()
            assert word is not None and _is_grammar_accept_string(other, word.decode())
            assert (b"time" in word) == (choice == "required") or model == "harmony"


@pytest.mark.parametrize("model", MODELS)
def test_texts_of_models_are_theirs(model: str) -> None:
    """Random walks through our tag end in texts that xgrammar takes."""
    from xgrammar.testing import _is_grammar_accept_string

    properties = {
        "city": {"type": "string"},
        "count": {"type": "integer"},
        "names": {"type": "array", "items": {"type": "string"}},
        "kind": {"enum": ["a", "b"]},
        "inner": {"type": "object", "properties": {"on": {"type": "boolean"}}},
    }
    parameters = {"type": "object", "properties": properties, "required": ["city"]}
    tools = [{"type": "function", "function": {"name": "weather", "parameters": parameters}}]
    given = xgrammar.get_model_structural_tag(
        model, tools=tools, tool_choice="required", reasoning="disabled"
    )
    automaton = structural_tag(given).automaton
    other = xgrammar.Grammar.from_structural_tag(given)
    for seed in range(6):
        rng, text = random.Random(seed), b""
        for _ in range(rng.randrange(30, 160)):
            following = [byte for byte in automaton.next_bytes(text)[0] if 32 <= byte < 127 or byte == 10]
            signs = [byte for byte in following if byte in b'<>"{}[]:,/']
            if not following:
                break
            text += bytes([rng.choice(signs if signs and rng.random() < 0.55 else following)])
        word = automaton.completed(text)
        assert word is not None
        word = word if word.startswith(text) else text + word
        assert automaton.accepts(word)
        assert _is_grammar_accept_string(other, word.decode()), word


ANY = {"type": "any_text"}


def const(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


def tag(begin: str, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def schema(value: Any, **more: Any) -> dict[str, Any]:
    return {"type": "json_schema", "json_schema": value, **more}


AB = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}},
    "required": ["a", "b"],
}
DIFFERENCES: list[tuple[str, Any, str, bool | None]] = [
    (
        "a trigger that holds another one",
        {"type": "dispatch", "rules": [["bc", const("x")], ["abcde", const("y")]]},
        "abcz",
        None,
    ),
    (
        "a trigger inside an excluded string that has begun",
        {"type": "dispatch", "rules": [["b", const("x")]], "excludes": ["abc"]},
        "abz",
        False,
    ),
    ("an end that overlaps itself", tag("<", ANY, "aa"), "<aaa", False),
    ("an end that another end begins with", tag("<", ANY, ["a", "ab"]), "<ab", False),
    (
        "two triggers that end at one place",
        {"type": "dispatch", "rules": [["<b", const("1")], ["b", const("2")]]},
        "<b2",
        True,
    ),
    (
        "an end that is also a trigger",
        tag("<", {"type": "dispatch", "rules": [["b", const("x")]]}, ["c", "b"]),
        "<cc",
        False,
    ),
    (
        "dispatch without loop in a tag",
        tag("<", {"type": "dispatch", "rules": [["b", const("x")]], "loop": False}, "c"),
        "<cc",
        False,
    ),
    ("any order: what is required", schema(AB, any_order=True), '{"a":1,"a":2}', False),
    ("any order: what comes twice", schema({**AB, "required": []}, any_order=True), '{"a":1,"a":2}', False),
    ("white space without a bound", schema(AB), '{    "a":1,"b":2}', False),
    (
        "the type of a value, in its element",
        schema({"type": "object", "properties": {"a": {"type": ["integer", "null"]}}}, style="kimi_k3_xml"),
        '<|open|>argument key="a" type="string"<|sep|>null<|close|>argument<|sep|>',
        False,
    ),
    (
        "values of an enum that have parts, in styles that nest",
        schema({"type": "object", "properties": {"a": {"enum": [[1]]}}}, style="cohere_xml"),
        '<cofl:value name="a" type="json">[1]</cofl:value>',
        False,
    ),
    (
        "names that are not listed",
        schema({"type": "object", "additionalProperties": {"type": "integer"}}, style="qwen_xml"),
        "<parameter=a-b>1</parameter>",
        True,
    ),
    ("a line break, and a dot in a pattern", {"type": "regex", "pattern": "a.b"}, "a\nb", False),
    ("a schema of parameters that is no object's", schema({"type": "array"}, style="qwen_xml"), "[]", None),
    ("a format without a type", {"value": "x"}, "x", None),
    ("an unknown field", {"type": "any_text", "exclude": ["x"]}, "x", None),
]


@pytest.mark.parametrize(
    ("name", "format", "text", "ours"), DIFFERENCES, ids=[each[0] for each in DIFFERENCES]
)
def test_differences(name: str, format: Any, text: str, ours: bool | None) -> None:
    """Where we accept, refuse a text or (``None``) refuse the format, xgrammar does not."""
    answers = theirs(format, [text])
    if ours is None:
        with pytest.raises(ValueError):
            structural_tag(format)
        assert answers == [True]
    else:
        assert structural_tag(format).accepts(text) is ours
        assert answers == [not ours]
