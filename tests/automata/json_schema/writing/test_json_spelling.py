"""Spelling and white space: against ``json.dumps``, ``JSON.stringify`` and a slow acceptor of tokens."""

from __future__ import annotations

import enum
import json
import random
from typing import Annotated, Any, Literal

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pydantic import Field

from reference.json.json_spelling import constant_texts, is_spelled, stringify
from reference.json.json_strings import escape
from tokenfst import (
    Vocabulary,
    allocate_token_bitmask,
    compile,
    json_object,
    json_schema,
    json_value,
    lark_grammar,
)
from tokenfst.automata.json_values.strings import SPELLINGS, Spelling
from tokenfst.errors import ArgumentTypeError, ConstraintError, EmptyLanguageError, UnsupportedSchemaError

BYTES = Vocabulary([*(bytes((byte,)) for byte in range(256)), b""], 256)
TEXT = st.text(
    st.characters(exclude_categories=["Cs"]) | st.sampled_from('"\\/\b\n\x00\x1f\x7f\u2028é😀'), max_size=5
)
SCALARS = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | TEXT
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)
NUMBERS = [
    *(
        "0",
        "-0",
        "0.0",
        "-0.0",
        "0.00",
        "0e5",
        "-0E-1",
        "1",
        "1.0",
        "1.50",
        "10.00",
        "-7",
        "0.1",
        "0.0000001",
    ),
    *(
        "1e16",
        "1e+16",
        "1E+16",
        "1.0e+16",
        "1e+016",
        "1e+15",
        "1e+21",
        "12e+20",
        "1.5e+300",
        "100000000000000000000",
    ),
    *("1e-7", "1e-07", "1e-007", "1e-5", "1e-05", "1e-04", "1e-10", "1.50e-10", "1e5", "1e0", "123.456e-3"),
]


def written(value: Any, rng: random.Random) -> str:
    """A text of a value, each string and number in a random spelling."""
    if isinstance(value, str):
        return rng.choice(
            [json.dumps(value), json.dumps(value, ensure_ascii=False), escape(value, rng).decode()]
        )
    if isinstance(value, list):
        return "[" + ", ".join(written(each, rng) for each in value) + "]"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{written(k, rng)}: {written(v, rng)}" for k, v in value.items()) + "}"
    if isinstance(value, bool) or value is None:
        return json.dumps(value)
    return rng.choice([rng.choice(NUMBERS), json.dumps(value), stringify(value)])


EVERY = {spelling: json_value(spelling=spelling) for spelling in SPELLINGS}


