"""Removes left recursion: rewrites rules that call themselves at their left edge so that none does.

The *left edge* of a rule is where its words begin: a rule is called there if only parts that have the empty word
precede the call. Expansion of rules byte by byte needs this relation to be acyclic.

The idea. Take a *group* of rules that reach each other at the left edge, and one of them as target T. A word of T
has two parts. First comes a word of a rule R of the group that does not begin with a call into the group (an *exit*
of R). Then follows what the calls on the way from R up to T leave to their right. (A *step* from R to C is a call
of R at the left edge of C; the part after the call is its *rest*.) The way up is right recursive::

    T       = exits(R)·up[R]  for each R          up[R] = (ε if R is T) | rest·up[C]  for each step from R to C

For a single rule, ``t: t s | x``, this gives x s*. Rules that are connected by steps with empty rests share one
``up``, which begins with the repetition of the rests among them; so no ``up`` reaches itself at its left edge.

Only *heads* are rewritten: without its head, a group decomposes into smaller groups with their own heads
(``graph.nested_heads``). A rewritten head calls nothing of its group at its left edge, so every cycle is cut, and
all other rules stay unchanged.

Hidden calls. ``b? a x`` with an optional b has the exit ``b a x``, b not empty, and the step from a with rest
``x``. So an exit takes only the non-empty words of the parts at the left edge (``_Words.nonempty``; for calls by
companion rules, named with a ⁺), and the part after one that may be empty is at the edge as well. A call into the
group counts as a part that is never empty, as long as no rest at the left edge begins with the group again; then
``list: | list item`` becomes item*. Otherwise (``a: a a | "x" |``) the empty word is handled separately, and no
exit contains it.

Invariant: the words of every rule stay the same. Cost: linear in the bodies of a group for each of its heads; rewritten
rules share all unchanged nodes. Source: this is a left-corner transform (Rosenkrantz and Lewis, "Deterministic left
corner parsing", 1970; Moore, "Removing left recursion from context-free grammars", 2000). Rejected: Paull's algorithm,
which substitutes rules into each other and is exponential.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Container, Mapping
from dataclasses import replace
from typing import NamedTuple

from tokenfst._native import left_edges
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    EMPTY,
    EPSILON,
    UNIVERSE,
    Expr,
    Op,
    Unordered,
    body_of,
    bounds_of,
    call,
    concat,
    intersect,
    repeat,
    union,
)
from tokenfst.automata.expressions.metering import NodeMeter
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.automata.rules.graph import (
    COMPOSED,
    Rules,
    components,
    cycles,
    first_operands,
    is_composed,
    name_of,
    nested_heads,
    outer_nodes,
    reachable,
)
from tokenfst.automata.rules.lint import nullable
from tokenfst.automata.rules.permutations import written_out
from tokenfst.budget import Budget

_NONEMPTY = concat(ANY_BYTE, UNIVERSE)


class Rewritten(NamedTuple):
    """``rules``, and ``origins``: for each added rule, the rule of the grammar that it is part of.

    ``nonempty_rules``, ``nonempty_nodes``: the rules, and the ids of the nodes, from whose words the empty word was
    removed in some place.
    """

    rules: Rules
    origins: dict[str, str]
    nonempty_rules: Container[str] = ()
    nonempty_nodes: Container[int] = ()


def rewrite_left_recursion(
    rules: Mapping[str, Expr], start: str, budget: Budget, *, keeps_empty: bool = False
) -> Rewritten:
    """Rules with the same words, none of which reaches itself at its left edge; only those that ``start`` reaches.

    Rules that need no change keep their bodies, the same objects. The names of new rules describe them: ``a up to
    b``, which is part of b, and ``a⁺`` for the words of ``a`` that are not empty. ``start`` comes first.
    ``keeps_empty``: an exit that no call into the group follows keeps its empty word, so that captures in it are
    found; the empty word then has two parses.

    Linear in the rules, and for each head in the bodies of its group. Raises BudgetExceeded("positions" or
    "seconds") naming the rule.
    """
    rules = Rules.of(rules)
    reached = reachable(rules.graph, start)
    live = rules.only(reached)
    if not cycles(live.graph):
        return Rewritten(live, {})
    empty = nullable(live, budget)
    edges = left_edges(live.bodies, empty)
    order = {name: number for number, name in enumerate(reached)}
    heads = list(nested_heads(edges, order))
    if not heads:
        return Rewritten(live, {})
    words = _Words(live, set(rules), budget, keeps_empty=keeps_empty)
    made: dict[str, Expr] = dict(live)
    for head, group in heads:
        words.meter.charge(len(group), head)
        made.update(_rewritten(live, head, sorted(group, key=order.__getitem__), words))
    words.add_companions(made)
    rewritten = Rules(made, like=live)
    kept = reachable(rewritten.graph, start)
    origins = {name: words.origins[name] for name in kept if name in words.origins}
    nonempty = {number for number, (node, other) in words.other.items() if other is not node}
    return Rewritten(rewritten.only(kept), origins, words.companions, nonempty)


class _Step(NamedTuple):
    """A call at the left edge of a body."""

    callee: str
    rest: Expr
    again: bool
    """Whether the rest calls a rule of the group at its own left edge."""


class _Words:
    """Which nodes have the empty word, and the expressions of their other words."""

    def __init__(
        self, rules: Mapping[str, Expr], names: set[str], budget: Budget, *, keeps_empty: bool
    ) -> None:
        self.names, self.meter, self.keeps_empty = names, NodeMeter(budget), keeps_empty
        self.origins: dict[str, str] = {}
        self.empty = set(nullable(rules, budget))
        """Ids of the nodes of the rules, and of nodes made later if they were asked for."""
        self.rules = {name for name, body in rules.items() if id(body) in self.empty}
        self.seen: dict[int, Expr] = {}
        self.other: dict[int, tuple[Expr, Expr]] = {}
        self.companions: dict[str, str] = {}

    def fresh(self, name: str, origin: str) -> str:
        """The name of a new rule that is part of the rule ``origin``."""
        while name in self.names:
            name += "'"
        self.names.add(name)
        self.origins[name] = self.origins.get(origin, origin)
        return name

    def has_empty(self, root: Expr) -> bool:
        """Whether a node has the empty word. The answer is kept for the nodes below it as well."""
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if id(node) in self.seen:
                continue
            if is_composed(node) and not ready:
                stack.append((node, True))
                stack.extend((arg, False) for arg in node.args)
                continue
            self.seen[id(node)] = node  # kept alive, so that its id is not reused
            if _may_be_empty(node, self.empty, self.rules):
                self.empty.add(id(node))
        return id(root) in self.empty

    def nonempty(self, root: Expr, rule: str) -> Expr:
        """The words of a node without the empty one."""
        if not self.has_empty(root):
            return root
        stack = [(root, False)]
        while stack:
            node, ready = stack.pop()
            if id(node) in self.other:
                continue
            if not self.has_empty(node):
                self.other[id(node)] = node, node
            elif node.op in COMPOSED and not ready:
                stack.append((node, True))
                stack.extend((arg, False) for arg in node.args)
            else:
                self.other[id(node)] = node, self.without_empty(node)
                self.meter.charge(1 + len(node.args), rule)
        return self.other[id(root)][1]

    def without_empty(self, node: Expr) -> Expr:
        """The same for one node that has the empty word, given its finished operands."""
        args = [self.other[id(arg)][1] for arg in node.args] if node.op in COMPOSED else []
        if node.op is Op.EPSILON:
            return EMPTY
        if node.op is Op.CALL:
            name = name_of(node)
            if name not in self.companions:
                self.companions[name] = self.fresh(f"{name}⁺", name)
            return call(self.companions[name])
        if node.op is Op.UNION:
            return union(*args)
        if node.op is Op.CONCAT:
            rests = _rests(node.args, len(args), EPSILON)
            return union(*(concat(arg, rest) for arg, rest in zip(args, rests, strict=True)))
        if node.op is Op.REPEAT:
            return EMPTY if args[0] is EMPTY else repeat(args[0], 1, bounds_of(node)[1], node.source)
        if isinstance(node.value, Unordered):
            return rebuilt(Expr(node.op, node.args, replace(node.value, low=1), node.source), list(node.args))
        return intersect(node, _NONEMPTY)

    def add_companions(self, made: dict[str, Expr]) -> None:
        """Make the companion rules that are called."""
        pending = list(self.companions)
        for name in pending:
            known = len(self.companions)
            made[self.companions[name]] = self.nonempty(made[name], name)
            pending += list(self.companions)[known:]


def _may_be_empty(node: Expr, empty: set[int], rules: set[str]) -> bool:
    """Whether a node has the empty word, given its operands and the ``rules`` that have it."""
    if node.size:
        return node.nullable
    if node.op is Op.CALL:
        return name_of(node) in rules
    if node.op is Op.CONCAT:
        return all(id(arg) in empty for arg in node.args)
    if node.op is Op.UNION:
        return any(id(arg) in empty for arg in node.args)
    if node.op is Op.REPEAT:
        low, _ = bounds_of(node)
        return low == 0 or id(body_of(node)) in empty
    if isinstance(node.value, Unordered):
        return node.value.low == 0
    return node.op is Op.EPSILON or id(node) in empty


def _rests(parts: tuple[Expr, ...], count: int, rest: Expr) -> list[Expr]:
    """For each of the first ``count`` parts of a concatenation, what follows it; the later ones are parts of the
    earlier ones.
    """
    found = [concat(*parts[count:], rest)]
    for part in reversed(parts[1:count]):
        found.append(concat(part, found[-1]))
    return found[::-1]


# --- one group -----------------------------------------------------------------------------------------


def _rewritten(rules: Mapping[str, Expr], head: str, group: list[str], words: _Words) -> dict[str, Expr]:
    """Rules for the words of ``head`` that call none of ``group`` at their left edge."""
    members, others = set(group), words.rules.difference(group)
    split = {name: _split(rules[name], members, name, words, others) for name in group}
    apart = any(step.again and step.callee in words.rules for each in split.values() for step in each.steps)
    if apart:
        split = {name: _split(rules[name], members, name, words, words.rules, apart=True) for name in group}
    tails, made = _ways_up(head, {name: each.steps for name, each in split.items()}, words)
    exits: dict[int, list[Expr]] = {}
    for name, each in split.items():
        empty = EPSILON if each.empty and not apart else EMPTY
        exits.setdefault(id(tails[name]), []).extend((each.exits, empty))
    ways = {id(tail): tail for tail in tails.values()}
    found = [concat(union(*exits[number]), tail) for number, tail in ways.items()]
    made[head] = union(*found, EPSILON if apart and head in words.rules else EMPTY)
    return made


def _ways_up(
    head: str, steps: Mapping[str, list[_Step]], words: _Words
) -> tuple[dict[str, Expr], dict[str, Expr]]:
    """The ways from each rule of a group up to ``head``, and the rules that these ways call."""
    loose: dict[str, list[str]] = {name: [] for name in steps}
    for caller, found in steps.items():
        for step in found:
            if words.has_empty(step.rest):
                loose[step.callee].append(caller)
    parts = components(loose)  # components that steps with an empty rest lead to come first
    part_of = {name: number for number, part in enumerate(parts) for name in part}
    ways: list[dict[int, list[Expr]]] = [{} for _ in parts]
    for caller, found in steps.items():
        for step in found:
            ways[part_of[step.callee]].setdefault(part_of[caller], []).append(step.rest)
    tails: list[Expr] = []
    loops: list[Expr] = []
    bodies: dict[str, int] = {}
    at_top: set[int] = set()
    for number, part in enumerate(parts):
        around = _alternatives(ways[number].pop(number, []))
        loops.append(EPSILON if around is EMPTY else repeat(around))
        if head in part or any(part_of[caller] in at_top for name in part for caller in loose[name]):
            at_top.add(number)
        if head in part and not ways[number]:
            tails.append(loops[number])
        elif around is EMPTY and head not in part and _only_empty(ways[number]):
            tails.append(tails[next(iter(ways[number]))])
        else:
            name = words.fresh(f"{part[0]} up to {head}", head)
            bodies[name] = number
            tails.append(call(name))
            if number in at_top:
                words.rules.add(name)
    made: dict[str, Expr] = {}
    for name, number in bodies.items():
        further = [concat(union(*rests), tails[to]) for to, rests in ways[number].items()]
        here = EPSILON if head in parts[number] else EMPTY
        made[name] = concat(loops[number], union(here, *further))
        words.meter.charge(2 + 2 * len(further), name)
    return {name: tails[part_of[name]] for name in steps}, made


def _alternatives(rests: list[Expr]) -> Expr:
    """The union of the parts of a loop, without the empty word if that is an alternative of its own."""
    found = [arg for rest in rests for arg in (rest.args if rest.op is Op.UNION else (rest,))]
    return union(*(each for each in found if each is not EPSILON))


def _only_empty(ways: Mapping[int, list[Expr]]) -> bool:
    """Whether there is one way only, with an empty rest."""
    return len(ways) == 1 and all(rest is EPSILON for rests in ways.values() for rest in rests)


class _Split(NamedTuple):
    """The words of a body, grouped by what they begin with."""

    exits: Expr
    """Words that begin with something that is not empty and not a call into the group."""
    steps: list[_Step]
    empty: bool
    """Whether the empty word is one of them, if only the ``vanishing`` rules have it."""


def _split(
    body: Expr, group: set[str], name: str, words: _Words, vanishing: set[str], *, apart: bool = False
) -> _Split:
    """Split the body of the rule ``name``.

    ``vanishing``: the rules whose calls are assumed to have the empty word. If it lacks those of the group, a call
    into the group is a part that is never empty. ``apart``: no exit may have the empty word.
    """
    order = outer_nodes(body)
    empty, inside = _facts(order, group, words, vanishing)
    if any(node.op is Op.UNORDERED and id(node) in inside for node in order):
        purpose = f"removing the left recursion of the rule {name!r}"
        body = written_out(body, lambda node: id(node) in inside, purpose)
        words.has_empty(body)
        order = outer_nodes(body)
        empty, inside = _facts(order, group, words, vanishing)
    after: defaultdict[int, list[tuple[Expr, bool]]] = defaultdict(list, {id(body): [(EPSILON, False)]})
    exits: list[Expr] = []
    steps: list[_Step] = []
    for node in reversed(order):  # users before operands
        if id(node) not in after:
            continue
        rest = union(*(each for each, _ in after[id(node)]))
        again = any(flag for _, flag in after[id(node)])
        words.meter.charge(len(after[id(node)]), name)
        keeps = words.keeps_empty and not apart and not again
        if id(node) not in inside:
            exits.append(concat(node if keeps else words.nonempty(node, name), rest))
        elif node.op is Op.CALL:
            steps.append(_Step(name_of(node), rest, again))
        elif node.op is Op.UNION:
            others = union(*(arg for arg in node.args if id(arg) not in inside))
            exits.append(concat(others if keeps else words.nonempty(others, name), rest))
            for arg in node.args:
                if id(arg) in inside:
                    after[id(arg)].append((rest, again))
        elif node.op is Op.REPEAT:
            low, high = bounds_of(node)
            repeated = body_of(node)
            more = repeat(repeated, max(low - 1, 0), None if high is None else high - 1, node.source)
            after[id(repeated)].append((concat(more, rest), again or more is not EPSILON))
        else:
            flags = _touching(node.args, inside, words.empty, again)[1:]
            ends = (number for number, arg in enumerate(node.args, 1) if id(arg) not in empty)
            rests = _rests(node.args, next(ends, len(node.args)), rest)
            words.meter.charge(len(rests), name)
            for arg, following, flag in zip(node.args, rests, flags, strict=False):
                after[id(arg)].append((following, flag))
    return _Split(union(*reversed(exits)), steps[::-1], id(body) in empty)


def _facts(
    order: list[Expr], group: set[str], words: _Words, vanishing: set[str]
) -> tuple[set[int], set[int]]:
    """Two sets of ids of nodes: those that have the empty word, if only ``vanishing`` rules have it, and those that
    call a rule of the group at their left edge.
    """
    empty: set[int] = set()
    inside: set[int] = set()
    for node in order:
        if node.op is Op.CONCAT:
            touches = _touching(node.args, inside, words.empty, False)[0]
        elif node.op is Op.CALL:
            touches = node.value in group
        else:
            touches = is_composed(node) and any(id(arg) in inside for arg in first_operands(node))
        if touches:
            inside.add(id(node))
        inner = is_composed(node) or node.op is Op.CALL
        if _may_be_empty(node, empty, vanishing) if inner else id(node) in words.empty:
            empty.add(id(node))
    return empty, inside


def _touching(parts: tuple[Expr, ...], inside: set[int], empty: set[int], after: bool) -> list[bool]:
    """For each suffix of the parts, whether its left edge is ``inside``. ``after`` is the answer for what follows
    the last part.
    """
    flags = [after]
    for part in reversed(parts):
        flags.append(id(part) in inside or (id(part) in empty and flags[-1]))
    return flags[::-1]
