"""Places in the composition of a token automaton with a tokenizer's canonical sequences."""

from __future__ import annotations

from typing import NamedTuple

NO_TOKEN = -1
"""As the last token: which it was does not matter."""

ENDS = -2
"""As the first token of a way to acceptance: there is none, the text may end."""


class Node(NamedTuple):
    """A state of the composition: the language's, the segmentation's, and the last token (-1: it does not matter)."""

    state: int
    cuts: int
    last: int
