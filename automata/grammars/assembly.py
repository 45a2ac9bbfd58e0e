"""``Assembly``: combination of languages and grammars; the result is a language if all parts are, else a grammar.

Every part becomes an expression that may stand anywhere under concatenation, union and repetition. A language is one
already. The rules of a grammar are copied under fresh names, so that parts never share a rule by accident, and its
expression is a call of its start. A grammar that is used twice is copied once.

Cost: linear in the copied rules.
"""

from __future__ import annotations

from tokenfst.automata.captures.trees import Group, Leaf, Reading, names_of
from tokenfst.automata.expressions.expression import EMPTY, EPSILON, Expr, Op, call
from tokenfst.automata.expressions.rebuilding import rebuilt
from tokenfst.automata.grammars.captured import NamedParts
from tokenfst.automata.grammars.grammar import Grammar
from tokenfst.automata.languages.constraint import Constraint
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import widest
from tokenfst.automata.rules.graph import is_composed, name_of, outer_nodes
from tokenfst.budget import Budget


class Assembly:
    """The rules of the grammars so far, and the widest budget of all parts."""

    def __init__(self, budget: Budget | None = None) -> None:
        self.budget = budget
        self._rules: dict[str, Expr] = {}
        self._starts: dict[int, tuple[Grammar, Expr]] = {}
        self._captured = NamedParts({})

    def expr(self, part: Constraint) -> Expr:
        """The words of a part as an expression."""
        self.budget = widest(self.budget, part.given_budget)
        if isinstance(part, Language):
            return self._named(part.expr, part.reading)
        assert isinstance(part, Grammar)
        known = self._starts.get(id(part))
        if known is None:
            prefix = f"{len(self._starts) + 1}:"
            for name, body in part.rules.items():
                self._rules[prefix + name] = _renamed(body, prefix)
            marked = part.marked.renamed(prefix)
            self._captured.rules.update(marked.rules)
            self._captured.temperatures.update(marked.temperatures)
            self._captured.leaves += marked.leaves
            start = prefix + part.start
            if (
                part.reading is not None and not part.marked
            ):  # it is made of others, which read its words as a whole
                start = f"{prefix}%captured"
                self._rules[start] = call(prefix + part.start)
                self._captured.leaves.append((self._rules[start], part.reading))
            known = self._starts[id(part)] = part, call(start)
        return known[1]

    def group(self, name: str, part: Constraint) -> Expr:
        """The words of a part, captured under a name."""
        expr, inner = self.expr(part), part.reading
        if expr in (EMPTY, EPSILON):
            return expr
        words = Leaf(part.expr if isinstance(part, Language) else part, inner=(inner,) if inner else ())
        tree = Group(name, inner.start if inner and isinstance(part, Language) else words)
        return self._named(expr, Reading(tree, names_of(tree, {}), refusal=inner.refusal if inner else ""))

    @property
    def marked(self) -> NamedParts:
        """The named captures of the parts."""
        return self._captured

    def _named(self, expr: Expr, reading: Reading | None) -> Expr:
        """The expression; if it has a reading, a separate copy of it for which the reading is recorded."""
        if reading is None or expr in (EMPTY, EPSILON):
            return expr
        own = expr.named(expr.source)
        self._captured.leaves.append((own, reading))
        return own

    @property
    def rules(self) -> dict[str, Expr]:
        """The rules copied so far, for callers that create the grammar themselves."""
        return self._rules

    def finish(self, expr: Expr, source: str) -> Language | Grammar:
        """The constraint with the words of ``expr``."""
        if not self._rules and not self._captured:
            return Language(expr, source, self.budget)
        made = Grammar(
            {"start": expr, **self._rules}, "start", source=source, budget=self.budget, marked=self._captured
        )
        return made if self._rules else Language(expr, source, self.budget, made.reading)


def _renamed(body: Expr, prefix: str) -> Expr:
    """A rule's body with every call prefixed."""
    done: dict[int, Expr] = {}
    for node in outer_nodes(body):
        if node.op is Op.CALL:
            done[id(node)] = call(prefix + name_of(node))
        elif is_composed(node):
            for arg in node.args:
                if id(arg) in done:
                    done[id(node)] = rebuilt(node, [done.get(id(each), each) for each in node.args])
                    break
    return done.get(id(body), body)
