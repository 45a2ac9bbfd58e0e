"""Automata of token edges, read arc by arc, and random ones."""

from __future__ import annotations

import random

import numpy as np

from tokenfst.decoding.rows.edges import TokenEdges

Arc = tuple[int, int, int]


def arcs_of(edges: TokenEdges) -> set[Arc]:
    """The triples (source, token, target)."""
    return {
        (source, token, target)
        for source, target, label in zip(
            edges.source.tolist(), edges.target.tolist(), edges.label.tolist(), strict=True
        )
        for token in edges.set_of(label).tolist()
    }


def ways(edges: TokenEdges, sequence: tuple[int, ...], arcs: set[Arc]) -> int:
    """The number of ways along which a sequence is accepted."""
    at = dict.fromkeys(np.flatnonzero(edges.start).tolist(), 1)
    for token in sequence:
        after: dict[int, int] = {}
        for source, symbol, target in arcs:
            if symbol == token and source in at:
                after[target] = after.get(target, 0) + at[source]
        at = after
    return sum(count for state, count in at.items() if edges.accepting[state])


def random_edges(rng: random.Random, tokens: int = 3, width: int | None = None) -> TokenEdges:
    """A small automaton, nondeterministic as a rule, over ``tokens`` of ``width`` tokens."""
    states = rng.randint(1, 4)
    arcs = [
        (rng.randrange(states), rng.randrange(tokens), rng.randrange(states))
        for _ in range(rng.randint(0, 8))
    ]
    return TokenEdges.from_arcs(
        arcs,
        num_states=states,
        start=rng.sample(range(states), rng.randint(1, min(2, states))),
        accepting=[s for s in range(states) if rng.random() < 0.4],
        num_tokens=tokens if width is None else width,
    )
