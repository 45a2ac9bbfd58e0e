"""Texts of schemas within a limit of tokens: what masks allow is every token sequence that fits, and no other.

The twin walks all token sequences whose texts the constraint still knows as beginnings.
"""

from __future__ import annotations

import json
import random
import warnings
from typing import Any

import numpy as np
import pytest

from tokenfst import Matcher, Vocabulary, compile, json_schema
from tokenfst.errors import ConstraintError, TokenLimitError, UnspellableWarning

jsonschema = pytest.importorskip("jsonschema", reason="the oracle is jsonschema")
_SHARED = [
    b'"',
    b"a",
    b"b",
    b",",
    b"1",
    b" ",
    b"\n",
    b'"a"',
    b'a"',
    b'","',
    b'""',
    b"\\u00",
    b"61",
    b"\xc3",
    b"\xa9",
]
_OF_ARRAYS = [b"[", b"]", b"1,1", b"1]", b'a","a', b'"]', b'["', b"[1", b"[]", b"],["]
_OF_OBJECTS = [b"{", b"}", b":", b'": ', b'":1', b'":1}', b'{"', b'{"a', b'a":1', b'1,"a', b"{}", b"null"]
_MOST = 1500
"""Token sequences of a world, at most."""

Sequence = tuple[int, ...]


def random_schema(rng: random.Random) -> dict[str, Any]:
    """An array or object; in most, strings or items must differ."""
    items: list[Any] = [{"type": "string", "maxLength": 1}, {"type": "string"}, {"enum": ["a", "é", 1, 11]}]
    items += [
        {"type": "integer", "minimum": 0, "maximum": 11},
        {"type": ["string", "integer"]},
        {"type": "number"},
    ]
    if rng.random() < 0.6:
        found = {"type": "array", "items": rng.choice(items), "uniqueItems": rng.random() < 0.8}
        return found | rng.choice([{}, {"minItems": 2}, {"maxItems": 2}, {"contains": {"const": 1}}])
    values = rng.choice([{"const": 1}, {"type": "null"}, {"enum": [1, 11]}])
    found = {"type": "object", "additionalProperties": values}
    more: list[Any] = [{}, {"minProperties": 2}, {"maxProperties": 1}, {"propertyNames": {"pattern": "^a*$"}}]
    return found | rng.choice([*more, {"properties": {"a": {"const": 1}}, "required": ["a"]}])


def random_options(rng: random.Random) -> dict[str, Any]:
    """Every way to spell and lay out the texts."""
    layouts: list[dict[str, Any]] = [{"whitespace": each} for each in ("compact", "flexible", "pretty")]
    layouts += [{"separators": (",", ":")}, {"separators": (", ", ": ")}, {"indent": 0}, {"indent": 1}]
    return {
        "spelling": rng.choice(["plain", "ascii", "any"]),
        "surrounding": rng.choice(["none", "flexible"]),
        "property_order": rng.choice(["schema", "any"]),
        "repeated_names": rng.choice(["forbid", "allow"]),
        **rng.choice(layouts),
    }


def all_sequences(constraint: Any, tokens: list[bytes], longest: int) -> set[Sequence] | None:
    """All sequences of at most ``longest`` tokens that spell a text; None if they are too many."""
    found: set[Sequence] = set()
    pending: list[tuple[Sequence, bytes]] = [((), b"")]
    count = 0
    while pending:
        count += 1
        if count > _MOST:
            return None
        sequence, text = pending.pop()
        if constraint.accepts(text):
            found.add(sequence)
        if len(sequence) == longest:
            continue
        for token, spelled in enumerate(tokens):
            if spelled and constraint.viable_prefix(text + spelled) == len(text) + len(spelled):
                pending.append(((*sequence, token), text + spelled))
    return found


def allowed(matcher: Matcher, size: int) -> set[int]:
    words = np.zeros((1, -(-size // 32)), np.int32)
    matcher.fill_next_token_bitmask(words, 0)
    return set(np.flatnonzero(np.unpackbits(words.view(np.uint8), bitorder="little", count=size)).tolist())


@pytest.mark.parametrize("seed", range(6))
def test_masks_allow_the_sequences_that_fit(seed: int) -> None:
    rng = random.Random(seed)
    worlds = sequences = 0
    while worlds < 25:
        schema, options = random_schema(rng), random_options(rng)
        pieces = [*_SHARED, *(_OF_ARRAYS if schema["type"] == "array" else _OF_OBJECTS)]
        tokens = [*rng.sample(pieces, rng.randrange(7, 16)), b""]
        end = len(tokens) - 1
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UnspellableWarning)
                constraint = json_schema(schema, **options)
                automaton = compile(constraint, Vocabulary(tokens, end))
        except ConstraintError:  # no text of it can be spelled
            continue
        longest = rng.randrange(3, 7)
        fitting = all_sequences(constraint, tokens, longest)
        if not fitting:
            continue
        worlds += 1
        sequences += len(fitting)
        for sequence in fitting:
            value = json.loads(b"".join(tokens[token] for token in sequence))
            assert jsonschema.Draft202012Validator(schema).is_valid(value)
        for limit in range(1, longest + 1):
            fits = {sequence for sequence in fitting if len(sequence) <= limit}
            if not fits:
                with pytest.raises(TokenLimitError):
                    automaton.matcher(max_new_tokens=limit)
                continue
            begun = {sequence[:size] for sequence in fits for size in range(min(len(sequence) + 1, limit))}
            for sequence in begun:
                matcher = automaton.matcher(max_new_tokens=limit)
                assert all(map(matcher.accept_token, sequence))
                wanted = {each[len(sequence)] for each in fits if each[: len(sequence)] == sequence != each}
                wanted |= {end} if sequence in fits else set()
                assert allowed(matcher, len(tokens)) == wanted, (schema, options, tokens, limit, sequence)
    assert sequences > 100
