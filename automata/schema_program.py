"""From the rules of a schema to the program of their push-down automaton, in one walk.

The idea: ``Grammar.program`` takes any grammar and passes over its rules once for each question: which have a word,
which the empty one, which begin with themselves, which need a stack. Of what ``schema_text`` writes the answers are
known. Every value is behind a bracket, a comma or a colon, so no rule begins with itself; no value is empty; and every
expression without calls is empty or has a word. So one depth-first walk from the start writes each rule where it is
first called. What leads back to a rule that is not finished is recursion, and needs a stack; every other call is
replaced by what it calls.

Invariant: the words are those of ``Grammar.program``, and so are the rules that stay calls, up to which rule of a
recursion is called. Alternatives without a word are left out, by the assumption that recursions have one; where that is
not certain once they are finished (a recursion that never ends), and where rules that may be empty call each other,
``None`` is the answer, and the grammar's own way is taken.

Cost: linear in the nodes; again, where a rule comes out larger than ``pushdown.LARGE``, with its largest callees as
calls.
"""

from __future__ import annotations

import time
from collections.abc import Container, Mapping

from tokenfst.automata.expression import EPSILON, Expr, Op, Program, ProgramCode, call, union
from tokenfst.automata.inlining import copies, size
from tokenfst.automata.known_words import SEARCHED, is_known_to_have_word
from tokenfst.automata.pushdown import LARGE, call_counts
from tokenfst.automata.rule_graph import COMPOSED, inner_nodes, name_of
from tokenfst.budget import Budget
from tokenfst.errors import BudgetExceeded

_NO_WORD = -1


def schema_program(
    bodies: Mapping[str, Expr], start: str, states: Container[str], budget: Budget
) -> Program | bool | None:
    """The program of rules, which begins with the rule ``start``; ``False`` if that has no word; ``None`` if this walk
    cannot tell.

    ``states``: the rules that may have the empty word. Raises BudgetExceeded("positions" or "seconds").
    """
    forced: set[str] = set()
    deadline = time.monotonic() + budget.seconds
    while True:
        walk = _Walk(bodies, start, states, forced, budget)
        found = walk.run()
        if walk.forced == forced:
            return found
        forced = walk.forced
        if time.monotonic() > deadline:
            raise BudgetExceeded("seconds", budget.seconds, f"the rule {start!r}")


