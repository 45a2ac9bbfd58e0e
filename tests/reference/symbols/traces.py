"""Temporal logic on finite traces, read off its definition: the slow twin of ``tokenfst.automata.symbols.ltlf``.

A formula is a nested tuple: ``("letter", {"a", ...})``, ``("true",)``, ``("not", f)`` and likewise X, WX, F and G,
``("and", f, g)`` and likewise or, implies, iff, U, W, R and M. It is asked of a trace at a place; the place after
the last letter has no letter and no next place.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterator, Sequence
from typing import Any

Formula = tuple[Any, ...]

SIGNS = {"and": "&", "or": "|", "implies": "->", "iff": "<->", "U": "U", "W": "W", "R": "R", "M": "M"}


def holds(formula: Formula, trace: Sequence[str], at: int = 0) -> bool:
    """Whether ``trace`` satisfies a formula at a place."""
    kind, *parts = formula
    n = len(trace)

    def now(part: Formula) -> bool:
        return holds(part, trace, at)

    def here(part: Formula, place: int) -> bool:
        return holds(part, trace, place)

    if kind == "letter":
        return at < n and trace[at] in parts[0]
    if kind == "true":
        return True
    if kind == "not":
        return not now(parts[0])
    if kind == "and":
        return now(parts[0]) and now(parts[1])
    if kind == "or":
        return now(parts[0]) or now(parts[1])
    if kind == "implies":
        return not now(parts[0]) or now(parts[1])
    if kind == "iff":
        return now(parts[0]) == now(parts[1])
    if kind == "X":
        return at + 1 < n and here(parts[0], at + 1)
    if kind == "WX":
        return at + 1 >= n or here(parts[0], at + 1)
    if kind == "F":
        return any(here(parts[0], j) for j in range(at, n))
    if kind == "G":
        return all(here(parts[0], j) for j in range(at, n))
    left, right = parts
    if kind == "U":  # some j where right holds, and left at all places before
        return any(here(right, j) and all(here(left, i) for i in range(at, j)) for j in range(at, n))
    if kind == "M":  # some j where both hold, and right at all places before
        return any(here(left, j) and all(here(right, i) for i in range(at, j + 1)) for j in range(at, n))
    if kind == "W":  # until, or left at all places
        return holds(("U", left, right), trace, at) or holds(("G", left), trace, at)
    assert kind == "R"  # right at each place before which left has not held
    return all(here(right, j) or any(here(left, i) for i in range(at, j)) for j in range(at, n))


def written(formula: Formula) -> str:
    """The formula in the syntax of ``ltlf``, with all its parentheses."""
    kind, *parts = formula
    if kind == "letter":
        return " | ".join(sorted(parts[0])) if len(parts[0]) == 1 else f"({' | '.join(sorted(parts[0]))})"
    if kind == "true":
        return "true"
    if len(parts) == 1:
        return f"{'!' if kind == 'not' else kind}({written(parts[0])})"
    return f"({written(parts[0])}) {SIGNS[kind]} ({written(parts[1])})"


def traces(letters: Sequence[str], length: int) -> Iterator[tuple[str, ...]]:
    """All traces of at most ``length`` letters."""
    for size in range(length + 1):
        yield from itertools.product(letters, repeat=size)


def random_formula(rng: random.Random, letters: Sequence[str], size: int) -> Formula:
    """A formula of about ``size`` operators."""
    if size <= 0:
        return ("true",) if rng.random() < 0.1 else ("letter", frozenset({rng.choice(letters)}))
    if rng.random() < 0.5:
        return (rng.choice(["not", "X", "WX", "F", "G"]), random_formula(rng, letters, size - 1))
    left = rng.randrange(size)
    kind = rng.choice(["and", "or", "implies", "iff", "U", "W", "R", "M"])
    return (kind, random_formula(rng, letters, left), random_formula(rng, letters, size - 1 - left))
