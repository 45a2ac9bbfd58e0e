"""``WrittenGrammar``: a grammar whose rules were written by this room, and become a program in one traversal
(``program``).

``Grammar.program`` traverses all rules once for each question about a grammar. For these rules the answers are known;
if the traversal cannot decide, the grammar's own translation is used.
"""

from __future__ import annotations

from collections.abc import Mapping

from tokenfst.automata.expressions.expression import Expr
from tokenfst.automata.expressions.program import Program
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.json_schema.writing.program import schema_program
from tokenfst.automata.json_schema.writing.writer import START, SchemaRules
from tokenfst.automata.languages.language import Language
from tokenfst.budget import Budget

_LAZY = Budget(positions=1 << 20_000)
"""The default budget. Its bound of positions is huge, because counted repetitions are never expanded here and cost
nothing.
"""


class WrittenGrammar(Grammar):
    """A grammar of the rules that ``writer`` makes. ``states``: the rules that may have the empty word."""

    __slots__ = ("_made", "_states")

    def __init__(
        self,
        rules: Mapping[str, Expr],
        start: str,
        states: frozenset[str],
        *,
        shared: str = "",
        source: str = "",
        budget: Budget | None = None,
    ) -> None:
        """``shared``: as for ``schema_program``."""
        super().__init__(rules, start, source=source, budget=budget)
        self._states = states
        self._made = schema_program(self._rules, start, shared, states, budget or _LAZY)

    @property
    def states(self) -> frozenset[str]:
        """The rules that may have the empty word."""
        return self._states

    def is_empty(self) -> bool:
        """Whether the grammar has no word."""
        return super().is_empty() if self._made is None else self._made is False

    def program(self) -> Program:
        """The serialized rules that the native core reads, computed once."""
        return self._made if isinstance(self._made, Program) else super().program()

    def _check_rules(self) -> None:
        """Does nothing: the rules call only their own rules, and ``schema_program`` checks their sizes."""


def members_of_rules(rules: SchemaRules, source: str, budget: Budget | None) -> Language | WrittenGrammar:
    """The constraint of rules whose start may have the empty word: the members of an object that may have none.

    A language if there are no rules but the start, otherwise a grammar.
    """
    if not rules.bodies:
        return Language(rules.start, source, budget)
    bodies = {START: rules.start, **rules.bodies}
    return WrittenGrammar(bodies, START, rules.states | {START}, source=source, budget=budget)
