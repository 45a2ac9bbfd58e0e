"""Messages with a number and a noun: one token is not "1 tokens"."""

from __future__ import annotations

import pytest

from tokenfst import Vocabulary, allocate_token_bitmask, compile, fill_bitmasks, regex
from tokenfst.common.plurals import counted
from tokenfst.common.token_ids import check_width
from tokenfst.errors import (
    MaskBufferError,
    RollbackError,
    TokenIdError,
    TokenLimitError,
    VocabularyMismatchError,
)


def test_one_and_several() -> None:
    vocabulary = Vocabulary([b"a", b""], 1)
    matcher = compile(regex("aaa"), vocabulary).matcher()
    for number, says in ((1, r"into 1 token:"), (2, r"into 2 tokens:"), (0, r"into 0 tokens:")):
        with pytest.raises(TokenLimitError, match=says):
            matcher.max_tokens_left = number
    with pytest.raises(RollbackError, match="cannot roll back 1 token: only 0 were accepted"):
        matcher.rollback(1)
    assert matcher.accept_token(0)
    with pytest.raises(RollbackError, match="cannot roll back 2 tokens: only 1 was accepted"):
        matcher.rollback(2)
    with pytest.raises(TokenIdError, match="vocabulary of 2 tokens, which have the ids 0 to 1"):
        matcher.accept_token(2)


def test_nouns_in_python() -> None:
    assert [counted(number, "entry") for number in (0, 1, 2000)] == ["0 entries", "1 entry", "2,000 entries"]
    assert [counted(number, "index", "indices") for number in (1, 2)] == ["1 index", "2 indices"]
    matcher = compile(regex("a"), Vocabulary([b"a", b""], 1)).matcher()
    with pytest.raises(MaskBufferError, match=r"2 matchers cannot fill a bitmask of 1 row:"):
        fill_bitmasks([matcher, matcher], allocate_token_bitmask(1, 2))
    check_width(2, 2)
    with pytest.raises(
        VocabularyMismatchError, match="the model scores 1 token, and the vocabulary has 2: use"
    ):
        check_width(1, 2)
