"""Small token automata with everything in them that an artifact can hold."""

from __future__ import annotations

import random

from reference.expressions.random_expressions import random_expression, random_word
from tokenfst.automata.expressions import expression as ex
from tokenfst.automata.languages.language import Language
from tokenfst.decoding.compiling.compile import compile
from tokenfst.decoding.token_automata.token_automaton import TokenAutomaton
from tokenfst.errors import EmptyLanguageError
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

EVERY_BYTE = [bytes([byte]) for byte in range(256)]
NEITHER = ex.byte_set(~(1 << 97 | 1 << 98) & ex.ALL_BYTES)


def small_vocabulary(rng: random.Random) -> Vocabulary:
    """Tokens over a and b, duplicates among them; in some vocabularies every byte, more words than a list of flips
    holds, two end tokens, or other forms at the start.
    """
    tokens = [random_word(rng, 4) for _ in range(rng.randint(2, 9))]
    if rng.random() < 0.5:
        tokens += EVERY_BYTE
    if rng.random() < 0.4:
        tokens += [bytes(rng.choices(b"cdefg", k=3)) for _ in range(rng.choice([40, 700, 1400]))]
    tokens += [b"", b"", b""]
    rng.shuffle(tokens)
    special = [token for token, text in enumerate(tokens) if not text]
    initial = None
    if rng.random() < 0.35:
        initial = [text[1:] if rng.random() < 0.4 else text for text in tokens]
    return Vocabulary(
        tokens, special[: rng.randint(1, 2)], initial_tokens=initial, start_absorbs=rng.random() < 0.5
    )


def small_expression(rng: random.Random) -> ex.Expr:
    """A random expression; in some, text of other letters stands around it."""
    found = random_expression(rng, rng.randint(1, 3))
    if rng.random() < 0.4:
        found = ex.concat(ex.repeat(NEITHER, 0, rng.choice([None, 3])), found, ex.repeat(NEITHER, 0, 2))
    return found


def small_automaton(rng: random.Random, vocabulary: Vocabulary | None = None) -> TokenAutomaton:
    """A lazy one, of a language that is not empty; its source has every kind of character."""
    vocabulary = vocabulary or small_vocabulary(rng)
    while True:
        source = "".join(rng.choices('ab"\\/\n\0é日😀', k=rng.randint(0, 12)))
        try:
            return compile(Language(small_expression(rng), source), vocabulary)
        except EmptyLanguageError:
            continue
