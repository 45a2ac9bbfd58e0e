"""Whether a grammar has finitely many words.

The idea: texts grow without end inside of a body (``languages.finiteness``), or where a rule comes back to itself with
something beside it that is not empty: then it can do so again and again. Which rules have a word that is not empty is a
least fixed point. Linear in the grammar for each pass of that, and passes are few.
"""

from __future__ import annotations

from tokenfst.automata.expressions.expression import Op
from tokenfst.automata.languages.finiteness import Sizes
from tokenfst.automata.rules.graph import Rules, components, reachable
from tokenfst.budget import Budget


def is_finite(rules: Rules, start: str, budget: Budget, source: str) -> bool:
    """Whether ``start`` has finitely many words; all ``rules`` but it have one, and so has each of their parts."""
    if start not in rules:
        return True
    sizes = Sizes(budget, lambda node: node.op is not Op.EMPTY)
    reached = reachable(rules.graph, start)
    filled: set[str] = set()
    found = -1
    while found != len(filled):
        found = len(filled)
        for name in reversed(reached):
            if name not in filled and sizes.has_more_than_nothing(rules[name], filled):
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
