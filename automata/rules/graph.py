"""The call graph of a grammar: components, cycles, left edges, and least fixed points.

Rules are vertices, calls are edges, and every query about a grammar before it is walked (is it recursive, what does a
rule start with, does it have a word) is a strongly connected component or a least fixed point. All algorithms use
explicit stacks and worklists, because grammars nest deeper than Python's stack. Cost: linear in nodes and edges, each.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

from tokenfst._native import RuleBody, call_graph, rule_bodies
from tokenfst._native import components as strong_components
from tokenfst._native import least_true as native_least_true
from tokenfst._native import reachable as native_reachable
from tokenfst.automata.expressions.expression import Expr, Op, below, members_of
from tokenfst.automata.expressions.metering import Deadline

Graph = Mapping[str, Iterable[str]]
_Vertex = TypeVar("_Vertex", bound=Hashable)

COMPOSED = (Op.CONCAT, Op.UNION, Op.REPEAT, Op.UNORDERED)
"""The operators whose operands may contain calls; every other node is a leaf here."""


def inner_nodes(body: Expr) -> list[Expr]:
    """The nodes of a rule body, operands first, down to its leaves (which contain no calls)."""
    return below(body, inner=lambda node: node.op in COMPOSED)


def outer_nodes(body: Expr) -> list[Expr]:
    """The nodes of a rule body, operands first, down to leaves and plain nodes, which need no further analysis (see
    ``Expr``).
    """
    return RuleBody(body).nodes()


def is_composed(node: Expr) -> bool:
    """Whether a node has operands that may contain calls."""
    return not node.size and node.op in COMPOSED


class Rules(dict[str, Expr]):
    """Rule bodies by name, immutable, with cached answers to the most frequent queries.

    ``bodies`` has the lists of nodes of all bodies. Each list is made once: rules that are made ``like`` these reuse it
    for the bodies that they share. ``productive`` and ``nullable`` are the results of the functions of these names in
    ``lint``, once known.
    """

    def __init__(self, bodies: Mapping[str, Expr], like: Rules | None = None) -> None:
        super().__init__(bodies)
        self.known: dict[int, RuleBody] = {} if like is None else like.known
        self.productive: frozenset[int] | None = None
        self.nullable: frozenset[int] | None = None

    def __reduce__(self) -> tuple[type[Rules], tuple[dict[str, Expr]]]:
        return Rules, (dict(self),)  # cached answers are by the identity of nodes, so they are not pickled

    @classmethod
    def of(cls, bodies: Mapping[str, Expr]) -> Rules:
        """``bodies`` itself if it is a ``Rules``, else a copy as one."""
        return bodies if isinstance(bodies, Rules) else cls(bodies)

    def only(self, names: Iterable[str]) -> Rules:
        """The rules with these names, which must call no others; cached answers are kept."""
        found = Rules({name: self[name] for name in names}, like=self)
        found.productive, found.nullable = self.productive, self.nullable
        return found

    def nodes(self, name: str) -> list[Expr]:
        """``outer_nodes`` of a rule's body; read-only."""
        return self.bodies[name].nodes()

    @cached_property
    def bodies(self) -> dict[str, RuleBody]:
        """The body of each rule as a list of nodes. Lists that were made before are taken from ``known``."""
        return rule_bodies(self, self.known)

    @cached_property
    def graph(self) -> dict[str, list[str]]:
        """The rules that each rule calls: see ``called``."""
        return call_graph(self.bodies)


def name_of(node: Expr) -> str:
    """The rule that a CALL names."""
    assert isinstance(node.value, str)
    return node.value


def called(body: Expr) -> list[str]:
    """The distinct rules that a body calls, in order of occurrence."""
    return RuleBody(body).calls()


def calls_found(body: Expr, onward: Callable[[Expr], Iterable[Expr]]) -> list[str]:
    """The rules called by ``body`` that are reached by descending at each node to the operands ``onward(node)``."""
    found: dict[str, None] = {}
    seen: set[int] = set()
    stack = [body]
    while stack:
        node = stack.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        if node.op is Op.CALL:
            found[name_of(node)] = None
        elif is_composed(node):
            stack.extend(onward(node))
    return list(found)


