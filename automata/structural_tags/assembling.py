"""The whole tag put together: a language, or a grammar that becomes a program in one walk where JSON Schema made all of
its rules. A tag adds one expression that calls them: free text and marks, none of which is empty.
"""

from __future__ import annotations

from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.grammars.assembly import Assembly
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.writing.written import WrittenGrammar
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget

_START = "start"


class Parts(Assembly):
    """Puts parts together, and keeps which rules may have the empty word."""

    def __init__(self, budget: Budget | None = None) -> None:
        super().__init__(budget)
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
        if not self.rules or not self._written or self.marked:
            return super().finish(expr, source)
        rules = {_START: expr, **self.rules}
        states = frozenset({*self._states, _START})
        return WrittenGrammar(rules, _START, states, source=source, budget=self.budget)
