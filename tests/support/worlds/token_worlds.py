"""Small vocabularies and automata over their tokens, walked beside brute force."""

from __future__ import annotations

import random

import numpy as np

from reference.expressions.random_expressions import random_word
from reference.tokens.token_automaton import SlowTokenAutomaton
from tokenfst import _native
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.expressions.program import linearize
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

BUDGET = (100_000, 1 << 30, 20.0)
EVERY_BYTE = [bytes([byte]) for byte in range(256)]


def random_vocabulary(rng: random.Random, letters: bool = False) -> Vocabulary:
    """A dozen tokens over a and b with duplicates; sometimes every byte, sometimes other forms at the start. With
    ``letters``, a and b are tokens.
    """
    tokens = [random_word(rng, 5) for _ in range(rng.randint(2, 12))]
    if rng.random() < 0.5:
        tokens += EVERY_BYTE
    elif letters:
        tokens += [b"a", b"b"]
    tokens += [b"", b""]
    rng.shuffle(tokens)
    eos = rng.choice([token for token, text in enumerate(tokens) if not text])
    initial = None
    if rng.random() < 0.35:
        initial = [text[1:] if rng.random() < 0.4 else text for text in tokens]
    return Vocabulary(tokens, eos, initial_tokens=initial, start_absorbs=rng.random() < 0.5)


def compose(expr: ex.Expr, vocabulary: Vocabulary, narrow: int = 192) -> _native.TokenAutomaton:
    return _native.TokenAutomaton.compose(linearize(expr).native(), vocabulary.native, *BUDGET, narrow)


def brute_force(expr: ex.Expr, vocabulary: Vocabulary) -> SlowTokenAutomaton | None:
    classes, table, accepting, start = _native.ByteAutomaton(linearize(expr).native(), *BUDGET).determinize()
    if start == 0:
        return None
    initial = None if vocabulary.initial_tokens is None else list(vocabulary.initial_tokens)
    return SlowTokenAutomaton(
        classes,
        table,
        accepting,
        start,
        list(vocabulary.tokens),
        vocabulary.eos_token_ids[0],
        initial,
        vocabulary.start_absorbs,
    )


def allowed(matcher: _native.Matcher, size: int) -> set[int]:
    mask = np.zeros((1, (size + 31) // 32), np.int32)
    masked = matcher.fill_next_token_bitmask(mask, 0)
    found = set(np.flatnonzero(np.unpackbits(mask.view(np.uint8), bitorder="little", count=size)).tolist())
    assert masked or len(found) == size
    return found


def walk(
    rng: random.Random, automaton: _native.TokenAutomaton, slow: SlowTokenAutomaton, left: int | None
) -> None:
    matcher, node, size = _native.Matcher(automaton, left), slow.start, len(slow.tokens)
    for _ in range(8):
        wanted = slow.allowed(node, left)
        assert allowed(matcher, size) == wanted
        assert matcher.distance() == slow.distances[node]
        assert matcher.is_accepting() == bool(slow.accepting[node[0]])
        assert {token for token in range(size) if matcher.fork().accept_token(token)} == wanted
        choices = sorted(wanted - {slow.eos})
        if not choices:
            break
        token = rng.choice(choices)
        assert matcher.accept_token(token)
        node = slow.arcs[node][token]
        if left is not None:
            left -= 1
            assert matcher.max_tokens_left == left
