"""Finiteness of an expression by its form, and the calls of rules through which texts can grow.

A language is infinite if an unbounded repetition contains a non-empty word, if an automaton has a cycle, or if a rule
calls itself next to a non-empty word. The first two can be seen in an expression. For the third, ``growth`` reports
which calls have such a neighbour, and ``rules.finiteness`` looks for the cycle.

Invariant: only parts that have a text count. Linear in the nodes, apart from intersections, complements, recursions,
look-behind and selections, whose automata are searched.
"""

from __future__ import annotations

from collections.abc import Callable, Container, Iterable
from dataclasses import dataclass

from tokenfst._native import Lexicon
from tokenfst.automata.expressions.expression import (
    ANY_BYTE,
    Dfa,
    Expr,
    Op,
    Unordered,
    below,
    body_of,
    bounds_of,
    intersect,
    members_of,
    repeat,
)
from tokenfst.automata.languages.emptiness import has_word
from tokenfst.automata.languages.engine import make_automaton
from tokenfst.automata.languages.texts.walk import Walk
from tokenfst.budget import Budget
from tokenfst.errors import AlgebraError

_COMPOSED = (Op.CONCAT, Op.UNION, Op.REPEAT, Op.UNORDERED, Op.OPENED, Op.FRESH)
_SOMETHING = repeat(ANY_BYTE, 1)


@dataclass(frozen=True, slots=True)
class Growth:
    """How the texts of an expression can grow.

    ``endless``: there are infinitely many texts, whatever the called rules contain. ``calls``: for each called rule,
    whether a non-empty text may stand next to a call of it.
    """

    endless: bool
    calls: dict[str, bool]


class Sizes:
    """Queries about many expressions that share nodes."""

    def __init__(self, budget: Budget, alive: Callable[[Expr], bool] | None = None) -> None:
        """``alive``: a function that says whether a node has a text. By default the text is searched for; nodes must
        then contain no calls.
        """
        self.budget = budget
        self.alive = alive or (lambda node: bool(node.size) or has_word(node, budget))
        self._filled: dict[Expr, bool] = {}
        self._finite: dict[Expr, bool] = {}

    def has_nonempty_word(self, root: Expr, rules: Container[str] = ()) -> bool:
        """Whether there is a non-empty text, given the rules that have one."""
        return self._filled_below(root, rules)[root]

    def _filled_below(self, root: Expr, rules: Container[str]) -> dict[Expr, bool]:
        found: dict[Expr, bool] = {}
        for node in below(root, inner=lambda node: node.op in _COMPOSED):
            if node.op is Op.CALL:
                found[node] = node.value in rules
            elif not self.alive(node):
                found[node] = False
            elif node.op in _COMPOSED:
                members = members_of(node) if node.op is Op.UNORDERED else node.args
                found[node] = any(found[arg] for arg in members)
            else:
                found[node] = self._leaf_is_filled(node)
        return found

    def growth(self, root: Expr, rules: Container[str] = ()) -> Growth:  # noqa: C901  # a case a kind of node
        """The calls through which the texts of an expression grow, given the rules that have a non-empty text."""
        has_more = self._filled_below(root, rules)
        calls: dict[str, bool] = {}
        seen: set[tuple[Expr, bool]] = set()
        stack = [(root, False)]
        while stack:
            node, grows = stack.pop()
            if (node, grows) in seen or not self.alive(node):
                continue
            seen.add((node, grows))
            if isinstance(node.value, str) and node.op is Op.CALL:
                calls[node.value] = calls.get(node.value, False) or grows
            elif node.op is Op.CONCAT:
                filled = [has_more[arg] for arg in node.args]
                for place, arg in enumerate(node.args):
                    stack.append((arg, grows or any(filled[:place]) or any(filled[place + 1 :])))
            elif node.op is Op.REPEAT:
                _, high = bounds_of(node)
                if high == 0:
                    continue
                body = body_of(node)
                filled_body = has_more[body]
                if high is None and filled_body:
                    return Growth(True, calls)
                stack.append((body, grows or (high != 1 and filled_body)))
            elif isinstance(node.value, Unordered):
                members = members_of(node)
                others = [arg for arg in members if self.alive(arg)]
                if node.value.repeats and node.value.high < 0 and self.alive(members[-1]):
                    return Growth(True, calls)
                several = node.value.high != 1 and (len(others) > 1 or node.value.repeats > 0)
                stack += ((arg, grows or several) for arg in (others if not several else node.args))
            elif node.op in _COMPOSED:
                stack += ((arg, grows) for arg in node.args)
            elif not self._leaf_is_finite(node):
                return Growth(True, calls)
        return Growth(False, calls)

    def _leaf_is_filled(self, node: Expr) -> bool:
        if node not in self._filled:
            value = node.value
            if isinstance(value, bytes):
                found = len(value) > 0
            elif isinstance(value, Dfa):
                found = bool(value.table[value.start].any())
            elif node.op is Op.EPSILON:
                found = False
            else:
                found = node.op is Op.BYTES or has_word(intersect(node, _SOMETHING), self.budget)
            self._filled[node] = found
        return self._filled[node]

    def _leaf_is_finite(self, node: Expr) -> bool:
        if node not in self._finite:
            simple = (Op.EMPTY, Op.EPSILON, Op.BYTES, Op.LITERAL)
            finite = node.op in simple or isinstance(node.value, Lexicon)
            self._finite[node] = finite or self._walk(node).is_finite()
        return self._finite[node]

    def _walk(self, node: Expr) -> Walk:
        return Walk(make_automaton(node, self.budget), self.budget, "the question whether texts end")

    def check_differing(self, nodes: Iterable[Expr], source: str) -> None:
        """Raise AlgebraError if there are finitely many strings that must differ: the language may then be finite
        although its form has unbounded repetitions.
        """
        for node in nodes:
            if node.op is Op.FRESH and not self.growth(body_of(node)).endless:
                raise AlgebraError(
                    f"is_finite: {source} has strings that must differ from each other, out of finitely many, so its "
                    "form does not tell whether its texts end"
                )


def is_finite(root: Expr, budget: Budget, source: str) -> bool:
    """Whether an expression without calls has finitely many texts."""
    sizes = Sizes(budget)
    if not sizes.growth(root).endless:
        return True
    if not root.size:
        sizes.check_differing(root.walk(), source)
    return False
