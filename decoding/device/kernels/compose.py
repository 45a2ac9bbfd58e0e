"""Composition on a device: the mask of a state, by running the whole vocabulary through the class table at once.

The vocabulary's trie is stored in levels, one for each depth. A node is the position of its parent in the level above,
and a byte. One level of all rows is one gather, so a mask takes as many operations as the longest token has bytes, and
one look-up for each node of the trie and row. Dead paths are not cut off, since their entries would occupy the tensors
anyway; DEAD leads to DEAD. The Triton kernels (``triton``) run tokens instead of nodes: more look-ups, one launch.

Source: the composition of a detokenizing transducer with an automaton, state by state (Koo, Liu, He 2024, section 2.4).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tokenfst.decoding.device.tables.pool import Tables, Tensor, torch
from tokenfst.decoding.device.tables.tables import ACCEPTING, AFTER_EMPTY, CLASSES, FIRST, FLAGS, ROW
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary


class Trie(NamedTuple):
    """The trie of a vocabulary. ``levels``: for each depth the parents (int64) and bytes (int32) of its nodes.
    ``ends``: the last node of each token, int64 (V,). Nodes are numbered level by level from the root, which is 0;
    tokens without bytes end at the root.
    """

    levels: tuple[tuple[Tensor, Tensor], ...]
    ends: Tensor

    @classmethod
    def of(cls, vocabulary: Vocabulary, device: torch.device, *, initial: bool) -> Trie:
        """O(bytes of all tokens)."""
        data, offsets = vocabulary.packed(initial=initial)
        text, at = np.frombuffer(data, np.uint8), offsets.astype(np.int64)
        lengths = np.diff(at)
        ends = np.zeros(len(lengths), np.int64)
        tokens = np.flatnonzero(lengths)
        nodes = np.zeros(len(tokens), np.int64)
        levels, before = [], 1
        for depth in range(int(lengths.max(initial=0))):
            longer = lengths[tokens] > depth
            tokens, nodes = tokens[longer], nodes[longer]
            keys, nodes = np.unique(nodes * 256 + text[at[tokens] + depth], return_inverse=True)
            parents, byte = keys // 256, (keys % 256).astype(np.int32)
            levels.append((torch.from_numpy(parents).to(device), torch.from_numpy(byte).to(device)))
            done = lengths[tokens] == depth + 1
            ends[tokens[done]] = before + nodes[done]
            before += len(keys)
        return cls(tuple(levels), torch.from_numpy(ends).to(device))

    def run(self, t: Tables, rows: Tensor, classes: Tensor) -> Tensor:
        """Whether each token leads to a state where tokens may end: bool (B, V). ``rows``, ``classes``: int32 (B,), the
        places of the states in these tables.
        """
        row = rows[:, None]
        passed = [row]
        for parents, byte in self.levels:
            row = t.table[row[:, parents] + 1 + t.classes[classes[:, None] + byte].int()]
            passed.append(row)
        reached = t.table[torch.cat(passed, 1)[:, self.ends]]
        return (reached != 0) & (self.ends > 0)


class Levels(NamedTuple):
    """The tries of a vocabulary. ``inside``: of the tokens inside a text. ``initial``: at the start of a text, if that
    differs. ``silent``: bool (V,), the tokens that have no bytes at the start but some inside. ``end``: bool (V,), the
    end tokens.
    """

    inside: Trie
    initial: Trie | None
    silent: Tensor
    end: Tensor

    @classmethod
    def of(cls, vocabulary: Vocabulary, device: torch.device) -> Levels:
        """O(bytes of all tokens)."""
        inside = Trie.of(vocabulary, device, initial=False)
        end = torch.zeros(len(vocabulary), dtype=torch.bool, device=device)
        end[list(vocabulary.eos_token_ids)] = True
        if vocabulary.initial_tokens is None:
            return cls(inside, None, torch.zeros_like(end), end)
        initial = Trie.of(vocabulary, device, initial=True)
        return cls(inside, initial, (initial.ends == 0) & (inside.ends > 0), end)


def compose(t: Tables, states: Tensor, levels: Levels) -> Tensor:
    """The tokens that each state allows, bool (B, V); only the end tokens if there are none."""
    at = t.states[torch.where((states >= 0) & (states < len(t.states)), states, 0)]
    flags = at[:, FLAGS, None]
    found = levels.inside.run(t, at[:, ROW], at[:, CLASSES])
    if levels.initial is not None:
        first = levels.initial.run(t, at[:, ROW], at[:, CLASSES])
        first = first | (levels.silent & (at[:, AFTER_EMPTY, None] != 0))
        found = torch.where((flags & FIRST) != 0, first, found)
    found = found | (levels.end & ((flags & ACCEPTING) != 0))
    return torch.where(found.any(1, keepdim=True), found, levels.end)
