"""Context-free grammars over bytes as immutable values.

The idea: a grammar is a table of rules, and a rule's body is an expression whose leaves may be calls of rules
(``expression.call``). Whatever a ``Language`` can be is a terminal; nothing tells terminals from other rules,
and there is no lexer: the words of a rule are byte strings, and a token of a vocabulary may cross any border.

Invariants, checked once: every called rule exists; calls stand under concatenation, union and repetition
only, which is what context-free means; counted repetitions fit into ``Budget.positions``. Rules may be
recursive in any way, have no word, or derive themselves: ``lint`` says so.

Cost: making one is linear. Rejected: Backus-Naur form, in which every ``*`` is a rule: it hides what is
regular, and ``x~1..1000`` would be a thousand alternatives.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType

from tokenfst.automata.expression import EMPTY, Expr, Op
from tokenfst.automata.grammar_lint import Finding, lint, productive
from tokenfst.automata.language import Language
from tokenfst.automata.notation import place
from tokenfst.automata.rule_graph import COMPOSED, called, cycles, inner_nodes, reachable, shortest_cycle
from tokenfst.automata.truncation import hard_cycle, inline, rebuilt, size
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded, ConstraintError, EmptyLanguageError, caret


class Grammar:
    """A context-free set of byte strings. Make one with ``lark_grammar``, ``gbnf``, ``ebnf``,
    ``bundled_grammar``, or ``from_rules``.

    A value of this class never changes. ``==`` and ``hash`` are identity: whether two grammars have the same
    words is undecidable.
    """

    __slots__ = ("_budget", "_positions", "_rules", "_source", "_start", "_text", "_usable")

    def __init__(
        self,
        rules: Mapping[str, Expr],
        start: str,
        *,
        source: str = "",
        text: str = "",
        positions: Mapping[str, int] | None = None,
        budget: Budget | None = None,
    ) -> None:
        """``text`` is what the rules were read from, and ``positions`` where in it each is defined; both are
        for messages only.

        Raises ConstraintError if a rule is called and not there, or called where no context-free grammar can
        call it; BudgetExceeded("positions").
        """
        self._rules = MappingProxyType(dict(rules))
        self._start, self._source, self._text = start, source or f"Grammar(start={start!r})", text
        self._positions = MappingProxyType(dict(positions or {}))
        self._budget = budget
        self._usable: Mapping[str, Expr] | None = None
        if start not in self._rules:
            raise ConstraintError(f"there is no rule {start!r} to start with; there are {_some(self._rules)}")
        for name, body in self._rules.items():
            self._check(name, body)

    @classmethod
    def from_rules(
        cls, rules: Mapping[str, Expr | Language], start: str, budget: Budget | None = None
    ) -> Grammar:
        """A grammar of expressions (calls by ``expression.call``) and languages, by their names."""
        bodies = {name: rule.expr if isinstance(rule, Language) else rule for name, rule in rules.items()}
        return cls(bodies, start, budget=budget)

    @property
    def rules(self) -> Mapping[str, Expr]:
        """The bodies by name, in the order of the source; read-only."""
        return self._rules

    @property
    def start(self) -> str:
        """The rule whose words are the grammar's."""
        return self._start

    @property
    def source(self) -> str:
        """What the grammar was made from, for people."""
        return self._source

    @property
    def text(self) -> str:
        """The text the rules were read from; empty where there was none."""
        return self._text

    @property
    def positions(self) -> Mapping[str, int]:
        """Where in ``text`` each rule is defined (an index of characters), or imported."""
        return self._positions

    @property
    def budget(self) -> Budget:
        """What bounds every question; languages made from this grammar inherit it."""
        return self._budget or Budget()

    def with_budget(self, budget: Budget) -> Grammar:
        """The same grammar, bounded by ``budget``."""
        return Grammar(
            self._rules,
            self._start,
            source=self._source,
            text=self._text,
            positions=self._positions,
            budget=budget,
        )

    def __repr__(self) -> str:
        return f"<Grammar {self._source}: {len(self._rules)} rules>"

    # --- questions ------------------------------------------------------------------------------------

    def lint(self) -> list[Finding]:
        """What is suspicious: unreachable and unproductive rules, left recursion, rules that derive
        themselves."""
        return [self._placed(finding) for finding in lint(self._rules, self._start, self._budget)]

    def is_empty(self) -> bool:
        """Whether the grammar has no word at all."""
        return self._start not in self._productive()

    def is_recursive(self) -> bool:
        """Whether a rule that the start reaches calls itself, at once or through others."""
        graph = {name: called(body) for name, body in self._rules.items()}
        reached = set(reachable(graph, self._start))
        return any(not reached.isdisjoint(part) for part in cycles(graph))

    def is_regular(self) -> bool:
        """Whether calls can be inlined exactly: there is no recursion but in the first or in the last place
        of an alternative (``list: list item | item``, ``unary: "-" unary | atom``).

        Sufficient, not necessary: whether a grammar has a regular language is undecidable.
        """
        return self.is_empty() or hard_cycle(self._productive(), self._start, self.budget) is None

    def to_language(self) -> Language:
        """The same words as a Language. ConstraintError, naming the rules, unless ``is_regular()``."""
        if self.is_empty():
            return self.truncate(0)
        cycle = hard_cycle(self._productive(), self._start, self.budget)
        if cycle is not None:
            graph = {name: called(body) for name, body in self._rules.items()}
            names = [name for name in cycle if name in graph]
            path = " → ".join(shortest_cycle(graph, names[0], graph))
            raise ConstraintError(
                f"{self._source} is not regular: {path} needs a stack. "
                f"Use truncate(depth) for the part of it nested at most so deeply"
            )
        return self.truncate(0)

    def truncate(self, depth: int) -> Language:
        """The regular approximation from below: the language of some of the grammar's words, among them every
        word with a derivation in which no rule is nested inside itself more than ``depth`` times.

        A rule is nested k times inside itself where a path down the derivation tree goes through it k + 1
        times. ``depth`` 0 already has all that needs no recursion; ``is_regular()`` grammars are exact at any
        depth. What is kept may be more than was promised: recursion in first or last place (``sum: sum "+"
        term | term``) never uses up depth, and of several rules that call each other round in a circle only
        one is counted. ``truncate(n)`` is a subset of ``truncate(n + 1)``, and every word of the grammar is in
        one of them.

        Linear in rules × ``depth``, or rules × ``depth``^k where k recursions that use up depth lie inside of
        each other. Raises BudgetExceeded("positions" or "seconds") naming the rule.
        """
        if depth < 0:
            raise ConstraintError(f"depth={depth} must not be negative")
        source = f"truncate({self._source}, {depth})"
        if self.is_empty():
            return Language(EMPTY, source, self._budget)
        return Language(inline(self._productive(), self._start, depth, self.budget), source, self._budget)

    # --- details --------------------------------------------------------------------------------------

    def _productive(self) -> Mapping[str, Expr]:
        """The rules that have a word, without the alternatives that have none."""
        if self._usable is None:
            alive = productive(self._rules, self._budget)
            kept = {name: body for name, body in self._rules.items() if id(body) in alive}
            if len(kept) < len(self._rules):
                kept = {name: _pruned(body, alive) for name, body in kept.items()}
            self._usable = kept
        return self._usable

    def _check(self, name: str, body: Expr) -> None:
        if not isinstance(body, Expr):
            raise ConstraintError(
                f"the rule {name!r} is a {type(body).__name__}, not an expression or Language"
            )
        for node in inner_nodes(body):
            if node.op is Op.CALL and node.value not in self._rules:
                raise ConstraintError(f"the rule {name!r} calls {node.value!r}, and there is no such rule")
            if node.args and any(below.op is Op.CALL for below in _below_leaf(node)):
                raise ConstraintError(
                    f"the rule {name!r} calls a rule under {node.op.name.lower()}: only concatenation, union "
                    f"and repetition of calls are context-free"
                )
        if size(body) > self.budget.positions:
            raise BudgetExceeded("positions", self.budget.positions, f"the rule {name!r}")

    def _placed(self, finding: Finding) -> Finding:
        position = self._positions.get(finding.rule)
        if position is None:
            return finding
        line, column = place(self._text, position)
        return replace(finding, line=line, column=column)


