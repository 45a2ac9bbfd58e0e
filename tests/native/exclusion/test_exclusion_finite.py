"""Names and items out of finite sets, which may run out: against the same as options that automata remember."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.worlds.exclusion import TOKENS, TYPED, VOCABULARY, allowed, compact, listed, text_of

from tokenfst import Vocabulary, allocate_token_bitmask, compile
from tokenfst.automata.json_schema.json_schema import json_schema
from tokenfst.automata.json_schema.writing import distinct as schema_fresh
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import EmptyLanguageError, UnsupportedSchemaError


def test_names_of_few_words_are_listed_and_may_run_out() -> None:
    """When all are used, no comma leads into a dead end."""
    schema = {
        "patternProperties": {"^[ab]$": {"const": None}},
        "additionalProperties": False,
        "type": "object",
    }
    constraint = compact(schema)
    assert constraint.next_bytes(b'{"b":null')[0] == b",}"
    assert constraint.next_bytes(b'{"b":null,"a":null')[0] == b"}"
    assert constraint.next_bytes(b'{"b":null,"')[0] == b"\\a"


@contextmanager
def nothing_listed() -> Iterator[None]:
    """Names of patterns are told apart by the sequence, however few they are."""
    before = schema_fresh.MOST_LISTED
    schema_fresh.MOST_LISTED = 0
    schema_fresh._counts.clear()
    try:
        yield
    finally:
        schema_fresh.MOST_LISTED = before
        schema_fresh._counts.clear()


def made(schema: Any, **options: Any) -> Any:
    try:
        return compact(schema, **options)
    except EmptyLanguageError:
        return None


def same_masks(one: Any, other: Any, rng: random.Random, walks: int, steps: int) -> int:
    """Walks two automata along random tokens of both; returns how many masks were compared."""
    compared = 0
    for _ in range(walks):
        ours, theirs = one.matcher(), other.matcher()
        for _ in range(steps):
            found = allowed(ours)
            assert found == allowed(theirs), text_of(ours)
            compared += 1
            typed = sorted(found & set(TYPED)) or sorted(found)
            old = [token for token in typed if token in set(ours.tokens)]
            token = rng.choice(old if old and rng.random() < 0.5 else typed)
            assert ours.accept_token(token) and theirs.accept_token(token)
            if ours.is_terminated():
                break
    return compared


VALUES = [{"const": 0}, {"enum": [0, {}]}, {"enum": [[], {"a": 0}]}]
PATTERNS = ["^[ab]$", "^a?b?$", "^[ab]{1,2}$", "^(a|bb|aab)$", "^(|0|aa)$"]


@settings(max_examples=100, deadline=None)
@given(
    st.dictionaries(st.sampled_from(PATTERNS), st.sampled_from(VALUES), min_size=1, max_size=2),
    st.dictionaries(st.sampled_from(["a", "b", "0b"]), st.sampled_from(VALUES), max_size=2),
    st.sets(st.sampled_from(["a", "aa", "0b"]), max_size=1),
    st.integers(0, 3),
    st.integers(0, 6),
    st.booleans(),
    st.randoms(use_true_random=False),
)
def test_names_are_told_apart_as_listed_ones_are(
    patterns: dict[str, Any],
    properties: dict[str, Any],
    required: set[str],
    low: int,
    more: int,
    any_order: bool,
    rng: random.Random,
) -> None:
    schema = {
        "type": "object",
        "patternProperties": patterns,
        "properties": properties,
        "required": sorted(required),
        "minProperties": low,
        **({"maxProperties": low + more} if more < 6 else {}),
        "additionalProperties": False,
    }
    options = {"property_order": "any"} if any_order else {}
    wanted = made(schema, **options)
    with nothing_listed():
        found = made(schema, **options)
    assert (found is None) == (wanted is None)
    if found is not None:
        same_masks(compile(found, VOCABULARY), compile(wanted, VOCABULARY), rng, 4, 25)


@pytest.mark.parametrize("pattern", ["[ab]?", "a{0,3}", "b|ab?|aa"])
def test_items_are_told_apart_as_listed_ones_are(pattern: str) -> None:
    words = [
        word for word in ("", "a", "b", "aa", "ab", "aaa") if json_string(pattern).accepts(json.dumps(word))
    ]
    for low in range(len(words) + 2):
        array = {"type": "array", "uniqueItems": True, "minItems": low}
        by_pattern = {"anyOf": [{"type": "string", "pattern": f"^({pattern})$"}, {"enum": [None, 0]}]}
        by_list = {"enum": [*words, None, 0]}
        wanted = made({**array, "items": by_list})
        found = made({**array, "items": by_pattern})
        assert (found is None) == (wanted is None) == (low > len(words) + 2)
        if found is not None:
            same_masks(compile(found, VOCABULARY), compile(wanted, VOCABULARY), random.Random(low), 6, 25)


def json_string(pattern: str) -> Any:
    return json_schema({"type": "string", "pattern": f"^({pattern})$"})


@pytest.mark.parametrize("content", ["a|b|ab|bb", "a{1,4}", "(a|b)(a|b)"])
def test_all_texts_of_a_finite_set(content: str) -> None:
    """Every prefix of every text, and no other, in the order of an exhaustive list."""
    words = [
        f"{a}{b}{c}{d}" for a in ("", *"ab") for b in ("", *"ab") for c in ("", *"ab") for d in ("", *"ab")
    ]
    inside = sorted({word for word in words if json_string(content).accepts(f'"{word}"')})
    texts = {
        "[" + ",".join(f'"{word}"' for word in order) + "]"
        for length in range(len(inside) + 1)
        for order in permutations(inside, length)
    }
    prefixes = {text[:end] for text in texts for end in range(len(text) + 1)}
    matcher = compile(listed(content, fewest=1), VOCABULARY).matcher()
    rng = random.Random(content)
    for _ in range(60):
        matcher.reset()
        while True:
            before = text_of(matcher).decode()
            wanted = {
                token
                for token in range(len(TOKENS) - 1)
                if TOKENS[token].isascii() and before + TOKENS[token].decode() in prefixes
            }
            found = {token for token in allowed(matcher) if b"\\" not in TOKENS[token]}
            assert found == wanted | ({len(TOKENS) - 1} if before in texts else set()), before
            if not wanted:
                break
            assert matcher.accept_token(rng.choice(sorted(wanted)))


def test_many_names_run_out(tekken: Vocabulary) -> None:
    schema = {
        "type": "object",
        "patternProperties": {"^[0-9a-f]{2}[01]$": {"const": None}},
        "additionalProperties": False,
    }
    names = [f"{first:02x}{second}" for first in range(256) for second in (0, 1)]
    random.Random(0).shuffle(names)
    automaton = compile(json_schema({**schema, "minProperties": 512}, whitespace="compact"), tekken)
    matcher = automaton.matcher()
    text = "{" + ",".join(f'"{name}":null' for name in names[:-1])
    assert matcher.accept_tokens(tekken.encode_greedy(text.encode()))
    assert {tekken.token_bytes(token)[:1] for token in mask_of(matcher, tekken)} == {b","}
    assert matcher.accept_tokens(tekken.encode_greedy(b',"'))
    begun = {tekken.token_bytes(token).decode() for token in mask_of(matcher, tekken)}
    assert begun and all(f'{names[-1]}":null}}'.startswith(each) for each in begun if each[0] != "\\")
    matcher.reset()
    assert matcher.accept_tokens(tekken.encode_greedy(f'{text},"{names[-1]}":null'.encode()))
    assert {tekken.token_bytes(token) for token in mask_of(matcher, tekken)} == {b"}"}
    with pytest.raises(EmptyLanguageError, match="minProperties"):
        json_schema({**schema, "minProperties": 513})


def mask_of(matcher: Any, vocabulary: Vocabulary) -> list[int]:
    bitmask = allocate_token_bitmask(1, len(vocabulary))
    matcher.fill_next_token_bitmask(bitmask, 0)
    bits = np.unpackbits(np.asarray(bitmask).view(np.uint8), bitorder="little")
    return [int(token) for token in np.flatnonzero(bits)]


@pytest.mark.parametrize(
    "schema",
    [
        {"not": {"patternProperties": {"^[0-9]{3}$": {"type": "integer"}}}},
        {
            "patternProperties": {"^[0-9]{3}$": {"type": "array", "items": False, "minItems": 1}},
            "additionalProperties": False,
            "minProperties": 3,
        },
    ],
)
def test_what_may_run_out_where_it_is_needed_is_refused(schema: Any) -> None:
    with pytest.raises((UnsupportedSchemaError, EmptyLanguageError)) as error:
        json_schema({"type": "object", **schema})
    assert "#" in str(error.value)


@pytest.mark.parametrize("held", [{"type": "boolean"}, {}])
def test_a_member_out_of_many_names_is_there_as_soon_as_one_of_them_is(held: Any) -> None:
    """Where every member of such a name is the one that is asked for, others cannot use the names up before."""
    schema = {
        "type": "object",
        "patternProperties": {"^[ab]$": held, "^x": {"type": "null"}},
        "additionalProperties": False,
        "not": {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False},
    }
    with nothing_listed():
        found = compact(schema)
        members = {"a": "true", "b": "false", "x": "null", "xy": "null"}
        for count in range(5):
            for names in permutations(members, count):
                text = "{" + ",".join(f'"{name}":{members[name]}' for name in names) + "}"
                assert found.accepts(text) is bool({"a", "b"} & set(names)), text
                assert found.next_bytes(text[:-1].encode())[0], text
        assert not found.accepts('{"a":true,"a":true}')


def test_artifacts_know_when_names_run_out(tmp_path: Path) -> None:
    with nothing_listed():
        found = compact(
            {"type": "object", "patternProperties": {"^[ab]$": {"const": 0}}, "additionalProperties": False}
        )
    lazy = compile(found, VOCABULARY)
    lazy.expand().save(tmp_path / "names.safetensors")
    loaded = TokenAutomaton.load(tmp_path / "names.safetensors", VOCABULARY)
    assert same_masks(loaded, lazy, random.Random(0), 10, 30) > 100
    matcher = loaded.matcher()
    assert matcher.accept_tokens(VOCABULARY.encode_greedy(b'{"b":0,"a":0'))
    assert not any(TOKENS[token].startswith(b",") for token in allowed(matcher))
