"""Runs of tokens: any tokens except for some, with or without special tokens.

``any_tokens`` and ``exclude_token`` mean "any token", special tokens included. Between the tags of
``token_triggered_tags`` there is free text: text tokens, and special tokens only if control tokens are allowed there.
In other free text, the allowed special tokens are those that no delimiter and no excluded string names. End tokens are
never part of a text.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from tokenfst._native import Lexicon
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    Expr,
    TokenName,
    complement,
    concat,
    intersect,
    one_token,
    repeat,
    tokens,
    union,
    words,
)
from tokenfst.automata.languages.language import Language
from tokenfst.automata.pieces.tokens import TEXT_TOKEN
from tokenfst.automata.structural_tags.closing import Closing
from tokenfst.automata.structural_tags.documents.formats import AnyTokens
from tokenfst.automata.structural_tags.special_tokens import Delimiters


class TokenText:
    """Makes expressions of text over tokens. ``control_tokens``: whether free text may contain special tokens."""

    def __init__(self, delimiters: Delimiters, *, control_tokens: bool) -> None:
        self.delimiters, self.control_tokens = delimiters, control_tokens

    def any_tokens(self, format: AnyTokens, closing: Closing) -> Expr:
        """The tokens of the format, followed by the text that closes them."""
        excluded = {self.delimiters.token(each) for each in format.excludes} | closing.tokens
        return concat(repeat(one_of_others(excluded), format.low, format.high), closing.expr)

    def between(self, excluded: Collection[TokenName | bytes]) -> Expr:
        """Free text between tags, without the tokens in ``excluded``."""
        if self.control_tokens:
            return repeat(one_of_others(excluded))
        texts = [token for token in excluded if isinstance(token, bytes)]
        any_text = Language.any_text().expr
        return intersect(repeat(_text_token(texts)), any_text) if texts else any_text


def one_of_others(excluded: Collection[TokenName | bytes]) -> Expr:
    """One token, text or special, that is not in ``excluded``."""
    texts = [token for token in excluded if isinstance(token, bytes)]
    return union(_text_token(texts), special_but(token for token in excluded if isinstance(token, TokenName)))


def special_but(excluded: Iterable[TokenName]) -> Expr:
    """One special token that is not in ``excluded``."""
    return tokens(TokenName.others(token.name for token in excluded))


def _text_token(excluded: list[bytes]) -> Expr:
    """One text token that is none of these."""
    if not excluded:
        return TEXT_TOKEN
    return one_token(intersect(repeat(ANY_BYTE, 1), complement(words(Lexicon(sorted(excluded))))))
