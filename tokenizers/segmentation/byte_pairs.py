"""``BytePairs``: the tokens that may be adjacent in byte-pair encoding.

Byte-pair encoding repeatedly merges the two adjacent parts whose merge has the lowest rank, the leftmost first. Here a
token's id is its rank, and any two parts whose bytes are a token can be merged (tiktoken's form); a vocabulary that
lists its merges is accepted if they amount to the same (``_check_listed``). The encoding of a
token's own bytes is a tree: the token, its two parts, their parts, down to single bytes.

The fundamental result: a sequence of tokens is the encoding of its text if and only if this holds for each token alone
and for each two adjacent tokens. The reason: a merge across a boundary joins one part on each side, and before the
first such merge, the parts on both sides are merged as they are alone. So t, u is *not* such a pair if and only if some
merge (a, b) -> c crosses the boundary: a is on the right spine of t's tree and still present at rank c (its parent
there has a higher rank), and b is on the left spine of u's tree and still present (its parent's rank is at least c: of
equal ranks the leftmost merge is done first, which is the crossing one).

Data structure. Tokens form two forests, by their left and by their right part, each numbered in preorder with children
by rank. The tokens u that a merge (a, b) -> c forbids after t are b itself and the subtrees of b's children of rank at
least c. These are the last children, so their subtrees are one interval of numbers. Hence the tokens that may follow t
are the complement of some intervals, one for each merge of a part on its right spine; no token's text is inspected. The
mirror image gives the tokens that may precede u.

Cost. About ten hash look-ups for each byte of the vocabulary once; then a few passes over V numbers for each requested
token. Rejected: encoding t + u for each u (a hundred times slower), and a table of all V x V pairs (2 GB as bits).

Source: Vieira, Liu, Pasti, et al., "Language models over canonical byte-pair encodings" (ICML 2025), which proves that
adjacent pairs suffice; the same argument is in the documentation of GitHub's Rust crate ``bpe``. Berglund and van der
Merwe, "Formalizing BPE tokenization" (2023), and Cognetta and Okazaki, "Tokenization as finite-state transduction"
(2024), treat it as an automaton.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from tokenfst.errors import TokenizationError
from tokenfst.tokenizers.vocabulary.encoding import byte_level_alphabet
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

Bits = npt.NDArray[np.uint8]


class BytePairs:
    """The merges of a vocabulary whose ids are in the order of their ranks.

    ``parts``: int64 (V, 2), the two parts from which each token is merged, -1 for single bytes and special tokens.
    Raises ``TokenizationError`` if the ids are not the ranks of a byte-pair encoding: a byte without a token, two
    tokens with the same bytes, or a token that no merges of lower ranks produce. Linear in the bytes of all tokens, for
    tokens of bounded length.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        tokens = _merged_tokens(vocabulary)
        rank = {data: token for token, data in enumerate(tokens) if data}
        if len(rank) != sum(map(bool, tokens)):
            raise TokenizationError(
                f"{vocabulary!r} has several tokens of the same bytes: a tokenizer uses one of them, and which "
                "is not known"
            )
        missing = next((byte for byte in range(256) if bytes([byte]) not in rank), None)
        if missing is not None:
            raise TokenizationError(
                f"{vocabulary!r} has no token for the single byte {missing:#04x}: it is no byte-pair encoding of bytes"
            )
        self._size = len(tokens)
        self.parts = _split_all(tokens, rank)
        if vocabulary.encoding is not None and vocabulary.encoding.merges is not None:
            _check_listed(vocabulary.encoding.merges, self.parts, tokens)
        self._after = _Forest(self.parts, 0)
        self._before = _Forest(self.parts, 1)

    def followers(self, token: int) -> Bits:
        """The tokens that may follow ``token`` within one piece of text, as bits, 32 per word as in masks: uint8 (4 *
        ceil(V / 32),).

        The bits of special tokens are meaningless.
        """
        return self._packed(self._after, token)

    def predecessors(self, token: int) -> npt.NDArray[np.bool_]:
        """The tokens that ``token`` may follow within one piece of text: bool (V,)."""
        return ~self._before.forbidden(token)

    def _packed(self, forest: _Forest, token: int) -> Bits:
        packed = np.zeros((self._size + 31) // 32 * 4, np.uint8)
        bits = np.packbits(~forest.forbidden(token), bitorder="little")
        packed[: len(bits)] = bits
        return packed


class _Forest:
    """Tokens under their left part (``side`` 0) or their right part (1), in preorder with children by rank.

    For each merge it has the tokens on that side of a boundary that the merge forbids: an interval of preorder
    numbers, and one separate number. The merges are sorted by the part on the other side of the boundary.
    """

    def __init__(self, parts: npt.NDArray[np.int64], side: int) -> None:
        size = len(parts)
        parent, other = parts[:, side].tolist(), parts[:, 1 - side].tolist()
        below = [1] * size
        for token in range(size - 1, -1, -1):
            if parent[token] >= 0:
                below[parent[token]] += below[token]
        number, free, begin, top = [0] * size, [0] * size, [0] * size, 0
        for token in range(size):
            above, near = parent[token], other[token]
            if above < 0:
                number[token], top = top, top + below[token]
            else:
                if side == 0:
                    begin[token] = free[near]
                number[token] = free[above]
                free[above] += below[token]
                if side == 1:
                    begin[token] = free[near]
            free[token] = number[token] + 1
        merges = np.flatnonzero(parts[:, 0] >= 0)
        far = parts[merges, side]
        order = np.lexsort((merges, far))
        self._merges = merges[order]
        self._bounds = np.searchsorted(far[order], np.arange(size + 1))
        self._number, self._begin = np.array(number, np.int64), np.array(begin, np.int64)
        near_part = parts[:, 1 - side]
        self._near = self._number[near_part]
        self._end = self._near + np.array(below, np.int64)[near_part]
        self._up = other
        self._strict = side == 0

    def forbidden(self, token: int) -> npt.NDArray[np.bool_]:
        """The tokens on this side of a boundary that cannot be adjacent to ``token`` on the other side: bool (V,)."""
        size = len(self._number)
        limit, part, found = size, token, []
        while part >= 0:
            merges = self._merges[self._bounds[part] : self._bounds[part + 1]]
            # Ascending. A merge that crosses to the right of an equal one comes too late; one to its left does not.
            found.append(merges[: np.searchsorted(merges, limit, "left" if self._strict else "right")])
            limit, part = part, self._up[part]
        merges = np.concatenate(found)
        change = np.bincount(self._begin[merges], minlength=size + 1)
        change -= np.bincount(self._end[merges], minlength=size + 1)
        covered = np.cumsum(change[:-1]) > 0
        covered[self._near[merges]] = True
        return covered[self._number]


def _merged_tokens(vocabulary: Vocabulary) -> tuple[bytes, ...]:
    """The bytes of each token that merges make; ``b""`` for special and added tokens."""
    tokens = list(vocabulary.tokens)
    for text, token in vocabulary.encoding.added if vocabulary.encoding is not None else ():
        if not 0 <= token < len(tokens) or tokens[token] not in (b"", text.encode()):
            raise TokenizationError(
                f"{vocabulary!r} has no token {token} with the text {text!r}, its added token"
            )
        tokens[token] = b""
    return tuple(tokens)


def _split_all(tokens: tuple[bytes, ...], rank: dict[bytes, int]) -> npt.NDArray[np.int64]:
    """The two parts of each token: of lower ranks, such that no merge with a lower rank than the token's crosses
    their boundary.

    Tokens come in the order of ranks, so their parts' trees are known.
    """
    left, right = [-1] * len(tokens), [-1] * len(tokens)
    merged: dict[tuple[int, int], int] = {}
    for token, data in enumerate(tokens):
        for cut in range(1, len(data)):
            first, second = rank.get(data[:cut], token), rank.get(data[cut:], token)
            if first < token and second < token and not _crossed(first, second, token, left, right, merged):
                left[token], right[token] = first, second
                merged[first, second] = token
                break
        else:
            if len(data) > 1:
                raise TokenizationError(
                    f"token {token}, {data!r}, is made by no merges of tokens of lower ids: the ids are not the "
                    "ranks of a byte-pair encoding, or it never emits this token"
                )
    return np.stack([np.array(left, np.int64), np.array(right, np.int64)], axis=1)


def _check_listed(merges: str, parts: npt.NDArray[np.int64], tokens: tuple[bytes, ...]) -> None:
    """Raise TokenizationError unless the listed merges encode every text as merges by ids do.

    They do if each listed merge makes a token, and each token's own merge is listed, in the order of ids. For suppose
    that two adjacent parts can be merged by ids. They were made within their own text, so encoding that text alone
    makes them too, and then its token of them: they are the token's own two parts. So at each time the same parts can
    be merged in both ways, and in the same order.
    """
    characters = {byte: character for character, byte in byte_level_alphabet().items()}
    spelled = {
        data.decode("latin-1").translate(characters): token for token, data in enumerate(tokens) if data
    }
    rank: dict[tuple[int, int], int] = {}
    for number, line in enumerate(merges.split("\n") if merges else ()):
        first, _, second = line.partition(" ")
        pair = spelled.get(first, -1), spelled.get(second, -1)
        if min(pair) < 0 or first + second not in spelled or pair in rank:
            raise TokenizationError(
                f"merge {number} of the tokenizer, {line[:80]!r}, is listed twice, or its parts or its result are "
                "special tokens or no tokens: what it encodes is not known"
            )
        rank[pair] = number
    last, before = -1, -1
    for token, pair in enumerate(map(tuple, parts.tolist())):
        if pair[0] < 0:
            continue
        number = rank.get(pair, -1)
        if number < 0 or number < last:
            raise TokenizationError(
                "the ids of the tokenizer are not in the order of its merges: "
                f"token {token}, {tokens[token]!r}, is made "
                + ("by none of them" if number < 0 else f"before token {before}, {tokens[before]!r}")
            )
        last, before = number, token


def _crossed(
    first: int, second: int, limit: int, left: list[int], right: list[int], merged: dict[tuple[int, int], int]
) -> bool:
    """Whether a merge of a rank below ``limit`` crosses the boundary between two tokens.

    Both spines are descended; the later merge is undone first.
    """
    before, after = limit, limit - 1
    while True:
        merge = merged.get((first, second))
        if merge is not None and merge < before and merge <= after:
            return True
        down_left = right[first] >= 0 and (first > second or left[second] < 0)
        if down_left:
            before, first = first, right[first]
        elif left[second] >= 0:
            after, second = second, left[second]
        else:
            return False
