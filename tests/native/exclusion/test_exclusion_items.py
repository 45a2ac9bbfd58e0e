"""Items of any kind that must differ (``uniqueItems``), against all texts that the ``jsonschema`` library allows."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference.json.unique_items import prefixes, texts, valid, without_unique
from tokenfst import Vocabulary, allocate_token_bitmask, compile
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import UnsupportedSchemaError


def members(*required: str, **properties: Any) -> Any:
    return {
        "type": "object",
        "properties": properties,
        "required": list(required),
        "additionalProperties": False,
    }


def different(items: Any, **more: Any) -> Any:
    return {"type": "array", "items": items, "uniqueItems": True, **more}


BOOLEAN = {"type": "boolean"}
SMALL = {"type": "integer", "minimum": 0, "maximum": 5}
MIXED = {
    "anyOf": [
        {"type": "integer", "minimum": -2, "maximum": 11},
        members(a={"const": 1}),
        {"type": "string", "pattern": "^(a|b[ab]?)$"},
    ]
}
WORLDS = [
    different(members("a", a=BOOLEAN), maxItems=3),
    different(members(a=BOOLEAN), maxItems=4),
    different(members(a={"enum": [0, 1]}, b={"enum": ["x", "xy"]}), maxItems=3),
    different(members(a={"const": 0}, b={"const": 0}, c={"const": 0}), minItems=2, maxItems=2),
    different(different(BOOLEAN, maxItems=2), maxItems=3),
    different({"type": "array", "items": BOOLEAN, "maxItems": 2}, maxItems=3),
    different({"type": "array", "items": {"enum": [1, 11]}, "maxItems": 2}, maxItems=2),
    different({"type": "integer", "minimum": 0, "maximum": 12}, maxItems=3),
    different({"anyOf": [BOOLEAN, {"type": "null"}, members(a={"const": 1}), {"enum": ["a", "b"]}]}, maxItems=3),
    different(MIXED, maxItems=2),
    {
        "type": "array",
        "prefixItems": [BOOLEAN, members(a=BOOLEAN)],
        "items": {"anyOf": [BOOLEAN, members(a=BOOLEAN)]},
        "uniqueItems": True,
        "maxItems": 4,
    },
    different(
        {"type": "object", "patternProperties": {"^[ab]$": {"const": 0}}, "additionalProperties": False},
        maxItems=3,
    ),
    {
        "anyOf": [
            different(members(a=BOOLEAN), maxItems=2),
            {"type": "array", "items": members(a=BOOLEAN), "minItems": 3, "maxItems": 3},
        ]
    },
    different(members("k", k=different(members(a={"const": 1}, b={"const": 2}), maxItems=2)), maxItems=2),
    different(members(a=BOOLEAN), minItems=3, maxItems=3),
    members(x=different(members(a=BOOLEAN), maxItems=2), y=different(members(b=BOOLEAN), maxItems=2)),
    different(SMALL, maxItems=4, contains={"minimum": 2}),
    different(SMALL, maxItems=4, contains={"minimum": 2}, minContains=2, maxContains=3),
    different({"enum": [0, 1, 2, "a"]}, maxItems=4, contains={"enum": [1, 2]}, minContains=2),
    different(
        {"enum": [0, 1, 2, "a"]},
        minItems=2,
        maxItems=3,
        allOf=[{"contains": {"enum": [1, 2]}}, {"contains": {"enum": [0, 1]}}],
    ),
    different(SMALL, minItems=2, maxItems=4, contains={"minimum": 2}, minContains=0, maxContains=1),
]  # fmt: skip


def bits_of(matcher: Any, vocabulary: Vocabulary) -> list[int]:
    mask = allocate_token_bitmask(1, len(vocabulary))
    matcher.fill_next_token_bitmask(mask, 0)
    return np.flatnonzero(np.unpackbits(np.asarray(mask).view(np.uint8), bitorder="little")).tolist()


def vocabulary_of(found: list[bytes], rng: random.Random) -> Vocabulary:
    """All bytes, and some parts of texts."""
    parts: set[bytes] = set()
    for _ in range(150):
        text = rng.choice(found)
        begin = rng.randrange(len(text))
        parts.add(text[begin : begin + rng.randrange(2, 14)])
    tokens = [
        *(bytes((byte,)) for byte in range(256)),
        *sorted(part for part in parts if len(part) > 1),
        b"",
    ]
    return Vocabulary(tokens, len(tokens) - 1)


def walk_to(matcher: Any, text: bytes, vocabulary: Vocabulary, rng: random.Random) -> None:
    matcher.reset()
    place = 0
    while place < len(text):
        ways = [
            token
            for token in range(256, len(vocabulary) - 1)
            if text.startswith(vocabulary.token_bytes(token), place)
        ]
        token = rng.choice(ways) if ways and rng.random() < 0.5 else text[place]
        assert matcher.accept_token(token), (text, place)
        place += len(vocabulary.token_bytes(token))


@pytest.mark.parametrize("order", ["schema", "any"])
@pytest.mark.parametrize("schema", WORLDS, ids=lambda schema: json.dumps(schema)[:60])
def test_masks_are_those_of_all_valid_texts(schema: Any, order: Any) -> None:
    every = texts(json_schema(without_unique(schema), whitespace="compact", property_order=order))
    allowed = set(valid(schema, every))
    begun = prefixes(list(allowed))
    rng = random.Random(len(every))
    vocabulary = vocabulary_of(every, rng)
    matcher = compile(json_schema(schema, whitespace="compact", property_order=order), vocabulary).matcher()
    end = len(vocabulary) - 1
    for before in rng.sample(sorted(begun), min(len(begun), 400)):
        walk_to(matcher, before, vocabulary, rng)
        wanted = [token for token in range(end) if before + vocabulary.token_bytes(token) in begun]
        assert bits_of(matcher, vocabulary) == wanted + [end] * (before in allowed), before


# --- equal values, however they are written -----------------------------------------------------------

NUMBERS = st.one_of(st.integers(-20, 20), st.sampled_from([0.5, 100, 1e20, -2.5]))
JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, st.text("aé\n", max_size=2)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.sampled_from("abé"), inner, max_size=3)
    ),
    max_leaves=6,
)


def written(value: Any, rng: random.Random) -> str:
    """A text of a value, one of many."""
    blank = rng.choice(["", " "])
    if isinstance(value, dict):
        names = rng.sample(list(value), len(value))
        inner = ",".join(f"{blank}{written(name, rng)}:{blank}{written(value[name], rng)}" for name in names)
        return f"{{{inner}{blank}}}" if value else "{}"
    if isinstance(value, list):
        return "[" + f",{blank}".join(written(each, rng) for each in value) + (f"{blank}]" if value else "]")
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=rng.random() < 0.5)
    if isinstance(value, int | float) and not isinstance(value, bool):
        if value == 0:
            return rng.choice(["0", "-0", "0.00"])
        ways = [f"{value:.2f}", f"{value:.0e}" if float(f"{value:.0e}") == value else f"{value:.1f}"]
        return rng.choice([*ways, str(int(value)) if value == int(value) else str(value)])
    return json.dumps(value)


def key(value: Any) -> Any:
    """Equal for equal JSON values."""
    if isinstance(value, dict):
        return "object", sorted((name, key(each)) for name, each in value.items())
    if isinstance(value, list):
        return "array", [key(each) for each in value]
    number = isinstance(value, int | float) and not isinstance(value, bool)
    return (
        ("number", repr(float(value)))
        if number and value
        else ("number", "0")
        if number
        else ("", repr(value))
    )


@given(st.lists(JSON, max_size=4), st.integers(0, 9), st.booleans())
@settings(max_examples=300, deadline=None)
def test_items_are_compared_as_values(items: list[Any], seed: int, again: bool) -> None:
    rng = random.Random(seed)
    if again and items:
        items.insert(rng.randrange(len(items) + 1), rng.choice(items))
    text = "[" + ", ".join(written(item, rng) for item in items) + "]"
    differ = len({repr(key(item)) for item in items}) == len(items)
    assert EVERY.accepts(text)
    assert ANY.accepts(text) == differ, text


EVERY = json_schema({"type": "array"}, spelling="any", whitespace="flexible")
ANY = json_schema({"type": "array", "uniqueItems": True}, spelling="any", whitespace="flexible")


@pytest.mark.parametrize(
    ("one", "other", "equal"),
    [
        ("1", "1.0", True),
        ("10", "1.0e1", True),
        ("100", "1e+2", True),
        ("100", "1e+02", True),
        ("0.5", "5e-1", True),
        ("0", "-0.0", True),
        ("0", "0e5", True),
        ("1", "-1", False),
        ("1", "10", False),
        ("10", "1", False),
        ("0.1", "0.01", False),
        ("1e400", "1e401", False),
        ("12345678901234567890", "12345678901234567891", False),
        ("1", '"1"', False),
        ("1", "true", False),
        ("0", "false", False),
        ("null", "[]", False),
        ("[]", "{}", False),
        ("[1,2]", "[2,1]", False),
        ('{"a":1,"b":[2]}', '{"b":[2.0],"a":1}', True),
        ('{"\\u0061":null}', '{"a":null}', True),
        ('"\\ud83d\\ude00"', '"😀"', True),
        ('{"a":1}', '{"a":1,"b":1}', False),
        ('{"a":1,"b":1}', '{"a":1}', False),
    ],
)
def test_equal_values(one: str, other: str, equal: bool) -> None:
    """Bare, and in an array with others."""
    for before, after in ((one, other), (other, one)):
        assert ANY.accepts(f"[{before},{after}]") is not equal
        assert ANY.accepts(f"[3,{before}, 4,{after} ]") is not equal
        assert ANY.accepts(f"[[{before},7],[{after},7]]") is not equal
        assert ANY.accepts(f"[[{before},7],[{after},8]]")


def test_a_number_that_can_only_become_a_known_one_is_left_out() -> None:
    whole = json_schema(
        different({"type": "number", "multipleOf": 1, "minimum": 0, "maximum": 12}), whitespace="compact"
    )
    assert whole.next_bytes(b"[1,2")[0] == b",.]"
    assert whole.next_bytes(b"[1,1")[0] == b"012"
    assert whole.next_bytes(b"[1,10")[0] == b",.]"
    assert whole.next_bytes(b"[1,10,11,1")[0] == b"2"
    assert b"1" not in whole.next_bytes(b"[1,10,11,12,")[0]
    assert whole.next_bytes(b"[0,1,2,3,4,5,6,7,8,9,10,11,12")[0] == b".]"


# --- through matchers ---------------------------------------------------------------------------------

WORLD = different(members(a={"enum": [0, 1]}, b={"enum": ["x", "xy"]}), maxItems=3)


def test_history_forks_and_artifacts(tmp_path: Path) -> None:
    constraint = json_schema(WORLD, whitespace="compact")
    every = texts(json_schema(without_unique(WORLD), whitespace="compact"))
    rng = random.Random(3)
    vocabulary = vocabulary_of(every, rng)
    lazy = compile(constraint, vocabulary)
    path = tmp_path / "items.tokenfst"
    compile(constraint, vocabulary).expand().save(path)
    loaded = TokenAutomaton.load(path, vocabulary)
    for text in rng.sample(valid(WORLD, every), 12):
        matcher, other = lazy.matcher(), loaded.matcher()
        masks = []
        for byte in text:
            masks.append(bits_of(matcher, vocabulary))
            assert bits_of(other, vocabulary) == masks[-1]
            assert matcher.accept_token(byte) and other.accept_token(byte)
        fork = matcher.fork()
        for mask in reversed(masks):
            matcher.rollback(1)
            assert bits_of(matcher, vocabulary) == mask
        assert fork.is_accepting() and bits_of(fork, vocabulary)[-1] == len(vocabulary) - 1


def test_a_budget_of_tokens_is_kept() -> None:
    schema = different(members("a", a={"type": "string", "maxLength": 3}), minItems=3)
    constraint = json_schema(schema, whitespace="compact")
    vocabulary = vocabulary_of([b'[{"a":"xy"},{"a":""},{"a":"x"}]'], random.Random(0))
    automaton = compile(constraint, vocabulary)
    end = len(vocabulary) - 1
    for seed in range(12):
        rng = random.Random(seed)
        matcher = automaton.matcher(max_new_tokens=34)
        while not matcher.is_terminated() and matcher.max_tokens_left:
            found = [token for token in bits_of(matcher, vocabulary) if token < 128 or token > 255]
            token = end if end in found and rng.random() < 0.3 else rng.choice(found)
            assert matcher.accept_token(token)
        assert len(matcher.tokens) <= 34
        text = b"".join(vocabulary.token_bytes(token) for token in matcher.tokens)
        assert constraint.accepts(text)


def test_the_shortest_text_has_items_that_differ() -> None:
    schema = different(members("a", a={"enum": ["x", "yy"]}), minItems=2)
    assert json_schema(schema, whitespace="compact").shortest() in (
        b'[{"a":"x"},{"a":"yy"}]',
        b'[{"a":"yy"},{"a":"x"}]',
    )


# --- what is refused ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "schema",
    [
        different(members(a=BOOLEAN), minItems=4),
        different({"type": "integer", "minimum": 1, "maximum": 3}, minItems=4),
        {
            "type": "array",
            "uniqueItems": True,
            "items": {"type": "integer"},
            "allOf": [
                {"contains": {"minimum": 2}, "minContains": 2},
                {"contains": {"maximum": 3}, "minContains": 2},
            ],
        },
    ],
    ids=json.dumps,
)
def test_what_may_run_out_is_refused_with_its_place(schema: Any) -> None:
    with pytest.raises(UnsupportedSchemaError) as found:
        json_schema(schema)
    assert found.value.pointer == "#/uniqueItems"


def test_repeated_names_leave_nothing_to_compare() -> None:
    with pytest.raises(UnsupportedSchemaError, match="repeated_names"):
        json_schema(different({"type": "object"}), repeated_names="allow")


def test_spellings_of_a_string_are_one_place_of_a_search() -> None:
    """Whether another item is left is asked of the value of a string, not of each of its 2 ** 40 spellings."""
    one = {
        "type": "object",
        "properties": {"a": {"const": 1}},
        "required": ["a"],
        "additionalProperties": False,
    }
    schema = {"type": "array", "uniqueItems": True, "items": {"anyOf": [one, {"const": "a" * 40}]}}
    constraint = json_schema(schema, spelling="any", whitespace="compact")
    text = b'[{"a":1},"' + b"a" * 40 + b'"'
    assert constraint.next_bytes(text) == (b"]", False)
