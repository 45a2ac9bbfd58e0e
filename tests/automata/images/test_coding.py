"""What is spelled leaf by leaf is what the general mapping spells."""

from __future__ import annotations

import pytest

import tokenfst
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.images.coding import Code
from tokenfst.automata.images.spellings import _Mapper
from tokenfst.automata.json_values.strings import SPELLINGS, Spelling, json_code
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget

PATTERNS = (
    *(r"[a-z]+", r"", r"a|bc|bd|", r"(ab?){2,5}c*", r"\"quoted\" [\\/]", r"\n\t|\x01", r"é[^a]?", r"😀|a😀"),
    *(r"[\w-]{1,64}(\.[\w-]+)*", r"(foo|foobar|fo)(\d{3}|x)", r".*", r"a&b", r"[\x00-\x1f]"),
)


def image(content: Language, code: Code, *, plainly: bool) -> Language:
    mapper = _Mapper(content.expr, code, Deadline(Budget(), "a test"))
    assert (content.expr in mapper.images) is bool(content.expr.size)
    if not plainly:
        mapper.images = {}
        mapper.facts = mapper._find_facts()
    return Language(mapper.mapped(), "image")


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize("pattern", PATTERNS)
def test_both_ways(pattern: str, spelling: Spelling) -> None:
    content, code = tokenfst.regex(pattern), json_code(spelling)
    for each in (content, tokenfst.regex("a.*|[0-9]") - content):
        plain, general = (image(each, code, plainly=plainly) for plainly in (True, False))
        assert plain.equivalent(general)


def test_bytes_that_are_no_characters_go_the_general_way() -> None:
    code = json_code()
    for content in (Language.literal(b"\xff") | Language.literal("b"), Language.any_bytes()):
        assert content.expr not in code.plain_images(content.expr, Deadline(Budget(), "a test"))
    mapper = _Mapper(Language.any_bytes().expr, code, Deadline(Budget(), "a test"))
    assert Language(mapper.mapped(), "image").equivalent(Language(code.any_text, "texts"))
