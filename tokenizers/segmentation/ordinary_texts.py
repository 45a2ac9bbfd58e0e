"""The texts that a tokenizer encodes as they are, piece by piece: in its normal form, and without added tokens.

A tokenizer with the normalizer NFC writes a text in that form first, so a text in another form has no tokens that spell
it. Added tokens are found in a text before it is split.

A text is in NFC (Unicode Standard Annex 15) if it has no character that NFC replaces, its combining marks are in the
order of their classes, and no character follows a letter with which it is composed, where all marks between them have
lower classes. To decide the last point, an automaton must remember the letter, and masks inside of strings would differ
after each letter. So characters that are composed with ASCII letters or with more than 16 letters, as the acute accent
is, are not accepted: texts in which they follow a letter without a composition are lost. All other texts in NFC are
accepted.

Cost: a pass over all code points, once for a process.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from functools import lru_cache
from typing import Literal

from tokenfst.automata.characters.classes import character_set, every_character
from tokenfst.automata.characters.utf8 import normalize
from tokenfst.automata.expressions.expression import (
    UNIVERSE,
    Expr,
    complement,
    concat,
    literal,
    repeat,
    union,
)
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding

_MOST_LETTERS = 16
"""The most letters with which a character may be composed, if it is to be accepted after others."""
_BLOCK = 256


def ordinary_texts(encoding: BytePairEncoding) -> Expr:
    """The language over bytes of the texts that are encoded as they are."""
    found: list[Expr] = [literal(text.encode()) for text, _ in encoding.added]
    if encoding.is_nfc:
        found.append(_out_of_nfc())
    return complement(concat(UNIVERSE, union(*found), UNIVERSE))


@lru_cache(maxsize=1)
def _out_of_nfc() -> Expr:
    """What no accepted text contains: single characters, and marks after others."""
    never, letters_of = _compositions()
    classes: dict[int, list[int]] = {}
    for code, ccc in enumerate(map(unicodedata.combining, every_character())):
        if ccc:
            classes.setdefault(ccc, []).append(code)

    def below(ccc: int) -> Expr:
        return _one(code for each, codes in classes.items() if each < ccc for code in codes)

    composed: dict[tuple[frozenset[int], int], list[int]] = {}
    for code, letters in letters_of.items():
        composed.setdefault((letters, unicodedata.combining(chr(code))), []).append(code)
    return union(
        _one(never),
        *(concat(_one(codes), below(ccc)) for ccc, codes in classes.items()),
        *(
            concat(_one(letters), repeat(below(ccc)), _one(codes))
            for (letters, ccc), codes in composed.items()
        ),
    )


def _one(codes: Iterable[int]) -> Expr:
    """One of the characters."""
    return character_set(normalize((code, code) for code in codes), True)


def _compositions() -> tuple[set[int], dict[int, frozenset[int]]]:
    """The characters that are not accepted; and the letters of each other one that NFC composes with letters."""
    replaced = _changed("NFC")
    letters_of: dict[int, set[int]] = {}
    for code in _changed("NFD") - replaced:
        first, second = _parts(code)
        letters_of.setdefault(second, set()).add(first)
    few = {
        second: frozenset(letters)
        for second, letters in letters_of.items()
        if len(letters) <= _MOST_LETTERS and min(letters) > 0x7F
    }
    return replaced | (letters_of.keys() - few.keys()), few


def _changed(form: Literal["NFC", "NFD"]) -> set[int]:
    """The code points that a normal form replaces."""
    text, found = every_character(), set()
    for begin in range(0, len(text), _BLOCK):
        block = text[begin : begin + _BLOCK]
        if not unicodedata.is_normalized(form, block):
            found |= {ord(each) for each in block if unicodedata.normalize(form, each) != each}
    return found


def _parts(code: int) -> tuple[int, int]:
    """The two characters from which NFC composes a character."""
    listed = unicodedata.decomposition(chr(code)).split()
    if listed:
        first, second = listed
        return int(first, 16), int(second, 16)
    syllable = unicodedata.normalize("NFD", chr(code))  # Hangul: by rule
    return ord(unicodedata.normalize("NFC", syllable[:-1])), ord(syllable[-1])
