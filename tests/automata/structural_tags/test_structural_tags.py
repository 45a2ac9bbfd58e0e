"""Structural tags against their definition (``reference.tools.structural_tags``), on all words of small worlds, and
what is refused with which pointer.
"""

from __future__ import annotations

import json
import random
import re
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from support.worlds.tag_worlds import built

from reference.tools.random_tags import RandomTags
from reference.tools.structural_tags import SPECIAL, World, all_words
from tokenfst import EmptyLanguageError, Grammar, Language, SchemaError, Vocabulary, compile, structural_tag
from tokenfst.errors import ArgumentTypeError, ConstraintError, StructuralTagError, UnspellableWarning

ANY = {"type": "any_text"}


def const(value: str) -> dict[str, Any]:
    return {"type": "const_string", "value": value}


def tag(begin: Any, content: Any, end: Any) -> dict[str, Any]:
    return {"type": "tag", "begin": begin, "content": content, "end": end}


def triggered(triggers: list[str], *tags: Any, **more: Any) -> dict[str, Any]:
    return {"type": "triggered_tags", "triggers": triggers, "tags": list(tags), **more}


def of(format: Any) -> Language | Grammar:
    return structural_tag({"type": "structural_tag", "format": format})


# --- against the definition ---------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(4))
def test_words_are_those_of_the_definition(part: int) -> None:
    world = World("ab", 6)
    made = 0
    seeds = range(150 * part, 150 * (part + 1))
    formats = (RandomTags(random.Random(seed), "ab").format(3) for seed in seeds)
    for format, found in built(formats, of):
        made += 1
        assert {word for word in world.texts if found.accepts(word)} == world.words(format), format
    assert made > 60


def test_all_pairs_of_small_triggers() -> None:
    """Two triggers and an excluded string: every way in which they overlap."""
    world = World("ab", 6)
    strings = [word for word in all_words("ab", 3) if word]
    made = 0
    for first in strings:
        for second in strings:
            for excludes in ([], ["aa"], ["bab"]):
                rules = [[first, const("b")], [second, const("ab")]]
                format = {"type": "dispatch", "rules": rules, "excludes": excludes}
                try:
                    found = of(format)
                except StructuralTagError as error:
                    assert "can never fire" in error.reason
                    blocked = [
                        world._until(each, [first, second], excludes, world.longest, world.texts)
                        for each in (first, second)
                    ]
                    assert not all(blocked)
                    continue
                made += 1
                assert {word for word in world.texts if found.accepts(word)} == world.words(format), format
    assert made > 200


STOP = SPECIAL[2]
NAMES = {"s": 4, "ab": 5, "$": 3}
CHARACTERS = {"s": SPECIAL[0], "ab": SPECIAL[1], "$": STOP}
SMALL = Vocabulary([b"a", b"b", b"s", b"", b"", b""], 3, NAMES)
IDS = {"a": 0, "b": 1, "s": 2, SPECIAL[0]: 4, SPECIAL[1]: 5}


def reader(mode: str) -> tuple[Callable[[str], Sequence[str]], Callable[[str], Sequence[str]]]:
    """How strings are read in a world, and which spellings free text must not hold."""

    def read(text: str) -> list[str]:
        ways = [""]
        for number, piece in enumerate(re.split(r"(ab|s|\$)", text)):
            options = [piece]
            if number % 2 and mode != "text":
                options = [CHARACTERS[piece]] if mode == "token" else [CHARACTERS[piece], piece]
            ways = [way + option for way in ways for option in options]
        return list(dict.fromkeys(ways))

    def avoided(text: str) -> list[str]:
        return [text] if mode == "token" and text and text not in read(text) else []

    return read, avoided


