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
from functools import cached_property

from tokenfst._native import Inlining
from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.expressions.metering import NodeMeter
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.automata.rules.graph import is_composed
from tokenfst.automata.rules.left_recursion import Rewritten, rewrite_left_recursion
from tokenfst.budget import Budget


class Inliner:
    """The rules that ``start`` reaches, without left recursion, and their hard calls by rule (``hard``)."""

    def __init__(self, rules: Mapping[str, Expr] | Rewritten, start: str, budget: Budget) -> None:
        """Remove left recursion from ``rules``, unless that has been done already.

        Raises BudgetExceeded("positions" or "seconds"), as all methods do, naming the rule.
        """
        plain = rules if isinstance(rules, Rewritten) else rewrite_left_recursion(rules, start, budget)
        self.rules, self.origins = plain.rules, plain.origins
        self.meter = NodeMeter(budget)
        self.native = Inlining(plain.rules.bodies, start)

    @cached_property
    def hard(self) -> dict[str, list[str]]:
        """For each rule, the rules that it, or any rule of its family, calls by hard calls."""
        return self.native.hard

    def heads(self) -> dict[str, tuple[str, ...]]:
        """For each rule the heads of its enclosing components, outermost first. The last head of a head is itself."""
        return self.native.heads(self.meter.charge)

    def expressions(self, entry: str, hard: dict[str, Expr]) -> dict[str, Expr]:
        """The expressions of a rule and of the other rules of its family. ``hard``: the expressions that replace the
        hard calls.
        """
        return self.native.expressions(entry, hard, rebuilt, self.meter.charge)

    def called(self, large: int, doublings: int) -> dict[str, Expr]:
        """The expressions of the start and of the rules that must be called: see ``pushdown``."""
        return self.native.called(large, doublings, rebuilt, self.meter.charge)


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