@given(VALUES, st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_every_token_is_spelled_as_asked_for(value: Any, rng: random.Random) -> None:
    text = written(value, rng)
    for spelling, everything in EVERY.items():
        assert everything.accepts(text) is is_spelled(text, spelling), (spelling, text)


@given(VALUES)
@settings(max_examples=200, deadline=None)
def test_what_the_two_writers_write(value: Any) -> None:
    plain, ascii_only = json.dumps(value, ensure_ascii=False), json.dumps(value)
    assert EVERY["plain"].accepts(plain) and EVERY["ascii"].accepts(ascii_only)
    assert EVERY["plain"].accepts(ascii_only) is is_spelled(ascii_only, "plain")
    assert EVERY["ascii"].accepts(plain) is is_spelled(plain, "ascii")
    assert EVERY["plain"].accepts(stringify(value))
    assert all(EVERY["any"].accepts(text) for text in (plain, ascii_only, stringify(value)))


def test_every_number_of_a_list() -> None:
    for text in NUMBERS:
        for spelling, everything in EVERY.items():
            assert everything.accepts(text) is is_spelled(text, spelling), text


# --- constants ----------------------------------------------------------------------------------------


def texts_of(schema: Any, **options: Any) -> set[str]:
    """All texts of a finite schema."""
    constraint: Any = json_schema(schema, whitespace="compact", **options)
    found, open_texts = set(), [b""]
    while open_texts:
        text = open_texts.pop()
        following, ends = constraint.next_bytes(text)
        if ends:
            found.add(text.decode())
        open_texts += [text + bytes((byte,)) for byte in following]
    return found


@pytest.mark.parametrize(
    ("schema", "texts"),
    [
        ({"const": 1}, {"1"}),
        ({"const": 1.0}, {"1", "1.0"}),
        ('{"const": 1.0}', {"1", "1.0"}),
        ('{"const": 1.50}', {"1.5"}),
        ({"const": -2.5}, {"-2.5"}),
        ({"const": 1e-5}, {"1e-05", "0.00001"}),
        ({"const": 1e-7}, {"1e-07", "1e-7"}),
        ({"const": 1e16}, {"1e+16", "10000000000000000"}),
        ({"const": 10**16}, {"10000000000000000"}),
        ({"const": 1e21}, {"1e+21"}),
        ({"const": 0}, {"0"}),
        ({"const": -0.0}, {"0", "0.0", "-0.0"}),
        ({"const": 0.0}, {"0", "0.0", "-0.0"}),
        ({"enum": [-0.0], "type": "integer"}, {"0"}),
        ({"enum": [1, 2.0, 2.5, "1"]}, {"1", "2", "2.0", "2.5", '"1"'}),
        ({"enum": [1, 1.0]}, {"1", "1.0"}),
        ({"enum": [1.0], "type": "integer"}, {"1"}),
        ({"minimum": 2.5, "maximum": 2.5, "type": "number"}, {"2.5"}),
        ({"const": [1, {"a": 1.0}]}, {'[1,{"a":1}]', '[1,{"a":1.0}]'}),
        ({"enum": [[1], [1.0]]}, {"[1]", "[1.0]"}),
        ({"const": 'é\n"/\u2028\x7f\x1f'}, {'"é\\n\\"/\u2028\x7f\\u001f"'}),
        ({"const": {"é\\": None}}, {'{"é\\\\":null}'}),
        ({"enum": ["a\ud800", "b"]}, {'"b"'}),
    ],
)
def test_constants(schema: Any, texts: set[str]) -> None:
    assert texts_of(schema) == texts


def test_constants_in_ascii() -> None:
    assert texts_of({"enum": ["é", "😀\x7f", 1e-7]}, spelling="ascii") == {
        '"\\u00e9"', '"\\ud83d\\ude00\\u007f"', "1e-07", "1e-7",
    }  # fmt: skip


@given(st.lists(SCALARS, min_size=1, max_size=4))
@example([1e-06, 1.2e-06])
@settings(max_examples=150, deadline=None)
def test_random_constants_are_as_they_are_dumped(values: list[Any]) -> None:
    for spelling in ("plain", "ascii"):
        found = texts_of({"enum": values}, spelling=spelling)
        dumped = {json.dumps(value, ensure_ascii=spelling == "ascii") for value in values}
        assert dumped <= found
        numbers = [
            value for value in values if isinstance(value, int | float) and not isinstance(value, bool)
        ]
        others = {stringify(value) for value in values}.union(*map(constant_texts, numbers))
        assert found <= dumped | others


@pytest.mark.parametrize(
    "schema",
    [
        {"enum": [1e16]},
        {"enum": [1, 2.0, 3e20]},
        {"enum": [1, 2.0, 3e20, 0.5]},
        {"type": "number", "minimum": 1e22, "maximum": 1e22},
        *({"type": "number", "multipleOf": step} for step in (1, 2, 0.5, 1000, 1e20)),
        {"type": "number", "multipleOf": 1, "minimum": 1e20, "maximum": 1e21},
        {"type": "number", "maximum": 0, "multipleOf": 10},
        {"type": "integer", "enum": [1e20, 5]},
        {"anyOf": [{"type": "integer"}, {"type": "number", "minimum": 3}]},
        float,
        Annotated[float, Field(multiple_of=1)],
        Annotated[float, Field(ge=1e16, le=1e16)],
        enum.Enum("Whole", {"a": 2.0, "b": 1e300, "c": 3}),
        enum.Enum("Mixed", {"a": 1.5, "b": 2.0, "c": 7, "d": 1e300}),
    ],
)
def test_plain_texts_are_among_all_texts(schema: Any) -> None:
    for draft in ("2020-12", "draft-04") if isinstance(schema, dict) else (None,):
        every = json_schema(schema, draft=draft, spelling="any")
        for spelling in SPELLINGS:
            assert (json_schema(schema, draft=draft, spelling=spelling) - every).is_empty(), (draft, spelling)


def test_whole_numbers_that_are_no_integers_have_exponents_in_the_spelling_of_all() -> None:
    number = json_schema({"type": "number", "multipleOf": 1}, spelling="any")
    assert all(map(number.accepts, ("7", "7.0", "1e2", "1.5E+1"))) and not number.accepts("1.5e0")
    integer = json_schema({"type": "integer"}, spelling="any")
    assert all(map(integer.accepts, ("7", "7.0"))) and not integer.accepts("1e2")
    assert json_schema({"const": 100.0}, spelling="any").accepts("1e2")
    assert not json_schema({"const": 100}, spelling="any").accepts("1e2")


def test_equal_numbers_are_one_item_however_they_are_given() -> None:
    for given_ in ([1, 1.0], [1.0, 1]):
        items = [{"const": each} for each in given_]
        schema = {"type": "array", "prefixItems": items, "items": False, "uniqueItems": True}
        assert "[1,1.0]" not in texts_of(schema) and "[1.0,1]" not in texts_of(schema)
        assert {"[]", "[1]"} <= texts_of(schema)
    two = {"type": "array", "items": {"enum": [1, 2.0]}, "uniqueItems": True}
    assert {"[1,2]", "[1,2.0]", "[2.0,1]"} <= texts_of(two) and "[2,2.0]" not in texts_of(two)


def test_patterns_and_formats_are_spelled_as_asked_for() -> None:
    schema = {"type": "string", "pattern": "^[aé/\n😀]{2}$"}
    for spelling, there, missing in (
        ("plain", ['"aé"', '"/\\n"', '"😀é"'], ['"a\\u00e9"', '"\\/\\n"', '"\\/a"']),
        ("ascii", ['"a\\u00e9"', '"/\\n"', '"\\ud83d\\ude00a"'], ['"aé"', '"a\\u00E9"', '"a"']),
        ("any", ['"aé"', '"\\u0061\\u00E9"', '"\\/\\u000a"'], ['"a"']),
    ):
        constraint = json_schema(schema, spelling=spelling)  # type: ignore[arg-type]
        assert all(map(constraint.accepts, there)) and not any(map(constraint.accepts, missing))
    date = {"type": "string", "format": "date"}
    assert json_schema(date).accepts('"2024-02-29"')
    assert not json_schema(date).accepts('"\\u0032024-02-29"')
    assert json_schema(date, spelling="any").accepts('"\\u0032024-02-29"')


def test_the_default_is_plain_everywhere() -> None:
    assert not json_value().accepts('"\\u0061"') and not json_object().accepts('{"\\u0061": 1}')
    assert json_value(spelling="any").accepts('"\\u0061"') and json_object(spelling="any").accepts(
        '{"\\u0061": 1}'
    )
    grammar = lark_grammar('start: %json {"type": "string"}')
    assert grammar.accepts('"é/"') and not grammar.accepts('"\\u0061"')
    pytest.importorskip("pydantic")
    made = json_schema(list[int | float | Literal["a"]])
    assert made.accepts('[1, 1.50, "a"]') and not made.accepts('["\\u0061"]') and not made.accepts("[1e2]")
    assert not json_schema(int).accepts("1.0") and not json_schema(Literal[7]).accepts("7.0")


# --- names --------------------------------------------------------------------------------------------

PERSON = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "näme": {"type": "integer"}},
    "required": ["name", "näme"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("options", "begun", "forced"),
    [
        ({"separators": (", ", ": ")}, b"{", b'"name": "'),
        ({"whitespace": "compact"}, b"{", b'"name":"'),
        ({"indent": 2}, b"{", b'\n  "name": "'),
        ({}, b'{"', b'name":'),
        ({"whitespace": "compact"}, b'{"name":"x"', ',"näme":'.encode()),
        ({"whitespace": "compact", "spelling": "ascii"}, b'{"name":"x"', b',"n\\u00e4me":'),
        ({"whitespace": "compact", "spelling": "any"}, b"{", b'"'),
    ],
)
def test_names_are_forced(options: dict[str, Any], begun: bytes, forced: bytes) -> None:
    matcher = compile(json_schema(PERSON, **options), BYTES).matcher()
    assert matcher.accept_tokens(list(begun))
    assert matcher.forced_bytes() == forced


