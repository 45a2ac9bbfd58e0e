"""Replacement of calls by expressions in plain Python: the twin of the core's ``Inlining``."""

from __future__ import annotations

from collections.abc import Mapping

from tests.reference.grammars import rule_graphs as slow
from tokenfst.automata.expressions.expression import Expr, Op, call
from tokenfst.automata.expressions.metering import NodeMeter
from tokenfst.automata.rules.graph import COMPOSED, components, cycles, name_of, nested_heads, reachable
from tokenfst.automata.rules.inlining import rebuild
from tokenfst.automata.rules.left_recursion import Rewritten, rewrite_left_recursion
from tokenfst.budget import Budget


class SlowInliner:
    """The rules that ``start`` reaches, without left recursion, and their hard calls."""

    def __init__(self, rules: Mapping[str, Expr] | Rewritten, start: str, budget: Budget) -> None:
        """Remove left recursion from ``rules``, unless that has been done already.

        Raises BudgetExceeded("positions" or "seconds"), as all methods do, naming the rule.
        """
        self.start = start
        plain = rules if isinstance(rules, Rewritten) else rewrite_left_recursion(rules, start, budget)
        self.rules, self.origins = plain.rules, plain.origins
        self.meter = NodeMeter(budget)
        self.nodes = {name: slow.outer_nodes(body) for name, body in self.rules.items()}
        self.calls = {name: slow.placed_calls(body) for name, body in self.rules.items()}
        self.family: dict[str, list[str]] = {}
        tails = {name: [callee for callee, tail in calls if tail] for name, calls in self.calls.items()}
        for group in cycles(tails):
            self.family.update(dict.fromkeys(group, group))
        self.hard: dict[str, list[str]] = {}
        of_group: dict[str, list[str]] = {}
        found = [start]
        for name in found:
            group = self.family.get(name, [name])
            if group[0] not in of_group:
                of_group[group[0]] = self.hard_calls(group)
                found += of_group[group[0]]
            self.hard[name] = of_group[group[0]]

    def hard_calls(self, group: list[str]) -> list[str]:
        """The calls of a rule or of a family that are not variables of its system."""
        family = self.family.get(group[0])
        found: dict[str, None] = {}
        for name in group:
            for callee, tail in self.calls[name]:
                if not tail or family is None or self.family.get(callee) is not family:
                    found[callee] = None
        return list(found)

    def heads(self) -> dict[str, tuple[str, ...]]:
        """For each rule the heads of its enclosing components, outermost first. The last head of a head is itself."""
        order = {name: number for number, name in enumerate(reachable(self.hard, self.start))}
        around: dict[str, tuple[str, ...]] = dict.fromkeys(self.hard, ())
        for head, part in nested_heads(self.hard, order):
            for name in part:
                around[name] += (head,)
            self.meter.charge(0, head)
        return around

    def expressions(self, entry: str, hard: dict[str, Expr]) -> dict[str, Expr]:
        """The expressions of a rule and of the other rules of its system, given those of its hard calls."""
        group = self.family.get(entry)
        if group is None:
            return {entry: _named(self.inlined(entry, hard), entry)}
        variables = {name: Expr(Op.VARIABLE) for name in group}
        for name, variable in variables.items():
            body, made = slow.rewrite(
                self.nodes[name], lambda each, tail: (tail and variables.get(each)) or hard[each]
            )
            self.meter.charge(made, name)
            # The variables of one system name each other, so all are made before their bodies.
            variable.finish(_named(body, name))
        return variables

    def inlined(self, name: str, hard: dict[str, Expr]) -> Expr:
        """The body of a rule with all its calls replaced."""
        nodes = self.nodes[name]
        self.meter.charge(len(nodes), name)
        return rebuild(nodes, lambda node: hard[name_of(node)] if node.op is Op.CALL else node)


def _named(expr: Expr, name: str) -> Expr:
    """``expr`` labelled with its rule, so that an exceeded budget can name it."""
    return expr.named(f"the rule {name!r}") if expr.op in COMPOSED and not expr.source else expr


def pushdown_rules(
    rules: Mapping[str, Expr] | Rewritten, start: str, budget: Budget, large: int, doublings: int
) -> dict[str, Expr]:
    """As ``pushdown.pushdown_rules``, with other bounds."""
    inliner = SlowInliner(rules, start, budget)
    kept = {name for name, heads in inliner.heads().items() if heads and heads[-1] == name} | {start}
    kept |= _doubling(inliner, kept, doublings)
    done: dict[str, Expr] = {}
    sizes: dict[str, int] = {}
    graph = {name: [each for each in inliner.hard[name] if each not in kept] for name in inliner.hard}
    for part in components(graph):  # callees first; every cycle goes through a head
        name = part[0]
        if name in done:
            continue
        group = inliner.family.get(name, part)
        kept |= _too_large(inliner, group, kept, sizes, large)
        hard = {each: call(each) if each in kept else done[each] for each in inliner.hard[name]}
        done.update(inliner.expressions(name, hard))
    return {name: done[name] for name in inliner.hard if name in kept}


def _doubling(inliner: SlowInliner, kept: set[str], doublings: int) -> set[str]:
    """Callees that occur twice in a row in a rule, on paths of at least ``doublings`` such calls."""
    doubled = {name: slow.doubled(inliner.nodes[name]) for name in inliner.hard if name not in inliner.family}
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
            if doubles and above[name] + 1 + below[each] >= doublings:
                found.add(each)
    return found - inliner.family.keys()


def _too_large(
    inliner: SlowInliner, group: list[str], kept: set[str], sizes: dict[str, int], large: int
) -> set[str]:
    """Callees that must stay calls so that the rules of ``group``, one system, stay small. Records the sizes of
    these rules.

    An inlined family counts once, however often its variables are named, because all share their bodies.
    """
    total = sum(slow.size(inliner.nodes[name]) for name in group)
    allowed = max(large, 2 * total)
    grown: dict[str, int] = {}
    callees: dict[str, set[str]] = {}
    for name in group:
        for callee, count in slow.call_counts(inliner.nodes[name]).items():
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
