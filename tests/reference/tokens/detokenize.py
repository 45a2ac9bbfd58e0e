"""Slow, obviously right twins of detokenization, and the check that every adapter's tests share."""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable, Iterable, Sequence

import numpy as np
import pynini

from tokenfst.automata.openfst.fst import Arcs, from_arcs
from tokenfst.tokenizers.vocabulary.detokenizer import detokenizer_arcs
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

CORPUS = [
    "The quick brown fox jumps over the lazy dog. It doesn't stop, and it won't; why?",
    "  Leading spaces,   inner   runs\tand\nnew lines.\n\n",
    '{"name": "Zoë", "tags": ["a", "b"], "n": -1.5e10, "ok": true, "none": null}',
    "def f(x: int) -> int:\n    return x ** 2  # ∀x. x² ≥ 0",
    "Straße, naïve façade, Ångström, œuvre — “quotes” … 100 €",
    "Быстрая коричневая лиса прыгает через ленивую собаку.",
    "敏捷的棕色狐狸跳过懒狗。日本語のテキストと漢字。",
    "🙂 👩‍👩‍👧 🇫🇷 e\u0301 \U0001d4d0",
] * 20
"""Text to train small tokenizers on."""


def slow_decode(
    tokens: Sequence[bytes],
    initial: Sequence[bytes],
    special: Iterable[int],
    absorbs: bool,
    ids: Sequence[int],
) -> bytes:
    """The meaning of a token sequence, written down once more."""
    text = b""
    at_start, hidden = True, frozenset(special)
    for token in ids:
        if token in hidden:
            continue
        piece = initial[token] if at_start else tokens[token]
        text += piece
        at_start = at_start and absorbs and piece == b""
    return text


class Walker:
    """Runs token sequences through the arcs of a detokenizing transducer, backwards from each token's arc.

    Works on machines of the promised shape only, and asserts that shape: every state but the start and the
    root has exactly one arc into it, without an input label.
    """

    def __init__(self, arcs: Arcs) -> None:
        self.start = arcs.start
        self.finals = set(arcs.final_states.tolist())
        self.parent: dict[int, tuple[int, int]] = {}
        self.ending: dict[int, list[tuple[int, int, int]]] = {}
        hubs = {arcs.start, max(self.finals)}
        rows = zip(
            *(column.tolist() for column in (arcs.source, arcs.ilabel, arcs.olabel, arcs.nextstate)),
            strict=True,
        )
        for source, ilabel, olabel, nextstate in rows:
            if ilabel:
                assert nextstate in hubs
                self.ending.setdefault(ilabel - 1, []).append((source, olabel, nextstate))
            else:
                assert nextstate not in self.parent and nextstate not in hubs and olabel
                self.parent[nextstate] = (source, olabel)
        assert len(self.parent) == arcs.num_states - len(hubs)

    def __call__(self, ids: Sequence[int]) -> bytes | None:
        """The output for ``ids``; ``None`` if the transducer does not accept them."""
        state, text = self.start, b""
        for token in ids:
            found = []
            for source, olabel, nextstate in self.ending.get(token, ()):
                labels = [olabel]
                while source in self.parent:
                    source, label = self.parent[source]
                    labels.append(label)
                if source == state:
                    found.append((bytes(label - 1 for label in reversed(labels) if label), nextstate))
            if not found:
                return None
            assert len(found) == 1, "one token, one path"
            text, state = text + found[0][0], found[0][1]
        return text if state in self.finals else None


def transduce(transducer: pynini.Fst, ids: Sequence[int]) -> list[bytes]:
    """All outputs of an OpenFst transducer for one token sequence, by composition."""
    places = np.arange(len(ids))
    labels = np.array(ids, np.int64) + 1
    path = from_arcs(len(ids) + 1, 0, [len(ids)], places, labels, labels, places + 1)
    lattice = pynini.compose(path, transducer)
    if lattice.num_states() == 0:
        return []
    outputs = []
    paths = lattice.paths()
    while not paths.done():
        outputs.append(bytes(label - 1 for label in paths.olabels() if label))
        paths.next()
    return outputs