def test_names_are_forced_in_a_real_vocabulary(tekken: Vocabulary) -> None:
    matcher = compile(json_schema(PERSON, separators=(", ", ": ")), tekken).matcher()
    assert matcher.accept_tokens(tekken.encode_greedy(b"{"))
    assert matcher.forced_bytes().startswith(b'"name":')
    mask = allocate_token_bitmask(1, len(tekken))
    matcher.fill_next_token_bitmask(mask, 0)
    allowed = [k for k in range(len(tekken)) if mask[0, k >> 5] >> (k & 31) & 1]
    assert all(b'"name": "'.startswith(tekken.token_bytes(k)[:9]) for k in allowed)


# --- white space --------------------------------------------------------------------------------------


def moved(text: str, rng: random.Random) -> str:
    """A text with white space put in, taken out or exchanged in some place."""
    place = rng.randrange(len(text) + 1)
    if rng.random() < 0.5 and place < len(text) and text[place] in " \n":
        return text[:place] + rng.choice(["", "\n", "  "]) + text[place + 1 :]
    return text[:place] + rng.choice([" ", "\n", "\n  "]) + text[place:]


FLAT = st.sampled_from(["a", "b", 1, None, [], {}])
NESTED = st.recursive(
    FLAT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
LAYOUTS: list[dict[str, Any]] = [
    {"indent": 0},
    {"indent": 1},
    {"indent": 2},
    {"indent": 4},
    {"indent": 2, "separators": (",", ":")},
    {"indent": 2, "separators": (" ,", " :  ")},
    {"separators": (", ", ": ")},
    {"separators": (",", ":")},
    {"separators": (" ,\n", "\t: ")},
]
CONSTRAINTS = [json_value(**each) for each in LAYOUTS]
TREE = {
    "properties": {"a": {"$ref": "#"}, "b": {"type": "array", "items": {"$ref": "#"}}, "c": {}},
    "type": ["object", "string", "integer", "null"],
}
TREES = [json_schema(TREE, **each) for each in LAYOUTS]


@given(NESTED, st.sampled_from(range(len(LAYOUTS))), st.randoms(use_true_random=False))
@settings(max_examples=300, deadline=None)
def test_layouts_are_those_of_json_dumps(value: Any, number: int, rng: random.Random) -> None:
    text = json.dumps(value, **LAYOUTS[number])
    assert CONSTRAINTS[number].accepts(text)
    for _ in range(3):
        other = moved(text, rng)
        dumped = json.dumps(json.loads(other), **LAYOUTS[number]) if _is_json(other) else None
        assert CONSTRAINTS[number].accepts(other) is (other == dumped), other
    if json_schema(TREE).accepts(json.dumps(value)):
        assert TREES[number].accepts(text) and not TREES[number].accepts(text + " ")


def _is_json(text: str) -> bool:
    try:
        json.loads(text)
    except ValueError:
        return False
    return True


def test_indented_texts_are_so_deep() -> None:
    def nested(depth: int) -> Any:
        return [] if depth == 1 else [nested(depth - 1)]

    for constraint in (
        json_value(indent=2),
        json_schema({"items": {"$ref": "#"}, "type": "array"}, indent=2),
    ):
        assert constraint.accepts(json.dumps(nested(33), indent=2))
        assert not constraint.accepts(json.dumps(nested(34), indent=2))
    assert json_value(indent=0).accepts(json.dumps(nested(200), indent=0))
    endless = {"type": "array", "items": {"$ref": "#"}, "minItems": 1}
    with pytest.raises(EmptyLanguageError):
        json_schema(endless, indent=2)


def test_indentation_goes_with_what_is_counted() -> None:
    schema = {
        "type": "object",
        "properties": {
            "a": {"type": "array", "items": {"type": "object", "minProperties": 1}, "minItems": 1},
            "b": {"type": "array", "items": {"enum": ["x", "y"]}, "uniqueItems": True},
            "c": {"type": "array", "contains": {"type": "array", "items": {"type": "integer"}}},
        },
        "patternProperties": {"^p": {"type": "object", "properties": {"q": {}}}},
        "minProperties": 3,
    }
    value = {"a": [{"k": [1]}], "b": ["y", "x"], "c": ["", [1, 2]], "p": {"q": {}}}
    for order in ("schema", "any"):
        constraint = json_schema(schema, indent=3, property_order=order)  # type: ignore[arg-type]
        assert constraint.accepts(json.dumps(value, indent=3))
        assert not constraint.accepts(json.dumps(value, indent=2))
        assert not constraint.accepts(json.dumps({**value, "b": ["x", "x"]}, indent=3))


def test_white_space_around_the_value() -> None:
    for schema in ({"type": "integer"}, {"type": "array"}):
        text = "7" if schema["type"] == "integer" else "[]"
        bare, around = json_schema(schema), json_schema(schema, surrounding="flexible")
        for before in ("", " ", "\n", "\n  "):
            for after in ("", " ", "\n"):
                assert around.accepts(before + text + after)
                assert bare.accepts(before + text + after) is (before + after == "")
        assert not around.accepts("\t" + text) and not around.accepts("  " + text)
        assert around.parse("\n" + text + " ") == json.loads(text)
    assert json_value(surrounding="flexible", indent=2).accepts("\n[\n  1\n]\n")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"spelling": "minimal"}, "must be one of 'plain', 'ascii', 'any'"),
        ({"surrounding": "any"}, "neither 'none' nor 'flexible'"),
        ({"separators": (";", ":")}, "';' must be ','"),
        ({"separators": (",", ":\u00a0")}, "must be ':' and JSON white space"),
        ({"separators": ("," + " " * 64, ":")}, "a separator of 65 characters: 64 are the most"),
        ({"indent": -1}, "indent=-1 must be from 0 to 64"),
        ({"indent": 65}, "indent=65 must be from 0 to 64"),
        ({"indent": 2, "whitespace": "compact"}, "whitespace='compact' and indent both say"),
        ({"separators": (",", ":"), "whitespace": " ?"}, "and separators both say"),
    ],
)
def test_settings_that_are_none(options: dict[str, Any], message: str) -> None:
    for make in (json_schema, json_value, json_object):
        with pytest.raises(ConstraintError) as caught:
            make(*([True] if make is json_schema else []), **options)
        assert message in str(caught.value)


