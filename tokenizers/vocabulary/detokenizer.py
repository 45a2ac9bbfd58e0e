"""The detokenizing transducer: from token sequences to the bytes that they represent.

Description. A transducer T over (token label : byte label) with T(t1 ... tn) = ``Vocabulary.decode([t1, ..., tn])``
for every sequence of tokens that are not special. The token bytes b1 ... bk of token t are a chain of arcs

    root --(eps : b1)--> . --(eps : b2)--> . ... --(t : bk)--> root

whose beginnings are shared: a trie of the proper prefixes of all tokens. If decoding depends on the beginning of
the text, there is a start state with a separate trie, whose last arcs lead to the root; a token whose initial form
is empty is an arc (t : eps) from there, to the root or (``Vocabulary.start_absorbs``) to the start state itself.
Start and root are final. Special tokens are on no path.

The token label is on the *last* arc. If it were on the first one, no prefix would be shared, and composition with a
constraint would have to guess every token before it reads a byte: for a JSON object, it ran out of 24 GB of memory.

Usage. ``fst.compose(vocabulary.native_detokenizer(), constraint.to_native_fst())``, and project its input side;
with pynini, ``vocabulary.detokenizer()`` and ``constraint.to_fst()``.

Complexity. States: 1 + the distinct proper prefixes of tokens (per trie); arcs: those prefixes + the tokens. Time:
O(total bytes * log) in numpy, with one step for each byte depth and no Python loop over arcs.

Caveats. Labels follow convention 2: token t is label t + 1, byte b is label b + 1. The machine's output symbol table
says so, and ``tokenfst.fst`` does not compose it with a machine that is made from strings: convert that first with
``fst.with_byte_labels``. The machine has epsilons on its input side, where it is not deterministic: project, then
remove epsilons and determinize.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from tokenfst.automata.openfst.fst import Arcs, from_arcs
from tokenfst.automata.openfst.label_kinds import byte_symbols
from tokenfst.automata.openfst.labels import BYTE_ZERO_LABEL, EPSILON_LABEL, byte_label, token_label
from tokenfst.automata.transducers.acceptors import machine_of
from tokenfst.automata.transducers.byte_labels import byte_table
from tokenfst.automata.transducers.vector import VectorFst

if TYPE_CHECKING:
    import pynini

    from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

IntArray = npt.NDArray[np.int64]


def detokenizer(vocabulary: Vocabulary) -> pynini.Fst:
    """The detokenizing transducer of ``vocabulary``, as the module's docstring defines it. Needs pynini."""
    arcs = detokenizer_arcs(vocabulary)
    made = from_arcs(
        arcs.num_states,
        arcs.start,
        arcs.final_states,
        arcs.source,
        arcs.ilabel,
        arcs.olabel,
        arcs.nextstate,
        sorted_by_source=True,
    )
    made.set_output_symbols(byte_symbols())
    return made


def native_detokenizer(vocabulary: Vocabulary) -> VectorFst:
    """The detokenizing transducer of ``vocabulary`` as a machine of ``tokenfst.fst``. Needs no pynini."""
    return machine_of(detokenizer_arcs(vocabulary), None, byte_table(BYTE_ZERO_LABEL))


def detokenizer_arcs(vocabulary: Vocabulary) -> Arcs:
    """The arcs of the detokenizing transducer of ``vocabulary`` as arrays; needs numpy only.

    State 0 is the root of the trie. If tokens have other bytes at the start of a text, state 0 is the start and state 1
    is the root.
    """
    data, offsets = vocabulary.packed()
    if vocabulary.initial_tokens is None:
        num_states, arcs = _trie_arcs(data, offsets, root=0, target=0, next_state=1)
        return _assemble(num_states, [0], [arcs])
    start, root = 0, 1
    initial_data, initial_offsets = vocabulary.packed(initial=True)
    num_states, first = _trie_arcs(initial_data, initial_offsets, root=start, target=root, next_state=2)
    num_states, later = _trie_arcs(data, offsets, root=root, target=root, next_state=num_states)
    silent = np.flatnonzero((np.diff(initial_offsets) == 0) & (np.diff(offsets) > 0))
    skips = np.empty((4, silent.size), np.int64)
    skips[0], skips[1], skips[2] = start, token_label(silent), EPSILON_LABEL
    skips[3] = start if vocabulary.start_absorbs else root
    return _assemble(num_states, [start, root], [skips, first, later])


def _trie_arcs(
    data: bytes, offsets: npt.NDArray[np.uint64], *, root: int, target: int, next_state: int
) -> tuple[int, IntArray]:
    """Arcs that spell every token from ``root`` to ``target``, with new states from ``next_state`` on.

    Returns the number of states so far, and int64 (4, arcs): source, ilabel, olabel, nextstate.
    """
    text = np.frombuffer(data, np.uint8)
    begin = offsets[:-1].astype(np.int64)
    length = np.diff(offsets).astype(np.int64)
    token = np.flatnonzero(length)
    state = np.full(token.size, root, np.int64)
    parts = [np.empty((4, 0), np.int64)]
    depth = 0
    while token.size:
        byte = text[begin[token] + depth].astype(np.int64)
        last = length[token] == depth + 1
        ends = np.empty((4, np.count_nonzero(last)), np.int64)
        ends[0], ends[1], ends[2], ends[3] = (
            state[last],
            token_label(token[last]),
            byte_label(byte[last]),
            target,
        )
        token = token[~last]
        # Tokens in the same state that continue with the same byte share the next state.
        edges, which = np.unique(state[~last] << 8 | byte[~last], return_inverse=True)
        inner = np.empty((4, edges.size), np.int64)
        inner[0], inner[1], inner[2] = edges >> 8, EPSILON_LABEL, byte_label(edges & 0xFF)
        inner[3] = np.arange(next_state, next_state + edges.size)
        parts += (ends, inner)
        state = inner[3][which]
        next_state += edges.size
        depth += 1
    return next_state, np.concatenate(parts, axis=1)


def _assemble(num_states: int, finals: list[int], parts: list[IntArray]) -> Arcs:
    arcs = np.concatenate(parts, axis=1)
    arcs = arcs[:, np.argsort(arcs[0], kind="stable")].astype(np.int32)
    return Arcs(num_states, finals[0], np.array(finals, np.int64), *arcs)
