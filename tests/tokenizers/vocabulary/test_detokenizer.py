"""The detokenizing transducer against decoding, token by token, on small worlds and on Tekken."""

from __future__ import annotations

import itertools
import time

import numpy as np
import pynini
import pytest
from hypothesis import given
from hypothesis import strategies as st

from reference.tokens.detokenize import Walker, slow_decode, transduce
from tokenfst.automata.openfst.fst import from_arcs
from tokenfst.tokenizers.adapters.mistral import from_mistral
from tokenfst.tokenizers.vocabulary.detokenizer import detokenizer_arcs
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

WORLDS = {
    "plain": ([b"a", b"ab", b"b", b"a", b"\x00", b"abc", b""], None, False),
    "stripped": ([b" a", b" ", b"  ", b"b", b" ab", b""], [b"a", b"", b" ", b"b", b"ab", b""], False),
    "absorbing": ([b" a", b" ", b"  ", b"b", b" ab", b""], [b"a", b"", b" ", b"b", b"ab", b""], True),
    "joined": ([b" a", b"b", b"", b" .", b""], [b"a", b"##b", b"##", b".", b""], False),
    "only special": ([b"", b"", b""], None, False),
    "long": ([b"x" * 300, b"x" * 299, b"x", b""], None, False),
}


@pytest.mark.parametrize("world", WORLDS)
def test_every_short_sequence(world: str) -> None:
    tokens, initial, absorbs = WORLDS[world]
    special = {len(tokens) - 1}
    vocabulary = Vocabulary(tokens, len(tokens) - 1, initial_tokens=initial, start_absorbs=absorbs)
    walker = Walker(detokenizer_arcs(vocabulary))
    transducer = vocabulary.detokenizer()
    assert transducer.verify()
    for length in range(4):
        for ids in itertools.product(range(len(tokens)), repeat=length):
            expected = slow_decode(tokens, initial or tokens, special, absorbs, ids)
            assert vocabulary.decode(ids) == expected
            has_path = all(
                token not in vocabulary.special_token_ids and (tokens[token] or place == 0)
                for place, token in enumerate(ids)
            )
            assert walker(ids) == (expected if has_path else None)
            assert transduce(transducer, ids) == ([expected] if has_path else [])


@pytest.mark.parametrize("world", ["plain", "stripped", "joined"])
def test_every_segmentation_of_every_short_text(world: str) -> None:
    """Composed with a text, the transducer's input side is all token sequences that decode to it."""
    tokens, initial, absorbs = WORLDS[world]
    vocabulary = Vocabulary(tokens, len(tokens) - 1, initial_tokens=initial, start_absorbs=absorbs)
    spellings: dict[bytes, set[tuple[int, ...]]] = {}
    for length in range(6):
        for ids in itertools.product(range(len(tokens) - 1), repeat=length):
            if all(tokens[token] for token in ids[1:]):
                spellings.setdefault(vocabulary.decode(ids), set()).add(ids)
    transducer = vocabulary.detokenizer()
    texts = [text for text in spellings if len(text) <= 3]
    assert len(texts) > 10
    for text in texts:
        places = np.arange(len(text))
        labels = np.frombuffer(text, np.uint8).astype(np.int64) + 1
        acceptor = from_arcs(len(text) + 1, 0, [len(text)], places, labels, labels, places + 1)
        lattice = pynini.compose(transducer, acceptor)
        found = set()
        paths = lattice.paths()
        while not paths.done():
            found.add(tuple(label - 1 for label in paths.ilabels() if label))
            paths.next()
        assert found == spellings[text], text


@given(st.data())
def test_random_vocabularies(data: st.DataObject) -> None:
    word = st.binary(max_size=4).map(lambda raw: bytes(byte & 1 for byte in raw))
    tokens = [*data.draw(st.lists(word, min_size=1, max_size=8)), b""]
    initial = [*data.draw(st.lists(word, min_size=len(tokens) - 1, max_size=len(tokens) - 1)), b""]
    vocabulary = Vocabulary(
        tokens,
        len(tokens) - 1,
        initial_tokens=data.draw(st.sampled_from([None, initial])),
        start_absorbs=data.draw(st.booleans()),
    )
    arcs = detokenizer_arcs(vocabulary)
    walker = Walker(arcs)
    text_tokens = [token for token, text in enumerate(vocabulary.tokens) if text]
    if text_tokens:
        ids = data.draw(st.lists(st.sampled_from(text_tokens), max_size=6))
        assert walker(ids) == vocabulary.decode(ids)
        assert transduce(vocabulary.detokenizer(), ids) == [vocabulary.decode(ids)]
    assert np.all(np.diff(arcs.source) >= 0)
    prefixes = {text[:end] for text in vocabulary.tokens for end in range(1, len(text))}
    if vocabulary.initial_tokens is None:
        assert arcs.num_states == 1 + len(prefixes)
        assert len(arcs.source) == len(prefixes) + len(text_tokens)


def test_tekken_shape_and_time() -> None:
    vocabulary = from_mistral("tekken_240911")
    best = float("inf")
    for _ in range(3):
        begin = time.process_time()
        transducer = vocabulary.detokenizer()
        best = min(best, time.process_time() - begin)
    assert transducer.num_states() == 180_624
    assert sum(transducer.num_arcs(state) for state in range(180_624)) == 310_695
    assert best < 0.5
