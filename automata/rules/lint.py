"""Findings about suspicious rules of a grammar, as values that a program can use.

Every finding is about a rule and about the language itself, not about a parser: rules that are not reachable, rules
without a word, rules that begin with themselves, and rules that derive only themselves, so that one text has
infinitely many derivations. None of them is an error. Linear in the grammar, except for terminals made with ``&``,
``~`` or look-around, for which a word is searched.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass

from tokenfst.automata.expressions.expression import Expr, Op, Unordered, bounds_of, members_of
from tokenfst.automata.expressions.metering import Deadline
from tokenfst.automata.languages.emptiness import has_empty_word, has_word
from tokenfst.automata.rules.graph import (
    Rules,
    calls_found,
    cycles,
    least_true,
    left_edge,
    reachable,
    shortest_cycle,
)
from tokenfst.budget import DEFAULT, Budget


class FindingKind(enum.Enum):
    """The subject of a finding."""

    UNREACHABLE = "unreachable"
    UNPRODUCTIVE = "unproductive"
    LEFT_RECURSION = "left-recursion"
    CYCLE = "cycle"


@dataclass(frozen=True, slots=True)
class Finding:
    """One observation about ``rule``. ``path`` is the cycle of rules that shows it, if there is one.

    ``line`` and ``column`` (from 1) are the place where the rule is defined; 0 if the grammar has no text.
    """

    kind: FindingKind
    rule: str
    message: str
    path: tuple[str, ...] = ()
    line: int = 0
    column: int = 0

    def __str__(self) -> str:
        place = f"{self.line}:{self.column}: " if self.line else ""
        return f"{place}{self.message} [{self.kind.value}]"


def productive(rules: Mapping[str, Expr], budget: Budget | None) -> frozenset[int]:
    """The ids of the nodes that have a word. ``Rules`` keep the result."""
    rules = Rules.of(rules)
    if rules.productive is None:
        rules.productive = _least_true(rules, has_word, budget, nullable=False)
    return rules.productive


def nullable(rules: Mapping[str, Expr], budget: Budget | None) -> frozenset[int]:
    """The ids of the nodes that have the empty word. ``Rules`` keep the result."""
    rules = Rules.of(rules)
    if rules.nullable is None:
        rules.nullable = _least_true(rules, has_empty_word, budget, nullable=True)
    return rules.nullable


def _least_true(
    rules: Rules, leaf: Callable[[Expr, Budget | None], bool], budget: Budget | None, *, nullable: bool
) -> frozenset[int]:
    """``least_true`` of leaves that are asked with the budget, within its time."""
    deadline = Deadline(budget or DEFAULT, "a grammar")
    return least_true(rules, lambda node: leaf(node, budget), deadline, nullable=nullable)


def lint(rules: Mapping[str, Expr], start: str, budget: Budget | None) -> list[Finding]:
    """All findings, in the order of the rules, without their places in the text."""
    found: list[Finding] = []
    rules = Rules.of(rules)
    reached = set(reachable(rules.graph, start))
    alive = productive(rules, budget)
    empty = nullable(rules, budget)
    for name, body in rules.items():
        if id(body) not in alive:
            message = (
                f"the rule {name!r} has no word: every one of its alternatives needs a word of a rule without"
            )
            found.append(Finding(FindingKind.UNPRODUCTIVE, name, message))
        if name not in reached:
            message = f"the rule {name!r} is not used: no way leads to it from {start!r}"
            found.append(Finding(FindingKind.UNREACHABLE, name, message))
    kinds = (
        (FindingKind.LEFT_RECURSION, left_edge, "begins with itself"),
        (
            FindingKind.CYCLE,
            _alone,
            "derives itself and nothing else, so a text has infinitely many derivations",
        ),
    )
    for kind, edges, what in kinds:
        graph = {name: edges(body, empty) for name, body in rules.items()}
        for part in cycles(graph):
            first = min(part, key=list(rules).index) if len(part) < 100 else part[0]
            path = tuple(shortest_cycle(graph, first, part))
            message = f"the rule {first!r} {what}: {' → '.join(path)}"
            found.append(Finding(kind, first, message, path))
    order = {name: number for number, name in enumerate(rules)}
    return sorted(found, key=lambda finding: order[finding.rule])


def _alone(body: Expr, empty: Container[int]) -> list[str]:
    """The rules that ``body`` can derive with nothing around them, because all other parts are empty."""

    def alone(node: Expr) -> Iterable[Expr]:
        if node.op is Op.CONCAT:
            needed = [arg for arg in node.args if id(arg) not in empty]
            return node.args if not needed else needed if len(needed) == 1 else ()
        if isinstance(node.value, Unordered):
            low, _, required, _ = node.value
            return members_of(node)[: 1 if required else None] if low <= 1 else ()
        if isinstance(node.value, tuple):
            low, _ = bounds_of(node)
            repeated, *_ = node.args
            return () if low > 1 and id(repeated) not in empty else node.args
        return node.args

    return calls_found(body, alone)
