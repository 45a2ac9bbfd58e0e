"""A byte-pair encoding with its split pattern: the facts that canonical tokenization needs, computed once and
shared.

All data that grows here (states of the segmentation, rows of neighbours) is cached under one lock, which the caller
of a method must hold. Memory: the rows of the 4,096 most recently requested tokens, ceil(V / 8) bytes each; the
mirror images of 512 tokens (V bytes each); 4 V bytes for each kind of incomplete character; and a few KB for each
visited state of the segmentation.
"""

from __future__ import annotations

import dataclasses
import re
import unicodedata
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tokenfst.budget import Budget
from tokenfst.common.locks import fork_safe_lock
from tokenfst.errors import TokenizationError
from tokenfst.tokenizers.segmentation.byte_pairs import BytePairs
from tokenfst.tokenizers.segmentation.cuts import DEAD, Segmentation
from tokenfst.tokenizers.segmentation.split_pattern import split_pattern
from tokenfst.tokenizers.vocabulary.encoding import BytePairEncoding
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_KEPT = 4096
_NO_TOKEN = -1

_T = TypeVar("_T")

_Bits = npt.NDArray[np.int32]


class BytePairTokenizer:
    """The facts about a vocabulary's tokenizer that are known so far, shared by all automata over the vocabulary. The
    caller of a method holds ``lock``.
    """

    def __init__(self, vocabulary: Vocabulary, encoding: BytePairEncoding) -> None:
        self.lock = fork_safe_lock()
        self.encoding = encoding
        self.segmentation = Segmentation(split_pattern(encoding.split_pattern), vocabulary, Budget())
        self._pairs = BytePairs(vocabulary)
        self._tokens = vocabulary.tokens
        self._numbers = {data: token for token, data in enumerate(vocabulary.tokens) if data}
        self._longest = max(map(len, vocabulary.tokens))
        self._numbers_of_added = {text.encode(): token for text, token in encoding.added}
        longest_first = sorted(self._numbers_of_added, key=len, reverse=True)
        self._added = (
            re.compile(b"(" + b"|".join(map(re.escape, longest_first)) + b")") if longest_first else None
        )
        self._followers: OrderedDict[int, _Bits] = OrderedDict()
        self._predecessors: OrderedDict[int, npt.NDArray[np.bool_]] = OrderedDict()

    def followers(self, token: int) -> _Bits:
        """The tokens that may follow in the same piece: int32 (ceil(V / 32),)."""
        return _kept(self._followers, token, lambda: self._pairs.followers(token).view(np.int32), _KEPT)

    def predecessors(self, token: int) -> npt.NDArray[np.bool_]:
        """The tokens that ``token`` may follow in the same piece: bool (V,)."""
        return _kept(self._predecessors, token, lambda: self._pairs.predecessors(token), _KEPT // 8)

    def may_precede(self, token: int, following: int) -> bool:
        """Whether ``token`` may directly precede ``following`` within one piece."""
        return bool(self.followers(token)[following >> 5] >> (following & 31) & 1)

    def encode(self, data: bytes) -> list[int]:
        """The tokens of a text, as the tokenizer itself cuts it. The text of a special token is a text like any other.

        Raises ``TokenizationError`` if ``data`` is not UTF-8 or not in the tokenizer's normal form, or contains code
        points that the Unicode tables in use do not know. Linear in the text, times the length of the longest token.
        """
        if self.encoding.is_nfc and not unicodedata.is_normalized("NFC", data.decode("utf-8", "replace")):
            raise TokenizationError(
                f"{data[:40]!r} is not in the normal form NFC: the tokenizer writes another text"
            )
        if self._added is None:
            return self._pieces(data)
        tokens = []
        for number, part in enumerate(self._added.split(data)):
            tokens += [self._numbers_of_added[part]] if number % 2 else self._pieces(part)
        return tokens

    def _pieces(self, data: bytes) -> list[int]:
        """The tokens of a text without added tokens.

        At each position all possible histories are kept, which are few: those in which a piece ends here, and, for each
        last token, those in which the piece continues. One of them remains at the end.
        """
        cuts, numbers = self.segmentation, self._numbers
        ways: list[dict[tuple[int, int], tuple[int, tuple[int, int]]]] = [{} for _ in range(len(data) + 1)]
        ways[0][cuts.start, _NO_TOKEN] = (_NO_TOKEN, (cuts.start, _NO_TOKEN))
        for place in range(len(data)):
            for end in range(place + 1, min(place + self._longest, len(data)) + 1):
                token = numbers.get(data[place:end], _NO_TOKEN)
                for state, last in ways[place] if token != _NO_TOKEN else ():
                    joined = last == _NO_TOKEN or self.may_precede(last, token)
                    after = cuts.next(state if joined else cuts.at_cut(state), token)
                    if after != DEAD:
                        held = token if cuts.in_piece(after) != DEAD else _NO_TOKEN
                        ways[end].setdefault((after, held), (token, (state, last)))
        ended = next((way for way in ways[-1] if cuts.accepting(way[0])), None)
        if ended is None:
            raise TokenizationError(
                f"{data[:40]!r} has no canonical tokens: it is not UTF-8, or has characters that are not assigned"
            )
        tokens, place = [], len(data)
        while place:
            token, ended = ways[place][ended]
            tokens.append(token)
            place -= len(self._tokens[token])
        return tokens[::-1]


def _kept(kept: OrderedDict[int, _T], token: int, make: Callable[[], _T], most: int) -> _T:
    if token in kept:
        kept.move_to_end(token)
        return kept[token]
    if len(kept) >= most:
        kept.popitem(last=False)
    kept[token] = make()
    return kept[token]


def byte_pair_tokenizer(vocabulary: Vocabulary) -> BytePairTokenizer:
    """The tokenizer of a vocabulary; the last four are cached. Raises ``TokenizationError``."""
    if vocabulary.encoding is None or vocabulary.initial_tokens is not None:
        raise TokenizationError(
            f"how the tokenizer of {vocabulary!r} makes tokens of a text is not known: this needs a byte-pair encoding "
            "of bytes whose ids are in the order of their ranks: a Tekken file, a tiktoken encoding, a Hugging Face "
            "tokenizer with a ByteLevel decoder, at most one Split and no normalizer but NFC, or "
            "Vocabulary(..., split_pattern=...); docs/research/canonical.md has all conditions"
        )
    return _known_tokenizer(vocabulary, vocabulary.encoding)


def encoding_by_ids(vocabulary: Vocabulary) -> BytePairEncoding | None:
    """The encoding for a file that does not list merges: the vocabulary's own if its merges amount to those by ids,
    else ``None``.

    As costly as a ``BytePairTokenizer``, if the vocabulary lists merges.
    """
    if vocabulary.encoding is None or vocabulary.encoding.merges is None:
        return vocabulary.encoding
    try:
        BytePairs(vocabulary)
    except TokenizationError:
        return None
    return dataclasses.replace(vocabulary.encoding, merges=None)


@lru_cache(maxsize=4)
def _known_tokenizer(vocabulary: Vocabulary, encoding: BytePairEncoding) -> BytePairTokenizer:
    """``encoding``: the vocabulary's, since equal vocabularies may have different ones."""
    return BytePairTokenizer(vocabulary, encoding)
