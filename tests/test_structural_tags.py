"""Structural tags against their definition (``reference.structural_tags``), on all words of small worlds, and what is
refused with which pointer."""

from __future__ import annotations

import json
import random
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from reference.random_tags import RandomTags
from reference.structural_tags import SPECIAL, World, all_words
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
    for seed in range(150 * part, 150 * (part + 1)):
        format = RandomTags(random.Random(seed), "ab").format(3)
        try:
            found = of(format)
        except StructuralTagError:
            continue
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
                        world._until(each, [first, second], excludes, world.longest) for each in (first, second)
                    ]
                    assert not all(blocked)
                    continue
                made += 1
                assert {word for word in world.texts if found.accepts(word)} == world.words(format), format
    assert made > 200


NAMES = {"s": 4, "ab": 5}
CHARACTERS = {"s": SPECIAL[0], "ab": SPECIAL[1]}
SMALL = Vocabulary([b"a", b"b", b"s", b"", b"", b""], 3, NAMES)
IDS = {"a": 0, "b": 1, "s": 2, SPECIAL[0]: 4, SPECIAL[1]: 5}


def reader(mode: str) -> tuple[Callable[[str], Sequence[str]], Callable[[str], Sequence[str]]]:
    """How strings are read in a world, and which spellings free text must not hold."""

    def read(text: str) -> list[str]:
        ways = [""]
        for number, piece in enumerate(re.split("(ab|s)", text)):
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
    for seed in range(120):
        format = RandomTags(random.Random(seed), "ab", ("s", "ab")).format(3)
        try:
            found = structural_tag(format, vocabulary=SMALL, special_tokens=mode)
        except StructuralTagError:
            continue
        wanted = world.words(format)
        made += 1
        special += any(set(word) & set(SPECIAL) for word in wanted)
        assert accepted(found, words) == wanted, format
    assert made > 50
    assert (special > 15) == (mode != "text")


@pytest.mark.parametrize("control_tokens", [False, True])
def test_formats_that_speak_of_tokens(control_tokens: bool) -> None:
    read, avoided = reader("token")
    world = World("ab", 4, read, avoided, CHARACTERS, control_tokens)
    words = list(all_words("ab" + SPECIAL[:2], 4))
    made = 0
    for seed in range(200):
        generator = RandomTags(random.Random(seed), "ab", ("s", "ab"), token_formats=True)
        format = generator.format(3)
        try:
            found = structural_tag(format, vocabulary=SMALL, control_tokens=control_tokens)
        except StructuralTagError:
            continue
        made += 1
        assert accepted(found, words) == world.words(format), format
    assert made > 90
