"""The call graph of a grammar: components, cycles, left edges, and least fixed points.

Rules are vertices, calls are edges, and every query about a grammar before it is walked (is it recursive, what does a
rule start with, does it have a word) is a strongly connected component or a least fixed point. All algorithms use
explicit stacks and worklists, because grammars nest deeper than Python's stack. Cost: linear in nodes and edges, each.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from functools import cached_property
from typing import TypeVar

from tokenfst.automata.expressions.expression import (
    Expr,
    Op,
    Unordered,
    below,
    bounds_of,
    copies,
)
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
    return below(body, inner=is_composed)


def is_composed(node: Expr) -> bool:
    """Whether a node has operands that may contain calls."""
    return not node.size and node.op in COMPOSED


class Rules(dict[str, Expr]):
    """Rule bodies by name, immutable, with cached answers to the most frequent queries.

    The nodes of a body are listed once, for all rules that are made ``like`` these and share the body. ``productive``
    and ``nullable`` are the results of the functions with these names in ``lint``, once known.
    """

    def __init__(self, bodies: Mapping[str, Expr], like: Rules | None = None) -> None:
        super().__init__(bodies)
        self._nodes: dict[int, list[Expr]] = {} if like is None else like._nodes  # noqa: SLF001  # another of this class
        self._sizes: dict[int, int] = {} if like is None else like._sizes  # noqa: SLF001  # another of this class
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
        body = self[name]
        found = self._nodes.get(id(body))
        if found is None:  # the list ends with the body and keeps it alive, so that its id is not reused
            found = self._nodes[id(body)] = outer_nodes(body)
        return found

    def size(self, name: str) -> int:
        """The number of positions of a rule's body with counted repetitions expanded; a call is one."""
        nodes = self.nodes(name)
        found = self._sizes.get(id(nodes[-1]))
        if found is None:
            found = self._sizes[id(nodes[-1])] = _size(nodes)
        return found

    @cached_property
    def graph(self) -> dict[str, list[str]]:
        """The rules that each rule calls: see ``called``."""
        return {name: called(body, self.nodes(name)) for name, body in self.items()}


def _size(nodes: list[Expr]) -> int:
    sizes: dict[int, int] = {}
    for node in nodes:
        total = node.size or 1
        if is_composed(node):
            total = 0
            for arg in node.args:
                total += sizes[id(arg)]
            if isinstance(node.value, tuple):
                total *= copies(node.value)
        sizes[id(node)] = total
    return sizes[id(nodes[-1])]


def name_of(node: Expr) -> str:
    """The rule that a CALL names."""
    assert isinstance(node.value, str)
    return node.value


def called(body: Expr, nodes: list[Expr] | None = None) -> list[str]:
    """The distinct rules that a body calls, in order of occurrence. ``nodes``: its outer nodes, if already known."""
    return list(dict.fromkeys([name_of(node) for node in nodes or outer_nodes(body) if node.op is Op.CALL]))


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

    def leading(node: Expr) -> Iterable[Expr]:
        if node.op is not Op.CONCAT:
            return first_operands(node)
        ends = (number for number, arg in enumerate(node.args, 1) if id(arg) not in empty)
        return node.args[: next(ends, len(node.args))]

    return calls_found(body, leading)


def first_operands(node: Expr) -> tuple[Expr, ...]:
    """The operands with which the words of a node, not a concatenation, can start. Unordered members are never empty,
    so their separator is not among them.
    """
    return node.args[1:] if node.op is Op.UNORDERED else node.args


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


def reachable(graph: Graph, start: str) -> list[str]:
    """Every vertex reachable from ``start``, including itself, in depth-first order."""
    found: dict[str, None] = {}
    stack = [start]
    while stack:
        vertex = stack.pop()
        if vertex not in found:
            found[vertex] = None
            stack.extend(reversed(list(graph[vertex])))
    return list(found)


def components(
    graph: Mapping[_Vertex, Iterable[_Vertex]], deadline: Deadline | None = None
) -> list[list[_Vertex]]:
    """The strongly connected components in reverse topological order (Tarjan, without recursion).

    Edges to other vertices are ignored. Raises BudgetExceeded("seconds") after ``deadline``.
    """
    order: dict[_Vertex, int] = {}
    lowest: dict[_Vertex, int] = {}
    open_vertices: list[_Vertex] = []
    is_open: set[_Vertex] = set()
    found: list[list[_Vertex]] = []
    for root in graph:
        if root in order:
            continue
        order[root] = lowest[root] = len(order)
        open_vertices.append(root)
        is_open.add(root)
        work = [(root, iter(graph[root]))]
        while work:
            vertex, targets = work[-1]
            for target in targets:
                if target not in graph:
                    continue
                if target not in order:
                    order[target] = lowest[target] = len(order)
                    open_vertices.append(target)
                    is_open.add(target)
                    work.append((target, iter(graph[target])))
                    break
                if target in is_open:
                    lowest[vertex] = min(lowest[vertex], order[target])
            else:
                work.pop()
                if deadline is not None:
                    deadline.tick(3)
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[vertex])
                if lowest[vertex] == order[vertex]:
                    cut = _last(open_vertices, vertex)
                    found.append(open_vertices[cut:])
                    is_open.difference_update(open_vertices[cut:])
                    del open_vertices[cut:]
    return found


