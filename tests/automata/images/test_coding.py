"""What is spelled leaf by leaf is what the general mapping spells."""

from __future__ import annotations

from json import dumps

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tokenfst
from tokenfst._native import word_tree
from tokenfst.automata.expressions.expression import Op
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.images.coding import Code, _character
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


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_single_bytes_need_no_automaton(spelling: Spelling, monkeypatch: pytest.MonkeyPatch) -> None:
    """A set of printable characters is the same expression without the short cut; others have none."""
    code = json_code(spelling)
    sets = [((low, low + width),) for low in range(0x1E, 0x7F) for width in (0, 1, 9) if low + width < 0x80]
    sets += [
        ((0x21, 0x21), (0x23, 0x5B)),
        ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F)),
        ((0x61, 0x7A), (0xE9, 0xE9)),
    ]
    short = [code.plain_bytes(each) for each in sets]
    assert any(short) is (spelling != "any")
    monkeypatch.setattr(Code, "plain_bytes", lambda self, ranges: None)
    _character.cache_clear()
    for each, made in zip(sets, short, strict=True):
        if made is not None:
            slow = code.character(each)
            assert (slow.op, slow.value, slow.size) == (made.op, made.value, made.size)
    _character.cache_clear()


def test_bytes_that_are_no_characters_go_the_general_way() -> None:
    code = json_code()
    for content in (Language.literal(b"\xff") | Language.literal("b"), Language.any_bytes()):
        assert content.expr not in code.plain_images(content.expr, Deadline(Budget(), "a test"))
    mapper = _Mapper(Language.any_bytes().expr, code, Deadline(Budget(), "a test"))
    assert Language(mapper.mapped(), "image").equivalent(Language(code.any_text, "texts"))


WORDS = st.lists(st.text(st.sampled_from('ab"\\\nés😀ê'), max_size=5), max_size=12)


@given(WORDS)
def test_a_tree_of_words_has_these_words(texts: list[str]) -> None:
    for spelling in ("plain", "ascii"):
        made = json_code(spelling).words(texts)
        spelled = [dumps(text, ensure_ascii=spelling == "ascii")[1:-1] for text in texts]
        assert Language(made, "a tree").equivalent(Language.union_of(map(Language.literal, spelled)))


def test_a_tree_of_words_shares_what_they_begin_with() -> None:
    chain = ["a" * length for length in range(1_500)]
    made = json_code().words(chain)
    assert len(made.walk()) <= 4 * len(chain)
    assert Language(made, "a tree").accepts("a" * 1_499) and not Language(made, "a tree").accepts("a" * 1_500)
    split = json_code().words(["é", "ê"])  # the same first byte
    assert {node.value for node in split.walk() if node.op is Op.LITERAL} == {"é".encode(), "ê".encode()}
    with pytest.raises(TypeError):
        word_tree(["a"])  # type: ignore[list-item]
