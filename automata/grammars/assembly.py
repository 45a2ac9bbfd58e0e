"""Constraints put together out of languages and grammars: a language if all parts are, else a grammar.

The idea: every part becomes an expression that may stand anywhere under concatenation, union and repetition. A
language is one already. A grammar's rules are taken over under names of their own, so that parts never share a rule
by accident, and its expression is the call of its start. A grammar used twice is taken over once.

Cost: linear in the rules taken over.
"""

from __future__ import annotations

from typing import TypeAlias

from tokenfst.automata.expressions.expression import Expr, Op, call
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.constraint import Constraint, widest
from tokenfst.automata.languages.language import Language
from tokenfst.automata.rules.graph import name_of, outer_nodes
from tokenfst.automata.rules.inlining import rebuild
from tokenfst.budget import Budget

Assembled: TypeAlias = Language | Grammar
"""What comes of parts."""


class Assembly:
    """The rules of the grammars met so far, and the widest budget of all parts."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget
        self._rules: dict[str, Expr] = {}
        self._starts: dict[int, tuple[Grammar, Expr]] = {}

    def expr(self, part: Constraint) -> Expr:
        """A part's words, as an expression for the result."""
        self.budget = widest(self.budget, part.given_budget)
        if isinstance(part, Language):
            return part.expr
        assert isinstance(part, Grammar)
        known = self._starts.get(id(part))
        if known is None:
            prefix = f"{len(self._starts) + 1}:"
            for name, body in part.rules.items():
                self._rules[prefix + name] = _renamed(body, prefix)
            known = self._starts[id(part)] = part, call(prefix + part.start)
        return known[1]

    @property
    def rules(self) -> dict[str, Expr]:
        """The rules taken over so far, for whoever makes the grammar itself."""
        return self._rules

    def finish(self, expr: Expr, source: str) -> Language | Grammar:
        """The constraint whose words are those of ``expr``."""
        if not self._rules:
            return Language(expr, source, self.budget)
        return Grammar({"start": expr, **self._rules}, "start", source=source, budget=self.budget)


def _renamed(body: Expr, prefix: str) -> Expr:
    """A rule's body with every call prefixed."""
    return rebuild(
        outer_nodes(body), lambda node: call(prefix + name_of(node)) if node.op is Op.CALL else node
    )
