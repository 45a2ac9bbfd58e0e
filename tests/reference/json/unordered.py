"""Members in any order, the slow way: the union of all their sequences, each written out as a concatenation."""

from __future__ import annotations

from dataclasses import replace

from tokenfst.automata.expressions.expression import EMPTY, EPSILON, Expr, Op, Unordered, concat, union
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.automata.rules.graph import inner_nodes


def all_orders(node: Expr, longest: int) -> Expr:
    """An UNORDERED node as a union; of what may be repeated, sequences of at most ``longest`` members."""
    assert isinstance(node.value, Unordered)
    low, high, required, repeats = node.value
    separator, *members = node.args
    last = len(members) - (repeats > 0)
    found: list[Expr] = []
    stack: list[tuple[int, ...]] = [()]
    while stack:
        chosen = stack.pop()
        options = [k for k in chosen if k < last]
        counted = len(options) if repeats == 2 else len(chosen)
        if counted >= low and set(range(required)) <= set(options):
            parts = [part for k in chosen for part in (separator, members[k])]
            found.append(concat(*parts[1:]) if parts else EPSILON)
        if len(chosen) != (longest if high < 0 else min(longest, high)):
            stack += [(*chosen, k) for k in range(len(members)) if k == last or k not in options]
    return union(*found) if found else EMPTY


def without_unordered(body: Expr, longest: int) -> Expr:
    """A body with all of its UNORDERED nodes written out like that."""
    done: dict[int, Expr] = {}
    for node in inner_nodes(body):
        args = [done.get(id(arg), arg) for arg in node.args]
        same = all(new is old for new, old in zip(args, node.args, strict=True))
        made = node if same else rebuilt(node, args) if args else replace(node)
        done[id(node)] = all_orders(made, longest) if made.op is Op.UNORDERED else made
    return done[id(body)]
