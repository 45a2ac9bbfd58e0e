"""The texts that a tokenizer encodes as they are, piece by piece: in its normal form, and without added tokens.

A tokenizer with the normalizer NFC writes a text in that form first, so a text in another form has no tokens that spell
it. Added tokens are found in a text before it is split.

A text is in NFC (Unicode Standard Annex 15) if it has no character that NFC replaces, its combining marks are in the
order of their classes, and no character follows a letter with which it is composed, where all marks between them have
lower classes. To decide the last point, an automaton must remember the letter, and masks inside of strings would differ
after each letter. So characters that are composed with ASCII letters or with more than 16 letters, as the acute accent
is, are not accepted: texts in which they follow a letter without a composition are lost. All other texts in NFC are
accepted.

Cost: passes over all code points, and an automaton of 2,033 states over bytes, once for a process: 0.2 s.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache, partial

import numpy as np

from tokenfst.automata.characters.classes import changed_characters, every_character
from tokenfst.automata.expressions.expression import (
    UNIVERSE,
    Expr,
    complement,
    concat,
    intersect,
    literal,
    union,
)
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.images.letters import crawl, write_letters
from tokenfst.budget import Budget
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding

_MOST_LETTERS = 16
"""The most letters with which a character may be composed, if it is to be accepted after others."""

_Codes = frozenset[int]
_Kind = tuple[bool, int, _Codes, int]
"""What matters of a character: whether it is never accepted; its combining class; the characters that are composed with
it if they come next; itself, if it is one of these, else -1.
"""
_State = tuple[_Codes, int]
"""The characters that are composed with the last letter if they come next, and the class of the last mark, else 0."""


def ordinary_texts(encoding: BytePairEncoding) -> Expr:
    """The language over bytes of the texts that are encoded as they are."""
    parts = [_texts_in_nfc()] if encoding.is_nfc else []
    if encoding.added:
        found = union(*(literal(text.encode()) for text, _ in encoding.added))
        parts.append(complement(concat(UNIVERSE, found, UNIVERSE)))
    return intersect(*parts) if parts else UNIVERSE


@lru_cache(maxsize=1)
def _texts_in_nfc() -> Expr:
    begins, kinds = _intervals()
    distinct = list(dict.fromkeys(kinds))
    class_of = {own: ccc for _, ccc, _, own in distinct if own >= 0}

    def follow(state: _State) -> tuple[None, dict[int, _State]]:
        composed, last = state
        found: dict[int, _State] = {}
        for number, (never, ccc, then, own) in enumerate(distinct):
            between_is_lower = last < ccc or last == ccc == 0
            if never or 0 < ccc < last or (own in composed and between_is_lower):
                continue
            still = frozenset(each for each in composed if class_of[each] > ccc)
            found[number] = (still, ccc) if ccc else (then, 0)
        return None, found

    deadline = Deadline(Budget(), "the texts in NFC")
    start: _State = frozenset(), 0
    table, accepting = crawl(start, follow, lambda _: True, len(distinct), deadline)
    numbers = {kind: number for number, kind in enumerate(distinct)}
    group = np.array([numbers[kind] for kind in kinds])
    return write_letters(np.array(begins), group, table, accepting, "characters", deadline)


def _intervals() -> tuple[list[int], list[_Kind]]:
    """Intervals of code points of one kind: where each begins, and its kind."""
    never, letters_of = _compositions()
    composed: dict[int, set[int]] = {}
    for code, letters in letters_of.items():
        for letter in letters:
            composed.setdefault(letter, set()).add(code)
    classes = np.fromiter(map(unicodedata.combining, every_character()), np.int64)
    special = {*never, *letters_of, *composed, *np.flatnonzero(classes).tolist()}
    begins: list[int] = []
    kinds: list[_Kind] = []
    for code in sorted({0, *special, *(code + 1 for code in special)}):
        then = frozenset(composed.get(code, ()))
        kind = code in never, int(classes[code]), then, code if code in letters_of else -1
        if not kinds or kind != kinds[-1]:
            begins.append(code)
            kinds.append(kind)
    return begins, kinds


def _compositions() -> tuple[set[int], dict[int, frozenset[int]]]:
    """The characters that are not accepted; and the letters of each other one that NFC composes with letters."""
    replaced = changed_characters(partial(unicodedata.normalize, "NFC")).keys()
    decomposed = changed_characters(partial(unicodedata.normalize, "NFD")).keys()
    letters_of: dict[int, set[int]] = {}
    for code in decomposed - replaced:
        first, second = _parts(code)
        letters_of.setdefault(second, set()).add(first)
    few = {
        second: frozenset(letters)
        for second, letters in letters_of.items()
        if len(letters) <= _MOST_LETTERS and min(letters) > 0x7F
    }
    return replaced | (letters_of.keys() - few.keys()), few


def _parts(code: int) -> tuple[int, int]:
    """The two characters from which NFC composes a character."""
    listed = unicodedata.decomposition(chr(code)).split()
    if listed:
        first, second = listed
        return int(first, 16), int(second, 16)
    syllable = unicodedata.normalize("NFD", chr(code))  # Hangul: by rule
    return ord(unicodedata.normalize("NFC", syllable[:-1])), ord(syllable[-1])
