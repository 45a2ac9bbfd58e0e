"""The rules that a push-down automaton calls: a grammar in which every part that needs no stack is inlined.

The idea. A call that is walked costs a frame on a stack. A call that is inlined costs only the callee's expression,
which all callers share. Only heads of hard recursion must be called (``inlining``), so they and the start remain
rules. Every other call is replaced, as long as the resulting expression stays small: an expression is walked by its
derivatives, of which there are as many as it has positions, and more if they overlap.

Invariant: the rules keep their words, and none reaches itself at its left edge (``left_recursion``). Cost: one
expression per rule of the grammar. Rejected: keeping every rule of the grammar; that nests frames where a grammar
only names its parts, and the names would separate masks that are equal.
"""

from __future__ import annotations

from collections.abc import Mapping

from tokenfst.automata.expressions.expression import Expr, call
from tokenfst.automata.rules.graph import components
from tokenfst.automata.rules.inlining import Inliner
from tokenfst.automata.rules.left_recursion import Rewritten
from tokenfst.budget import Budget

_LARGE = 20_000
"""If a rule's expression has more positions than this, its largest callees stay calls."""

_DOUBLINGS = 8
"""Chains of this number of nested calls, each of which occurs twice in a row, stay calls.

If they were inlined, their copies would multiply, and if they are ambiguous, so would the possible remainders of a
text. Calls share what they return to.
"""


def pushdown_rules(rules: Mapping[str, Expr] | Rewritten, start: str, budget: Budget) -> dict[str, Expr]:
    """Rules with the same words of ``start``, which comes first, followed by the rules that must be called.

    Left recursion is removed from ``rules`` unless that has been done already.

    Calls remain for heads of recursion, for rules that double each other many times, and for rules that would make
    their callers larger than about 20,000 positions. Rules that call each other as their last part become
    VARIABLEs, below which calls may occur. All other calls are replaced.

    The names are those of the grammar and those that ``rewrite_left_recursion`` adds. Linear in the rules; raises
    BudgetExceeded("positions" or "seconds") naming the rule.
    """
    inliner = Inliner(rules, start, budget)
    kept = {name for name, heads in inliner.heads().items() if heads and heads[-1] == name} | {start}
    kept |= _doubling(inliner, kept)
    done: dict[str, Expr] = {}
    sizes: dict[str, int] = {}
    graph = {name: [each for each in inliner.hard[name] if each not in kept] for name in inliner.hard}
    for part in components(graph):  # callees first; every cycle goes through a head
        name = part[0]
        if name in done:
            continue
        group = inliner.family.get(name, part)
        kept |= _too_large(inliner, group, kept, sizes)
        hard = {each: call(each) if each in kept else done[each] for each in inliner.hard[name]}
        done.update(inliner.expressions(name, hard))
    return {name: done[name] for name in inliner.hard if name in kept}


def _doubling(inliner: Inliner, kept: set[str]) -> set[str]:
    """Callees that occur twice in a row in a rule, on paths of at least _DOUBLINGS such calls."""
    doubled = {
        name: inliner.rules.bodies[name].doubled() for name in inliner.hard if name not in inliner.family
    }
    if not any(doubled.values()):
        return set()
    graph = {name: [each for each in inliner.hard[name] if each not in kept] for name in inliner.hard}
    order = [name for part in components(graph) for name in part]  # callees first
    below, above = dict.fromkeys(order, 0), dict.fromkeys(order, 0)
    for name in order:
        below[name] = max((below[each] + (each in doubled.get(name, ())) for each in graph[name]), default=0)
    found: set[str] = set()
    for name in reversed(order):
        for each in graph[name]:
            doubles = each in doubled.get(name, ())
            above[each] = max(above[each], above[name] + doubles)
            if doubles and above[name] + 1 + below[each] >= _DOUBLINGS:
                found.add(each)
    return found - inliner.family.keys()


def _too_large(inliner: Inliner, group: list[str], kept: set[str], sizes: dict[str, int]) -> set[str]:
    """Callees that must stay calls so that the rules of ``group``, one system, stay small. Records the sizes of
    these rules.

    An inlined family counts once, however often its variables are named, because all share their bodies.
    """
    total = sum(inliner.rules.bodies[name].size for name in group)
    allowed = max(_LARGE, 2 * total)
    grown: dict[str, int] = {}
    callees: dict[str, set[str]] = {}
    for name in group:
        for callee, count in inliner.rules.bodies[name].call_counts().items():
            if callee in sizes and callee not in kept:
                family = inliner.family.get(callee)
                key = family[0] if family else callee
                more = sizes[callee] if family else count * (sizes[callee] - 1)
                grown[key] = more if family else grown.get(key, 0) + more
                callees.setdefault(key, set()).add(callee)
    total += sum(grown.values())
    found: set[str] = set()
    for key in sorted(grown, key=lambda key: -grown[key]) if total > allowed else ():
        if total <= allowed:
            break
        found |= callees[key]
        total -= grown[key]
    sizes.update(dict.fromkeys(group, total))
    return found
