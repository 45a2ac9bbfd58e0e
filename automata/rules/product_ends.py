"""Which states of a deterministic automaton each part of a grammar leads to: tabulation, forward from the start.

The idea: bodies are divided into *nodes*: regular leaves (parts without a call, neighbours combined), rules,
choices among sequences of at most two nodes, and repetitions, each of which is a copy followed by another
repetition. A node is entered in a state only if something before it leads there. The states in which it can end are
a least fixed point, as in Earley's parser, with states of an automaton instead of positions in a text (Earley, "An
efficient context-free parsing algorithm", 1970; Nederhof and Satta, "Probabilistic parsing", 2008).

Invariant: if a node is found to end in a state, a word leads there; a node that was not entered in a state is not
needed there by any word of the grammar.

Cost: nodes × states² ends at worst, each passed on to the nodes that wait for it; ``Budget.positions`` and
``seconds`` bound them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import groupby

from tokenfst.automata.expressions.expression import Dfa, Expr, Op, body_of, concat, union
from tokenfst.automata.expressions.metering import NodeMeter
from tokenfst.automata.rules.graph import called, holding, inner_nodes, name_of, reachable
from tokenfst.automata.rules.leaf_walks import LeafWalks
from tokenfst.automata.rules.permutations import written_out
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

Key = tuple[int, int]
"""A node and the state in which it is entered."""


@dataclass(frozen=True, slots=True)
class Leaf:
    """A plain expression."""

    expr: Expr


@dataclass(frozen=True, slots=True)
class RuleNode:
    """A call of a rule."""

    name: str


@dataclass(frozen=True, slots=True)
class Choice:
    """Alternatives, each of which is one node or two in sequence."""

    options: tuple[tuple[int, ...], ...]


@dataclass(frozen=True, slots=True)
class Loop:
    """``low`` to ``high`` copies of ``body``; a ``high`` of -1 means any number."""

    body: int
    low: int
    high: int
    source: str | None


Node = Leaf | RuleNode | Choice | Loop


class Skeleton:
    """The nodes of all rules that the start reaches, by number."""

    def __init__(self, rules: Mapping[str, Expr], start: str) -> None:
        self.nodes: list[Node] = []
        self.owner: list[str] = []
        self._loops: dict[Loop, int] = {}
        names = reachable({name: called(body) for name, body in rules.items()}, start)
        self.rules = {name: self._add(RuleNode(name), name) for name in names}
        self.bodies = {self.rules[name]: self._read(name, rules[name]) for name in names}

    def following(self, number: int) -> int:
        """What follows one copy of a repetition: the same repetition with its bounds reduced by one."""
        loop = self.nodes[number]
        assert isinstance(loop, Loop) and loop.high != 0
        low, high = max(loop.low - 1, 0), loop.high if loop.high < 0 else loop.high - 1
        return self._loop(Loop(loop.body, low, high, loop.source), self.owner[number])

    def _add(self, node: Node, owner: str) -> int:
        self.nodes.append(node)
        self.owner.append(owner)
        return len(self.nodes) - 1

    def _loop(self, loop: Loop, owner: str) -> int:
        if loop not in self._loops:
            self._loops[loop] = self._add(loop, owner)
        return self._loops[loop]

    def _read(self, name: str, body: Expr) -> int:
        purpose = f"the intersection of the rule {name!r} with a language"
        calling = holding(body)
        body = written_out(body, lambda node: id(node) in calling, purpose)
        inside = holding(body)
        if id(body) not in inside:
            return self._add(Leaf(body), name)
        made: dict[int, int] = {}

        def parts(node: Expr) -> list[int]:
            """The operands, with adjacent ones without calls combined into one leaf."""
            found: list[int] = []
            join = union if node.op is Op.UNION else concat
            for calls, run in groupby(node.args, lambda arg: id(arg) in inside):
                args = list(run)
                found += [made[id(arg)] for arg in args] if calls else [self._add(Leaf(join(*args)), name)]
            return found

        for node in inner_nodes(body):
            if id(node) not in inside:
                continue
            if node.op is Op.CALL:
                made[id(node)] = self.rules[name_of(node)]
            elif node.op is Op.REPEAT:
                assert isinstance(node.value, tuple)
                made[id(node)] = self._loop(Loop(made[id(body_of(node))], *node.value, node.source), name)
            elif node.op is Op.UNION:
                made[id(node)] = self._add(Choice(tuple((part,) for part in parts(node))), name)
            else:
                *before, rest = parts(node)
                for part in reversed(before):
                    rest = self._add(Choice(((part, rest),)), name)
                made[id(node)] = rest
        return made[id(body)]


# --- forward: what can end where ----------------------------------------------------------------------

_DONE = -1
"""In place of the next node: there is none, so the waiting node ends here too."""
_COPY = -2
"""In place of the next node of a repetition: one copy ends here."""


class Ends:
    """For each node and the state in which it is entered, the states in which it can end."""

    def __init__(self, skeleton: Skeleton, dfa: Dfa, budget: Budget) -> None:
        self.skeleton = skeleton
        self.meter = NodeMeter(budget)
        self.rule = ""
        self.start = dfa.start
        self.accepting = {state for state in range(dfa.num_states) if dfa.accepting[state]}
        self.walks = LeafWalks(dfa, budget, self.charge)
        self.found: dict[Key, dict[int, None]] = {}
        self._waiting: dict[Key, list[tuple[Key, int]]] = {}
        self._entered: list[Key] = []
        self._news: list[tuple[Key, int, int]] = []
        self._unrolled: dict[Key, set[int]] = {}

    def charge(self, entries: int) -> None:
        """Count new entries for the rule that is being entered."""
        self.meter.charge(entries, self.rule)

    def run(self, root: int) -> None:
        """Find the ends of all nodes that are reached from ``root`` in the start state."""
        self._enter((root, self.start))
        while self._entered or self._news:
            if self._entered:
                self._begin(self._entered.pop())
                continue
            key, then, state = self._news.pop()
            if then == _DONE:
                self._end(key, state)
            elif then == _COPY:
                self._copied(key, state)
            else:
                self._wait((then, state), key, _DONE)

    def _enter(self, key: Key) -> None:
        if key not in self.found:
            self.meter.charge(1, self.skeleton.owner[key[0]])
            self.found[key] = {}
            self._waiting[key] = []
            self._entered.append(key)

    def _wait(self, key: Key, user: Key, then: int) -> None:
        """Enter a node. When it ends, ``user`` continues with ``then``."""
        self._enter(key)
        self.meter.charge(1, self.skeleton.owner[key[0]])
        self._waiting[key].append((user, then))
        self._news += [(user, then, state) for state in self.found[key]]

    def _end(self, key: Key, state: int) -> None:
        if state not in self.found[key]:
            self.meter.charge(1, self.skeleton.owner[key[0]])
            self.found[key][state] = None
            self._news += [(user, then, state) for user, then in self._waiting[key]]

    def _begin(self, key: Key) -> None:
        number, state = key
        node, self.rule = self.skeleton.nodes[number], self.skeleton.owner[number]
        if isinstance(node, Leaf):
            for end in self._leaf_ends(node.expr, state):
                self._end(key, end)
        elif isinstance(node, RuleNode):
            self._wait((self.skeleton.bodies[number], state), key, _DONE)
        elif isinstance(node, Choice):
            for first, *rest in node.options:
                self._wait((first, state), key, rest[0] if rest else _DONE)
        else:
            if node.low == 0:
                self._end(key, state)
            if node.high != 0:
                self._wait((node.body, state), key, _COPY)

    def _leaf_ends(self, expr: Expr, state: int) -> list[int]:
        try:
            ends = self.walks.ends(expr, state)
        except BudgetExceeded as error:
            where = error.where or f"the rule {self.rule!r}"
            raise BudgetExceeded(error.resource, error.limit, where) from error
        return [end for end, bit in enumerate(reversed(f"{ends:b}")) if bit == "1" and end]

    def _copied(self, key: Key, state: int) -> None:
        """One copy of a repetition leads to ``state``.

        As long as copies only lead back, bounds do not matter, and the copies are not counted.
        """
        number, before = key
        node, following = self.skeleton.nodes[number], self.skeleton.following(number)
        assert isinstance(node, Loop)
        if state == before:
            self._end(key, state)
        ends = self.found[node.body, before]
        if following == number:
            if state != before:
                self._wait((number, state), key, _DONE)
        elif any(end != before for end in ends):
            unrolled = self._unrolled.setdefault(key, set())
            for end in ends:
                if end not in unrolled:
                    unrolled.add(end)
                    self._wait((following, end), key, _DONE)
