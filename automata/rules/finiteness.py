"""Finiteness of a grammar.

A language is infinite if a rule body grows without bound (``languages.finiteness``), or if a rule recurs next to a
non-empty text. The rules with a non-empty word are a least fixed point. Each pass of its computation is linear in
the grammar, and few passes are needed.
"""

from __future__ import annotations

from tokenfst.automata.expressions.expression import Op
from tokenfst.automata.languages.finiteness import Sizes
from tokenfst.automata.rules.graph import Rules, components, reachable
from tokenfst.budget import Budget


def is_finite(rules: Rules, start: str, budget: Budget, source: str) -> bool:
    """Whether ``start`` has finitely many words. All other ``rules``, and each of their parts, must have words."""
    if start not in rules:
        return True
    sizes = Sizes(budget, lambda node: node.op is not Op.EMPTY)
    reached = reachable(rules.graph, start)
    filled: set[str] = set()
    found = -1
    while found != len(filled):
        found = len(filled)
        for name in reversed(reached):
            if name not in filled and sizes.has_nonempty_word(rules[name], filled):
                filled.add(name)
    growths = {name: sizes.growth(rules[name], filled) for name in reached}
    endless = any(each.endless for each in growths.values())
    if not endless:
        graph = {name: list(each.calls) for name, each in growths.items()}
        number = {name: place for place, part in enumerate(components(graph)) for name in part}
        endless = any(
            grows and number[name] == number[callee]
            for name, each in growths.items()
            for callee, grows in each.calls.items()
        )
    if endless:
        for name in reached:
            sizes.check_differing(rules.nodes(name), source)
    return not endless