class _Walk:
    """One walk; ``forced`` are the rules that stay calls, and gains those that should have."""

    def __init__(
        self,
        bodies: Mapping[str, Expr],
        start: str,
        states: Container[str],
        forced: set[str],
        budget: Budget,
    ) -> None:
        self.bodies, self.start, self.states, self.budget = bodies, start, states, budget
        self.kept, self.forced = forced, set(forced)
        self.code = ProgramCode()
        self.numbers: dict[int, int] = {}
        """Of each node, by its id, its instruction."""
        self.sizes: list[int] = []
        """Of each instruction, its positions with counted repetitions written out."""
        self.unsure: dict[int, tuple[Expr, list[int]]] = {}
        """Instructions that have a word if recursions have one; their nodes and operands."""
        self.assured: list[int] = []
        self.rules: dict[str, int] = {start: 0}
        """Of each rule that is called, its number."""
        self.calls: dict[str, int] = {}
        """Of each rule that is called, its CALL."""
        self.finished: dict[str, int] = {}
        self.begun: set[str] = set()

    def run(self) -> Program | bool | None:
        """See ``schema_program``."""
        numbers, entered = self.numbers, set[int]()
        open_rules = [self.start]
        self.begun.add(self.start)
        stack: list[Expr | None] = [None, self.bodies[self.start]]
        while stack:
            node = stack[-1]
            if node is None:
                stack.pop()
                self.finish(open_rules.pop())
                continue
            key = id(node)
            if key in numbers:
                stack.pop()
            elif node.op is Op.CALL:
                name = name_of(node)
                if name not in self.begun:
                    self.begun.add(name)
                    open_rules.append(name)
                    stack += (None, self.bodies[name])
                    continue
                stack.pop()
                number = self.finished.get(name)
                if number is None or (number >= 0 and (name in self.rules or name in self.kept)):
                    number = self.call(name)
                    if number is None:
                        return None
                numbers[key] = number
            elif node.op is Op.VARIABLE:
                stack.pop()
                if not self.write_recursion(node):
                    return None
            elif node.args and key not in entered:
                entered.add(key)
                stack += node.args
            else:
                stack.pop()
                numbers[key] = self.write(node)
        return self.program()

    def write(self, node: Expr) -> int:
        """The instruction of a node whose operands are written."""
        operands = [self.numbers[id(arg)] for arg in node.args]
        op = node.op
        if _NO_WORD in operands:
            if op is Op.REPEAT:
                assert isinstance(node.value, tuple)
                return _NO_WORD if node.value[0] else self.epsilon()
            operands = [number for number in operands if number != _NO_WORD]
            if op is not Op.UNION or not operands:
                return _NO_WORD
        elif op is Op.EMPTY:
            return _NO_WORD
        if self.unsure:
            self.note_unsure(node, operands)
        sizes = self.sizes
        if not operands:
            total = 1
        elif op is Op.REPEAT:
            total = sizes[operands[0]] * copies(node)
        else:
            total = 0
            for number in operands:
                total += sizes[number]
        sizes.append(total)
        if op in SEARCHED and is_known_to_have_word(node):
            self.assured.append(self.code.length)
        return self.code.add(node, operands)

    def write_recursion(self, root: Expr) -> bool:
        """Write all nodes below a VARIABLE, which call nothing. False if some have no word."""
        nodes = [node for node in root.walk() if id(node) not in self.numbers]
        self.numbers.update((id(node), number) for number, node in enumerate(nodes, self.code.length))
        for node in nodes:
            operands = [self.numbers[id(arg)] for arg in node.args]
            if node.op is Op.EMPTY or _NO_WORD in operands:
                return False
            self.code.add(node, operands)
            self.sizes.append(1)
        if is_known_to_have_word(root):
            self.assured.append(self.numbers[id(root)])
        return True

    def note_unsure(self, node: Expr, operands: list[int]) -> None:
        """Whether the next instruction, which is for ``node``, has a word only if recursions have one."""
        if self.depends(node, operands):
            self.unsure[self.code.length] = node, list(operands)

    def depends(self, node: Expr, operands: list[int]) -> bool:
        """Whether a node has a word only if some of ``unsure`` have."""
        if node.op is Op.CALL:
            name = name_of(node)
            return name not in self.finished or self.finished[name] in self.unsure
        if node.op is Op.REPEAT and isinstance(node.value, tuple) and node.value[0] == 0:
            return False
        inner = [number in self.unsure for number in operands]
        return bool(inner) and (all(inner) if node.op is Op.UNION else any(inner))

    def settle(self) -> None:
        """Find out what of ``unsure`` has a word, given the rules that are finished: a least fixed point."""
        found = -1
        while found != len(self.unsure):
            found = len(self.unsure)
            for number, (node, operands) in list(self.unsure.items()):
                if not self.depends(node, operands):
                    del self.unsure[number]

    def epsilon(self) -> int:
        if id(EPSILON) not in self.numbers:
            self.numbers[id(EPSILON)] = self.write(EPSILON)
        return self.numbers[id(EPSILON)]

    def call(self, name: str) -> int | None:
        """The CALL of a rule, which has a number from then on."""
        if name in self.states:
            return None
        if name not in self.calls:
            rule = self.rules.setdefault(name, len(self.rules))
            node = call(name)
            number = self.calls[name] = self.code.add(node, [rule])
            self.sizes.append(1)
            if self.depends(node, []):
                self.unsure[number] = node, []
        return self.calls[name]

    def finish(self, name: str) -> None:
        """Note the instruction of a rule, and which of its callees make it too large."""
        body = self.bodies[name]
        number = self.finished[name] = self.numbers[id(body)]
        if number == _NO_WORD:
            return
        if name in self.calls and number not in self.unsure:
            self.settle()
        if body.source is None and body.op in COMPOSED:
            self.code.labels.append((number, f"the rule {name!r}"))
        if self.sizes[number] > LARGE:
            self.check_size(name, body)

    def check_size(self, name: str, body: Expr) -> None:
        own = size(body)
        if own > self.budget.positions:
            raise BudgetExceeded("positions", self.budget.positions, f"the rule {name!r}")
        total = self.sizes[self.numbers[id(body)]]
        grown = {
            callee: count * (self.sizes[self.finished[callee]] - 1)
            for callee, count in call_counts(inner_nodes(body)).items()
            if callee not in self.calls and self.finished.get(callee, _NO_WORD) != _NO_WORD
        }
        for callee in sorted(grown, key=lambda callee: -grown[callee]):
            if total <= max(LARGE, 2 * own):
                break
            self.forced.add(callee)
            total -= grown[callee]

    def program(self) -> Program | bool | None:
        root = self.finished[self.start]
        if root == _NO_WORD:
            return False
        self.settle()
        if any(self.finished[name] in self.unsure for name in self.rules):
            return None
        if len(self.rules) == 1 and self.start not in self.calls:
            if root != self.code.length - 1:
                self.code.add(union(EPSILON, EPSILON), [root])  # the last instruction is the root
            return self.code.program(assured=self.assured)
        self.call(self.start)
        rules = tuple((self.finished[name], False) for name in self.rules)
        if self.calls[self.start] != self.code.length - 1:
            self.code.add(union(EPSILON, EPSILON), [self.calls[self.start]])
        return self.code.program(rules, tuple(self.rules), self.assured)
