"""The intersection of a context-free grammar with a regular language, as a grammar.

The construction is Bar-Hillel's: a rule of the product is a *triple* (rule, p, q). Its words are those words of the
rule that lead a deterministic automaton of the language from state p to state q (Bar-Hillel, Perles and Shamir, "On
formal properties of simple phrase structure grammars", 1961). ``product_ends`` finds, forward from the start, which
triples have a word. This module writes down those that the start needs, backward from the accepting states. A
triple of a rule becomes a rule. A triple of a part of a body is written in its place, or becomes a rule if it is
shared and not small, or if a repetition passes through several states.

Invariants: every rule made has a word, and is reached from the start. The alternatives of one triple that pass
through different states are disjoint, so no ambiguity is added. The last part of the text only needs to end in
*some* accepting state, which is one triple instead of many.

Cost: nodes × states³ alternatives at worst, bounded by the budget; combinations that do not occur cost nothing.
Rejected: Chomsky normal form, which loses the author's rules; all pairs of states, almost all of which are useless.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import groupby

from tokenfst.automata.expressions.expression import EMPTY, Dfa, Expr, call, concat, repeat, union
from tokenfst.automata.rules.leaf_walks import ACCEPTING
from tokenfst.automata.rules.product_ends import Choice, Ends, Key, Leaf, Loop, RuleNode, Skeleton
from tokenfst.budget import Budget

_SMALL = 8
"""A shared triple with at most this number of positions is written out wherever it is used."""

_Triple = tuple[int, int, int]
"""A node, the state before it, and the state after it or ACCEPTING."""


@dataclass(frozen=True, slots=True)
class Product:
    """Rules, and for each of them the rule that it was made from. The start keeps its name."""

    rules: dict[str, Expr]
    origins: dict[str, str]


def intersect(rules: Mapping[str, Expr], start: str, dfa: Dfa, budget: Budget) -> Product:
    """The words of ``start`` that ``dfa`` accepts. If ``start`` is missing in ``rules``, it has no word.

    BudgetExceeded names the rule that grew.
    """
    if start not in rules or dfa.start == 0:
        return Product({start: EMPTY}, {start: start})
    skeleton = Skeleton(rules, start)
    ends = Ends(skeleton, dfa, budget)
    ends.run(skeleton.rules[start])
    return _Writer(skeleton, ends, start).write()


@dataclass(frozen=True, slots=True)
class _Definition:
    """Copies of ``star``, if there is one, followed by any of the options."""

    options: list[tuple[_Triple, ...]]
    star: _Triple | None = None
    low: int = 0
    high: int | None = None
    source: str | None = None
    circular: bool = False
    """Whether options may lead back here without passing through a rule."""

    def parts(self) -> Iterator[_Triple]:
        """The triples in this definition."""
        if self.star is not None:
            yield self.star
        for option in self.options:
            yield from option


class _Writer:
    """Writes the triples that the root needs."""

    def __init__(self, skeleton: Skeleton, ends: Ends, start: str) -> None:
        self.skeleton, self.ends, self.start = skeleton, ends, start
        self.definitions: dict[_Triple, _Definition] = {}
        self.uses: Counter[_Triple] = Counter()
        self.names: dict[_Triple, str] = {}
        self.bodies: dict[_Triple, Expr] = {}
        self._inlined: dict[_Triple, tuple[list[Expr], int]] = {}
        self._states: dict[Key, tuple[list[int], list[int]]] = {}
        self._numbers: dict[str, dict[int, int]] = {}
        self._taken = {start}

    def write(self) -> Product:
        number = self.skeleton.rules[self.start]
        root = self._triple(number, self.ends.start, ACCEPTING)
        if root is None:
            return Product({self.start: EMPTY}, {self.start: self.start})
        self._define_all(root)
        self.names[root] = self.start
        for triple, definition in self.definitions.items():
            if self._is_rule(triple) or (definition.circular and self.uses[triple] > 1):
                self._name(triple)
        for triple in self.definitions:
            self._write_below(triple)
        places = {name: place for place, name in enumerate(self.skeleton.rules)}
        owner = self.skeleton.owner
        order = sorted(self.bodies, key=lambda each: (each != root, places[owner[each[0]]], each))
        return Product(
            {self.names[triple]: self.bodies[triple] for triple in order},
            {self.names[triple]: owner[triple[0]] for triple in order},
        )

    # --- definitions ----------------------------------------------------------------------------------

    def _define_all(self, root: _Triple) -> None:
        stack = [root]
        while stack:
            triple = stack.pop()
            if triple in self.definitions or self._is_leaf(triple):
                continue
            definition = self.definitions[triple] = self._define(triple)
            self.ends.meter.charge(1 + len(definition.options), self.skeleton.owner[triple[0]])
            for part in definition.parts():
                self.uses[part] += 1
                stack.append(part)

    def _define(self, triple: _Triple) -> _Definition:
        number, before, after = triple
        node = self.skeleton.nodes[number]
        if isinstance(node, RuleNode):
            return _Definition(self._sequences((self.skeleton.bodies[number],), before, after))
        if isinstance(node, Choice):
            found = [self._sequences(option, before, after) for option in node.options]
            return _Definition([option for options in found for option in options])
        assert isinstance(node, Loop)
        if node.high == 0:
            return _Definition([()])
        back = self._triple(node.body, before, before)
        away = [end for end in self._found(node.body, before) if end != before]
        if after == before and not any(self.ends.walks.leads(end, before) for end in away):
            if back is None:
                return _Definition([()])
            return _Definition([()], back, node.low, None if node.high < 0 else node.high, node.source)
        following = self.skeleton.following(number)
        here = after == before or (after == ACCEPTING and before in self.ends.accepting)
        stop: list[tuple[_Triple, ...]] = [()] if node.low == 0 and here else []
        onward = self._sequences((node.body, following), before, after)
        if following != number:
            return _Definition(stop + onward)
        onward = [option for option in onward if option[0][2] != before]
        return _Definition(stop + onward, back, circular=bool(onward))

    def _sequences(self, nodes: tuple[int, ...], before: int, after: int) -> list[tuple[_Triple, ...]]:
        """Sequences of one or two nodes, through all intermediate states, that lead from ``before`` to ``after``."""
        first, *rest = nodes
        if not rest:
            whole = self._triple(first, before, after)
            return [] if whole is None else [(whole,)]
        return [
            ((first, before, middle), onward)
            for middle in self._found(first, before)
            if (onward := self._triple(rest[0], middle, after)) is not None
        ]

    def _triple(self, number: int, before: int, after: int) -> _Triple | None:
        """The triple, if it has a word. ACCEPTING becomes the accepting state if only one is possible."""
        if after != ACCEPTING:
            return (number, before, after) if after in self.ends.found.get((number, before), ()) else None
        accepted = self._states_of((number, before))[1]
        return (number, before, ACCEPTING if len(accepted) > 1 else accepted[0]) if accepted else None

    def _found(self, number: int, before: int) -> list[int]:
        return self._states_of((number, before))[0]

    def _states_of(self, key: Key) -> tuple[list[int], list[int]]:
        """The states in which a node can end, ascending, and those of them that accept."""
        if key not in self._states:
            found = sorted(self.ends.found.get(key, ()))
            self._states[key] = found, [state for state in found if state in self.ends.accepting]
        return self._states[key]

    def _is_leaf(self, triple: _Triple) -> bool:
        return isinstance(self.skeleton.nodes[triple[0]], Leaf)

    def _is_rule(self, triple: _Triple) -> bool:
        return isinstance(self.skeleton.nodes[triple[0]], RuleNode)

    # --- expressions ----------------------------------------------------------------------------------

    def _write_below(self, root: _Triple) -> None:
        """Write a triple, after all triples that are written out inside of it."""
        stack = [(root, False)]
        while stack:
            triple, ready = stack.pop()
            if ready:
                self._write(triple)
            elif triple not in self.bodies and triple not in self._inlined:
                stack.append((triple, True))
                stack.extend(
                    (part, False)
                    for part in self.definitions[triple].parts()
                    if part not in self.names and not self._is_leaf(part)
                )

    def _write(self, triple: _Triple) -> None:
        if triple in self.bodies or triple in self._inlined:
            return
        definition = self.definitions[triple]
        options: list[list[Expr]] = []
        total = 0
        for option in definition.options:
            parts: list[Expr] = []
            for part in reversed(option):
                more, size = self._written(part)
                if parts:
                    parts += more
                else:
                    parts = more
                total += size
            options.append(parts)
        options = _factored(options)
        parts = options[0] if len(options) == 1 else [union(*map(_sequence, options))]
        if definition.star is not None:
            star, size = self._written(definition.star)
            low, high = definition.low, definition.high
            parts.append(repeat(_sequence(star), low, high, definition.source))
            total += size * max(low, high or 1)
        if triple in self.names or (self.uses[triple] > 1 and total > _SMALL):
            self._name(triple)
            self.bodies[triple] = _sequence(parts)
        else:
            self._inlined[triple] = parts, total

    def _written(self, triple: _Triple) -> tuple[list[Expr], int]:
        """A triple within the body of another: its parts, last first, and its number of positions."""
        node = self.skeleton.nodes[triple[0]]
        if isinstance(node, Leaf):
            return [self.ends.walks.words(node.expr, *triple[1:])], 1
        if triple in self.names:
            return [call(self.names[triple])], 1
        parts, size = self._inlined[triple]
        return (list(parts) if self.uses[triple] > 1 else parts), size

    def _name(self, triple: _Triple) -> None:
        """Give a triple a name, if it has none: ``value[2→5]``, or ``value#1[2→5]`` for a part of a rule."""
        if triple in self.names:
            return
        number, before, after = triple
        name = self.skeleton.owner[number]
        if not self._is_rule(triple):
            numbers = self._numbers.setdefault(name, {})
            name += f"#{numbers.setdefault(number, len(numbers) + 1)}"
        name += f"[{before}→{'end' if after == ACCEPTING else after}]"
        while name in self._taken:
            name += "'"
        self._taken.add(name)
        self.names[triple] = name


def _factored(options: list[list[Expr]]) -> list[list[Expr]]:
    """Adjacent alternatives that end in the same part, factored so that the part occurs once."""
    found: list[list[Expr]] = []
    for _, run in groupby(options, lambda parts: id(parts[0]) if parts else None):
        first, *others = run
        if first and others:
            first = [first[0], union(*(_sequence(parts[1:]) for parts in (first, *others)))]
        found.append(first)
    return found


def _sequence(parts: list[Expr]) -> Expr:
    """The concatenation of parts that are listed last first."""
    return concat(*reversed(parts))
