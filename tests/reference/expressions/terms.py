"""Small language terms over {a, b}, and what they mean to three unrelated engines.

A term is a nested tuple ("op", operands...). ``words`` enumerates its short words as plain sets: slow and
obviously right. ``language`` builds it with ``Language``; ``acceptor`` with OpenFst, over all 256 bytes.
"""

from __future__ import annotations

from functools import lru_cache, reduce
from itertools import product
from typing import Any

import pynini

from tokenfst.automata.languages.language import Language
from tokenfst.automata.openfst import fst

Term = tuple[Any, ...]
LIMIT = 5
ALPHABET = b"ab"
ALL_WORDS = frozenset(bytes(w) for n in range(LIMIT + 1) for w in product(ALPHABET, repeat=n))


def _cat(left: frozenset[bytes], right: frozenset[bytes]) -> frozenset[bytes]:
    return frozenset(x + y for x in left for y in right if len(x) + len(y) <= LIMIT)


@lru_cache(maxsize=10_000)
def words(term: Term) -> frozenset[bytes]:
    """The words over {a, b} of at most ``LIMIT`` letters."""
    op, *args = term
    if op == "empty":
        return frozenset()
    if op == "epsilon":
        return frozenset({b""})
    if op in ("literal", "table"):
        return frozenset({args[0]})
    if op == "either":
        return frozenset({b"a", b"b"})
    if op == "any":
        return ALL_WORDS
    if op == "not":
        return ALL_WORDS - words(args[0])
    if op == "and":
        return words(args[0]) & words(args[1])
    if op == "or":
        return words(args[0]) | words(args[1])
    if op == "minus":
        return words(args[0]) - words(args[1])
    if op == "cat":
        return _cat(words(args[0]), words(args[1]))
    if op == "repeat":
        part, low, high = args
        power = reduce(_cat, [words(part)] * low, frozenset({b""}))
        total: frozenset[bytes] = power
        # A further power can only add words while something is new, or while the bound allows it.
        for _ in range(LIMIT + 1 if high is None else high - low):
            power = _cat(power, words(part))
            total |= power
        return total
    raise AssertionError(op)


def language(term: Term) -> Language:
    op, *args = term
    if op == "empty":
        return Language.empty()
    if op == "epsilon":
        return Language.epsilon()
    if op == "literal":
        return Language.literal(args[0])
    if op == "table":  # the same word as a finished automaton
        return Language.from_dfa(Language.literal(args[0]).determinize())
    if op == "either":
        return Language.byte_range(ord("a"), ord("b"))
    if op == "any":
        return Language.any_bytes()
    if op == "not":
        return ~language(args[0])
    if op == "and":
        return language(args[0]) & language(args[1])
    if op == "or":
        return language(args[0]) | language(args[1])
    if op == "minus":
        return language(args[0]) - language(args[1])
    if op == "cat":
        return language(args[0]) + language(args[1])
    if op == "repeat":
        return language(args[0]).repeat(args[1], args[2])
    raise AssertionError(op)


def _word_acceptor(word: bytes) -> pynini.Fst:
    n = len(word)
    labels = [byte + 1 for byte in word]
    return fst.from_arcs(n + 1, 0, [n], range(n), labels, labels, range(1, n + 1))


@lru_cache(maxsize=1)
def _all_bytes() -> pynini.Fst:
    """All byte strings, as the deterministic, unweighted, ε-free machine that ``pynini.difference`` wants."""
    labels = range(1, 257)
    return fst.from_arcs(1, 0, [0], [0] * 256, labels, labels, [0] * 256)


def acceptor(term: Term) -> pynini.Fst:
    """The same language by OpenFst's own algebra: deterministic, minimal."""
    op, *args = term
    made: pynini.Fst
    if op == "empty":
        made = pynini.Fst()
    elif op == "epsilon":
        made = _word_acceptor(b"")
    elif op in ("literal", "table"):
        made = _word_acceptor(args[0])
    elif op == "either":
        made = pynini.union(_word_acceptor(b"a"), _word_acceptor(b"b"))
    elif op == "any":
        made = _all_bytes().copy()
    elif op == "not":
        made = pynini.difference(_all_bytes(), acceptor(args[0]))
    elif op == "and":
        made = pynini.intersect(acceptor(args[0]).arcsort(), acceptor(args[1]))
    elif op == "or":
        made = pynini.union(acceptor(args[0]), acceptor(args[1]))
    elif op == "minus":
        made = pynini.difference(acceptor(args[0]), acceptor(args[1]))
    elif op == "cat":
        made = pynini.concat(acceptor(args[0]), acceptor(args[1]))
    elif op == "repeat":
        part, low, high = args
        made = _word_acceptor(b"")
        for _ in range(low):
            made = pynini.concat(made, acceptor(part))
        if high is None:
            made = pynini.concat(made, acceptor(part).closure())
        else:
            for _ in range(high - low):
                made = pynini.concat(made, pynini.union(_word_acceptor(b""), acceptor(part)))
    else:
        raise AssertionError(op)
    return normal(made)


def normal(machine: pynini.Fst) -> pynini.Fst:
    """Determinized and minimized, as OpenFst's ``equivalent`` and ``difference`` require."""
    return pynini.determinize(machine.copy().rmepsilon()).minimize().arcsort()


def same(left: pynini.Fst, right: pynini.Fst) -> bool:
    """OpenFst's verdict on two acceptors."""
    return bool(pynini.equivalent(normal(left), normal(right)))
