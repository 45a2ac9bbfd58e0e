"""``Closing``: the strings that end a content. They are the ends of the enclosing tag.

A content and the text after it are built together, since the first end that appears in free text closes it. A
``Closing`` is passed down to the position where a content ends; there free text extends to the first end. At other
positions of the same content, free text only must not contain an end.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from tokenfst.automata.expressions.expression import EPSILON, Expr, TokenName, union
from tokenfst.automata.structural_tags.documents.formats import Delimiter, TokenRef
from tokenfst.automata.structural_tags.special_tokens import Delimiters, Spelled, spelled_expr, token_expr


@dataclass(frozen=True, slots=True)
class Closing:
    """The ends of a content.

    ``delimiters``: the ends as sequences of bytes and special tokens. ``tokens``: the ends that are one token.
    ``avoided``: texts that free text must not contain because of the ends. ``other``: ends that do not close free text,
    including the empty end. ``here``: whether the content ends here, so that an end follows. ``stops``: whether an end
    token of the vocabulary is one of the ends.
    """

    delimiters: tuple[Spelled, ...] = ()
    tokens: frozenset[TokenName | bytes] = frozenset()
    avoided: tuple[bytes, ...] = ()
    other: Expr | None = None
    here: bool = False
    stops: bool = False

    @property
    def expr(self) -> Expr:
        """The text after the content: one of the ends; the empty text if the content does not end here."""
        if not self.here:
            return EPSILON
        others = () if self.other is None else (self.other,)
        return union(*map(spelled_expr, self.delimiters), *others)

    @property
    def elsewhere(self) -> Closing:
        """The same ends, for a part of the content that is not its last part."""
        return replace(self, here=False)


OPEN = Closing()
"""The closing of a content that has no ends."""


def read_closing(ends: Iterable[Delimiter], delimiters: Delimiters, pointer: str) -> Closing:
    """The closing of a tag with these ends, at a part of the content that ends it (``here``)."""
    found: list[Spelled] = []
    tokens: set[TokenName | bytes] = set()
    avoided: list[bytes] = []
    others: list[Expr] = []
    stops = False
    for end in ends:
        if delimiters.stops(end):
            stops = True
            if isinstance(end, str) and delimiters.reading == "both":
                found.append((end.encode(),))
            elif isinstance(end, str):
                avoided.append(end.encode())
        elif isinstance(end, TokenRef):
            token = delimiters.token(end)
            tokens.add(token)
            if isinstance(token, bytes):
                others.append(token_expr(token))
            else:
                found.append((token,))
        elif end:
            variants = delimiters.variants(end, pointer)
            found += variants
            tokens |= {each[0] for each in variants if len(each) == 1 and isinstance(each[0], TokenName)}
            spelling = delimiters.spelling(end, pointer)
            if spelling is not None:
                avoided.append(spelling)
        else:
            others.append(EPSILON)
    other = union(*others) if others else None
    return Closing(
        tuple(dict.fromkeys(found)), frozenset(tokens), tuple(avoided), other, here=True, stops=stops
    )