def refuse_empty(grammar: Grammar) -> Grammar:
    """``grammar``, or EmptyLanguageError with the place of its start if it has no word."""
    if not grammar.is_empty():
        return grammar
    message = (
        f"the rule {grammar.start!r} has no word: each of its alternatives needs itself, or a rule that does"
    )
    position = grammar.positions.get(grammar.start)
    if position is None:
        raise EmptyLanguageError(message)
    line, column = place(grammar.text, position)
    raise EmptyLanguageError(f"line {line}, column {column}: {message}\n{caret(grammar.text, position)}")


def _below_leaf(node: Expr) -> list[Expr]:
    """All nodes below one that calls must not stand under; nothing for the others."""
    return [] if node.op in COMPOSED else list(node.walk())


def _pruned(body: Expr, alive: set[int]) -> Expr:
    """``body`` with what has no word made EMPTY."""
    done: dict[int, Expr] = {}
    for node in inner_nodes(body):
        if id(node) not in alive:
            done[id(node)] = EMPTY
        elif node.op in COMPOSED:
            args = [done[id(arg)] for arg in node.args]
            same = all(new is old for new, old in zip(args, node.args, strict=True))
            done[id(node)] = node if same else rebuilt(node, args)
        else:
            done[id(node)] = node
    return done[id(body)]


def _some(names: Mapping[str, object]) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:8])
    return shown + (", ..." if len(names) > 8 else "") if names else "none"
