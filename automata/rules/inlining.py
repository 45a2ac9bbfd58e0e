"""Replacement of calls by expressions: which parts of a grammar are regular, and which need a stack.

Left recursion is removed first (``left_recursion``). Then *tail recursion* becomes ``expression.recursive``: rules
that call each other as their last part are variables of one system, a *family*, which is regular. Every other call
is *hard*: it would need a stack, and is replaced by the callee's expression unless the callee is recursive. Cycles
of hard calls go through *heads*: the head of a strongly connected component is the rule that is entered first.
Without its head, the component decomposes into smaller ones with their own heads (``graph.nested_heads``).
``truncation`` cuts at heads below a depth; ``pushdown`` keeps their calls. Both use an ``Inliner``.

Invariant: an expression made here has the words of its rule, given those of its hard calls. Cost: linear in the
rules, and in a rule's body each time that its expression is made; parts without calls are shared. In the graph of
hard calls every member of a family has the calls of the whole family.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tokenfst.automata.expressions.expression import Expr, Op
from tokenfst.automata.expressions.metering import NodeMeter
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.automata.rules.graph import (
    COMPOSED,
    cycles,
    is_composed,
    nested_heads,
    reachable,
)
from tokenfst.automata.rules.left_recursion import Rewritten, rewrite_left_recursion
from tokenfst.budget import Budget


class Inliner:
    """The rules that ``start`` reaches, without left recursion, and their hard calls."""

    def __init__(self, rules: Mapping[str, Expr] | Rewritten, start: str, budget: Budget) -> None:
        """Remove left recursion from ``rules``, unless that has been done already.

        Raises BudgetExceeded("positions" or "seconds"), as all methods do, naming the rule.
        """
        self.start = start
        plain = rules if isinstance(rules, Rewritten) else rewrite_left_recursion(rules, start, budget)
        self.rules, self.origins = plain.rules, plain.origins
        self.meter = NodeMeter(budget)
        self.calls = {name: self.rules.bodies[name].placed_calls() for name in self.rules}
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
            body, made = self.rules.bodies[name].with_tails(variables, hard, rebuilt)
            self.meter.charge(made, name)
            # The variables of one system name each other, so all are made before their bodies.
            variable.finish(_named(body, name))
        return variables

    def inlined(self, name: str, hard: dict[str, Expr]) -> Expr:
        """The body of a rule with all its calls replaced."""
        body = self.rules.bodies[name]
        self.meter.charge(len(body.nodes), name)
        return body.with_calls(hard, rebuilt)


def rebuild(nodes: list[Expr], leaf: Callable[[Expr], Expr]) -> Expr:
    """A body, given its outer nodes, with its leaves replaced; unchanged parts are shared."""
    done: dict[int, Expr] = {}
    for node in nodes:
        if is_composed(node):
            args = [done[id(arg)] for arg in node.args]
            # Two lists of nodes are equal if they hold the same objects.
            done[id(node)] = node if args == [*node.args] else rebuilt(node, args)
        else:
            done[id(node)] = leaf(node)
    return done[id(nodes[-1])]


def _named(expr: Expr, name: str) -> Expr:
    """``expr`` labelled with its rule, so that an exceeded budget can name it."""
    return expr.named(f"the rule {name!r}") if expr.op in COMPOSED and not expr.source else expr
