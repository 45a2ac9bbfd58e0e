"""Nodes of the composition of a token automaton with a tokenizer's canonical sequences."""

from __future__ import annotations

from typing import NamedTuple

NO_TOKEN = -1
"""A value of ``Node.last``: the last token is irrelevant."""

ENDS = -2
"""In place of the first token of a path to acceptance: the path is empty, the text may end."""


class Node(NamedTuple):
    """A state of the composition: the language's state, the segmentation's state, and the last token (-1 if
    irrelevant).
    """

    state: int
    cuts: int
    last: int
