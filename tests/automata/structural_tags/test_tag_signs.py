"""Sentinels in the texts of a tag: without them, the texts are the same."""

from __future__ import annotations

import random
from functools import cache

import pytest
from support.worlds.tag_worlds import built

from reference.tools.random_tags import RandomTags
from reference.tools.structural_tags import World
from tokenfst import Grammar, Language, structural_tag
from tokenfst.automata.structural_tags.building import Builder
from tokenfst.automata.structural_tags.documents.reading import read_document
from tokenfst.automata.structural_tags.schemas import Schemas
from tokenfst.automata.structural_tags.sentinels import ElementBegin, ElementEnd, Sentinels, TagBegin, TagEnd
from tokenfst.automata.structural_tags.special_tokens import Delimiters
from tokenfst.automata.structural_tags.token_text import TokenText

FIRST = 0xF8


def build_with_sentinels(format: object) -> tuple[Language | Grammar, Sentinels]:
    sentinels, delimiters = Sentinels(), Delimiters(None, "text")
    builder = Builder(
        delimiters, Schemas(sentinels=sentinels), TokenText(delimiters, control_tokens=False), None
    )
    return builder.finish(builder.build(read_document(format)), "with sentinels"), sentinels


def readings(made: Language | Grammar, word: bytes) -> int:
    """In how many ways sentinels can be put into a word, up to two."""

    @cache
    def follow(prefix: bytes) -> tuple[bytes, bool]:
        return made.next_bytes(prefix)

    pending, found = [(b"", 0)], 0
    while pending and found < 2:
        prefix, at = pending.pop()
        live, ends = follow(prefix)
        found += ends and at == len(word)
        pending += [(prefix + bytes([byte]), at) for byte in live if byte >= FIRST]
        if at < len(word) and word[at] in live:
            pending.append((prefix + word[at : at + 1], at + 1))
    return found


@pytest.mark.parametrize("part", range(2))
def test_texts_are_the_same_without_signs(part: int) -> None:
    world = World("ab", 5)
    made = 0
    seeds = range(60 * part, 60 * (part + 1))
    formats = (RandomTags(random.Random(seed), "ab").format(2) for seed in seeds)
    for format, plain in built(formats, structural_tag):
        made += 1
        with_sentinels, _ = build_with_sentinels(format)
        for word in world.texts:
            assert (readings(with_sentinels, word.encode()) > 0) == plain.accepts(word), (format, word)
    assert made > 25


def test_signs_are_told_apart_and_never_text() -> None:
    sentinels = Sentinels()
    for number in range(300):
        sentinels.opened(f"#/{number}")
    assert sentinels.opened("#/7") is sentinels.opened("#/7")
    (
        sentinels.ended(ElementEnd("json")),
        sentinels.ended(ElementEnd("string")),
        sentinels.ended(ElementEnd("array")),
    )
    codes = list(sentinels.meanings)
    assert len(set(codes)) == len(codes) == 305
    for code in codes:
        assert min(code) >= FIRST and code[-1] >= 0xFC and all(byte < 0xFC for byte in code[:-1])
    kinds = {type(meaning) for meaning in sentinels.meanings.values()}
    assert kinds == {TagBegin, TagEnd, ElementBegin, ElementEnd}


def test_values_of_parameters_have_signs() -> None:
    schema = {
        "type": "object",
        "properties": {"a": {"enum": ["12", 5]}, "b": {"type": ["string", "integer"]}},
    }
    made, sentinels = build_with_sentinels(
        {"type": "json_schema", "json_schema": schema, "style": "qwen_xml"}
    )
    ends = [meaning for meaning in sentinels.meanings.values() if isinstance(meaning, ElementEnd)]
    assert sorted(each.kind for each in ends) == ["json", "string", "string"]
    listed = next(each for each in ends if each.strings is not None)
    assert listed.allows("12") and not listed.allows("5")
    one = "<parameter={}>{}</parameter>"
    assert readings(made, one.format("a", "12").encode()) == 1
    assert readings(made, one.format("a", "5").encode()) == 1
    assert readings(made, one.format("b", "5").encode()) == 2
    assert readings(made, one.format("b", "x").encode()) == 1
    assert readings(made, one.format("a", "7").encode()) == 0
