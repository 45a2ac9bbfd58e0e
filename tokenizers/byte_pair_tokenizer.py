"""A byte-pair encoding with its split pattern: what canonical tokenization asks of a vocabulary, made once and shared.

All that grows here (states of the segmentation, rows of neighbours) is memoized behind one lock, which whoever calls a
method must hold. Memory: the rows of the 4,096 tokens asked about last, ceil(V / 8) bytes each, the mirror images of
512 (V bytes each), 4 V bytes for each way to be in the midst of a character, and a few KB for each state of the
segmentation that was visited.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from tokenfst.budget import Budget
from tokenfst.errors import TokenizationError
from tokenfst.tokenizers.byte_pairs import BytePairs
from tokenfst.tokenizers.segmentation import Segmentation
from tokenfst.tokenizers.split_pattern import split_pattern
from tokenfst.tokenizers.vocabulary import Vocabulary

_KEPT = 4096

_T = TypeVar("_T")

_Bits = npt.NDArray[np.int32]


class BytePairTokenizer:
    """What is known of a vocabulary's tokenizer, shared by all automata over it; under its lock."""

    def __init__(self, vocabulary: Vocabulary, pattern: str) -> None:
        self.lock = threading.RLock()
        self.segmentation = Segmentation(split_pattern(pattern), vocabulary, Budget())
        self._pairs = BytePairs(vocabulary)
        self._followers: OrderedDict[int, _Bits] = OrderedDict()
        self._predecessors: OrderedDict[int, npt.NDArray[np.bool_]] = OrderedDict()

    def followers(self, token: int) -> _Bits:
        """The tokens that may follow in the same piece: int32 (ceil(V / 32),)."""
        return _kept(self._followers, token, lambda: self._pairs.followers(token).view(np.int32), _KEPT)

    def predecessors(self, token: int) -> npt.NDArray[np.bool_]:
        """The tokens that ``token`` may follow in the same piece: bool (V,)."""
        return _kept(self._predecessors, token, lambda: self._pairs.predecessors(token), _KEPT // 8)

    def bears(self, token: int, following: int) -> bool:
        """Whether two tokens stand beside each other in one piece."""
        return bool(self.followers(token)[following >> 5] >> (following & 31) & 1)


def _kept(kept: OrderedDict[int, _T], token: int, make: Callable[[], _T], most: int) -> _T:
    if token in kept:
        kept.move_to_end(token)
        return kept[token]
    if len(kept) >= most:
        kept.popitem(last=False)
    kept[token] = make()
    return kept[token]


def byte_pair_tokenizer(vocabulary: Vocabulary) -> BytePairTokenizer:
    """The tokenizer of a vocabulary, made once for each of the last four. Raises ``TokenizationError``."""
    if vocabulary.split_pattern is None or vocabulary.initial_tokens is not None:
        raise TokenizationError(
            f"how the tokenizer of {vocabulary!r} cuts texts is not known: canonical tokenizations are of byte-pair "
            "encodings whose ids are in the order of their ranks, read from Tekken files or tiktoken encodings, or "
            "made with Vocabulary(..., split_pattern=...)"
        )
    return _known_tokenizer(vocabulary, vocabulary.split_pattern)


@lru_cache(maxsize=4)
def _known_tokenizer(vocabulary: Vocabulary, pattern: str) -> BytePairTokenizer:
    return BytePairTokenizer(vocabulary, pattern)
