"""What kinds of tokens a vocabulary holds: the figures of ``tokenfst vocab``."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

import numpy as np

from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


@dataclass(frozen=True, slots=True)
class Census:
    """Counts of token ids. ``text + partial_utf8 + special == tokens``; the other counts overlap these.

    ``text``: tokens of valid UTF-8 with at least one byte. ``partial_utf8``: tokens whose bytes are not valid UTF-8 on
    their own. ``special``: ids that emit nothing, end tokens and padding included. ``end``: end tokens.
    ``single_byte``: tokens of one byte. ``whitespace``: tokens of white space only. ``duplicate``: tokens whose bytes
    an earlier id has too. ``contextual``: tokens whose form at the start of a text differs. ``longest``: the number of
    bytes of the longest token. ``missing_bytes``: the byte values that no token emits, ascending; a
    text with such a byte cannot be written.
    """

    tokens: int
    text: int
    partial_utf8: int
    special: int
    end: int
    single_byte: int
    whitespace: int
    duplicate: int
    contextual: int
    longest: int
    missing_bytes: tuple[int, ...]


def census(vocabulary: Vocabulary) -> Census:
    """Count the kinds of tokens. Linear in the bytes of all tokens."""
    initial = vocabulary.initial_tokens or vocabulary.tokens
    text = partial = single = whitespace = 0
    for token, data in enumerate(vocabulary.tokens):
        if token in vocabulary.special_token_ids:
            continue
        shown = data or initial[token]
        single += len(shown) == 1
        try:
            whitespace += shown.decode().isspace()
            text += 1
        except UnicodeDecodeError:
            partial += 1
    copies = Counter(data for data in vocabulary.tokens if data)
    emitted = np.frombuffer(vocabulary.packed()[0] + vocabulary.packed(initial=True)[0], np.uint8)
    return Census(
        tokens=len(vocabulary),
        text=text,
        partial_utf8=partial,
        special=len(vocabulary.special_token_ids),
        end=len(vocabulary.eos_token_ids),
        single_byte=single,
        whitespace=whitespace,
        duplicate=sum(copies.values()) - len(copies),
        contextual=sum(a != b for a, b in zip(vocabulary.tokens, initial, strict=True)),
        longest=max(max(map(len, vocabulary.tokens)), max(map(len, initial))),
        missing_bytes=tuple(np.flatnonzero(np.bincount(emitted, minlength=256) == 0).tolist()),
    )