def accepted(constraint: Language | Grammar, words: Sequence[str]) -> set[str]:
    """The words whose tokens a matcher takes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnspellableWarning)
        try:
            automaton = compile(constraint, SMALL)
            automaton.matcher()
        except EmptyLanguageError:
            return set()
    found = set()
    for word in words:
        matcher = automaton.matcher()
        if all(matcher.accept_token(IDS[each]) for each in word) and matcher.is_accepting():
            found.add(word)
    return found


@pytest.mark.parametrize("mode", ["token", "text", "both"])
def test_special_tokens_their_spelling_or_both(mode: Any) -> None:
    read, avoided = reader(mode)
    world = World("abs", 4, read, avoided)
    words = list(all_words("abs" + SPECIAL[:2], 4))
    made = special = 0
    formats = (RandomTags(random.Random(seed), "ab", ("s", "ab")).format(3) for seed in range(120))
    for format, found in built(formats, partial(structural_tag, vocabulary=SMALL, special_tokens=mode)):
        wanted = world.words(format)
        made += 1
        special += any(set(word) & set(SPECIAL) for word in wanted)
        assert accepted(found, words) == wanted, format
    assert made > 50
    assert (special > 15) == (mode != "text")


@pytest.mark.parametrize("mode", ["token", "both"])
def test_an_end_token_is_the_end_of_a_tag_and_of_the_text(mode: Any) -> None:
    """By the definition it is a letter that can only be the last one."""
    read, avoided = reader(mode)
    world = World("ab", 4, read, avoided, {"s": SPECIAL[0], "ab": SPECIAL[1], "$": STOP})
    words = list(all_words("ab" + SPECIAL[:2], 3))
    made = stopped = 0
    formats = (
        RandomTags(random.Random(seed), "ab", token_formats=seed % 2 == 0, stop="$").format(3)
        for seed in range(250)
    )
    for format, found in built(formats, partial(structural_tag, vocabulary=SMALL, special_tokens=mode)):
        made += 1
        every = world.words(format)
        over = {word[:-1] for word in every if word.endswith(STOP) and STOP not in word[:-1]}
        plain = {word for word in every if STOP not in word}
        stopped += not over <= plain
        assert accepted(found, words) == (over | plain) & set(words), format
    assert made > 100 and stopped > 15


@pytest.mark.parametrize("control_tokens", [False, True])
def test_formats_that_speak_of_tokens(control_tokens: bool) -> None:
    read, avoided = reader("token")
    world = World("ab", 4, read, avoided, {"s": SPECIAL[0], "ab": SPECIAL[1]}, control_tokens)
    words = list(all_words("ab" + SPECIAL[:2], 4))
    made = 0
    formats = (
        RandomTags(random.Random(seed), "ab", ("s", "ab"), token_formats=True).format(3)
        for seed in range(200)
    )
    build = partial(structural_tag, vocabulary=SMALL, control_tokens=control_tokens)
    for format, found in built(formats, build):
        made += 1
        assert accepted(found, words) == world.words(format), format
    assert made > 90


def test_a_token_may_lie_across_the_border_of_a_mark() -> None:
    """The delimiter is text, however it is cut; a token that is a delimiter is one token."""
    vocabulary = Vocabulary([b"x", b"y", b"xy", b"yx", b"z", b"", b"", b"zz"], 5, {"<t>": 6})
    found = structural_tag(triggered(["xy"], tag("xyz", const("z"), "x")))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UnspellableWarning)
        automaton = compile(found, vocabulary)

        def takes(*ids: int, of: Any = automaton) -> bool:
            matcher = of.matcher()
            return all(map(matcher.accept_token, ids)) and bool(matcher.is_accepting())

        assert takes(0, 1, 4, 4, 0) and takes(2, 7, 0) and takes(2, 4, 4, 0, 0)
        assert takes(0, 3, 0) is False  # x, yx: the trigger is complete inside of the second token
        token = compile(structural_tag({"type": "token", "token": "xy"}, vocabulary=vocabulary), vocabulary)
        assert takes(2, of=token) and not takes(0, 1, of=token)
        other = structural_tag({"type": "any_tokens", "exclude_tokens": [2, "<t>"]}, vocabulary=vocabulary)
        automaton = compile(other, vocabulary)
        assert takes(0, 1, 3, 7, of=automaton) and not takes(2, of=automaton) and not takes(6, of=automaton)
        bounded = compile(structural_tag({"type": "any_text", "max_tokens": 2}), vocabulary)
        assert takes(2, 7, of=bounded) and takes(of=bounded) and not takes(2, 7, 4, of=bounded)
        ended = compile(structural_tag(tag("z", {"type": "any_text", "max_tokens": 1}, "xy")), vocabulary)
        assert takes(4, 4, 2, of=ended) and takes(4, 2, of=ended) and not takes(4, 4, 4, 2, of=ended)


def test_without_a_vocabulary_token_formats_name_special_tokens() -> None:
    found = structural_tag(tag({"type": "token", "token": "s"}, ANY, {"type": "token", "token": "ab"}))
    assert accepted(found, [SPECIAL[0] + "ab" + SPECIAL[1], "sab"]) == {SPECIAL[0] + "ab" + SPECIAL[1]}
    with pytest.raises(StructuralTagError, match="pass vocabulary=") as refused:
        structural_tag({"type": "token", "token": 4})
    assert refused.value.pointer == "#/token"


# --- documents ----------------------------------------------------------------------------------------

TOOL = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}


def test_the_legacy_form() -> None:
    spec = {
        "type": "structural_tag",
        "structures": [
            {"begin": "<f=a>", "schema": TOOL, "end": "</f>"},
            {"begin": "<f=b>", "schema": json.dumps(TOOL), "end": "</f>"},
        ],
        "triggers": ["<f="],
    }
    for given in (spec, json.dumps(spec)):
        found = structural_tag(given)
        assert found.accepts('hi <f=a>{"x":1}</f> and <f=b>{"x":2}</f>')
        assert (
            found.accepts("nothing")
            and not found.accepts("<f=c>")
            and not found.accepts('<f=a>{"x":"1"}</f>')
        )
    least = structural_tag({**spec, "at_least_one": True})
    assert least.accepts('<f=a>{"x":1}</f>') and not least.accepts("nothing")


def test_objects_with_model_dump() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Text(pydantic.BaseModel):  # type: ignore[name-defined,misc]
        type: str = "any_text"
        excludes: list[str] = []  # noqa: RUF012 (pydantic copies it)
        max_tokens: int | None = None

    class Document(pydantic.BaseModel):  # type: ignore[name-defined,misc]
        type: str = "structural_tag"
        format: Text = Text(excludes=["x"])

    for given in (
        Document(),
        Text(excludes=["x"]),
        {"type": "structural_tag", "format": Text(excludes=["x"])},
    ):
        found = structural_tag(given)
        assert found.accepts("abc") and not found.accepts("axc")


def test_a_type_need_not_be_said_where_only_one_may_stand() -> None:
    brief = {"begin": "<", "content": const("x"), "end": ">"}
    assert structural_tag({"format": triggered(["<"], brief)}).accepts("a<x>b")
    assert structural_tag(
        {"format": {"type": "tags_with_separator", "tags": [brief], "separator": ","}}
    ).accepts("<x>,<x>")
    assert structural_tag(
        {"structures": [{"begin": "<", "schema": {"type": "null"}, "end": ">"}], "triggers": ["<"]}
    ).accepts("a<null>")
    marked = {**brief, "begin": {"token": "s"}, "end": {"token": "ab"}}
    for spec in (
        marked | {"type": "tag"},
        {"type": "token_triggered_tags", "trigger_tokens": ["s"], "tags": [marked]},
    ):
        assert compile(structural_tag(spec, vocabulary=LETTERS), LETTERS).matcher().accept_tokens([4, 2, 5])


LETTERS = Vocabulary([b"a", b"b", b"x", b"", b"", b""], 3, {"s": 4, "ab": 5, "$": 3})


def test_what_is_excluded_may_stand_in_for_an_end() -> None:
    """As xgrammar has it: content that excludes something may have the empty end alone."""
    call = tag("<", {**ANY, "excludes": ["b"]}, "")
    found = structural_tag(triggered(["<"], call, at_least_one=True))
    assert found.accepts("<") and found.accepts("<aab")  # the rest is free text again
    assert not structural_tag(call).accepts("<aab")
    inner = {"type": "dispatch", "rules": [["c", const("d")]], "excludes": ["b"]}
    assert structural_tag(tag("<", inner, [""])).accepts("<acd") and not structural_tag(
        tag("<", inner, "")
    ).accepts("<cdb")
    with pytest.raises(StructuralTagError, match="list in 'excludes'"):
        structural_tag(tag("<", {"type": "or", "elements": [{**ANY, "excludes": ["b"]}, ANY]}, ""))


def test_additional_properties_and_whitespace() -> None:
    schema = {"type": "json_schema", "json_schema": TOOL}
    assert not structural_tag(schema).accepts('{"x":1,"y":2}')
    assert structural_tag(schema, additional_properties="schema").accepts('{"x":1,"y":2}')
    assert structural_tag(schema).accepts('{"x": 1}')
    assert not structural_tag(schema, whitespace="compact").accepts('{"x": 1}')
    spaced = structural_tag({**schema, "max_whitespace_cnt": 2})
    assert spaced.accepts('{  "x"\t:\n1 }') and not spaced.accepts('{   "x":1}')


def test_excluded_strings_of_a_schema() -> None:
    schema = {"type": "object", "properties": {"ax": {"type": "string"}, "b": {"enum": ["x", "y", "axe"]}}}
    found = structural_tag({"type": "json_schema", "json_schema": schema, "excludes": ["ax", '":']})
    assert found.accepts('{"b":"x"}') and found.accepts("{}")
    assert not found.accepts('{"b":"axe"}') and not found.accepts('{"ax":""}')
    open_schema = {"type": "json_schema", "json_schema": True, "excludes": ["z"]}
    assert structural_tag(open_schema).accepts('{"a":[{"b":"c"}]}')
    assert not structural_tag(open_schema).accepts('{"a":[{"b":"cz"}]}')


REFUSED: list[tuple[Any, str, str]] = [
    ([], "#", "must be an object"),
    ("[", "#", "is not valid JSON"),
    ('{"type": "any_text", "type": "regex"}', "#", "occurs twice"),
    ({}, "#", "'type' is missing"),
    ({"format": {"value": "x"}}, "#/format", "'type' is missing"),
    (triggered(["<"], {"type": "regex", "pattern": "<"}), "#/tags/0", "a format of type 'tag'"),
    ({"type": 1}, "#/type", "must be a string"),
    ({"type": "structural-tag", "format": ANY}, "#/type", "did you mean 'structural_tag'"),
    ({"type": "structural_tag"}, "#", "'format' is missing"),
    ({"type": "structural_tag", "format": ANY, "triggers": []}, "#/triggers", "has no field 'triggers'"),
    ({"type": "structural_tag", "format": {"type": "anytext"}}, "#/format/type", "did you mean 'any_text'"),
    ({"type": "any_text", "exclude": []}, "#/exclude", "did you mean 'excludes'"),
    ({"type": "any_text", "excludes": "x"}, "#/excludes", "must be a list"),
    ({"type": "any_text", "excludes": [""]}, "#/excludes/0", "must not be empty"),
    ({"type": "any_text", "max_chars": -1}, "#/max_chars", "an integer from 0"),
    ({"type": "any_text", "max_tokens": True}, "#/max_tokens", "an integer"),
    (const("\ud800"), "#/value", "lone surrogate"),
    ({"type": "regex", "pattern": "("}, "#/pattern", "position 0"),
    ({"type": "regex", "pattern": "a)|(b"}, "#/pattern", "position 1"),
    ({"type": "grammar", "grammar": "root ::= nothing"}, "#/grammar", "nothing"),
    ({"type": "json_schema", "json_schema": "x"}, "#/json_schema", "an object or a boolean"),
    ({"type": "sequence", "elements": []}, "#/elements", "at least one"),
    ({"type": "sequence", "elements": [ANY, {"type": "or"}]}, "#/elements/1", "'elements' is missing"),
    ({"type": "repeat", "min": 2, "max": 1, "content": ANY}, "#/max", "at least min"),
    (tag("<", ANY, ""), "#/end", "this content has no end"),
    (tag("<", ANY, []), "#/end", "at least one"),
    (tag({"type": "any_text"}, ANY, ">"), "#/begin", "a string or a format of type 'token'"),
    (triggered([], tag("<", ANY, ">")), "#/triggers", "at least one"),
    (triggered(["<"]), "#/tags", "at least one"),
    (triggered(["<", "<"], tag("<", ANY, ">")), "#/triggers/1", "listed twice"),
    (triggered(["<f"], tag("<g", ANY, ">")), "#/tags/0/begin", "no trigger reaches this tag"),
    (triggered(["<f", "<g"], tag("<f", ANY, ">")), "#/triggers/1", "no tag begins with the trigger"),
    (triggered(["<f", "<"], tag("<f", ANY, ">"), tag("<g", ANY, ">")), "#/tags/0/begin", "2 triggers"),
    (triggered(["<f"], tag("<f", ANY, ">"), excludes=["<"]), "#/triggers/0", "can never fire"),
    (
        triggered(["<f", "f"], tag("<f", ANY, ">"), tag("fg", ANY, ">"), excludes=["f"]),
        "#/triggers/0",
        "never fire",
    ),
    (triggered(["bcd", "c"], tag("bcd", ANY, ">"), tag("c", ANY, ">")), "#/triggers/0", "can never fire"),
    (tag("(", triggered(["<)f"], tag("<)f", ANY, ">")), ")"), "#/content/triggers/0", "can never fire"),
    (
        triggered(["<"], tag({"type": "token", "token": "<"}, ANY, ">")),
        "#/tags/0/begin",
        "must begin with a string",
    ),
    ({"type": "dispatch", "rules": [["x"]]}, "#/rules/0", "a pair"),
    (
        {"type": "token_triggered_tags", "trigger_tokens": ["s"], "tags": [tag("s", ANY, ">")]},
        "#/tags/0/begin",
        "must begin with a 'token'",
    ),
    (
        {
            "type": "token_triggered_tags",
            "trigger_tokens": ["s"],
            "tags": [tag({"type": "token", "token": "s"}, ANY, ">")],
            "exclude_tokens": ["s"],
        },
        "#/trigger_tokens/0",
        "can never fire",
    ),
    (
        {"type": "structural_tag", "structures": [{"begin": "<", "end": ">"}], "triggers": ["<"]},
        "#/structures/0",
        "'schema' is missing",
    ),
]


@pytest.mark.parametrize(("spec", "pointer", "reason"), REFUSED, ids=[f"{n}" for n in range(len(REFUSED))])
def test_what_is_damaged_is_refused_with_its_pointer(spec: Any, pointer: str, reason: str) -> None:
    with pytest.raises(StructuralTagError) as refused:
        structural_tag(spec)
    assert refused.value.pointer == pointer
    assert re.search(reason, refused.value.reason), refused.value.reason


def test_depth_has_a_bound() -> None:
    format: Any = ANY
    for _ in range(200):
        format = {"type": "optional", "content": format}
    with pytest.raises(StructuralTagError, match="more than 100 levels deep"):
        structural_tag(format)
    with pytest.raises(StructuralTagError, match=r"is not valid JSON: .*4300 digits"):
        structural_tag("1" * 5_000)
    with pytest.raises(StructuralTagError, match="nested too deeply"):
        structural_tag('{"type": "sequence", "elements": ' + "[" * 100_000)


def test_schemas_in_a_tag_keep_their_errors_with_the_pointer_in_the_document() -> None:
    def schema(value: Any) -> Any:
        inner = {"type": "json_schema", "json_schema": value}
        return {"type": "structural_tag", "format": {"type": "sequence", "elements": [const("x"), inner]}}

    with pytest.raises(SchemaError) as refused:
        structural_tag(schema({"properties": {"a/b": {"minimum": "3"}}}))
    assert refused.value.pointer == "#/format/elements/1/json_schema/properties/a~1b/minimum"
    with pytest.raises(EmptyLanguageError) as empty:
        structural_tag(schema({"type": "integer", "minimum": 1.2, "maximum": 1.8}))
    assert empty.value.pointers and all(
        each.startswith("#/format/elements/1/json_schema/") for each in empty.value.pointers
    )


def test_special_tokens_are_looked_at_where_they_stand() -> None:
    with pytest.raises(StructuralTagError, match="ends inside of the special token 'ab'") as refused:
        structural_tag(triggered(["a"], tag("ab", const("x"), "")), vocabulary=SMALL)
    assert refused.value.pointer == "#/triggers/0"
    structural_tag(triggered(["a"], tag("ab", const("x"), "")), vocabulary=SMALL, special_tokens="text")
    ending = Vocabulary([b"a", b"b", b""], 2, {"</s>": 2})
    for spec, pointer in ((tag("</s>", ANY, "a"), "#/begin"), ({"type": "token", "token": 2}, "#/token")):
        with pytest.raises(StructuralTagError, match="end token") as wrong:
            structural_tag(spec, vocabulary=ending)
        assert wrong.value.pointer == pointer
    with pytest.raises(StructuralTagError, match="neither a special token"):
        structural_tag({"type": "token", "token": "<nothing>"}, vocabulary=SMALL)
    with pytest.raises(StructuralTagError, match="so no token 99"):
        structural_tag({"type": "exclude_token", "exclude_tokens": [99]}, vocabulary=SMALL)


def test_arguments_are_checked() -> None:
    with pytest.raises(ArgumentTypeError, match="vocabulary"):
        structural_tag(ANY, vocabulary="x")  # type: ignore[arg-type]
    with pytest.raises(ConstraintError, match="special_tokens"):
        structural_tag(ANY, special_tokens="tokens")  # type: ignore[arg-type]
