"""Inlining the calls of a grammar: what is regular exactly, the rest down to a depth.

The idea, in three steps.

1. *Left recursion* becomes repetition. Rules that call each other as their first part form a group. A word of
   such a rule T is some word x of a rule R that begins without a call into the group, followed by what the
   calls on the way from R up to T leave to their right; those ways are right recursive. For one rule alone,
   ``t: t s | x``, it is x s*.
2. *Tail recursion* becomes ``expression.recursive``: rules that call each other as their last part are
   variables of one system, which is regular as it stands.
3. Every other call is *hard*: it would need a stack, and is replaced by the callee's expression. Cycles of
   hard calls are cut at their heads. The heads come from a weak topological order (Bourdoncle, "Efficient
   chaotic iteration strategies with widenings", 1993): of every strongly connected component the rule
   entered first is the head; without it the component falls apart into smaller ones, with heads of their own.
   A call of a head from inside of its component takes one of the ``depth`` re-entries of that head; entering
   an inner component anew gives it all of its own.

Invariant: no step changes the language but the cuts, and a cut only removes derivations; so the result is a
subset, and more depth a superset. A path through a derivation that re-enters a head n times nests that rule
n times in itself, so nothing is lost of derivations in which every rule is nested at most ``depth`` times.

Cost: an expression per (rule, re-entries left), shared by all that call it: rules × depth nodes where no
component lies inside of another, rules × depth^k for k levels of them. Rejected: one counter for all
components, which is always linear, but then a sign in front of a number would use up the depth of brackets.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from tokenfst.automata.expression import (
    EMPTY,
    EPSILON,
    Expr,
    Op,
    call,
    concat,
    repeat,
    union,
)
from tokenfst.automata.rule_graph import (
    COMPOSED,
    called,
    called_at_edge,
    cycles,
    holding,
    inner_nodes,
    name_of,
    reachable,
)
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

_NODE = 16
"""Positions that a node made here counts for: a node in memory, unlike a position of a counted repetition."""

_Key = tuple[str, tuple[int, ...]]


def hard_cycle(rules: Mapping[str, Expr], start: str, budget: Budget) -> list[str] | None:
    """The rules of one component that only a stack recognizes; ``None`` where inlining is exact."""
    found = cycles(_Inliner(rules, start, budget).hard)
    return found[0] if found else None


def inline(rules: Mapping[str, Expr], start: str, depth: int, budget: Budget) -> Expr:
    """The words of ``start`` with heads of recursion entered again at most ``depth`` times (see above)."""
    return _Inliner(rules, start, budget).inline(depth)


class _Inliner:
    """The rules that ``start`` reaches, without left recursion, and their hard calls."""

    def __init__(self, rules: Mapping[str, Expr], start: str, budget: Budget) -> None:
        self.start, self.budget = start, budget
        self.deadline = time.monotonic() + budget.seconds
        self.nodes = 0
        self.rules = self.without_left_recursion(rules)
        tails = {name: called_at_edge(body, -1) for name, body in self.rules.items()}
        self.family: dict[str, list[str]] = {}
        for group in cycles(tails):
            self.family.update(dict.fromkeys(group, group))
        self.hard: dict[str, list[str]] = {}
        found = [start]
        for name in found:
            if name not in self.hard:
                self.hard[name] = self.hard_calls(name)
                found += self.hard[name]

    def charge(self, nodes: int, where: str) -> None:
        """Count nodes that were made for the rule ``where``."""
        self.nodes += nodes
        if self.nodes * _NODE > self.budget.positions:
            raise BudgetExceeded("positions", self.budget.positions, f"the rule {where!r}")
        if time.monotonic() > self.deadline:
            raise BudgetExceeded("seconds", self.budget.seconds, f"the rule {where!r}")

    # --- left recursion -------------------------------------------------------------------------------

    def without_left_recursion(self, rules: Mapping[str, Expr]) -> dict[str, Expr]:
        groups: dict[str, list[str]] = {}
        for group in cycles({name: called_at_edge(body, 0) for name, body in rules.items()}):
            groups.update(dict.fromkeys(group, group))
        made: dict[str, Expr] = {}
        wanted = [self.start]
        for name in wanted:
            if name in made:
                continue
            new = self.climbing(rules, groups[name], name) if name in groups else {name: rules[name]}
            made.update(new)
            for body in new.values():
                wanted += called(body)
        return made

    def climbing(self, rules: Mapping[str, Expr], group: list[str], target: str) -> dict[str, Expr]:
        """Rules for the words of ``target`` that begin without a call into its group."""
        members = set(group)
        split = {name: self.split_first(rules[name], members, name) for name in group}
        if len(group) == 1:
            exits, steps = split[target]
            rests = union(*(rest for _, rest in steps if rest is not EPSILON))
            return {target: concat(exits, EPSILON if rests is EMPTY else repeat(rests))}
        up = {name: _fresh(f"{name} up to {target}", rules) for name in group}
        ways: dict[str, list[Expr]] = {name: [] for name in group}
        ways[target].append(EPSILON)
        for caller, (_, steps) in split.items():
            for callee, rest in steps:
                if caller != callee or rest is not EPSILON:
                    ways[callee].append(concat(rest, call(up[caller])))
            self.charge(2 * len(steps) + 2, target)
        result = {up[name]: union(*ways[name]) for name in group}
        result[target] = union(*(concat(split[name][0], call(up[name])) for name in group))
        return result

    def split_first(self, body: Expr, group: set[str], name: str) -> tuple[Expr, list[tuple[str, Expr]]]:
        """What of a body does not begin with a call into the group; and (callee, rest) of what does."""
        inside = holding(body, group)
        exits: list[Expr] = []
        steps: list[tuple[str, Expr]] = []
        stack = [(body, EPSILON)]
        while stack:
            node, rest = stack.pop()
            if node.op is Op.CALL and id(node) in inside:
                steps.append((name_of(node), rest))
            elif node.op is Op.UNION and id(node) in inside:
                stack.extend((arg, rest) for arg in reversed(node.args))
            elif node.op is Op.CONCAT and id(node.args[0]) in inside:
                stack.append((node.args[0], concat(*node.args[1:], rest)))
            else:
                exits.append(concat(node, rest))
            self.charge(2, name)
        return union(*exits), steps

    # --- hard calls -----------------------------------------------------------------------------------

    def hard_calls(self, entry: str) -> list[str]:
        """The calls of a rule, and of those it is one system with, that are not variables of the system."""
        found: dict[str, None] = {}
        for name in self.family.get(entry, [entry]):
            for callee, tail in _placed_calls(self.rules[name]):
                if not (tail and self.family.get(callee, []) is self.family.get(entry)):
                    found[callee] = None
        return list(found)

    def heads(self) -> dict[str, tuple[str, ...]]:
        """Of each rule the heads of the components around it, outermost first; a head is its own last."""
        order = {name: number for number, name in enumerate(reachable(self.hard, self.start))}
        around: dict[str, tuple[str, ...]] = dict.fromkeys(self.hard, ())
        work: list[tuple[list[str], tuple[str, ...]]] = [(list(self.hard), ())]
        while work:
            vertices, outer = work.pop()
            inside = set(vertices)
            graph = {name: [each for each in self.hard[name] if each in inside] for name in vertices}
            for part in cycles(graph):
                head = min(part, key=order.__getitem__)
                for name in part:
                    around[name] = (*outer, head)
                work.append(([name for name in part if name != head], (*outer, head)))
            self.charge(0, vertices[0] if vertices else self.start)
        return around

    def inline(self, depth: int) -> Expr:
        around = self.heads()

        def entered(caller: _Key, callee: str) -> _Key | None:
            """What a call leads to; ``None`` if it is one too deep."""
            name, left = caller
            chain, target = around[name], around[callee]
            if target and target[-1] == callee and target == chain[: len(target)]:
                last = len(target) - 1
                return None if left[last] == 0 else (callee, (*left[:last], left[last] - 1))
            common = 0
            while common < min(len(chain), len(target)) and chain[common] == target[common]:
                common += 1
            return callee, (*left[:common], *(depth,) * (len(target) - common))

        first: _Key = (self.start, (depth,) * len(around[self.start]))
        done: dict[_Key, Expr] = {}
        stack = [first]
        while stack:
            key = stack[-1]
            if key in done:
                stack.pop()
                continue
            targets = {callee: entered(key, callee) for callee in self.hard[key[0]]}
            if waiting := [
                target for target in targets.values() if target is not None and target not in done
            ]:
                stack += waiting
                continue
            stack.pop()
            done[key] = self.expression_of(
                key[0], {callee: EMPTY if at is None else done[at] for callee, at in targets.items()}
            )
        return done[first]

    def expression_of(self, entry: str, hard: Mapping[str, Expr]) -> Expr:
        """The expression of a rule, given those of its hard calls."""
        group = self.family.get(entry)
        if group is None:
            return _named(self.rewrite(entry, lambda name, _: hard[name]), entry)
        variables = {name: Expr(Op.VARIABLE) for name in group}
        for name, variable in variables.items():
            body = self.rewrite(name, lambda callee, tail: (tail and variables.get(callee)) or hard[callee])
            # The variables of one system name each other, so they are made before their bodies.
            object.__setattr__(variable, "args", (_named(body, name),))
        return variables[entry]

    def rewrite(self, name: str, resolve: Callable[[str, bool], Expr]) -> Expr:
        """The body of a rule with its calls replaced; parts without calls are shared and not copied."""
        body = self.rules[name]
        inside = holding(body)
        done: dict[tuple[int, bool], Expr] = {}
        stack: list[tuple[Expr, bool, bool]] = [(body, True, False)]
        while stack:
            node, tail, ready = stack.pop()
            key = (id(node), tail)
            if key in done:
                continue
            if id(node) not in inside:
                done[key] = node
            elif node.op is Op.CALL:
                done[key] = resolve(name_of(node), tail)
            elif ready:
                args = [done[id(arg), place] for arg, place in _places(node, tail)]
                done[key] = rebuilt(node, args)
                self.charge(1, name)
            else:
                stack.append((node, tail, True))
                stack.extend((arg, place, False) for arg, place in _places(node, tail))
        return done[id(body), True]


def _places(node: Expr, tail: bool) -> Iterable[tuple[Expr, bool]]:
    """The operands of a node, and whether each stands in tail position if the node does."""
    if node.op is Op.UNION:
        return [(arg, tail) for arg in node.args]
    last = len(node.args) - 1 if node.op is Op.CONCAT else -1
    return [(arg, tail and number == last) for number, arg in enumerate(node.args)]


def _placed_calls(body: Expr) -> list[tuple[str, bool]]:
    """Every call of a body, and whether it stands in tail position."""
    found: list[tuple[str, bool]] = []
    seen: set[tuple[int, bool]] = set()
    stack: list[tuple[Expr, bool]] = [(body, True)]
    while stack:
        node, tail = stack.pop()
        if (id(node), tail) in seen:
            continue
        seen.add((id(node), tail))
        if node.op is Op.CALL:
            found.append((name_of(node), tail))
        elif node.op in COMPOSED:
            stack.extend(reversed(list(_places(node, tail))))
    return found


def rebuilt(node: Expr, args: list[Expr]) -> Expr:
    """A node of the same kind with other operands."""
    if node.op is Op.CONCAT:
        return concat(*args)
    if node.op is Op.UNION:
        return union(*args)
    assert isinstance(node.value, tuple)
    low, high = node.value
    if args[0] is EMPTY:
        return EMPTY if low else EPSILON
    return repeat(args[0], low, None if high < 0 else high, node.source)


def _named(expr: Expr, name: str) -> Expr:
    """``expr`` labelled with the rule that it is, so that an exceeded budget can name it."""
    return replace(expr, source=f"the rule {name!r}") if expr.op in COMPOSED and not expr.source else expr


def _fresh(name: str, rules: Mapping[str, Expr]) -> str:
    while name in rules:
        name += "'"
    return name


def size(expr: Expr) -> int:
    """The positions of a rule body with its counted repetitions written out; a call is one."""
    sizes: dict[int, int] = {}
    for node in inner_nodes(expr):
        if node.op in COMPOSED:
            total = sum(sizes[id(arg)] for arg in node.args)
            if node.op is Op.REPEAT:
                assert isinstance(node.value, tuple)
                low, high = node.value
                total *= max(low, 1) if high < 0 else high
            sizes[id(node)] = total
        else:
            sizes[id(node)] = 1
    return sizes[id(expr)]