def _last(vertices: list[_Vertex], wanted: _Vertex) -> int:
    position = len(vertices) - 1
    while vertices[position] != wanted:
        position -= 1
    return position


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


def least_true(  # noqa: C901  # one pass, and it is hot
    rules: Rules, leaf: Callable[[Expr], bool], deadline: Deadline
) -> frozenset[int]:
    """The ids of the nodes with a property, as a least solution.

    The property holds for a concatenation if it holds for all parts, for a union if for one, for a repetition if
    for its body or if it may be omitted, for unordered members if for as many as are required, for a call if for
    the rule. For any other node, including plain ones, ``leaf`` decides. Nodes whose operands are already decided
    are decided at once; the others by propagation to their users. Raises BudgetExceeded("seconds").
    """
    users: dict[int, list[Expr]] = {}
    missing: dict[int, int] = {}
    callers: dict[str, list[Expr]] = {}
    conditions: list[Expr] = []  # kept alive, so that their ids are not reused
    roots: dict[int, list[str]] = {}
    holds: set[int] = set()
    seen: set[int] = set()
    known: set[str] = set()
    ready: list[Expr] = []
    for name, body in rules.items():
        nodes = rules.nodes(name)
        deadline.where = f"the rule {name!r}"
        deadline.tick(len(nodes))
        for node in nodes:  # operands first
            key = id(node)
            if key in seen:
                continue
            seen.add(key)
            if node.op is Op.CALL:
                callee = name_of(node)
                true = callee in known
                if not true:
                    callers.setdefault(callee, []).append(node)
            elif isinstance(node.value, Unordered):
                true, made = _conditions(node, users, missing, holds)
                conditions += made
            elif is_composed(node):
                unmet = [arg for arg in node.args if id(arg) not in holds]
                true = not unmet or (node.op is Op.UNION and len(unmet) < len(node.args))
                if not true and node.op is Op.REPEAT:
                    low, _ = bounds_of(node)
                    true = low == 0
                if not true:
                    missing[key] = len(unmet) if node.op is Op.CONCAT else 1
                    for arg in unmet:
                        users.setdefault(id(arg), []).append(node)
            else:
                true = leaf(node)
            if true:
                holds.add(key)
        roots.setdefault(id(body), []).append(name)
        if id(body) in holds:
            known.add(name)
            ready += callers.pop(name, ())
    while ready:
        node = ready.pop()
        if id(node) in holds:
            continue
        holds.add(id(node))
        deadline.tick(2)
        for user in users.get(id(node), ()):
            missing[id(user)] -= 1
            if missing[id(user)] == 0:
                ready.append(user)
        for name in roots.get(id(node), ()):
            ready.extend(callers.get(name, ()))
    return frozenset(holds.difference(map(id, conditions)))


def _conditions(
    node: Expr, users: dict[int, list[Expr]], missing: dict[int, int], holds: Container[int]
) -> tuple[bool, tuple[Expr, ...]]:
    """Whether ``least_true`` holds for members in any order, given the nodes for which it ``holds``.

    If not, this records what is missing: all required members, and enough members in all (a member that may be
    repeated is enough by itself). Also returns the nodes that represent such conditions.
    """
    assert isinstance(node.value, Unordered)
    low, _, required, repeats = node.value
    separator, *members = node.args
    again = [members.pop()] if repeats else []
    unmet = [
        part for part in (*members[:required], *([separator] if low > 1 else [])) if id(part) not in holds
    ]
    some = low - sum(id(part) in holds for part in members)
    enough = some <= 0 or (repeats == 1 and id(again[0]) in holds)
    if low == 0 or (enough and not unmet):
        return True, ()
    missing[id(node)] = len(unmet) + (not enough)
    for part in unmet:
        users.setdefault(id(part), []).append(node)
    if enough:
        return False, ()
    several, either = Expr(Op.UNION), Expr(Op.UNION)
    missing[id(several)], missing[id(either)] = some, 1
    for part in members:
        if id(part) not in holds:
            users.setdefault(id(part), []).append(several)
    for part in (several, *(again if repeats == 1 else [])):
        users.setdefault(id(part), []).append(either)
    users[id(either)] = [node]
    return False, (several, either)
