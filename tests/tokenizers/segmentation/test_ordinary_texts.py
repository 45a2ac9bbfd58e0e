"""The texts that a tokenizer does not change, against ``unicodedata`` itself."""

from __future__ import annotations

import random
import unicodedata
from itertools import product

import pytest

from tokenfst import Language
from tokenfst.tokenizers.segmentation.ordinary_texts import ordinary_texts
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding

NFC = Language(ordinary_texts(BytePairEncoding(".", is_nfc=True)), "texts in NFC")
EVERY = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]


def composed_with() -> dict[str, set[str]]:
    """The letters with which NFC composes each character that comes after them, by trying what NFD takes apart."""
    found: dict[str, set[str]] = {}
    for each in EVERY:
        if unicodedata.normalize("NFC", each) == each != unicodedata.normalize("NFD", each):
            *_, last = unicodedata.normalize("NFD", each)
            first = unicodedata.normalize("NFC", unicodedata.normalize("NFD", each)[:-1])
            if unicodedata.normalize("NFC", first + last) == each:
                found.setdefault(last, set()).add(first)
    return found


LETTERS = composed_with()
LOST = {mark for mark, letters in LETTERS.items() if len(letters) > 16 or min(letters) < "\x80"}
"""The characters that docs/research/canonical.md says are left out."""
CHARACTERS = sorted(
    {letter for mark in LETTERS.keys() - LOST for letter in LETTERS[mark]}
    | {*LETTERS, "a", "\u1100", "\uac00", "\u0344", "\u2126", "\u212b", "日"}
    | set({unicodedata.combining(each): each for each in EVERY if each not in LOST}.values())
)


def check(text: str) -> None:
    wanted = unicodedata.is_normalized("NFC", text) and not LOST & set(text)
    assert NFC.accepts(text.encode()) == wanted, ascii(text)


def test_marks_are_the_ones_expected() -> None:
    assert {"\u0301", "\u0323", "\u1161", "\u11a8", "\u3099"} <= LOST
    assert {"\u093c", "\u09be", "\u0653"} <= LETTERS.keys() - LOST
    assert 60 < len(LOST) < 120 and len(CHARACTERS) > 150


def test_single_characters() -> None:
    for block in range(0, len(EVERY), 64):
        whole = EVERY[block : block + 64]
        if NFC.accepts("a".join(whole).encode()):
            assert all(map(unicodedata.is_normalized, ["NFC"] * len(whole), whole)) and not LOST & {*whole}
        else:
            for each in whole:
                check(each)


def test_pairs() -> None:
    for pair in product(CHARACTERS, repeat=2):
        check("".join(pair))


@pytest.mark.parametrize("seed", range(4))
def test_longer_texts(seed: int) -> None:
    rng = random.Random(seed)
    often = sorted(each for each in CHARACTERS if each not in LOST)
    for _ in range(4000):
        check("".join(rng.choices(often, k=rng.randrange(3, 7))))


def test_added_tokens_do_not_occur() -> None:
    texts = Language(
        ordinary_texts(BytePairEncoding(".", added=(("<a>", 1), ("<a>>", 2), ("b", 3)))), "no added tokens"
    )
    for length in range(6):
        for word in map("".join, product("<a>b", repeat=length)):
            assert texts.accepts(word.encode()) == ("<a>" not in word and "b" not in word)
