"""Messages of the core with a number and a noun: one token is not "1 tokens"."""

from __future__ import annotations

import pytest

from tokenfst import Vocabulary, compile, regex
from tokenfst.errors import RollbackError, TokenIdError, TokenLimitError


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
