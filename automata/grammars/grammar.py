"""Context-free grammars over bytes as immutable values.

A grammar is a table of rules. The body of a rule is an expression whose leaves may be calls of rules
(``expression.call``). Every ``Language`` can be a terminal. Terminals and other rules are not distinguished, and there
is no lexer: the words of a rule are byte strings, and a token of a vocabulary may cross any boundary.

Invariants, checked once: every called rule exists; calls stand only under concatenation, union and repetition, as
context-freeness requires; counted repetitions fit into ``Budget.positions``. Rules may be recursive in any way, have no
words, or derive themselves; ``lint`` reports this.

Cost: construction is linear. Rejected: Backus-Naur form, in which every ``*`` is a rule: it hides regular parts, and
``x~1..1000`` would become a thousand alternatives.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from types import MappingProxyType
from typing import NoReturn

import tokenfst.common.notebook as notebook
from tokenfst._native import are_within, first_fault, has_calls, operators, with_words
from tokenfst.automata.captures.trees import Reading, within
from tokenfst.automata.expressions.expression import EMPTY, Expr, Op, call, members_of
from tokenfst.automata.expressions.program import Program, linearize
from tokenfst.automata.grammars.captured import NamedParts, grammar_reading
from tokenfst.automata.grammars.conflict import Conflict, make_conflict
from tokenfst.automata.grammars.network import draw_rules
from tokenfst.automata.grammars.operators import Operators
from tokenfst.automata.languages.engine import run_program
from tokenfst.automata.languages.language import Language
from tokenfst.automata.languages.operands import encode_any
from tokenfst.automata.languages.texts.walk import Walk
from tokenfst.automata.pictures.drawing import Drawing
from tokenfst.automata.rules.finiteness import is_finite
from tokenfst.automata.rules.graph import Rules, cycles, reachable, shortest_cycle
from tokenfst.automata.rules.inlining import rebuild
from tokenfst.automata.rules.left_recursion import Rewritten, rewrite_left_recursion
from tokenfst.automata.rules.lint import Finding, lint, nullable, productive
from tokenfst.automata.rules.pushdown import pushdown_rules
from tokenfst.automata.rules.shortest_word import shortest_words
from tokenfst.automata.rules.truncation import hard_cycle, inline
from tokenfst.budget import Budget
from tokenfst.common.arguments import checked, checked_but
from tokenfst.common.plurals import counted
from tokenfst.common.printable import caret, line_and_column
from tokenfst.errors import (
    BudgetExceeded,
    ConstraintError,
    DrawingError,
    EmptyLanguageError,
)

_PART = "%part"
_SKETCHED = 60
"""Maximum total number of rule states that a notebook draws by default."""


class Grammar(Operators):
    """A context-free set of byte strings. Created by ``lark_grammar``, ``gbnf``, ``ebnf``, ``bundled_grammar``, or
    ``from_rules``.

    Immutable. ``==`` and ``hash`` are identity, because equality of the languages of two grammars is undecidable.
    """

    __slots__ = ("_marked", "_text", "_unread", "_usable")
    _kind = "Grammar"
    _made_again = (*Operators._made_again, "_usable")  # noqa: SLF001  # its own base class

    @checked
    def __init__(
        self,
        rules: Mapping[str, Expr],
        start: str,
        *,
        source: str = "",
        text: str = "",
        positions: Mapping[str, int] | None = None,
        budget: Budget | None = None,
        marked: NamedParts | None = None,
        reading: Reading | None = None,
    ) -> None:
        """``rules``: the bodies by name. ``start``: the name of the start rule. ``source``: a description of the
        origin. ``text`` is the text of the rules, and ``positions`` the position of each definition in it; messages and
        pictures use them. ``marked``: the parts that are captured; give ``reading`` instead if the parser of captures
        is known.

        Raises ConstraintError if ``start`` or a called rule is missing, or if a rule is called where no context-free
        grammar can call it; BudgetExceeded("positions").
        """
        super().__init__(source or f"Grammar(start={start!r})", budget, reading)
        self._marked = marked or NamedParts({})
        self._unread = reading is None and bool(self._marked)
        self._rules = Rules.of(rules)
        self._start, self._text = start, text
        self._positions = dict(positions or {})
        self._usable: Rules | None = None
        if start not in self._rules:
            raise ConstraintError(
                f"the start rule {start!r} is not defined; the rules are {_some(self._rules)}"
            )
        self._check_rules()

    @classmethod
    @checked
    def from_rules(
        cls, rules: Mapping[str, Expr | Language], start: str, budget: Budget | None = None
    ) -> Grammar:
        """A grammar from expressions (calls by ``expression.call``) and languages, by rule name."""
        bodies, leaves = {}, []
        for name, rule in rules.items():
            bodies[name] = rule.expr if isinstance(rule, Language) else rule
            if isinstance(rule, Language) and rule.reading is not None:
                bodies[name] = rule.expr.named(rule.expr.source)  # a separate object
                leaves.append((bodies[name], rule.reading))
        return cls(bodies, start, budget=budget, marked=NamedParts({}, leaves))

    @property
    def rules(self) -> Mapping[str, Expr]:
        """The rule bodies by name, in source order; read-only."""
        return MappingProxyType(self._rules)

    @property
    def start(self) -> str:
        """The start rule."""
        return self._start

    @property
    def text(self) -> str:
        """The source text of the rules; empty if there is none."""
        return self._text

    @property
    def positions(self) -> Mapping[str, int]:
        """The position in ``text`` (a character index) at which each rule is defined or imported."""
        return MappingProxyType(self._positions)

    @checked
    def with_budget(self, budget: Budget) -> Grammar:
        """The same grammar, bounded by ``budget``."""
        return self._like(self._rules, self._source, budget, marked=self._marked, reading=self._reading)

    @checked
    def capturing(self, *rules: str, **named: str) -> Grammar:
        """The same grammar, with rules whose words are captured (``captures``): under their own names, or under another
        name by ``capturing(name="rule")``. Raises ConstraintError for a rule that does not exist.
        """
        wanted = {rule: rule for rule in rules} | {rule: name for name, rule in named.items()}
        for rule in wanted:
            if rule not in self._rules:
                raise ConstraintError(
                    f"the rule {rule!r} to capture is not defined; the rules are {_some(self._rules)}"
                )
        if self._reading is not None and not self._marked:
            raise ConstraintError(f"{self._source} is made of others: capture their rules before")
        marked = NamedParts(self._marked.rules | wanted, self._marked.leaves, self._marked.temperatures)
        return self._like(self._rules, self._source, self._budget, marked=marked)

    @property
    def marked(self) -> NamedParts:
        """The rules that are captured, with their capture names."""
        return self._marked

    @property
    def reading(self) -> Reading | None:
        """The parser of captures for the named rules and groups; ``None`` if there are none."""
        if self._unread:
            self._reading = grammar_reading(
                self._productive(), self._start, self._marked, self._part, self.budget
            )
            self._unread = False
        return self._reading

    def _part(self, rules: Rules, body: Expr) -> Grammar:
        """The words of an expression that calls some of the rules."""
        return Grammar(Rules({_PART: body, **rules}, like=rules), _PART, budget=self._budget)

    def _like(
        self,
        rules: Mapping[str, Expr],
        source: str,
        budget: Budget | None,
        positions: Mapping[str, int] | None = None,
        marked: NamedParts | None = None,
        reading: Reading | None = None,
    ) -> Grammar:
        """Other rules that were made of these, and begin with the same one."""
        if positions is None:
            positions = self._positions
        return Grammar(
            rules,
            self._start,
            source=source,
            text=self._text,
            positions=positions,
            budget=budget,
            marked=marked,
            reading=reading,
        )

    def __repr__(self) -> str:
        return f"<{self._kind} {self._source}: {counted(len(self._rules), 'rule')}>"

    def _facts(self) -> list[tuple[str, object]]:
        return [("source", self._source), ("rules", len(self._rules)), ("begins with", self._start)]

    def _sketch(self) -> str | None:
        if len(self._rules) > notebook.SMALL:
            return None
        try:
            return self.draw(max_states=_SKETCHED).svg_or_none()
        except (DrawingError, BudgetExceeded):
            return None

    # --- questions ------------------------------------------------------------------------------------

    def lint(self) -> list[Finding]:
        """Suspicious constructs: unreachable and unproductive rules, left recursion, rules that derive themselves."""
        return [self._placed(finding) for finding in lint(self._rules, self._start, self._budget)]

    def is_empty(self) -> bool:
        """Whether the grammar has no words."""
        return self._start not in self._productive()

    def witness(self) -> bytes | None:
        """A shortest word, the least of them in byte order; ``None`` if there is none. Where strings must differ
        (``exclusion_marks.fresh``), a short word.
        """
        if self._differs:
            return self.automaton.shortest()
        return shortest_words(self._rules, self._budget).get(self._start)

    def shortest(self) -> bytes | None:
        """The shortest word, the least of them in byte order; the same as ``witness``."""
        return self.witness()

    def is_finite(self) -> bool:
        """Whether there are finitely many words: no rule with a word recurs with additional text around it.

        Raises AlgebraError if that depends on strings that must differ.
        """
        return is_finite(self._productive(), self._start, self.budget, self._source)

    def _completion(self, prefix: bytes) -> bytes | None:
        if self.automaton.has_marks:
            word = self._ask(lambda automaton: automaton.completed(prefix))
            return None if word is None else word[len(prefix) :]

        def question(walk: Walk) -> bytes | None:
            at = walk.run(prefix)
            return None if at is None else walk.completion(at)

        return self._walking(question)

    @checked
    def rule_stack(self, prefix: str | bytes) -> tuple[str, ...]:
        """The names of the rules that are open at the end of ``prefix``, or where it first leaves the grammar;
        outermost (the start) first. Empty if the grammar has no words.

        If the text is ambiguous, the rules of one derivation. A rule that calls itself last (``list: item list``)
        appears once, and left-recursive rules may appear under names derived from theirs.
        """
        return self._rule_stacks(encode_any(prefix, "rule_stack", "prefix"))[0]

    def is_deterministic(self) -> bool:
        """Whether one stack suffices for every text: see ``conflict``."""
        return self.conflict() is None

    def conflict(self) -> Conflict | None:
        """A shortest text after which one stack is not enough, and the reason; ``None`` for deterministic grammars.

        Exact for the push-down automaton that is used, in which calls that need no stack are inlined: it may be
        deterministic where other automata for the same rules are not. All reachable states are visited, so grammars
        whose terminals combine in very many ways raise BudgetExceeded("states" or "seconds").
        """
        prefix = self.automaton.conflict()
        return None if prefix is None else make_conflict(prefix, self._rule_stacks(prefix), self._place)

    def is_recursive(self) -> bool:
        """Whether a rule that is reachable from the start calls itself, directly or indirectly."""
        graph = self._rules.graph
        reached = set(reachable(graph, self._start))
        return any(not reached.isdisjoint(part) for part in cycles(graph))

    def is_regular(self) -> bool:
        """Whether calls can be inlined exactly: recursion occurs only in the first or in the last position of an
        alternative (``list: list item | item``, ``unary: "-" unary | atom``).

        Sufficient, not necessary: whether the language of a grammar is regular is undecidable.
        """
        return self.is_empty() or hard_cycle(self._productive(), self._start, self.budget) is None

    def to_language(self) -> Language:
        """The same words as a Language. Raises ConstraintError, naming the rules, unless ``is_regular()``."""
        if self.is_empty():
            return self.truncate(0)
        cycle = hard_cycle(self._productive(), self._start, self.budget)
        if cycle is not None:
            graph = self._rules.graph
            names = [name for name in cycle if name in graph]
            path = " → ".join(shortest_cycle(graph, names[0], graph))
            raise ConstraintError(
                f"{self._source} is not regular: {path} needs a stack. "
                f"Use truncate(depth) for the part of it nested at most so deeply"
            )
        return self.truncate(0)

    @checked_but("depth")
    def truncate(self, depth: int) -> Language:
        """A regular approximation from below: a language of some of the grammar's words, including every word with a
        derivation in which no rule is nested inside itself more than ``depth`` times.

        A rule is nested k times inside itself if a path down the derivation tree visits it k + 1 times. ``depth`` 0
        keeps everything that needs no recursion; ``is_regular()`` grammars are exact at any depth. More words than
        these may be kept: recursion in the first or last position (``sum: sum "+" term | term``) does not consume
        depth, and of several mutually recursive rules only one is counted. ``truncate(n)`` is a subset of ``truncate(n
        + 1)``, and every word of the grammar is in one of them.

        Linear in rules × ``depth``, or rules × ``depth``^k where k recursions that consume depth are nested. Raises
        BudgetExceeded("positions" or "seconds") naming the rule.
        """
        if not isinstance(depth, int) or depth < 0:
            raise ConstraintError(f"truncate takes a depth of at least 0, a whole number, not {depth!r}")
        source = f"truncate({self._source}, {depth})"
        if self.is_empty():
            return Language(EMPTY, source, self._budget)
        expr = inline(self._productive(), self._start, depth, self.budget)
        return Language(expr, source, self._budget, within(expr, (self.reading,)))

    # --- out ------------------------------------------------------------------------------------------

    @checked
    def draw(
        self, path: str | os.PathLike[str] | None = None, format: str | None = None, max_states: int = 200
    ) -> Drawing:
        """A picture of the rules as a recursive transition network, one frame for each rule; also written to ``path``
        if given.

        Arguments and errors as in ``Language.draw``.
        """
        picture = draw_rules(
            self._rules, self._start, self._source, max_states, text=self._text, positions=self._positions
        )
        if path is not None:
            picture.save(path, format)
        return picture

    # --- the push-down automaton ----------------------------------------------------------------------

    def program(self) -> Program:
        """The serialized rules that the native core reads; if no rule needs a stack, a single expression."""
        if self.is_empty():
            return linearize(EMPTY)
        plain = rewrite_left_recursion(self._productive(), self._start, self.budget)
        rules = pushdown_rules(plain, self._start, self.budget)
        if has_calls(list(rules.values())):
            return self._program(plain, rules)
        return linearize(rules[self._start])

    # --- details --------------------------------------------------------------------------------------

    def _is_surely_endless(self) -> bool:
        return not self.automaton.has_marks and not self.is_finite()

    def open_rules(self, prefix: str | bytes) -> tuple[str, ...]:
        """``rule_stack`` without the rules that ``lark_grammar`` adds for ignored text, and around a start rule that is
        itself called.
        """
        return tuple(name for name in self.rule_stack(prefix) if not name.startswith("%"))

    def _rule_stacks(self, prefix: bytes) -> list[tuple[str, ...]]:
        """The rules around the end of ``prefix``, outermost first: for each of some ways to read it."""
        if self.is_empty():
            return [()]
        plain = rewrite_left_recursion(self._productive(), self._start, self.budget)
        program = self._program(plain, plain.rules, labelled=True)
        found: dict[tuple[str, ...], None] = {}
        for around in run_program(program, self.budget).rules_around(prefix):
            names = [program.rule_names[number] for number in reversed(around)]
            path = [self._start, *(plain.origins.get(name, name) for name in names)]
            found[tuple(name for name, before in zip(path, ["", *path], strict=False) if name != before)] = (
                None
            )
        return list(found) or [(self._start,)]

    def _place(self, rule: str) -> tuple[int, int]:
        position = self._positions.get(rule)
        return (0, 0) if position is None else line_and_column(self._text, position)

    def _program(self, plain: Rewritten, rules: Mapping[str, Expr], *, labelled: bool = False) -> Program:
        """``rules``, inlined from ``plain``, as a program."""
        empty = nullable(plain.rules, self._budget)
        bodies = {name: (body, id(plain.rules[name]) in empty) for name, body in rules.items()}
        assured = with_words(plain.rules.bodies, list(rules.values()), productive(plain.rules, self._budget))
        return linearize(call(self._start), bodies, assured=assured, labelled=labelled)

    def _productive(self) -> Rules:
        """The rules that have a word, without the alternatives that have none; all of them if that is all."""
        if self._usable is None:
            self._check_members()
            rules = self._rules
            alive = productive(rules, self._budget)
            if are_within(rules.bodies, alive):
                self._usable = rules
            else:
                kept = {name: rules.nodes(name) for name, body in rules.items() if id(body) in alive}
                self._usable = Rules(
                    {
                        name: rebuild(nodes, lambda node: node if id(node) in alive else EMPTY)
                        for name, nodes in kept.items()
                    },
                    like=rules,
                )
        return self._usable

    def _check_rules(self) -> None:
        """Check the invariants of all rules. Subclasses whose rules hold them anyway check nothing."""
        for name, body in self._rules.items():
            if not isinstance(body, Expr):
                raise ConstraintError(
                    f"the rule {name!r} is a {type(body).__name__}, not an expression or Language"
                )
        fault = first_fault(self._rules.bodies, self.budget.positions)
        if fault is not None:
            self._refuse(fault)

    def _refuse(self, name: str) -> NoReturn:
        """Raise the error for a rule that ``first_fault`` found."""
        for node in self._rules.bodies[name].leaves():
            if node.op is Op.CALL and node.value not in self._rules:
                raise ConstraintError(f"the rule {name!r} calls {node.value!r}, and there is no such rule")
            if node.args and any(each.op is Op.CALL for each in node.walk()):
                raise ConstraintError(
                    f"the rule {name!r} calls a rule under {node.op.name.lower()}: only concatenation, union "
                    f"and repetition of calls are context-free"
                )
        raise BudgetExceeded("positions", self.budget.positions, f"the rule {name!r}")

    def _check_members(self) -> None:
        """Members in any order must not have the empty word, because nothing would show that such a member was
        present.
        """
        if not operators(self._rules.bodies) & (1 << Op.UNORDERED):
            return
        for name in self._rules:
            for node in self._rules.nodes(name):
                if node.op is not Op.UNORDERED:
                    continue
                empty = nullable(self._rules, self._budget)
                if any(id(arg) in empty for arg in members_of(node)):
                    raise ConstraintError(
                        f"in the rule {name!r} a member that may come in any order has the empty word: leave the empty "
                        f"word out, the member need not be required"
                    )

    def _placed(self, finding: Finding) -> Finding:
        position = self._positions.get(finding.rule)
        if position is None:
            return finding
        line, column = line_and_column(self._text, position)
        return replace(finding, line=line, column=column)


def refuse_empty(grammar: Grammar) -> Grammar:
    """``grammar``, or EmptyLanguageError with the position of its start rule if it has no words."""
    if not grammar.is_empty():
        return grammar
    why = (
        "needs itself, a rule that does, or a part that matches no text"
        if grammar.is_recursive()
        else "has a part that matches no text, such as a look-ahead at what follows its terminal"
    )
    message = f"the rule {grammar.start!r} has no word: each of its alternatives {why}"
    position = grammar.positions.get(grammar.start)
    if position is None:
        raise EmptyLanguageError(message)
    line, column = line_and_column(grammar.text, position)
    raise EmptyLanguageError(f"line {line}, column {column}: {message}\n{caret(grammar.text, position)}")


def _some(names: Mapping[str, object]) -> str:
    shown = ", ".join(repr(name) for name in list(names)[:8])
    return shown + (", ..." if len(names) > 8 else "") if names else "none"
