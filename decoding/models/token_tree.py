"""``TokenTree``: a tree of alternative token sequences with shared prefixes.

A node is a token after its parent, which is an earlier node or, as -1, the root. Drafts of speculative decoding are
trees, and so are the token sequences of a set of labels. Nodes are numbered in order of insertion, so a parent's number
is less than its children's. Cost: O(depth) for a path, O(1) per node for everything else.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from tokenfst.errors import ModelError


class TokenTree:
    """A tree of tokens. ``tokens``, ``parents``: by node. The children of the root, -1, are the first tokens."""

    def __init__(self) -> None:
        self.tokens: list[int] = []
        self.parents: list[int] = []
        self._children: list[dict[int, int]] = [{}]

    @classmethod
    def of_sequences(cls, sequences: Iterable[Iterable[int]]) -> tuple[TokenTree, list[int]]:
        """The trie of several sequences, and the node at which each of them ends (-1 for the empty one)."""
        tree = cls()
        ends = []
        for sequence in sequences:
            node = -1
            for token in sequence:
                known = tree.children(node).get(token)
                node = tree.append(node, token) if known is None else known
            ends.append(node)
        return tree, ends

    def __len__(self) -> int:
        return len(self.tokens)

    def append(self, parent: int, token: int) -> int:
        """Add a node and return its number. Raises ``ModelError`` if ``parent`` is not a node."""
        node = len(self.tokens)
        if not -1 <= parent < node:
            raise ModelError(f"node {node} of a tree has the parent {parent}, which is not an earlier node")
        self.tokens.append(token)
        self.parents.append(parent)
        self._children[parent + 1][token] = node
        self._children.append({})
        return node

    def add(self, parents: Sequence[int], tokens: Sequence[int]) -> range:
        """Add nodes and return their numbers."""
        first = len(self)
        for parent, token in zip(parents, tokens, strict=True):
            self.append(parent, token)
        return range(first, len(self))

    def children(self, node: int) -> dict[int, int]:
        """The children of ``node`` by token, in the order in which they were added. If several have the same token, the
        result has the last of them.
        """
        return self._children[node + 1]

    @property
    def is_chain(self) -> bool:
        """Whether each node is the child of the node before it."""
        return self.parents == list(range(-1, len(self) - 1))

    def path_nodes(self, node: int) -> list[int]:
        """The nodes from the root down to ``node``."""
        path = []
        while node >= 0:
            path.append(node)
            node = self.parents[node]
        return path[::-1]

    def path(self, node: int) -> list[int]:
        """The tokens from the root down to ``node``."""
        return [self.tokens[each] for each in self.path_nodes(node)]

    def links(self) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """First child, next sibling and token of each node, the arguments of ``Matcher.traverse_draft_tree``.

        int64 (nodes + 1,), with the root 0 before all others, and -1 for none. The children of a node must have
        different tokens.
        """
        first = np.full(len(self) + 1, -1, np.int64)
        sibling = np.full(len(self) + 1, -1, np.int64)
        for node, below in enumerate(self._children):
            numbers = [child + 1 for child in below.values()]
            for one, other in zip([-1, *numbers], [*numbers, -1], strict=True):
                if one < 0:
                    first[node] = other
                else:
                    sibling[one] = other
        return first, sibling, np.array([-1, *self.tokens], np.int64)
