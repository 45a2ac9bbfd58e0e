"""Special tokens in the strings of a structural tag: matched as the token, as its spelling, or as both.

A string is split at the names of special tokens. The result is a sequence of byte strings and tokens, a ``Spelled``,
over the alphabet of bytes and special tokens; with ``"both"`` there is one sequence for each combination of tokens and
spellings. Free text consists of bytes only, so a special token in it never matches its name. With ``"token"`` it does
not contain the spelling either, because a reader of the text would mistake the spelling for the token.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import lru_cache
from itertools import product
from typing import Literal, Protocol

from tokenfst.automata.expressions.expression import (
    Expr,
    TokenName,
    concat,
    literal,
    one_token,
    tokens,
    union,
)
from tokenfst.automata.structural_tags.documents.formats import Delimiter, TokenRef
from tokenfst.common.plurals import counted
from tokenfst.errors import StructuralTagError

Reading = Literal["token", "text", "both"]
Spelled = tuple[bytes | TokenName, ...]
"""A sequence of byte strings and special tokens; no byte string is empty, and no two are adjacent."""

_MOST_VARIANTS = 64


class TokenTable(Protocol):
    """What structural tags need of a vocabulary; ``Vocabulary`` has it."""

    @property
    def tokens(self) -> Sequence[bytes]: ...
    @property
    def special_tokens(self) -> Mapping[str, int]: ...
    @property
    def special_token_ids(self) -> Collection[int]: ...
    @property
    def eos_token_ids(self) -> Collection[int]: ...
    def ids(self, data: bytes, /) -> Iterable[int]: ...


class Delimiters:
    """Converts strings and references to tokens into sequences, with a vocabulary if there is one."""

    def __init__(self, vocabulary: TokenTable | None, reading: Reading) -> None:
        self.vocabulary, self.reading = vocabulary, reading
        special = {} if vocabulary is None else vocabulary.special_tokens
        self._names = None if reading == "text" else _pattern(tuple(special))

    def variants(self, text: str, pointer: str) -> list[Spelled]:
        """The sequences that a string stands for. Raises StructuralTagError if it names an end token, or too many
        tokens.
        """
        pieces: list[tuple[Spelled, ...]] = []
        position = 0
        for match in self._names.finditer(text) if self._names else ():
            if match.start() > position:
                pieces.append(((text[position : match.start()].encode(),),))
            token: Spelled = (self._special(match[0], pointer),)
            pieces.append((token, (match[0].encode(),)) if self.reading == "both" else (token,))
            position = match.end()
        if position < len(text):
            pieces.append(((text[position:].encode(),),))
        count = 1
        for piece in pieces:
            count *= len(piece)
        if count > _MOST_VARIANTS:
            raise StructuralTagError(
                pointer,
                f"names several special tokens, which gives {count} readings, more than {_MOST_VARIANTS}: "
                'choose special_tokens="token" or "text"',
            )
        return [_joined(way) for way in product(*pieces)]

    def expr(self, text: str, pointer: str) -> Expr:
        """The union of all sequences that a string stands for."""
        return union(*(spelled_expr(each) for each in self.variants(text, pointer)))

    def spelling(self, text: str, pointer: str) -> bytes | None:
        """If this string is a delimiter: the bytes that free text must not contain besides its variants. ``None``:
        none.
        """
        if self.reading != "token" or (text.encode(),) in self.variants(text, pointer):
            return None
        return text.encode() or None

    def crossed(self, text: str, position: int) -> str | None:
        """The name of a special token that begins before ``position`` and ends after it; ``None`` if there is none."""
        for match in self._names.finditer(text) if self._names else ():
            if match.start() < position < match.end():
                return match[0]
        return None

    def stops(self, delimiter: Delimiter) -> bool:
        """Whether a delimiter is an end token of the vocabulary."""
        table = self.vocabulary
        if table is None or (isinstance(delimiter, str) and self.reading == "text"):
            return False
        named = delimiter.token if isinstance(delimiter, TokenRef) else delimiter
        return (table.special_tokens.get(named) if isinstance(named, str) else named) in table.eos_token_ids

    def token(self, reference: TokenRef) -> TokenName | bytes:
        """The token that a reference means: a special token, or a text token's bytes. Raises StructuralTagError."""
        token, table = reference.token, self.vocabulary
        if table is None:
            if isinstance(token, str):
                return TokenName(token, special=True)
            raise StructuralTagError(
                reference.pointer,
                f"which token has the id {token}, only a vocabulary knows: pass vocabulary=, or name a special token",
            )
        if isinstance(token, str):
            if token in table.special_tokens:
                return self._special(token, reference.pointer)
            if not [*table.ids(token.encode())]:
                raise StructuralTagError(
                    reference.pointer,
                    f"the vocabulary has neither a special token nor a token of text {token!r}",
                )
            return token.encode()
        if token >= len(table.tokens):
            raise StructuralTagError(
                reference.pointer,
                f"the vocabulary has {counted(len(table.tokens), 'token')}, so no token {token}",
            )
        self._refuse_end(token, f"the token {token}", reference.pointer)
        if token not in table.special_token_ids:
            return table.tokens[token]
        for name, number in table.special_tokens.items():
            if number == token:
                return TokenName(name, special=True)
        raise StructuralTagError(
            reference.pointer, f"the special token {token} has no name in the vocabulary"
        )

    def _special(self, name: str, pointer: str) -> TokenName:
        assert self.vocabulary is not None
        self._refuse_end(self.vocabulary.special_tokens[name], repr(name), pointer)
        return TokenName(name, special=True)

    def _refuse_end(self, token: int, shown: str, pointer: str) -> None:
        if self.vocabulary is not None and token in self.vocabulary.eos_token_ids:
            raise StructuralTagError(
                pointer,
                f"{shown} is an end token of the vocabulary, which ends the whole text: it can be the end of a tag, "
                "and nothing else. Leave it out",
            )


@lru_cache(maxsize=8)
def _pattern(names: tuple[str, ...]) -> re.Pattern[str] | None:
    """Any of the names, the longest that fits; ``None`` without names."""
    kept = sorted(filter(None, names), key=len, reverse=True)
    return re.compile("|".join(map(re.escape, kept))) if kept else None


def token_expr(token: TokenName | bytes) -> Expr:
    """The expression of one token."""
    return one_token(literal(token)) if isinstance(token, bytes) else tokens(token)


def spelled_expr(spelled: Spelled) -> Expr:
    """The expression of one sequence."""
    return concat(*(literal(part) if isinstance(part, bytes) else tokens(part) for part in spelled))


def shown(spelled: Spelled) -> str:
    """The string of the document from which a sequence was read."""
    return "".join(part.decode() if isinstance(part, bytes) else part.name for part in spelled)


def symbols(spelled: Spelled) -> list[int | TokenName]:
    """The symbols of a sequence in order: each byte, and each token as a whole."""
    found: list[int | TokenName] = []
    for part in spelled:
        if isinstance(part, bytes):
            found += part
        else:
            found.append(part)
    return found


def ends_inside(inner: Spelled, outer: Spelled) -> bool:
    """Whether ``outer`` contains ``inner`` and extends beyond its end."""
    one, other = symbols(inner), symbols(outer)
    return any(other[place : place + len(one)] == one for place in range(len(other) - len(one)))


def _joined(way: tuple[Spelled, ...]) -> Spelled:
    found: list[bytes | TokenName] = []
    for part in (part for piece in way for part in piece):
        if found and isinstance(part, bytes) and isinstance(found[-1], bytes):
            found[-1] += part
        else:
            found.append(part)
    return tuple(found)
