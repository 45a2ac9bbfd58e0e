"""Tables of tokens, from token id to bytes: their limits, checks and look-ups."""

from __future__ import annotations

import operator
from collections.abc import Iterable, Mapping, Sequence
from typing import NoReturn

import numpy as np
import numpy.typing as npt

from tokenfst.common.plurals import counted
from tokenfst.errors import VocabularyError

MAX_TOKEN_BYTES = 65_535
"""Maximum length of the byte string of one token."""

MAX_TOKEN_ID = (1 << 21) - 1
"""Maximum token id that an adapter accepts from a file: eight times the 262,144 tokens of Gemma. A file of one token
with a large id takes memory and time for all ids below it.
"""


def pad_tokens(tokens: list[bytes], size: int | None) -> list[bytes]:
    """``tokens`` with special tokens appended up to ``size``, the width of a model's logits (``None``: none are
    appended).

    Raises ``VocabularyError`` if the tokenizer has more tokens than that.
    """
    if size is None:
        return tokens
    if size < len(tokens):
        raise VocabularyError(
            f"the tokenizer has {counted(len(tokens), 'token')}, more than the size {size:,}: pass the width of the "
            "model's logits, or leave size out"
        )
    return tokens + [b""] * (size - len(tokens))


def end_token(special: Mapping[str, int], name: str, source: str) -> int:
    """The id of the special token of this name, which ends texts. Raises ``VocabularyError`` if ``source`` has none."""
    if name not in special:
        raise VocabularyError(f"{source} has no special token {name}: pass eos_token_id")
    return special[name]


def byte_strings(tokens: Sequence[bytes], what: str) -> list[bytes]:
    """A table of tokens as a new, checked list. Raises VocabularyError naming the invalid token."""
    if isinstance(tokens, bytes | str):
        raise VocabularyError(
            f"{what} must be a sequence of bytes objects, one for each token id, not one string"
        )
    table = list(tokens)
    if not table:
        raise VocabularyError(f"{what} is empty: a vocabulary needs at least one token")
    if set(map(type, table)) != {bytes}:
        bad = next(index for index, token in enumerate(table) if type(token) is not bytes)
        raise VocabularyError(
            f"{what}[{bad}] is {table[bad]!r}, a {type(table[bad]).__name__}: every token must be bytes "
            "(encode text as UTF-8)"
        )
    longest = max(map(len, table))
    if longest > MAX_TOKEN_BYTES:
        bad = next(index for index, token in enumerate(table) if len(token) == longest)
        raise VocabularyError(
            f"{what}[{bad}] has {counted(longest, 'byte')}; the limit is {MAX_TOKEN_BYTES:,}"
        )
    return table


def token_ids(ids: int | Iterable[int], size: int, kind: str) -> list[int]:
    """One id or several as a list. Raises VocabularyError for an id that is not from 0 to ``size - 1``. ``kind``: the
    kind of tokens, for messages.
    """

    def refuse(item: object) -> NoReturn:
        raise VocabularyError(f"the {kind} token id {item!r} is not one of the ids 0 to {size - 1}")

    if isinstance(ids, bytes | bytearray):
        refuse(ids)
    result = []
    for item in ids if isinstance(ids, Iterable) else [ids]:
        if isinstance(item, bool | str) or not hasattr(item, "__index__"):
            refuse(item)
        token = operator.index(item)
        if not 0 <= token < size:
            refuse(token)
        result.append(token)
    return result


def lengths(table: Sequence[bytes]) -> npt.NDArray[np.int64]:
    """The number of bytes of each token: int64 (V,)."""
    return np.fromiter(map(len, table), np.int64, len(table))


def inverse(table: Sequence[bytes]) -> dict[bytes, tuple[int, ...]]:
    """The ids of each byte string, ascending."""
    result: dict[bytes, list[int]] = {}
    for token, data in enumerate(table):
        result.setdefault(data, []).append(token)
    return {data: tuple(ids) for data, ids in result.items()}
