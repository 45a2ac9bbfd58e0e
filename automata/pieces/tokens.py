"""Languages that speak of tokens: one token of text, one token of a class, one special token.

The idea: the words of all other languages are texts, however they are cut into tokens. Here a boundary between two
tokens is something that an expression can ask for, as it can ask for a byte. ``one_token(x)`` begins at a boundary,
ends at the next, and what stands in between is a word of x; and a special token, which has no bytes, is a letter of
its own. So a token sequence is in such a language exactly if there is a way to read it, through bytes and through
classes of tokens at once: no edge has precedence over another (Koo, Liu and He, 2024, section 2.5.1, prefer ordinary
edges to terminal labels and order the labels among each other, and so lose sequences). ``&``, ``|``, ``+`` and
repetition are those of languages:
``one_token().repeat(1, 20) & regex(".*")`` is text of at most 20 tokens.

Front ends know bytes and no vocabulary: names are looked up by ``compile``. What only a vocabulary knows (whether there
is a word, what the shortest is) cannot be asked of such a language; ask the token automaton.
"""

from __future__ import annotations

from tokenfst.arguments import checked
from tokenfst.automata.expressions import expression
from tokenfst.automata.expressions.expression import ALL_BYTES, Expr, TokenName
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import encode
from tokenfst.errors import ConstraintError, EmptyLanguageError

__all__ = ["one_token", "special_token", "token_class"]

TEXT_TOKEN: Expr = expression.one_token(expression.repeat(expression.ANY_BYTE, 1))
"""Any token of text: it has at least one byte, and any bytes."""

PARAGRAPH_TOKEN: Expr = expression.one_token(
    expression.repeat(expression.byte_set(ALL_BYTES & ~(1 << ord("\n"))), 1)
)
"""Any token of text without a line feed."""


@checked
def one_token(text: Language | None = None) -> Language:
    """One token of text whose bytes are a word of ``text``; without, any token of text.

    Parts of characters are bytes too: ``& Language.any_text()`` asks for whole ones. Raises EmptyLanguageError if no
    token could be a word of ``text``, ConstraintError if ``text`` itself speaks of tokens. O(1) but for that check.
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
    """The one special token of this name (``"<|tool|>"``), as a token: never as the text that spells it.

    ``compile`` looks it up in ``Vocabulary.special_tokens``.
    """
    return Language(expression.tokens(_named(name, special=True)), f"special_token({name!r})")


@checked
def token_class(name: str) -> Language:
    """One token of the class that ``compile(..., token_classes={name: ids})`` gives."""
    return Language(expression.tokens(_named(name, special=False)), f"token_class({name!r})")


def _named(name: str, *, special: bool) -> TokenName:
    if not isinstance(name, str) or not name:
        raise ConstraintError(f"tokens have names that are str and not empty, not {name!r}")
    if encode(name) is None:
        raise ConstraintError(f"the name {name!r} holds a lone surrogate, which no token's name has")
    return TokenName(name, special)
