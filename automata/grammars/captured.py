"""How texts of grammars with captured rules, or with named groups in terminals, are parsed.

The result is a ``Reading`` (``captures.trees``), by which the captured texts are found.

Only rules from which a named part is reachable are followed (``trees.Call``). Everything else is one leaf, whatever its
size: the core matches a JSON value next to a captured rule as a whole.

Left-recursive rules are rewritten as for the automaton (``left_recursion``), so the preferred parse of an ambiguous one
is that of the rewritten form. A left-recursive rule cannot be captured, because the rewriting loses its words, and
neither can a part in front of a left-recursive call that may be empty, because the rewriting takes the empty word out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tokenfst.automata.captures import trees
from tokenfst.automata.captures.trees import (
    Call,
    Choice,
    Group,
    HasProgram,
    Leaf,
    Reading,
    Repeat,
    Temperature,
    Tree,
)
from tokenfst.automata.expressions.expression import EPSILON, Expr, Op, below, call
from tokenfst.automata.rules.graph import COMPOSED, Rules, cycles, left_edge, name_of, reachable
from tokenfst.automata.rules.left_recursion import Rewritten, rewrite_left_recursion
from tokenfst.automata.rules.lint import nullable
from tokenfst.budget import Budget

IGNORED = "%ignore"
"""The rule of ignored text between terminals; captured rules do not end with it."""


class NamedParts:
    """The named parts of a grammar.

    ``rules``: the capture name of each captured rule. ``leaves``: expressions in the bodies that contain captures, each
    a distinct object, with their parsers of captures. ``temperatures``: the temperature of each rule that sets one.
    """

    def __init__(
        self,
        rules: Mapping[str, str],
        leaves: Sequence[tuple[Expr, Reading]] = (),
        temperatures: Mapping[str, float] | None = None,
    ) -> None:
        self.rules, self.leaves, self.temperatures = dict(rules), list(leaves), dict(temperatures or {})

    def __bool__(self) -> bool:
        return bool(self.rules or self.leaves or self.temperatures)

    def renamed(self, prefix: str) -> NamedParts:
        """The same parts with a prefix added to the names of all rules, and the same leaves."""
        temperatures = {prefix + rule: temperature for rule, temperature in self.temperatures.items()}
        return NamedParts(
            {prefix + rule: name for rule, name in self.rules.items()}, self.leaves, temperatures
        )


class _Refused(Exception):
    """Why texts cannot be read."""


def grammar_reading(
    rules: Rules, start: str, marked: NamedParts, part: Callable[[Rules, Expr], HasProgram], budget: Budget
) -> Reading | None:
    """The reading of a grammar; None if nothing reachable from ``start`` has a name. ``part`` makes a constraint of an
    expression with calls of rules.
    """
    if start not in rules:  # it has no words
        return None
    reader = _Reader(rules, marked, part)
    spine = reader.spine(start)
    if start not in spine:
        return None
    try:
        empty = nullable(rules, budget)
        edges = {name: left_edge(rules[name], empty) for name in reachable(rules.graph, start)}
        turning = {name for group in cycles(edges) for name in group}
        if turning & set(spine):
            if refused := sorted(turning & marked.rules.keys()):
                raise _Refused(
                    f"the captures of the rule {refused[0]!r} cannot be told: it begins with itself. Capture a rule "
                    "inside of it, or write it as a repetition"
                )
            if refused := sorted(turning & marked.temperatures.keys()):
                raise _Refused(
                    f"the temperature of the rule {refused[0]!r} cannot be told: it begins with itself. Give it to a "
                    "rule around or inside of it, or write it as a repetition"
                )
            rewritten = rewrite_left_recursion(rules, start, budget, keeps_empty=True)
            _refuse_empty(rewritten, marked)
            reader = _Reader(rewritten.rules, marked, part)
            spine = reader.spine(start)
        made = {name: reader.tree(name) for name in spine}
    except _Refused as refused_by:
        known = {*marked.rules.values(), *(name for _, reading in marked.leaves for name in reading.names)}
        return Reading(
            Leaf(EPSILON),
            tuple(sorted(known)),
            refusal=str(refused_by),
            has_temperature=bool(marked.temperatures),
        )
    if len(made) == 1 and start not in rules.graph[start]:
        return Reading(made[start], trees.names_of(made[start], {}))
    return Reading(Call(start), trees.names_of(Call(start), made), made)


def _refuse_empty(rewritten: Rewritten, marked: NamedParts) -> None:
    """Refuse a named part that may be empty in front of a call into a left-recursive group: the rewriting takes its
    empty word out, and so loses what is captured there.
    """
    for what, names in (("captures", marked.rules), ("temperature", marked.temperatures)):
        for name in sorted(names):
            if name in rewritten.nonempty_rules:
                raise _Refused(_lost(f"the {what} of the rule {name!r}"))
    for expr, reading in marked.leaves:
        if id(expr) in rewritten.nonempty_nodes and reading.names:
            raise _Refused(_lost(f"the captures of the group {reading.names[0]!r}"))


def _lost(what: str) -> str:
    return (
        f"{what} cannot be told: it may be empty, and a rule that begins with itself calls itself after it. Let it "
        "have no empty text, or write the rule around it as a repetition"
    )


class _Reader:
    def __init__(self, rules: Rules, marked: NamedParts, part: Callable[[Rules, Expr], HasProgram]) -> None:
        self.rules, self.marked, self.part = rules, marked, part
        self.leaves = {id(expr): reading for expr, reading in marked.leaves}
        self.nodes = {
            name: below(body, inner=lambda node: id(node) not in self.leaves and node.op in COMPOSED)
            for name, body in rules.items()
        }
        self.hot: set[str] = set()

    def spine(self, start: str) -> list[str]:
        """The rules on paths from ``start`` to named parts; if there are any, also those on paths to tokens, which
        are read one by one.
        """
        marks = self.marked.rules.keys() | self.marked.temperatures.keys()
        named = self._leading_to(lambda name, node: name in marks or id(node) in self.leaves)
        if start in named:
            self.hot = named | self._leading_to(lambda _, node: node.op is Op.TOKENS)
        return [name for name in reachable(self.rules.graph, start) if name in self.hot]

    def _leading_to(self, wanted: Callable[[str, Expr], bool]) -> set[str]:
        """The rules that lead to such a node."""
        callers: dict[str, list[str]] = {}
        for name in self.rules:
            for callee in self.rules.graph[name]:
                callers.setdefault(callee, []).append(name)
        found: set[str] = set()
        waiting = [name for name in self.rules if any(wanted(name, node) for node in self.nodes[name])]
        while waiting:
            name = waiting.pop()
            if name not in found:
                found.add(name)
                waiting += callers.get(name, ())
        return found

    def tree(self, name: str) -> Tree:
        """The tree of a rule."""
        trees_of: dict[int, Tree | None] = {}
        body = self.rules[name]
        for node in self.nodes[name]:
            trees_of[id(node)] = self.node(node, trees_of)
        found = trees_of[id(body)] or self.without_temperature(body)
        if name in self.marked.temperatures:
            ignored = name[: name.rfind(":") + 1] + IGNORED
            found = self.with_temperature(
                body, Temperature(self.marked.temperatures[name]), trees_of, ignored
            )
        if name not in self.marked.rules:
            return found
        ignored = name[: name.rfind(":") + 1] + IGNORED
        trimmed = self.without_temperature(call(ignored)) if ignored in self.rules else None
        return Group(self.marked.rules[name], found, trimmed)

    def with_temperature(
        self, node: Expr, temperature: Temperature, trees_of: Mapping[int, Tree | None], ignored: str
    ) -> Tree:
        """The tree of a part that has a temperature. Ignored text after the part does not have it."""
        if node.op is Op.UNION:
            return Choice(
                tuple(self.with_temperature(arg, temperature, trees_of, ignored) for arg in node.args)
            )
        last = node.args[-1] if node.op is Op.CONCAT else None
        if last is not None and last.op is Op.CALL and name_of(last) == ignored:
            parts = tuple(trees_of.get(id(arg)) or self.without_temperature(arg) for arg in node.args[:-1])
            return trees.Sequence((Group(temperature, trees.Sequence(parts)), self.without_temperature(last)))
        return Group(temperature, trees_of.get(id(node)) or self.without_temperature(node))

    def node(self, node: Expr, below_it: Mapping[int, Tree | None]) -> Tree | None:
        """The tree of a node; None if nothing in it has a name."""
        if reading := self.leaves.get(id(node)):
            if reading.refusal:
                raise _Refused(reading.refusal)
            return Leaf(self.without_temperature(node).words, inner=(reading,))
        if node.op is Op.TOKENS:
            return Leaf(node)
        if node.op is Op.CALL:
            return Call(name_of(node)) if name_of(node) in self.hot else None
        if node.op not in COMPOSED or not any(below_it[id(arg)] for arg in node.args):
            return None
        parts = tuple(below_it[id(arg)] or self.without_temperature(arg) for arg in node.args)
        if node.op is Op.CONCAT:
            return trees.Sequence(parts)
        if node.op is Op.UNION:
            return Choice(parts)
        if node.op is Op.REPEAT:
            assert isinstance(node.value, tuple)
            low, high = node.value
            return Repeat(parts[0], low, None if high < 0 else high)
        raise _Refused(
            "captures among members that may come in any order cannot be told: capture what holds them all"
        )

    def without_temperature(self, node: Expr) -> Leaf:
        """A part in which nothing has a name."""
        calls = any(each.op is Op.CALL for each in below(node, inner=lambda each: not each.size))
        return Leaf(self.part(self.rules, node) if calls else node)
