"""Token automata as pictures: one edge for each pair of states, labelled with some of its tokens.

End tokens are not drawn: doubled circles are the states that accept.
"""

from __future__ import annotations

from collections.abc import Iterable

from tokenfst.automata.languages.display.readable import quoted
from tokenfst.automata.pictures.drawing import Drawing, Edge, draw_graph
from tokenfst.common.plurals import counted
from tokenfst.tokenizers.vocabulary.vocabulary import Vocabulary

_SHOWN_TOKENS = 5
_SHOWN_BYTES = 20

Arc = tuple[int, int, int]
"""Source, token, target."""


def draw_arcs(
    vocabulary: Vocabulary, arcs: Iterable[Arc], start: int, accepting: list[int], title: str
) -> Drawing:
    """A picture of an automaton with these arcs, start state and accepting states. Linear time."""
    between: dict[tuple[int, int], list[int]] = {}
    for source, token, target in arcs:
        between.setdefault((source, target), []).append(token)
    edges = []
    for (begin, end), ids in sorted(between.items()):
        shown = ", ".join(named(vocabulary, each, first=begin == start) for each in ids[:_SHOWN_TOKENS])
        more = f", … ({counted(len(ids), 'token')})" if len(ids) > _SHOWN_TOKENS else ""
        edges.append(Edge(begin, end, shown + more))
    return draw_graph(start, accepting, edges, title)


def named(vocabulary: Vocabulary, token: int, first: bool) -> str:
    """A token as its symbol, its name if it is special, or else its bytes, which may differ at the start of a text."""
    if vocabulary.symbols is not None:
        return vocabulary.symbols[token] or ""
    if token in vocabulary.special_token_ids:
        return next((name for name, each in vocabulary.special_tokens.items() if each == token), str(token))
    return quoted(vocabulary.initial_bytes(token) if first else vocabulary.token_bytes(token), _SHOWN_BYTES)