@pytest.mark.parametrize(
    "options",
    [{"indent": "2"}, {"separators": ", "}, {"separators": (",",)}, {"separators": (1, 2)}, {"indent": 2.5}],
)
def test_arguments_of_other_types(options: dict[str, Any]) -> None:
    with pytest.raises(ArgumentTypeError):
        json_schema(True, **options)


# --- sizes --------------------------------------------------------------------------------------------


def test_plain_texts_have_few_states() -> None:
    sizes = {
        spelling: json_schema({"type": "string"}, spelling=spelling).size().states  # type: ignore[union-attr]
        for spelling in SPELLINGS
    }
    assert sizes["plain"] < sizes["any"]


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_strings_that_must_differ_are_compared_by_value(spelling: Spelling) -> None:
    constraint = json_schema(
        {"type": "array", "items": {"type": "string", "pattern": "^[aé]{1,2}$"}, "uniqueItems": True},
        spelling=spelling,
    )
    words = ["a", "é", "aa", "aé", "éa", "éé"]
    text = json.dumps(words, ensure_ascii=spelling == "ascii")
    assert constraint.accepts(text) and not constraint.accepts(text[:-1] + ', "a"]')
    assert (
        constraint.next_bytes(text[:-1].encode())[0].strip() == b"]"
        or b"," not in constraint.next_bytes(text[:-1].encode())[0]
    )


def test_unsupported_stays_unsupported() -> None:
    for spelling in SPELLINGS:
        with pytest.raises(UnsupportedSchemaError):
            json_schema({"type": "number", "multipleOf": 123456789}, spelling=spelling)
