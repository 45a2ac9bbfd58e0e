"""``TokenClasses``: the meaning, in one vocabulary, of the token names in a constraint.

Special tokens have no bytes: they become symbols in addition to the bytes. Special tokens that no class distinguishes
share one symbol, so that symbols are mutually exclusive. Text tokens are read by their bytes: a class of them is a
set of byte strings, each read as one token. So tokens with equal bytes are in a class together or not at all.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from tokenfst._native import Lexicon
from tokenfst.automata.expressions.expression import TokenName
from tokenfst.common.digits import natural
from tokenfst.errors import ConstraintError, VocabularyMismatchError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_LISTED = re.compile(r"\[(?P<but>\^?)(?P<ids>[0-9]+(?:-[0-9]+)?(?:,[0-9]+(?:-[0-9]+)?)*|\*)\]")
_MOST_ID = 2**31 - 1
MAX_SYMBOLS = 64
"""Maximum number of kinds of special tokens that one constraint can distinguish."""


@dataclass(frozen=True, slots=True)
class TokenClasses:
    """The symbols and words of each token name.

    ``rows``: for each name, the bits of its symbols, and the lexicon of its text tokens. ``symbols``: pairs of a
    special token and its symbol, by token. ``given``: pairs of a name and its ids, for all names except those of
    special tokens.
    """

    rows: tuple[tuple[int, Lexicon | None], ...] = ()
    symbols: tuple[tuple[int, int], ...] = ()
    given: tuple[tuple[str, tuple[int, ...]], ...] = ()


def find_classes(
    names: Iterable[TokenName], vocabulary: Vocabulary, given: Mapping[str, Iterable[int]]
) -> TokenClasses:
    """The classes of these names. O(tokens in them).

    Raises VocabularyMismatchError for unknown names, ConstraintError for classes that are empty, contain an end token,
    or contain only some of the tokens with the same bytes; TokenIdError for ids outside the vocabulary.
    """
    members = [(name, _members(name, vocabulary, given)) for name in names]
    kinds: dict[tuple[int, ...], int] = {}
    symbols: list[tuple[int, int]] = []
    for token in sorted(
        {token for _, ids in members for token in ids if token in vocabulary.special_token_ids}
    ):
        kind = tuple(number for number, (_, ids) in enumerate(members) if token in ids)
        symbols.append((token, kinds.setdefault(kind, len(kinds))))
    if len(kinds) > MAX_SYMBOLS:
        raise ConstraintError(
            f"the constraint distinguishes {len(kinds)} kinds of special tokens, and {MAX_SYMBOLS} are the most: put "
            "those that may stand in the same places into one token class"
        )
    bits = [
        sum(1 << symbol for kind, symbol in kinds.items() if number in kind) for number in range(len(members))
    ]
    words = [_words(name, ids, vocabulary) for name, ids in members]
    named = {name.name: tuple(sorted(ids)) for name, ids in members if not name.special}
    return TokenClasses(tuple(zip(bits, words, strict=True)), tuple(symbols), tuple(sorted(named.items())))


def _members(name: TokenName, vocabulary: Vocabulary, given: Mapping[str, Iterable[int]]) -> frozenset[int]:
    """The ids that a name refers to."""
    if name.but is not None:
        return _others(name.but, vocabulary)
    if name.special:
        if name.name not in vocabulary.special_tokens:
            raise VocabularyMismatchError(
                f"the vocabulary has no special token {name.name!r}; it knows {_some(vocabulary.special_tokens)}"
            )
        ids = frozenset([vocabulary.special_tokens[name.name]])
    elif name.name in given:
        ids = frozenset(map(operator.index, given[name.name]))
    elif (listed := _LISTED.fullmatch(name.name)) is not None:
        ids = _listed(listed["ids"], bool(listed["but"]), vocabulary)
    else:
        raise VocabularyMismatchError(
            f"the constraint has the token class {name.name!r}, and nobody said which tokens those are: pass "
            f"token_classes={{{name.name!r}: [ids]}} (given: {_some(given)})"
        )
    if not ids:
        raise ConstraintError(f"{name} is empty: give at least one token id")
    for token in sorted(ids):
        vocabulary.token_bytes(token)
        if token in vocabulary.eos_token_ids:
            raise ConstraintError(
                f"{name} holds the end token {token}, which ends a text wherever the text is complete: it cannot "
                "stand inside of one"
            )
    return ids


def _listed(text: str, but: bool, vocabulary: Vocabulary) -> frozenset[int]:
    """The ids of a name that lists them: ``[5]``, ``[5-7,9]``; ``[^5]`` has all others, ``[*]`` all, but no end
    token.
    """
    if text == "*":
        return frozenset(range(len(vocabulary))).difference(vocabulary.eos_token_ids)
    found: set[int] = set()
    for part in text.split(","):
        first, _, last = part.partition("-")
        low, high = (natural(end, _MOST_ID) for end in (first, last or first))
        if not low <= high <= _MOST_ID:
            raise ConstraintError(
                f"the token class with the ids {part[:40]} is not valid: its range is in the wrong order, or goes "
                f"beyond {_MOST_ID:,}"
            )
        vocabulary.token_bytes(low)
        vocabulary.token_bytes(high)
        found.update(range(low, high + 1))
    return (
        frozenset(range(len(vocabulary))).difference(found, vocabulary.eos_token_ids)
        if but
        else frozenset(found)
    )


def _others(names: Iterable[str], vocabulary: Vocabulary) -> frozenset[int]:
    """All special tokens but those of these names, and but the end tokens; perhaps none."""
    for name in names:
        if name not in vocabulary.special_tokens:
            raise VocabularyMismatchError(
                f"the vocabulary has no special token {name!r} to leave out; it knows "
                f"{_some(vocabulary.special_tokens)}"
            )
    left_out = (vocabulary.special_tokens[name] for name in names)
    return vocabulary.special_token_ids.difference(vocabulary.eos_token_ids, left_out)


def _words(name: TokenName, ids: frozenset[int], vocabulary: Vocabulary) -> Lexicon | None:
    """The byte strings of the tokens of text among ``ids``."""
    text = sorted(ids - vocabulary.special_token_ids)
    if not text:
        return None
    initial = vocabulary.initial_tokens or vocabulary.tokens
    for token in text:
        data = vocabulary.tokens[token]
        if initial[token] != data or not data:
            raise VocabularyMismatchError(
                f"{name} holds token {token}, which this vocabulary spells in another way at the beginning of a text"
            )
        if others := set(vocabulary.ids(data)) - ids:
            raise ConstraintError(
                f"{name} holds token {token} and not token {min(others)}, which has the same bytes {data!r}: put both "
                "into it, or none"
            )
    return Lexicon(sorted({vocabulary.tokens[token] for token in text}))


def _some(names: Iterable[str]) -> str:
    shown = sorted(names)
    return ", ".join(map(repr, shown[:8])) + (", ..." if len(shown) > 8 else "") if shown else "none"