def random_sequences(
    vocabulary: Vocabulary, count: int, rng: random.Random, favoured: Sequence[int]
) -> list[list[int]]:
    """Token sequences of up to 12 ids, a share of them out of ``favoured``; the empty one first."""
    size = len(vocabulary)
    favoured = list(favoured) or [0]
    result: list[list[int]] = [[]]
    for number in range(count):
        length, share = rng.randrange(1, 13), (number % 5) / 4
        result.append(
            [rng.choice(favoured) if rng.random() < share else rng.randrange(size) for _ in range(length)]
        )
    return result


def pieces_of(vocabulary: Vocabulary, ids: Sequence[int]) -> list[bytes]:
    """What each token of a sequence contributes, by decoding every prefix."""
    prefixes = [vocabulary.decode(ids[:length]) for length in range(len(ids) + 1)]
    return [longer[len(shorter) :] for shorter, longer in itertools.pairwise(prefixes)]


def check(
    vocabulary: Vocabulary,
    sequences: Iterable[Sequence[int]],
    real: Callable[[list[int]], str | bytes],
    shown: Callable[[Sequence[int]], str] | None = None,
    *,
    composed: int = 25,
) -> None:
    """Decode == the real tokenizer == the transducer, on every sequence; composition itself on the first
    ``composed``.

    ``real`` decodes to bytes, or to a str in which bytes that are not UTF-8 are replaced; ``shown`` then says
    how the tokenizer replaces them. Without any, the str must be exactly the bytes decoded. Sequences with
    special tokens must be outside of the transducer's domain, and decode as if those were left out.
    """
    walker = Walker(detokenizer_arcs(vocabulary))
    transducer = vocabulary.detokenizer()
    transducer.arcsort("ilabel")
    initial = vocabulary.initial_tokens or vocabulary.tokens
    special = vocabulary.special_token_ids
    counted = replaced = 0
    for ids in sequences:
        data = vocabulary.decode(ids)
        assert data == slow_decode(vocabulary.tokens, initial, special, vocabulary.start_absorbs, ids)
        expected = real(list(ids))
        if isinstance(expected, bytes):
            assert data == expected, ids
        else:
            replaced += "\ufffd" in expected
            assert (shown or vocabulary_text(vocabulary))(ids) == expected, (ids, data)
        text_only = [token for token in ids if token not in special]
        assert (walker(ids) is None) == (len(text_only) < len(ids) or _unreachable(vocabulary, text_only))
        if not _unreachable(vocabulary, text_only):
            assert walker(text_only) == data, ids
            if counted < composed:
                assert transduce(transducer, text_only) == [data], ids
        counted += 1
    assert counted > 0 and replaced < counted, "at least one sequence must be text"


def is_text(data: bytes) -> bool:
    """Is it valid UTF-8?"""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def vocabulary_text(vocabulary: Vocabulary) -> Callable[[Sequence[int]], str]:
    """Python's replacement on the whole text, which is also that of Rust's ``from_utf8_lossy``."""
    return lambda ids: vocabulary.decode(ids).decode("utf-8", "replace")


def by_byte_runs(pieces: Iterable[tuple[bool, bytes]], run: Callable[[bytes], str]) -> str:
    """The text where each maximal run of byte tokens (flagged) goes through ``run``; all others are text."""
    text, pending = "", b""
    for is_byte, piece in pieces:
        if is_byte:
            pending += piece
        else:
            text += run(pending) + piece.decode()
            pending = b""
    return text + run(pending)


def _unreachable(vocabulary: Vocabulary, ids: Sequence[int]) -> bool:
    """Tokens that write something at the start only (WordPiece's bare prefix) are on no path after it."""
    return any(not vocabulary.tokens[token] for token in ids[1:] if token not in vocabulary.special_token_ids)