def left_edge(body: Expr, empty: Container[int]) -> list[str]:
    """The rules that a body can call with only empty words before them.

    ``empty`` has the ids of the nodes that have the empty word (``lint.nullable``).
    """
    return RuleBody(body).left_edge(empty)


def first_operands(node: Expr) -> tuple[Expr, ...]:
    """The operands with which the words of a node can start. The node must not be a concatenation. The separator of
    unordered members is not among them, because members are never empty.
    """
    return members_of(node) if node.op is Op.UNORDERED else node.args


def holding(body: Expr, nodes: list[Expr] | None = None) -> set[int]:
    """The ids of the nodes that contain a call. ``nodes``: the body's outer nodes, if already known."""
    found: set[int] = set()
    for node in nodes or outer_nodes(body):
        if node.op is Op.CALL:
            found.add(id(node))
        elif is_composed(node):
            for arg in node.args:
                if id(arg) in found:
                    found.add(id(node))
                    break
    return found


def reachable(graph: dict[str, list[str]], start: str) -> list[str]:
    """Every vertex reachable from ``start``, including itself, in depth-first order."""
    return native_reachable(graph, start)


def components(
    graph: Mapping[_Vertex, Iterable[_Vertex]], deadline: Deadline | None = None
) -> list[list[_Vertex]]:
    """The strongly connected components in reverse topological order (Tarjan, without recursion).

    Edges to other vertices are ignored. Raises BudgetExceeded("seconds") after ``deadline``.
    """
    if deadline is not None:
        deadline.tick(len(graph))
    return strong_components(graph if isinstance(graph, dict) else dict(graph))


def cycles(graph: Graph) -> list[list[str]]:
    """The components with a cycle: two vertices or more, or one with an edge to itself."""
    return [part for part in components(graph) if len(part) > 1 or part[0] in graph[part[0]]]


def nested_heads(graph: Graph, order: Mapping[str, int]) -> Iterator[tuple[str, list[str]]]:
    """A weak topological order (Bourdoncle, "Efficient chaotic iteration strategies with widenings", 1993).

    In every strongly connected component with a cycle, the first vertex in ``order`` is the head. Without it the
    component decomposes into smaller ones, with their own heads, and so on: every cycle contains a head. Yields heads
    with their components, outer components first. Linear for every nesting level.
    """
    work = [list(graph)]
    while work:
        for part in cycles({name: graph[name] for name in work.pop()}):
            head = min(part, key=order.__getitem__)
            yield head, part
            work.append([name for name in part if name != head])


def shortest_cycle(graph: Graph, start: str, inside: Iterable[str]) -> list[str]:
    """A shortest cycle from ``start`` among the vertices ``inside``; ``start`` is both first and last."""
    allowed = set(inside)
    came_from: dict[str, str] = {}
    frontier = [start]
    for vertex in frontier:
        for target in graph[vertex]:
            if target == start:
                way = [start, vertex]
                while way[-1] != start:
                    way.append(came_from[way[-1]])
                return way[::-1] if vertex != start else [start, start]
            if target in allowed and target not in came_from:
                came_from[target] = vertex
                frontier.append(target)
    raise ValueError(f"{start!r} lies on no cycle")


def least_true(
    rules: Rules, leaf: Callable[[Expr], bool], deadline: Deadline, *, nullable: bool
) -> frozenset[int]:
    """The ids of the nodes that have a word, or the empty word (``nullable``), as a least solution.

    A concatenation has one if all parts have, a union if one has, a repetition if its body has or may be omitted,
    unordered members if as many of them have as are required, a call if the rule has. A plain node stores the answer;
    for any other leaf ``leaf`` decides. Raises BudgetExceeded("seconds").
    """
    deadline.where = "the rules"
    deadline.tick(sum(body.length for body in rules.bodies.values()))
    return native_least_true(rules.bodies, leaf, nullable)
