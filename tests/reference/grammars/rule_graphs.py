"""The analyses of rules in plain Python: twins of ``RuleBody``, ``least_true`` and ``components`` of the core."""

from __future__ import annotations

from collections.abc import Callable, Container, Hashable, Iterable, Mapping
from itertools import pairwise
from typing import TypeVar

from tokenfst.automata.expressions.expression import Expr, Op, Unordered, below, bounds_of, copies
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.automata.rules.graph import calls_found, first_operands, holding, is_composed, name_of

_Vertex = TypeVar("_Vertex", bound=Hashable)


def outer_nodes(body: Expr) -> list[Expr]:
    """The nodes of a rule body, operands first, down to leaves and plain nodes, which need no further analysis (see
    ``Expr``).
    """
    return below(body, inner=is_composed)


def size(nodes: list[Expr]) -> int:
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


def called(nodes: list[Expr]) -> list[str]:
    """The distinct rules that a body calls, in the order of its outer nodes."""
    return list(dict.fromkeys([name_of(node) for node in nodes if node.op is Op.CALL]))


def _places(node: Expr, tail: bool) -> list[tuple[Expr, bool]]:
    """The operands of a node, and whether each is in tail position if the node is."""
    if node.op is Op.UNION:
        return [(arg, tail) for arg in node.args]
    last = len(node.args) - 1 if node.op is Op.CONCAT else -1
    return [(arg, tail and number == last) for number, arg in enumerate(node.args)]


def placed_calls(body: Expr) -> list[tuple[str, bool]]:
    """Every call of a body, and whether it is in tail position."""
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
        elif is_composed(node):
            stack.extend(reversed(list(_places(node, tail))))
    return found


def rewrite(nodes: list[Expr], resolve: Callable[[str, bool], Expr]) -> tuple[Expr, int]:
    """A body with its calls replaced, and the number of nodes that were made anew. ``resolve`` gets the name, and
    whether the call is in tail position.
    """
    body, made = nodes[-1], 0
    inside = holding(body, nodes)
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
            made += 1
        else:
            stack.append((node, tail, True))
            stack.extend((arg, place, False) for arg, place in _places(node, tail))
    return done[id(body), True], made


def call_counts(nodes: list[Expr]) -> dict[str, int]:
    """How often a body calls each rule, given its outer nodes, if counted repetitions are written out."""
    counts = {id(nodes[-1]): 1}
    found: dict[str, int] = {}
    for node in reversed(nodes):  # users before operands
        count = counts[id(node)]
        if node.op is Op.CALL:
            found[name_of(node)] = found.get(name_of(node), 0) + count
        elif is_composed(node):
            for arg in node.args:
                inner = count * copies(node.value) if isinstance(node.value, tuple) else count
                counts[id(arg)] = counts.get(id(arg), 0) + inner
    return found


def calls_only(nodes: list[Expr], names: Container[str]) -> bool:
    """Whether the leaves of a body that hold calls are calls, of some of these rules."""
    for node in nodes:
        if node.size or is_composed(node):
            continue
        if node.op is Op.CALL:
            if node.value not in names:
                return False
        elif any(each.op is Op.CALL for each in below(node)):
            return False
    return True


def doubled(nodes: list[Expr]) -> set[str]:
    """The rules that a body calls twice in a row, given its outer nodes; the second call may be one of several
    alternatives.
    """
    found: set[str] = set()
    for node in nodes:
        if node.op is Op.CONCAT:
            ways = [{name_of(way) for way in _ways(arg) if way.op is Op.CALL} for arg in node.args]
            for before, after in pairwise(ways):
                found |= before & after
    return found


def _ways(node: Expr) -> tuple[Expr, ...]:
    return node.args if node.op is Op.UNION and not node.size else (node,)


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


def components(graph: Mapping[_Vertex, Iterable[_Vertex]]) -> list[list[_Vertex]]:
    """The strongly connected components in reverse topological order (Tarjan, without recursion).

    Edges to other vertices are ignored.
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
                if work:
                    lowest[work[-1][0]] = min(lowest[work[-1][0]], lowest[vertex])
                if lowest[vertex] == order[vertex]:
                    cut = _last(open_vertices, vertex)
                    found.append(open_vertices[cut:])
                    is_open.difference_update(open_vertices[cut:])
                    del open_vertices[cut:]
    return found


def reachable(graph: Mapping[str, list[str]], start: str) -> list[str]:
    """Every vertex reachable from ``start``, including itself, in depth-first order."""
    found: dict[str, None] = {}
    stack = [start]
    while stack:
        vertex = stack.pop()
        if vertex not in found:
            found[vertex] = None
            stack.extend(reversed(graph[vertex]))
    return list(found)


def with_words(plain: Iterable[Expr], roots: list[Expr], alive: Container[int]) -> set[int]:
    """The ids of leaves of ``plain`` among ``alive``, and of variables below ``roots`` that are in no leaf."""
    leaves = [node for body in plain for node in outer_nodes(body) if not node.size and not is_composed(node)]
    inside = {id(node) for leaf in leaves if leaf.args for node in below(leaf)}
    made = below(*roots, inner=lambda node: not node.size and id(node) not in inside)
    return {id(leaf) for leaf in leaves if id(leaf) in alive} | {
        id(node) for node in made if node.op is Op.VARIABLE and id(node) not in inside
    }


def _last(vertices: list[_Vertex], wanted: _Vertex) -> int:
    position = len(vertices) - 1
    while vertices[position] != wanted:
        position -= 1
    return position


def least_true(rules: Mapping[str, Expr], leaf: Callable[[Expr], bool]) -> frozenset[int]:
    """The ids of the nodes with a property, as a least solution.

    The property holds for a concatenation if it holds for all parts, for a union if for one, for a repetition if
    for its body or if it may be omitted, for unordered members if for as many as are required, for a call if for
    the rule. For any other node, including plain ones, ``leaf`` decides. Nodes whose operands are already decided
    are decided at once; the others by propagation to their users.
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
        nodes = outer_nodes(body)
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
