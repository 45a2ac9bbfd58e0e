"""Combines the constraints of a tag's parts to one: a language, or a grammar.

If JSON Schema made all rules, the grammar becomes a program in one traversal. A tag adds one expression that calls
these rules: free text and delimiters, none of which is empty.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.grammars.assembly import Assembly
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.writing.written import WrittenGrammar
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget

_START = "start"


class Makers(NamedTuple):
    """The classes of the results, or functions with the same parameters.

    ``written``: for grammars all of whose rules JSON Schema made.
    """

    language: Callable[..., Language] = Language
    grammar: Callable[..., Grammar] = Grammar
    written: Callable[..., Grammar] = WrittenGrammar


PLAIN = Makers()


class Parts(Assembly):
    """An ``Assembly`` that records which rules may have the empty word, and returns the classes of ``makers``."""

    def __init__(self, budget: Budget | None = None, makers: Makers = PLAIN) -> None:
        super().__init__(budget)
        self._makers = makers
        self._states: set[str] = set()
        self._written = True
        """Whether JSON Schema made all grammars among the parts."""

    def expr(self, part: Constraint) -> Expr:
        found = super().expr(part)
        if isinstance(part, WrittenGrammar):
            prefix = str(found.value).removesuffix(part.start)
            self._states |= {prefix + name for name in part.states}
        elif isinstance(part, Grammar):
            self._written = False
        return found

    def finish(self, expr: Expr, source: str) -> Language | Grammar:
        makers = self._makers
        if not self.rules:
            return makers.language(expr, source, self.budget, super().finish(expr, source).reading)
        rules = {_START: expr, **self.rules}
        if not self._written or self.marked:
            return makers.grammar(rules, _START, source=source, budget=self.budget, marked=self.marked)
        states = frozenset({*self._states, _START})
        return makers.written(rules, _START, states, source=source, budget=self.budget)
