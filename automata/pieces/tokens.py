"""Languages that constrain tokens: one text token, one token of a class, one special token.

The words of all other languages are texts, whatever their tokenization. Here an expression can also require a boundary
between two tokens, as it can require a byte. ``one_token(x)`` starts at a boundary, ends at the next one, and has a
word of x between them; a special token, which has no bytes, is a separate letter. So a token sequence is in such a
language if and only if some path through bytes and token classes matches it. No edge has precedence over another. (Koo,
Liu and He, 2024, section 2.5.1, prefer ordinary edges to terminal labels and order the labels, and so lose sequences.)
The operators ``&``, ``|``, ``+`` and repetition are those of all languages: ``one_token().repeat(1, 20) & regex(".*")``
is text of at most 20 tokens.

Front ends know bytes but no vocabulary: ``compile`` looks the names up. Queries that depend on the vocabulary (whether
there is a word, what the shortest word is) are not supported for such a language; ask the token automaton.
"""

from __future__ import annotations

from tokenfst.automata.expressions import expression
from tokenfst.automata.expressions.expression import ALL_BYTES, Expr, TokenName
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import encode
from tokenfst.common.arguments import checked
from tokenfst.errors import ConstraintError, EmptyLanguageError

__all__ = ["one_token", "special_token", "token_class"]

TEXT_TOKEN: Expr = expression.one_token(expression.repeat(expression.ANY_BYTE, 1))
"""Any text token, whose bytes may be any, but not none."""

PARAGRAPH_TOKEN: Expr = expression.one_token(
    expression.repeat(expression.byte_set(ALL_BYTES & ~(1 << ord("\n"))), 1)
)
"""Any text token without a line feed."""


@checked
def one_token(text: Language | None = None) -> Language:
    """One text token whose bytes are a word of ``text``; by default, any text token.

    The bytes may be parts of characters; ``& Language.any_text()`` requires complete characters. Raises
    EmptyLanguageError if no token could be a word of ``text``, ConstraintError if ``text`` itself constrains tokens.
    O(1) apart from that check.
    """
    if text is None:
        return Language(TEXT_TOKEN, "one_token()")
    if (text - Language.epsilon()).is_empty():
        raise EmptyLanguageError(
            f"no token has bytes that are a word of {text.source}: it has none but the empty word"
        )
    return Language(expression.one_token(text.expr), f"one_token({text.source})", text.given_budget)


@checked
def special_token(name: str) -> Language:
    """The special token of this name (``"<|tool|>"``), as a token: never as the text that spells it.

    ``compile`` looks it up in ``Vocabulary.special_tokens``.
    """
    return Language(expression.tokens(_named(name, special=True)), f"special_token({name!r})")


@checked
def token_class(name: str) -> Language:
    """One token of the class ``name``, whose ids ``compile(..., token_classes={name: ids})`` gives."""
    return Language(expression.tokens(_named(name, special=False)), f"token_class({name!r})")


def _named(name: str, *, special: bool) -> TokenName:
    if not isinstance(name, str) or not name:
        raise ConstraintError(f"tokens have names that are str and not empty, not {name!r}")
    if encode(name) is None:
        raise ConstraintError(f"the name {name!r} holds a lone surrogate, which no token's name has")
    return TokenName(name, special)
