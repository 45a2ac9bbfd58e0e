"""Vocabularies that cannot spell every text: which bytes no token contains, and which words of a constraint remain."""

from __future__ import annotations

import warnings

import tokenfst._native as _native
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.automata.rules.graph import outer_nodes
from tokenfst.budget import QUICK
from tokenfst.errors import BudgetExceeded, ConstraintError, EmptyLanguageError, UnspellableWarning
from tokenfst.tokenizers.vocabulary.census import census
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


def of_single_bytes(grammar: Grammar, vocabulary: Vocabulary) -> Grammar:
    """The words of a grammar that contain only bytes of the vocabulary, each of which must be a token by itself.

    If each byte is a token, tokens can continue a text wherever bytes can. Raises ``ConstraintError`` if a needed byte
    is not a token by itself, because whether tokens can continue a text would then depend on the whole stack; and if
    strings must differ from each other and the vocabulary lacks a byte, because the rest of a string may have no
    tokens. Raises ``EmptyLanguageError`` if no word is left.
    """
    if any(node.op is ex.Op.FRESH for name in grammar.rules for node in outer_nodes(grammar.rules[name])):
        raise ConstraintError(
            f"{grammar.source} has strings that must differ from each other (names of a JSON object, unique items). "
            "For that, each byte must be a token of the vocabulary, and this one lacks some: make the constraint by "
            'json_schema(...) with repeated_names="allow" or additional_properties="forbid"'
        )
    alone = sum({1 << token[0] for token in vocabulary.tokens if len(token) == 1})
    used = sum(1 << byte for byte in set(b"".join([*vocabulary.tokens, *(vocabulary.initial_tokens or ())])))
    if not (grammar & _holding(ex.ALL_BYTES & ~used)).is_empty():
        grammar = grammar & Language(ex.repeat(ex.byte_set(used)), "what tokens are made of")
        if grammar.is_empty():
            raise EmptyLanguageError(
                f"no token sequence spells any string of {grammar.source}: its strings need bytes that no token has"
            )
    if used & ~alone and not (needed := grammar & _holding(used & ~alone)).is_empty():
        raise ConstraintError(
            f"{grammar.source} needs a stack, and for that each of its bytes must be a token by itself: the vocabulary "
            f"has longer tokens only for some of {needed.witness()!r}. Compile its truncate(depth) instead"
        )
    return grammar


def _holding(bits: int) -> Language:
    """The texts that contain a byte of a set."""
    return Language(ex.concat(ex.UNIVERSE, ex.byte_set(bits), ex.UNIVERSE))


def warn_unspellable(constraint: Constraint, vocabulary: Vocabulary, native: _native.TokenAutomaton) -> None:
    """Warn, with a witness, if no token sequence spells some strings, which are then missing in the token language.

    If other strings can be spelled, a witness is searched for within ``QUICK`` only, because a warning must not
    cost more than the compilation.
    """
    if not native.spellable:
        witness, part = constraint.witness(), "none"
    else:
        holds_missing = _holding(sum(1 << byte for byte in census(vocabulary).missing_bytes))
        part = "not all"
        try:
            witness = (constraint & holds_missing).with_budget(QUICK).witness()
        except BudgetExceeded:
            witness = None
    if witness is not None:
        warnings.warn(
            f"the vocabulary spells {part} of the strings of {constraint.source}: for example, no token sequence "
            f"gives {witness!r}",
            UnspellableWarning,
            stacklevel=4,
        )
